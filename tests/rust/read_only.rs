//! The environment for commands that only read, against a repository that wants its programs run.

use std::path::Path;
use std::process::Command;

use hookwright::process::read_only::{GitRisk, command, look};
use hookwright::process::run;

fn git(folder: &Path, arguments: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn repository(format: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), &["init", "-q", "-b", "main", &format!("--object-format={format}")]);
    std::fs::write(folder.path().join("a.txt"), "one\n").unwrap();
    git(folder.path(), &["add", "."]);
    git(folder.path(), &["commit", "-qm", "first"]);
    std::fs::write(folder.path().join("a.txt"), "two\n").unwrap();
    folder
}

fn on_runtime<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Runs a command as a gate that lets it through would.
fn read(text: &str, folder: &Path) -> (String, String) {
    on_runtime(async {
        let repository = look(folder, folder).await.unwrap();
        let output = run(command(text, folder, folder, repository.as_ref())).await.unwrap();
        (output.stdout.text(), output.stderr.text())
    })
}

#[test]
fn git_reads_in_repositories_of_both_formats_and_outside_of_them() {
    for format in ["sha1", "sha256"] {
        let folder = repository(format);
        let (stdout, stderr) = read("git diff | tail -1; git status --short; git log --oneline | wc -l", folder.path());
        assert_eq!((stdout.as_str(), stderr.as_str()), ("+two\n M a.txt\n1\n", ""), "{format}");
    }
    let plain = tempfile::tempdir().unwrap();
    std::fs::write(plain.path().join("a"), "a\n").unwrap();
    let (stdout, _) = read("git diff --no-index /dev/null a | tail -1", plain.path());
    assert_eq!(stdout, "+a\n");
}

#[test]
fn a_repository_that_names_programs_is_refused() {
    for (key, value) in [
        ("diff.external", "./marker"),
        ("diff.x.textconv", "./marker"),
        ("filter.x.clean", "./marker"),
        ("alias.st", "!./marker"),
        ("core.sshCommand", "./marker"),
        ("include.path", "/etc/hostname"),
    ] {
        let folder = repository("sha1");
        git(folder.path(), &["config", key, value]);
        let risk = on_runtime(look(folder.path(), folder.path())).unwrap_err();
        let expected = key.to_lowercase();
        match &risk {
            GitRisk::Configured { key, .. } => assert_eq!(*key, expected),
            GitRisk::Included { path } => assert_eq!(path, value),
            // What the included file holds is no configuration: git says so, and that is refused as well.
            other => assert!(key == "include.path", "{other:?}"),
        }
    }
    let folder = repository("sha1");
    std::fs::write(folder.path().join(".git/info/attributes"), "# comment\n*.txt diff=x\n").unwrap();
    assert!(
        matches!(on_runtime(look(folder.path(), folder.path())), Err(GitRisk::Attributes { name, .. }) if name == "diff=x")
    );
}

#[test]
fn what_the_environment_takes_back_is_never_run() {
    let folder = repository("sha1");
    let marker = folder.path().join("marker");
    std::fs::write(&marker, format!("#!/bin/sh\necho ran >> {}\n", folder.path().join("ran").display())).unwrap();
    let executable: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&marker, executable).unwrap();
    let program = marker.to_str().unwrap();
    let keys = ["core.fsmonitor", "core.pager", "gpg.program", "credential.helper", "core.askPass"];
    for key in keys {
        git(folder.path(), &["-c", "core.fsmonitor=false", "config", key, program]);
    }
    git(folder.path(), &["-c", "core.fsmonitor=false", "config", "core.hooksPath", folder.path().to_str().unwrap()]);
    git(folder.path(), &["-c", "core.fsmonitor=false", "config", "log.showSignature", "true"]);
    std::fs::write(folder.path().join(".gitattributes"), "* diff=x filter=x\n").unwrap();
    for text in ["git status", "git diff", "git log -p", "git show", "git grep one", "git blame a.txt", "git branch -a"]
    {
        read(text, folder.path());
        assert!(!folder.path().join("ran").exists(), "{text}");
    }
    // The same repository without the environment: the marker can run.
    Command::new("git").arg("status").current_dir(folder.path()).output().unwrap();
    assert!(folder.path().join("ran").exists(), "the marker does not work, so that this test shows nothing");
}

#[test]
fn nothing_of_the_surroundings_gets_in() {
    let folder = tempfile::tempdir().unwrap();
    let (stdout, _) = read(
        "echo \"${BASH_ENV-none} ${LD_PRELOAD-none} $GIT_OPTIONAL_LOCKS\"; read -r line || echo no input",
        folder.path(),
    );
    assert_eq!(stdout, "none none 0\nno input\n");
}
