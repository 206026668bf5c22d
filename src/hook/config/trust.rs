//! Which projects' hooks may run here: remembered by the content of those hooks.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::discover::ConfigEnv;
use super::fingerprint::Fingerprint;

/// The version of the store's format.
const VERSION: u32 = 1;

/// Whether a project is trusted as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// Exactly this content was trusted.
    Trusted,
    /// The project was never trusted.
    Unknown,
    /// It was trusted, and these files are different since, by path.
    Changed(Vec<FileChange>),
}

impl Trust {
    /// Whether the hooks may run.
    pub fn is_trusted(&self) -> bool {
        *self == Trust::Trusted
    }
}

/// How one file differs from what was trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Relative to the project.
    pub path: PathBuf,
    /// How it differs.
    pub kind: ChangeKind,
}

impl std::fmt::Display for FileChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self.kind {
            ChangeKind::Added => "new",
            ChangeKind::Changed => "changed",
            ChangeKind::Removed => "gone",
        };
        write!(f, "{} ({kind})", self.path.display())
    }
}

/// How a file differs from what was trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was not there, or not part of the hooks.
    Added,
    /// Its content, its executable bit or the target of a link is different.
    Changed,
    /// It is no longer there, or no longer part of the hooks.
    Removed,
}

/// Why trust cannot be looked up or remembered.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The environment does not say where a user's files are.
    #[error("there is no place to remember trust in: set HOME or XDG_STATE_HOME to an absolute path")]
    NoPlace,
    /// The store is damaged. It counts for nothing until it is repaired.
    #[error("the trust store {} is damaged ({reason}); delete it, then trust your projects again", .path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A path cannot be written into the store.
    #[error("the path of the project {} is not UTF-8, and such a project cannot be remembered", .0.display())]
    NotUtf8(PathBuf),
    /// A file cannot be read or written.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// A project that was trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedProject {
    /// Its canonical path.
    pub project: PathBuf,
    /// The hash of what was trusted.
    pub hash: String,
    /// When, in UTC (RFC 3339).
    pub trusted_at: String,
    /// How many files were covered.
    pub files: usize,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    /// By canonical path.
    projects: BTreeMap<String, Remembered>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Remembered {
    hash: String,
    trusted_at: String,
    files: BTreeMap<String, String>,
}

/// The memory of what was trusted: one JSON file, read anew for each question and replaced as a whole under a lock,
/// so that several processes can use it at once and none loses what another one remembers.
#[derive(Debug, Clone)]
pub struct TrustStore {
    path: PathBuf,
}

impl TrustStore {
    /// The user's store: `trust.json` in [`ConfigEnv::state_folder`].
    ///
    /// # Errors
    /// [`TrustError::NoPlace`].
    pub fn open(env: &ConfigEnv) -> Result<Self, TrustError> {
        env.state_folder().map(|folder| TrustStore::at(folder.join("trust.json"))).ok_or(TrustError::NoPlace)
    }

    /// A store in the file `path`, which need not be there yet.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        TrustStore { path: path.into() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether `project` was trusted with exactly the content of `fingerprint`, and if not, what is different.
    ///
    /// # Errors
    /// A store that cannot be read or is damaged. Neither is ever taken for trust.
    pub fn is_trusted(&self, project: &Path, fingerprint: &Fingerprint) -> Result<Trust, TrustError> {
        let document = self.read()?;
        let Some(remembered) = document.projects.get(&key_of(project)?) else { return Ok(Trust::Unknown) };
        if remembered.hash == fingerprint.hash {
            return Ok(Trust::Trusted);
        }
        let now = files_of(fingerprint);
        let mut changes: Vec<FileChange> = Vec::new();
        let mut change = |path: &String, kind| changes.push(FileChange { path: PathBuf::from(path), kind });
        for (path, hash) in &now {
            match remembered.files.get(path) {
                None => change(path, ChangeKind::Added),
                Some(before) if before != hash => change(path, ChangeKind::Changed),
                Some(_) => {}
            }
        }
        remembered
            .files
            .keys()
            .filter(|path| !now.contains_key(*path))
            .for_each(|path| change(path, ChangeKind::Removed));
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(Trust::Changed(changes))
    }

    /// Remembers that the content of `fingerprint` is trusted in `project`, in place of what was trusted there before.
    ///
    /// # Errors
    /// A store that cannot be read or written, or is damaged.
    pub fn trust(&self, project: &Path, fingerprint: &Fingerprint) -> Result<(), TrustError> {
        let key = key_of(project)?;
        let remembered = Remembered {
            hash: fingerprint.hash.clone(),
            trusted_at: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            files: files_of(fingerprint),
        };
        self.update(|document| drop(document.projects.insert(key, remembered)))
    }

    /// Forgets `project`; returns whether it was remembered. It need not exist any more.
    ///
    /// # Errors
    /// A store that cannot be read or written, or is damaged.
    pub fn forget(&self, project: &Path) -> Result<bool, TrustError> {
        let key = match project.canonicalize() {
            Ok(_) => key_of(project)?,
            Err(_) => utf8(std::path::absolute(project).unwrap_or_else(|_| project.to_owned()))?,
        };
        let mut known = false;
        self.update(|document| known = document.projects.remove(&key).is_some())?;
        Ok(known)
    }

    /// The projects that are remembered, by path.
    ///
    /// # Errors
    /// A store that cannot be read or is damaged.
    pub fn list(&self) -> Result<Vec<TrustedProject>, TrustError> {
        let listed = |(project, remembered): (String, Remembered)| TrustedProject {
            project: PathBuf::from(project),
            hash: remembered.hash,
            trusted_at: remembered.trusted_at,
            files: remembered.files.len(),
        };
        Ok(self.read()?.projects.into_iter().map(listed).collect())
    }

    fn read(&self) -> Result<Document, TrustError> {
        let corrupt = |reason: String| TrustError::Corrupt { path: self.path.clone(), reason };
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Document { version: VERSION, projects: BTreeMap::new() });
            }
            Err(error) => return Err(io_error(&self.path, error)),
        };
        let document: Document = serde_json::from_slice(&bytes).map_err(|error| corrupt(error.to_string()))?;
        match document.version {
            VERSION => Ok(document),
            other => Err(corrupt(format!("version {other} of the format is not known to this hookwright"))),
        }
    }

    /// Reads, changes and replaces the store while no other process does.
    fn update(&self, change: impl FnOnce(&mut Document)) -> Result<(), TrustError> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        // For the user alone: whoever can write here decides what runs.
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| io_error(folder, error))?;
        // The lock is on a file of its own, since the store itself is replaced.
        let lock_path = self.path.with_extension("lock");
        let lock = fs::OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&lock_path)
            .and_then(|file| file.lock().map(|()| file))
            .map_err(|error| io_error(&lock_path, error))?;
        let mut document = self.read()?;
        change(&mut document);
        let written = self.replace(folder, &document).map_err(|error| io_error(&self.path, error));
        drop(lock);
        written
    }

    fn replace(&self, folder: &Path, document: &Document) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        serde_json::to_writer_pretty(&mut file, document)?;
        file.write_all(b"\n")?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        Ok(())
    }
}

fn io_error(path: &Path, source: io::Error) -> TrustError {
    TrustError::Io { path: path.to_owned(), source }
}

fn key_of(project: &Path) -> Result<String, TrustError> {
    utf8(project.canonicalize().map_err(|error| io_error(project, error))?)
}

fn utf8(path: PathBuf) -> Result<String, TrustError> {
    path.into_os_string().into_string().map_err(|path| TrustError::NotUtf8(path.into()))
}

/// For telling what changed. Names that are not UTF-8 may fall together here; the hash of the whole tells them apart.
fn files_of(fingerprint: &Fingerprint) -> BTreeMap<String, String> {
    let name = |path: &PathBuf| path.to_string_lossy().into_owned();
    fingerprint.files.iter().map(|(path, hash)| (name(path), hash.clone())).collect()
}
