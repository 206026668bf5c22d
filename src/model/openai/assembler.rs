//! A reply put together from what comes in. A reply that is there as a whole is read as one piece.

use serde_json::{Map, Value};

use crate::message::{ToolCall, Usage, json};
use crate::model::dialect::Assemble;
use crate::model::{FailureKind, ModelFailure, Reply, StopReason, StreamEvent, arguments, call_id, sse, trouble};

/// Fields of a message that are read, so that they are not kept as they are besides.
const READ: &[&str] = &[
    "role",
    "content",
    "tool_calls",
    "function_call",
    "refusal",
    "reasoning",
    "reasoning_content",
    "thinking",
    "name",
];
/// Fields of a call that are read.
const READ_OF_CALL: &[&str] = &["id", "index", "type", "function"];

/// One call as far as it came in.
#[derive(Debug, Default, Clone)]
struct Call {
    /// The number that the server gives it, if any.
    index: Option<i64>,
    id: String,
    name: String,
    arguments: String,
    extra: Map<String, Value>,
}

/// Puts a streamed reply together.
///
/// ```
/// use hookwright::model::openai::Assembler;
/// let mut assembler = Assembler::default();
/// let mut text = String::new();
/// for data in [
///     r#"{"choices":[{"delta":{"content":"hel"}}]}"#,
///     r#"{"choices":[{"delta":{"content":"lo"},"finish_reason":"stop"}]}"#,
///     "[DONE]",
/// ] {
///     assembler.push_data(data, &mut |_| ())?;
/// }
/// assert_eq!(assembler.into_reply().content.text(), "hello");
/// # Ok::<(), hookwright::model::ModelFailure>(())
/// ```
#[derive(Debug, Default)]
pub struct Assembler {
    text: String,
    reasoning: String,
    refusal: String,
    calls: Vec<Call>,
    /// The choice that is read; the first that has anything in it.
    choice: Option<i64>,
    finish: Option<String>,
    usage: Usage,
    model: Option<String>,
    extra: Map<String, Value>,
    done: bool,
    anything: bool,
}

impl Assembler {
    /// Takes the data of the next event in.
    ///
    /// # Errors
    /// What the server says went wrong, or that the data makes no sense.
    pub fn push_data(&mut self, data: &str, told: &mut dyn FnMut(StreamEvent)) -> Result<(), ModelFailure> {
        let data = data.trim();
        if data == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        if data.is_empty() {
            return Ok(());
        }
        match json::from_str::<Value>(data) {
            Ok(Value::Object(chunk)) => self.push_chunk(&chunk, told),
            Ok(_) => Ok(()),
            Err(_) => Err(trouble::not_json(data)),
        }
    }

    fn push_chunk(
        &mut self,
        chunk: &Map<String, Value>,
        told: &mut dyn FnMut(StreamEvent),
    ) -> Result<(), ModelFailure> {
        if let Some(failure) = trouble::in_reply(chunk) {
            return Err(failure);
        }
        if let Some(usage) = chunk.get("usage").and_then(Value::as_object) {
            self.usage = usage_of(usage);
        }
        if let Some(model) = chunk.get("model").and_then(Value::as_str).filter(|model| !model.is_empty()) {
            self.model = Some(model.to_owned());
        }
        for choice in chunk.get("choices").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
        {
            self.push_choice(choice, told)?;
        }
        Ok(())
    }

    fn push_choice(
        &mut self,
        choice: &Map<String, Value>,
        told: &mut dyn FnMut(StreamEvent),
    ) -> Result<(), ModelFailure> {
        let number = choice.get("index").and_then(Value::as_i64).unwrap_or(0);
        let delta = ["delta", "message"].iter().find_map(|key| choice.get(*key)).and_then(Value::as_object);
        if self.choice.is_some_and(|chosen| chosen != number) {
            return Ok(());
        }
        if let Some(delta) = delta {
            if has_anything(delta) {
                self.choice = Some(number);
            }
            self.push_delta(delta, told);
        } else if let Some(text) = choice.get("text").and_then(Value::as_str) {
            self.choice = Some(number);
            self.say(text, told);
        }
        if let Some(usage) = choice.get("usage").and_then(Value::as_object) {
            self.usage = usage_of(usage);
        }
        // An empty one in the middle is no end.
        if let Some(finish) = choice.get("finish_reason").and_then(Value::as_str).filter(|finish| !finish.is_empty()) {
            if finish == "error" {
                return Err(ModelFailure::new(FailureKind::Server, "the server says that the reply failed"));
            }
            self.finish = Some(finish.to_owned());
        }
        Ok(())
    }

    fn push_delta(&mut self, delta: &Map<String, Value>, told: &mut dyn FnMut(StreamEvent)) {
        let reasoning = ["reasoning_content", "reasoning", "thinking"].iter().find_map(|key| match delta.get(*key) {
            Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
            Some(Value::Object(fields)) => {
                ["text", "content"].iter().find_map(|key| fields.get(*key)).and_then(Value::as_str).map(str::to_owned)
            }
            _ => None,
        });
        if let Some(reasoning) = reasoning {
            self.reason(&reasoning, told);
        }
        match delta.get("content") {
            Some(Value::String(text)) => self.say(text, told),
            Some(Value::Array(parts)) => parts.iter().for_each(|part| self.push_part(part, told)),
            Some(Value::Object(part)) => self.push_part(&Value::Object(part.clone()), told),
            _ => {}
        }
        if let Some(refusal) = delta.get("refusal").and_then(Value::as_str) {
            self.refusal.push_str(refusal);
        }
        match delta.get("tool_calls") {
            Some(Value::Array(calls)) => {
                calls.iter().filter_map(Value::as_object).for_each(|call| self.push_call(call, told))
            }
            Some(Value::Object(call)) => self.push_call(call, told),
            _ => {}
        }
        if let Some(function) = delta.get("function_call").and_then(Value::as_object) {
            let call =
                Map::from_iter([("index".to_owned(), 0.into()), ("function".to_owned(), function.clone().into())]);
            self.push_call(&call, told);
        }
        for (name, value) in delta.iter().filter(|(name, value)| !value.is_null() && !READ.contains(&name.as_str())) {
            keep(&mut self.extra, name, value);
        }
    }

    fn push_part(&mut self, part: &Value, told: &mut dyn FnMut(StreamEvent)) {
        match part {
            Value::String(text) => self.say(text, told),
            Value::Object(fields) => {
                let text = fields.get("text").and_then(Value::as_str);
                match (fields.get("type").and_then(Value::as_str), text, fields.get("thinking")) {
                    (Some("thinking" | "reasoning"), Some(text), _) => self.reason(text, told),
                    (Some("thinking" | "reasoning"), None, Some(Value::String(text))) => self.reason(text, told),
                    (Some("thinking" | "reasoning"), None, Some(Value::Array(parts))) => {
                        for text in parts.iter().filter_map(|part| part.get("text")).filter_map(Value::as_str) {
                            self.reason(text, told);
                        }
                    }
                    (Some("refusal"), ..) => {
                        self.refusal.push_str(fields.get("refusal").and_then(Value::as_str).unwrap_or_default());
                    }
                    (_, Some(text), _) => self.say(text, told),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn say(&mut self, text: &str, told: &mut dyn FnMut(StreamEvent)) {
        if !text.is_empty() {
            self.anything = true;
            self.text.push_str(text);
            told(StreamEvent::Text { delta: text.to_owned() });
        }
    }

    fn reason(&mut self, text: &str, told: &mut dyn FnMut(StreamEvent)) {
        if !text.is_empty() {
            self.anything = true;
            self.reasoning.push_str(text);
            told(StreamEvent::Reasoning { delta: text.to_owned() });
        }
    }

    fn push_call(&mut self, piece: &Map<String, Value>, told: &mut dyn FnMut(StreamEvent)) {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let function = piece.get("function").and_then(Value::as_object);
        let field = |name: &str| function.and_then(|function| function.get(name)).or_else(|| piece.get(name));
        let (id, name) = (text(piece.get("id")), text(field("name")));
        let added = match field("arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        };
        let index = piece.get("index").and_then(Value::as_i64);
        let position = self.place_of(index, &id, &name, &added);
        let call = &mut self.calls[position];
        if call.id.is_empty() {
            call.id = id;
        }
        // Some repeat the name with each piece, others send it in pieces itself.
        if call.name != name && (call.name.is_empty() || call.arguments.is_empty()) {
            call.name.push_str(&name);
        }
        call.arguments.push_str(&added);
        for (name, value) in
            piece.iter().filter(|(name, value)| !value.is_null() && !READ_OF_CALL.contains(&name.as_str()))
        {
            if !(name == "name" || name == "arguments") {
                keep(&mut call.extra, name, value);
            }
        }
        self.anything = true;
        let told_of = StreamEvent::ToolCall {
            index: position,
            id: call.id.clone(),
            name: call.name.clone(),
            arguments_delta: added,
        };
        told(told_of);
    }

    /// Which call a piece belongs to; a new one if to none. Servers number calls from anywhere, give all of them the same
    /// number or none, and the same goes for ids.
    fn place_of(&mut self, index: Option<i64>, id: &str, name: &str, added: &str) -> usize {
        let begins = |call: &Call| {
            // Another id, or a name where everything is there already, is another call.
            (!id.is_empty() && !call.id.is_empty() && call.id != id)
                || (!name.is_empty()
                    && !call.name.is_empty()
                    && is_finished(call)
                    && (!added.is_empty() || call.name != name))
        };
        let same_index = |call: &Call| index.is_none() || call.index.is_none() || call.index == index;
        let by_id =
            self.calls.iter().rposition(|call| !id.is_empty() && call.id == id && same_index(call) && !begins(call));
        let by_index = || self.calls.iter().rposition(|call| index.is_some() && call.index == index && !begins(call));
        let last = || {
            let last = self.calls.len().checked_sub(1)?;
            (index.is_none() && !begins(&self.calls[last])).then_some(last)
        };
        if let Some(position) = by_id.or_else(by_index).or_else(last) {
            return position;
        }
        self.calls.push(Call { index, ..Call::default() });
        self.calls.len() - 1
    }

    /// The reply as far as it came in.
    pub fn into_reply(mut self) -> Reply {
        self.take_reply()
    }

    fn take_reply(&mut self) -> Reply {
        let taken = std::mem::take(self);
        let named = |call: &Call| !call.name.is_empty() || !call.arguments.trim().is_empty();
        let mut tool_calls: Vec<ToolCall> = Vec::new();
        for call in taken.calls.into_iter().filter(named) {
            let mut calls = arguments::calls(call.id, call.name, &call.arguments);
            if let Some(first) = calls.first_mut() {
                first.extra = call.extra;
            }
            tool_calls.append(&mut calls);
        }
        call_id::make_unique(&mut tool_calls, std::collections::HashSet::new());
        let refused = taken.text.is_empty() && !taken.refusal.is_empty();
        let stop_reason = match taken.finish.as_deref() {
            Some("length" | "max_tokens" | "model_length") => StopReason::Length,
            _ if !tool_calls.is_empty() => StopReason::ToolCalls,
            _ if refused => StopReason::Refusal,
            Some("content_filter" | "refusal") => StopReason::Refusal,
            Some(other) => match other.to_ascii_lowercase().as_str() {
                "stop" | "eos" | "eos_token" | "end_turn" | "stop_sequence" | "tool_calls" | "function_call" => {
                    StopReason::Stop
                }
                _ => StopReason::Other(other.to_owned()),
            },
            None => StopReason::Stop,
        };
        Reply {
            content: if refused { taken.refusal.into() } else { taken.text.into() },
            tool_calls,
            reasoning: (!taken.reasoning.is_empty()).then_some(taken.reasoning),
            usage: taken.usage,
            stop_reason,
            model: taken.model,
            extra: taken.extra,
        }
    }
}

impl Assemble for Assembler {
    fn push(&mut self, event: sse::Event<'_>, told: &mut dyn FnMut(StreamEvent)) -> Result<(), ModelFailure> {
        if event.name == "error" {
            let object = json::from_str::<Value>(event.data).ok();
            let failure = object.as_ref().and_then(Value::as_object).map(|object| match trouble::in_reply(object) {
                Some(failure) => failure,
                None => trouble::in_reply(&Map::from_iter([("error".to_owned(), Value::Object(object.clone()))]))
                    .unwrap_or_else(|| ModelFailure::new(FailureKind::Server, "")),
            });
            return Err(
                failure.unwrap_or_else(|| ModelFailure::new(FailureKind::Server, trouble::one_line(event.data)))
            );
        }
        match self.push_data(event.data, told) {
            // Cut off at the end of the stream: what is missing is told by that.
            Err(failure) if !event.whole && failure.kind == FailureKind::InvalidReply => Ok(()),
            other => other,
        }
    }

    fn is_complete(&self) -> bool {
        self.finish.is_some() || self.done && self.anything
    }

    fn finish(&mut self) -> Reply {
        self.take_reply()
    }
}

/// Reads a reply that is there as a whole.
pub(super) fn read(reply: &Map<String, Value>) -> Result<Reply, ModelFailure> {
    let choices: Vec<&Map<String, Value>> =
        reply.get("choices").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object).collect();
    let message =
        |choice: &&&Map<String, Value>| choice.get("message").and_then(Value::as_object).is_some_and(has_anything);
    let Some(choice) = choices.iter().find(message).or_else(|| choices.first()) else {
        return Err(ModelFailure::new(FailureKind::InvalidReply, "the reply holds no choice"));
    };
    let mut assembler = Assembler::default();
    let mut head = reply.clone();
    head.insert("choices".into(), vec![Value::Object((*choice).clone())].into());
    assembler.push_chunk(&head, &mut |_| ())?;
    Ok(assembler.into_reply())
}

fn has_anything(message: &Map<String, Value>) -> bool {
    message.iter().any(|(name, value)| {
        name != "role"
            && match value {
                Value::Null => false,
                Value::String(text) => !text.is_empty(),
                Value::Array(items) => !items.is_empty(),
                _ => true,
            }
    })
}

/// Keeps a field as it is; what comes in pieces is put together.
fn keep(fields: &mut Map<String, Value>, name: &str, value: &Value) {
    match (fields.get_mut(name), value) {
        (Some(Value::Array(known)), Value::Array(more)) => known.extend(more.iter().cloned()),
        _ => drop(fields.insert(name.to_owned(), value.clone())),
    }
}

fn is_finished(call: &Call) -> bool {
    arguments::is_whole(&call.arguments)
}

fn usage_of(usage: &Map<String, Value>) -> Usage {
    let number = |value: Option<&Value>| {
        value.and_then(|value| value.as_u64().or_else(|| value.as_f64().map(|number| number as u64)))
    };
    let inside = |outer: &str, name: &str| number(usage.get(outer).and_then(|details| details.get(name)));
    let either = |names: [&str; 2]| names.iter().find_map(|name| number(usage.get(*name))).unwrap_or(0);
    Usage {
        input_tokens: either(["prompt_tokens", "input_tokens"]),
        output_tokens: either(["completion_tokens", "output_tokens"]),
        cached_tokens: inside("prompt_tokens_details", "cached_tokens")
            .or_else(|| number(usage.get("prompt_cache_hit_tokens")))
            .or_else(|| number(usage.get("cached_tokens")))
            .unwrap_or(0),
        cache_write_tokens: 0,
        reasoning_tokens: inside("completion_tokens_details", "reasoning_tokens").unwrap_or(0),
    }
}
