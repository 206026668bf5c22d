//! What an agent has seen of files, so that it does not overwrite what others wrote since.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::tool::{ToolError, ToolErrorCode};

/// Files larger than this are not hashed when they are read.
const LARGEST: u64 = 64 * 1024 * 1024;

/// The content hash of each file as this agent last read or wrote it, by canonical path.
#[derive(Debug, Default)]
pub(super) struct Seen(Mutex<HashMap<PathBuf, blake3::Hash>>);

impl Seen {
    /// The file is about to be read. What is hashed can only be older than what is read: at worst an edit is refused
    /// that would have been fine.
    pub(super) fn reading(&self, path: &Path) {
        let hash = path.metadata().ok().filter(|found| found.len() <= LARGEST).and_then(|_| hash_of(path).ok());
        let mut known = self.lock();
        match hash {
            Some(hash) => known.insert(path.to_owned(), hash),
            None => known.remove(path),
        };
    }

    /// The file now holds `content`, as this agent wants it.
    pub(super) fn wrote(&self, path: &Path, content: &[u8]) {
        self.lock().insert(path.to_owned(), blake3::hash(content));
    }

    /// Whether the file is as this agent knows it; yes if it does not know it. To be asked under the file's lock.
    pub(super) fn check(&self, path: &Path, shown: &str) -> Result<(), ToolError> {
        let Some(known) = self.lock().get(path).copied() else { return Ok(()) };
        // A file that is gone holds nothing that could be lost.
        match hash_of(path) {
            Ok(hash) if hash != known => {
                let detail = format!("{shown} was changed since you read it, so it was not changed.");
                Err(ToolError::new(ToolErrorCode::Invalid, detail)
                    .field("path")
                    .hint("Read it again, then make the change to what it holds now."))
            }
            _ => Ok(()),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, blake3::Hash>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hash_of(path: &Path) -> io::Result<blake3::Hash> {
    let mut file = std::fs::File::open(path)?;
    let mut hasher = blake3::Hasher::new();
    io::copy(&mut file, &mut hasher)?;
    Ok(hasher.finalize())
}
