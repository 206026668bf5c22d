//! What came of one dispatch: the decision, the final fields, and who did what.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::context::EventContext;
use super::entry::HookMeta;
use super::event::{Action, Event, Field};
use super::payload::Payload;

/// How the run of one hook ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStatus {
    /// Ran and said nothing that changed anything.
    Ok,
    /// Changed or added something.
    Changed,
    /// Stopped, skipped or asked.
    Halted,
    /// Failed after all its attempts.
    Failed,
    /// Did not answer in time.
    Timeout,
    /// Its filter did not match.
    Filtered,
    /// Switched off.
    Disabled,
    /// The chain's time ran out before its turn.
    BudgetExhausted,
    /// A hook before it halted the chain.
    NotReached,
}

impl RunStatus {
    /// The name in records and in Python.
    pub const fn as_str(self) -> &'static str {
        match self {
            RunStatus::Ok => "ok",
            RunStatus::Changed => "changed",
            RunStatus::Halted => "halted",
            RunStatus::Failed => "failed",
            RunStatus::Timeout => "timeout",
            RunStatus::Filtered => "filtered",
            RunStatus::Disabled => "disabled",
            RunStatus::BudgetExhausted => "budget_exhausted",
            RunStatus::NotReached => "not_reached",
        }
    }
}

/// What is rarely there: errors, remarks, and what a hook in shadow mode would have done.
#[derive(Debug, Clone, Default)]
pub struct RunExtra {
    /// One line on what went wrong.
    pub error: Option<String>,
    /// A traceback, or the standard error of a command.
    pub detail: Option<String>,
    /// Remarks, such as lines of noise that were passed over.
    pub notes: Vec<String>,
    /// The halting action and reason that shadow mode held back.
    pub would_halt: Option<(Action, String)>,
    /// The fields whose change shadow mode held back.
    pub would_change: Vec<Field>,
}

/// The run of one hook within a dispatch.
#[derive(Debug, Clone)]
pub struct RunRecord {
    /// How it ended.
    pub status: RunStatus,
    /// How many attempts were made.
    pub attempts: u32,
    /// How long they took together.
    pub nanoseconds: u64,
    /// Errors and remarks.
    pub extra: Option<Box<RunExtra>>,
}

impl RunRecord {
    /// How long the attempts took together.
    pub const fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds)
    }
}

/// One change that a hook made.
#[derive(Debug, Clone)]
pub struct Change {
    /// The hook that made it.
    pub hook: Arc<str>,
    /// The field that was replaced or added to.
    pub field: Field,
    /// The value before; `None` where there was none and for fields that accumulate.
    pub before: Option<Payload>,
    /// The value after.
    pub after: Payload,
}

/// Text and the hook that it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attributed {
    /// The hook's name.
    pub hook: Arc<str>,
    /// What it said.
    pub text: String,
}

/// What came of one dispatch.
#[derive(Clone)]
pub struct Outcome {
    /// The event with its final fields.
    pub context: Arc<EventContext>,
    /// The hooks that stood in the chain for this event; `runs` has one record for each, in the same order.
    pub hooks: Arc<[Arc<HookMeta>]>,
    /// Stop, skip, ask or nothing.
    pub action: Option<Action>,
    /// Why.
    pub reason: Option<String>,
    /// Which hook decided.
    pub halted_by: Option<Arc<str>>,
    /// The permission rule by which it decided.
    pub rule: Option<String>,
    /// With `ask`: the rule that would let such calls through from now on.
    pub suggested_rule: Option<String>,
    /// Whether a gate let the call through on the condition that it runs in the environment for reading.
    pub reading: bool,
    /// What sends the turn back, in order.
    pub retry_feedback: Vec<Attributed>,
    /// What the model sees in addition, in order.
    pub additional_context: Vec<Attributed>,
    /// What the user sees, in order; warnings among them.
    pub system_messages: Vec<Attributed>,
    /// Messages for this request only, in order.
    pub inject_messages: Vec<Value>,
    /// Who changed what.
    pub changes: Vec<Change>,
    /// Who ran, and how it went.
    pub runs: Vec<RunRecord>,
    /// How long the whole dispatch took.
    pub elapsed: Duration,
}

/// The longest argument text that is shown as it is.
const SHOWN_LENGTH: usize = 200;

fn as_text(value: &Payload) -> Option<String> {
    match value.json().ok()? {
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Whether a value that a hook replaced may still be shown as it was: short tool arguments and the like. Results and
/// messages may not, else a redaction would leak through its own record.
pub fn may_show(field: Field, value: &Payload) -> bool {
    matches!(field, Field::ToolArguments | Field::Tools | Field::Decision | Field::Recipients)
        && as_text(value).is_some_and(|text| text.chars().count() <= SHOWN_LENGTH)
}

/// How a changed value is shown: as it is where [`may_show`] allows it (secrets taken out by pattern), else by length
/// and hash.
pub fn shown(field: Field, value: &Payload) -> String {
    let Some(text) = as_text(value) else { return "<no JSON form>".into() };
    if may_show(field, value) {
        return super::redact::redact(&text).into_owned();
    }
    let hash = blake3::hash(text.as_bytes()).to_hex();
    format!("<{} characters, blake3 {}>", text.chars().count(), &hash[..8])
}

impl Outcome {
    /// An outcome to which nothing has happened yet.
    pub(super) fn new(context: Arc<EventContext>, hooks: Arc<[Arc<HookMeta>]>) -> Self {
        Outcome {
            context,
            hooks,
            action: None,
            reason: None,
            halted_by: None,
            rule: None,
            suggested_rule: None,
            reading: false,
            retry_feedback: Vec::new(),
            additional_context: Vec::new(),
            system_messages: Vec::new(),
            inject_messages: Vec::new(),
            changes: Vec::new(),
            runs: Vec::new(),
            elapsed: Duration::ZERO,
        }
    }

    /// An outcome of an event for which no hook stands in the chain.
    pub fn untouched(context: Arc<EventContext>) -> Self {
        Outcome::new(context, Arc::from([]))
    }

    /// The event that was dispatched.
    pub fn event(&self) -> Event {
        self.context.event
    }

    /// The final value of a field.
    pub fn field(&self, field: Field) -> Option<&Payload> {
        self.context.get(field)
    }

    /// The final value of a field if a hook of this chain replaced it.
    pub fn replaced(&self, field: Field) -> Option<&Payload> {
        self.changes.iter().rev().find(|change| change.field == field).map(|change| &change.after)
    }

    /// All that is said to send the turn back, a hook a line.
    pub fn feedback(&self) -> Option<String> {
        join(&self.retry_feedback)
    }

    /// All that the model is to see in addition.
    pub fn context_text(&self) -> Option<String> {
        join(&self.additional_context)
    }

    /// The outcome as one JSON object for records and for observers in other processes. Changed values are shown by
    /// length and hash where they could leak what was removed.
    pub fn summary(&self) -> Value {
        let runs = self.hooks.iter().zip(&self.runs).map(|(hook, run)| {
            let mut record = Map::new();
            record.insert("name".into(), hook.name.as_ref().into());
            record.insert("kind".into(), hook.kind.as_str().into());
            record.insert("role".into(), hook.role.as_str().into());
            record.insert("level".into(), json!(hook.level));
            record.insert("status".into(), run.status.as_str().into());
            record.insert("attempts".into(), run.attempts.into());
            record.insert("ms".into(), milliseconds(run.elapsed()).into());
            if let Some(extra) = &run.extra {
                if let Some(error) = &extra.error {
                    record.insert("error".into(), error.as_str().into());
                }
                if !extra.notes.is_empty() {
                    record.insert("notes".into(), json!(extra.notes));
                }
                if let Some((action, reason)) = &extra.would_halt {
                    record.insert("would_halt".into(), json!({"action": action, "reason": reason}));
                }
                if !extra.would_change.is_empty() {
                    record.insert("would_change".into(), json!(extra.would_change));
                }
            }
            Value::Object(record)
        });
        let changes = self.changes.iter().map(|change| {
            json!({
                "hook": change.hook.as_ref(),
                "field": change.field,
                "before": change.before.as_ref().map(|value| shown(change.field, value)),
                "after": shown(change.field, &change.after),
            })
        });
        let mut summary = json!({
            "action": self.action,
            "reason": self.reason,
            "halted_by": self.halted_by.as_deref(),
            "retry_feedback": texts(&self.retry_feedback),
            "additional_context": texts(&self.additional_context),
            "system_messages": texts(&self.system_messages),
            "inject_messages": self.inject_messages.len(),
            "changes": changes.collect::<Vec<_>>(),
            "runs": runs.collect::<Vec<_>>(),
            "ms": milliseconds(self.elapsed),
        });
        for (name, rule) in [("rule", &self.rule), ("suggested_rule", &self.suggested_rule)] {
            if let (Some(rule), Some(object)) = (rule, summary.as_object_mut()) {
                object.insert(name.into(), rule.as_str().into());
            }
        }
        summary
    }
}

fn texts(list: &[Attributed]) -> Vec<Value> {
    list.iter().map(|item| json!({"hook": item.hook.as_ref(), "text": item.text})).collect()
}

fn join(list: &[Attributed]) -> Option<String> {
    if list.is_empty() {
        return None;
    }
    Some(list.iter().map(|item| item.text.as_str()).collect::<Vec<_>>().join("\n"))
}

/// A duration in milliseconds, to the nanosecond: a Python function that does nothing takes 0.00005.
pub fn milliseconds(elapsed: Duration) -> f64 {
    elapsed.as_nanos() as f64 / 1e6
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.event(), self.summary())
    }
}
