//! Tool calls that come in pieces, from servers that do not agree on what tells the pieces of one call from another's.

use std::collections::HashSet;

use serde_json::Value;

use super::super::assemble::Tell;
use super::super::{StreamEvent, arguments};
use super::reply::{RawCall, arguments_text, extra_of, id_of};

/// The calls of a reply, as far as they have come in.
#[derive(Debug, Default)]
pub(super) struct Calls {
    slots: Vec<Slot>,
    tools: HashSet<String>,
}

#[derive(Debug)]
struct Slot {
    index: Option<u64>,
    call: RawCall,
}

impl Calls {
    pub(super) fn with_tools(tools: HashSet<String>) -> Self {
        Calls { slots: Vec::new(), tools }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(super) fn into_raw(self) -> Vec<RawCall> {
        let named = |call: &RawCall| !call.name.is_empty() || !call.arguments.trim().is_empty();
        self.slots.into_iter().map(|slot| slot.call).filter(named).collect()
    }

    /// Takes in one piece.
    pub(super) fn add(&mut self, piece: &Value, tell: Tell<'_>) {
        let Some(piece) = piece.as_object() else { return };
        let function = piece.get("function").and_then(Value::as_object).unwrap_or(piece);
        let id = id_of(piece);
        let index = piece.get("index").and_then(|index| index.as_u64().or_else(|| index.as_str()?.parse().ok()));
        let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
        let delta = arguments_text(function.get("arguments"));
        let place = match self.place(index, &id, name, &delta) {
            Some(place) => place,
            None => {
                self.slots.push(Slot { index, call: RawCall::default() });
                self.slots.len() - 1
            }
        };
        let call = &mut self.slots[place].call;
        if call.id.is_empty() {
            call.id = id;
        }
        add_name(call, name, &self.tools);
        call.arguments.push_str(&delta);
        for (name, value) in extra_of(piece) {
            call.extra.insert(name, value);
        }
        tell(StreamEvent::ToolCall {
            index: place,
            id: call.id.clone(),
            name: call.name.clone(),
            arguments_delta: delta,
        });
    }

    /// The call that a piece belongs to; `None` if it begins one.
    fn place(&self, index: Option<u64>, id: &str, name: &str, delta: &str) -> Option<usize> {
        let by_index = index.and_then(|index| self.slots.iter().rposition(|slot| slot.index == Some(index)));
        let by_id = || self.slots.iter().rposition(|slot| !id.is_empty() && slot.call.id == id);
        let place = match (index, by_index) {
            (_, Some(place)) => place,
            // A number that is new begins a call, unless the id is known and no name says that it is another.
            (Some(_), None) if !name.is_empty() => return None,
            (Some(_), None) => by_id().or_else(|| self.newest_if(id.is_empty() && !delta.is_empty()))?,
            (None, None) if !id.is_empty() => match by_id() {
                Some(place) => place,
                None if name.is_empty() => self.newest_if(true)?,
                None => self.newest_if(self.goes_on(name, delta))?,
            },
            (None, None) => self.newest_if(true)?,
        };
        let begins = !name.is_empty() && self.begins_another(place, id, name, delta);
        (!begins).then_some(place)
    }

    fn newest_if(&self, holds: bool) -> Option<usize> {
        self.slots.len().checked_sub(1).filter(|_| holds)
    }

    /// Whether a piece under a new id goes on with the newest call: some servers give each piece an id of its own.
    fn goes_on(&self, name: &str, delta: &str) -> bool {
        self.slots.last().is_some_and(|slot| {
            let known = &slot.call;
            known.name == name
                && !known.arguments.is_empty()
                && !arguments::is_whole(&known.arguments)
                && !delta.trim_start().starts_with('{')
        })
    }

    /// Whether a piece that has a name, and would by its number or id belong to the call at `place`, begins another.
    fn begins_another(&self, place: usize, id: &str, name: &str, delta: &str) -> bool {
        let known = &self.slots[place].call;
        if known.name.is_empty() {
            return false;
        }
        let continues = !known.arguments.is_empty()
            && !arguments::is_whole(&known.arguments)
            && known.name == name
            && !delta.trim_start().starts_with('{');
        if !id.is_empty() && !known.id.is_empty() && known.id != id {
            return !continues;
        }
        if known.arguments.is_empty() {
            // Nothing but names so far: fragments of one, unless both are tools.
            return known.name != name && self.tools.contains(name) && self.tools.contains(&known.name);
        }
        if arguments::is_whole(&known.arguments) {
            return !delta.trim().is_empty() || known.name != name;
        }
        known.name != name && self.tools.contains(name)
    }
}

/// Adds a piece of a name, which may also be the whole of it once more.
fn add_name(call: &mut RawCall, name: &str, tools: &HashSet<String>) {
    if name.is_empty() || call.name == name || tools.contains(&call.name) {
        return;
    }
    if !call.name.is_empty() && name.starts_with(&call.name) {
        name.clone_into(&mut call.name);
    } else if call.arguments.is_empty() || call.name.is_empty() {
        call.name.push_str(name);
    }
}
