//! Every git command that the analyser calls read-only, run in a repository that wants its programs run: none of them
//! is, and nothing changes.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use hookwright::gate::shell::{CommandTable, Effect, Requirement, analyze};
use hookwright::process::read_only::{GitRisk, Repository, command, look};
use hookwright::process::run;
use serde_json::Value;

/// Hooks that git has, also those that only writing commands run.
const HOOKS: [&str; 9] = [
    "post-index-change",
    "reference-transaction",
    "pre-auto-gc",
    "post-checkout",
    "pre-commit",
    "post-commit",
    "fsmonitor-watchman",
    "post-rewrite",
    "pre-push",
];

/// A repository with a history, and everything in it that can name a program and is not refused beforehand names the
/// marker, which leaves a trace.
struct Scratch {
    root: tempfile::TempDir,
}

impl Scratch {
    fn new() -> Self {
        let scratch = Self { root: tempfile::tempdir().unwrap() };
        scratch.history();
        scratch.traps();
        scratch
    }

    fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    fn tree(&self) -> PathBuf {
        self.root.path().join("tree")
    }

    fn trace(&self) -> PathBuf {
        self.root.path().join("ran")
    }

    /// A git without the environment for reading.
    fn git(&self, folder: &Path, arguments: &[&str]) -> std::process::Output {
        let mut command = Command::new("git");
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(|name| name.starts_with("GIT_")))
        {
            command.env_remove(name);
        }
        command.args(arguments).current_dir(folder).env("HOME", self.home()).env_remove("XDG_CONFIG_HOME");
        command.output().unwrap()
    }

    fn make(&self, folder: &Path, line: &str) {
        let output = self.git(folder, &line.split(' ').collect::<Vec<_>>());
        assert!(output.status.success(), "git {line}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn history(&self) {
        let (tree, library) = (self.tree(), self.root.path().join("library"));
        for folder in [&self.home(), &tree.join("src"), &library] {
            std::fs::create_dir_all(folder).unwrap();
        }
        let user = "[user]\n\tname = A\n\temail = a@example.org\n[protocol \"file\"]\n\tallow = always\n";
        std::fs::write(self.home().join(".gitconfig"), user).unwrap();
        std::fs::write(library.join("library.txt"), "library\n").unwrap();
        for line in ["init -q -b main", "add .", "commit -qm library"] {
            self.make(&library, line);
        }
        let write = |name: &str, text: &str| std::fs::write(tree.join(name), text).unwrap();
        write("README.md", "one\n");
        write("a.rs", "fn a() {}\n");
        write("src/main.rs", "fn main() {}\n");
        for line in
            ["init -q -b main", "add .", "commit -qm first", "tag v1.0", "tag -a v1 -m version", "branch feature"]
        {
            self.make(&tree, line);
        }
        write("README.md", "one\ntwo\n");
        for line in
            ["commit -qam second", "notes add -m noted", "submodule --quiet add ../library sub", "commit -qm sub"]
        {
            self.make(&tree, line);
        }
        write("a.rs", "fn a() { foo() }\n");
        self.make(&tree, "stash -q");
        write("src/main.rs", "fn main() { foo() }\n");
        let patch = self.git(&tree, &["diff"]).stdout;
        std::fs::write(tree.join("fix.patch"), patch).unwrap();
        self.make(&tree, "commit -qam third");
        self.make(&tree, "bundle create -q x.bundle main");
        self.make(&tree, "worktree add -q ../other feature");
        self.make(&tree, "remote add origin ../library");
        self.make(&tree, "update-ref refs/remotes/origin/main HEAD~1");
        write("list2.txt", "HEAD\nv1\n");
        write("README.md", "one\nthree\n");
        write("a.rs", "fn a() { bar() }\n");
        self.make(&tree, "add a.rs");
    }

    fn traps(&self) {
        let tree = self.tree();
        let marker = self.root.path().join("marker");
        let script = format!("#!/bin/sh\necho \"$0 $*\" >> {}\nexit 1\n", self.trace().display());
        let executable = |path: &Path| {
            std::fs::write(path, &script).unwrap();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        executable(&marker);
        for folder in [tree.join(".git/hooks"), tree.join(".git/modules/sub/hooks")] {
            std::fs::create_dir_all(&folder).unwrap();
            for hook in HOOKS {
                executable(&folder.join(hook));
            }
        }
        // The stat data in the index is old: what may write the index would.
        for name in ["README.md", "src/main.rs"] {
            let path = tree.join(name);
            let file = std::fs::File::options().write(true).open(path).unwrap();
            file.set_modified(std::time::SystemTime::now() - Duration::from_secs(1_000_000)).unwrap();
        }
        std::fs::write(tree.join(".gitattributes"), "* diff=x filter=x merge=x\n").unwrap();
        // Drivers of the user's own configuration are no reason to refuse a repository, which must not use them.
        let marker = marker.display();
        let driver = format!(
            "[diff \"x\"]\n\ttextconv = {marker}\n\tcommand = {marker}\n[filter \"x\"]\n\tclean = {marker}\n\tsmudge = {marker}\n[merge \"x\"]\n\tdriver = {marker}\n"
        );
        let path = self.home().join(".gitconfig");
        std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + &driver).unwrap();
        let settings = format!(
            "[core]\n\tfsmonitor = {marker}\n\tpager = {marker}\n\taskPass = {marker}\n\thooksPath = {}\n\
             [gpg]\n\tprogram = {marker}\n[gpg \"openpgp\"]\n\tprogram = {marker}\n[credential]\n\thelper = !{marker}\n\
             [log]\n\tshowSignature = true\n[diff]\n\tsubmodule = diff\n[submodule]\n\trecurse = true\n\
             [status]\n\tsubmoduleSummary = true\n[tar \"tgz\"]\n\tcommand = {marker}\n[gc]\n\tauto = 1\n\
             [uploadpack]\n\tpackObjectsHook = {marker}\n[remote \"origin\"]\n\tuploadpack = {marker}\n",
            tree.join(".git/hooks").display()
        );
        for path in [tree.join(".git/config"), tree.join(".git/modules/sub/config")] {
            std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + &settings).unwrap();
        }
        // A commit that says it is signed.
        let commit = self.git(&tree, &["-c", "core.fsmonitor=", "cat-file", "commit", "HEAD"]).stdout;
        let signed = String::from_utf8(commit).unwrap().replacen(
            "\n\n",
            "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n -----END PGP SIGNATURE-----\n\n",
            1,
        );
        std::fs::write(self.root.path().join("commit"), signed).unwrap();
        let arguments = ["-c", "core.fsmonitor=", "hash-object", "-t", "commit", "-w", "../commit"];
        let hash = String::from_utf8(self.git(&tree, &arguments).stdout).unwrap();
        let output = self.git(
            &tree,
            &["-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null", "update-ref", "refs/heads/main", hash.trim()],
        );
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let _ = std::fs::remove_file(self.trace());
    }

    /// Everything below the root by its path: what a write would change of a file, and that a folder is there.
    fn snapshot(&self) -> BTreeMap<PathBuf, [i64; 6]> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.root.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let about = path.symlink_metadata().unwrap();
                let mut state = [i64::from(about.mode()), 0, 0, 0, 0, 0];
                if about.is_dir() {
                    folders.push(path.clone());
                } else {
                    let size = i64::try_from(about.len()).unwrap();
                    state[1..].copy_from_slice(&[
                        size,
                        about.mtime(),
                        about.mtime_nsec(),
                        about.ctime(),
                        about.ctime_nsec(),
                    ]);
                }
                found.insert(path, state);
            }
        }
        found
    }

    /// Runs a command as what lets it through has to, but with this repository's home. Whether it printed anything.
    async fn read(&self, text: &str, repository: Option<&Repository>) -> bool {
        let mut spec = command(text, &self.tree(), &self.tree(), repository).timeout(Duration::from_secs(60));
        spec.environment.retain(|(name, _)| name != "HOME");
        spec.environment.push(("HOME".into(), self.home().into()));
        !run(spec).await.unwrap().stdout.bytes().is_empty()
    }

    async fn look(&self) -> Option<Repository> {
        look(&self.tree(), &self.tree()).await.unwrap()
    }
}

fn on_runtime<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// The labelled commands and the examples of the table that use git and are called read-only.
fn reading_commands() -> BTreeSet<String> {
    let table = CommandTable::default();
    let labelled = include_str!("../data/gate/shell_commands.jsonl").lines().map(|line| {
        let row: Value = serde_json::from_str(line).unwrap();
        row["command"].as_str().unwrap().to_owned()
    });
    let examples = table.examples().into_iter().filter(|program| program.names == ["git"]);
    let examples = examples.flat_map(|program| program.examples).collect::<Vec<_>>();
    let reads = |text: &String| {
        let analysis = analyze(text, &table);
        analysis.effect == Effect::ReadOnly && analysis.requires.contains(&Requirement::HardenedGit)
    };
    labelled.chain(examples).filter(reads).collect()
}

/// Runs the commands one after the other in a repository of their own: what went wrong, and how many printed anything.
fn run_all<'a>(commands: impl Iterator<Item = &'a String>) -> (Vec<String>, usize) {
    let scratch = Scratch::new();
    let (mut wrong, mut printed) = (Vec::new(), 0);
    on_runtime(async {
        let repository = scratch.look().await;
        let mut before = scratch.snapshot();
        for text in commands {
            printed += usize::from(scratch.read(text, repository.as_ref()).await);
            if let Ok(trace) = std::fs::read_to_string(scratch.trace()) {
                wrong.push(format!("{text}: ran {trace}"));
                std::fs::remove_file(scratch.trace()).unwrap();
            }
            let after = scratch.snapshot();
            if after != before {
                let differs = |path: &&PathBuf| after.get(*path) != before.get(*path);
                let paths: BTreeSet<_> = after.keys().chain(before.keys()).filter(differs).collect();
                wrong.push(format!("{text}: changed {paths:?}"));
                before = after;
            }
        }
    });
    (wrong, printed)
}

#[test]
fn no_reading_command_runs_a_program_of_the_repository_or_changes_it() {
    const PARTS: usize = 3;
    let commands = &reading_commands();
    assert!(commands.len() >= 80, "only {} commands", commands.len());
    let (wrong, printed) = std::thread::scope(|scope| {
        let start = |part| scope.spawn(move || run_all(commands.iter().skip(part).step_by(PARTS)));
        let parts: Vec<_> = (0..PARTS).map(start).collect();
        parts.into_iter().map(|part| part.join().unwrap()).fold((Vec::new(), 0), |mut all, (wrong, printed)| {
            all.0.extend(wrong);
            (all.0, all.1 + printed)
        })
    });
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), commands.len(), wrong.join("\n"));
    assert!(printed * 2 > commands.len(), "only {printed} of {} printed anything", commands.len());
}

#[test]
fn without_the_environment_the_same_commands_run_them() {
    let scratch = Scratch::new();
    let tree = scratch.tree();
    for line in ["status", "log -1", "diff", "show --stat HEAD", "grep --textconv foo", "blame README.md"] {
        scratch.git(&tree, &line.split(' ').collect::<Vec<_>>());
        assert!(scratch.trace().exists(), "git {line} runs nothing: the traps do not work");
        std::fs::remove_file(scratch.trace()).unwrap();
    }
}

/// A git of its own, under the configuration of the submodule, would make the difference.
#[test]
fn what_a_submodule_configures_is_not_run_from_outside_of_it() {
    let scratch = Scratch::new();
    let tree = scratch.tree();
    // Looked at before: afterwards it is found, and git kept away.
    let repository = on_runtime(scratch.look());
    let path = tree.join(".git/modules/sub/config");
    let external = format!("[diff]\n\texternal = {}\n", scratch.root.path().join("marker").display());
    std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + &external).unwrap();
    std::fs::write(tree.join("sub/library.txt"), "changed\n").unwrap();
    on_runtime(async {
        assert!(matches!(look(&tree, &tree).await, Err(GitRisk::Configured { .. })));
        for text in [
            "git status",
            "git diff",
            "git diff HEAD~3",
            "git log -p",
            "git show HEAD~1",
            "git submodule summary HEAD~3",
            "git submodule status --recursive",
            "git diff --submodule=log HEAD~3",
            "git grep --recurse-submodules library",
        ] {
            assert_eq!(analyze(text, &CommandTable::default()).effect, Effect::ReadOnly, "{text}");
            scratch.read(text, repository.as_ref()).await;
            let ran = std::fs::read_to_string(scratch.trace()).unwrap_or_default();
            assert!(ran.is_empty(), "{text}: {ran}");
        }
    });
    scratch.git(&tree, &["-c", "core.fsmonitor=", "-c", "log.showSignature=false", "diff", "HEAD~3"]);
    assert!(scratch.trace().exists(), "the trap does not work");
}
