//! What is sent to the Messages API.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::super::fence::context_message;
use super::super::profile::Profile;
use super::super::{Request, tidy};
use super::THINKING;
use crate::message::{Content, ImagePart, Message, Part, Role, ToolCall};

/// The body of `request` for a server of this `profile`. Its settings are passed on, adapted to the profile.
///
/// ```
/// use hookwright::message::Message;
/// use hookwright::model::{Profile, Request, anthropic};
/// let messages = [Message::user("hello"), Message::user("again")].into_iter().collect();
/// let request = Request { model: Some("claude-3-5-haiku".into()), messages, ..Request::default() };
/// assert_eq!(
///     serde_json::to_string(&anthropic::body(&request, &Profile { cache_marks: false, ..(*Profile::named("anthropic")?).clone() }, false))?,
///     r#"{"model":"claude-3-5-haiku","messages":[{"role":"user","content":[{"type":"text","text":"hello"},{"type":"text","text":"again"}]}],"max_tokens":8192}"#
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn body(request: &Request, profile: &Profile, stream: bool) -> Map<String, Value> {
    let model = request.model.as_deref().unwrap_or_default();
    let mut settings = request.settings.clone();
    if let Some(limit) = settings.remove("max_completion_tokens") {
        settings.entry("max_tokens").or_insert(limit);
    }
    if let Some(stop) = settings.remove("stop") {
        let stop = if stop.is_string() { json!([stop]) } else { stop };
        settings.entry("stop_sequences").or_insert(stop);
    }
    profile.adapt(&mut settings, model);
    let mut writer = Writer { profile, written: Vec::new() };
    let mut system = Vec::new();
    if let Some(text) = request.system.as_deref() {
        system.extend(text_block(text));
    }
    for message in request.all_messages() {
        match message.role {
            // Instructions at the beginning are the system's; later ones have no place of their own.
            Role::System if writer.written.is_empty() => system.extend(text_block(&message.text())),
            Role::System => writer
                .add("user", text_block(&format!("<system>\n{}\n</system>", message.text())).into_iter().collect()),
            Role::User => writer.user(message),
            Role::Assistant => writer.assistant(message),
            Role::Tool => writer.result(message),
        }
    }
    if !request.additional_context.is_empty() {
        writer.add("user", text_block(&context_message(&request.additional_context.join("\n"))).into_iter().collect());
    }
    let messages = writer.finish();
    let mut tools: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| json!({"name": tool.name, "description": tool.description, "input_schema": tool.schema}))
        .collect();
    if let Some(Value::Array(own)) = settings.remove("tools") {
        tools.extend(own);
    }
    let mut choice = settings.remove("tool_choice").map(tool_choice);
    if tools.is_empty() {
        // Calls in the conversation are refused without tools, also where none may be called any more.
        let calls = request.all_messages().flat_map(|message| &message.tool_calls);
        let names: BTreeSet<&str> = calls.map(|call| call.name.as_str()).collect();
        tools.extend(names.iter().map(|name| json!({"name": name, "input_schema": {"type": "object"}})));
        choice = (!tools.is_empty()).then(|| json!({"type": "none"}));
    }

    let mut body = Map::new();
    body.insert("model".into(), model.into());
    if profile.cache_marks {
        mark(system.last_mut());
        mark(tools.last_mut());
    }
    if !system.is_empty() {
        body.insert("system".into(), Value::Array(system));
    }
    if !tools.is_empty() {
        body.insert("tools".into(), Value::Array(tools));
        if let Some(choice) = choice {
            body.insert("tool_choice".into(), choice);
        }
    }
    body.insert("messages".into(), Value::Array(messages));
    if !settings.contains_key("max_tokens") {
        let limit = profile.max_tokens_of(model).unwrap_or(8192);
        body.insert("max_tokens".into(), limit.into());
    }
    settings.remove("stream");
    for (name, value) in settings {
        body.entry(name).or_insert(value);
    }
    if stream {
        body.insert("stream".into(), true.into());
    }
    body
}

/// A choice of tools, also as chat completions write it.
fn tool_choice(choice: Value) -> Value {
    match choice.as_str() {
        Some("required") => json!({"type": "any"}),
        Some(word) => json!({"type": word}),
        None => match choice.pointer("/function/name") {
            Some(name) => json!({"type": "tool", "name": name}),
            None => choice,
        },
    }
}

/// A text as a block; none if there is nothing in it, which the API refuses.
fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}))
}

/// Marks that everything up to this block is to be kept in the cache.
fn mark(block: Option<&mut Value>) {
    if let Some(Value::Object(block)) = block {
        block.entry("cache_control").or_insert_with(|| json!({"type": "ephemeral"}));
    }
}

struct Writer<'a> {
    profile: &'a Profile,
    /// Role and blocks, the roles in turn.
    written: Vec<(&'static str, Vec<Value>)>,
}

impl Writer<'_> {
    /// Adds `blocks` to a message of `role`: the last one if it has that role.
    fn add(&mut self, role: &'static str, blocks: Vec<Value>) {
        if blocks.is_empty() {
            return;
        }
        if self.written.is_empty() && role == "assistant" {
            self.written.push(("user", vec![json!({"type": "text", "text": "(continued)"})]));
        }
        match self.written.last_mut() {
            Some((last, known)) if *last == role => known.extend(blocks),
            _ => self.written.push((role, blocks)),
        }
    }

    fn user(&mut self, message: &Message) {
        self.add("user", blocks(&message.content));
    }

    fn assistant(&mut self, message: &Message) {
        let mut written = Vec::new();
        if let Some(Value::Array(thinking)) = message.extra.get(THINKING) {
            written.extend(thinking.iter().filter(|block| is_signed(block)).cloned());
        }
        let thought = !written.is_empty();
        written.extend(blocks(&message.content));
        written.extend(message.tool_calls.iter().map(|call| self.call(call)));
        if thought && written.iter().all(is_signed) {
            // Thinking alone is no message.
            return;
        }
        self.add("assistant", written);
    }

    fn call(&self, call: &ToolCall) -> Value {
        let input: Value = serde_json::from_str(&tidy::arguments_text(call)).unwrap_or_else(|_| json!({}));
        json!({"type": "tool_use", "id": self.profile.call_ids.write(&call.id), "name": call.name, "input": input})
    }

    /// Results stand before anything else in the message of the user that they are in.
    fn result(&mut self, message: &Message) {
        let id = message.tool_call_id.as_deref().unwrap_or_default();
        let mut block = json!({"type": "tool_result", "tool_use_id": self.profile.call_ids.write(id)});
        let mut content = blocks(&Content::Text(tidy::result_text(message)));
        content.extend(message.images().filter_map(image));
        if !content.is_empty() {
            block["content"] = Value::Array(content);
        }
        if message.is_error {
            block["is_error"] = true.into();
        }
        match self.written.last_mut() {
            Some(("user", known)) => {
                let results = known.iter().take_while(|block| block["type"] == "tool_result").count();
                known.insert(results, block);
            }
            _ => self.written.push(("user", vec![block])),
        }
    }

    fn finish(mut self) -> Vec<Value> {
        if self.written.is_empty() {
            self.written.push(("user", vec![json!({"type": "text", "text": "(no text)"})]));
        }
        if let Some(("assistant", last)) = self.written.last_mut()
            && let Some(Value::String(text)) = last.last_mut().and_then(|block| block.get_mut("text"))
        {
            // A beginning that the model is to go on with may not end in a space.
            text.truncate(text.trim_end().len());
        }
        if self.profile.cache_marks {
            let user = self.written.iter_mut().rev().find(|(role, _)| *role == "user");
            mark(user.and_then(|(_, blocks)| blocks.last_mut()));
        }
        self.written.into_iter().map(|(role, content)| json!({"role": role, "content": content})).collect()
    }
}

/// Whether a block of thinking can be sent back: one that was cut off has no signature, and is refused.
fn is_signed(block: &Value) -> bool {
    let has = |key: &str| block.get(key).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    match block["type"].as_str() {
        Some("thinking") => has("signature"),
        Some("redacted_thinking") => has("data"),
        _ => false,
    }
}

fn blocks(content: &Content) -> Vec<Value> {
    let parts = match content {
        Content::Text(text) => return text_block(text).into_iter().collect(),
        Content::Parts(parts) => parts,
    };
    let block = |part: &Part| match part {
        Part::Text(text) => text_block(&text.text).map(|mut block| {
            if let Value::Object(block) = &mut block {
                block.extend(text.extra.clone());
            }
            block
        }),
        Part::Image(part) => image(part),
        Part::Other(other) => Some(Value::Object(other.clone())),
    };
    parts.iter().filter_map(block).collect()
}

fn image(part: &ImagePart) -> Option<Value> {
    let source = match (&part.data, &part.url) {
        (Some(data), _) => {
            json!({"type": "base64", "media_type": part.media_type.as_deref().unwrap_or("image/png"), "data": data})
        }
        (None, Some(url)) => match url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
            Some((media_type, data)) => json!({"type": "base64", "media_type": media_type, "data": data}),
            None => json!({"type": "url", "url": url}),
        },
        (None, None) => return None,
    };
    Some(json!({"type": "image", "source": source}))
}
