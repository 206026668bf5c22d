//! What a gate decides about a call.

use super::denial::Denial;
use super::shell::Requirement;

/// Let through, ask a person, or refuse; from mild to severe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answer {
    /// The call may run.
    Allow,
    /// A person decides.
    Ask,
    /// The call may not run.
    Deny,
}

impl Answer {
    /// The name as it stands in JSON: `allow`, `ask` or `deny`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// What a gate decides about a call, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Let through, ask or refuse.
    pub answer: Answer,
    /// Why, for `ask` and `deny`.
    pub denial: Option<Denial>,
    /// The rule that decided, if one did.
    pub rule: Option<String>,
    /// With `ask`: the narrowest rule that lets this call through, if there is one that lets nothing else through.
    pub suggested_rule: Option<String>,
    /// What whoever runs the call has to see to, so that it does no more than what was judged.
    pub requires: Vec<Requirement>,
}

impl Decision {
    /// The call may run.
    pub fn allow() -> Self {
        Decision { answer: Answer::Allow, denial: None, rule: None, suggested_rule: None, requires: Vec::new() }
    }

    /// The call may not run.
    pub fn deny(denial: Denial) -> Self {
        Decision { answer: Answer::Deny, denial: Some(denial), ..Decision::allow() }
    }

    /// A person decides.
    pub fn ask(why: Denial) -> Self {
        Decision { answer: Answer::Ask, denial: Some(why), ..Decision::allow() }
    }

    /// Whether the call may run without further ado.
    pub fn is_allowed(&self) -> bool {
        self.answer == Answer::Allow
    }
}
