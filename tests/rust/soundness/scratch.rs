//! A folder to run commands in, and what stands in it.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The names of files that commands are given: blanks, dashes, names that look like options.
pub const FILES: &[&str] = &[
    "a.txt",
    "b.txt",
    "c.csv",
    "d.json",
    "src/main.rs",
    "src/lib.rs",
    "docs/x.md",
    "name with blank.txt",
    "-o",
    "-n",
    "--output=pwned",
    "-i",
    "link",
    "run.sh",
    "data.bin",
    "a.gz",
    "a.tar",
    "e.yaml",
    "empty",
    "tests/test_a.py",
];

/// What stands at a path: type, mode, content, target of a link, time of the last change of a file.
pub type Tree = BTreeMap<PathBuf, String>;

/// A copy of the template: `work` is the work tree, `home` and `tmp` are for HOME and TMPDIR.
pub struct Scratch {
    folder: tempfile::TempDir,
    pub before: Tree,
}

impl Scratch {
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn tree(&self) -> Tree {
        tree(self.folder.path())
    }
}

/// What all copies are made of.
pub struct Template {
    folder: tempfile::TempDir,
    owner: Option<u32>,
}

impl Template {
    /// `owner`: the user who runs the commands, if that is another.
    pub fn new(owner: Option<u32>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().join("work");
        for name in ["work/src/deep", "work/docs", "work/tests", "work/empty folder", "home", "tmp"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        for (index, name) in FILES.iter().enumerate().filter(|(_, name)| **name != "link") {
            std::fs::write(work.join(name), format!("{name}\nline {index}\nTODO x=1,2,3\n\tfoo bar\n")).unwrap();
        }
        let write = |name: &str, content: &[u8]| std::fs::write(work.join(name), content).unwrap();
        write("empty", b"");
        write("d.json", b"{\"a\": [1, 2, {\"b\": null}]}\n");
        write("e.yaml", b"a: 1\nb: [x, y]\n");
        write("c.csv", b"a,b,c\n1,2,3\n3,2,1\n");
        write("data.bin", &[0, 1, 2, 255, 254, 10, 0]);
        write("tests/test_a.py", b"def test_a():\n    assert True\n");
        write("Makefile", b"all:\n\ttouch made\n");
        write(
            "package.json",
            b"{\"name\": \"x\", \"version\": \"1.0.0\", \"scripts\": {\"build\": \"touch built\"}}\n",
        );
        write("Cargo.toml", b"[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
        write(".gitignore", b"*.gz\n");
        write("patch.diff", b"--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-b.txt\n+c.txt\n");
        write("archive.zip", b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
        std::fs::set_permissions(work.join("run.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
        write("run.sh", b"#!/bin/sh\ntouch ran\n");
        symlink("a.txt", work.join("link")).unwrap();
        symlink("nowhere", work.join("broken")).unwrap();
        symlink("src", work.join("folder")).unwrap();
        shell(&work, "gzip -nc b.txt > a.gz; tar cf a.tar b.txt src");
        shell(&work, "git init -q -b main --template= . && git add a.txt b.txt c.csv src docs .gitignore tests");
        shell(&work, "git -c user.name=a -c user.email=a@b commit -qm first");
        shell(
            &work,
            "echo more >> b.txt; git -c user.name=a -c user.email=a@b commit -qam second; git tag v1; git branch other",
        );
        shell(
            &work,
            "git rm -q --cached docs/x.md; echo changed >> a.txt; git add c.csv; git remote add origin ../home",
        );
        shell(&work, "echo s >> c.csv; git -c user.name=a -c user.email=a@b stash -q; echo changed >> a.txt");
        Self { folder, owner }
    }

    pub fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub fn copy(&self) -> Scratch {
        let folder = tempfile::Builder::new().prefix("soundness").tempdir().unwrap();
        let status =
            Command::new("cp").arg("-a").arg(self.folder.path().join(".")).arg(folder.path()).status().unwrap();
        assert!(status.success());
        if let Some(owner) = self.owner {
            give(folder.path(), owner);
        }
        let before = tree(folder.path());
        Scratch { folder, before }
    }
}

fn shell(folder: &Path, text: &str) {
    let mut command = Command::new("bash");
    command.args(["-c", text]).current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null");
    assert!(command.status().unwrap().success(), "{text}");
}

fn give(path: &Path, owner: u32) {
    std::os::unix::fs::lchown(path, Some(owner), Some(owner)).unwrap();
    if path.is_dir() && !path.is_symlink() {
        chown(path, Some(owner), Some(owner)).unwrap();
        for entry in std::fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path(), owner);
        }
    }
}

/// Everything under `root`, as far as a command may not change it.
fn tree(root: &Path) -> Tree {
    let mut found = Tree::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(about) = path.symlink_metadata() else { continue };
            let content = if about.is_symlink() {
                std::fs::read_link(&path).map(|target| format!("{target:?}")).unwrap_or_default()
            } else if about.is_file() {
                let content = std::fs::read(&path).unwrap_or_default();
                format!("{} {}.{}", blake3::hash(&content), about.mtime(), about.mtime_nsec())
            } else {
                String::new()
            };
            if about.is_dir() {
                folders.push(path.clone());
            }
            let key = path.strip_prefix(root).unwrap().to_owned();
            let owner = about.uid();
            found.insert(
                key,
                format!("{:o} {owner} {} {content}", about.mode(), about.nlink() * u64::from(!about.is_dir())),
            );
        }
    }
    found
}

/// What differs between two trees, for people.
pub fn difference(before: &Tree, after: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for (path, entry) in before {
        match after.get(path) {
            None => found.push(format!("removed {}", path.display())),
            Some(other) if other != entry => found.push(format!("changed {}", path.display())),
            Some(_) => {}
        }
    }
    let new = after.keys().filter(|path| !before.contains_key(*path));
    found.extend(new.map(|path| format!("new {}", String::from_utf8_lossy(path.as_os_str().as_bytes()))));
    found
}
