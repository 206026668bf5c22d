//! Quirks of servers, by name: each with the value that it must come to.

use serde_json::{Value, json};

use super::super::StopReason;
use super::reply::calls_of;
use super::*;
use crate::message::{Message, Part, ToolCall};
use crate::model::{FailureKind, ToolDescription};

fn assembled(chunks: &[Value]) -> Reply {
    let mut assembler = Assembler::with_tools(["get".to_owned(), "put".to_owned()]);
    for chunk in chunks {
        assembler.push(&chunk.to_string()).unwrap();
    }
    assembler.finish().unwrap()
}

/// The calls that these deltas come to.
fn calls(deltas: &[Value]) -> Vec<(String, String)> {
    let mut chunks: Vec<Value> =
        deltas.iter().map(|delta| json!({"choices": [{"index": 0, "delta": {"tool_calls": delta}}]})).collect();
    chunks.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}));
    let reply = assembled(&chunks);
    let ids: std::collections::HashSet<&str> = reply.tool_calls.iter().map(|call| call.id.as_str()).collect();
    assert!(ids.len() == reply.tool_calls.len() && !ids.contains(""), "{ids:?}");
    calls_of(&reply).into_iter().map(|(name, arguments)| (name.to_owned(), arguments)).collect()
}

#[test]
fn calls_are_put_together_however_servers_cut_them() {
    let two = [("get".to_owned(), r#"{"a":1}"#.to_owned()), ("put".to_owned(), r#"{"b":2}"#.to_owned())];
    let piece = |index: Value, id: Value, name: Value, arguments: &str| json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let null = || Value::Null;
    let cases: Vec<(&str, Vec<Value>)> = vec![
        (
            "split and interleaved",
            vec![
                json!([piece(json!(0), json!("x"), json!("get"), ""), piece(json!(1), json!("y"), json!("put"), "")]),
                json!([piece(json!(1), null(), null(), "{\"b\"")]),
                json!([piece(json!(0), null(), null(), "{\"a\":1}")]),
                json!([piece(json!(1), null(), null(), ":2}")]),
            ],
        ),
        (
            "interleaved without index",
            vec![
                json!([piece(null(), json!("x"), json!("get"), "{\"a\"")]),
                json!([piece(null(), json!("y"), json!("put"), "{\"b\"")]),
                json!([piece(null(), json!("x"), null(), ":1}")]),
                json!([piece(null(), json!("y"), null(), ":2}")]),
            ],
        ),
        (
            "no index and no id",
            vec![
                json!([piece(null(), null(), json!("get"), "{\"a\"")]),
                json!([piece(null(), null(), null(), ":1}")]),
                json!([piece(null(), null(), json!("put"), "{\"b\":2}")]),
            ],
        ),
        (
            "index always 0 with ids",
            vec![
                json!([piece(json!(0), json!("x"), json!("get"), "{\"a\":1}")]),
                json!([piece(json!(0), json!("y"), json!("put"), "{\"b\"")]),
                json!([piece(json!(0), null(), null(), ":2}")]),
            ],
        ),
        (
            "index always 0 without ids",
            vec![json!([
                piece(json!(0), null(), json!("get"), "{\"a\":1}"),
                piece(json!(0), null(), json!("put"), "{\"b\":2}")
            ])],
        ),
        (
            "constant id",
            vec![
                json!([piece(json!(0), json!("call"), json!("get"), "{\"a\":1}")]),
                json!([piece(json!(1), json!("call"), json!("put"), "{\"b\":2}")]),
            ],
        ),
        (
            "constant id and index",
            vec![
                json!([piece(json!(0), json!("call"), json!("get"), "{\"a\":1}")]),
                json!([piece(json!(0), json!("call"), json!("put"), "{\"b\":2}")]),
            ],
        ),
        (
            "index from 1",
            vec![json!([
                piece(json!(1), json!("x"), json!("get"), "{\"a\":1}"),
                piece(json!(2), json!("y"), json!("put"), "{\"b\":2}")
            ])],
        ),
        (
            "names repeated",
            vec![
                json!([piece(json!(0), json!("x"), json!("get"), "{\"a\"")]),
                json!([piece(json!(0), json!("x"), json!("get"), ":1}")]),
                json!([piece(json!(1), json!("y"), json!("put"), "")]),
                json!([piece(json!(1), json!("y"), json!("put"), "{\"b\":2}")]),
            ],
        ),
        (
            "names in fragments",
            vec![
                json!([piece(json!(0), json!("x"), json!("g"), "")]),
                json!([piece(json!(0), null(), json!("et"), "{\"a\":1}")]),
                json!([piece(json!(1), json!("y"), json!("p"), "")]),
                json!([piece(json!(1), null(), json!("put"), "{\"b\":2}")]),
            ],
        ),
        (
            "an id for each piece",
            vec![
                json!([piece(json!(0), json!("x1"), json!("get"), "{\"a\"")]),
                json!([piece(json!(0), json!("x2"), null(), ":1}")]),
                json!([piece(json!(1), json!("y1"), json!("put"), "{\"b\"")]),
                json!([piece(json!(1), json!("y2"), json!("put"), ":2}")]),
            ],
        ),
        (
            "arguments as objects",
            vec![
                json!([{"function": {"name": "get", "arguments": {"a": 1}}}, {"function": {"name": "put", "arguments": {"b": 2}}}]),
            ],
        ),
    ];
    for (name, deltas) in cases {
        assert_eq!(calls(&deltas), two, "{name}");
    }
}

#[test]
fn arguments_that_are_empty_are_none() {
    let deltas = [
        json!([{"index": 0, "function": {"name": "get", "arguments": ""}}, {"index": 1, "function": {"name": "get"}}]),
    ];
    let reply = calls(&deltas);
    assert_eq!(reply.len(), 2);
}

#[test]
fn a_stream_is_read_with_everything_odd_in_it() {
    let reply = assembled(&[
        json!({"choices": [{"delta": {"role": "assistant", "content": null}}], "model": "m", "usage": null}),
        json!({"choices": []}),
        json!({"choices": null}),
        json!({"id": "x"}),
        json!({"choices": [{"index": 0}]}),
        json!({"choices": [{"index": 1, "delta": {"content": ""}}]}),
        json!({"choices": [{"index": 0, "delta": {"reasoning_content": "hm"}}]}),
        json!({"choices": [{"index": 0, "delta": {"content": [{"type": "text", "text": "good "}]}, "finish_reason": ""}]}),
        json!({"choices": [{"index": 1, "delta": {"content": "another choice"}, "finish_reason": null}]}),
        json!({"choices": [{"index": 0, "delta": {"content": "morning"}, "finish_reason": "eos_token"}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 5}}}),
    ]);
    assert_eq!((reply.content.text().as_ref(), reply.reasoning.as_deref()), ("good morning", Some("hm")));
    assert_eq!((reply.stop_reason, reply.model.as_deref()), (StopReason::Stop, Some("m")));
    assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cached_tokens), (7, 3, 5));
}

#[test]
fn an_end_without_a_reason_is_an_end_only_if_it_is_said() {
    let mut said = Assembler::default();
    said.push(r#"{"choices":[{"delta":{"content":"hi"}}]}"#).unwrap();
    let mut cut = Assembler::default();
    cut.push(r#"{"choices":[{"delta":{"content":"hi"}}]}"#).unwrap();
    assert_eq!(said.push("[DONE]").unwrap(), super::super::Progress::End);
    assert_eq!(said.finish().unwrap().content.text(), "hi");
    let failure = cut.finish().unwrap_err();
    assert_eq!((failure.kind, failure.partial.unwrap().content.text().as_ref()), (FailureKind::InvalidReply, "hi"));
    let mut nothing = Assembler::default();
    nothing.push("[DONE]").unwrap();
    assert!(nothing.finish().is_err());
}

#[test]
fn failures_inside_a_stream_are_failures() {
    for (name, data, kind) in [
        ("", json!({"error": {"message": "x", "type": "overloaded_error"}}), FailureKind::Overloaded),
        ("", json!({"choices": [{"delta": {}, "finish_reason": "error"}]}), FailureKind::Server),
        ("", json!({"choices": [{"error": {"code": 429, "message": "x"}}]}), FailureKind::RateLimited),
        ("error", json!({"message": "x"}), FailureKind::Server),
        ("error", json!("x"), FailureKind::Server),
        ("", json!("x"), FailureKind::InvalidReply),
    ] {
        let event = super::super::sse::Event { name, data: &data.to_string(), whole: true };
        let failure = Assembler::default().read(event, &mut |_| {}).unwrap_err();
        assert_eq!(failure.kind, kind, "{data}");
    }
    assert!(Assembler::default().push(r#"{"error": null, "choices": []}"#).is_ok());
}

#[test]
fn lines_of_one_event_may_be_chunks_of_their_own() {
    let chunk = |text: &str| json!({"choices": [{"delta": {"content": text}}]}).to_string();
    let mut assembler = Assembler::default();
    assembler.push(&format!("{}\n{}\n[DONE]", chunk("a"), chunk("b"))).unwrap();
    assert_eq!(assembler.finish().unwrap().content.text(), "ab");
}

#[test]
fn whole_replies_are_read_in_every_shape() {
    let read = |message: Value, finish: Value| {
        reply(&json!({"choices": [{"message": message, "finish_reason": finish}], "usage": null}).to_string()).unwrap()
    };
    assert_eq!(
        read(json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}), json!("stop"))
            .content
            .text(),
        "ab"
    );
    assert_eq!(read(json!({"content": null}), json!("tool_calls")).stop_reason, StopReason::Stop);
    assert_eq!(read(json!({"content": "x", "tool_calls": []}), json!("tool_calls")).stop_reason, StopReason::Stop);
    assert_eq!(read(json!({"content": null, "refusal": "no"}), json!("stop")).stop_reason, StopReason::Refusal);
    assert_eq!(read(json!({"content": "x"}), json!("content_filter")).stop_reason, StopReason::Refusal);
    assert_eq!(read(json!({"content": "x"}), json!(null)).stop_reason, StopReason::Stop);
    assert_eq!(read(json!({"content": "a\u{fffd}"}), json!("weird")).stop_reason, StopReason::Other("weird".into()));
    let old = read(json!({"function_call": {"name": "ls", "arguments": "{\"a\":1}"}}), json!("function_call"));
    assert_eq!(
        (calls_of(&old), old.stop_reason.clone()),
        (vec![("ls", "{\"a\":1}".to_owned())], StopReason::ToolCalls)
    );
    let thought = read(
        json!({"content": "x", "reasoning": "r", "reasoning_details": [{"type": "x", "data": "d"}]}),
        json!("stop"),
    );
    assert_eq!(
        (thought.reasoning.as_deref(), &thought.extra["reasoning_details"]),
        (Some("r"), &json!([{"type": "x", "data": "d"}]))
    );
    let lone = reply(r#"{"choices":[{"message":{"content":"a\ud800b"}}]}"#).unwrap();
    assert_eq!(lone.content.text(), "a\u{fffd}b");
    let second = reply(r#"{"choices":[{"message":{"content":""}},{"message":{"content":"b"}}]}"#).unwrap();
    assert_eq!(second.content.text(), "b");
    for none in ["", "<html><title>Hi</title>", "[]", r#"{"choices": []}"#, r#"{"choices": null}"#] {
        assert_eq!(reply(none).unwrap_err().kind, FailureKind::InvalidReply, "{none}");
    }
}

#[test]
fn the_limit_on_the_output_cuts_arguments_off() {
    for arguments in ["{\"path\": \"a", "", "{"] {
        let message = json!({"tool_calls": [{"id": "c", "function": {"name": "write", "arguments": arguments}}]});
        let reply = reply(&json!({"choices": [{"message": message, "finish_reason": "length"}]}).to_string()).unwrap();
        assert_eq!(reply.stop_reason, StopReason::Length);
        assert!(reply.tool_calls[0].arguments().unwrap_err().is_cut_off(), "{arguments}");
    }
}

fn written(profile: &str, messages: Vec<Message>) -> Vec<Value> {
    let request = Request {
        model: Some("m".into()),
        system: Some("be good".into()),
        messages: messages.into_iter().collect(),
        ..Request::default()
    };
    body(&request, &Profile::named(profile).unwrap(), false)["messages"].as_array().unwrap().clone()
}

#[test]
fn bodies_hold_what_each_server_accepts() {
    let mut call = ToolCall::from_text("call_1", "ls", r#""{\"a\":1}""#);
    call.extra.insert("extra_content".into(), json!({"google": {"thought_signature": "s"}}));
    let asks = Message { reasoning: Some("hm".into()), ..Message::assistant("").with_tool_calls(vec![call]) };
    let picture = Message::tool_result("call_1", vec![Part::text("see"), Part::image("image/png", "aGk=")]);
    let messages = vec![
        Message::user("go"),
        asks,
        picture,
        Message::assistant(""),
        Message::user(vec![Part::text(""), Part::text("on")]),
    ];

    let general = written("compatible", messages.clone());
    assert_eq!(general[0], json!({"role": "system", "content": "be good"}));
    assert_eq!(
        general[2],
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function",
            "extra_content": {"google": {"thought_signature": "s"}}, "function": {"name": "ls", "arguments": "{\"a\":1}"}}]})
    );
    assert_eq!(general[3], json!({"role": "tool", "tool_call_id": "call_1", "content": "see"}));
    assert_eq!(general[4]["content"][1]["image_url"]["url"], "data:image/png;base64,aGk=");
    assert_eq!((general[5].clone(), general.len()), (json!({"role": "user", "content": "\non"}), 6));

    let mistral = written("mistral", messages.clone());
    let id = mistral[2]["tool_calls"][0]["id"].as_str().unwrap();
    assert_eq!((id.len(), &mistral[3]["tool_call_id"]), (9, &json!(id)));
    assert!(mistral[2]["tool_calls"][0].get("extra_content").is_none());
    let roles: Vec<&str> = mistral.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant", "user"]);

    assert_eq!(written("deepseek", messages[..3].to_vec())[2]["reasoning_content"], "hm");
    assert!(written("deepseek", messages.clone())[2].get("reasoning_content").is_none());
    assert_eq!(written("kimi", messages.clone())[2]["reasoning_content"], "hm");
    assert!(written("openai", messages[..3].to_vec())[2].get("reasoning_content").is_none());
}

#[test]
fn arguments_that_cannot_be_read_are_sent_as_an_object() {
    let call = ToolCall::from_text("c", "ls", "{\"a\": ");
    let sent = written("compatible", vec![Message::user("x"), Message::assistant("").with_tool_calls(vec![call])]);
    let arguments = sent[2]["tool_calls"][0]["function"]["arguments"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(arguments).unwrap(), json!({"unreadable_arguments": "{\"a\": "}));
}

#[test]
fn a_stream_asks_for_its_usage_and_settings_pass_through() {
    let schema = std::sync::Arc::new(json!({"type": "object"}));
    let request = Request {
        model: Some("m".into()),
        tools: vec![ToolDescription { name: "ls".into(), description: "lists".into(), schema }].into(),
        settings: json!({"seed": 7, "tool_choice": "required", "stream": false}).as_object().unwrap().clone(),
        additional_context: vec!["note".into()],
        ..Request::default()
    };
    let sent = body(&request, &Profile::named("compatible").unwrap(), true);
    assert_eq!((&sent["stream"], &sent["stream_options"]), (&json!(true), &json!({"include_usage": true})));
    assert_eq!((&sent["seed"], &sent["tool_choice"]), (&json!(7), &json!("required")));
    assert_eq!(
        sent["tools"],
        json!([{"type": "function", "function": {"name": "ls", "description": "lists", "parameters": {"type": "object"}}}])
    );
    assert_eq!(
        sent["messages"],
        json!([{"role": "user", "content": "<additional_context>\nnote\n</additional_context>"}])
    );
    assert!(body(&request, &Profile::named("mistral").unwrap(), true).get("stream_options").is_none());
}
