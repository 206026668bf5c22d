//! The environment for commands that only read, against a repository that wants its programs run.

use std::path::Path;
use std::process::Command;

use hookwright::process::read_only::{GitRisk, command, look, look_for};
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
        let repository = look_for(text, folder, folder).await.unwrap();
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
    let (program, ran) = marker(folder.path());
    let keys = ["core.fsmonitor", "core.pager", "gpg.program", "credential.helper", "core.askPass"];
    for key in keys {
        git(folder.path(), &["-c", "core.fsmonitor=false", "config", key, &program]);
    }
    git(folder.path(), &["-c", "core.fsmonitor=false", "config", "core.hooksPath", folder.path().to_str().unwrap()]);
    git(folder.path(), &["-c", "core.fsmonitor=false", "config", "log.showSignature", "true"]);
    std::fs::write(folder.path().join(".gitattributes"), "* diff=x filter=x\n").unwrap();
    for text in ["git status", "git diff", "git log -p", "git show", "git grep one", "git blame a.txt", "git branch -a"]
    {
        read(text, folder.path());
        assert!(!ran.exists(), "{text}");
    }
    // The same repository without the environment: the marker can run.
    Command::new("git").arg("status").current_dir(folder.path()).output().unwrap();
    assert!(ran.exists(), "the marker does not work, so that this test shows nothing");
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

/// A program that leaves a file behind when it runs, and that file.
fn marker(folder: &Path) -> (String, std::path::PathBuf) {
    let (program, ran) = (folder.join("marker"), folder.join("ran"));
    std::fs::write(&program, format!("#!/bin/sh\necho ran >> {}\n", ran.display())).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    (program.to_str().unwrap().to_owned(), ran)
}

#[test]
fn git_works_in_the_repositories_that_were_looked_at_and_in_no_other() {
    let home = repository("sha1");
    let other = repository("sha1");
    let evil = repository("sha1");
    let (program, ran) = marker(evil.path());
    git(evil.path(), &["config", "diff.external", &program]);
    std::fs::write(home.path().join("where"), other.path().to_str().unwrap()).unwrap();
    let (other, evil) = (other.path().display(), evil.path().display());
    for (text, expected) in [
        (format!("git -C {other} diff | tail -1"), "+two\n"),
        (format!("cd {other} && git log --format=%s"), "first\n"),
        (format!("git log --format=%s && cd '{other}' && git diff --stat | wc -l"), "first\n2\n"),
        // Nobody can see beforehand where these go.
        ("git -C \"$(cat where)\" log 2>/dev/null || echo refused".to_owned(), "refused\n"),
        ("cd \"$(cat where)\" && git log 2>/dev/null || echo refused".to_owned(), "refused\n"),
        (format!("git -C {evil} diff 2>/dev/null || echo refused"), "refused\n"),
        (format!("cd {evil}; git diff 2>/dev/null || echo refused"), "refused\n"),
    ] {
        let (stdout, stderr) = read(&text, home.path());
        assert_eq!(stdout, expected, "{text}: {stderr}");
        assert!(!ran.exists(), "{text}");
    }
    Command::new("git").args(["-C", &evil.to_string(), "diff"]).output().unwrap();
    assert!(ran.exists(), "the marker does not work, so that this test shows nothing");
}

#[test]
fn a_submodule_that_names_programs_is_found() {
    let inner = repository("sha1");
    let outer = repository("sha1");
    let source = inner.path().to_str().unwrap();
    git(outer.path(), &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", source, "libraries/inner"]);
    let looked = on_runtime(look(outer.path(), outer.path()));
    assert!(matches!(looked, Ok(Some(_))), "{looked:?}");
    let (stdout, stderr) = read("git -C libraries/inner log --format=%s; git status --short | wc -l", outer.path());
    assert_eq!((stdout.as_str(), stderr.as_str()), ("first\n3\n", ""));
    let module = outer.path().join(".git/modules/libraries/inner");
    std::fs::create_dir_all(module.join("info")).unwrap();
    std::fs::write(module.join("info/attributes"), "* filter=evil\n").unwrap();
    let looked = on_runtime(look(outer.path(), outer.path()));
    assert!(matches!(looked, Err(GitRisk::Attributes { .. })), "{looked:?}");
    std::fs::remove_file(module.join("info/attributes")).unwrap();
    git(&outer.path().join("libraries/inner"), &["config", "filter.evil.clean", "./evil"]);
    let looked = on_runtime(look(outer.path(), outer.path()));
    assert!(matches!(looked, Err(GitRisk::Configured { .. })), "{looked:?}");
}
