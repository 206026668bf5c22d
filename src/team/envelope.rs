//! A message between agents.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::message::Timestamp;

/// What an envelope is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvelopeKind {
    /// Somebody's words.
    #[default]
    Message,
    /// What the team itself has to say: who came, who ended, who waits.
    Notice,
}

/// A message between agents. Who sent it is this field, never markup inside the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// Its name in the team. One that is seen twice is delivered once.
    pub id: String,
    /// Its place among all letters of the team.
    #[serde(default)]
    pub number: u64,
    /// Who wrote it.
    pub sender: String,
    /// Whom it addresses; `all` for everybody.
    pub recipients: Vec<String>,
    /// The words.
    pub text: String,
    /// Whether the text itself named whom it addresses.
    #[serde(default, skip_serializing_if = "is_false")]
    pub mention: bool,
    /// The envelope that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// When it was sent.
    pub sent_at: Timestamp,
    /// Whether nobody else overhears it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub private: bool,
    /// Whether the sender waits for an answer.
    #[serde(default, skip_serializing_if = "is_false")]
    pub expects_reply: bool,
    /// Somebody's words, or the team's.
    #[serde(default, skip_serializing_if = "is_message")]
    pub kind: EnvelopeKind,
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_message(kind: &EnvelopeKind) -> bool {
    *kind == EnvelopeKind::Message
}

/// A message that is to be sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Draft {
    /// Whom it addresses: names or `all`. Empty: whoever the text names at its beginning.
    pub to: Vec<String>,
    /// The words.
    pub text: String,
    /// Whether nobody else overhears it.
    pub private: bool,
    /// The envelope that it answers.
    pub reply_to: Option<String>,
    /// Whether the sender waits for an answer.
    pub expects_reply: bool,
    /// The envelope's id, where the sender has one of its own: sending it again changes nothing.
    pub id: Option<String>,
}

impl Draft {
    /// `text` to these.
    pub fn new<'a>(to: impl IntoIterator<Item = &'a str>, text: impl Into<String>) -> Self {
        Draft { to: to.into_iter().map(str::to_owned).collect(), text: text.into(), ..Draft::default() }
    }
}

/// An envelope as it lies in somebody's mailbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parcel {
    /// The envelope.
    pub envelope: Arc<Envelope>,
    /// Whether it is addressed to the owner of the mailbox, or overheard.
    pub addressed: bool,
}
