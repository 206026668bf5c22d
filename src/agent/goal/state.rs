//! What a goal remembers: plain data that is written to disk as it is.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::verdict::Verdict;
use crate::message::Usage;

/// What is to be reached, and within which bounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GoalSpec {
    /// The goal in the user's words.
    pub text: String,
    /// By what the reviewer is to tell that it is reached.
    #[serde(default)]
    pub criteria: Option<String>,
    /// How many rounds there are at most; at least 1.
    pub max_rounds: u32,
    /// How long the executor may take in one round, in seconds.
    #[serde(default)]
    pub round_timeout: Option<f64>,
    /// How long one reply of the reviewer may take, in seconds.
    #[serde(default)]
    pub review_timeout: Option<f64>,
}

/// How a goal ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalStatus {
    /// The reviewer found it reached.
    Passed,
    /// The rounds are used up.
    Failed,
    /// Going on would not help: the same again, or no verdict to be had.
    Blocked,
    /// Somebody cancelled it.
    Cancelled,
    /// An agent is no longer there.
    Gone,
}

impl GoalStatus {
    /// The name as it stands in JSON, for example `passed`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
            Self::Cancelled => "cancelled",
            Self::Gone => "gone",
        }
    }
}

/// Where a goal is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Phase {
    /// The executor is to work.
    Dispatch,
    /// The executor is told what the user said meanwhile.
    Deliver {
        /// What comes when all is delivered.
        then: After,
    },
    /// The workspace is looked at.
    Sample,
    /// The reviewer is to judge.
    Review {
        /// Which reply of this review it will be; from 1.
        attempt: u32,
        /// What was wrong with the last one.
        #[serde(default)]
        complaint: Option<String>,
    },
    /// It is over.
    Ended {
        /// How.
        status: GoalStatus,
    },
}

/// What comes when the user's words are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum After {
    /// The next round.
    Dispatch,
    /// This round goes on.
    Sample,
    /// The end, which is decided.
    End {
        /// How it ends.
        status: GoalStatus,
    },
}

/// How the run of an agent ended, as far as a goal is concerned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// It had its last word.
    Done,
    /// It failed.
    Error,
    /// It was cancelled.
    Cancelled,
    /// Its time was up.
    Timeout,
    /// It is no longer there.
    #[default]
    Gone,
}

/// A tool call of the executor: what the reviewer is shown of the work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    /// The tool.
    pub name: String,
    /// The arguments as JSON.
    pub arguments: String,
    /// What the model was told.
    pub result: String,
    /// Whether the call failed.
    pub is_error: bool,
}

/// What came of one run of an agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Execution {
    /// How it ended.
    pub ended: Ended,
    /// The agent's last words.
    pub text: String,
    /// Why it did not end well.
    pub error: Option<String>,
    /// Its tool calls.
    pub calls: Vec<Evidence>,
    /// The tokens that it used.
    pub usage: Usage,
    /// How long it took, in milliseconds.
    pub ms: f64,
}

/// The workspace after a round.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sample {
    /// What stands for all its content; `None` if it is not looked at, or cannot be.
    pub fingerprint: Option<String>,
}

/// One round.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Round {
    /// Its number, from 1.
    pub number: u32,
    /// How the executor's run ended.
    pub ended: Ended,
    /// What the executor said.
    pub text: String,
    /// The last thing that went wrong and was not overcome.
    pub error: Option<String>,
    /// The executor's tool calls.
    pub calls: Vec<Evidence>,
    /// The workspace afterwards.
    pub fingerprint: Option<String>,
    /// Whether the workspace is as the round before left it.
    pub unchanged: bool,
    /// The reviewer's verdict.
    pub verdict: Option<Verdict>,
    /// What was wrong with replies that held no verdict.
    pub invalid: Vec<String>,
    /// The tokens that both agents used.
    pub usage: Usage,
    /// How long both took, in milliseconds.
    pub ms: f64,
}

/// Something the user said that passed by the queue and is on its way to the executor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passing {
    /// Its number within the goal.
    pub id: u64,
    /// The words.
    pub text: String,
}

/// Something the user said while the goal was under way, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    /// The words.
    pub text: String,
    /// The round in which it was delivered; 0 before the first.
    pub round: u32,
    /// How the executor's run ended.
    pub ended: Ended,
    /// What the executor said to it.
    pub reply: String,
}

/// All that a goal remembers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GoalState {
    /// Which goal it is.
    pub id: String,
    /// Grows with everything that happens: what comes back for an earlier one is late.
    pub generation: u64,
    /// What is to be reached.
    pub spec: GoalSpec,
    /// Where it is.
    pub phase: Phase,
    /// Whether what the phase wants done was begun.
    pub begun: bool,
    /// Whether it was begun before the state was read back, so that it is begun again.
    pub interrupted: bool,
    /// The rounds whose execution is over.
    pub rounds: Vec<Round>,
    /// What the user said and is not delivered yet, the oldest first.
    pub queue: VecDeque<String>,
    /// What passed by the queue and is not answered yet.
    pub passing: Vec<Passing>,
    /// What was delivered.
    pub deliveries: Vec<Delivery>,
    /// The tokens of all.
    pub usage: Usage,
    /// Why it ended as it did.
    pub reason: Option<String>,
    /// How often it was read back.
    pub restarts: u32,
}

impl GoalState {
    /// How it ended, if it has.
    pub fn status(&self) -> Option<GoalStatus> {
        match self.phase {
            Phase::Ended { status } => Some(status),
            _ => None,
        }
    }
}
