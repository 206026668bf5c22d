//! A reply put together from what comes in.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::message::{ToolCall, Usage, json};
use crate::model::dialect::Assemble;
use crate::model::{FailureKind, ModelFailure, Reply, StopReason, StreamEvent, arguments, call_id, sse, trouble};

/// Where thinking is kept in a message, to be sent back as it came.
pub(super) const THINKING: &str = "thinking_blocks";

/// One block as far as it came in.
#[derive(Debug, Default)]
struct Block {
    /// As the server began it.
    begun: Map<String, Value>,
    /// Text, thinking, or the text of the arguments.
    text: String,
    signature: String,
}

impl Block {
    fn kind(&self) -> &str {
        self.begun.get("type").and_then(Value::as_str).unwrap_or_default()
    }
}

/// Puts a streamed reply together.
#[derive(Debug, Default)]
pub struct Assembler {
    blocks: BTreeMap<i64, Block>,
    usage: Usage,
    stop: Option<String>,
    model: Option<String>,
    done: bool,
}

impl Assembler {
    /// Takes the data of the next event in.
    ///
    /// # Errors
    /// What the server says went wrong, or that the data makes no sense.
    pub fn push_data(&mut self, name: &str, data: &str, told: &mut dyn FnMut(StreamEvent)) -> Result<(), ModelFailure> {
        let data = data.trim();
        if data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        let Ok(value) = json::from_str::<Value>(data) else { return Err(trouble::not_json(data)) };
        let Value::Object(event) = value else { return Ok(()) };
        if let Some(failure) = trouble::in_reply(&event) {
            return Err(failure);
        }
        let kind = event.get("type").and_then(Value::as_str).unwrap_or(name);
        let index = event.get("index").and_then(Value::as_i64).unwrap_or(0);
        match kind {
            "error" => return Err(ModelFailure::new(FailureKind::Server, trouble::one_line(data))),
            "message_start" => {
                if let Some(message) = event.get("message").and_then(Value::as_object) {
                    self.head(message);
                }
            }
            "content_block_start" => {
                if let Some(block) = event.get("content_block").and_then(Value::as_object) {
                    self.begin(index, block, told);
                }
            }
            "content_block_delta" => {
                if let Some(delta) = event.get("delta").and_then(Value::as_object) {
                    self.delta(index, delta, told);
                }
            }
            "message_delta" => {
                if let Some(stop) =
                    event.get("delta").and_then(|delta| delta.get("stop_reason")).and_then(Value::as_str)
                {
                    self.stop = Some(stop.to_owned());
                }
                self.add_usage(event.get("usage"));
            }
            "message_stop" => self.done = true,
            _ => {}
        }
        Ok(())
    }

    fn head(&mut self, message: &Map<String, Value>) {
        self.model = message.get("model").and_then(Value::as_str).filter(|model| !model.is_empty()).map(str::to_owned);
        self.add_usage(message.get("usage"));
        if let Some(stop) = message.get("stop_reason").and_then(Value::as_str) {
            self.stop = Some(stop.to_owned());
        }
    }

    /// Later counts replace earlier ones, as far as they are there.
    fn add_usage(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage.and_then(Value::as_object) else { return };
        let number = |name: &str| usage.get(name).and_then(Value::as_u64);
        let (read, written) = (number("cache_read_input_tokens"), number("cache_creation_input_tokens"));
        if let Some(input) = number("input_tokens") {
            // The API counts what the cache holds apart.
            self.usage.input_tokens = input + read.unwrap_or(0) + written.unwrap_or(0);
        }
        self.usage.cached_tokens = read.unwrap_or(self.usage.cached_tokens);
        self.usage.cache_write_tokens = written.unwrap_or(self.usage.cache_write_tokens);
        self.usage.output_tokens = number("output_tokens").unwrap_or(self.usage.output_tokens);
    }

    fn begin(&mut self, index: i64, begun: &Map<String, Value>, told: &mut dyn FnMut(StreamEvent)) {
        self.blocks.insert(index, Block { begun: begun.clone(), ..Block::default() });
        let first = ["text", "thinking"].iter().find_map(|name| begun.get(*name)).and_then(Value::as_str);
        if let Some(text) = first.filter(|text| !text.is_empty()) {
            self.push_text(index, text, told);
        }
        if begun.get("type").is_some_and(|kind| kind == "tool_use") {
            self.tell_call(index, "", told);
            // Some send the whole input where the block begins.
            if let Some(input) = begun.get("input").and_then(Value::as_object).filter(|input| !input.is_empty()) {
                let text = Value::Object(input.clone()).to_string();
                self.push_text(index, &text, told);
            }
        }
    }

    fn delta(&mut self, index: i64, delta: &Map<String, Value>, told: &mut dyn FnMut(StreamEvent)) {
        let field = |name: &str| delta.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let kind = if delta.contains_key("thinking") { "thinking" } else { "text" };
        self.blocks
            .entry(index)
            .or_insert_with(|| Block { begun: Map::from_iter([("type".to_owned(), kind.into())]), ..Block::default() });
        for name in ["text", "thinking", "partial_json"] {
            if let Some(text) = field(name) {
                self.push_text(index, text, told);
            }
        }
        if let Some(signature) = field("signature")
            && let Some(block) = self.blocks.get_mut(&index)
        {
            block.signature.push_str(signature);
        }
    }

    fn push_text(&mut self, index: i64, text: &str, told: &mut dyn FnMut(StreamEvent)) {
        let Some(block) = self.blocks.get_mut(&index) else { return };
        block.text.push_str(text);
        let delta = text.to_owned();
        match block.kind() {
            "text" => told(StreamEvent::Text { delta }),
            "thinking" => told(StreamEvent::Reasoning { delta }),
            "tool_use" => self.tell_call(index, text, told),
            _ => {}
        }
    }

    fn tell_call(&self, index: i64, text: &str, told: &mut dyn FnMut(StreamEvent)) {
        let Some(block) = self.blocks.get(&index) else { return };
        let field = |name: &str| block.begun.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let before = self.blocks.range(..index).filter(|(_, block)| block.kind() == "tool_use").count();
        told(StreamEvent::ToolCall {
            index: before,
            id: field("id"),
            name: field("name"),
            arguments_delta: text.to_owned(),
        });
    }

    /// The reply as far as it came in.
    pub fn into_reply(mut self) -> Reply {
        self.take_reply()
    }

    fn take_reply(&mut self) -> Reply {
        let taken = std::mem::take(self);
        let (mut text, mut reasoning) = (String::new(), String::new());
        let (mut tool_calls, mut thinking): (Vec<ToolCall>, Vec<Value>) = (Vec::new(), Vec::new());
        for block in taken.blocks.into_values() {
            match block.kind() {
                "text" => text.push_str(&block.text),
                "thinking" => {
                    reasoning.push_str(&block.text);
                    let mut fields = block.begun;
                    fields.insert("thinking".into(), block.text.into());
                    if !block.signature.is_empty() {
                        fields.insert("signature".into(), block.signature.into());
                    }
                    thinking.push(Value::Object(fields));
                }
                "redacted_thinking" => thinking.push(Value::Object(block.begun)),
                "tool_use" => {
                    let field =
                        |name: &str| block.begun.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
                    tool_calls.append(&mut arguments::calls(field("id"), field("name"), &block.text));
                }
                _ => {}
            }
        }
        call_id::make_unique(&mut tool_calls, std::collections::HashSet::new());
        let stop_reason = match taken.stop.as_deref() {
            Some("max_tokens" | "model_context_window_exceeded") => StopReason::Length,
            _ if !tool_calls.is_empty() => StopReason::ToolCalls,
            Some("end_turn" | "stop_sequence" | "tool_use") | None => StopReason::Stop,
            Some("refusal") => StopReason::Refusal,
            Some(other) => StopReason::Other(other.to_owned()),
        };
        let mut extra = Map::new();
        if !thinking.is_empty() {
            extra.insert(THINKING.to_owned(), thinking.into());
        }
        Reply {
            content: text.into(),
            tool_calls,
            reasoning: (!reasoning.is_empty()).then_some(reasoning),
            usage: taken.usage,
            stop_reason,
            model: taken.model,
            extra,
        }
    }
}

impl Assemble for Assembler {
    fn push(&mut self, event: sse::Event<'_>, told: &mut dyn FnMut(StreamEvent)) -> Result<(), ModelFailure> {
        match self.push_data(event.name, event.data, told) {
            // Cut off at the end of the stream: what is missing is told by that.
            Err(failure) if !event.whole && failure.kind == FailureKind::InvalidReply => Ok(()),
            other => other,
        }
    }

    fn is_complete(&self) -> bool {
        self.done || self.stop.is_some()
    }

    fn finish(&mut self) -> Reply {
        self.take_reply()
    }
}

/// Reads a reply that is there as a whole.
pub(super) fn read(reply: &Map<String, Value>) -> Result<Reply, ModelFailure> {
    let mut assembler = Assembler::default();
    assembler.head(reply);
    let blocks = match reply.get("content") {
        Some(Value::Array(blocks)) => blocks.clone(),
        Some(Value::String(text)) => vec![serde_json::json!({"type": "text", "text": text})],
        Some(Value::Null) | None if reply.contains_key("stop_reason") => Vec::new(),
        _ => return Err(ModelFailure::new(FailureKind::InvalidReply, "the reply holds no content")),
    };
    for (index, block) in (0..).zip(blocks.iter().filter_map(Value::as_object)) {
        assembler.begin(index, block, &mut |_| ());
        if let Some(text) = block.get("input").and_then(Value::as_str) {
            assembler.push_text(index, text, &mut |_| ());
        }
        if let Some(signature) = block.get("signature").and_then(Value::as_str)
            && let Some(begun) = assembler.blocks.get_mut(&index)
        {
            begun.signature = signature.to_owned();
        }
    }
    Ok(assembler.into_reply())
}
