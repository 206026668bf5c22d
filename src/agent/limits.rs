//! The limits of a turn, and the counters that say when one is reached. Nothing here looks at a clock.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use crate::message::{ToolCall, Usage};

/// The limits of one turn. `None` means that there is no such limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Requests to the model.
    pub max_rounds: u32,
    /// Tool calls.
    pub max_calls_per_turn: Option<u32>,
    /// The same call (name and arguments) so many times in a row; it is not run the last of these times.
    pub repeated_call: Option<u32>,
    /// Seconds from the beginning of the turn.
    pub max_seconds: Option<f64>,
    /// Tokens of all requests, input and output.
    pub max_tokens: Option<u64>,
    /// Money, in the unit of the price table that the user supplies.
    pub max_cost: Option<f64>,
    /// How many times hooks may send the turn back to the model.
    pub max_hook_loops: u32,
}

impl Default for Limits {
    /// 50 rounds, the same call 3 times in a row, 8 times sent back by hooks; nothing else is limited.
    fn default() -> Self {
        Limits {
            max_rounds: 50,
            max_calls_per_turn: None,
            repeated_call: Some(3),
            max_seconds: None,
            max_tokens: None,
            max_cost: None,
            max_hook_loops: 8,
        }
    }
}

/// Which limit it is: the field `limit` of the event `limit_reached` and of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// Requests to the model.
    Rounds,
    /// Tool calls.
    Calls,
    /// The same call over and over.
    RepeatedCall,
    /// Time.
    Seconds,
    /// Hooks that send the turn back over and over.
    HookLoop,
    /// Tokens.
    Tokens,
    /// Money.
    Cost,
}

impl LimitKind {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            LimitKind::Rounds => "rounds",
            LimitKind::Calls => "calls",
            LimitKind::RepeatedCall => "repeated_call",
            LimitKind::Seconds => "seconds",
            LimitKind::HookLoop => "hook_loop",
            LimitKind::Tokens => "tokens",
            LimitKind::Cost => "cost",
        }
    }
}

impl fmt::Display for LimitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A limit that was reached: the turn ends with `status="limit"`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LimitReached {
    /// Which one.
    pub limit: LimitKind,
    /// How much was used. At least `allowed`, but for feedback that a hook repeats, which ends the turn earlier.
    pub used: Number,
    /// How much is allowed.
    pub allowed: Number,
    /// What happened, in a sentence for people.
    pub detail: String,
}

impl LimitReached {
    pub(crate) fn new(limit: LimitKind, used: impl Into<Number>, allowed: impl Into<Number>, detail: String) -> Self {
        LimitReached { limit, used: used.into(), allowed: allowed.into(), detail }
    }

    pub(crate) fn of_cost(used: f64, allowed: f64, detail: String) -> Option<Self> {
        Some(LimitReached::new(LimitKind::Cost, decimal(used), decimal(allowed), detail))
    }
}

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for LimitReached {}

/// What one turn has used so far.
///
/// Each method either counts something or refuses it because a limit is reached; what is refused is not to be done.
///
/// ```
/// use hookwright::agent::{LimitKind, Limits, TurnCounters};
/// let mut counters = TurnCounters::new(Limits { max_rounds: 1, ..Limits::default() });
/// assert_eq!(counters.begin_round(), Ok(1));
/// let reached = counters.begin_round().unwrap_err();
/// assert_eq!((reached.limit, reached.to_string()), (LimitKind::Rounds, "all 1 rounds are used".to_owned()));
/// ```
#[derive(Debug, Clone)]
pub struct TurnCounters {
    limits: Limits,
    rounds: u32,
    calls: u32,
    usage: Usage,
    cost: f64,
    last_call: Option<CallIdentity>,
    same_calls: u32,
    hook_loops: u32,
    /// What hooks said since the last tool call.
    feedback: Vec<Box<str>>,
}

/// What makes two calls the same: the name and the arguments, whatever the order of their keys and their spacing.
#[derive(Debug, Clone, PartialEq)]
struct CallIdentity {
    name: String,
    /// Maps compare without regard to order. Arguments that could not be decoded count by their text.
    arguments: Result<Map<String, Value>, String>,
}

impl CallIdentity {
    fn of(call: &ToolCall) -> Self {
        let arguments = call.arguments().cloned().map_err(|_| call.arguments_json().into_owned());
        CallIdentity { name: call.name.clone(), arguments }
    }

    fn is(&self, call: &ToolCall) -> bool {
        let same_arguments = match (&self.arguments, call.arguments()) {
            (Ok(mine), Ok(theirs)) => mine == theirs,
            (Err(mine), Err(_)) => *mine == call.arguments_json(),
            _ => false,
        };
        self.name == call.name && same_arguments
    }
}

impl TurnCounters {
    /// Counters at zero.
    pub fn new(limits: Limits) -> Self {
        TurnCounters {
            limits,
            rounds: 0,
            calls: 0,
            usage: Usage::default(),
            cost: 0.0,
            last_call: None,
            same_calls: 0,
            hook_loops: 0,
            feedback: Vec::new(),
        }
    }

    /// Counts a request that is about to be made; returns its number, from 1.
    ///
    /// # Errors
    /// [`Rounds`](LimitKind::Rounds) if all are used.
    pub fn begin_round(&mut self) -> Result<u32, LimitReached> {
        let allowed = self.limits.max_rounds;
        if self.rounds >= allowed {
            let detail = format!("all {allowed} rounds are used");
            return Err(LimitReached::new(LimitKind::Rounds, self.rounds, allowed, detail));
        }
        self.rounds += 1;
        Ok(self.rounds)
    }

    /// Counts a call that is about to be run, as the model asked for it.
    ///
    /// A call also ends the memory of what hooks have said: feedback that comes again behind it is not a repetition.
    ///
    /// # Errors
    /// [`Calls`](LimitKind::Calls) if all are used, [`RepeatedCall`](LimitKind::RepeatedCall) if it is the same one
    /// for the last time allowed.
    pub fn begin_call(&mut self, call: &ToolCall) -> Result<(), LimitReached> {
        if let Some(allowed) = self.limits.max_calls_per_turn.filter(|allowed| self.calls >= *allowed) {
            let detail = format!("all {allowed} tool calls of this turn are used");
            return Err(LimitReached::new(LimitKind::Calls, self.calls, allowed, detail));
        }
        self.feedback.clear();
        if self.last_call.as_ref().is_some_and(|last| last.is(call)) {
            self.same_calls += 1;
        } else {
            self.same_calls = 1;
            self.last_call = Some(CallIdentity::of(call));
        }
        if let Some(allowed) = self.limits.repeated_call.filter(|allowed| self.same_calls >= *allowed) {
            let used = self.same_calls;
            let detail = format!("the tool {} was called {used} times in a row with the same arguments", call.name);
            return Err(LimitReached::new(LimitKind::RepeatedCall, used, allowed, detail));
        }
        self.calls += 1;
        Ok(())
    }

    /// Checks the time since the turn began.
    ///
    /// # Errors
    /// [`Seconds`](LimitKind::Seconds) if it is used up.
    pub fn check_time(&self, elapsed: Duration) -> Result<(), LimitReached> {
        let Some(allowed) = self.limits.max_seconds.filter(|allowed| elapsed.as_secs_f64() >= *allowed) else {
            return Ok(());
        };
        let detail = format!("the turn has taken {:.1} of {allowed} seconds", elapsed.as_secs_f64());
        Err(LimitReached::new(LimitKind::Seconds, decimal(elapsed.as_secs_f64()), decimal(allowed), detail))
    }

    /// How long the turn may still take, `elapsed` after it began; `None` if there is no limit.
    pub fn time_left(&self, elapsed: Duration) -> Option<Duration> {
        let allowed = Duration::try_from_secs_f64(self.limits.max_seconds?.max(0.0)).unwrap_or(Duration::MAX);
        Some(allowed.saturating_sub(elapsed))
    }

    /// Counts the tokens of a reply, and what they cost.
    pub fn add_usage(&mut self, usage: Usage, cost: f64) {
        self.usage += usage;
        self.cost += cost;
    }

    /// Checks tokens and cost. To be asked before a request, so that the reply that passes the limit is not lost.
    ///
    /// # Errors
    /// [`Tokens`](LimitKind::Tokens) or [`Cost`](LimitKind::Cost) if they are used up.
    pub fn check_spending(&self) -> Result<(), LimitReached> {
        let tokens = self.usage.total_tokens();
        if let Some(allowed) = self.limits.max_tokens.filter(|allowed| tokens >= *allowed) {
            let detail = format!("the turn has used {tokens} of {allowed} tokens");
            return Err(LimitReached::new(LimitKind::Tokens, tokens, allowed, detail));
        }
        if let Some(allowed) = self.limits.max_cost.filter(|allowed| self.cost >= *allowed) {
            let detail = format!("the turn has cost {} of {allowed}", self.cost);
            return Err(LimitReached::new(LimitKind::Cost, decimal(self.cost), decimal(allowed), detail));
        }
        Ok(())
    }

    /// Counts that hooks send the turn back to the model with `feedback`; returns how many times they have, which is
    /// the field `continuation` of the events behind it.
    ///
    /// # Errors
    /// [`HookLoop`](LimitKind::HookLoop) if they have done so as often as is allowed, or have said the same already
    /// with no tool call between: the model has nothing new to go on.
    pub fn send_back(&mut self, feedback: &str) -> Result<u32, LimitReached> {
        let allowed = self.limits.max_hook_loops;
        let repeated = self.feedback.iter().any(|said| **said == *feedback);
        if repeated || self.hook_loops >= allowed {
            let used = self.hook_loops;
            let detail = if repeated {
                "hooks sent the turn back twice with the same feedback and no tool call between".to_owned()
            } else {
                format!("hooks have sent the turn back {used} times, which is as often as is allowed")
            };
            return Err(LimitReached::new(LimitKind::HookLoop, used, allowed, detail));
        }
        self.hook_loops += 1;
        self.feedback.push(feedback.into());
        Ok(self.hook_loops)
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How many requests were made.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// How many calls were run.
    pub fn calls(&self) -> u32 {
        self.calls
    }

    /// The tokens that were used.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// What they cost.
    pub fn cost(&self) -> f64 {
        self.cost
    }

    /// How many times hooks have sent the turn back.
    pub fn continuation(&self) -> u32 {
        self.hook_loops
    }
}

/// A number of JSON; infinity and not-a-number, which JSON lacks, become 0.
fn decimal(number: f64) -> Number {
    Number::from_f64(number).unwrap_or_else(|| Number::from(0))
}

#[cfg(test)]
mod tests;
