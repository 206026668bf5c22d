//! What a hook is told: the event, who it happened to, and its fields as the hooks before it left them.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use memchr::memchr2;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::event::{Event, Field};
use super::filter::FilterSubject;
use super::moment::Moment;
use super::outcome::Outcome;
use super::payload::Payload;

/// What kind of agent an event belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentKind {
    /// The agent that the user talks to.
    #[default]
    Main,
    /// An agent that another agent calls as a tool.
    Sub,
    /// A member of a team.
    Teammate,
}

/// Who an event happened to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AgentIdentity {
    /// The agent's name; empty outside an agent.
    pub name: String,
    /// Main agent, sub-agent or teammate.
    pub kind: AgentKind,
    /// The name of the agent that started it.
    pub parent: Option<String>,
}

/// What the host of a chain knows beyond an event. An agent tells it; nothing that a model sends can change it.
pub trait Host: Send + Sync {
    /// The mode of the session at this moment, for example `review`.
    fn mode(&self) -> Option<String>;

    /// The effect that a tool declares for a call with these arguments: a name such as `read` or `write`,
    /// `unknown` where the tool cannot say, `None` where it declares nothing.
    fn tool_effect(&self, tool: &str, arguments: &Map<String, Value>) -> Option<String>;

    /// The directory that a tool takes relative paths from, if that is not the session's.
    fn tool_root(&self, tool: &str) -> Option<PathBuf>;
}

/// The [`Host`] of an event; nobody outside an agent.
#[derive(Clone, Default)]
pub struct HostHandle(Option<Arc<dyn Host>>);

impl HostHandle {
    /// Events of this host.
    pub fn new(host: Arc<dyn Host>) -> Self {
        HostHandle(Some(host))
    }
}

impl PartialEq for HostHandle {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(host), Some(other)) => Arc::ptr_eq(host, other),
            (None, None) => true,
            _ => false,
        }
    }
}

impl Eq for HostHandle {}

impl std::fmt::Debug for HostHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Host" } else { "no host" })
    }
}

/// The common fields of an event that stay the same through a turn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    /// The session that the event belongs to; empty outside a session.
    pub session_id: String,
    /// The turn that the event belongs to; empty outside a turn.
    pub turn_id: String,
    /// The agent that the event happened to.
    pub agent: AgentIdentity,
    /// The working directory of the session.
    pub cwd: PathBuf,
    /// How many times a hook has already sent this turn back.
    pub continuation: u32,
    /// The mode of the session where there is no host to ask for it.
    pub mode: Option<String>,
    /// Whom to ask for what the event does not say.
    pub host: HostHandle,
}

/// One event as one hook sees it. Immutable: a change makes a new context that shares the unchanged fields.
pub struct EventContext {
    /// Which event this is.
    pub event: Event,
    /// The common fields.
    pub scope: Arc<Scope>,
    /// When the dispatch began.
    pub started: Moment,
    /// When the budget of the whole chain ends.
    pub budget_end: Moment,
    /// What hooks and gates decided: set for observers only.
    pub outcome: Option<Arc<Outcome>>,
    sequence: u64,
    timestamp: OnceLock<f64>,
    fields: Fields,
}

/// The fields of an event, or where to get them from.
pub struct Fields {
    read: OnceLock<Vec<(Field, Payload)>>,
    source: Option<Box<dyn FieldSource>>,
}

/// Where the fields of an event come from when somebody reads them.
pub trait FieldSource: Send + Sync {
    /// All fields that the event carries. Called when the first is read, perhaps by several threads at a time.
    fn read(&self) -> Vec<(Field, Payload)>;
}

impl Fields {
    /// Fields that are read from `source` when the first of them is asked for.
    pub fn from_source(source: impl FieldSource + 'static) -> Self {
        Fields { read: OnceLock::new(), source: Some(Box::new(source)) }
    }

    fn get(&self) -> &Vec<(Field, Payload)> {
        if let Some(read) = self.read.get() {
            return read;
        }
        // Read before the cell is entered: a source may have to wait for a lock of its host (the interpreter's), whose
        // holder must not have to wait for the cell.
        let fields = self.source.as_ref().map(|source| source.read()).unwrap_or_default();
        self.read.get_or_init(|| fields)
    }
}

impl From<Vec<(Field, Payload)>> for Fields {
    fn from(fields: Vec<(Field, Payload)>) -> Self {
        Fields { read: OnceLock::from(fields), source: None }
    }
}

static SEQUENCE: AtomicU64 = AtomicU64::new(1);

impl EventContext {
    /// A new occurrence of `event`, with the fields that it carries and `budget` for the whole chain.
    pub fn new(event: Event, scope: Arc<Scope>, fields: impl Into<Fields>, now: Moment, budget: Duration) -> Self {
        EventContext {
            event,
            scope,
            started: now,
            budget_end: now + budget,
            outcome: None,
            sequence: SEQUENCE.fetch_add(1, Ordering::Relaxed),
            timestamp: OnceLock::new(),
            fields: fields.into(),
        }
    }

    /// The value of a field, if the event carries it.
    pub fn get(&self, field: Field) -> Option<&Payload> {
        self.fields().iter().find(|(name, _)| *name == field).map(|(_, value)| value)
    }

    /// All fields in the order in which they were set.
    pub fn fields(&self) -> &[(Field, Payload)] {
        self.fields.get()
    }

    /// The same occurrence with some fields replaced.
    pub fn with_fields(&self, changes: impl IntoIterator<Item = (Field, Payload)>) -> Self {
        let mut fields = self.fields().to_vec();
        let mut arguments_changed = false;
        for (field, value) in changes {
            arguments_changed |= field == Field::ToolArguments;
            match fields.iter_mut().find(|(name, _)| *name == field) {
                Some((_, slot)) => *slot = value,
                None => fields.push((field, value)),
            }
        }
        let context = self.derive(fields, self.outcome.clone());
        if arguments_changed { context.with_effect_of_new_arguments() } else { context }
    }

    /// What a call does may depend on its arguments, so other arguments may make it another effect.
    fn with_effect_of_new_arguments(self) -> Self {
        let Some(host) = &self.scope.host.0 else { return self };
        let (Some(tool), Some(effect)) = (self.tool_name(), self.get(Field::ToolEffect)) else { return self };
        let new = match self.get(Field::ToolArguments).and_then(|arguments| arguments.json().ok()) {
            Some(Value::Object(arguments)) => host.tool_effect(tool, arguments),
            _ => Some("unknown".to_owned()),
        };
        if effect.text() == new.as_deref() {
            return self;
        }
        let mut fields = self.fields().to_vec();
        if let Some((_, slot)) = fields.iter_mut().find(|(field, _)| *field == Field::ToolEffect) {
            *slot = new.map_or(Value::Null, Value::String).into();
        }
        let outcome = self.outcome.clone();
        self.derive(fields, outcome)
    }

    /// The mode of the session at this moment, for example `review`; `None` outside one, and for a session in none.
    pub fn mode(&self) -> Option<String> {
        match &self.scope.host.0 {
            Some(host) => host.mode(),
            None => self.scope.mode.clone(),
        }
    }

    /// The directory that a tool takes relative paths from: its own, or else the session's.
    pub fn tool_root(&self, tool: &str) -> PathBuf {
        let own = self.scope.host.0.as_ref().and_then(|host| host.tool_root(tool));
        own.unwrap_or_else(|| self.cwd())
    }

    /// The same occurrence as observers see it: with what was decided.
    pub fn with_outcome(&self, outcome: Arc<Outcome>) -> Self {
        self.derive(self.fields().to_vec(), Some(outcome))
    }

    fn derive(&self, fields: Vec<(Field, Payload)>, outcome: Option<Arc<Outcome>>) -> Self {
        EventContext {
            event: self.event,
            scope: self.scope.clone(),
            started: self.started,
            budget_end: self.budget_end,
            outcome,
            sequence: self.sequence,
            timestamp: OnceLock::from(self.timestamp()),
            fields: fields.into(),
        }
    }

    /// An identifier that is unique among all processes, made from a counter when it is read.
    pub fn event_id(&self) -> String {
        static PREFIX: OnceLock<u64> = OnceLock::new();
        let prefix = PREFIX.get_or_init(|| fastrand::u64(..));
        // The pid keeps a forked child, which inherits the prefix, from repeating its parent's ids.
        format!("evt_{prefix:016x}{:08x}{:x}", std::process::id(), self.sequence)
    }

    /// When the event happened, in seconds since the epoch; derived from the monotonic clock on the first reading, and
    /// the same for every hook that reads it.
    pub fn timestamp(&self) -> f64 {
        *self.timestamp.get_or_init(|| {
            let age = Moment::now().since(self.started);
            let wall = SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
            wall.duration_since(SystemTime::UNIX_EPOCH).map(|since| since.as_secs_f64()).unwrap_or_default()
        })
    }

    /// The working directory of the session, or the process's own outside one.
    pub fn cwd(&self) -> PathBuf {
        if self.scope.cwd.as_os_str().is_empty() {
            std::env::current_dir().unwrap_or_default()
        } else {
            self.scope.cwd.clone()
        }
    }

    /// Whether a field that filters look at is there and cannot be read: it has no JSON form, or another type than its
    /// events carry.
    pub fn is_unreadable(&self) -> bool {
        let unreadable =
            |field, fits: fn(&Value) -> bool| self.get(field).is_some_and(|payload| !payload.json().is_ok_and(fits));
        unreadable(Field::ToolArguments, Value::is_object)
            || unreadable(Field::ToolName, Value::is_string)
            || unreadable(Field::Model, Value::is_string)
    }

    /// What is left of the chain's budget, in milliseconds.
    pub fn budget_ms(&self) -> u64 {
        u64::try_from(self.budget_end.left().as_millis()).unwrap_or(u64::MAX)
    }

    /// The event as one JSON object: what a shell hook reads on its standard input.
    ///
    /// # Errors
    /// When a field has no JSON form; the message names the field.
    pub fn document(&self) -> Result<Map<String, Value>, String> {
        let mut document = self.common_fields();
        for (field, payload) in self.fields() {
            let value = rendered(*field, payload)?;
            if *field == Field::ToolArguments && self.get(Field::ToolArgumentsJson).is_none() {
                document.insert("tool_arguments_json".into(), value.to_string().into());
            }
            document.insert(field.as_str().into(), value.clone());
        }
        if let Some(outcome) = &self.outcome {
            document.insert("outcome".into(), outcome.summary());
        }
        Ok(document)
    }

    /// The text of [`EventContext::document`], written straight into one buffer: a payload of many megabytes is neither
    /// copied as a value first nor moved while the text grows.
    ///
    /// # Errors
    /// When a field has no JSON form; the message names the field.
    pub fn document_json(&self) -> Result<Vec<u8>, String> {
        let mut size = 1024;
        for (field, payload) in self.fields() {
            let weight = json_size(rendered(*field, payload)?);
            size += if *field == Field::ToolArguments { 2 * weight } else { weight };
        }
        let mut text = Vec::with_capacity(size + size / 16);
        push_json(&mut text, &Value::Object(self.common_fields()));
        text.pop();
        for (field, payload) in self.fields() {
            begin_entry(&mut text, *field);
            let start = text.len();
            push_json(&mut text, rendered(*field, payload)?);
            if *field == Field::ToolArguments && self.get(Field::ToolArgumentsJson).is_none() {
                let written = text[start..].to_vec();
                begin_entry(&mut text, Field::ToolArgumentsJson);
                push_json_as_text(&mut text, &written);
            }
        }
        if let Some(outcome) = &self.outcome {
            text.extend_from_slice(b",\"outcome\":");
            push_json(&mut text, &outcome.summary());
        }
        text.push(b'}');
        Ok(text)
    }

    fn common_fields(&self) -> Map<String, Value> {
        let mut document = Map::new();
        document.insert("event".into(), self.event.as_str().into());
        document.insert("event_id".into(), self.event_id().into());
        document.insert("session_id".into(), self.scope.session_id.as_str().into());
        document.insert("turn_id".into(), self.scope.turn_id.as_str().into());
        document.insert("agent".into(), json!(self.scope.agent));
        document.insert("cwd".into(), self.cwd().to_string_lossy().into());
        document.insert("timestamp".into(), self.timestamp().into());
        document.insert("continuation".into(), self.scope.continuation.into());
        if let Some(mode) = self.mode() {
            document.insert("mode".into(), mode.into());
        }
        document.insert("budget_ms".into(), self.budget_ms().into());
        document
    }
}

fn rendered(field: Field, payload: &Payload) -> Result<&Value, String> {
    payload.json().map_err(|error| format!("the field {field} has no JSON form: {error}"))
}

fn begin_entry(text: &mut Vec<u8>, field: Field) {
    text.extend_from_slice(b",\"");
    text.extend_from_slice(field.as_str().as_bytes());
    text.extend_from_slice(b"\":");
}

fn push_json(text: &mut Vec<u8>, value: &Value) {
    // Keys are text and memory takes everything, so nothing here can fail.
    let _ = serde_json::to_writer(text, value);
}

/// About how long the JSON of a value is: exact but for what has to be escaped.
fn json_size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 3,
        Value::Array(items) => 2 + items.iter().map(json_size).sum::<usize>(),
        Value::Object(map) => 2 + map.iter().map(|(key, value)| key.len() + 4 + json_size(value)).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 12,
    }
}

/// Writes JSON as a JSON string. In JSON only quotes and backslashes have to be escaped once more, so that what lies
/// between them is copied as it is.
fn push_json_as_text(text: &mut Vec<u8>, json: &[u8]) {
    text.push(b'"');
    let mut rest = json;
    while let Some(at) = memchr2(b'"', b'\\', rest) {
        text.extend_from_slice(&rest[..at]);
        text.extend_from_slice(&[b'\\', rest[at]]);
        rest = &rest[at + 1..];
    }
    text.extend_from_slice(rest);
    text.push(b'"');
}

impl FilterSubject for EventContext {
    fn tool_name(&self) -> Option<&str> {
        self.get(Field::ToolName)?.text()
    }

    fn model(&self) -> Option<&str> {
        self.get(Field::Model)?.text()
    }

    fn agent(&self) -> Option<&str> {
        Some(&self.scope.agent.name)
    }

    fn argument(&self, name: &str) -> Option<Cow<'_, str>> {
        match self.get(Field::ToolArguments)?.json().ok()?.get(name)? {
            Value::String(text) => Some(Cow::Borrowed(text)),
            other => Some(Cow::Owned(other.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn context() -> EventContext {
        EventContext::new(
            Event::PreToolExecution,
            Arc::default(),
            vec![
                (Field::ToolName, "shell".into()),
                (Field::ToolArguments, json!({"command": "ls", "lines": 3}).into()),
            ],
            Moment::now(),
            Duration::from_secs(30),
        )
    }

    #[test]
    fn a_change_makes_a_new_context_of_the_same_occurrence() {
        let before = context();
        let after = before.with_fields([(Field::ToolArguments, json!({"command": "pwd"}).into())]);
        assert_eq!(before.argument("command").as_deref(), Some("ls"));
        assert_eq!(after.argument("command").as_deref(), Some("pwd"));
        assert_eq!(before.event_id(), after.event_id());
        assert!(before.get(Field::ToolName).unwrap().same(after.get(Field::ToolName).unwrap()));
        assert_ne!(before.event_id(), context().event_id());
    }

    #[test]
    fn the_document_holds_common_fields_and_the_exact_arguments() {
        let document = context().document().unwrap();
        assert_eq!(document["event"], "pre_tool_execution");
        assert_eq!(document["tool_arguments"]["lines"], 3);
        assert_eq!(document["tool_arguments_json"], r#"{"command":"ls","lines":3}"#);
        assert!(document["budget_ms"].as_u64().unwrap() > 29_000);
        assert_eq!(document["agent"]["kind"], "main");
    }

    proptest! {
        #[test]
        fn the_text_of_the_document_is_the_document(text: String, key: String, given: bool, number: f64) {
            let arguments = json!({key: text, "list": [text, null, number], "nested": {"quotes": "\"\\\n\u{1}"}});
            let mut fields = vec![(Field::ToolName, text.as_str().into()), (Field::ToolArguments, arguments.into())];
            if given {
                fields.push((Field::ToolArgumentsJson, "{ }".into()));
            }
            let context = EventContext::new(
                Event::PreToolExecution, Arc::default(), fields, Moment::now(), Duration::from_secs(30),
            );
            let mut written: Map<String, Value> = serde_json::from_slice(&context.document_json().unwrap()).unwrap();
            let mut document = context.document().unwrap();
            for document in [&mut written, &mut document] {
                document.remove("budget_ms").unwrap();
            }
            prop_assert_eq!(written, document);
        }
    }
}
