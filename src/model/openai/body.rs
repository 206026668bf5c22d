//! What is sent to a chat completions API.

use serde_json::{Map, Value, json};

use super::super::fence::context_message;
use super::super::profile::{NoContent, Profile, ReasoningScope};
use super::super::tidy;
use super::super::{Request, ToolDescription};
use crate::message::{Content, ImagePart, Message, Part, Role, ToolCall};

/// The body of `request` for a server of this `profile`. Its settings are passed on, adapted to the profile.
///
/// ```
/// use hookwright::message::Message;
/// use hookwright::model::{Profile, Request, openai};
/// let request = Request {
///     model: Some("o3".into()),
///     messages: [Message::user("hello")].into_iter().collect(),
///     settings: serde_json::from_str(r#"{"max_tokens": 100, "temperature": 0.2}"#)?,
///     ..Request::default()
/// };
/// assert_eq!(
///     serde_json::to_string(&openai::body(&request, &*Profile::named("openai")?, false))?,
///     r#"{"model":"o3","messages":[{"role":"user","content":"hello"}],"max_completion_tokens":100}"#
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn body(request: &Request, profile: &Profile, stream: bool) -> Map<String, Value> {
    let model = request.model.as_deref().unwrap_or_default();
    let mut settings = request.settings.clone();
    profile.adapt(&mut settings, model);
    let mut body = Map::new();
    body.insert("model".into(), model.into());
    body.insert("messages".into(), Value::Array(messages(request, profile)));
    let mut tools: Vec<Value> = request.tools.iter().map(tool).collect();
    if let Some(Value::Array(own)) = settings.remove("tools") {
        tools.extend(own);
    }
    if !tools.is_empty() {
        body.insert("tools".into(), Value::Array(tools));
    }
    for (name, value) in settings {
        body.entry(name).or_insert(value);
    }
    body.shift_remove("stream");
    if stream {
        body.insert("stream".into(), true.into());
        if profile.stream_usage {
            let options = body.entry("stream_options").or_insert_with(|| json!({}));
            if let Value::Object(options) = options {
                options.entry("include_usage").or_insert(Value::Bool(true));
            }
        }
    } else {
        body.shift_remove("stream_options");
    }
    body
}

fn tool(tool: &ToolDescription) -> Value {
    json!({
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
    })
}

fn messages(request: &Request, profile: &Profile) -> Vec<Value> {
    let mut writer = Writer { profile, written: Vec::new(), images: Vec::new() };
    if let Some(system) = request.system.as_deref().filter(|system| !system.trim().is_empty()) {
        writer.plain("system", system.into());
    }
    // Reasoning of this turn: what the model thought since the user spoke.
    let last_user = request.messages.iter().rposition(|message| message.role == Role::User);
    for (place, message) in request.all_messages().enumerate() {
        let in_turn = last_user.is_none_or(|last| place > last);
        writer.message(message, in_turn || profile.reasoning_scope == ReasoningScope::All);
    }
    if !request.additional_context.is_empty() {
        writer.plain("user", context_message(&request.additional_context.join("\n")).into());
    }
    writer.flush_images();
    writer.written
}

struct Writer<'a> {
    profile: &'a Profile,
    written: Vec<Value>,
    /// Images of results, which follow when all results of a message are there.
    images: Vec<Value>,
}

impl Writer<'_> {
    fn message(&mut self, message: &Message, with_reasoning: bool) {
        match message.role {
            Role::Tool => return self.result(message),
            Role::Assistant => return self.assistant(message, with_reasoning),
            Role::System | Role::User => {}
        }
        let content = self.content(&message.content);
        if content.as_str() == Some("") {
            return;
        }
        self.plain(message.role.as_str(), content);
    }

    /// A message of `role` that is nothing but `content`.
    fn plain(&mut self, role: &str, content: Value) {
        self.flush_images();
        let first = self.written.is_empty();
        let (role, content) = if role == "system" && self.profile.one_system_message && !first {
            if let Some(last) = self.written.last_mut().filter(|last| last["role"] == "system") {
                join(&mut last["content"], content);
                return;
            }
            ("user", content)
        } else {
            (role, content)
        };
        if self.profile.alternate_roles
            && role == "user"
            && let Some(last) = self.written.last_mut().filter(|last| last["role"] == "user")
        {
            join(&mut last["content"], content);
            return;
        }
        if self.profile.assistant_after_tool && role == "user" && self.last_role() == Some("tool") {
            self.written.push(json!({"role": "assistant", "content": "(continued)"}));
        }
        self.written.push(json!({"role": role, "content": content}));
    }

    fn assistant(&mut self, message: &Message, with_reasoning: bool) {
        self.flush_images();
        let content = self.content(&message.content);
        let mut written = Map::new();
        written.insert("role".into(), "assistant".into());
        let is_empty = content.as_str() == Some("");
        match self.profile.no_content {
            NoContent::Omit if is_empty => {}
            NoContent::Null if is_empty && !message.tool_calls.is_empty() => {
                written.insert("content".into(), Value::Null);
            }
            _ => {
                written.insert("content".into(), content);
            }
        }
        let reasoning = message
            .reasoning
            .as_deref()
            .filter(|reasoning| with_reasoning && !self.profile.reasoning_field.is_empty() && !reasoning.is_empty());
        if let Some(reasoning) = reasoning {
            written.insert(self.profile.reasoning_field.clone(), reasoning.into());
        }
        for name in &self.profile.echo {
            if let Some(value) = message.extra.get(name) {
                written.insert(name.clone(), value.clone());
            }
        }
        if !message.tool_calls.is_empty() {
            let calls = message.tool_calls.iter().map(|call| self.call(call)).collect();
            written.insert("tool_calls".into(), calls);
        } else if is_empty && reasoning.is_none() && written.len() <= 2 {
            // An answer without anything in it is refused by some, and means nothing to the others.
            return;
        }
        if self.profile.alternate_roles
            && let Some(Value::Object(last)) = self.written.last_mut().filter(|last| last["role"] == "assistant")
            && !last.contains_key("tool_calls")
        {
            let before = last.remove("content").unwrap_or_default();
            let mut joined = before;
            join(&mut joined, written.remove("content").unwrap_or_default());
            written.insert("content".into(), joined);
            *last = written;
            return;
        }
        self.written.push(Value::Object(written));
    }

    fn call(&self, call: &ToolCall) -> Value {
        let mut function = Map::new();
        function.insert("name".into(), call.name.as_str().into());
        function.insert("arguments".into(), tidy::arguments_text(call).into());
        let mut written = Map::new();
        written.insert("id".into(), self.profile.call_ids.write(&call.id).into());
        written.insert("type".into(), "function".into());
        if self.profile.echo_call_fields {
            for (name, value) in &call.extra {
                match (name.as_str(), value) {
                    ("function", Value::Object(fields)) => {
                        for (name, value) in fields {
                            function.entry(name).or_insert_with(|| value.clone());
                        }
                    }
                    _ => {
                        written.entry(name).or_insert_with(|| value.clone());
                    }
                }
            }
        }
        written.insert("function".into(), Value::Object(function));
        Value::Object(written)
    }

    fn result(&mut self, message: &Message) {
        let id = message.tool_call_id.as_deref().unwrap_or_default();
        let text = tidy::result_text(message);
        let content = if self.profile.images_in_results && message.images().next().is_some() {
            self.content(&message.content)
        } else {
            self.images.extend(message.images().filter_map(image));
            Value::String(text)
        };
        self.written.push(json!({"role": "tool", "tool_call_id": self.profile.call_ids.write(id), "content": content}));
    }

    fn flush_images(&mut self) {
        if self.images.is_empty() {
            return;
        }
        let mut parts = vec![json!({"type": "text", "text": "The images of the results above:"})];
        parts.append(&mut self.images);
        self.plain("user", Value::Array(parts));
    }

    /// The content as text if it is nothing else, and without empty parts.
    fn content(&self, content: &Content) -> Value {
        let parts = match content {
            Content::Text(text) => return text.as_str().into(),
            Content::Parts(parts) => parts,
        };
        let plain = |part: &Part| match part {
            Part::Text(text) => text.extra.is_empty() || !self.profile.cache_marks,
            Part::Image(_) | Part::Other(_) => false,
        };
        if parts.iter().all(plain) {
            return content.text().into();
        }
        let parts = parts.iter().filter_map(|part| match part {
            Part::Text(text) if text.text.is_empty() => None,
            Part::Text(text) => {
                let mut written = json!({"type": "text", "text": text.text});
                if let (true, Value::Object(written)) = (self.profile.cache_marks, &mut written) {
                    written.extend(text.extra.clone());
                }
                Some(written)
            }
            Part::Image(part) => image(part),
            Part::Other(other) => Some(Value::Object(other.clone())),
        });
        match parts.collect::<Vec<_>>() {
            none if none.is_empty() => "".into(),
            parts => Value::Array(parts),
        }
    }

    fn last_role(&self) -> Option<&str> {
        self.written.last().and_then(|last| last["role"].as_str())
    }
}

fn image(part: &ImagePart) -> Option<Value> {
    let url = match (&part.url, &part.data) {
        (Some(url), _) => url.clone(),
        (None, Some(data)) => format!("data:{};base64,{data}", part.media_type.as_deref().unwrap_or("image/png")),
        (None, None) => return None,
    };
    let mut inner = Map::new();
    inner.insert("url".into(), url.into());
    if let Some(detail) = part.extra.get("detail") {
        inner.insert("detail".into(), detail.clone());
    }
    Some(json!({"type": "image_url", "image_url": inner}))
}

/// Adds `more` to the content `before`, as a paragraph of its own.
fn join(before: &mut Value, more: Value) {
    let parts = |content: Value| match content {
        Value::Array(parts) => parts,
        Value::String(text) if !text.is_empty() => vec![json!({"type": "text", "text": text})],
        _ => Vec::new(),
    };
    *before = match (before.take(), more) {
        (Value::String(before), Value::String(more)) => match (before.is_empty(), more.is_empty()) {
            (true, _) => more.into(),
            (_, true) => before.into(),
            _ => format!("{before}\n\n{more}").into(),
        },
        (Value::Null, more) => more,
        (before, Value::Null) => before,
        (before, more) => Value::Array(parts(before).into_iter().chain(parts(more)).collect()),
    };
}
