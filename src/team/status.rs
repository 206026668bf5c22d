//! What a teammate does, and how it ended.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What a teammate does at this moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Status {
    /// It has not begun.
    #[default]
    Initializing,
    /// Its model is asked.
    Thinking,
    /// Tools run.
    Working {
        /// Which.
        tools: Vec<String>,
    },
    /// It waits, and costs nothing.
    Waiting {
        /// For mail, or for the answers of those that it asked.
        for_: Vec<String>,
    },
    /// Its model failed and is asked again.
    Retrying {
        /// Which attempt failed, from 1.
        attempt: u32,
        /// How many there are at most, if that is known.
        of: Option<u32>,
        /// How long until the next.
        delay: Duration,
        /// Why.
        error: String,
    },
    /// Older messages are summarised.
    Compacting,
    /// It ended: done or idle.
    Completed,
    /// It was cancelled.
    Cancelled,
    /// It ended in another way.
    Failed {
        /// What happened.
        error: String,
    },
}

impl Status {
    /// Its name on the wire.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Status::Initializing => "initializing",
            Status::Thinking => "thinking",
            Status::Working { .. } => "working",
            Status::Waiting { .. } => "waiting",
            Status::Retrying { .. } => "retrying",
            Status::Compacting => "compacting",
            Status::Completed => "completed",
            Status::Cancelled => "cancelled",
            Status::Failed { .. } => "failed",
        }
    }

    /// Whether it waits for mail, or has ended.
    pub const fn is_quiet(&self) -> bool {
        matches!(self, Status::Waiting { .. } | Status::Completed | Status::Cancelled | Status::Failed { .. })
    }

    /// All of it as data.
    pub fn to_json(&self) -> Value {
        let name = self.as_str();
        match self {
            Status::Working { tools } => json!({"status": name, "tools": tools}),
            Status::Waiting { for_ } => json!({"status": name, "for": for_}),
            Status::Retrying { attempt, of, delay, error } => {
                json!({"status": name, "attempt": attempt, "of": of, "delay": delay.as_secs_f64(), "error": error})
            }
            Status::Failed { error } => json!({"status": name, "error": error}),
            _ => json!({"status": name}),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Status::Working { tools } => write!(f, "working ({})", tools.join(", ")),
            Status::Waiting { for_ } if !for_.is_empty() => write!(f, "waiting for {}", for_.join(", ")),
            Status::Retrying { attempt, .. } => write!(f, "retrying after attempt {attempt}"),
            other => f.write_str(other.as_str()),
        }
    }
}

/// How a teammate ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It said that its work is done.
    Done,
    /// It had nothing to do for as long as it may wait.
    Idle,
    /// A limit was reached, its own or the team's.
    Limit,
    /// A hook stopped it.
    HookStop,
    /// Its model failed for good, or its session could not be written.
    Error,
    /// Somebody cancelled it.
    Cancelled,
    /// Its loop broke: an exception or a panic.
    Crashed,
}

impl Outcome {
    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Outcome::Done => "done",
            Outcome::Idle => "idle",
            Outcome::Limit => "limit",
            Outcome::HookStop => "hook_stop",
            Outcome::Error => "error",
            Outcome::Cancelled => "cancelled",
            Outcome::Crashed => "crashed",
        }
    }

    /// Whether a message brings it back.
    pub const fn comes_back(self) -> bool {
        matches!(self, Outcome::Done | Outcome::Idle)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The end of a teammate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// How.
    pub outcome: Outcome,
    /// Why, or for one that is done its summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Ended {
    /// An end with a reason.
    pub fn new(outcome: Outcome, reason: impl Into<Option<String>>) -> Self {
        Ended { outcome, reason: reason.into() }
    }

    pub(super) fn status(&self) -> Status {
        match self.outcome {
            Outcome::Done | Outcome::Idle => Status::Completed,
            Outcome::Cancelled => Status::Cancelled,
            other => Status::Failed { error: self.reason.clone().unwrap_or_else(|| other.to_string()) },
        }
    }
}
