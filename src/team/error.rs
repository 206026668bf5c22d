//! What goes wrong in a team.

use std::sync::Arc;

use super::status::Outcome;
use crate::agent::SessionError;
use crate::tool::{ToolError, ToolErrorCode};

/// What goes wrong in a team.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TeamError {
    /// Nobody has this name.
    #[error("nobody in the team is called {name:?}; {}{}", did_you_mean(.suggestion), listed(.known))]
    UnknownRecipient {
        /// The name.
        name: String,
        /// Who there is.
        known: Vec<String>,
        /// The nearest of them.
        suggestion: Option<String>,
    },
    /// Somebody who does not come back.
    #[error("{name} cannot be reached: it ended as {outcome}{}", because(.reason))]
    Gone {
        /// The name.
        name: String,
        /// How it ended.
        outcome: Outcome,
        /// Why.
        reason: Option<String>,
    },
    /// A name that no teammate can have.
    #[error("{name:?} cannot be a teammate's name: {why}")]
    BadName {
        /// The name.
        name: String,
        /// Why.
        why: &'static str,
    },
    /// Somebody has this name already.
    #[error("there is a teammate called {name:?} already; take another name, or write to it to wake it")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// The team has as many teammates as it may.
    #[error("the team has {allowed} teammates, which is as many as it may have (max_teammates)")]
    Full {
        /// How many.
        allowed: usize,
    },
    /// A teammate may not start others.
    #[error("{name} may not start teammates: {why}")]
    MayNotSpawn {
        /// Who.
        name: String,
        /// Why.
        why: String,
    },
    /// A message for nobody.
    #[error("a message needs somebody to go to: to=, or a text that begins with @name; {}", listed(.known))]
    NoRecipient {
        /// Who there is.
        known: Vec<String>,
    },
    /// A message to oneself.
    #[error("a message to yourself goes nowhere; think on instead")]
    ToSelf,
    /// A message without words.
    #[error("a message needs words")]
    Empty,
    /// The same things go to and fro.
    #[error("{what} for the third time without anything new; nothing was done. Do something else, or ask the lead")]
    NoProgress {
        /// What goes to and fro.
        what: String,
    },
    /// There is no such task.
    #[error("there is no task {id:?}; {}", if .known.is_empty() { "there are none".to_owned() } else { format!("tasks: {}", .known.join(", ")) })]
    UnknownTask {
        /// The id.
        id: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// A task that cannot be had or changed like that.
    #[error("task {id} {why}")]
    Task {
        /// The id.
        id: String,
        /// Why not.
        why: String,
    },
    /// The team was closed.
    #[error("the team is closed")]
    Closed,
    /// What happens cannot be written down, so it does not happen.
    #[error("the team's journal cannot be written: {0}")]
    Journal(#[source] Arc<SessionError>),
    /// What was written down cannot be read.
    #[error("the team's journal cannot be read: {0}")]
    BadJournal(String),
}

fn did_you_mean(suggestion: &Option<String>) -> String {
    suggestion.as_ref().map(|near| format!("did you mean {near:?}? ")).unwrap_or_default()
}

fn listed(known: &[String]) -> String {
    const SHOWN: usize = 50;
    let names: Vec<_> = known.iter().take(SHOWN).map(String::as_str).collect();
    let more = known.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("there are: {}{more}", names.join(", "))
}

fn because(reason: &Option<String>) -> String {
    reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default()
}

impl TeamError {
    /// The same for a model that called a tool.
    pub fn to_tool_error(&self) -> ToolError {
        let code = match self {
            TeamError::UnknownRecipient { .. } | TeamError::UnknownTask { .. } => ToolErrorCode::NotFound,
            TeamError::NoProgress { .. } | TeamError::MayNotSpawn { .. } => ToolErrorCode::Denied,
            _ => ToolErrorCode::Invalid,
        };
        ToolError::new(code, self.to_string())
    }
}

impl From<SessionError> for TeamError {
    fn from(error: SessionError) -> Self {
        TeamError::Journal(Arc::new(error))
    }
}
