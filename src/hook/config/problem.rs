//! What is wrong with a configuration, and where.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::suggest::did_you_mean;

/// A place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Position {
    /// Counted from 1; 0 stands for the file as a whole.
    pub line: usize,
    /// In characters, counted from 1; 0 where the whole line is meant.
    pub column: usize,
}

/// One mistake in a configuration file.
///
/// Shown as `hooks.yaml:12:5: unknown key "matchr"; did you mean "matcher"?`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, or the folder that has no file where there should be one.
    pub file: PathBuf,
    /// Where in the file.
    pub position: Position,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub suggestion: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if self.position.line > 0 {
            write!(f, ":{}:{}", self.position.line, self.position.column)?;
        }
        write!(f, ": {}", self.message)?;
        match &self.suggestion {
            Some(suggestion) => write!(f, "; {suggestion}"),
            None => Ok(()),
        }
    }
}

/// Configuration that cannot be used as it is: every problem of every file, in the order of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// At least one.
    pub problems: Vec<Problem>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problems.as_slice() {
            [only] => write!(f, "{only}"),
            many => {
                write!(f, "{} problems in the hook configuration:", many.len())?;
                many.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
            }
        }
    }
}

impl std::error::Error for ConfigError {}

/// Collects the problems of one file.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) file: PathBuf,
    pub(super) problems: Vec<Problem>,
}

impl Report {
    pub(super) fn new(file: &Path) -> Self {
        Report { file: file.to_owned(), problems: Vec::new() }
    }

    pub(super) fn add(&mut self, position: Position, message: impl Into<String>) {
        self.push(position, message.into(), None);
    }

    pub(super) fn advise(&mut self, position: Position, message: impl Into<String>, suggestion: impl Into<String>) {
        self.push(position, message.into(), Some(suggestion.into()));
    }

    /// Reports a name that is not one of `known`: the nearest of them is the suggestion, else all of them are.
    pub(super) fn unknown(&mut self, position: Position, what: &str, name: &str, known: &[&str]) {
        let suggestion = match did_you_mean(name, known.iter().copied()) {
            Some(nearest) => format!("did you mean {nearest:?}?"),
            None => format!("one of {}", known.join(", ")),
        };
        self.advise(position, format!("unknown {what} {name:?}"), suggestion);
    }

    fn push(&mut self, position: Position, message: String, suggestion: Option<String>) {
        self.problems.push(Problem { file: self.file.clone(), position, message, suggestion });
    }
}
