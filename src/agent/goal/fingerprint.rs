//! What stands for all the content of a workspace, so that a round which changed nothing is noticed.
//!
//! Files are read by us and never by git, whose filters and drivers are programs that a repository names. Ignored
//! files do not count, unless git tracks them; what is not tracked yet does, with its content. The commit that is
//! checked out counts as well, so that committing is a change.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use blake3::Hasher;
use ignore::WalkBuilder;

use crate::process::{Status, read_only, run};

/// How much is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// So many files; the rest is not looked at.
    pub files: usize,
    /// Of a larger file only size, time, beginning and end count; in bytes.
    pub file_bytes: u64,
    /// When so much was read, the rest counts by size and time; in bytes.
    pub total_bytes: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { files: 100_000, file_bytes: 8 << 20, total_bytes: 512 << 20 }
    }
}

/// How much of the two ends of a large file counts, in bytes.
const END: u64 = 64 << 10;

/// The fingerprint of all below `root`: 64 hexadecimal digits.
///
/// Must be called on a tokio runtime with I/O and time enabled.
///
/// # Errors
/// `root` is not a folder that can be read.
pub async fn workspace_fingerprint(root: PathBuf, bounds: Bounds) -> io::Result<String> {
    if !fs::metadata(&root)?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "not a folder"));
    }
    let git = git_folder(&root);
    let tracked = if git.is_some() { tracked_but_ignored(&root).await } else { BTreeSet::new() };
    let look = move || -> io::Result<String> {
        let mut hasher = Hasher::new();
        if let Some(git) = git {
            add(&mut hasher, b"commit", &checked_out(&git));
        }
        let mut files: BTreeSet<PathBuf> = tracked;
        // Sorted while walking, so that the bound cuts off the same files every time.
        let walk = WalkBuilder::new(&root)
            .hidden(false)
            .require_git(false)
            .follow_links(false)
            // Mounted below may be what is endless to read, such as the files of the kernel.
            .same_file_system(true)
            .filter_entry(|entry| entry.file_name() != ".git")
            .sort_by_file_path(Ord::cmp)
            .build();
        let found = walk.filter_map(Result::ok).filter(|entry| entry.depth() > 0).map(ignore::DirEntry::into_path);
        files.extend(found.take(bounds.files));
        let mut left = bounds.total_bytes;
        for path in files {
            add(&mut hasher, b"path", path.strip_prefix(&root).unwrap_or(&path).as_os_str().as_encoded_bytes());
            add_file(&mut hasher, &path, bounds, &mut left);
        }
        Ok(hasher.finalize().to_hex().to_string())
    };
    tokio::task::spawn_blocking(look).await.map_err(io::Error::other)?
}

/// Adds a value so that no two sequences of values give the same bytes.
fn add(hasher: &mut Hasher, kind: &[u8], value: &[u8]) {
    for part in [kind, value] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
}

/// A file that cannot be read counts by why not: that it became readable is a change.
fn add_file(hasher: &mut Hasher, path: &Path, bounds: Bounds, left: &mut u64) {
    let read = || -> io::Result<(Metadata, Vec<u8>)> {
        let metadata = fs::symlink_metadata(path)?;
        if metadata.is_symlink() {
            return Ok((metadata, fs::read_link(path)?.into_os_string().into_encoded_bytes()));
        }
        let content = if metadata.is_file() { content(path, &metadata, bounds, *left)? } else { Vec::new() };
        Ok((metadata, content))
    };
    match read() {
        Ok((metadata, content)) => {
            *left = left.saturating_sub(content.len() as u64);
            add(hasher, b"kind", &kind_of(&metadata).to_le_bytes());
            add(hasher, b"content", &content);
        }
        Err(error) => add(hasher, b"error", error.kind().to_string().as_bytes()),
    }
}

/// What counts of a file: all of it, or size, time and the ends of one that is large.
fn content(path: &Path, metadata: &Metadata, bounds: Bounds, left: u64) -> io::Result<Vec<u8>> {
    let size = metadata.len();
    if size <= bounds.file_bytes && size <= left {
        let mut content = Vec::new();
        File::open(path)?.take(bounds.file_bytes).read_to_end(&mut content)?;
        return Ok(content);
    }
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let mut content =
        [size.to_le_bytes().to_vec(), modified.unwrap_or_default().as_nanos().to_le_bytes().to_vec()].concat();
    if left > 2 * END {
        let mut file = File::open(path)?;
        Read::by_ref(&mut file).take(END).read_to_end(&mut content)?;
        file.seek(SeekFrom::Start(size.saturating_sub(END)))?;
        file.take(END).read_to_end(&mut content)?;
    }
    Ok(content)
}

/// Folder, link or file, and whether it can be executed.
fn kind_of(metadata: &Metadata) -> u32 {
    let kind = u32::from(metadata.is_dir()) | u32::from(metadata.is_symlink()) << 1;
    #[cfg(unix)]
    let kind = kind | u32::from(std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 != 0) << 2;
    kind
}

/// The folder in which git keeps what belongs to `root`, if it is in a repository.
fn git_folder(root: &Path) -> Option<PathBuf> {
    let root = root.canonicalize().ok()?;
    let entry = root.ancestors().map(|folder| folder.join(".git")).find(|entry| entry.exists())?;
    if entry.is_dir() {
        return Some(entry);
    }
    // A work tree beside the repository: a file that says where it is.
    let text = fs::read_to_string(&entry).ok()?;
    let target = text.strip_prefix("gitdir:")?.trim();
    Some(entry.parent()?.join(target))
}

/// What HEAD stands for, as far as that can be read: the commit, or the name of a branch without one.
fn checked_out(git: &Path) -> Vec<u8> {
    let Ok(head) = fs::read_to_string(git.join("HEAD")) else { return Vec::new() };
    let Some(name) = head.trim().strip_prefix("ref: ") else { return head.into_bytes() };
    let common = fs::read_to_string(git.join("commondir")).map_or_else(|_| git.to_owned(), |to| git.join(to.trim()));
    let loose = fs::read_to_string(common.join(name)).ok();
    let packed = || {
        let all = fs::read_to_string(common.join("packed-refs")).ok()?;
        all.lines().find_map(|line| line.strip_suffix(name)?.strip_suffix(' ').map(str::to_owned))
    };
    let commit = loose.or_else(packed).unwrap_or_default();
    [head.as_bytes(), commit.trim().as_bytes()].concat()
}

/// The files that ignore rules match although git tracks them. Only git knows; listing them reads no file of the work
/// tree, so no filter or driver that a repository names is run. If it cannot be asked, such files do not count.
async fn tracked_but_ignored(root: &Path) -> BTreeSet<PathBuf> {
    let text = "git ls-files -z --cached --ignored --exclude-standard";
    let spec = read_only::listing(text, root, root).timeout(Duration::from_secs(10));
    match run(spec).await {
        Ok(output) if output.status == Status::Exited(0) => {
            let names = output.stdout.bytes().split(|byte| *byte == 0).filter(|name| !name.is_empty());
            names.map(|name| root.join(OsStr::from_bytes(name))).collect()
        }
        _ => BTreeSet::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn print(root: &Path) -> String {
        print_within(root, Bounds::default())
    }

    fn print_within(root: &Path, bounds: Bounds) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(workspace_fingerprint(root.to_owned(), bounds)).unwrap()
    }

    fn git(root: &Path, arguments: &[&str]) {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"];
        let done = Command::new("git").current_dir(root).args(identity).args(arguments).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    /// Each of these changes must show, and doing nothing must not.
    fn check(root: &Path, changes: &[(&str, &dyn Fn())]) {
        let mut before = print(root);
        assert_eq!(print(root), before, "nothing was changed");
        for (what, change) in changes {
            change();
            let after = print(root);
            assert_ne!(after, before, "{what}");
            before = after;
        }
    }

    #[test]
    fn every_change_to_a_plain_folder_shows() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let write = |name: &str, text: &str| fs::write(root.join(name), text).unwrap();
        check(
            root,
            &[
                ("a new file", &|| write("a", "1")),
                ("other content of the same size", &|| write("a", "2")),
                ("a hidden file", &|| write(".hidden", "x")),
                ("an empty folder", &|| fs::create_dir(root.join("empty")).unwrap()),
                ("another name", &|| fs::rename(root.join("a"), root.join("b")).unwrap()),
                ("a link", &|| std::os::unix::fs::symlink("b", root.join("link")).unwrap()),
                ("a removed file", &|| fs::remove_file(root.join("b")).unwrap()),
                ("an ignore rule", &|| write(".gitignore", "*.log\n")),
            ],
        );
        let before = print(root);
        write("build.log", "noise");
        assert_eq!(print(root), before, "ignored files do not count");
    }

    #[test]
    fn untracked_content_and_commits_show_in_a_repository() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let write = |name: &str, text: &str| fs::write(root.join(name), text).unwrap();
        git(root, &["init", "-q"]);
        write("kept.log", "1");
        git(root, &["add", "kept.log"]);
        write(".gitignore", "*.log\n");
        check(
            root,
            &[
                ("a new untracked file", &|| write("new", "1")),
                ("its content", &|| write("new", "2")),
                ("a tracked file that is ignored", &|| write("kept.log", "2")),
                ("a commit", &|| git(root, &["commit", "-q", "-a", "-m", "one"])),
                ("a packed commit on a new branch", &|| {
                    git(root, &["checkout", "-q", "-b", "other"]);
                    git(root, &["pack-refs", "--all"]);
                }),
            ],
        );
        let before = print(root);
        git(root, &["status"]);
        write("noise.log", "x");
        assert_eq!(print(root), before);
        let inner = root.join("inner");
        fs::create_dir(&inner).unwrap();
        assert!(git_folder(&inner).is_some(), "a folder inside a repository belongs to it");
    }

    #[test]
    fn a_repository_runs_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        git(root, &["init", "-q"]);
        let marker = root.join("marker");
        let program = format!("touch {}", marker.display());
        for key in ["core.fsmonitor", "core.pager", "diff.external", "filter.x.clean", "core.sshCommand"] {
            git(root, &["config", key, &program]);
        }
        fs::write(root.join(".gitattributes"), "* filter=x\n").unwrap();
        print(root);
        assert!(!marker.exists());
    }

    #[test]
    fn a_large_file_counts_by_its_ends_size_and_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large");
        let bounds = Bounds { file_bytes: 10, ..Bounds::default() };
        fs::write(&path, "a".repeat(100)).unwrap();
        let before = print_within(folder.path(), bounds);
        assert_eq!(print_within(folder.path(), bounds), before);
        fs::write(&path, "a".repeat(101)).unwrap();
        assert_ne!(print_within(folder.path(), bounds), before);
    }

    #[test]
    fn what_is_no_folder_is_an_error() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        assert!(runtime.block_on(workspace_fingerprint("/nonexistent/x".into(), Bounds::default())).is_err());
    }
}
