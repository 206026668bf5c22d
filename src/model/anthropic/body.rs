//! The body of a request.

use serde_json::{Map, Value, json};

use super::assembler::THINKING;
use crate::message::{Content, ImagePart, Message, Part, Role};
use crate::model::{Profile, Request, context_message};

/// The limit on the output where neither the user nor the profile gives one: the API wants one.
const MAX_TOKENS: u64 = 8192;

/// The body of a request for the Messages API.
///
/// ```
/// use hookwright::message::Message;
/// use hookwright::model::{Profile, Request, anthropic};
/// let request = Request { messages: [Message::user("hi")].into_iter().collect(), ..Request::default() };
/// let body = anthropic::body(&request, "claude", Default::default(), &Profile::default(), false);
/// assert_eq!(body["messages"][0]["content"][0]["text"], "hi");
/// ```
pub fn body(request: &Request, model: &str, settings: Map<String, Value>, profile: &Profile, stream: bool) -> Value {
    let mut system: Vec<String> = request.system.iter().map(|text| text.to_string()).collect();
    let mut turns = Turns { list: Vec::new(), profile };
    for message in request.all_messages() {
        match message.role {
            Role::System => system.push(message.text().into_owned()),
            Role::User => turns.add("user", blocks_of(&message.content)),
            Role::Assistant => turns.add("assistant", turns.said(message)),
            Role::Tool => turns.add("user", vec![turns.result(message)]),
        }
    }
    if !request.additional_context.is_empty() {
        turns.add("user", vec![text_block(&context_message(&request.additional_context.join("\n")))]);
    }
    let mut messages = turns.finish();
    let mut body = Map::new();
    body.insert("model".into(), model.into());
    body.insert("max_tokens".into(), profile.max_tokens_of(model).unwrap_or(MAX_TOKENS).into());
    let mut system: Vec<Value> =
        system.iter().filter(|text| !text.trim().is_empty()).map(|text| text_block(text)).collect();
    let mut tools: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| json!({"name": tool.name, "description": tool.description, "input_schema": tool.schema}))
        .collect();
    if profile.cache_marks {
        // What stays the same from request to request, and the conversation so far.
        system.last_mut().into_iter().chain(tools.last_mut()).for_each(mark);
        if let Some(last) =
            messages.last_mut().and_then(|message| message["content"].as_array_mut()).and_then(|list| list.last_mut())
        {
            mark(last);
        }
    }
    if !system.is_empty() {
        body.insert("system".into(), system.into());
    }
    body.insert("messages".into(), messages.into());
    if !tools.is_empty() {
        body.insert("tools".into(), tools.into());
    }
    if stream {
        body.insert("stream".into(), true.into());
    }
    // What the user sets wins.
    body.extend(settings);
    Value::Object(body)
}

/// Marks a block as the end of what the server is to keep.
fn mark(block: &mut Value) {
    // Thinking cannot carry a mark.
    if let Some(fields) = block
        .as_object_mut()
        .filter(|fields| fields.get("type").is_none_or(|kind| kind != "thinking" && kind != "redacted_thinking"))
    {
        fields.insert("cache_control".into(), json!({"type": "ephemeral"}));
    }
}

struct Turns<'p> {
    /// Role and blocks; roles alternate.
    list: Vec<(&'static str, Vec<Value>)>,
    profile: &'p Profile,
}

impl Turns<'_> {
    fn add(&mut self, role: &'static str, blocks: Vec<Value>) {
        if blocks.is_empty() {
            return;
        }
        match self.list.last_mut() {
            Some((last, known)) if *last == role => known.extend(blocks),
            _ => self.list.push((role, blocks)),
        }
    }

    fn finish(mut self) -> Vec<Value> {
        // A conversation begins with the user, and the model speaks next.
        if self.list.first().is_none_or(|(role, _)| *role != "user") {
            self.list.insert(0, ("user", vec![text_block("(The conversation goes on.)")]));
        }
        if self.list.last().is_some_and(|(role, _)| *role == "assistant") {
            self.list.push(("user", vec![text_block("Go on.")]));
        }
        let message = |(role, mut blocks): (&str, Vec<Value>)| {
            // Results stand first in the message behind their calls.
            blocks.sort_by_key(|block| block["type"] != "tool_result");
            json!({"role": role, "content": blocks})
        };
        self.list.into_iter().map(message).collect()
    }

    fn said(&self, message: &Message) -> Vec<Value> {
        let mut blocks: Vec<Value> = Vec::new();
        // Thinking goes back as it came, with its signature, before all else.
        if let Some(Value::Array(thinking)) = message.extra.get(THINKING) {
            blocks.extend(thinking.iter().cloned());
        }
        blocks.extend(blocks_of(&message.content));
        for call in &message.tool_calls {
            let input = call.arguments().cloned().unwrap_or_default();
            blocks.push(json!({
                "type": "tool_use", "id": self.profile.call_ids.write(&call.id), "name": call.name, "input": input,
            }));
        }
        blocks
    }

    fn result(&self, message: &Message) -> Value {
        let id = message.tool_call_id.as_deref().unwrap_or_default();
        let mut content = blocks_of(&message.content);
        if content.is_empty() {
            content.push(text_block("(no output)"));
        }
        let mut block =
            json!({"type": "tool_result", "tool_use_id": self.profile.call_ids.write(id), "content": content});
        if message.is_error {
            block["is_error"] = true.into();
        }
        block
    }
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// The blocks of a content; those without text are refused by the server and left out.
fn blocks_of(content: &Content) -> Vec<Value> {
    let text = |text: &str| (!text.trim().is_empty()).then(|| text_block(text));
    match content {
        Content::Text(all) => text(all).into_iter().collect(),
        Content::Parts(parts) => {
            let block = |part: &Part| match part {
                Part::Text(part) => text(&part.text),
                Part::Image(part) => image(part),
                Part::Other(other) => Some(Value::Object(other.clone())),
            };
            parts.iter().filter_map(block).collect()
        }
    }
}

fn image(part: &ImagePart) -> Option<Value> {
    let source = match (&part.data, &part.url) {
        (Some(data), _) => {
            json!({"type": "base64", "media_type": part.media_type.as_deref().unwrap_or("image/png"), "data": data})
        }
        (None, Some(url)) => json!({"type": "url", "url": url}),
        (None, None) => return None,
    };
    Some(json!({"type": "image", "source": source}))
}
