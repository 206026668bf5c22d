//! Parts of messages as every server takes them.

use serde_json::json;

use crate::message::{Message, ToolCall};

/// The arguments of `call` as the text of one JSON object, always: servers that decode what they are sent fail on
/// anything else, and the model would be stuck with a conversation that no request can hold.
pub(super) fn arguments_text(call: &ToolCall) -> String {
    let text = call.arguments_json();
    match call.arguments() {
        Ok(_) if text.trim_start().starts_with('{') => text.into_owned(),
        Ok(arguments) => serde_json::to_string(arguments).unwrap_or_else(|_| "{}".to_owned()),
        Err(_) => json!({"unreadable_arguments": text}).to_string(),
    }
}

/// The result of a call as text, with the hint that goes with it.
pub(super) fn result_text(message: &Message) -> String {
    let text = message.text();
    match message.hint.as_deref() {
        Some(hint) if !text.contains(hint) => format!("{text}\n{hint}"),
        _ => text.into_owned(),
    }
}
