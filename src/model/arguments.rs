//! Arguments of tool calls as servers really send them.

use serde_json::{Deserializer, Value};

use crate::message::ToolCall;
use crate::message::json::replace_lone_surrogates;

/// The calls that one call of the server stands for: usually itself. The text of the arguments may be several objects
/// behind each other, as from a server that lost the boundary between two calls; then each is a call, of which the first
/// has the id. An empty object before the real one, and one that is repeated, is no call of its own.
pub(super) fn calls(id: String, name: String, text: &str) -> Vec<ToolCall> {
    let text = replace_lone_surrogates(text);
    let objects = match concatenated(&text) {
        Some(objects) => objects,
        None => return vec![ToolCall::from_text(id, name, text.into_owned())],
    };
    let ids = std::iter::once(id).chain(std::iter::repeat(String::new()));
    objects.into_iter().zip(ids).map(|(object, id)| ToolCall::from_text(id, name.clone(), object)).collect()
}

/// The different objects in `text`, if it is two or more of them behind each other.
fn concatenated(text: &str) -> Option<Vec<String>> {
    if !text.trim_start().starts_with('{') || !has_boundary(text) {
        return None;
    }
    let mut objects: Vec<(Value, String)> = Vec::new();
    let mut stream = Deserializer::from_str(text).into_iter::<Value>();
    let mut from = 0;
    let mut count = 0;
    while let Some(value) = stream.next() {
        let value = value.ok().filter(Value::is_object)?;
        let to = stream.byte_offset();
        count += 1;
        if objects.iter().all(|(known, _)| *known != value) {
            objects.push((value, text[from..to].trim().to_owned()));
        }
        from = to;
    }
    if objects.len() > 1 {
        objects.retain(|(value, _)| value.as_object().is_none_or(|object| !object.is_empty()));
    }
    (count > 1).then(|| objects.into_iter().map(|(_, text)| text).collect())
}

/// Whether a brace opens right behind one that closes: a cheap sign that there could be two objects.
fn has_boundary(text: &str) -> bool {
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'}', bytes).any(|at| bytes[at + 1..].trim_ascii_start().first() == Some(&b'{'))
}

/// Whether `text` is a whole JSON object, so that nothing can follow in the same call.
pub(super) fn is_whole(text: &str) -> bool {
    text.trim_end().ends_with('}') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String)> {
        let calls = calls("c".into(), "t".into(), text);
        let shown = |call: &ToolCall| match call.arguments() {
            Ok(arguments) => serde_json::to_string(arguments).unwrap(),
            Err(error) => error.to_string(),
        };
        calls.iter().map(|call| (call.id.clone(), shown(call))).collect()
    }

    #[test]
    fn one_object_is_one_call_however_it_is_written() {
        for text in
            [r#"{"a":1}"#, r#""{\"a\":1}""#, r#"{}{"a":1}"#, r#"{"a":1}{"a":1}"#, "{\"a\":1}\n", r#"{"a":1} {}"#]
        {
            assert_eq!(read(text), [("c".into(), r#"{"a":1}"#.into())], "{text}");
        }
        for text in ["", "null", "{}", "{}{}", " "] {
            assert_eq!(read(text), [("c".into(), "{}".into())], "{text}");
        }
    }

    #[test]
    fn two_objects_are_two_calls() {
        assert_eq!(
            read(r#"{"a":1}{"a":2}"#),
            [("c".into(), r#"{"a":1}"#.into()), (String::new(), r#"{"a":2}"#.into())]
        );
    }

    #[test]
    fn halves_of_characters_are_replaced_in_value_and_text() {
        let call = calls("c".into(), "t".into(), r#"{"a":"\ud83d"}"#).remove(0);
        assert_eq!(call.arguments().unwrap()["a"], "\u{fffd}");
        assert_eq!(call.arguments_json(), r#"{"a":"\ufffd"}"#);
    }

    #[test]
    fn what_is_no_object_keeps_its_error() {
        assert!(calls("c".into(), "t".into(), r#"{"a":1}{"a""#)[0].arguments().is_err());
        assert!(calls("c".into(), "t".into(), r#"{"a":"#)[0].arguments().unwrap_err().is_cut_off());
        assert!(calls("c".into(), "t".into(), "[1]")[0].arguments().is_err());
    }
}
