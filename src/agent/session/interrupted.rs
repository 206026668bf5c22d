//! Results for calls that never got one.
//!
//! A provider refuses a history in which a call has no result. So whoever takes over a history in the middle of a
//! batch of calls completes it first, with results that say what is known.

use std::collections::HashSet;

use serde_json::Value;

use crate::message::{History, Message, Role};

/// Why calls have no result.
pub(super) enum Cause<'a> {
    /// The process that ran them is gone; it had recorded the start of these.
    ProcessEnded { started: &'a HashSet<String> },
    /// The history was forked while they were running elsewhere.
    Fork,
}

/// One result for each call at the end of `history` that has none, in the order of the calls.
pub(super) fn results_for_open_calls(history: &History, cause: Cause<'_>) -> Vec<Message> {
    let mut answered = Vec::new();
    for message in history.iter().rev() {
        match message.role {
            Role::Tool => answered.extend(message.tool_call_id.as_deref()),
            Role::Assistant => {
                let calls = message.tool_calls.iter().filter(|call| {
                    // Each result answers one call, also where a server gave two calls the same id.
                    let answer = answered.iter().position(|id| *id == call.id);
                    answer.map(|at| answered.swap_remove(at)).is_none()
                });
                return calls.map(|call| interrupted_result(&call.id, &cause)).collect();
            }
            Role::System | Role::User => break,
        }
    }
    Vec::new()
}

fn interrupted_result(call_id: &str, cause: &Cause<'_>) -> Message {
    let (text, hint) = match cause {
        Cause::ProcessEnded { started } if started.contains(call_id) => (
            "interrupted: the process ended while this call was running, so it may have taken effect in part",
            "check the state of things before you call it again",
        ),
        Cause::ProcessEnded { .. } => (
            "interrupted: the process ended before this call had a result",
            "check whether it took effect before you call it again",
        ),
        Cause::Fork => (
            "interrupted: this conversation is a copy made while the call was running, and has no result of it",
            "call it again if the result is needed here",
        ),
    };
    let mut message = Message::tool_result(call_id, text).failed();
    message.hint = Some(hint.to_owned());
    message.extra.insert("cause".to_owned(), Value::from("interrupted"));
    message
}
