//! The file in which a goal's state survives the process.
//!
//! One JSON object: `{"format": "hookwright-goal", "version": 1, "runner": "…", "crc": "xxxxxxxx", "state": {…}}`. The
//! checksum is the CRC-32 of the exact text of the state. The file is replaced as a whole, so that a reader finds the
//! old state or the new one. `runner` is who wrote it: one that finds another's name there has been superseded.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::state::GoalState;

const FORMAT: &str = "hookwright-goal";
const VERSION: u64 = 1;

/// Why a goal's state cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum GoalFileError {
    /// There is none.
    #[error("there is no goal at {}", path.display())]
    NotFound {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// An unfinished goal is there already.
    #[error("{} holds a goal that is not over; go on with it: Goal.resume(path, executor=..., reviewer=...), or remove the file", path.display())]
    Unfinished {
        /// The file.
        path: PathBuf,
    },
    /// It is not what was written.
    #[error("{} is not the state of a goal, or was damaged: {reason}; start the goal anew with another state_file", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// It was written by a later version.
    #[error("{} has version {found} of the format, and this version of hookwright reads up to {VERSION}; update it", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
    },
    /// Another process goes on with the goal.
    #[error("another runner has taken over the goal in {}; this one ends here", path.display())]
    Superseded {
        /// The file.
        path: PathBuf,
    },
    /// The file system said no.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

#[derive(Deserialize)]
struct Head {
    format: String,
    version: u64,
}

#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    format: String,
    version: u64,
    runner: String,
    crc: String,
    #[serde(borrow)]
    state: &'a RawValue,
}

/// Where one runner keeps its goal.
#[derive(Debug, Clone)]
pub struct GoalFile {
    path: PathBuf,
    runner: String,
}

impl GoalFile {
    /// A place for a new goal.
    ///
    /// # Errors
    /// An unfinished goal is there, or something that is no goal.
    pub fn create(path: impl Into<PathBuf>, runner: impl Into<String>) -> Result<Self, GoalFileError> {
        let file = GoalFile { path: path.into(), runner: runner.into() };
        match file.read() {
            Ok((state, _)) if state.status().is_none() => Err(GoalFileError::Unfinished { path: file.path }),
            Ok(_) | Err(GoalFileError::NotFound { .. }) => Ok(file),
            Err(error) => Err(error),
        }
    }

    /// Takes over the goal that is kept at `path`. The first [`save`](Self::save) says so to whoever had it.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub fn open(path: impl Into<PathBuf>, runner: impl Into<String>) -> Result<(Self, GoalState), GoalFileError> {
        let file = GoalFile { path: path.into(), runner: runner.into() };
        let (state, _) = file.read()?;
        file.write(&state)?;
        Ok((file, state))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the state on disk.
    ///
    /// # Errors
    /// Another runner has taken over, or the file system said no.
    pub fn save(&self, state: &GoalState) -> Result<(), GoalFileError> {
        match self.read() {
            Ok((_, runner)) if runner != self.runner => {
                // A finished goal of somebody else may be written over by a new one, which has another id.
                let (kept, _) = self.read()?;
                if kept.id == state.id || kept.status().is_none() {
                    return Err(GoalFileError::Superseded { path: self.path.clone() });
                }
            }
            Ok(_) | Err(GoalFileError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
        self.write(state)
    }

    fn write(&self, state: &GoalState) -> Result<(), GoalFileError> {
        let write = || -> io::Result<()> {
            let text = serde_json::to_string(state)?;
            let stored = Stored {
                format: FORMAT.to_owned(),
                version: VERSION,
                runner: self.runner.clone(),
                crc: format!("{:08x}", crc32fast::hash(text.as_bytes())),
                state: serde_json::from_str(&text)?,
            };
            let folder = match self.path.parent() {
                Some(folder) if !folder.as_os_str().is_empty() => folder,
                _ => Path::new("."),
            };
            fs::create_dir_all(folder)?;
            // Made readable for its owner alone: goals hold what agents said.
            let mut file = tempfile::Builder::new().prefix(".goal-").tempfile_in(folder)?;
            file.write_all(&serde_json::to_vec(&stored)?)?;
            file.write_all(b"\n")?;
            file.as_file().sync_all()?;
            file.persist(&self.path).map_err(|error| error.error)?;
            Ok(())
        };
        write().map_err(|source| GoalFileError::Io { action: "write", path: self.path.clone(), source })
    }

    fn read(&self) -> Result<(GoalState, String), GoalFileError> {
        let path = || self.path.clone();
        let damaged = |reason: String| GoalFileError::Damaged { path: path(), reason };
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(GoalFileError::NotFound { path: path() });
            }
            Err(source) => return Err(GoalFileError::Io { action: "read", path: path(), source }),
        };
        let text = String::from_utf8(bytes).map_err(|_| damaged("it is not text".into()))?;
        let head: Head = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        if head.format != FORMAT {
            return Err(damaged(format!("its format is {}", serde_json::Value::from(head.format))));
        }
        if head.version > VERSION {
            return Err(GoalFileError::Newer { path: path(), found: head.version });
        }
        let stored: Stored<'_> = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        let found = format!("{:08x}", crc32fast::hash(stored.state.get().as_bytes()));
        if found != stored.crc {
            return Err(damaged("its checksum does not fit".into()));
        }
        let state = serde_json::from_str(stored.state.get()).map_err(|error| damaged(error.to_string()))?;
        Ok((state, stored.runner))
    }
}
