//! What comes back from a chat completions API in one piece, and the values that both pieces and wholes are made of.

use serde_json::{Map, Value};

use super::super::call_id;
use super::super::{FailureKind, ModelFailure, Reply, StopReason, arguments, trouble};
#[cfg(test)]
use crate::message::ToolCall;
use crate::message::{Usage, json};

/// Fields of messages and calls that are known here; all others of a call are kept and sent back.
const CALL_FIELDS: &[&str] = &["id", "type", "function", "index"];
/// Fields of messages that are opaque and kept, to be sent back where the profile says so.
pub(super) const OPAQUE: &[&str] =
    &["reasoning_details", "extra_content", "thought_signature", "thinking_blocks", "provider_specific_fields"];

/// Reads a reply that came in one piece.
///
/// # Errors
/// A failure that the server tells of, or that this is no reply.
///
/// ```
/// use hookwright::model::openai;
/// let reply = openai::reply(r#"{"choices": [{"message": {"content": null, "tool_calls": [
///     {"function": {"name": "ls", "arguments": ""}}]}, "finish_reason": "stop"}]}"#)?;
/// assert_eq!((reply.tool_calls[0].name.as_str(), reply.stop_reason.as_str()), ("ls", "tool_calls"));
/// # Ok::<(), hookwright::model::ModelFailure>(())
/// ```
pub fn reply(body: &str) -> Result<Reply, ModelFailure> {
    let body = body.trim_start_matches('\u{feff}');
    let value: Value = json::from_str(body).map_err(|_| trouble::not_json(body))?;
    let Value::Object(mut object) = value else {
        return Err(trouble::not_json(body));
    };
    if let Some(failure) = trouble::in_reply(&object) {
        return Err(failure);
    }
    let choices = match object.remove("choices") {
        Some(Value::Array(choices)) => choices,
        _ => Vec::new(),
    };
    let mut read: Vec<(Whole, Option<String>)> = Vec::new();
    for choice in choices {
        let Value::Object(mut choice) = choice else { continue };
        if let Some(failure) = trouble::in_reply(&choice) {
            return Err(failure);
        }
        let finish = choice.get("finish_reason").and_then(Value::as_str).map(str::to_owned);
        let message = match (choice.remove("message").or_else(|| choice.remove("delta")), choice.remove("text")) {
            (Some(Value::Object(message)), _) => message,
            (_, Some(text)) => Map::from_iter([("content".to_owned(), text)]),
            _ => Map::new(),
        };
        read.push((Whole::read(message), finish));
    }
    // Of several choices the first that has anything in it.
    let chosen = read.iter().position(|(whole, _)| !whole.is_empty()).unwrap_or(0);
    if read.is_empty() {
        return Err(ModelFailure::new(FailureKind::InvalidReply, "the model's answer has no choices in it"));
    }
    let (whole, finish) = read.swap_remove(chosen);
    if finish.as_deref() == Some("error") {
        return Err(failed_at_the_end());
    }
    let mut reply = whole.into_reply(finish.as_deref());
    reply.usage = object.get("usage").map(usage).unwrap_or_default();
    reply.model = model(&object);
    Ok(reply)
}

pub(super) fn failed_at_the_end() -> ModelFailure {
    ModelFailure::new(FailureKind::Server, "the model's server failed: it ended the reply with an error")
}

pub(super) fn model(object: &Map<String, Value>) -> Option<String> {
    object.get("model").and_then(Value::as_str).filter(|model| !model.is_empty()).map(str::to_owned)
}

/// One call as it was put together: the parts of a [`ToolCall`] before its arguments are read.
#[derive(Debug, Default)]
pub(super) struct RawCall {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
    pub(super) extra: Map<String, Value>,
}

/// A message as it was put together.
#[derive(Debug, Default)]
pub(super) struct Whole {
    pub(super) text: String,
    pub(super) reasoning: String,
    pub(super) refusal: String,
    pub(super) calls: Vec<RawCall>,
    pub(super) extra: Map<String, Value>,
}

impl Whole {
    fn read(mut message: Map<String, Value>) -> Self {
        let mut whole = Whole::default();
        if let Some(content) = message.get("content") {
            add_content(content, &mut whole.text, &mut whole.reasoning);
        }
        if let Some(reasoning) = reasoning_of(&message) {
            whole.reasoning.push_str(reasoning);
        }
        if let Some(refusal) = message.get("refusal").and_then(Value::as_str) {
            whole.refusal.push_str(refusal);
        }
        match message.remove("tool_calls") {
            Some(Value::Array(calls)) => whole.calls.extend(calls.iter().filter_map(raw_call)),
            Some(call @ Value::Object(_)) => whole.calls.extend(raw_call(&call)),
            _ => {}
        }
        if let Some(function) = message.get("function_call").filter(|_| whole.calls.is_empty()) {
            whole.calls.extend(raw_call(function));
        }
        whole.extra =
            message.into_iter().filter(|(name, value)| OPAQUE.contains(&name.as_str()) && !value.is_null()).collect();
        whole
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.reasoning.is_empty() && self.refusal.is_empty() && self.calls.is_empty()
    }

    /// The reply that ended with this `finish` reason.
    pub(super) fn into_reply(self, finish: Option<&str>) -> Reply {
        let mut reply = Reply::text(if self.text.is_empty() { self.refusal.clone() } else { self.text });
        let last = self.calls.len().checked_sub(1);
        for (place, mut call) in self.calls.into_iter().enumerate() {
            // The limit was reached before the arguments began. To call with none is not what the model was about.
            if is_length(finish) && Some(place) == last && call.arguments.trim().is_empty() {
                call.arguments = "{".to_owned();
            }
            let mut calls = arguments::calls(call.id, call.name, &call.arguments);
            if let Some(first) = calls.first_mut() {
                first.extra = call.extra;
            }
            reply.tool_calls.append(&mut calls);
        }
        call_id::make_unique(&mut reply.tool_calls, Default::default());
        reply.reasoning = Some(self.reasoning).filter(|reasoning| !reasoning.is_empty());
        reply.extra = self.extra;
        reply.stop_reason = match stop_reason(finish, !reply.tool_calls.is_empty()) {
            StopReason::Stop if !self.refusal.is_empty() => StopReason::Refusal,
            reason => reason,
        };
        reply
    }
}

fn is_length(finish: Option<&str>) -> bool {
    finish.is_some_and(|finish| stop_reason(Some(finish), false) == StopReason::Length)
}

/// Why the model stopped. Whether it calls tools is what counts, not whether the server says so.
pub(super) fn stop_reason(finish: Option<&str>, has_calls: bool) -> StopReason {
    let usual = if has_calls { StopReason::ToolCalls } else { StopReason::Stop };
    match finish.unwrap_or_default().to_ascii_lowercase().as_str() {
        "" | "stop" | "tool_calls" | "tool_use" | "function_call" | "end_turn" | "eos" | "eos_token"
        | "stop_sequence" | "completed" | "complete" => usual,
        "length" | "max_tokens" | "max_output_tokens" | "model_length" => StopReason::Length,
        "content_filter" | "refusal" | "safety" | "sensitive" | "recitation" => StopReason::Refusal,
        _ if has_calls => usual,
        _ => StopReason::Other(finish.unwrap_or_default().to_owned()),
    }
}

/// Adds what `content` says: a text, or parts, some of which may be thinking.
pub(super) fn add_content(content: &Value, text: &mut String, reasoning: &mut String) {
    match content {
        Value::String(piece) => text.push_str(piece),
        Value::Array(parts) => parts.iter().for_each(|part| add_content(part, text, reasoning)),
        Value::Object(part) => {
            if let Some(thinking) = part.get("thinking") {
                let mut thought = String::new();
                add_content(thinking, &mut thought, reasoning);
                reasoning.push_str(&thought);
            } else if let Some(piece) = part.get("text").or_else(|| part.get("content")).or_else(|| part.get("refusal"))
            {
                add_content(piece, text, reasoning);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The thinking in a message or a piece of one, under whichever name; it may be there under two.
pub(super) fn reasoning_of(message: &Map<String, Value>) -> Option<&str> {
    let text = |name: &str| message.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    text("reasoning_content").or_else(|| text("reasoning")).or_else(|| text("thinking"))
}

/// The text of arguments, which may come as an object.
pub(super) fn arguments_text(arguments: Option<&Value>) -> String {
    match arguments {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn raw_call(value: &Value) -> Option<RawCall> {
    let call = value.as_object()?;
    let function = call.get("function").and_then(Value::as_object).unwrap_or(call);
    let name = function.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let arguments = arguments_text(function.get("arguments"));
    if name.is_empty() && arguments.is_empty() {
        return None;
    }
    Some(RawCall { id: id_of(call), name, arguments, extra: extra_of(call) })
}

/// The id of a call; empty if there is none. A number is an id too.
pub(super) fn id_of(call: &Map<String, Value>) -> String {
    match call.get("id") {
        Some(Value::String(id)) => id.clone(),
        Some(Value::Number(id)) => id.to_string(),
        _ => String::new(),
    }
}

/// The fields of a call that are not known here, to be sent back as they are.
pub(super) fn extra_of(call: &Map<String, Value>) -> Map<String, Value> {
    let own = |known: &'static [&'static str]| {
        move |(name, value): &(&String, &Value)| !known.contains(&name.as_str()) && !value.is_null()
    };
    let copied = |(name, value): (&String, &Value)| (name.clone(), value.clone());
    let Some(function) = call.get("function").and_then(Value::as_object) else {
        return call.iter().filter(own(&["id", "type", "index", "name", "arguments"])).map(copied).collect();
    };
    let mut extra: Map<String, Value> = call.iter().filter(own(CALL_FIELDS)).map(copied).collect();
    let inner: Map<String, Value> = function.iter().filter(own(&["name", "arguments"])).map(copied).collect();
    if !inner.is_empty() {
        extra.insert("function".into(), Value::Object(inner));
    }
    extra
}

/// The tokens that were used, under whichever names; what is not told is 0.
pub(super) fn usage(usage: &Value) -> Usage {
    let count = |path: &[&str]| {
        let value = path.iter().try_fold(usage, |value, key| value.get(key))?;
        value.as_u64().or_else(|| value.as_f64().filter(|number| *number >= 0.0).map(|number| number as u64))
    };
    let first = |paths: &[&[&str]]| paths.iter().find_map(|path| count(path)).unwrap_or(0);
    Usage {
        input_tokens: first(&[&["prompt_tokens"], &["input_tokens"]]),
        output_tokens: first(&[&["completion_tokens"], &["output_tokens"]]),
        cached_tokens: first(&[
            &["prompt_tokens_details", "cached_tokens"],
            &["input_tokens_details", "cached_tokens"],
            &["prompt_cache_hit_tokens"],
            &["cached_tokens"],
        ]),
        cache_write_tokens: first(&[
            &["prompt_tokens_details", "cache_write_tokens"],
            &["cache_creation_input_tokens"],
        ]),
        reasoning_tokens: first(&[
            &["completion_tokens_details", "reasoning_tokens"],
            &["output_tokens_details", "reasoning_tokens"],
            &["reasoning_tokens"],
        ]),
    }
}

/// Reads calls for tests of what a list of them becomes.
#[cfg(test)]
pub(super) fn calls_of(reply: &Reply) -> Vec<(&str, String)> {
    reply.tool_calls.iter().map(|call: &ToolCall| (call.name.as_str(), call.arguments_json().into_owned())).collect()
}
