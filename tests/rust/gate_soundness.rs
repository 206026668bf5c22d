//! What the shell gate calls read-only changes nothing: commands over the whole table are made up, and each that is
//! called read-only is run in a scratch folder, which is compared before and after.
//!
//! `GATE_SEED=7` makes up other commands, `GATE_COMMANDS=50000` more of them, `GATE_SHOW=1` prints what took long.

#[path = "soundness/generate.rs"]
mod generate;
#[path = "soundness/run.rs"]
mod run;
#[path = "soundness/scratch.rs"]
mod scratch;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use generate::{Generated, Generator};
use hookwright::gate::shell::{CommandTable, Effect, analyze};
use run::{Runner, User};

/// Programs that take a second or so to start, and how many commands of each are run: there is no time for all of them.
const SLOW: &[&str] = &[
    "npm",
    "npx",
    "pip",
    "pip3",
    "mvn",
    "gcloud",
    "aws",
    "cargo",
    "java",
    "javac",
    "jar",
    "jshell",
    "kubectl",
    "terraform",
];
const MOST_OF_SLOW: usize = 40;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

/// A user without rights, or a loud reason why there is none.
fn user() -> Option<User> {
    let user = User::unprivileged();
    if user.is_none() {
        println!("NOT RUN: the test is root and may not become another user, so that no command was run at all");
    }
    user
}

fn is_read_only(text: &str) -> bool {
    analyze(text, CommandTable::builtin()).effect == Effect::ReadOnly
}

/// Whether the shell finds each program; its own builtins are found by asking it.
fn installed(names: &BTreeSet<String>, runner: &Runner) -> BTreeSet<String> {
    let text: Vec<String> =
        names.iter().map(|name| format!("type {0} >/dev/null 2>&1 && echo {0}", generate::quoted(name))).collect();
    let scratch = runner.scratch();
    runner.run(&[&text.join("\n")], &scratch, true).lines().map(str::to_owned).collect()
}

/// The options that programs without a list of options say they have.
fn offered(names: &BTreeSet<String>, runner: &Runner) -> BTreeMap<String, Vec<String>> {
    let scratch = runner.scratch();
    let mut found = BTreeMap::new();
    for name in names {
        let ask = format!("{name} --help");
        if !is_read_only(&ask) || ["yes", "sleep", "ps"].contains(&name.as_str()) {
            continue;
        }
        let printed = runner.run(&[&ask], &scratch, true);
        let is_letter = |character: char| character.is_ascii_alphanumeric() || character == '-';
        let words = printed.split(|character: char| !is_letter(character));
        let mut options: BTreeSet<String> = words
            .filter(|word| word.starts_with("--") && word.len() > 3 || word.starts_with('-') && word.len() == 2)
            .map(str::to_owned)
            .filter(|word| word != "--")
            .collect();
        if options.is_empty() {
            options.extend(('a'..='z').chain('A'..='Z').map(|letter| format!("-{letter}")));
        }
        found.insert(name.clone(), options.into_iter().collect());
    }
    found
}

#[test]
#[ignore = "it takes minutes: make soundness"]
fn what_is_called_read_only_changes_nothing() {
    let Some(user) = user() else { return };
    let started = Instant::now();
    let table = CommandTable::builtin();
    let shapes = table.shapes();
    let runner = Runner::new(user);
    let all: BTreeSet<String> = table.programs().into_iter().map(str::to_owned).collect();
    let there = installed(&all, &runner);
    let any: BTreeSet<String> = shapes
        .iter()
        .filter(|shape| shape.any_options && there.contains(&shape.command[0]))
        .map(|shape| shape.command[0].clone())
        .collect();
    let offered = offered(&any, &runner);
    let mut generator = Generator::new(&shapes, &offered, setting("GATE_SEED", 20));
    // What is not here is not run: a few lines of it show that it is judged.
    generator.cover(|shape| if there.contains(&shape.command[0]) { 10 } else { 1 });
    let simple = generator.made.clone();
    let runs = |one: &&Generated| one.programs.iter().all(|name| there.contains(name));
    let reading: Vec<Generated> = simple.iter().filter(runs).filter(|one| is_read_only(&one.text)).cloned().collect();
    let wanted = usize::try_from(setting("GATE_COMMANDS", 22_000)).unwrap();
    println!("{} simple commands of {} programs, {} read-only and here", simple.len(), all.len(), reading.len());
    generator.compose(&simple, 1000);
    while generator.made.len() < wanted.max(simple.len() + 4000) {
        generator.compose(&reading, 500);
    }
    let made = generator.made;

    let distinct: BTreeSet<&str> = made.iter().map(|one| one.text.as_str()).collect();
    assert!(distinct.len() >= 20_000, "only {} distinct commands", distinct.len());
    let covered: BTreeSet<&String> = made.iter().flat_map(|one| &one.programs).collect();
    let missing: Vec<&String> = all.iter().filter(|name| !covered.contains(name)).collect();
    assert!(missing.is_empty(), "no command of {missing:?}");

    let judged: Vec<&Generated> = made.iter().filter(|one| is_read_only(&one.text)).collect();
    let here: Vec<&Generated> = judged.iter().copied().filter(runs).collect();
    let mut slow: BTreeMap<&str, Vec<&Generated>> = BTreeMap::new();
    let mut run: Vec<&str> = Vec::new();
    for one in &here {
        match one.programs.iter().find(|name| SLOW.contains(&name.as_str())) {
            Some(name) => slow.entry(name).or_default().push(one),
            None => run.push(&one.text),
        }
    }
    // Some from all over: neighbours are much alike.
    for commands in slow.values() {
        run.extend(commands.iter().step_by(commands.len().div_ceil(MOST_OF_SLOW)).map(|one| one.text.as_str()));
    }
    let slow = here.len() - run.len();
    println!("{slow} commands of {SLOW:?} are not run, because these start too slowly");
    println!("{} to run, made up and judged after {:.0?}", run.len(), started.elapsed());
    let faults = runner.check(&run);
    println!(
        "{} generated, {} read-only, {} run ({} ended after two seconds), {} skipped because a program is not here \
         ({} of {} programs are); {:.0?}",
        distinct.len(),
        judged.len(),
        run.len(),
        runner.ended.load(std::sync::atomic::Ordering::Relaxed),
        judged.len() - here.len(),
        there.len(),
        all.len(),
        started.elapsed()
    );
    if std::env::var_os("GATE_SHOW").is_some() {
        let mut slow = runner.slow.lock().unwrap().clone();
        slow.sort();
        for (time, text) in slow.iter().rev().take(60) {
            println!("{time:.1?} {text}");
        }
    }
    let shown: Vec<String> = faults.iter().map(|fault| format!("{:?} by {:?}", fault.changes, fault.command)).collect();
    assert!(faults.is_empty(), "{} commands changed something: {shown:#?}", faults.len());
    assert_eq!(runner.elsewhere(), Vec::<std::path::PathBuf>::new(), "files outside of the scratch folders");
    assert_eq!(runner.left_over(), Vec::<String>::new(), "processes that are still there");
    assert!(run.len() >= 5000, "only {} were run", run.len());
}

#[test]
fn the_comparison_finds_what_changes() {
    let Some(user) = user() else { return };
    let runner = Runner::new(user);
    let harmful = [
        "touch pwned",
        "echo x >> a.txt",
        "touch -d 2001-01-01 a.txt",
        "rm b.txt",
        "chmod 600 a.txt",
        "ln -sf b.txt link",
        "mkdir -p src/more",
        "git add -A",
        "git tag v2",
        "mv 'name with blank.txt' other",
        "echo x > ../home/.profile",
        "ln a.txt ../tmp/a",
        "sed -i s/a/b/ a.txt",
        "cp /dev/null empty2; rm -f empty2; touch -- -new",
    ];
    let mut batch: Vec<&str> = vec!["ls", "cat a.txt", "wc -l *"];
    for command in harmful {
        batch.extend(["ls -la", command, "head -1 b.txt"]);
    }
    let mut found: Vec<String> = runner.check(&batch).into_iter().map(|fault| fault.command).collect();
    found.sort();
    let mut expected = harmful.map(str::to_owned).to_vec();
    expected.sort();
    assert_eq!(found, expected);
}
