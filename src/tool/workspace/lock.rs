//! One writer at a time for each file, among all agents of this user on this machine.

use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::Cancelled;
use crate::tool::{ToolError, ToolErrorCode};

/// How long a writer waits for another. Writing takes milliseconds; whoever holds a lock longer hangs.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a lock is asked for; the system has no way to wait for one and for a cancellation.
const LOOK: Duration = Duration::from_millis(5);

/// The right to change one file, until it is dropped or the process ends.
///
/// It is an advisory lock (`flock`) on an empty file of its own, named after the canonical path of the file and kept
/// in a private folder of the user's in the system's temporary folder: the work tree stays clean, and a file that is
/// replaced has the same lock as before. Two agents in one process exclude each other just as two processes do. It
/// holds only those who ask for it: the `shell` tool and editors do not. The empty files stay; removing one that
/// somebody waits for would give the lock to two.
#[derive(Debug)]
pub(super) struct FileLock {
    _file: File,
}

impl FileLock {
    /// Waits for the lock of `path`, at most ten seconds. `shown` is what the model calls the file.
    pub(super) fn acquire(path: &Path, shown: &str, cancelled: &Cancelled) -> Result<Self, ToolError> {
        Self::acquire_within(path, shown, cancelled, PATIENCE)
    }

    fn acquire_within(path: &Path, shown: &str, cancelled: &Cancelled, patience: Duration) -> Result<Self, ToolError> {
        let failed = |error: io::Error| {
            ToolError::new(ToolErrorCode::Exception, format!("{shown} cannot be locked for writing: {error}."))
        };
        let name = blake3::hash(path.as_os_str().as_bytes()).to_hex();
        let place = folder().map_err(failed)?.join(&name.as_str()[..32]);
        let file = File::options().read(true).write(true).create(true).truncate(false).open(place).map_err(failed)?;
        let started = Instant::now();
        loop {
            cancelled.check()?;
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
                Err(TryLockError::WouldBlock) if started.elapsed() >= patience => {
                    let detail = format!("{shown} is being changed by another agent, so it was not changed.");
                    return Err(ToolError::new(ToolErrorCode::Timeout, detail).field("path").retryable(None));
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK),
            }
        }
    }
}

/// The folder of the lock files. It must be ours alone: in a shared folder somebody else could have made it.
fn folder() -> io::Result<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let folder = std::env::temp_dir().join(format!("hookwright-locks-{user}"));
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = folder.symlink_metadata()?;
    if found.is_dir() && found.uid() == user {
        return Ok(folder);
    }
    Err(io::Error::other(format!("{} belongs to somebody else", folder.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_writer_waits_and_is_told_when_it_takes_too_long() {
        let place = tempfile::tempdir().unwrap();
        let (path, other) = (place.path().join("a"), place.path().join("b"));
        let free = Cancelled::default();
        let first = FileLock::acquire(&path, "a", &free).unwrap();
        FileLock::acquire(&other, "b", &free).unwrap();
        let error = FileLock::acquire_within(&path, "a", &free, Duration::ZERO).unwrap_err();
        assert!(error.retryable && error.detail.starts_with("a is being changed by another agent"), "{error}");
        let waiting = std::thread::spawn(move || FileLock::acquire(&path, "a", &Cancelled::default()).map(drop));
        drop(first);
        waiting.join().unwrap().unwrap();
    }

    #[test]
    fn a_cancelled_writer_stops_waiting() {
        let place = tempfile::tempdir().unwrap();
        let _first = FileLock::acquire(place.path(), "a", &Cancelled::default()).unwrap();
        let cancelled = Cancelled::default();
        cancelled.0.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(FileLock::acquire(place.path(), "a", &cancelled).unwrap_err().code, ToolErrorCode::Cancelled);
    }
}
