//! What a team writes down, so that it comes back after the process has died.
//!
//! Written before it takes effect. Whether a letter was delivered is not written here: it was once it stands in the
//! receiver's transcript, which says so in the same line.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::envelope::Envelope;
use super::error::TeamError;
use super::member::NewMember;
use super::status::Ended;
use super::task::Task;
use crate::agent::Session;

/// One thing that happened in a team.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum JournalEntry {
    /// Somebody came.
    TeamMember {
        /// Who.
        member: NewMember,
    },
    /// A letter was sent.
    TeamMail {
        /// The letter.
        envelope: Arc<Envelope>,
        /// Whom it addresses, by name.
        addressed: Vec<String>,
        /// Whether all others who were there overhear it.
        overheard: bool,
    },
    /// A task is new, or changed.
    TeamTask {
        /// As it is now.
        task: Task,
    },
    /// Somebody ended.
    TeamEnded {
        /// Who.
        name: String,
        /// How.
        ended: Ended,
        /// Of what was used, what is not in the transcript.
        #[serde(default)]
        rounds: u64,
    },
    /// Somebody who had ended came back.
    TeamBack {
        /// Who.
        name: String,
    },
    /// Whoever leads the team has read its mail up to here.
    TeamLeadRead {
        /// How many letters so far.
        letters: usize,
    },
    /// What whoever drives the team notes about a member, such as its worktree.
    TeamNote {
        /// Who.
        name: String,
        /// The note, by what it is about.
        about: String,
        /// The note.
        note: Value,
    },
}

/// Where it is written.
pub trait Journal: Send + Sync {
    /// Writes an entry, so that it survives the death of the process.
    ///
    /// # Errors
    /// [`Journal`](TeamError::Journal): then what the entry says is not to happen.
    fn write(&self, entry: &JournalEntry) -> Result<(), TeamError>;
}

/// A journal that nobody reads: the team ends with the process.
#[derive(Debug, Default)]
pub struct Memory;

impl Journal for Memory {
    fn write(&self, _entry: &JournalEntry) -> Result<(), TeamError> {
        Ok(())
    }
}

/// A journal in the file of a session.
pub struct SessionJournal(Arc<Session>);

impl SessionJournal {
    /// A journal in this session, and what it holds already.
    ///
    /// # Errors
    /// [`BadJournal`](TeamError::BadJournal) for an entry that this version cannot read.
    pub fn open(session: Arc<Session>) -> Result<(Self, Vec<JournalEntry>), TeamError> {
        let mut entries = Vec::new();
        for note in session.take_notes() {
            let is_ours = note.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.starts_with("team_"));
            if is_ours {
                let read = serde_json::from_value(Value::Object(note));
                entries.push(read.map_err(|error| TeamError::BadJournal(error.to_string()))?);
            }
        }
        Ok((SessionJournal(session), entries))
    }
}

impl Journal for SessionJournal {
    fn write(&self, entry: &JournalEntry) -> Result<(), TeamError> {
        let value = serde_json::to_value(entry).map_err(|error| TeamError::BadJournal(error.to_string()))?;
        let Value::Object(note) = value else { return Err(TeamError::BadJournal("no object".into())) };
        let _: &Map<String, Value> = &note;
        Ok(self.0.note(note)?)
    }
}
