use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::message::{Message, ToolCall};
use crate::model::{StopReason, ToolDescription};

fn stream(events: &[Value]) -> Reply {
    let mut assembler = Assembler::default();
    for event in events {
        assembler.push_data("", &event.to_string(), &mut |_| ()).unwrap();
    }
    assembler.into_reply()
}

#[test]
fn a_streamed_reply_is_the_same_as_one_that_comes_whole() {
    let whole = json!({
        "model": "claude", "stop_reason": "tool_use",
        "usage": {"input_tokens": 5, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2, "output_tokens": 7},
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "redacted_thinking", "data": "xx"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {"path": "."}},
            {"type": "tool_use", "id": "toolu_2", "name": "pwd", "input": {}},
        ],
    });
    let whole = assembler::read(whole.as_object().unwrap()).unwrap();
    let streamed = stream(&[
        json!({"type": "message_start", "message": {"model": "claude", "usage": {"input_tokens": 5, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "sig"}}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "xx"}}),
        json!({"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "ping"}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "I "}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "look."}}),
        json!({"type": "content_block_start", "index": 3, "content_block": {"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {}}}),
        json!({"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": "{\"path\":"}}),
        json!({"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": "\".\"}"}}),
        json!({"type": "content_block_start", "index": 4, "content_block": {"type": "tool_use", "id": "toolu_2", "name": "pwd", "input": {}}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}}),
        json!({"type": "message_stop"}),
    ]);
    assert_eq!(streamed, whole);
    assert_eq!(
        (whole.content.text().as_ref(), whole.reasoning.as_deref(), whole.stop_reason),
        ("I look.", Some("hm"), StopReason::ToolCalls)
    );
    assert_eq!((whole.usage.input_tokens, whole.usage.cached_tokens, whole.usage.output_tokens), (10, 3, 7));
    assert_eq!(whole.tool_calls[0].arguments().unwrap()["path"], ".");
    assert_eq!(
        whole.extra["thinking_blocks"],
        json!([
            {"type": "thinking", "thinking": "hm", "signature": "sig"}, {"type": "redacted_thinking", "data": "xx"},
        ])
    );
}

#[test]
fn histories_become_bodies_that_the_server_takes() {
    let asked = Message::assistant("  ")
        .with_tool_calls(vec![ToolCall::new("functions.ls:0", "ls", Map::new()), ToolCall::new("b", "ls", Map::new())]);
    let messages = vec![
        Message::user("hi"),
        asked,
        Message::tool_result("functions.ls:0", ""),
        Message::tool_result("b", "no").failed(),
        Message::user("and?"),
        Message::assistant(""),
        Message::user(""),
    ];
    let request = Request {
        system: Some("Be brief.".into()),
        messages: messages.into_iter().collect(),
        tools: Arc::new([ToolDescription {
            name: "ls".into(),
            description: "Lists.".into(),
            schema: Arc::new(json!({"type": "object"})),
        }]),
        additional_context: vec!["note".into()],
        ..Request::default()
    };
    let body = body(&request, "claude-sonnet-4", Map::new(), &Profile::named("anthropic").unwrap(), true);
    let roles: Vec<&str> =
        body["messages"].as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    let id = body["messages"][1]["content"][0]["id"].as_str().unwrap();
    assert!(id.chars().all(|letter| letter.is_ascii_alphanumeric()));
    let last = body["messages"][2]["content"].as_array().unwrap();
    let kinds: Vec<&str> = last.iter().map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["tool_result", "tool_result", "text", "text"]);
    assert_eq!((&last[0]["tool_use_id"], &last[0]["content"][0]["text"]), (&json!(id), &json!("(no output)")));
    assert_eq!(last[1]["is_error"], true);
    assert_eq!(body["max_tokens"], 16384);
    for marked in [&body["system"][0], &body["tools"][0], &last[3]] {
        assert_eq!(marked["cache_control"], json!({"type": "ephemeral"}));
    }
    assert_eq!(body["stream"], true);
}

#[test]
fn errors_inside_a_stream_are_failures_and_an_end_is_needed() {
    let mut assembler = Assembler::default();
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let failure = assembler.push_data("error", &error.to_string(), &mut |_| ()).unwrap_err();
    assert_eq!(failure.kind, crate::model::FailureKind::Overloaded);
    let mut assembler = Assembler::default();
    let delta = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}});
    assembler.push_data("", &delta.to_string(), &mut |_| ()).unwrap();
    assert!(!assembler.is_complete());
    assembler.push_data("message_stop", "{}", &mut |_| ()).unwrap();
    assert!(assembler.is_complete());
}
