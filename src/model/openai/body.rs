//! The body of a request.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::message::{Content, ImagePart, Message, Part, Role, ToolCall};
use crate::model::{NoContent, Profile, ReasoningScope, Request, context_message};

/// The body of a request for chat completions.
///
/// ```
/// use hookwright::message::Message;
/// use hookwright::model::{Profile, Request, openai};
/// let request = Request { messages: [Message::user("hi")].into_iter().collect(), ..Request::default() };
/// let body = openai::body(&request, "qwen3", Default::default(), &Profile::default(), false);
/// assert_eq!(body.to_string(), r#"{"model":"qwen3","messages":[{"role":"user","content":"hi"}]}"#);
/// ```
pub fn body(request: &Request, model: &str, settings: Map<String, Value>, profile: &Profile, stream: bool) -> Value {
    let mut messages = Messages { list: Vec::new(), profile };
    if let Some(system) = request.system.as_deref() {
        messages.add_system(system);
    }
    let all: Vec<&Arc<Message>> = request.all_messages().collect();
    let last_said = all.iter().rposition(|message| message.role == Role::User).unwrap_or(0);
    for (index, message) in all.iter().enumerate() {
        let reasons = profile.reasoning_scope == ReasoningScope::All || index > last_said;
        messages.add(message, reasons);
    }
    if !request.additional_context.is_empty() {
        messages.add_user(Value::String(context_message(&request.additional_context.join("\n"))));
    }
    let mut body = Map::new();
    body.insert("model".into(), model.into());
    body.insert("messages".into(), messages.list.into());
    if !request.tools.is_empty() {
        let tool = |tool: &crate::model::ToolDescription| {
            json!({"type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": tool.schema,
            }})
        };
        body.insert("tools".into(), request.tools.iter().map(tool).collect());
    }
    if stream {
        body.insert("stream".into(), true.into());
        if profile.stream_usage {
            body.insert("stream_options".into(), json!({"include_usage": true}));
        }
    }
    // What the user sets wins.
    body.extend(settings);
    Value::Object(body)
}

struct Messages<'p> {
    list: Vec<Value>,
    profile: &'p Profile,
}

impl Messages<'_> {
    fn last_role(&self) -> Option<&str> {
        self.list.last()?.get("role")?.as_str()
    }

    fn add_system(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let first = self.list.first_mut().filter(|message| message["role"] == "system");
        match first {
            Some(Value::Object(first)) if self.profile.one_system_message => {
                let before = first.get("content").and_then(Value::as_str).unwrap_or_default();
                let joined = format!("{before}\n\n{text}");
                first.insert("content".into(), joined.into());
            }
            None if self.profile.one_system_message => {
                self.list.insert(0, json!({"role": "system", "content": text}));
            }
            _ => self.list.push(json!({"role": "system", "content": text})),
        }
    }

    fn add(&mut self, message: &Message, reasons: bool) {
        match message.role {
            Role::System => self.add_system(&message.text()),
            Role::User => {
                if let Some(content) = content_of(&message.content) {
                    self.add_user(content);
                }
            }
            Role::Assistant => self.add_assistant(message, reasons),
            Role::Tool => self.add_result(message),
        }
    }

    fn add_user(&mut self, content: Value) {
        if self.profile.assistant_after_tool && self.last_role() == Some("tool") {
            self.list.push(json!({"role": "assistant", "content": "OK."}));
        }
        if self.profile.alternate_roles
            && self.last_role() == Some("user")
            && let Some(Value::Object(last)) = self.list.last_mut()
        {
            let before = last.remove("content").unwrap_or_default();
            last.insert("content".into(), joined(before, content));
            return;
        }
        self.list.push(json!({"role": "user", "content": content}));
    }

    fn add_assistant(&mut self, message: &Message, reasons: bool) {
        let text = message.text();
        if text.is_empty() && message.tool_calls.is_empty() {
            return; // Nothing was said: servers refuse such a message.
        }
        let mut map = Map::new();
        map.insert("role".into(), "assistant".into());
        match (text.is_empty(), self.profile.no_content) {
            (false, _) => drop(map.insert("content".into(), text.into())),
            (true, NoContent::Null) => drop(map.insert("content".into(), Value::Null)),
            (true, NoContent::Empty) => drop(map.insert("content".into(), "".into())),
            (true, NoContent::Omit) => {}
        }
        if let Some(reasoning) = &message.reasoning
            && reasons
            && !self.profile.reasoning_field.is_empty()
        {
            map.insert(self.profile.reasoning_field.clone(), reasoning.as_str().into());
        }
        for field in &self.profile.echo {
            if let Some(value) = message.extra.get(field) {
                map.insert(field.clone(), value.clone());
            }
        }
        if !message.tool_calls.is_empty() {
            map.insert("tool_calls".into(), message.tool_calls.iter().map(|call| self.call(call)).collect());
        }
        self.list.push(Value::Object(map));
    }

    fn call(&self, call: &ToolCall) -> Value {
        let arguments = match call.arguments() {
            Ok(_) => call.arguments_json(),
            // What is no JSON object is refused by servers, also when it was their model that wrote it.
            Err(_) => json!({"invalid_arguments": call.arguments_json()}).to_string().into(),
        };
        let mut map = Map::new();
        map.insert("id".into(), self.profile.call_ids.write(&call.id).into());
        map.insert("type".into(), "function".into());
        map.insert("function".into(), json!({"name": call.name, "arguments": arguments}));
        if self.profile.echo_call_fields {
            for (name, value) in &call.extra {
                map.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        Value::Object(map)
    }

    fn add_result(&mut self, message: &Message) {
        let id = message.tool_call_id.as_deref().unwrap_or_default();
        let id = self.profile.call_ids.write(id);
        self.list.push(json!({"role": "tool", "tool_call_id": id, "content": message.text()}));
        let images: Vec<Value> = message.images().filter_map(image).collect();
        if !images.is_empty() {
            self.list.push(json!({"role": "user", "content": images}));
        }
    }
}

/// The content of a message of the user: text if it is text alone; `None` if nothing is in it.
fn content_of(content: &Content) -> Option<Value> {
    match content {
        Content::Text(text) => (!text.is_empty()).then(|| text.as_str().into()),
        Content::Parts(parts) => {
            let part = |part: &Part| match part {
                Part::Text(text) => (!text.text.is_empty()).then(|| json!({"type": "text", "text": text.text})),
                Part::Image(part) => image(part),
                Part::Other(other) => Some(Value::Object(other.clone())),
            };
            let parts: Vec<Value> = parts.iter().filter_map(part).collect();
            (!parts.is_empty()).then(|| parts.into())
        }
    }
}

fn image(part: &ImagePart) -> Option<Value> {
    let url = match (&part.url, &part.data) {
        (Some(url), _) => url.clone(),
        (None, Some(data)) => format!("data:{};base64,{data}", part.media_type.as_deref().unwrap_or("image/png")),
        (None, None) => return None,
    };
    Some(json!({"type": "image_url", "image_url": {"url": url}}))
}

/// Two contents behind each other.
fn joined(before: Value, after: Value) -> Value {
    let parts = |value: Value| match value {
        Value::Array(parts) => parts,
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        _ => Vec::new(),
    };
    match (before, after) {
        (Value::String(before), Value::String(after)) => format!("{before}\n\n{after}").into(),
        (before, after) => [parts(before), parts(after)].concat().into(),
    }
}
