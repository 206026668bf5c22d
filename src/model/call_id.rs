//! Ids of tool calls: made where a server gives none, and written as each server accepts them.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::Deserialize;

use super::{Reply, Request};
use crate::message::ToolCall;

const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// Which ids of tool calls a server accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallIds {
    /// The only length that is accepted.
    pub length: Option<usize>,
    /// The greatest length that is accepted.
    pub longest: Option<usize>,
    /// Which characters are.
    pub characters: Characters,
}

/// Which characters an id may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Characters {
    /// Any.
    #[default]
    Any,
    /// ASCII letters and digits.
    Alphanumeric,
    /// ASCII letters, digits, `_` and `-`.
    Word,
}

impl CallIds {
    fn accepts(&self, id: &str) -> bool {
        let fits = |byte: u8| match self.characters {
            Characters::Any => true,
            Characters::Alphanumeric => byte.is_ascii_alphanumeric(),
            Characters::Word => byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-',
        };
        !id.is_empty()
            && self.length.is_none_or(|length| id.len() == length)
            && self.longest.is_none_or(|longest| id.len() <= longest)
            && id.bytes().all(fits)
    }

    /// `id` as the server accepts it: itself, or one that is made from it. The same id always becomes the same, so that
    /// calls and results keep belonging together.
    pub fn write<'a>(&self, id: &'a str) -> Cow<'a, str> {
        if self.accepts(id) {
            return Cow::Borrowed(id);
        }
        let length = self.length.unwrap_or_else(|| self.longest.unwrap_or(24).min(24)).min(32);
        let digest = blake3::hash(id.as_bytes());
        Cow::Owned(digest.as_bytes()[..length].iter().map(|byte| letter(*byte)).collect())
    }
}

fn letter(byte: u8) -> char {
    char::from(LETTERS[usize::from(byte) % LETTERS.len()])
}

/// An id that no other call has.
fn fresh() -> String {
    let mut random = [0; 24];
    if getrandom::fill(&mut random).is_err() {
        random.fill_with(|| fastrand::u8(..));
    }
    random.iter().fold("call_".to_owned(), |mut id, byte| {
        id.push(letter(*byte));
        id
    })
}

/// Gives each of `calls` that has no id, or one that is taken, a new one.
pub(super) fn make_unique<'a>(calls: &'a mut [ToolCall], mut taken: HashSet<Cow<'a, str>>) {
    for call in calls {
        if call.id.trim().is_empty() || taken.contains(call.id.as_str()) {
            call.id = fresh();
        }
        taken.insert(Cow::Owned(call.id.clone()));
    }
}

/// Gives calls of `reply` new ids where the conversation of `request` has theirs already: a server that counts from
/// `call_0` in each reply would give two results to one call.
pub(super) fn make_unique_in(reply: &mut Reply, request: &Request) {
    if reply.tool_calls.is_empty() {
        return;
    }
    let used = request.all_messages().flat_map(|message| &message.tool_calls);
    make_unique(&mut reply.tool_calls, used.map(|call| Cow::Borrowed(call.id.as_str())).collect());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Map;

    use super::*;
    use crate::message::Message;

    const MISTRAL: CallIds = CallIds { length: Some(9), longest: None, characters: Characters::Alphanumeric };

    fn call(id: &str) -> ToolCall {
        ToolCall::new(id, "ls", Map::new())
    }

    #[test]
    fn an_id_that_fits_is_kept_and_another_becomes_the_same_each_time() {
        assert_eq!(MISTRAL.write("abcDEF123"), "abcDEF123");
        let made = MISTRAL.write("call_1");
        assert_eq!((made.len(), made.chars().all(|c| c.is_ascii_alphanumeric())), (9, true));
        assert_eq!(MISTRAL.write("call_1"), made);
        assert_ne!(MISTRAL.write("call_2"), made);
        let word = CallIds { characters: Characters::Word, longest: Some(40), ..CallIds::default() };
        assert_eq!(word.write("toolu_1-b"), "toolu_1-b");
        assert_eq!(word.write("functions.ls:0").len(), 24);
        assert_eq!(CallIds::default().write("functions.ls:0"), "functions.ls:0");
    }

    #[test]
    fn calls_get_ids_that_neither_the_reply_nor_the_conversation_has() {
        let asked = Message::assistant("").with_tool_calls(vec![call("call_0")]);
        let request = Request { messages: [Message::user("go"), asked].into_iter().collect(), ..Request::default() };
        let mut reply = Reply::tool_calls(vec![call("call_0"), call("a"), call(""), call("a"), call(" ")]);
        make_unique_in(&mut reply, &request);
        let ids: HashSet<&str> = reply.tool_calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids.len(), 5);
        assert!(ids.contains("a") && !ids.contains("call_0") && ids.iter().all(|id| !id.trim().is_empty()));
        assert_eq!(reply.tool_calls[1].id, "a");
    }

    proptest! {
        #[test]
        fn what_is_written_is_accepted(id in ".{0,50}", length in prop::option::of(1_usize..33), longest in prop::option::of(1_usize..65)) {
            for characters in [Characters::Any, Characters::Word, Characters::Alphanumeric] {
                let longest = longest.filter(|longest| length.is_none_or(|length| length <= *longest));
                let rule = CallIds { length, longest, characters };
                let written = rule.write(&id);
                prop_assert!(rule.accepts(&written), "{}", written);
                prop_assert_eq!(rule.write(&written), &*written);
            }
        }
    }
}
