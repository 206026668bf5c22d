//! A chain tried on what was recorded: what would it have decided?
//!
//! Tools and models never run in a replay, and hooks that start programs or ask models only on request. A driver reads
//! [`Recorded`] events, lets [`Replay::begin`] make a dispatch of each, runs it in its own way, and hands it to
//! [`Replay::end`], which says what is different. Nothing is counted in the chain's statistics and nothing is recorded.

use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::chain::{HookChain, Snapshot};
use super::context::{AgentIdentity, EventContext, Scope};
use super::dispatch::Dispatch;
use super::event::{Action, Event, Field};
use super::moment::Moment;
use super::outcome::Outcome;
use super::payload::Payload;
use super::record::VERSION;
use super::redact::Redactor;

/// What was decided about one event.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Decision {
    /// Stop, skip, ask or nothing.
    pub action: Option<Action>,
    /// Why.
    pub reason: Option<String>,
    /// Which hook decided.
    pub halted_by: Option<String>,
}

impl Decision {
    /// Whether the step was refused.
    pub fn refuses(&self) -> bool {
        matches!(self.action, Some(Action::Skip | Action::Stop))
    }
}

/// One recorded event.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The number of its line, counted from 1.
    pub line: usize,
    /// Which event.
    pub event: Event,
    /// Its identifier when it happened.
    pub event_id: String,
    /// The session, the turn and the rest, as they were.
    pub scope: Arc<Scope>,
    /// What was decided.
    pub decision: Decision,
    fields: BTreeMap<Field, Value>,
    finals: BTreeMap<Field, Value>,
    changes: Vec<(String, Field)>,
}

/// A line that is not a recorded event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

#[derive(Deserialize)]
struct Line {
    version: u64,
    event: String,
    #[serde(default)]
    event_id: String,
    #[serde(default)]
    session_id: String,
    #[serde(default)]
    turn_id: String,
    #[serde(default)]
    agent: AgentIdentity,
    #[serde(default)]
    cwd: PathBuf,
    #[serde(default)]
    continuation: u32,
    #[serde(default)]
    mode: Option<String>,
    fields: Map<String, Value>,
    #[serde(default, rename = "final")]
    finals: Map<String, Value>,
    outcome: LineOutcome,
}

#[derive(Deserialize)]
struct LineOutcome {
    #[serde(flatten)]
    decision: Decision,
    #[serde(default)]
    changes: Vec<LineChange>,
    #[serde(default)]
    retry_feedback: Vec<LineText>,
    #[serde(default)]
    additional_context: Vec<LineText>,
    #[serde(default)]
    inject_messages: u64,
}

#[derive(Deserialize)]
struct LineChange {
    hook: String,
    field: Field,
}

#[derive(Deserialize)]
struct LineText {
    text: String,
}

impl Recorded {
    /// Reads one line of a record, with or without its line end.
    ///
    /// # Errors
    /// A line that is cut off, is something else, or is of a later version.
    pub fn parse(number: usize, bytes: &[u8]) -> Result<Self, BadLine> {
        let bad = |reason: String| BadLine { line: number, reason };
        let line: Line = serde_json::from_slice(bytes).map_err(|error| {
            bad(if error.is_eof() { "it is cut off".to_owned() } else { format!("it is no recorded event: {error}") })
        })?;
        if line.version != VERSION {
            return Err(bad(format!("version {} of the format is not known to this hookwright", line.version)));
        }
        let event: Event = line.event.parse().map_err(|error| bad(format!("{error}")))?;
        let Line { session_id, turn_id, agent, cwd, continuation, mode, .. } = line;
        let known = |map: Map<String, Value>| -> BTreeMap<Field, Value> {
            map.into_iter().filter_map(|(name, value)| Some((Field::parse(&name)?, value))).collect()
        };
        let mut finals = known(line.finals);
        let outcome = line.outcome;
        added(&mut finals, Field::RetryFeedback, outcome.retry_feedback.into_iter().map(|item| item.text));
        added(&mut finals, Field::AdditionalContext, outcome.additional_context.into_iter().map(|item| item.text));
        if outcome.inject_messages > 0 {
            finals.insert(Field::InjectMessages, outcome.inject_messages.into());
        }
        Ok(Recorded {
            line: number,
            event,
            event_id: line.event_id,
            scope: Arc::new(Scope { session_id, turn_id, agent, cwd, continuation, mode, ..Scope::default() }),
            decision: outcome.decision,
            fields: known(line.fields),
            finals,
            changes: outcome.changes.into_iter().map(|change| (change.hook, change.field)).collect(),
        })
    }

    /// The value of a field before any hook ran, secrets redacted.
    pub fn field(&self, field: Field) -> Option<&Value> {
        self.fields.get(&field)
    }
}

/// What hooks added, as one value; nothing if they added nothing.
fn added(values: &mut BTreeMap<Field, Value>, field: Field, texts: impl Iterator<Item = String>) {
    let texts: Vec<Value> = texts.map(Value::String).collect();
    if !texts.is_empty() {
        values.insert(field, Value::Array(texts));
    }
}

/// Reads the next event of a record; empty lines are passed over. `number` counts the lines. `None` at the end.
///
/// # Errors
/// When the record cannot be read.
pub fn read_next(record: &mut impl BufRead, number: &mut usize) -> io::Result<Option<Result<Recorded, BadLine>>> {
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        if record.read_until(b'\n', &mut bytes)? == 0 {
            return Ok(None);
        }
        *number += 1;
        if !bytes.trim_ascii().is_empty() {
            return Ok(Some(Recorded::parse(*number, &bytes)));
        }
    }
}

/// One event of which the chain makes something else than was recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// What was decided then.
    pub before: Decision,
    /// What this chain decides.
    pub after: Decision,
    /// The fields that end up different: then and now, secrets redacted. For what hooks only add to, the texts.
    pub fields: Vec<(Field, Option<Value>, Option<Value>)>,
}

/// A chain on its way through a record.
pub struct Replay {
    snapshot: Arc<Snapshot>,
    side_effects: bool,
    redactor: Redactor,
    left_out: BTreeMap<String, u64>,
}

impl Replay {
    /// Replays the chain as it is now. `side_effects`: whether hooks that start programs or ask models run.
    pub fn new(chain: &HookChain, side_effects: bool) -> Self {
        let redactor = Redactor::default();
        Replay { snapshot: chain.snapshot(), side_effects, redactor, left_out: BTreeMap::new() }
    }

    /// The hooks that were left out because they start programs or ask models, with the number of events on which they
    /// would have run.
    pub fn left_out(&self) -> &BTreeMap<String, u64> {
        &self.left_out
    }

    fn leaves_out(&self, event: Event, hook: &str) -> bool {
        let lineup = self.snapshot.of(event);
        !self.side_effects
            && lineup.entries.iter().any(|entry| *entry.meta.name == *hook && entry.hook.has_side_effects())
    }

    /// A dispatch of a recorded event. What a hook that is left out changed then stands as it was recorded.
    pub fn begin(&mut self, recorded: &Recorded) -> Dispatch {
        let mut values = recorded.fields.clone();
        for (hook, field) in &recorded.changes {
            if self.leaves_out(recorded.event, hook)
                && let Some(value) = recorded.finals.get(field).filter(|_| !accumulated(*field))
            {
                values.insert(*field, value.clone());
            }
        }
        let fields: Vec<_> = values.into_iter().map(|(field, value)| (field, Payload::from(value))).collect();
        let context =
            EventContext::new(recorded.event, recorded.scope.clone(), fields, Moment::now(), self.snapshot.budget);
        let mut entries = Vec::new();
        for entry in &self.snapshot.of(recorded.event).entries {
            if self.side_effects || !entry.hook.has_side_effects() {
                entries.push(entry.clone());
            } else if entry.meta.enabled && entry.filter.matches(&context) {
                *self.left_out.entry(entry.meta.name.to_string()).or_default() += 1;
            }
        }
        Dispatch::new(Arc::new(context), Arc::new(entries.into_iter().collect()), self.snapshot.shadow)
    }

    /// Ends a dispatch that [`Replay::begin`] made of `recorded`: what came out differently, if anything.
    ///
    /// A refusal by a hook that is left out now stands, and so does what it changed or added.
    pub fn end(&self, recorded: &Recorded, dispatch: Dispatch) -> Option<Difference> {
        let (_, outcome) = dispatch.finish();
        let mut after = self.decision(&outcome);
        let before = recorded.decision.clone();
        if before.halted_by.as_deref().is_some_and(|hook| self.leaves_out(recorded.event, hook)) {
            after = before.clone();
        }
        let now = self.final_values(&outcome);
        let mut names: Vec<Field> = recorded.finals.keys().chain(now.keys()).copied().collect();
        names.sort_unstable();
        names.dedup();
        let left_out = |field: Field| {
            recorded.changes.iter().any(|(hook, changed)| *changed == field && self.leaves_out(recorded.event, hook))
        };
        let mut fields = Vec::new();
        for field in names.into_iter().filter(|field| !(accumulated(*field) && left_out(*field))) {
            let then = recorded.finals.get(&field).or_else(|| recorded.fields.get(&field));
            let untouched = || outcome.field(field).and_then(|value| value.json().ok());
            let now = now.get(&field).or_else(untouched);
            if then != now {
                fields.push((field, then.cloned(), now.cloned()));
            }
        }
        let differs = before != after || !fields.is_empty();
        differs.then_some(Difference { before, after, fields })
    }

    fn decision(&self, outcome: &Outcome) -> Decision {
        // A gate in shadow mode is tried here: what it would have done is what is asked for.
        let shadows = || outcome.hooks.iter().zip(&outcome.runs);
        let shadow = shadows().find_map(|(hook, run)| {
            let (action, reason) = run.extra.as_ref()?.would_halt.as_ref()?;
            Some((hook.name.as_ref(), *action, reason))
        });
        if let (None, Some((name, action, reason))) = (outcome.action, shadow) {
            return Decision {
                action: Some(action),
                reason: Some(self.redactor.redact_text(reason).into_owned()),
                halted_by: Some(name.to_owned()),
            };
        }
        Decision {
            action: outcome.action,
            reason: outcome.reason.as_deref().map(|reason| self.redactor.redact_text(reason).into_owned()),
            halted_by: outcome.halted_by.as_deref().map(str::to_owned),
        }
    }

    /// What hooks replaced and added, as a record holds it.
    fn final_values(&self, outcome: &Outcome) -> BTreeMap<Field, Value> {
        let replaced = outcome.replaced_fields();
        let mut values: BTreeMap<Field, Value> =
            replaced.into_iter().filter_map(|(name, value)| Some((Field::parse(&name)?, value))).collect();
        for (field, list) in
            [(Field::RetryFeedback, &outcome.retry_feedback), (Field::AdditionalContext, &outcome.additional_context)]
        {
            added(&mut values, field, list.iter().map(|item| item.text.clone()));
        }
        if !outcome.inject_messages.is_empty() {
            values.insert(Field::InjectMessages, outcome.inject_messages.len().into());
        }
        values.values_mut().for_each(|value| self.redactor.redact_value(value));
        values
    }
}

fn accumulated(field: Field) -> bool {
    super::result::accumulates(field)
}

#[cfg(test)]
mod tests;
