//! What to run, and what came of it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;

use super::capture::{Capture, Captured};

/// What a child process finds on its standard input.
#[derive(Clone, Debug, Default)]
pub enum Stdin {
    /// Nothing: end of file at once.
    #[default]
    Null,
    /// These bytes, then end of file. Cloning shares them, so ten children can be given one payload.
    Bytes(Bytes),
}

/// A child process to be run by [`run`](super::run).
///
/// The environment of this process is inherited, unless [`clear_environment`](Self::clear_environment) is set.
#[derive(Clone, Debug)]
pub struct ProcessSpec {
    /// The program: a path, or a name that is looked up on PATH.
    pub program: OsString,
    /// Its arguments, without the program itself.
    pub arguments: Vec<OsString>,
    /// Variables set on top of the environment that the child gets.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether the child starts from an empty environment. Default: false.
    pub clear_environment: bool,
    /// The directory to run in. Default: the one of this process.
    pub working_directory: Option<PathBuf>,
    /// What the child reads. Default: nothing.
    pub stdin: Stdin,
    /// How long the child may run, counted from its start. Default: as long as it wants.
    pub timeout: Option<Duration>,
    /// The time between TERM and KILL when the group has to end. Default: 500 ms.
    pub grace: Duration,
    /// The time that output gets to arrive after the leader exited. Default: 50 ms.
    pub drain: Duration,
    /// What is kept of stdout. Default: everything up to 8 MiB, more is a failure.
    pub stdout: Capture,
    /// What is kept of stderr. Default: the first 64 KiB.
    pub stderr: Capture,
}

impl ProcessSpec {
    /// A spec for `program` with the defaults named at each field.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            arguments: Vec::new(),
            environment: Vec::new(),
            clear_environment: false,
            working_directory: None,
            stdin: Stdin::Null,
            timeout: None,
            grace: Duration::from_millis(500),
            drain: Duration::from_millis(50),
            stdout: Capture::Fail { cap: 8 * 1024 * 1024 },
            stderr: Capture::Cut { cap: 64 * 1024 },
        }
    }

    /// A spec for `sh -c command`; never a login shell, so no profile is read.
    ///
    /// The shell is named by its path: a PATH among the added variables then costs nothing (a program that has to be
    /// looked up on the child's own PATH is started by fork, which is slow in a large process).
    pub fn shell(command: impl AsRef<OsStr>) -> Self {
        Self::new("/bin/sh").argument("-c").argument(command)
    }

    /// Adds one argument.
    #[must_use]
    pub fn argument(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Sets one environment variable of the child.
    #[must_use]
    pub fn environment(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Sets the directory to run in.
    #[must_use]
    pub fn working_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.working_directory = Some(directory.into());
        self
    }

    /// Sets what the child reads on its standard input.
    #[must_use]
    pub fn stdin(mut self, payload: impl Into<Bytes>) -> Self {
        self.stdin = Stdin::Bytes(payload.into());
        self
    }

    /// Sets how long the child may run.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It exited with this code.
    Exited(i32),
    /// A signal of this number killed it.
    Signaled(i32),
}

impl Status {
    /// Whether the process exited with code 0.
    pub fn is_success(self) -> bool {
        self == Self::Exited(0)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Exited(code) => write!(formatter, "exited with code {code}"),
            Self::Signaled(number) => match nix::sys::signal::Signal::try_from(number) {
                Ok(signal) => write!(formatter, "was killed by {} ({number})", signal.as_str()),
                Err(_) => write!(formatter, "was killed by signal {number}"),
            },
        }
    }
}

/// One of the two streams that a child writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Why the runner ended a process that would have gone on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// It ran longer than its timeout.
    TimedOut,
    /// It wrote more than the cap of a [`Capture::Fail`] to this stream.
    Overflowed(OutputStream),
}

/// What came of a process that could be started.
#[derive(Clone, Debug)]
pub struct ProcessOutput {
    /// How the leader ended.
    pub status: Status,
    /// What it wrote to stdout.
    pub stdout: Captured,
    /// What it wrote to stderr.
    pub stderr: Captured,
    /// The time from before its start until the result was complete.
    pub elapsed: Duration,
    /// Why it was ended, if it did not end by itself. An output that ran over its cap is named here even if the
    /// process had ended by itself when that was seen.
    pub stopped: Option<StopReason>,
    /// Whether processes of its group outlived the leader and were killed.
    pub leftover_killed: bool,
}

impl ProcessOutput {
    /// Whether the process was ended because it ran longer than its timeout.
    pub fn timed_out(&self) -> bool {
        self.stopped == Some(StopReason::TimedOut)
    }

    /// The stream whose cap was exceeded under [`Capture::Fail`].
    pub fn overflowed(&self) -> Option<OutputStream> {
        match self.stopped {
            Some(StopReason::Overflowed(stream)) => Some(stream),
            _ => None,
        }
    }
}

/// Why there is no [`ProcessOutput`].
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The directory to run in does not exist or is not a directory.
    #[error("cannot run `{program}`: the working directory {directory} is not a directory; create it or name another")]
    NoSuchDirectory {
        /// The program that was to be started.
        program: String,
        /// The directory it was to run in.
        directory: PathBuf,
    },
    /// The system refused to start the program.
    #[error("cannot start `{program}`: {source}")]
    NotStartable {
        /// The program that was to be started.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// The program was started, but the system did not let us watch it or learn how it ended. Its group was killed.
    #[error("lost track of `{program}`: {source}; is SIGCHLD ignored, or does other code wait for all children?")]
    LostTrack {
        /// The program that was started.
        program: String,
        /// What the system said.
        source: io::Error,
    },
}
