//! A teammate as the office keeps it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::bus::Mail;
use super::status::{Ended, Status};
use crate::message::Usage;
use crate::model::Request;

/// What a teammate may use, from its beginning to its end. `None` means that there is no such limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemberLimits {
    /// Requests to the model.
    pub max_rounds: u64,
    /// Tool calls.
    pub max_calls: Option<u64>,
    /// Tokens, input and output.
    pub max_tokens: Option<u64>,
    /// Money, in the unit of the price table.
    pub max_cost: Option<f64>,
}

impl Default for MemberLimits {
    /// 200 rounds; nothing else is limited.
    fn default() -> Self {
        MemberLimits { max_rounds: 200, max_calls: None, max_tokens: None, max_cost: None }
    }
}

/// Somebody who comes to the team.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct NewMember {
    /// The name.
    pub name: String,
    /// What it is there for.
    #[serde(default)]
    pub role: String,
    /// Who started it: the lead or a teammate.
    pub parent: String,
    /// Its limits.
    #[serde(default)]
    pub limits: MemberLimits,
    /// Whether it may start others.
    #[serde(default)]
    pub may_spawn: bool,
}

/// What was used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Requests to models.
    pub rounds: u64,
    /// Tool calls.
    pub calls: u64,
    /// Tokens.
    pub usage: Usage,
    /// Money, in the unit of the price table.
    pub cost: f64,
}

impl Totals {
    pub(super) fn add(&mut self, other: &Totals) {
        self.rounds += other.rounds;
        self.calls += other.calls;
        self.usage += other.usage;
        self.cost += other.cost;
    }
}

/// A teammate as the office keeps it.
pub(super) struct Member {
    pub(super) new: NewMember,
    /// How many starters stand between it and the lead.
    pub(super) depth: usize,
    pub(super) mail: Arc<dyn Mail>,
    /// How far it has read what it overhears, and how far once what it has in hand is stored.
    pub(super) read: u64,
    pub(super) reading: u64,
    pub(super) status: Status,
    /// Counts up with each change of the status.
    pub(super) sequence: u64,
    pub(super) ended: Option<Ended>,
    /// Somebody wants it to end.
    pub(super) stopping: bool,
    pub(super) totals: Totals,
    /// The last request, as it was really sent.
    pub(super) snapshot: Option<Arc<Request>>,
    /// Its last words, and the summary that it gave.
    pub(super) text: String,
    pub(super) summary: Option<String>,
    /// How many rounds in a row its letters were held.
    pub(super) holds: u32,
    /// Whether its `work_done` was held.
    pub(super) done_held: bool,
    /// It said that its work is done.
    pub(super) is_done: bool,
    /// It does not answer what came in.
    pub(super) ignores: Option<String>,
    /// Letters that were held in the last round, in words.
    pub(super) held: Vec<String>,
}

impl Member {
    pub(super) fn new(new: NewMember, depth: usize, mail: Arc<dyn Mail>, read: u64) -> Self {
        Member {
            new,
            depth,
            mail,
            read,
            reading: read,
            status: Status::Initializing,
            sequence: 0,
            ended: None,
            stopping: false,
            totals: Totals::default(),
            snapshot: None,
            text: String::new(),
            summary: None,
            holds: 0,
            done_held: false,
            is_done: false,
            ignores: None,
            held: Vec::new(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.new.name
    }
}
