//! A history in pieces that are sent or left out as a whole.

use std::sync::Arc;

use super::note::left_out_in;
use crate::message::{History, Message, Role};

/// What a unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnitKind {
    /// Instructions.
    System,
    /// Somebody's words to the model.
    User,
    /// The model's words.
    Assistant,
    /// A message of the model with its tool calls, and all their results.
    Tools,
    /// A result without a call: it is never sent.
    Orphan,
    /// A line that stands for messages that an earlier selection left out.
    Note,
    /// Messages that were not looked at.
    Unseen,
}

/// A piece of a history that is sent or left out as a whole.
///
/// A tool group is complete here: calls that have no result in the history have one that says so, and results that
/// stand behind other messages are back behind their call.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    /// What it is.
    pub kind: UnitKind,
    /// Its messages, in order; of an orphan and of what was not looked at none.
    pub messages: Vec<Arc<Message>>,
    /// How many messages of the conversation it stands for.
    pub weight: usize,
    /// Whether the messages are not simply those that stood there.
    pub repaired: bool,
}

impl Unit {
    pub(super) fn unseen(weight: usize) -> Self {
        Unit { kind: UnitKind::Unseen, messages: Vec::new(), weight, repaired: true }
    }

    /// A unit of one message that makes no calls.
    pub(super) fn single(message: &Arc<Message>) -> Self {
        let (kind, weight) = match (message.role, left_out_in(message)) {
            (_, Some(left_out)) => (UnitKind::Note, left_out),
            (Role::System, _) => (UnitKind::System, 1),
            (Role::User, _) => (UnitKind::User, 1),
            (Role::Assistant, _) => (UnitKind::Assistant, 1),
            (Role::Tool, _) => {
                return Unit { kind: UnitKind::Orphan, messages: Vec::new(), weight: 1, repaired: true };
            }
        };
        Unit { kind, messages: vec![message.clone()], weight, repaired: false }
    }
}

/// The units of a whole history, oldest first.
///
/// ```
/// use hookwright::context::{UnitKind, units};
/// use hookwright::message::{History, Message, ToolCall};
/// let call = ToolCall::new("c1", "ls", Default::default());
/// let history: History = [
///     Message::user("what is there?"),
///     Message::assistant("").with_tool_calls(vec![call]),
///     Message::tool_result("c1", "a.py"),
///     Message::tool_result("c9", "nobody asked"),
/// ].into_iter().collect();
/// let kinds: Vec<_> = units(&history).iter().map(|unit| (unit.kind, unit.messages.len())).collect();
/// assert_eq!(kinds, [(UnitKind::User, 1), (UnitKind::Tools, 2), (UnitKind::Orphan, 0)]);
/// ```
pub fn units(history: &History) -> Vec<Unit> {
    let mut newest_first: Vec<Unit> = NewestFirst::new(history).flat_map(|part| part.into_iter().rev()).collect();
    newest_first.reverse();
    newest_first
}

/// Walks a history from its end, so that what is not sent need not be looked at. Each item is what one answer of the
/// model begins: the answer, its results, and what was said before the next answer.
pub(super) struct NewestFirst<'a> {
    history: &'a History,
    /// Where the messages end that have not been given out.
    pub(super) end: usize,
}

impl<'a> NewestFirst<'a> {
    pub(super) fn new(history: &'a History) -> Self {
        NewestFirst { history, end: history.len() }
    }
}

impl Iterator for NewestFirst<'_> {
    type Item = Vec<Unit>;

    fn next(&mut self) -> Option<Vec<Unit>> {
        let last = self.end.checked_sub(1)?;
        let mut start = last;
        while start > 0 && self.history[start].role != Role::Assistant {
            start -= 1;
        }
        let part = (start..self.end).map(|index| &self.history[index]);
        let units = grouped(part.collect());
        self.end = start;
        Some(units)
    }
}

/// Groups an answer and what follows it.
fn grouped(messages: Vec<&Arc<Message>>) -> Vec<Unit> {
    let Some((first, rest)) = messages.split_first() else { return Vec::new() };
    if first.tool_calls.is_empty() || first.role != Role::Assistant {
        return messages.into_iter().map(Unit::single).collect();
    }
    let mut results: Vec<Option<&Arc<Message>>> = vec![None; first.tool_calls.len()];
    let (mut others, mut moved, mut next) = (Vec::new(), false, 0);
    for message in rest {
        let answers = |index: &usize| {
            results[*index].is_none() && Some(&first.tool_calls[*index].id) == message.tool_call_id.as_ref()
        };
        let found = if message.role == Role::Tool { (0..results.len()).find(answers) } else { None };
        match found {
            Some(index) => {
                moved |= !others.is_empty() || index != next;
                results[index] = Some(message);
                next += 1;
            }
            None => others.push(Unit::single(message)),
        }
    }
    let missing = results.iter().any(Option::is_none);
    let weight = 1 + results.iter().flatten().count();
    let mut group = vec![(*first).clone()];
    for (call, result) in first.tool_calls.iter().zip(results) {
        group.push(result.cloned().unwrap_or_else(|| Arc::new(without_result(&call.id))));
    }
    let group = Unit { kind: UnitKind::Tools, messages: group, weight, repaired: missing || moved };
    std::iter::once(group).chain(others).collect()
}

fn without_result(id: &str) -> Message {
    Message::tool_result(id, "[no result of this call was recorded]").failed()
}
