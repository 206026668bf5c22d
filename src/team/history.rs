//! What a teammate's conversation says about its mail.

use std::collections::HashSet;

use serde_json::Value;

use crate::message::{History, Message};

/// Where a message names the letters that it holds.
const MAIL: &str = "mail";

/// The ids of the letters that stand in a conversation: they were delivered.
pub fn delivered_in(history: &History) -> HashSet<String> {
    let ids = history.iter().filter_map(|message| message.extra.get(MAIL)?.as_array());
    ids.flatten().filter_map(|id| Some(id.as_str()?.to_owned())).collect()
}

/// Marks a message as one that holds these letters.
pub(super) fn mark(message: &mut Message, ids: impl Iterator<Item = String>) {
    message.extra.insert(MAIL.to_owned(), ids.map(Value::from).collect());
}
