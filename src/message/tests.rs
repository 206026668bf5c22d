use proptest::prelude::*;
use serde_json::json;

use super::*;

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("not an object: {other}"),
    }
}

#[test]
fn a_stored_message_reads_back_with_the_fields_this_version_does_not_know() {
    let stored = json!({
        "role": "assistant", "content": [{"type": "text", "text": "hi", "cache": true}, {"type": "audio", "n": 1}],
        "tool_calls": [{"id": "c1", "name": "ls", "arguments": {"path": "."}, "signature": "abc"}],
        "id": "m1", "timestamp": "2025-01-02T03:04:05.000Z", "mood": {"deep": [1, 2.5]},
    });
    let message: Message = serde_json::from_value(stored.clone()).unwrap();
    assert_eq!(message.text(), "hi");
    assert_eq!(message.extra["mood"], json!({"deep": [1, 2.5]}));
    assert_eq!(serde_json::to_value(&message).unwrap(), stored);
}

#[test]
fn nulls_that_servers_write_are_read_as_empty() {
    let stored = json!({"role": "assistant", "content": null, "tool_calls": null, "recipients": null, "hint": null});
    let message: Message = serde_json::from_value(stored).unwrap();
    assert_eq!(message, Message::assistant(""));
}

#[test]
fn a_timestamp_may_be_stored_in_milliseconds() {
    let message: Message = serde_json::from_value(json!({"role": "user", "timestamp": 1500})).unwrap();
    assert_eq!(message.timestamp, Some(Timestamp::from_millis(1500)));
    assert_eq!(serde_json::to_value(&message).unwrap()["timestamp"], "1970-01-01T00:00:01.500Z");
    assert!(serde_json::from_value::<Message>(json!({"role": "user", "timestamp": "soon"})).is_err());
}

#[test]
fn an_unknown_role_names_the_nearest_one() {
    let error = "asistant".parse::<Role>().unwrap_err();
    assert_eq!(error.to_string(), "unknown role \"asistant\"; did you mean \"assistant\"?");
    assert_eq!("tool".parse(), Ok(Role::Tool));
}

#[test]
fn arguments_are_decoded_from_what_models_send() {
    for (text, wanted) in [
        ("", json!({})),
        ("  \n", json!({})),
        ("null", json!({})),
        ("{}", json!({})),
        (r#"{"a": 1}"#, json!({"a": 1})),
        (r#""{\"a\": 1}""#, json!({"a": 1})),
        (r#"{"a": "\ud800x"}"#, json!({"a": "\u{fffd}x"})),
    ] {
        let call = ToolCall::from_text("c", "t", text);
        assert_eq!(call.arguments(), Ok(&object(wanted)), "{text}");
        assert_eq!(call.arguments_json(), text, "the exact text is kept");
    }
}

#[test]
fn broken_arguments_keep_the_position_for_the_model() {
    let call = ToolCall::from_text("c", "t", "{\"path\": \"a.py\",\n \"line\" 3}");
    let error = call.arguments().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the arguments are not valid JSON: expected `:` at line 2 column 9, near \" \\\"line\\\" 3}\"; send one JSON object"
    );
    assert!(!error.is_cut_off());
    assert!(ToolCall::from_text("c", "t", "{\"path\": \"a.").arguments().unwrap_err().is_cut_off());

    let list = ToolCall::from_text("c", "t", "[1]");
    assert_eq!(list.arguments(), Err(&ArgumentsError::NotAnObject { found: "a list" }));
    let deep = ToolCall::from_text("c", "t", "[".repeat(100_000));
    assert!(deep.arguments().unwrap_err().to_string().contains("recursion limit"), "nesting is refused, not followed");
}

#[test]
fn replaced_arguments_replace_the_text() {
    let mut call = ToolCall::from_text("c", "t", r#"{"token": "secret"}"#);
    call.set_arguments(object(json!({"token": "***"})));
    assert_eq!(call.arguments_json(), r#"{"token":"***"}"#);
    assert!(!serde_json::to_string(&call).unwrap().contains("secret"));
}

#[test]
fn a_stored_object_wins_over_a_text_that_says_something_else() {
    let stored = json!({"id": "c", "name": "t", "arguments": {"a": 2}, "arguments_json": "{\"a\": 1}"});
    let call: ToolCall = serde_json::from_value(stored).unwrap();
    assert_eq!(call, ToolCall::new("c", "t", object(json!({"a": 2}))));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::num::f64::NORMAL.prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

fn any_object() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec((any::<String>(), any_json()), 0..4).prop_map(|entries| entries.into_iter().collect())
}

/// Names that no field of a message, a call or a part has.
fn any_extra() -> impl Strategy<Value = Map<String, Value>> {
    any_object().prop_map(|map| map.into_iter().map(|(key, value)| (format!("x-{key}"), value)).collect())
}

fn any_call() -> impl Strategy<Value = ToolCall> {
    let made = prop_oneof![
        (any::<String>(), any::<String>(), any_object()).prop_map(|(id, name, map)| ToolCall::new(id, name, map)),
        (any::<String>(), any::<String>(), any_object())
            .prop_map(|(id, name, map)| { ToolCall::from_text(id, name, serde_json::to_string_pretty(&map).unwrap()) }),
        (any::<String>(), any::<String>(), any::<String>())
            .prop_map(|(id, name, text)| ToolCall::from_text(id, name, text)),
        (any::<String>(), any_json()).prop_map(|(id, value)| ToolCall::from_text(id, "t", value.to_string())),
    ];
    (made, any_extra()).prop_map(|(mut call, extra)| {
        call.extra = extra;
        call
    })
}

fn any_content() -> impl Strategy<Value = Content> {
    let part = prop_oneof![
        (any::<String>(), any_extra()).prop_map(|(text, extra)| Part::Text(TextPart { text, extra })),
        (any::<String>(), any::<String>()).prop_map(|(kind, data)| Part::image(kind, data)),
        any::<String>().prop_map(Part::image_url),
        any_extra().prop_map(Part::Other),
    ];
    prop_oneof![any::<String>().prop_map(Content::Text), prop::collection::vec(part, 0..4).prop_map(Content::Parts)]
}

fn any_message() -> impl Strategy<Value = Message> {
    let head = (prop::sample::select(Role::ALL), any_content(), prop::collection::vec(any_call(), 0..3));
    let text = || prop::option::of(any::<String>());
    let names = (text(), text(), text(), text(), text(), prop::collection::vec(any::<String>(), 0..3));
    let time = prop::option::of(any::<i64>().prop_map(Timestamp::from_millis));
    (head, names, time, any::<bool>(), any_extra()).prop_map(|(head, names, timestamp, is_error, extra)| {
        let (role, content, tool_calls) = head;
        let (tool_call_id, reasoning, sender, hint, id, recipients) = names;
        Message {
            role,
            content,
            tool_calls,
            tool_call_id,
            reasoning,
            sender,
            recipients,
            is_error,
            hint,
            id,
            timestamp,
            extra,
        }
    })
}

proptest! {
    #[test]
    fn a_message_round_trips_through_json(message in any_message()) {
        let text = serde_json::to_string(&message).unwrap();
        let read: Message = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&read, &message);
        prop_assert_eq!(serde_json::to_string(&read).unwrap(), text, "a second save writes the same bytes");
    }

    #[test]
    fn any_text_of_arguments_is_taken_and_kept(text in any::<String>()) {
        let call = ToolCall::from_text("c", "t", text.clone());
        prop_assert_eq!(call.arguments_json(), text);
    }
}
