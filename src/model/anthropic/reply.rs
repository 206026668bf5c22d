//! What comes back from the Messages API: blocks, whole or put together.

use serde_json::{Map, Value};

use super::super::{FailureKind, ModelFailure, Reply, StopReason, arguments, call_id, trouble};
use super::THINKING;
use crate::message::{Usage, json};

/// Reads a reply that came in one piece.
///
/// # Errors
/// A failure that the server tells of, or that this is no reply.
///
/// ```
/// use hookwright::model::anthropic;
/// let reply = anthropic::reply(r#"{"type": "message", "content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"}"#)?;
/// assert_eq!((reply.content.text(), reply.stop_reason.as_str()), ("hi".into(), "stop"));
/// # Ok::<(), hookwright::model::ModelFailure>(())
/// ```
pub fn reply(body: &str) -> Result<Reply, ModelFailure> {
    let body = body.trim_start_matches('\u{feff}');
    let value: Value = json::from_str(body).map_err(|_| trouble::not_json(body))?;
    let Value::Object(object) = value else {
        return Err(trouble::not_json(body));
    };
    if let Some(failure) = trouble::in_reply(&object) {
        return Err(failure);
    }
    let mut whole = Whole::default();
    match object.get("content") {
        Some(Value::Array(blocks)) => whole.blocks.extend(blocks.iter().filter_map(Block::whole)),
        Some(Value::String(text)) => whole.blocks.push(Block { text: text.clone(), ..Block::of("text") }),
        Some(Value::Null) => {}
        _ => return Err(ModelFailure::new(FailureKind::InvalidReply, "the model's answer has no content in it")),
    }
    whole.stop = object.get("stop_reason").and_then(Value::as_str).map(str::to_owned);
    whole.model = object.get("model").and_then(Value::as_str).map(str::to_owned);
    whole.tokens.read(object.get("usage"));
    Ok(whole.into_reply())
}

/// A block as far as it has come in.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub(super) kind: String,
    /// The text, the thinking, or the text of the input.
    pub(super) text: String,
    pub(super) signature: String,
    pub(super) fields: Map<String, Value>,
}

impl Block {
    pub(super) fn of(kind: &str) -> Self {
        Block { kind: kind.to_owned(), ..Block::default() }
    }

    /// A block that is there as a whole, or the beginning of one.
    pub(super) fn whole(value: &Value) -> Option<Self> {
        let fields = value.as_object()?.clone();
        let text = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let kind = text("type");
        let content = match kind.as_str() {
            "tool_use" => match fields.get("input") {
                Some(Value::String(text)) => text.clone(),
                // What every call begins with; the input follows in pieces.
                Some(Value::Object(input)) if input.is_empty() => String::new(),
                None | Some(Value::Null) => String::new(),
                Some(other) => other.to_string(),
            },
            "thinking" => text("thinking"),
            _ => text("text"),
        };
        Some(Block { text: content, signature: text("signature"), kind, fields })
    }

    pub(super) fn field(&self, name: &str) -> String {
        self.fields.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    }
}

/// Token counts, which come at the beginning, at the end, or both.
#[derive(Debug, Default)]
pub(super) struct Tokens(Map<String, Value>);

impl Tokens {
    pub(super) fn read(&mut self, usage: Option<&Value>) {
        if let Some(Value::Object(usage)) = usage {
            self.0.extend(
                usage.iter().filter(|(_, count)| count.is_number()).map(|(name, count)| (name.clone(), count.clone())),
            );
        }
    }

    /// The API counts what it has in its cache apart from the rest of the input.
    fn usage(&self) -> Usage {
        let count = |name: &str| {
            self.0
                .get(name)
                .and_then(|count| count.as_u64().or_else(|| count.as_f64().map(|count| count as u64)))
                .unwrap_or(0)
        };
        let (read, written) = (count("cache_read_input_tokens"), count("cache_creation_input_tokens"));
        Usage {
            input_tokens: count("input_tokens").saturating_add(read).saturating_add(written),
            output_tokens: count("output_tokens"),
            cached_tokens: read,
            cache_write_tokens: written,
            reasoning_tokens: 0,
        }
    }
}

/// A reply as far as it has come in.
#[derive(Debug, Default)]
pub(super) struct Whole {
    pub(super) blocks: Vec<Block>,
    pub(super) stop: Option<String>,
    pub(super) model: Option<String>,
    pub(super) tokens: Tokens,
}

impl Whole {
    pub(super) fn into_reply(self) -> Reply {
        let mut reply = Reply::text("");
        let (mut texts, mut reasoning, mut thinking) = (Vec::new(), String::new(), Vec::new());
        let length = matches!(self.stop.as_deref(), Some("max_tokens" | "model_context_window_exceeded"));
        let last = self.blocks.len().checked_sub(1);
        for (place, block) in self.blocks.into_iter().enumerate() {
            match block.kind.as_str() {
                "text" => texts.push(block.text),
                "thinking" => {
                    reasoning.push_str(&block.text);
                    let mut whole = block.fields;
                    whole.insert("thinking".into(), block.text.into());
                    whole.insert("signature".into(), block.signature.into());
                    thinking.push(Value::Object(whole));
                }
                "redacted_thinking" => thinking.push(Value::Object(block.fields)),
                "tool_use" => {
                    // The limit was reached before the input began.
                    let cut = length && Some(place) == last && block.text.trim().is_empty();
                    let text = if cut { "{" } else { block.text.as_str() };
                    reply.tool_calls.append(&mut arguments::calls(block.field("id"), block.field("name"), text));
                }
                _ => {}
            }
        }
        call_id::make_unique(&mut reply.tool_calls, Default::default());
        reply.content = texts.concat().into();
        reply.reasoning = Some(reasoning).filter(|reasoning| !reasoning.is_empty());
        if !thinking.is_empty() {
            reply.extra.insert(THINKING.into(), Value::Array(thinking));
        }
        let usual = if reply.tool_calls.is_empty() { StopReason::Stop } else { StopReason::ToolCalls };
        reply.stop_reason = match self.stop.as_deref() {
            _ if length => StopReason::Length,
            Some("refusal") => StopReason::Refusal,
            None | Some("" | "end_turn" | "stop_sequence" | "tool_use" | "stop") => usual,
            Some(_) if usual == StopReason::ToolCalls => usual,
            Some(other) => StopReason::Other(other.to_owned()),
        };
        reply.usage = self.tokens.usage();
        reply.model = self.model;
        reply
    }
}
