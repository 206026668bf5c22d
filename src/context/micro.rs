//! Old, long tool results become one line.

use std::collections::HashMap;

use super::CachedTokens;
use crate::message::{Content, History, Message, Role};

/// The field of a tool message that holds the path of its saved whole.
pub const SAVED_WHOLE: &str = "saved_whole";
/// The field of a tool message that marks it as shortened.
const COMPACTED: &str = "hookwright_compacted";

/// What [`micro_compact`] shortens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MicroOptions {
    /// How many of the newest results stay as they are. Default: 5.
    pub newest: usize,
    /// Results of no more unscaled tokens than this stay. Default: 250.
    pub longest: usize,
    /// Tools whose results stay, by name. Default: none.
    pub exempt: Vec<String>,
    /// Below this many real tokens saved nothing is done: each change costs the server's prompt cache. Default: 2,000.
    pub worthwhile: usize,
}

impl Default for MicroOptions {
    fn default() -> Self {
        MicroOptions { newest: 5, longest: 250, exempt: Vec::new(), worthwhile: 2000 }
    }
}

/// A history with shortened results.
#[derive(Debug, Clone, PartialEq)]
pub struct MicroCompacted {
    /// The history; all other messages are shared with the one before.
    pub messages: History,
    /// How many results were shortened.
    pub shortened: usize,
    /// About how many real tokens fewer it has.
    pub tokens_saved: usize,
}

/// Makes one line of each old, long tool result: the tool, the size, and where the whole is if it was saved
/// ([`SAVED_WHOLE`] in the message's extra fields). `None` if there is nothing worth doing; that is always so for what
/// this function returned.
///
/// ```
/// use std::sync::Arc;
/// use hookwright::context::{CachedTokens, EstimatedTokens, MicroOptions, micro_compact};
/// use hookwright::message::{History, Message, ToolCall};
/// let history: History = [
///     Message::user("look"),
///     Message::assistant("").with_tool_calls(vec![ToolCall::new("c1", "read_file", Default::default())]),
///     Message::tool_result("c1", "many words ".repeat(2_000)),
/// ].into_iter().collect();
/// let tokens = CachedTokens::new(Arc::new(EstimatedTokens::default()));
/// let options = MicroOptions { newest: 0, ..MicroOptions::default() };
/// let done = micro_compact(&history, &tokens, &options).unwrap();
/// assert_eq!(done.messages[2].text(), "[result of read_file left out: 22000 characters]");
/// assert_eq!(micro_compact(&done.messages, &tokens, &options), None);
/// ```
pub fn micro_compact(history: &History, tokens: &CachedTokens, options: &MicroOptions) -> Option<MicroCompacted> {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let results = history.iter().filter(|message| message.role == Role::Tool).count();
    let mut old = results.saturating_sub(options.newest);
    let mut short: Vec<(usize, Message)> = Vec::new();
    let mut saved = 0;
    for (index, message) in history.iter().enumerate() {
        if old == 0 {
            break;
        }
        for call in &message.tool_calls {
            names.insert(&call.id, &call.name);
        }
        if message.role != Role::Tool {
            continue;
        }
        old -= 1;
        let count = tokens.message(message);
        if count <= options.longest || message.extra.contains_key(COMPACTED) {
            continue;
        }
        let id = message.tool_call_id.as_deref().unwrap_or_default();
        let name = names.get(id).copied().unwrap_or("a tool");
        if options.exempt.iter().any(|exempt| exempt == name) {
            continue;
        }
        let line = placeholder(message, name);
        let left = tokens.counter().count_message(&line);
        if left < count {
            saved += count - left;
            short.push((index, line));
        }
    }
    let tokens_saved = tokens.scaled(saved);
    if short.is_empty() || tokens_saved < options.worthwhile {
        return None;
    }
    let shortened = short.len();
    let mut messages = history.prefix(short[0].0);
    let mut short = short.into_iter().peekable();
    for (index, message) in history.iter().enumerate().skip(messages.len()) {
        match short.next_if(|(at, _)| *at == index) {
            Some((_, line)) => messages.push(line),
            None => messages.push(message.clone()),
        }
    }
    Some(MicroCompacted { messages, shortened, tokens_saved })
}

fn placeholder(message: &Message, name: &str) -> Message {
    let characters = message.text().chars().count();
    let pictures = match message.images().count() {
        0 => String::new(),
        count => format!(" and {count} images"),
    };
    let failed = if message.is_error { "failed " } else { "" };
    let whole = match message.extra.get(SAVED_WHOLE).and_then(|path| path.as_str()) {
        Some(path) => format!("; the whole is in {path}"),
        None => String::new(),
    };
    let line = format!("[{failed}result of {name} left out: {characters} characters{pictures}{whole}]");
    let mut copy = Message { content: Content::from(line), ..Message::new(Role::Tool, "") };
    copy.tool_call_id.clone_from(&message.tool_call_id);
    copy.is_error = message.is_error;
    copy.sender.clone_from(&message.sender);
    copy.id.clone_from(&message.id);
    copy.timestamp = message.timestamp;
    copy.extra.clone_from(&message.extra);
    copy.extra.insert(COMPACTED.into(), true.into());
    copy
}
