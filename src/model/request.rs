//! What a model is asked, and what it answers.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::message::{Content, History, Message, ToolCall, Usage};

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDescription {
    /// The name that calls use.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// The JSON Schema of its arguments: an object.
    pub schema: Arc<Value>,
}

/// What a model is asked. Cheap to make: the history and the tools are shared.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Request {
    /// The name that is sent to the server; a hook may have changed it from [`Model::name`](super::Model::name).
    pub model: Option<Arc<str>>,
    /// The instructions; none means no system message.
    pub system: Option<Arc<str>>,
    /// The conversation.
    pub messages: History,
    /// Messages for this request only, behind the conversation; they are not stored.
    pub inject_messages: Vec<Arc<Message>>,
    /// Notes of hooks for this request only, at the very end; they are not stored.
    pub additional_context: Vec<String>,
    /// The tools that may be called.
    pub tools: Arc<[ToolDescription]>,
    /// Settings that are passed on as they are, such as a temperature.
    pub settings: Map<String, Value>,
}

impl Request {
    /// The conversation and what is injected behind it, oldest first.
    pub fn all_messages(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        self.messages.iter().chain(&self.inject_messages)
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// It had finished.
    Stop,
    /// It waits for tools.
    ToolCalls,
    /// It ran into the limit on its output; the last tool call may be cut off.
    Length,
    /// It, or a filter at the server, refused.
    Refusal,
    /// Whatever else the server says.
    Other(String),
}

impl StopReason {
    /// The name on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            StopReason::Stop => "stop",
            StopReason::ToolCalls => "tool_calls",
            StopReason::Length => "length",
            StopReason::Refusal => "refusal",
            StopReason::Other(other) => other,
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<&str> for StopReason {
    fn from(name: &str) -> Self {
        match name {
            "stop" => StopReason::Stop,
            "tool_calls" => StopReason::ToolCalls,
            "length" => StopReason::Length,
            "refusal" => StopReason::Refusal,
            other => StopReason::Other(other.to_owned()),
        }
    }
}

impl Serialize for StopReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for StopReason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(StopReason::from(String::deserialize(deserializer)?.as_str()))
    }
}

/// What a model answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// What it says.
    #[serde(default)]
    pub content: Content,
    /// The tools that it asks for. Whether there are any is what counts, not the stop reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The thinking that it shows apart from that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The tokens that were used.
    #[serde(default)]
    pub usage: Usage,
    /// Why it stopped.
    pub stop_reason: StopReason,
    /// The model that answered, if the server says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Opaque fields that the server wants to see again; they go into the message.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl Reply {
    /// A reply that ends the turn with `content`.
    pub fn text(content: impl Into<Content>) -> Self {
        Reply {
            content: content.into(),
            tool_calls: Vec::new(),
            reasoning: None,
            usage: Usage::default(),
            stop_reason: StopReason::Stop,
            model: None,
            extra: Map::new(),
        }
    }

    /// A reply that asks for `tool_calls` and says nothing.
    pub fn tool_calls(tool_calls: Vec<ToolCall>) -> Self {
        Reply { tool_calls, stop_reason: StopReason::ToolCalls, ..Reply::text("") }
    }

    /// The same reply, having used `usage`.
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// The reply as the message that is stored.
    ///
    /// ```
    /// use hookwright::message::Message;
    /// use hookwright::model::Reply;
    /// assert_eq!(Reply::text("hello").into_message(), Message::assistant("hello"));
    /// ```
    pub fn into_message(self) -> Message {
        let Reply { content, tool_calls, reasoning, extra, usage: _, stop_reason: _, model: _ } = self;
        Message { tool_calls, reasoning, extra, ..Message::assistant(content) }
    }
}
