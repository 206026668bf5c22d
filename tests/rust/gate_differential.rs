//! The analyser against bash itself: a marker program hides in made-up texts. Where bash runs it, the analyser must
//! have seen that there is more than reading.
//!
//! `GATE_SEED=7` makes up other texts, `GATE_TEXTS=50000` more of them.

#[path = "differential/texts.rs"]
mod texts;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use hookwright::gate::shell::{CommandTable, Effect, analyze};
use texts::Texts;

const BATCH: usize = 50;
/// Runs each text in a subshell and says whether the marker ran. A substitution waits for what goes on behind.
const DRIVER: &str = r#"
export FUNCNEST=20
number=0
for text; do
    export number=$((number + 1))
    : "$( (eval "$text") 2>&1 </dev/null)"
    if [[ -e $MARKS/$number ]]; then echo ran >&3; else echo no >&3; fi
done
"#;

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

/// For each text whether bash ran the marker; `None` if the text did not end.
fn run(texts: &[String], folder: &Path) -> Vec<Option<bool>> {
    let mut found = Vec::new();
    while found.len() < texts.len() {
        let place = tempfile::tempdir_in(folder).unwrap();
        let (programs, marks, work) =
            (place.path().join("programs"), place.path().join("marks"), place.path().join("work"));
        for folder in [&programs, &marks, &work] {
            std::fs::create_dir(folder).unwrap();
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let marker = programs.join("marker");
        std::fs::write(&marker, format!("#!/bin/sh\n: > {}/\"$number\"\n", marks.display())).unwrap();
        std::fs::set_permissions(&marker, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::write(work.join("a.txt"), "a line\nanother\n").unwrap();
        let output = Command::new("timeout")
            .args(["-k", "1", "20", "bash", "--noprofile", "--norc", "-p", "-c"])
            .arg(format!("exec 3>&1 >/dev/null\n{DRIVER}"))
            .arg("driver")
            .args(&texts[found.len()..])
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", programs.display()))
            .env("MARKS", &marks)
            .current_dir(&work)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .unwrap();
        let lines = String::from_utf8_lossy(&output.stdout).lines().map(|line| line == "ran").collect::<Vec<_>>();
        found.extend(lines.into_iter().map(Some));
        if found.len() < texts.len() {
            found.push(None);
        }
    }
    found
}

#[test]
fn what_bash_runs_is_seen() {
    let count = setting("GATE_TEXTS", 1500);
    let mut source = Texts::new(setting("GATE_SEED", 30) as u64);
    let texts: Vec<String> = std::iter::from_fn(|| Some(source.text())).take(count).collect();
    let folder = tempfile::tempdir().unwrap();
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let start = next.fetch_add(BATCH, Ordering::Relaxed);
                    if start >= texts.len() {
                        break;
                    }
                    let batch = &texts[start..texts.len().min(start + BATCH)];
                    let ran = run(batch, folder.path());
                    results.lock().unwrap().extend(batch.iter().cloned().zip(ran));
                }
            });
        }
    });
    let (mut ran, mut quiet, mut hung, mut read_only, mut wrong) = (0, 0, 0, 0, Vec::new());
    for (text, result) in results.into_inner().unwrap() {
        let passes = matches!(analyze(&text, CommandTable::builtin()).effect, Effect::ReadOnly | Effect::RunsTests);
        match result {
            None => hung += 1,
            Some(true) => {
                ran += 1;
                if passes {
                    wrong.push(text);
                }
            }
            Some(false) => {
                quiet += 1;
                read_only += usize::from(passes);
            }
        }
    }
    println!(
        "{count} texts: bash ran the marker in {ran}, not in {quiet} ({read_only} of these are called read-only), \
         {hung} did not end"
    );
    wrong.sort_by_key(String::len);
    if let Some(path) = std::env::var_os("GATE_WRONG") {
        std::fs::write(path, wrong.join("\n----\n")).unwrap();
    }
    assert!(wrong.is_empty(), "{} texts run what is not seen:\n{}", wrong.len(), wrong.join("\n----\n"));
    assert!(ran >= count / 5 && read_only >= count / 10, "too few to tell");
}
