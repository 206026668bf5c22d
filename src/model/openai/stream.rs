//! A reply of a chat completions API that comes in pieces.

use serde_json::{Map, Value};

use super::super::assemble::{Assemble, Progress, Tell, unreadable};
use super::super::sse::Event;
use super::super::{FailureKind, ModelFailure, Reply, StreamEvent, trouble};
use super::calls::Calls;
use super::reply::{OPAQUE, Whole, add_content, failed_at_the_end, model, reasoning_of, usage};
use crate::message::{Usage, json};

/// Puts a reply together from the chunks of a stream.
///
/// ```
/// use hookwright::model::openai::Assembler;
/// let mut assembler = Assembler::default();
/// assembler.push(r#"{"choices": [{"delta": {"content": "good "}}]}"#)?;
/// assembler.push(r#"{"choices": [{"delta": {"content": "morning"}, "finish_reason": "stop"}]}"#)?;
/// assert_eq!(assembler.finish()?.content.text(), "good morning");
/// # Ok::<(), hookwright::model::ModelFailure>(())
/// ```
#[derive(Debug, Default)]
pub struct Assembler {
    whole: Whole,
    calls: Calls,
    /// The choice that is read: the first in which something came in.
    choice: Option<u64>,
    finish: Option<String>,
    ended: bool,
    usage: Option<Usage>,
    model: Option<String>,
}

impl Assembler {
    /// An assembler that knows the names of the tools, which tells names in fragments from names of other calls.
    pub fn with_tools(names: impl IntoIterator<Item = String>) -> Self {
        Assembler { calls: Calls::with_tools(names.into_iter().collect()), ..Assembler::default() }
    }

    /// Takes in the data of one event.
    ///
    /// # Errors
    /// A failure that the server tells of, or data that cannot be read.
    pub fn push(&mut self, data: &str) -> Result<Progress, ModelFailure> {
        self.read(Event { name: "", data, whole: true }, &mut |_| {})
    }

    /// The reply.
    ///
    /// # Errors
    /// If it is not whole.
    pub fn finish(mut self) -> Result<Reply, ModelFailure> {
        let complete = self.is_complete();
        let reply = self.take();
        if complete {
            return Ok(reply);
        }
        let failure = ModelFailure::new(FailureKind::InvalidReply, "the model's answer ended early");
        Err(ModelFailure { partial: Some(Box::new(reply)), ..failure })
    }

    fn chunk(&mut self, mut chunk: Map<String, Value>, named_error: bool, tell: Tell<'_>) -> Result<(), ModelFailure> {
        if let Some(failure) = trouble::in_reply(&chunk) {
            return Err(failure);
        }
        if named_error {
            let error = Map::from_iter([("error".to_owned(), Value::Object(chunk))]);
            return Err(trouble::in_reply(&error).unwrap_or_else(failed_at_the_end));
        }
        if let Some(told) = chunk.get("usage").filter(|usage| usage.is_object()) {
            self.usage = Some(usage(told));
        }
        if self.model.is_none() {
            self.model = model(&chunk);
        }
        let Some(Value::Array(choices)) = chunk.remove("choices") else {
            return Ok(());
        };
        for choice in choices {
            if let Value::Object(choice) = choice {
                self.choice(choice, tell)?;
            }
        }
        Ok(())
    }

    fn choice(&mut self, mut choice: Map<String, Value>, tell: Tell<'_>) -> Result<(), ModelFailure> {
        if let Some(failure) = trouble::in_reply(&choice) {
            return Err(failure);
        }
        let index = choice.get("index").and_then(Value::as_u64).unwrap_or(0);
        if self.choice.is_some_and(|chosen| chosen != index) {
            return Ok(());
        }
        if let Some(told) = choice.get("usage").filter(|usage| usage.is_object()) {
            self.usage = Some(usage(told));
        }
        let delta = match (choice.remove("delta"), choice.remove("message"), choice.remove("text")) {
            (Some(Value::Object(delta)), ..) | (_, Some(Value::Object(delta)), _) => delta,
            (.., Some(text)) => Map::from_iter([("content".to_owned(), text)]),
            _ => Map::new(),
        };
        self.delta(delta, tell);
        let has_anything = !self.whole.is_empty() || !self.calls.is_empty();
        if has_anything {
            self.choice = Some(index);
        }
        // An empty reason in mid-stream is none.
        if let Some(finish) = choice.get("finish_reason").and_then(Value::as_str).filter(|finish| !finish.is_empty()) {
            if finish == "error" {
                return Err(failed_at_the_end());
            }
            self.finish = Some(finish.to_owned());
        }
        Ok(())
    }

    fn delta(&mut self, mut delta: Map<String, Value>, tell: Tell<'_>) {
        let (mut text, mut reasoning) = (String::new(), String::new());
        if let Some(content) = delta.get("content") {
            add_content(content, &mut text, &mut reasoning);
        }
        reasoning.push_str(reasoning_of(&delta).unwrap_or_default());
        if let Some(refusal) = delta.get("refusal").and_then(Value::as_str) {
            self.whole.refusal.push_str(refusal);
        }
        if !reasoning.is_empty() {
            self.whole.reasoning.push_str(&reasoning);
            tell(StreamEvent::Reasoning { delta: reasoning });
        }
        if !text.is_empty() {
            self.whole.text.push_str(&text);
            tell(StreamEvent::Text { delta: text });
        }
        match delta.remove("tool_calls") {
            Some(Value::Array(calls)) => calls.iter().for_each(|call| self.calls.add(call, tell)),
            Some(call @ Value::Object(_)) => self.calls.add(&call, tell),
            _ => {}
        }
        if let Some(function) = delta.get("function_call").filter(|function| function.is_object()) {
            self.calls.add(function, tell);
        }
        for (name, value) in delta {
            if OPAQUE.contains(&name.as_str()) && !value.is_null() {
                add_opaque(&mut self.whole.extra, name, value);
            }
        }
    }
}

impl Assemble for Assembler {
    fn read(&mut self, event: Event<'_>, tell: Tell<'_>) -> Result<Progress, ModelFailure> {
        let data = event.data.trim();
        let (data, done) = match data.strip_suffix("[DONE]") {
            Some(before) => (before.trim_end(), true),
            None => (data, false),
        };
        if !data.is_empty() {
            let named_error = event.name == "error";
            match json::from_str::<Value>(data) {
                Ok(Value::Object(chunk)) => self.chunk(chunk, named_error, tell)?,
                Ok(_) if !named_error => return Err(unreadable(event)),
                Err(_) if !named_error => {
                    // Chunks whose blank line is missing come as the lines of one event.
                    let lines: Result<Vec<Map<String, Value>>, _> = data.lines().map(json::from_str).collect();
                    for chunk in lines.map_err(|_| unreadable(event))? {
                        self.chunk(chunk, false, tell)?;
                    }
                }
                _ => {
                    let error = Map::from_iter([("error".to_owned(), Value::from(data))]);
                    return Err(trouble::in_reply(&error).unwrap_or_else(failed_at_the_end));
                }
            }
        }
        self.ended |= done;
        Ok(match (done, &self.finish) {
            (true, _) => Progress::End,
            (false, Some(_)) => Progress::Nearly,
            (false, None) => Progress::More,
        })
    }

    fn is_complete(&self) -> bool {
        // A server that ends without a reason has ended all the same, if there was anything at all.
        self.finish.is_some() || (self.ended && !(self.whole.is_empty() && self.calls.is_empty()))
    }

    fn take(&mut self) -> Reply {
        let mut whole = std::mem::take(&mut self.whole);
        whole.calls = std::mem::take(&mut self.calls).into_raw();
        let mut reply = whole.into_reply(self.finish.as_deref());
        reply.usage = self.usage.unwrap_or_default();
        reply.model = self.model.take();
        reply
    }
}

/// Adds a piece of an opaque field: lists grow, and pieces of the same text in a list become one.
fn add_opaque(extra: &mut Map<String, Value>, name: String, value: Value) {
    match (extra.get_mut(&name), value) {
        (Some(Value::Array(known)), Value::Array(more)) => {
            for piece in more {
                match (known.last_mut(), piece) {
                    (Some(Value::Object(last)), Value::Object(piece)) if belong_together(last, &piece) => {
                        extend(last, piece)
                    }
                    (_, piece) => known.push(piece),
                }
            }
        }
        (Some(Value::Object(known)), Value::Object(more)) => known.extend(more),
        (_, value) => {
            extra.insert(name, value);
        }
    }
}

/// Whether two pieces are of one text: the server gives both the same number.
fn belong_together(last: &Map<String, Value>, piece: &Map<String, Value>) -> bool {
    let same = |key: &str| last.get(key) == piece.get(key);
    piece.get("index").is_some_and(Value::is_number) && same("index") && same("type")
}

fn extend(last: &mut Map<String, Value>, piece: Map<String, Value>) {
    for (name, value) in piece {
        match (last.get_mut(&name), value) {
            (_, Value::Null) => {}
            (Some(Value::String(text)), Value::String(more))
                if matches!(name.as_str(), "text" | "summary" | "data") =>
            {
                text.push_str(&more);
            }
            (_, value) => {
                last.insert(name, value);
            }
        }
    }
}
