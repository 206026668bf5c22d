use serde_json::{Value, json};

use super::*;
use crate::message::Message;
use crate::model::{StopReason, StreamEvent};

fn stream(chunks: &[Value]) -> Reply {
    let mut assembler = Assembler::default();
    let mut told = String::new();
    for chunk in chunks {
        let mut tell = |event: StreamEvent| {
            if let StreamEvent::Text { delta } = event {
                told.push_str(&delta);
            }
        };
        assembler.push_data(&chunk.to_string(), &mut tell).unwrap();
    }
    let reply = assembler.into_reply();
    assert_eq!(reply.content.text(), told);
    reply
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta}]})
}

fn calls(reply: &Reply) -> Vec<(String, String)> {
    reply.tool_calls.iter().map(|call| (call.name.clone(), call.arguments_json().into_owned())).collect()
}

fn call(index: Value, id: Value, name: Value, arguments: Value) -> Value {
    let mut call = json!({"function": {"name": name, "arguments": arguments}});
    for (key, value) in [("index", index), ("id", id)] {
        if value != "-" {
            call[key] = value;
        }
    }
    call
}

#[test]
fn pieces_of_calls_find_each_other_whatever_the_server_numbers() {
    let none = json!("-");
    let null = Value::Null;
    let want = [("a".to_owned(), r#"{"x":1}"#.to_owned()), ("b".to_owned(), r#"{"y":2}"#.to_owned())];
    let sets: Vec<(&str, Vec<Value>)> = vec![
        (
            "as specified",
            vec![
                call(0.into(), "1".into(), "a".into(), "".into()),
                call(0.into(), none.clone(), null.clone(), r#"{"x""#.into()),
                call(0.into(), none.clone(), null.clone(), ":1}".into()),
                call(1.into(), "2".into(), "b".into(), "".into()),
                call(1.into(), none.clone(), null.clone(), r#"{"y":2}"#.into()),
            ],
        ),
        (
            "interleaved",
            vec![
                call(0.into(), "1".into(), "a".into(), r#"{"x""#.into()),
                call(1.into(), "2".into(), "b".into(), r#"{"y""#.into()),
                call(0.into(), none.clone(), null.clone(), ":1}".into()),
                call(1.into(), none.clone(), null.clone(), ":2}".into()),
            ],
        ),
        (
            "without index",
            vec![
                call(none.clone(), "1".into(), "a".into(), r#"{"x""#.into()),
                call(none.clone(), none.clone(), null.clone(), ":1}".into()),
                call(none.clone(), "2".into(), "b".into(), r#"{"y":2}"#.into()),
            ],
        ),
        (
            "index always 0",
            vec![
                call(0.into(), "1".into(), "a".into(), r#"{"x":1}"#.into()),
                call(0.into(), "2".into(), "b".into(), r#"{"y":"#.into()),
                call(0.into(), none.clone(), null.clone(), "2}".into()),
            ],
        ),
        (
            "index from 3",
            vec![
                call(3.into(), "1".into(), "a".into(), r#"{"x":1}"#.into()),
                call(7.into(), "2".into(), "b".into(), r#"{"y":2}"#.into()),
            ],
        ),
        (
            "no index, no id",
            vec![
                call(none.clone(), none.clone(), "a".into(), r#"{"x":1}"#.into()),
                call(none.clone(), null.clone(), "b".into(), r#"{"y":2}"#.into()),
            ],
        ),
        (
            "the same id",
            vec![
                call(0.into(), "c".into(), "a".into(), r#"{"x":1}"#.into()),
                call(1.into(), "c".into(), "b".into(), r#"{"y":2}"#.into()),
            ],
        ),
        (
            "the same id and index",
            vec![
                call(0.into(), "c".into(), "a".into(), r#"{"x":1}"#.into()),
                call(0.into(), "c".into(), "b".into(), r#"{"y":2}"#.into()),
            ],
        ),
        (
            "names repeated",
            vec![
                call(0.into(), "1".into(), "a".into(), r#"{"x""#.into()),
                call(0.into(), "1".into(), "a".into(), ":1}".into()),
                call(1.into(), "2".into(), "b".into(), r#"{"y""#.into()),
                call(1.into(), "2".into(), "b".into(), ":2}".into()),
            ],
        ),
        (
            "objects",
            vec![
                call(0.into(), "1".into(), "a".into(), json!({"x": 1})),
                call(1.into(), "2".into(), "b".into(), json!({"y": 2})),
            ],
        ),
    ];
    for (name, pieces) in sets {
        let chunks: Vec<Value> = pieces.iter().map(|piece| delta(json!({"tool_calls": [piece]}))).collect();
        let reply = stream(&chunks);
        assert_eq!(calls(&reply), want, "{name}");
        assert_eq!(reply.stop_reason, StopReason::ToolCalls);
        assert_ne!(reply.tool_calls[0].id, reply.tool_calls[1].id, "{name}");
        let together = stream(&[delta(json!({"tool_calls": pieces}))]);
        assert_eq!(calls(&together), want, "{name}, in one chunk");
    }
}

#[test]
fn replies_are_read_however_they_are_written() {
    let read = |message: Value| {
        let reply = json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": null});
        read_whole(&reply)
    };
    let text = |reply: &Reply| reply.content.text().into_owned();
    assert_eq!(text(&read(json!({"content": null}))), "");
    assert_eq!(text(&read(json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}))), "ab");
    let reply = read(json!({"content": "x", "reasoning_content": "because", "reasoning_details": [{"a": 1}]}));
    assert_eq!((reply.reasoning.as_deref(), &reply.extra["reasoning_details"]), (Some("because"), &json!([{"a": 1}])));
    let reply = read(json!({"content": null, "refusal": "no"}));
    assert_eq!((text(&reply).as_str(), reply.stop_reason), ("no", StopReason::Refusal));
    let reply = read(
        json!({"content": "", "tool_calls": [{"id": "1", "function": {"name": "a", "arguments": ""}, "extra_content": {"g": 1}}]}),
    );
    assert_eq!(
        (calls(&reply), reply.stop_reason.clone()),
        (vec![("a".to_owned(), "".to_owned())], StopReason::ToolCalls)
    );
    assert!(reply.tool_calls[0].arguments().unwrap().is_empty());
    assert_eq!(reply.tool_calls[0].extra["extra_content"], json!({"g": 1}));
    assert_eq!(
        calls(&read(json!({"function_call": {"name": "a", "arguments": "{}"}}))),
        [("a".to_owned(), "{}".to_owned())]
    );
    let several =
        json!({"choices": [{"index": 0, "message": {"content": ""}}, {"index": 1, "message": {"content": "here"}}]});
    assert_eq!(text(&read_whole(&several)), "here");
}

fn read_whole(reply: &Value) -> Reply {
    assembler::read(reply.as_object().unwrap()).unwrap()
}

#[test]
fn ends_are_told_from_what_only_looks_like_one() {
    let complete = |chunks: &[Value]| {
        let mut assembler = Assembler::default();
        chunks.iter().for_each(|chunk| assembler.push_data(&chunk.to_string(), &mut |_| ()).unwrap());
        assembler.is_complete()
    };
    let text = delta(json!({"content": "a"}));
    assert!(!complete(std::slice::from_ref(&text)));
    assert!(!complete(&[text.clone(), json!({"choices": [{"delta": {}, "finish_reason": ""}]})]));
    assert!(!complete(&[
        text.clone(),
        json!({"choices": [{"delta": {}, "finish_reason": null}]}),
        json!({"choices": []}),
        json!({"choices": null})
    ]));
    assert!(complete(&[text.clone(), json!({"choices": [{"finish_reason": "eos_token"}]})]));
    let mut assembler = Assembler::default();
    assembler.push_data(&text.to_string(), &mut |_| ()).unwrap();
    assembler.push_data("[DONE]", &mut |_| ()).unwrap();
    assert!(assembler.is_complete());
}

#[test]
fn histories_become_bodies_that_servers_take() {
    let asked = Message::assistant("").with_tool_calls(vec![ToolCallFixture::call("call_1")]);
    let messages = vec![
        Message::user("hi"),
        asked,
        Message::tool_result("call_1", "done"),
        Message::user("and?"),
        Message::user("well?"),
    ];
    let request = Request {
        system: Some("Be brief.".into()),
        messages: messages.into_iter().collect(),
        additional_context: vec!["note".into()],
        ..Request::default()
    };
    let plain = body(&request, "m", Map::new(), &Profile::default(), true);
    let roles = |body: &Value| {
        let roles =
            body["messages"].as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap().to_owned());
        roles.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(roles(&plain), "system user assistant tool user user user");
    assert_eq!(plain["messages"][2]["content"], Value::Null);
    assert_eq!(plain["stream_options"], json!({"include_usage": true}));
    let mistral = body(&request, "m", Map::new(), &Profile::named("mistral").unwrap(), true);
    assert_eq!(roles(&mistral), "system user assistant tool assistant user");
    let id = mistral["messages"][2]["tool_calls"][0]["id"].as_str().unwrap();
    assert_eq!(id.len(), 9);
    assert_eq!(mistral["messages"][3]["tool_call_id"], id);
    assert!(mistral.get("stream_options").is_none());
    let text = mistral["messages"][5]["content"].as_str().unwrap();
    assert!(text.starts_with("and?\n\nwell?\n\n<additional_context>"), "{text}");
}

struct ToolCallFixture;

impl ToolCallFixture {
    fn call(id: &str) -> crate::message::ToolCall {
        crate::message::ToolCall::new(id, "ls", Map::new())
    }
}
