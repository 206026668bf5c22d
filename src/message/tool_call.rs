//! One call of a tool, as a model asks for it.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::json;

/// One call of a tool, as a model asks for it.
///
/// The arguments exist twice: decoded, and as the exact text that the model sent. They cannot fall apart, since both
/// are set together. Text that is not a JSON object is no error of the reply: the call keeps the
/// [`ArgumentsError`], which the loop reports to the model as the result of this one call.
///
/// In JSON: `{"id", "name", "arguments": {…}}`, and `arguments_json` with the exact text where that is not simply
/// the compact form of the object. Arguments that could not be decoded stand as their text in `arguments`.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// Names the call inside its history; the result refers to it.
    pub id: String,
    /// The tool that is asked for.
    pub name: String,
    /// Fields that this version does not know, echoed to the server as they are.
    pub extra: Map<String, Value>,
    arguments: Result<Map<String, Value>, ArgumentsError>,
    /// The exact text; `None` if it is the compact form of `arguments`.
    text: Option<Box<str>>,
}

impl ToolCall {
    /// A call with arguments that are known to be an object.
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: Map<String, Value>) -> Self {
        ToolCall { id: id.into(), name: name.into(), extra: Map::new(), arguments: Ok(arguments), text: None }
    }

    /// A call with arguments as a model sends them: one JSON object as text.
    ///
    /// Empty text and `null` mean no arguments; an object that was encoded twice is decoded twice; lone surrogate
    /// escapes become U+FFFD.
    ///
    /// ```
    /// use hookwright::message::ToolCall;
    /// let call = ToolCall::from_text("c1", "grep", r#"{"pattern": "fn main"}"#);
    /// assert_eq!(call.arguments().unwrap()["pattern"], "fn main");
    /// assert_eq!(call.arguments_json(), r#"{"pattern": "fn main"}"#);
    ///
    /// let broken = ToolCall::from_text("c2", "grep", r#"{"pattern": "fn main"#);
    /// assert!(broken.arguments().unwrap_err().is_cut_off());
    /// ```
    pub fn from_text(id: impl Into<String>, name: impl Into<String>, text: impl Into<String>) -> Self {
        let text: String = text.into();
        let arguments = decode(&text);
        let plain = arguments.as_ref().is_ok_and(|arguments| is_compact_form(arguments, &text));
        let text = (!plain).then(|| text.into_boxed_str());
        ToolCall { id: id.into(), name: name.into(), extra: Map::new(), arguments, text }
    }

    /// The decoded arguments.
    ///
    /// # Errors
    /// Why the text that the model sent is not one JSON object.
    pub fn arguments(&self) -> Result<&Map<String, Value>, &ArgumentsError> {
        self.arguments.as_ref()
    }

    /// The arguments as text: exactly what the model sent, or the compact form of what replaced it.
    pub fn arguments_json(&self) -> Cow<'_, str> {
        match (&self.text, &self.arguments) {
            (Some(text), _) => Cow::Borrowed(text),
            (None, Ok(arguments)) => Cow::Owned(compact(arguments)),
            // Arguments that could not be decoded always have a text.
            (None, Err(_)) => Cow::Borrowed(""),
        }
    }

    /// Replaces the arguments, and with them the text.
    pub fn set_arguments(&mut self, arguments: Map<String, Value>) {
        self.arguments = Ok(arguments);
        self.text = None;
    }
}

/// Why the arguments of a call could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentsError {
    /// The text is not JSON.
    #[error("the arguments are not valid JSON: {reason} at line {line} column {column}{near}; send one JSON object",
        near = if .near.is_empty() { String::new() } else { format!(", near {:?}", .near) })]
    Syntax {
        /// What is wrong there.
        reason: String,
        /// The line of the text, from 1.
        line: usize,
        /// The byte of that line, from 1.
        column: usize,
        /// The text around that place, at most 40 characters.
        near: String,
        /// Whether the text ends too early, as when the model hit its output limit.
        cut_off: bool,
    },
    /// The text is JSON, but not an object.
    #[error("the arguments are {found}; send one JSON object, such as {{\"name\": \"value\"}}")]
    NotAnObject {
        /// What it is instead, with its article.
        found: &'static str,
    },
}

impl ArgumentsError {
    /// Whether the text ends too early, as when the model hit its output limit.
    pub fn is_cut_off(&self) -> bool {
        matches!(self, ArgumentsError::Syntax { cut_off: true, .. })
    }

    fn syntax(text: &str, error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let mut reason = error.to_string();
        if let Some(end) = reason.rfind(" at line ") {
            reason.truncate(end);
        }
        ArgumentsError::Syntax { reason, line, column, near: around(text, line, column), cut_off: error.is_eof() }
    }
}

/// At most 40 characters around a place in `text`.
fn around(text: &str, line: usize, column: usize) -> String {
    let line = text.split('\n').nth(line.saturating_sub(1)).unwrap_or_default();
    let at = line.floor_char_boundary(column.saturating_sub(1).min(line.len()));
    let before = line[..at].char_indices().rev().nth(19).map_or(0, |(start, _)| start);
    line[before..].chars().take(40).collect()
}

fn decode(text: &str) -> Result<Map<String, Value>, ArgumentsError> {
    decode_once(text).and_then(|value| match value {
        // A model or a proxy that encoded the object twice.
        Value::String(inner) if inner.trim_start().starts_with('{') => object(decode_once(&inner)?),
        value => object(value),
    })
}

fn decode_once(text: &str) -> Result<Value, ArgumentsError> {
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    json::from_str(text).map_err(|error| ArgumentsError::syntax(text, &error))
}

fn object(value: Value) -> Result<Map<String, Value>, ArgumentsError> {
    let found = match value {
        Value::Object(arguments) => return Ok(arguments),
        Value::Null => return Ok(Map::new()),
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
    };
    Err(ArgumentsError::NotAnObject { found })
}

fn compact(arguments: &Map<String, Value>) -> String {
    // A map with string keys and JSON values can always be written to memory.
    serde_json::to_string(arguments).unwrap_or_default()
}

/// Whether `text` is what `arguments` look like in compact form; stops at the first difference.
fn is_compact_form(arguments: &Map<String, Value>, text: &str) -> bool {
    struct Rest<'a>(&'a [u8]);

    impl Write for Rest<'_> {
        fn write(&mut self, written: &[u8]) -> io::Result<usize> {
            self.0 = self.0.strip_prefix(written).ok_or(io::ErrorKind::Other)?;
            Ok(written.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut rest = Rest(text.as_bytes());
    serde_json::to_writer(&mut rest, arguments).is_ok() && rest.0.is_empty()
}

impl Serialize for ToolCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("name", &self.name)?;
        match (&self.arguments, &self.text) {
            (Ok(arguments), text) => {
                map.serialize_entry("arguments", arguments)?;
                if let Some(text) = text {
                    map.serialize_entry("arguments_json", text)?;
                }
            }
            (Err(_), text) => map.serialize_entry("arguments", text)?,
        }
        for (key, value) in &self.extra {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for ToolCall {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Wire {
            #[serde(default)]
            id: String,
            name: String,
            #[serde(default)]
            arguments: Value,
            #[serde(default)]
            arguments_json: Option<String>,
            #[serde(flatten)]
            extra: Map<String, Value>,
        }
        let Wire { id, name, arguments, arguments_json, extra } = Wire::deserialize(deserializer)?;
        let call = match (arguments, arguments_json) {
            (Value::String(text), _) | (Value::Null, Some(text)) => ToolCall::from_text(id, name, text),
            // The object is what counts: a text that says something else is out of date.
            (Value::Object(arguments), Some(text)) => match ToolCall::from_text(id, name, text) {
                call if call.arguments.as_ref() == Ok(&arguments) => call,
                call => ToolCall::new(call.id, call.name, arguments),
            },
            (Value::Object(arguments), None) => ToolCall::new(id, name, arguments),
            (Value::Null, None) => ToolCall::new(id, name, Map::new()),
            (other, _) => ToolCall::from_text(id, name, other.to_string()),
        };
        Ok(ToolCall { extra, ..call })
    }
}
