//! What can go wrong with a session.

use std::io;
use std::path::PathBuf;

/// What can go wrong with a session. Unless it says otherwise, nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// There is no session at the path.
    #[error("there is no session at {}; create one there, or check the path", .path.display())]
    NotFound {
        /// The directory that was to be opened.
        path: PathBuf,
    },
    /// There is a session at the path already.
    #[error("there is a session at {} already; open it, or choose another directory", .path.display())]
    Exists {
        /// The directory that was to be created.
        path: PathBuf,
    },
    /// Another process, or another object in this one, has the session open.
    #[error("the session at {} is in use by {}; close it there, or work on a fork", .path.display(), holder(.pid))]
    Locked {
        /// The directory of the session.
        path: PathBuf,
        /// The process that opened it, if it has left its number.
        pid: Option<u32>,
    },
    /// A turn is going on.
    #[error("the session {id} is in the middle of turn {turn_id}; wait for its end, or run on another session")]
    InTurn {
        /// The session.
        id: String,
        /// The turn that is going on.
        turn_id: String,
    },
    /// The turn that was to be ended is not the one that is going on.
    #[error("turn {turn_id} cannot be ended: {}", match .open {
        Some(open) => format!("turn {open} is going on"),
        None => "no turn is going on".to_owned(),
    })]
    NotInTurn {
        /// The turn that was to be ended.
        turn_id: String,
        /// The turn that is going on.
        open: Option<String>,
    },
    /// A newer version of hookwright wrote the session.
    #[error(
        "the session at {} has format version {found}, and this hookwright reads up to {supported}; upgrade hookwright",
        .path.display()
    )]
    NewerVersion {
        /// The directory of the session.
        path: PathBuf,
        /// The version that was found.
        found: u64,
        /// The newest version that can be read.
        supported: u32,
    },
    /// A line in the middle of the transcript was changed or damaged.
    #[error(
        "line {line} of {} is damaged: {reason}; restore the file, or open the session with recover, \
         which sets the file aside and goes on from line {}", .path.display(), line - 1
    )]
    Damaged {
        /// The transcript.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// An intact line says something that this version cannot read.
    #[error("line {line} of {} is intact, but {reason}; it may be from a newer hookwright", .path.display())]
    Unreadable {
        /// The transcript.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// `session.json` cannot be read.
    #[error(
        "{} cannot be used: {reason}; correct it, or remove it, and it is made again from the transcript",
        .path.display()
    )]
    BadMetadata {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The session at the path is not the one that was asked for.
    #[error("the session at {} has the id {found:?}, not {wanted:?}", .path.display())]
    OtherId {
        /// The directory of the session.
        path: PathBuf,
        /// The id that was asked for.
        wanted: String,
        /// The id that it has.
        found: String,
    },
    /// The process was forked, and the session belongs to the parent.
    #[error("the session belongs to process {owner}, which this process was forked from; open or fork one of its own")]
    OtherProcess {
        /// The process that opened it.
        owner: u32,
    },
    /// The session was closed.
    #[error("the session {id} is closed; open it again")]
    Closed {
        /// The session.
        id: String,
    },
    /// The file system refused.
    #[error("could not {action} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl SessionError {
    /// Whether the session is in use: by another process, by another object, or by a turn that is going on.
    pub fn is_busy(&self) -> bool {
        matches!(self, SessionError::Locked { .. } | SessionError::InTurn { .. })
    }

    /// Names what was tried on `path` in an error of the file system.
    pub(super) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> SessionError {
        let path = path.into();
        move |source| SessionError::Io { action, path, source }
    }
}

fn holder(pid: &Option<u32>) -> String {
    match pid {
        Some(pid) if *pid == std::process::id() => format!("this process ({pid})"),
        Some(pid) => format!("process {pid}"),
        None => "another process".to_owned(),
    }
}
