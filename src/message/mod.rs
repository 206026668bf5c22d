//! Messages: plain data that round-trips through JSON, and the history that a conversation is.
//!
//! Everything here is a value. A [`Message`] is shared as `Arc<Message>` once it is part of a [`History`], so that
//! a request, a hook and the session can hold the same ten thousand messages without a copy.

mod content;
mod history;
pub mod json;
mod timestamp;
mod tool_call;
mod usage;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use content::{Content, ImagePart, Part, TextPart};
pub use history::History;
pub use timestamp::{InvalidTimestamp, Timestamp};
pub use tool_call::{ArgumentsError, ToolCall};
pub use usage::Usage;

use crate::suggest::did_you_mean;

/// Who a message is from, as models see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions that stand over the conversation.
    System,
    /// The person, or whoever speaks to the agent.
    User,
    /// The model.
    Assistant,
    /// The result of one tool call.
    Tool,
}

impl Role {
    /// Every role.
    pub const ALL: &'static [Role] = &[Role::System, Role::User, Role::Assistant, Role::Tool];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A role that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown role {name:?}; {}", match .suggestion {
    Some(suggestion) => format!("did you mean {suggestion:?}?"),
    None => "use system, user, assistant or tool".to_owned(),
})]
pub struct UnknownRole {
    /// What was asked for.
    pub name: String,
    /// The nearest real role.
    pub suggestion: Option<&'static str>,
}

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(name: &str) -> Result<Self, UnknownRole> {
        Role::ALL.iter().copied().find(|role| role.as_str() == name).ok_or_else(|| UnknownRole {
            name: name.to_owned(),
            suggestion: did_you_mean(name, Role::ALL.iter().map(|role| role.as_str())),
        })
    }
}

/// One message of a conversation.
///
/// In JSON, fields that are empty are left out, `content` is a string or a list of parts (`null` is read as empty),
/// and fields that this version does not know survive a load and a save in [`extra`](Message::extra).
///
/// ```
/// use hookwright::message::Message;
/// let message: Message = serde_json::from_str(r#"{"role":"user","content":"hello","pinned":true}"#)?;
/// assert_eq!(message.text(), "hello");
/// assert_eq!(serde_json::to_string(&message)?, r#"{"role":"user","content":"hello","pinned":true}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who it is from, as models see it.
    pub role: Role,
    /// The text, or text and images.
    #[serde(default, deserialize_with = "content::null_is_empty")]
    pub content: Content,
    /// The tools that an assistant message asks for, in the order in which the model named them.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub tool_calls: Vec<ToolCall>,
    /// On a tool message: the call that this is the result of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The thinking that a model shows apart from its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The agent or person that wrote it. Identity is this field, never markup inside the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// Whom it is addressed to; empty means nobody in particular.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub recipients: Vec<String>,
    /// On a tool message: the call failed, was refused, or was interrupted.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_error: bool,
    /// On a failed tool message: what to do instead, apart from what went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The name of the message inside its session; given by the session when it is appended without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// When it was appended; given by the session's clock when it is appended without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Timestamp>,
    /// Fields that this version does not know, kept as they are.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Message {
    /// A message of `role` with `content` and nothing else.
    pub fn new(role: Role, content: impl Into<Content>) -> Self {
        Message {
            role,
            content: content.into(),
            tool_calls: Vec::new(),
            tool_call_id: None,
            reasoning: None,
            sender: None,
            recipients: Vec::new(),
            is_error: false,
            hint: None,
            id: None,
            timestamp: None,
            extra: Map::new(),
        }
    }

    /// Instructions that stand over the conversation.
    pub fn system(content: impl Into<Content>) -> Self {
        Message::new(Role::System, content)
    }

    /// What the user says.
    pub fn user(content: impl Into<Content>) -> Self {
        Message::new(Role::User, content)
    }

    /// What the model says; see [`with_tool_calls`](Message::with_tool_calls) for the tools it asks for.
    pub fn assistant(content: impl Into<Content>) -> Self {
        Message::new(Role::Assistant, content)
    }

    /// The result of the call `tool_call_id`.
    ///
    /// ```
    /// use hookwright::message::Message;
    /// let result = Message::tool_result("c1", "3 files").failed();
    /// assert_eq!((result.tool_call_id.as_deref(), result.is_error), (Some("c1"), true));
    /// ```
    pub fn tool_result(tool_call_id: impl Into<String>, content: impl Into<Content>) -> Self {
        Message { tool_call_id: Some(tool_call_id.into()), ..Message::new(Role::Tool, content) }
    }

    /// The same message, asking for `tool_calls`.
    pub fn with_tool_calls(mut self, tool_calls: Vec<ToolCall>) -> Self {
        self.tool_calls = tool_calls;
        self
    }

    /// The same message, marked as the result of a call that failed.
    pub fn failed(mut self) -> Self {
        self.is_error = true;
        self
    }

    /// The same message, written by `sender`.
    pub fn from_sender(mut self, sender: impl Into<String>) -> Self {
        self.sender = Some(sender.into());
        self
    }

    /// The text of the message: its text, or its text parts joined by a line break. Borrowed where it can be.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        self.content.text()
    }

    /// The images of the message, in order.
    pub fn images(&self) -> impl Iterator<Item = &ImagePart> {
        self.content.images()
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

/// Reads `null` as the default: servers write it for lists that are empty.
fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests;
