//! What the entries of a transcript add up to.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::agent::transcript::{Awaited, Entry};
use crate::message::History;

/// What the entries of a transcript add up to. The same code takes in an entry that is read and one that was just
/// written, so that a session is the same before and after a load.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) history: History,
    pub(super) turns: u64,
    pub(super) open_turn: Option<String>,
    /// The turn that a process before this one did not end.
    pub(super) interrupted_turn: Option<String>,
    /// The calls of the newest assistant message that were started.
    pub(super) started_calls: HashSet<String>,
    /// The calls that wait for a decision, in the order in which they were asked about.
    pub(super) awaiting: Vec<Awaited>,
    /// What is sent in the place of the first messages, and of how many.
    pub(super) compacted: Option<(usize, History)>,
    /// Entries of others, until they are taken.
    pub(super) notes: Vec<Map<String, Value>>,
    /// The highest number in an id of the form `m<number>`.
    last_message: u64,
    /// The same for `t<number>`.
    last_turn: u64,
}

impl State {
    /// Takes in `entry`.
    pub(super) fn apply(&mut self, entry: Entry) {
        match entry {
            Entry::Message { message } => {
                self.last_message = self.last_message.max(number(message.id.as_deref(), 'm'));
                if let Some(id) = &message.tool_call_id {
                    self.awaiting.retain(|awaited| awaited.call_id != *id);
                }
                if !message.tool_calls.is_empty() {
                    self.awaiting.clear();
                    // A new batch; some servers use the ids of the batch before again.
                    self.started_calls.clear();
                }
                self.history.push(message);
            }
            Entry::TurnStart { turn_id, .. } => {
                self.turns += 1;
                self.last_turn = self.last_turn.max(number(Some(&turn_id), 't'));
                self.started_calls.clear();
                self.open_turn = Some(turn_id);
            }
            Entry::TurnEnd { .. } => {
                self.open_turn = None;
                self.started_calls.clear();
            }
            Entry::CallStarted { call_id, .. } => {
                self.started_calls.insert(call_id);
            }
            Entry::Awaiting(awaited) => self.awaiting.push(awaited),
            // What covers more than there is covers some other history.
            Entry::Compacted { covered, messages, .. } if covered <= self.history.len() => {
                self.compacted = Some((covered, messages.into_iter().collect()));
            }
            Entry::Compacted { .. } => {}
            Entry::Reset { .. } => {
                self.history = History::new();
                self.compacted = None;
                self.awaiting.clear();
            }
            Entry::Session(_) => {}
            Entry::Other(note) => self.notes.push(note),
        }
    }

    pub(super) fn next_message_id(&self) -> String {
        format!("m{}", self.last_message + 1)
    }

    pub(super) fn next_turn_id(&self) -> String {
        format!("t{}", self.last_turn + 1)
    }
}

/// The number in an id that this crate could have given; 0 for any other, so that ids are never given twice.
fn number(id: Option<&str>, prefix: char) -> u64 {
    let digits = id.and_then(|id| id.strip_prefix(prefix)).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
    // An id near the largest number is somebody's own: counting on from it would overflow.
    digits.and_then(|digits| digits.parse().ok()).filter(|&number| number < u64::MAX / 2).unwrap_or(0)
}
