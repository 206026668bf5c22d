//! A reply of the Messages API that comes in pieces.

use serde_json::{Map, Value};

use super::super::assemble::{Assemble, Progress, Tell, unreadable};
use super::super::sse::Event;
use super::super::{FailureKind, ModelFailure, Reply, StreamEvent, trouble};
use super::reply::{Block, Whole};
use crate::message::json;

/// Puts a reply together from the events of a stream.
///
/// ```
/// use hookwright::model::anthropic::Assembler;
/// let mut assembler = Assembler::default();
/// assembler.push(r#"{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}}"#)?;
/// assembler.push(r#"{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}"#)?;
/// assembler.push(r#"{"type": "message_stop"}"#)?;
/// assert_eq!(assembler.finish()?.content.text(), "hi");
/// # Ok::<(), hookwright::model::ModelFailure>(())
/// ```
#[derive(Debug, Default)]
pub struct Assembler {
    whole: Whole,
    /// The number that the server gives each of the blocks.
    numbers: Vec<u64>,
    stopped: bool,
}

impl Assembler {
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

    fn begin(&mut self, number: Option<u64>, block: Block, tell: Tell<'_>) {
        let number = number.unwrap_or_else(|| self.numbers.last().map_or(0, |last| last + 1));
        self.numbers.push(number);
        let place = self.whole.blocks.len();
        let text = block.text.clone();
        self.whole.blocks.push(block);
        if !text.is_empty() || self.whole.blocks[place].kind == "tool_use" {
            self.tell(place, text, tell);
        }
    }

    fn delta(&mut self, number: Option<u64>, delta: &Map<String, Value>, tell: Tell<'_>) {
        let text = |key: &str| delta.get(key).and_then(Value::as_str);
        let (kind, piece) = match (text("text"), text("thinking"), text("partial_json"), text("signature")) {
            (Some(piece), ..) => ("text", piece),
            (_, Some(piece), ..) => ("thinking", piece),
            (_, _, Some(piece), _) => ("tool_use", piece),
            (.., Some(signature)) => {
                if let Some(place) = self.place(number) {
                    self.whole.blocks[place].signature.push_str(signature);
                }
                return;
            }
            _ => return,
        };
        // Some proxies leave out the events that begin a block.
        let known = self
            .place(number)
            .filter(|place| self.whole.blocks[*place].kind == kind || !matches!(kind, "text" | "thinking"));
        let place = match known {
            Some(place) => place,
            None => {
                self.begin(number, Block::of(kind), &mut |_| {});
                self.whole.blocks.len() - 1
            }
        };
        self.whole.blocks[place].text.push_str(piece);
        self.tell(place, piece.to_owned(), tell);
    }

    /// The block of that number: the newest, should the server count wrongly.
    fn place(&self, number: Option<u64>) -> Option<usize> {
        match number {
            Some(number) => self.numbers.iter().rposition(|known| *known == number),
            None => self.numbers.len().checked_sub(1),
        }
    }

    fn tell(&self, place: usize, delta: String, tell: Tell<'_>) {
        let block = &self.whole.blocks[place];
        match block.kind.as_str() {
            "text" if !delta.is_empty() => tell(StreamEvent::Text { delta }),
            "thinking" if !delta.is_empty() => tell(StreamEvent::Reasoning { delta }),
            "tool_use" => {
                let index = self.whole.blocks[..place].iter().filter(|block| block.kind == "tool_use").count();
                let (id, name) = (block.field("id"), block.field("name"));
                tell(StreamEvent::ToolCall { index, id, name, arguments_delta: delta });
            }
            _ => {}
        }
    }
}

impl Assemble for Assembler {
    fn read(&mut self, event: Event<'_>, tell: Tell<'_>) -> Result<Progress, ModelFailure> {
        let data = event.data.trim();
        if data.is_empty() || data == "[DONE]" {
            return Ok(if data.is_empty() { Progress::More } else { Progress::End });
        }
        let object = match json::from_str::<Value>(data) {
            Ok(Value::Object(object)) => object,
            _ if event.name == "ping" => return Ok(Progress::More),
            _ if event.name == "error" => Map::from_iter([("error".to_owned(), Value::from(data))]),
            _ => return Err(unreadable(event)),
        };
        if let Some(failure) = trouble::in_reply(&object) {
            return Err(failure);
        }
        if event.name == "error" {
            let error = Map::from_iter([("error".to_owned(), Value::Object(object))]);
            return Err(trouble::in_reply(&error).unwrap_or_else(|| ModelFailure::new(FailureKind::Server, "")));
        }
        let kind = object.get("type").and_then(Value::as_str).unwrap_or(event.name);
        let number = object.get("index").and_then(Value::as_u64);
        match kind {
            "message_start" => {
                let message = object.get("message");
                self.whole.tokens.read(message.and_then(|message| message.get("usage")));
                let model = message.and_then(|message| message.get("model")).and_then(Value::as_str);
                self.whole.model = model.filter(|model| !model.is_empty()).map(str::to_owned);
                // A proxy that has the whole already may put it in here.
                if let Some(Value::Array(blocks)) = message.and_then(|message| message.get("content")) {
                    blocks.iter().filter_map(Block::whole).for_each(|block| self.begin(None, block, tell));
                }
            }
            "content_block_start" => {
                if let Some(block) = object.get("content_block").and_then(Block::whole) {
                    self.begin(number, block, tell);
                }
            }
            "content_block_delta" => {
                if let Some(Value::Object(delta)) = object.get("delta") {
                    self.delta(number, delta, tell);
                }
            }
            "message_delta" => {
                self.whole.tokens.read(object.get("usage"));
                let stop = object.get("delta").and_then(|delta| delta.get("stop_reason")).and_then(Value::as_str);
                if let Some(stop) = stop.filter(|stop| !stop.is_empty()) {
                    self.whole.stop = Some(stop.to_owned());
                }
            }
            "message_stop" => {
                self.stopped = true;
                return Ok(Progress::End);
            }
            _ => {}
        }
        Ok(if self.whole.stop.is_some() { Progress::Nearly } else { Progress::More })
    }

    fn is_complete(&self) -> bool {
        self.whole.stop.is_some() || (self.stopped && !self.whole.blocks.is_empty())
    }

    fn take(&mut self) -> Reply {
        std::mem::take(&mut self.whole).into_reply()
    }
}
