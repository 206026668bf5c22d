//! A session's directory: opening, creating and repairing it.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::lock::DirectoryLock;
use super::log::Log;
use super::{Repair, SessionError};
use crate::agent::transcript::{Entry, Fault, FaultKind, Header, VERSION, scan};
use crate::message::Timestamp;

const METADATA_FILE: &str = "session.json";
const TRANSCRIPT_FILE: &str = "transcript.jsonl";

/// What `session.json` holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Metadata {
    pub(super) version: u32,
    pub(super) id: String,
    pub(super) created: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cwd: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) forked_from: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mode: Option<String>,
    #[serde(flatten)]
    pub(super) extra: Map<String, Value>,
}

impl Metadata {
    fn header(&self) -> Header {
        let Metadata { id, created, forked_from, .. } = self.clone();
        Header { version: VERSION, id, created, forked_from }
    }

    fn from_header(header: &Header) -> Self {
        let Header { version, id, created, forked_from } = header.clone();
        Metadata { version, id, created, agent: None, cwd: None, forked_from, mode: None, extra: Map::new() }
    }
}

/// An open session directory. The fields are dropped in this order: the lock goes last.
#[derive(Debug)]
pub(super) struct Disk {
    directory: PathBuf,
    log: Log<File>,
    lock: DirectoryLock,
}

/// What opening a directory brought.
pub(super) struct Opened {
    pub(super) disk: Disk,
    pub(super) metadata: Metadata,
    pub(super) entries: Vec<Entry>,
    pub(super) repair: Option<Repair>,
}

impl Disk {
    /// Makes a new session in `directory`, which is created with its parents if need be.
    pub(super) fn create(directory: &Path, metadata: &Metadata) -> Result<Self, SessionError> {
        create_directory(directory).map_err(SessionError::io("create", directory))?;
        let lock = DirectoryLock::acquire(directory)?;
        if directory.join(METADATA_FILE).exists() || directory.join(TRANSCRIPT_FILE).exists() {
            return Err(SessionError::Exists { path: directory.to_owned() });
        }
        write_metadata(directory, metadata)?;
        let mut disk = Disk { directory: directory.to_owned(), log: open_log(directory, 0)?, lock };
        disk.append(&Entry::Session(metadata.header()))?;
        Ok(disk)
    }

    /// Opens the session in `directory`; repairs a torn tail, and with `recover` any damage. If `wanted_id` is
    /// given, it must be the session's.
    pub(super) fn open(directory: &Path, recover: bool, wanted_id: Option<&str>) -> Result<Opened, SessionError> {
        // First without the lock, so that a newer version or a wrong path leaves no trace.
        if read_metadata(directory)?.is_none() && !directory.join(TRANSCRIPT_FILE).exists() {
            return Err(SessionError::NotFound { path: directory.to_owned() });
        }
        let lock = DirectoryLock::acquire(directory)?;
        let stored = read_metadata(directory)?;

        let path = directory.join(TRANSCRIPT_FILE);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            // Died between writing the two files.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(SessionError::Io { action: "read", path, source }),
        };
        let scan = scan(&bytes);
        let header = scan.entries.iter().find_map(|entry| match entry {
            Entry::Session(header) => Some(header),
            _ => None,
        });
        if let Some(header) = header {
            check_version(directory, header.version.into())?;
        }
        let lost_metadata = stored.is_none();
        let metadata = match (stored, header) {
            (Some(metadata), _) => metadata,
            (None, Some(header)) => Metadata::from_header(header),
            (None, None) => {
                let reason = "it is missing, and the transcript has no first line to make it from".to_owned();
                return Err(SessionError::BadMetadata { path: directory.join(METADATA_FILE), reason });
            }
        };
        if let Some(wanted) = wanted_id.filter(|wanted| *wanted != metadata.id) {
            let (wanted, found) = (wanted.to_owned(), metadata.id);
            return Err(SessionError::OtherId { path: directory.to_owned(), wanted, found });
        }
        let has_header = header.is_some();
        let repair = match scan.fault {
            Some(fault) => Some(repair(&path, &bytes, scan.intact_bytes, fault, recover)?),
            None => None,
        };
        let log = open_log(directory, scan.intact_bytes as u64)?;
        let mut disk = Disk { directory: directory.to_owned(), log, lock };
        if lost_metadata {
            disk.save_metadata(&metadata)?;
        }
        if !has_header {
            disk.append(&Entry::Session(metadata.header()))?;
        }
        Ok(Opened { disk, metadata, entries: scan.entries, repair })
    }

    /// Appends one line to the transcript.
    pub(super) fn append(&mut self, entry: &Entry) -> Result<(), SessionError> {
        self.lock.check_owner()?;
        self.log.append(entry).map_err(|source| {
            let path = self.directory.join(TRANSCRIPT_FILE);
            SessionError::Io { action: "append to", path, source }
        })
    }

    /// Replaces `session.json`.
    pub(super) fn save_metadata(&self, metadata: &Metadata) -> Result<(), SessionError> {
        self.lock.check_owner()?;
        write_metadata(&self.directory, metadata)
    }
}

/// Cuts the file behind its intact lines, after what is cut off was saved beside it.
fn repair(path: &Path, bytes: &[u8], intact: usize, fault: Fault, recover: bool) -> Result<Repair, SessionError> {
    let Fault { line, reason, kind } = fault;
    let path_buf = path.to_owned();
    let (label, kept): (&str, &[u8]) = match kind {
        FaultKind::TornTail => ("torn", &bytes[intact..]),
        FaultKind::Damage | FaultKind::Unreadable if recover => ("damaged", bytes),
        FaultKind::Damage => return Err(SessionError::Damaged { path: path_buf, line, reason }),
        FaultKind::Unreadable => return Err(SessionError::Unreadable { path: path_buf, line, reason }),
    };
    let kept_as = save_beside(path, label, kept).map_err(SessionError::io("save what is cut off from", path))?;
    let cut = File::options().write(true).open(path).and_then(|file| file.set_len(intact as u64));
    cut.map_err(SessionError::io("repair", path))?;
    Ok(Repair { bytes_removed: (bytes.len() - intact) as u64, kept_as, line, reason })
}

/// Writes `bytes` to the first free `transcript.<label>-<n>` beside `path`.
fn save_beside(path: &Path, label: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    let mut options = File::options();
    options.write(true).create_new(true);
    keep_private(&mut options);
    for number in 1_u32.. {
        let side = path.with_file_name(format!("transcript.{label}-{number}"));
        match options.open(&side) {
            Ok(mut file) => return file.write_all(bytes).map(|()| side),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn open_log(directory: &Path, length: u64) -> Result<Log<File>, SessionError> {
    let path = directory.join(TRANSCRIPT_FILE);
    let mut options = File::options();
    options.append(true).create(true);
    keep_private(&mut options);
    let file = options.open(&path).map_err(SessionError::io("open", &path))?;
    Ok(Log::new(file, length))
}

/// `session.json`, or `None` if there is none.
fn read_metadata(directory: &Path) -> Result<Option<Metadata>, SessionError> {
    #[derive(Deserialize)]
    struct Version {
        version: u64,
    }
    let path = directory.join(METADATA_FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(SessionError::Io { action: "read", path, source }),
    };
    let bad = |error: serde_json::Error| SessionError::BadMetadata { path: path.clone(), reason: error.to_string() };
    // The version before all else: a newer file may look different.
    check_version(directory, serde_json::from_str::<Version>(&text).map_err(bad)?.version)?;
    serde_json::from_str(&text).map(Some).map_err(bad)
}

fn check_version(directory: &Path, found: u64) -> Result<(), SessionError> {
    if found <= u64::from(VERSION) {
        return Ok(());
    }
    Err(SessionError::NewerVersion { path: directory.to_owned(), found, supported: VERSION })
}

/// Writes `session.json` beside itself and moves it into place, so that a reader sees the old or the new one.
fn write_metadata(directory: &Path, metadata: &Metadata) -> Result<(), SessionError> {
    let path = directory.join(METADATA_FILE);
    let write = || -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(metadata)?;
        text.push(b'\n');
        let mut file = tempfile::Builder::new().prefix(".session-").tempfile_in(directory)?;
        file.write_all(&text)?;
        file.persist(&path).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(SessionError::io("write", &path))
}

/// Conversations hold secrets: only the user who made a file may read it.
pub(super) fn keep_private(options: &mut fs::OpenOptions) {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    #[cfg(not(unix))]
    let _ = options;
}

fn create_directory(directory: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}
