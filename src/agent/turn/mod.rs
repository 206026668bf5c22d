//! One turn of an agent: from what the user says to the model's last word.
//!
//! [`machine`] runs the rules without I/O; [`flow`] is the rules from the message to the end; [`calls`] is what happens
//! to the tool calls of one reply; [`permission`] is what happens when somebody asks; [`desk`] is what a team adds.

mod calls;
mod desk;
mod flow;
mod history;
mod machine;
mod permission;
mod price;
mod registry;
mod summary;
mod tell;
#[cfg(test)]
mod tests;
mod window;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

pub use self::desk::{Desk, DeskAnswer, Doing, Letter};
pub use self::history::HistoryPayload;
pub use self::machine::{Answer, Approval, ApprovalRequest, CallAnswer, CallToRun, Effect, Spent, Step, Turn};
pub use self::price::Prices;
pub use self::window::Window;
use super::limits::{LimitReached, Limits};
use super::session::{Session, SessionError};
use crate::hook::{AgentIdentity, HookChain, Host, Outcome};
use crate::message::{Message, Usage};
use crate::model::{ModelFailure, ToolDescription};
use crate::tool::{ArgumentValidator, DeclaredEffect};

pub use crate::model::context_message;

/// A tool as a turn sees it: how it is described and checked, not how it is run.
#[derive(Debug, Clone)]
pub struct TurnTool {
    /// What the model is told.
    pub description: ToolDescription,
    /// Checks the arguments.
    pub validator: ArgumentValidator,
    /// Whether others may run beside it.
    pub parallel_safe: bool,
    /// Whether the text that it returns is JSON, in which a failure may be told.
    pub declares_json: bool,
    /// What it declares about the effect of its calls.
    pub effect: DeclaredEffect,
    /// The directory that it takes relative paths from, if that is not the session's.
    pub root: Option<PathBuf>,
    /// Whether the model is told of it only once it has loaded it, with [`LOAD_TOOL`].
    pub deferred: bool,
}

/// The tool by which a model loads those that are deferred. What it loads in a conversation stays loaded.
pub const LOAD_TOOL: &str = "load_tool";

impl TurnTool {
    /// A tool of this description that declares nothing about its effect.
    pub fn new(description: ToolDescription, parallel_safe: bool) -> Self {
        let validator = ArgumentValidator::new(&description.schema);
        let effect = DeclaredEffect::Undeclared;
        TurnTool { description, validator, parallel_safe, declares_json: false, effect, root: None, deferred: false }
    }
}

/// Everything about an agent that its turns need and that stays the same from turn to turn.
#[derive(Clone)]
pub struct TurnConfig {
    /// Who the agent is.
    pub agent: AgentIdentity,
    /// The name of its model.
    pub model: Arc<str>,
    /// Its system prompt; may be empty.
    pub system: String,
    /// Its tools.
    pub tools: Arc<[TurnTool]>,
    /// The hooks that watch over it.
    pub chain: Option<Arc<HookChain>>,
    /// Where its history is kept.
    pub session: Arc<Session>,
    /// The working directory that events tell.
    pub cwd: PathBuf,
    /// The limits of a turn.
    pub limits: Limits,
    /// What tokens cost.
    pub prices: Prices,
    /// How much of a call's result the model is shown, in bytes; the middle of a longer one is left out, and the whole
    /// is kept beside the transcript.
    pub result_cap: usize,
    /// What the model holds, if conversations are to be made to fit.
    pub window: Option<Window>,
    /// Whether the answer has a type, so that it has to be checked.
    pub checks_output: bool,
    /// What the clock says; a simulation brings its own.
    pub now: fn() -> Instant,
    /// What stands between the agent and its team, if it is in one.
    pub desk: Option<Arc<dyn Desk>>,
}

impl TurnConfig {
    /// The position of a tool by its exact name.
    pub fn tool(&self, name: &str) -> Option<usize> {
        self.tools.iter().position(|tool| tool.description.name == name)
    }
}

impl Host for TurnConfig {
    fn mode(&self) -> Option<String> {
        self.session.mode()
    }

    fn tool_effect(&self, tool: &str, arguments: &Map<String, Value>) -> Option<String> {
        let tool = &self.tools[self.tool(tool)?];
        tool.effect.of(arguments).map(str::to_owned)
    }

    fn tool_root(&self, tool: &str) -> Option<PathBuf> {
        self.tools[self.tool(tool)?].root.clone()
    }
}

/// What a turn begins with.
#[derive(Debug, Clone, Default)]
pub struct TurnInput {
    /// What the user says.
    pub text: String,
    /// Who says it, if it is somebody else than the user.
    pub sender: Option<String>,
    /// What else is kept with the message.
    pub extra: Map<String, Value>,
    /// Whether somebody watches the reply come in.
    pub streamed: bool,
    /// Whether text is told only when hooks have seen the whole reply.
    pub hold_text: bool,
    /// Whether the turn goes on where an earlier one was left, without anything said by the user.
    pub resumed: bool,
    /// The names of tools that are not there in this turn.
    pub missing: HashSet<String>,
    /// What a person decided about calls that wait for it, by the calls' ids.
    pub decisions: HashMap<String, Approval>,
    /// How the session came to be, if this is its first turn here: `new`, `resumed` or `forked`.
    pub session_source: Option<String>,
}

/// How a turn ended.
#[derive(Debug, Clone)]
pub enum Ending {
    /// The model had its last word.
    Success,
    /// A hook stopped it.
    Stopped {
        /// Why.
        reason: String,
        /// Which hook.
        by: Option<Arc<str>>,
    },
    /// A limit was reached.
    Limit(LimitReached),
    /// The model failed for good.
    Failed(ModelFailure),
    /// The session could not be written, so going on would lose what happens.
    Session(Arc<SessionError>),
    /// Somebody cancelled it.
    Cancelled,
    /// Calls wait for a person's decision; the turn goes on when there is one.
    Awaiting {
        /// How many calls.
        calls: usize,
    },
}

impl Ending {
    /// The `status` of the result and of the event `turn_end`.
    pub fn status(&self) -> &'static str {
        match self {
            Ending::Success => "success",
            Ending::Stopped { .. } => "stopped",
            Ending::Limit(_) => "limit",
            Ending::Failed(_) | Ending::Session(_) => "error",
            Ending::Cancelled => "cancelled",
            Ending::Awaiting { .. } => "awaiting_approval",
        }
    }
}

/// One call of the turn and what it came to.
#[derive(Debug, Clone)]
pub struct CallRecord {
    /// The call's id.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The final arguments; empty if they could not be read.
    pub arguments: Map<String, Value>,
    /// What the model was told.
    pub result: String,
    /// Whether it failed, was refused or was not run.
    pub is_error: bool,
    /// Why it failed: `exception`, `error_result`, `timeout`, `invalid_arguments`, `unknown_tool`, `denied`, `cancelled`, `not_run`,
    /// `held`.
    pub cause: Option<&'static str>,
    /// How long the tool took; zero if it was not run.
    pub elapsed: Duration,
    /// Whether the tool was entered at all.
    pub ran: bool,
}

/// What came of a turn.
#[derive(Clone)]
pub struct TurnResult {
    /// How it ended.
    pub ending: Ending,
    /// The turn's id within its session; empty if it could not begin.
    pub turn_id: String,
    /// The model's last words.
    pub text: String,
    /// The messages that this turn added, in order.
    pub messages: Vec<Arc<Message>>,
    /// The tokens that were used.
    pub usage: Usage,
    /// What they cost, in the unit of the price table.
    pub cost: f64,
    /// How many requests were made to the model.
    pub rounds: u32,
    /// How often requests that had failed were made again.
    pub retries: u32,
    /// The tool calls, in order.
    pub calls: Vec<CallRecord>,
    /// Every event to which somebody listened, with what came of it.
    pub trace: Vec<Arc<Outcome>>,
    /// How long it took.
    pub elapsed: Duration,
}

/// What somebody who watches a run is told.
#[derive(Debug, Clone)]
pub enum RunEvent {
    /// The turn has begun.
    TurnStarted {
        /// Its id.
        turn_id: String,
    },
    /// A piece of the model's reply. Provisional: the message that follows is what counts.
    Text {
        /// The piece.
        delta: String,
    },
    /// A piece of the thinking that the model shows. Provisional.
    Reasoning {
        /// The piece.
        delta: String,
    },
    /// A piece of a call that the model writes. Provisional.
    CallDelta {
        /// Which call of the reply, from 0.
        index: usize,
        /// The tool's name as far as it is known.
        name: String,
        /// The piece of the arguments' text.
        delta: String,
    },
    /// A request failed and is made again after a wait.
    Retry {
        /// Which attempt failed, from 1.
        attempt: u32,
        /// How many there are at most, if that is known.
        of: Option<u32>,
        /// Why.
        failure: ModelFailure,
        /// How long until the next one.
        wait: Duration,
    },
    /// The conversation was too long for the model, and a shorter one is sent.
    Fitted {
        /// How many messages are left out.
        left_out: usize,
        /// How many were shortened.
        shortened: usize,
        /// In how many parts older ones were summarised.
        summarised: usize,
    },
    /// A message was added to the history.
    Message(Arc<Message>),
    /// A tool is about to run.
    ToolStarted {
        /// The call's id.
        id: String,
        /// The tool's name.
        name: String,
        /// The final arguments.
        arguments: Map<String, Value>,
    },
    /// A call has its result.
    ToolFinished(CallRecord),
    /// A hook has something to say to the user.
    Notice {
        /// Which hook.
        hook: Arc<str>,
        /// What it says.
        text: String,
    },
    /// Hooks ran.
    Hooks(Arc<Outcome>),
}
