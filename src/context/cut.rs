//! Texts cut down to a number of tokens.

use std::sync::Arc;

use super::TokenCounter;
use crate::message::{Content, Message};

/// `text` with its middle left out so that it has at most `most` tokens (unscaled), on character boundaries. In place
/// of the middle stands how many characters are gone. Where not even that fits, the result is empty.
///
/// ```
/// use hookwright::context::{EstimatedTokens, TokenCounter, cut_middle};
/// let counter = EstimatedTokens::default();
/// let text = cut_middle(&"漢😀".repeat(5_000), 60, &counter);
/// assert!(counter.count_text(&text) <= 60);
/// assert!(text.starts_with("漢😀") && text.ends_with("漢😀") && text.contains("characters left out"));
/// assert_eq!(cut_middle("short", 60, &counter), "short");
/// ```
pub fn cut_middle(text: &str, most: usize, counter: &dyn TokenCounter) -> String {
    // A character that is worth less than a thirty-second of a token is not met in practice; the count decides.
    if text.len() / 32 <= most && counter.count_text(text) <= most {
        return text.to_owned();
    }
    let characters = text.chars().count();
    let with = |kept: usize| {
        let (head, tail) = (kept.div_ceil(2), kept / 2);
        let head_end = text.char_indices().nth(head).map_or(text.len(), |(index, _)| index);
        let tail_start = if tail == 0 { text.len() } else { start_of_last(text, tail) };
        format!("{}\n[... {} characters left out ...]\n{}", &text[..head_end], characters - kept, &text[tail_start..])
    };
    // The largest number of characters that fits; more characters are as good as never fewer tokens.
    let (mut fits, mut too_many) = (None, characters.min(most.saturating_mul(32)).max(1));
    let mut low = 0;
    while low < too_many {
        let middle = low + (too_many - low) / 2;
        let candidate = with(middle);
        if counter.count_text(&candidate) <= most {
            fits = Some(candidate);
            low = middle + 1;
        } else {
            too_many = middle;
        }
    }
    fits.unwrap_or_default()
}

/// Where the last `count` characters begin; `count` is at least 1.
fn start_of_last(text: &str, count: usize) -> usize {
    text.char_indices().nth_back(count - 1).map_or(0, |(index, _)| index)
}

/// The message with its content cut down to `most` tokens; the same one if it is not longer.
pub(super) fn cut_message(message: &Arc<Message>, most: usize, counter: &dyn TokenCounter) -> Arc<Message> {
    let text = message.text();
    let pictures = message.images().count();
    if pictures == 0 && text.len() / 32 <= most && counter.count_text(&text) <= most {
        return message.clone();
    }
    let mut short = cut_middle(&text, most, counter);
    if short.is_empty() && pictures > 0 {
        short = "[image left out]".into();
    }
    // A copy of the message without a copy of what may be megabytes.
    let mut copy = Message { content: Content::from(short), ..Message::new(message.role, "") };
    copy.tool_calls.clone_from(&message.tool_calls);
    copy.tool_call_id.clone_from(&message.tool_call_id);
    copy.sender.clone_from(&message.sender);
    copy.recipients.clone_from(&message.recipients);
    copy.is_error = message.is_error;
    copy.id.clone_from(&message.id);
    copy.timestamp = message.timestamp;
    copy.reasoning.clone_from(&message.reasoning);
    copy.extra.clone_from(&message.extra);
    Arc::new(copy)
}
