//! One writer for each session directory.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use super::SessionError;

const LOCK_FILE: &str = "session.lock";

/// The right to write to a session directory, held until it is dropped or the process ends.
///
/// It is an advisory lock (`flock`) on `session.lock`, which the system takes back however the process dies; the
/// number in the file is only there to be named in the error. Two objects in one process exclude each other as well.
///
/// **Forks.** A child made by `fork` without `exec` inherits the open file and with it the lock. So the owner unlocks
/// explicitly, which frees the session although such children live; a child never unlocks, and may not write
/// ([`check_owner`](DirectoryLock::check_owner)). Only if the owner is killed do its forked children hold the
/// session until they end. Programs that are started (`exec`) inherit nothing.
#[derive(Debug)]
pub(super) struct DirectoryLock {
    file: File,
    owner: u32,
}

impl DirectoryLock {
    /// Locks `directory`, which must exist.
    pub(super) fn acquire(directory: &Path) -> Result<Self, SessionError> {
        let path = directory.join(LOCK_FILE);
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        super::disk::keep_private(&mut options);
        let mut file = options.open(&path).map_err(SessionError::io("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // Only for the message: an owner that has not left its number yet goes unnamed.
                let pid = file.read_to_string(&mut holder).ok().and_then(|_| holder.trim().parse().ok());
                return Err(SessionError::Locked { path: directory.to_owned(), pid });
            }
            Err(TryLockError::Error(source)) => return Err(SessionError::Io { action: "lock", path, source }),
        }
        let owner = std::process::id();
        let written = file.rewind().and_then(|()| file.set_len(0)).and_then(|()| writeln!(file, "{owner}"));
        written.map_err(SessionError::io("write", &path))?;
        Ok(DirectoryLock { file, owner })
    }

    /// # Errors
    /// If this process is a fork of the one that took the lock.
    pub(super) fn check_owner(&self) -> Result<(), SessionError> {
        if std::process::id() == self.owner { Ok(()) } else { Err(SessionError::OtherProcess { owner: self.owner }) }
    }
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        if self.check_owner().is_ok() {
            // If it fails, closing the file frees the lock all the same, unless a forked child holds it.
            let _ = self.file.unlock();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forked_child_may_not_write_and_does_not_unlock() {
        let directory = tempfile::tempdir().unwrap();
        let mut lock = DirectoryLock::acquire(directory.path()).unwrap();
        let parent = std::mem::replace(&mut lock.owner, 0);
        assert!(matches!(lock.check_owner(), Err(SessionError::OtherProcess { owner: 0 })));

        // What a child holds is a duplicate of the same open file; dropping it leaves the parent's lock in place.
        drop(DirectoryLock { file: lock.file.try_clone().unwrap(), owner: 0 });
        assert!(matches!(DirectoryLock::acquire(directory.path()), Err(SessionError::Locked { .. })));

        // The parent's drop frees the session although a child's duplicate lives on.
        let inherited = lock.file.try_clone().unwrap();
        lock.owner = parent;
        drop(lock);
        DirectoryLock::acquire(directory.path()).unwrap();
        drop(inherited);
    }
}
