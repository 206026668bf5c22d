//! The line that stands for what was left out.

use crate::message::Message;

/// The field of a note that says how many messages it stands for.
const LEFT_OUT: &str = "hookwright_left_out";
/// Who writes notes and summaries.
pub(super) const SENDER: &str = "hookwright";

/// The line for `count` messages.
pub(super) fn left_out(count: usize) -> Message {
    let messages = if count == 1 { "message" } else { "messages" };
    let mut note = Message::user(format!("[{count} earlier {messages} left out here]")).from_sender(SENDER);
    note.extra.insert(LEFT_OUT.into(), count.into());
    note
}

/// How many messages a note stands for; `None` for any other message.
pub(super) fn left_out_in(message: &Message) -> Option<usize> {
    message.extra.get(LEFT_OUT)?.as_u64().map(|count| usize::try_from(count).unwrap_or(usize::MAX))
}
