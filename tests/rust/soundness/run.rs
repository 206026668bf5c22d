//! Runs what is called read-only, and finds the command that changed something.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hookwright::process::read_only::{Repository, arguments, environment, look};

use super::scratch::{Scratch, Template, difference};

/// Runs each command as [`arguments`] says, for two seconds at most; to be ended is no fault. Politely first: who is
/// ended so takes temporary files away. Says of each how it ended and how many microseconds it took.
const DRIVER: &str = r#"
if [[ $1 ]]; then exec 3>&2; else exec 3>/dev/null; fi
shift
for text; do
    start=${EPOCHREALTIME/./}
    timeout -k 1 2 bash --noprofile --norc -p -c "$text" </dev/null >&3 2>&1 3>&-
    echo "$? $((${EPOCHREALTIME/./} - start))"
done
"#;
const BATCH: usize = 40;

/// Who runs the commands.
#[derive(Clone, Copy)]
pub enum User {
    /// The one who runs the test, who is not root.
    Same,
    /// A user without any rights, by number.
    Other(u32),
}

impl User {
    /// Someone who is not root; `None` if that cannot be had.
    pub fn unprivileged() -> Option<User> {
        if !rustix::process::geteuid().is_root() {
            return Some(User::Same);
        }
        // A number of its own, so that what belongs to this user was made by this test.
        let user = 60_000 + std::process::id() % 5000;
        let works = Command::new("true").uid(user).gid(user).status().is_ok_and(|status| status.success());
        works.then_some(User::Other(user))
    }

    pub fn number(self) -> Option<u32> {
        match self {
            User::Same => None,
            User::Other(number) => Some(number),
        }
    }
}

/// Runs commands as the executor of read-only commands would.
pub struct Runner {
    user: User,
    template: Template,
    repository: Option<Repository>,
    pub ended: AtomicUsize,
    pub slow: Mutex<Vec<(Duration, String)>>,
}

/// A command that changed something.
#[derive(Debug)]
pub struct Fault {
    pub command: String,
    pub changes: Vec<String>,
}

impl Runner {
    pub fn new(user: User) -> Self {
        let template = Template::new(user.number());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let repository = runtime.block_on(look(&template.work(), &template.work())).unwrap();
        assert!(repository.is_some(), "the scratch folder is no repository");
        Self { user, template, repository, ended: AtomicUsize::new(0), slow: Mutex::default() }
    }

    /// Runs each of `commands` in the scratch folder, one after the other, and returns what they print if `keep`.
    ///
    /// One shell, of the user without rights, starts them all: to start each from here would take most of the time.
    pub fn run(&self, commands: &[&str], scratch: &Scratch, keep: bool) -> String {
        let work = scratch.path("work");
        let mut inherited: Vec<(OsString, OsString)> = vec![
            ("HOME".into(), scratch.path("home").into()),
            ("TMPDIR".into(), scratch.path("tmp").into()),
            ("LANG".into(), "C.UTF-8".into()),
        ];
        inherited.extend(std::env::var_os("PATH").map(|path| ("PATH".into(), path)));
        let mut driver = Command::new("bash");
        driver.args(["--noprofile", "--norc", "-p", "-c", DRIVER, "driver"]).arg(if keep { "keep" } else { "" });
        driver.args(commands.iter().flat_map(|text| arguments(text)[5..].to_vec()));
        let mut variables = environment(inherited, &work, self.repository.as_ref());
        // The scratch folder is a copy of the one that was looked at.
        let looked_at = self.template.work().canonicalize().unwrap();
        for (_, value) in variables.iter_mut().filter(|(_, value)| value == looked_at.as_os_str()) {
            *value = work.canonicalize().unwrap().into();
        }
        driver.env_clear().envs(variables);
        driver.current_dir(&work).stdin(Stdio::null());
        if let User::Other(user) = self.user {
            driver.uid(user).gid(user);
        }
        let output = driver.output().unwrap();
        let report = String::from_utf8_lossy(&output.stdout);
        assert_eq!(report.lines().count(), commands.len(), "{report} {}", String::from_utf8_lossy(&output.stderr));
        for (line, command) in report.lines().zip(commands) {
            let (code, micros) = line.split_once(' ').unwrap();
            self.ended.fetch_add(usize::from(matches!(code, "124" | "137")), Ordering::Relaxed);
            let time = Duration::from_micros(micros.parse().unwrap());
            if time > Duration::from_millis(500) {
                self.slow.lock().unwrap().push((time, (*command).to_owned()));
            }
        }
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// Runs all, four at a time, and returns those that changed something.
    pub fn check(&self, commands: &[&str]) -> Vec<Fault> {
        let next = AtomicUsize::new(0);
        let faults = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut scratch = self.template.copy();
                    loop {
                        let start = next.fetch_add(BATCH, Ordering::Relaxed);
                        if start >= commands.len() {
                            break;
                        }
                        if std::env::var_os("GATE_SHOW").is_some() && start.is_multiple_of(1000) {
                            println!("{start} of {}", commands.len());
                        }
                        let batch = &commands[start..commands.len().min(start + BATCH)];
                        let mut found = Vec::new();
                        self.batch(batch, &mut scratch, &mut found);
                        faults.lock().unwrap().extend(found);
                    }
                });
            }
        });
        faults.into_inner().unwrap()
    }

    /// Runs a batch, and if something changed, each half of it in a new copy, until the command is found.
    fn batch(&self, batch: &[&str], scratch: &mut Scratch, faults: &mut Vec<Fault>) {
        self.run(batch, scratch, false);
        let changes = difference(&scratch.before, &scratch.tree());
        if changes.is_empty() {
            return;
        }
        *scratch = self.template.copy();
        if let [one] = batch {
            println!("CHANGED {changes:?} by {one:?}");
            faults.push(Fault { command: (*one).to_owned(), changes });
            return;
        }
        let found = faults.len();
        let (left, right) = batch.split_at(batch.len() / 2);
        self.batch(left, scratch, faults);
        self.batch(right, scratch, faults);
        if faults.len() == found {
            // Together they change something, alone none does.
            faults.push(Fault { command: batch.join("\n"), changes });
        }
    }

    /// A copy to try something in.
    pub fn scratch(&self) -> Scratch {
        self.template.copy()
    }

    /// Files of the user outside of the scratch folders, where everybody may write.
    pub fn elsewhere(&self) -> Vec<PathBuf> {
        use std::os::unix::fs::MetadataExt;
        let Some(user) = self.user.number() else { return Vec::new() };
        ["/tmp", "/var/tmp", "/dev/shm", "/run/lock", "/dev/mqueue"]
            .iter()
            .filter_map(|folder| std::fs::read_dir(folder).ok())
            .flat_map(|entries| entries.flatten())
            .filter(|entry| !entry.file_name().to_string_lossy().starts_with("soundness"))
            .filter(|entry| entry.path().symlink_metadata().is_ok_and(|about| about.uid() == user))
            .map(|entry| entry.path())
            .collect()
    }

    /// Processes of the user that are still there.
    pub fn left_over(&self) -> Vec<String> {
        use std::os::unix::fs::MetadataExt;
        let Some(user) = self.user.number() else { return Vec::new() };
        let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
        let running = entries.flatten().filter(|entry| entry.metadata().is_ok_and(|about| about.uid() == user));
        let line = |entry: std::fs::DirEntry| std::fs::read(entry.path().join("cmdline")).ok();
        running.filter_map(line).map(|line| String::from_utf8_lossy(&line).replace('\0', " ")).collect()
    }
}
