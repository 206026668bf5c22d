//! The Messages API: what is sent, and what comes back.

use serde_json::{Value, json};

use super::*;
use crate::message::{Message, Part, ToolCall};
use crate::model::{FailureKind, Progress, StopReason, ToolDescription};

fn sent(messages: Vec<Message>) -> Map<String, Value> {
    let request = Request {
        model: Some("claude-x".into()),
        system: Some("be good".into()),
        messages: messages.into_iter().collect(),
        ..Request::default()
    };
    body(&request, &Profile::named("anthropic").unwrap(), false)
}

#[test]
fn roles_alternate_results_come_first_and_nothing_is_empty() {
    let call = |id: &str| ToolCall::new(id, "ls", Map::new());
    let body = sent(vec![
        Message::assistant("earlier"),
        Message::user(vec![Part::text(""), Part::text("go")]),
        Message::user(" "),
        Message::assistant("").with_tool_calls(vec![call("a"), call("functions.ls:1")]),
        Message::tool_result("a", "one"),
        Message::user("and"),
        Message::tool_result("functions.ls:1", "").failed(),
        Message::assistant("so "),
    ]);
    let messages = body["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user", "assistant"]);
    assert_eq!(messages[2]["content"], json!([{"type": "text", "text": "go"}]));
    let id = messages[3]["content"][1]["id"].clone();
    assert_eq!(
        messages[4]["content"],
        json!([
            {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "one"}]},
            {"type": "tool_result", "tool_use_id": id, "is_error": true},
            {"type": "text", "text": "and", "cache_control": {"type": "ephemeral"}},
        ])
    );
    assert_eq!(messages[5]["content"][0]["text"], "so");
    assert_eq!(body["system"], json!([{"type": "text", "text": "be good", "cache_control": {"type": "ephemeral"}}]));
    // The calls in the conversation need a description, and none may be called.
    assert_eq!((&body["tools"][0]["name"], &body["tool_choice"]), (&json!("ls"), &json!({"type": "none"})));
    assert_eq!(body["max_tokens"], 16384);
}

#[test]
fn thinking_goes_back_as_it_came_if_it_is_signed() {
    let reply = reply(&json!({"content": [
        {"type": "thinking", "thinking": "hm", "signature": "sig"}, {"type": "redacted_thinking", "data": "xyz"},
        {"type": "text", "text": "I look."}, {"type": "tool_use", "id": "t", "name": "ls", "input": {"a": 1}}],
        "stop_reason": "tool_use", "usage": {"input_tokens": 1, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 4, "output_tokens": 8}}).to_string()).unwrap();
    assert_eq!((reply.reasoning.as_deref(), &reply.stop_reason), (Some("hm"), &StopReason::ToolCalls));
    assert_eq!(
        (
            reply.usage.input_tokens,
            reply.usage.cached_tokens,
            reply.usage.cache_write_tokens,
            reply.usage.output_tokens
        ),
        (7, 2, 4, 8)
    );
    let mut unsigned = Message::assistant("x");
    unsigned.extra.insert(THINKING.into(), json!([{"type": "thinking", "thinking": "cut", "signature": ""}]));
    let body = sent(vec![Message::user("go"), reply.into_message(), Message::tool_result("t", "ok"), unsigned]);
    assert_eq!(
        body["messages"][1]["content"],
        json!([{"type": "thinking", "thinking": "hm", "signature": "sig"}, {"type": "redacted_thinking", "data": "xyz"},
            {"type": "text", "text": "I look."}, {"type": "tool_use", "id": "t", "name": "ls", "input": {"a": 1}}])
    );
    assert_eq!(body["messages"][3]["content"], json!([{"type": "text", "text": "x"}]));
}

#[test]
fn tools_choices_and_the_last_tool_are_written() {
    let schema = std::sync::Arc::new(json!({"type": "object"}));
    let request = Request {
        messages: [Message::user("x")].into_iter().collect(),
        tools: vec![ToolDescription { name: "ls".into(), description: "lists".into(), schema }].into(),
        settings: json!({"tool_choice": {"type": "function", "function": {"name": "ls"}}, "stop": "END", "max_completion_tokens": 5}).as_object().unwrap().clone(),
        ..Request::default()
    };
    let body = body(&request, &Profile::named("anthropic").unwrap(), true);
    assert_eq!(
        body["tools"],
        json!([{"name": "ls", "description": "lists", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}}])
    );
    assert_eq!(
        (&body["tool_choice"], &body["stop_sequences"]),
        (&json!({"type": "tool", "name": "ls"}), &json!(["END"]))
    );
    assert_eq!((&body["max_tokens"], &body["stream"]), (&json!(5), &json!(true)));
}

fn assembled(events: &[Value]) -> Result<Reply, ModelFailure> {
    let mut assembler = Assembler::default();
    for event in events {
        assembler.push(&event.to_string())?;
    }
    assembler.finish()
}

#[test]
fn a_stream_is_put_together_with_everything_in_it() {
    let delta = |index: u32, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let events = [
        json!({"type": "message_start", "message": {"model": "claude-x", "content": [], "usage": {"input_tokens": 5, "output_tokens": 1}}}),
        json!({"type": "ping"}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
        delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        delta(0, json!({"type": "signature_delta", "signature": "sig"})),
        json!({"type": "content_block_stop", "index": 0}),
        delta(1, json!({"type": "text_delta", "text": "I "})),
        delta(1, json!({"type": "text_delta", "text": "look."})),
        json!({"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "t", "name": "ls", "input": {}}}),
        delta(2, json!({"type": "input_json_delta", "partial_json": ""})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "{\"a\":"})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "1}"})),
        json!({"type": "content_block_start", "index": 3, "content_block": {"type": "tool_use", "id": "t", "name": "ls", "input": {"b": 2}}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}}),
        json!({"type": "new_event"}),
        json!({"type": "message_stop"}),
    ];
    let reply = assembled(&events).unwrap();
    assert_eq!((reply.content.text().as_ref(), reply.reasoning.as_deref()), ("I look.", Some("hm")));
    let calls: Vec<_> = reply.tool_calls.iter().map(|call| (call.name.as_str(), call.arguments_json())).collect();
    assert_eq!(calls, [("ls", "{\"a\":1}".into()), ("ls", "{\"b\":2}".into())]);
    assert!(reply.tool_calls[0].id == "t" && reply.tool_calls[1].id != "t");
    assert_eq!(reply.extra[THINKING], json!([{"type": "thinking", "thinking": "hm", "signature": "sig"}]));
    assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens, reply.stop_reason), (5, 9, StopReason::ToolCalls));
    for end in 0..events.len() - 3 {
        assert_eq!(assembled(&events[..end]).unwrap_err().kind, FailureKind::InvalidReply, "cut after {end}");
    }
}

#[test]
fn failures_cut_offs_and_refusals_are_told() {
    let failure =
        assembled(&[json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})])
            .unwrap_err();
    assert_eq!(failure.kind, FailureKind::Overloaded);
    let cut = reply(
        r#"{"content": [{"type": "tool_use", "id": "t", "name": "w", "input": {}}], "stop_reason": "max_tokens"}"#,
    )
    .unwrap();
    assert!(cut.stop_reason == StopReason::Length && cut.tool_calls[0].arguments().unwrap_err().is_cut_off());
    let refused = reply(r#"{"content": [], "stop_reason": "refusal"}"#).unwrap();
    assert_eq!(refused.stop_reason, StopReason::Refusal);
    assert_eq!(Assembler::default().push("[DONE]").unwrap(), Progress::End);
    assert!(reply("<html>").unwrap_err().message.contains("web page"));
}
