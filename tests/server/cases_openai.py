"""What servers send that copy OpenAI's chat completions."""

from __future__ import annotations

import json
from typing import Any

from misbehaving import Attempt, Case, chunked, event, http, stream_head

USAGE = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
A: dict[str, Any] = {"x": 1}
B: dict[str, Any] = {"y": 2}
TWO = [("a", A), ("b", B)]


def reply(message: Any, finish: Any = "stop", **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    base = {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": USAGE}
    return {**base, **more}


def call(name: str | None = "a", arguments: Any = '{"x":1}', **fields: Any) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {"type": "function", "function": function, **fields}


def whole(
    name: str, message: Any, finish: Any = "stop", *, more: dict[str, Any] | None = None, **expected: Any
) -> Case:
    return Case(f"whole {name}", [Attempt([http(reply(message, finish, **(more or {})))])], **expected)


def delta(fields: Any, finish: Any = None, **more: Any) -> dict[str, Any]:
    base = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**base, "choices": [{"index": 0, "delta": fields, "finish_reason": finish}], **more}


def raw(name: str, *pieces: bytes, **expected: Any) -> Case:
    return Case(f"stream {name}", [Attempt([stream_head(), *pieces])], streamed=True, **expected)


def stream(name: str, *chunks: Any, done: bool = True, **expected: Any) -> Case:
    events = [chunk if isinstance(chunk, bytes) else event(chunk) for chunk in chunks]
    return raw(name, *events, *([event("[DONE]")] if done else []), **expected)


def calls_stream(name: str, *pieces: Any, **expected: Any) -> Case:
    chunks = [delta({"tool_calls": [piece]}) for piece in pieces]
    return stream(f"calls {name}", *chunks, delta({}, "tool_calls"), **{"calls": TWO, **expected})


HI = delta({"content": "hi"})
STOP = delta({}, "stop")
BOTH = [call(id="1"), call("b", '{"y":2}', id="2")]
RECORD = {"content": "hé 中文 😀"}

WHOLE = [
    whole("text", {"role": "assistant", "content": "hi"}, text="hi", usage=(5, 3)),
    whole(
        "content null",
        {"role": "assistant", "content": None, "tool_calls": [call(id="1")]},
        "tool_calls",
        calls=[("a", A)],
    ),
    whole("content missing", {"role": "assistant", "tool_calls": [call(id="1")]}, calls=[("a", A)]),
    whole("content parts", {"content": [{"type": "text", "text": "h"}, {"type": "text", "text": "i"}]}, text="hi"),
    whole("calls with finish stop", {"content": "", "tool_calls": BOTH}, "stop", calls=TWO),
    whole("empty calls with finish tool_calls", {"content": "hi", "tool_calls": []}, "tool_calls", text="hi"),
    whole("calls null", {"content": "hi", "tool_calls": None}, text="hi"),
    whole("arguments an object", {"content": None, "tool_calls": [call(arguments={"x": 1}, id="1")]}, calls=[("a", A)]),
    whole("arguments empty", {"content": None, "tool_calls": [call(arguments="", id="1")]}, calls=[("a", {})]),
    whole("arguments null", {"content": None, "tool_calls": [call(arguments=None, id="1")]}, calls=[("a", {})]),
    whole("arguments encoded twice", {"tool_calls": [call(arguments=json.dumps('{"x":1}'), id="1")]}, calls=[("a", A)]),
    whole(
        "arguments concatenated", {"tool_calls": [call(arguments='{"x":1}{"y":2}', id="1")]}, calls=[("a", A), ("a", B)]
    ),
    whole("arguments empty object before", {"tool_calls": [call(arguments='{}{"x":1}', id="1")]}, calls=[("a", A)]),
    whole("ids missing", {"tool_calls": [call(), call("b", '{"y":2}')]}, calls=TWO),
    whole("ids null", {"tool_calls": [call(id=None), call("b", '{"y":2}', id=None)]}, calls=TWO),
    whole("ids empty", {"tool_calls": [call(id=""), call("b", '{"y":2}', id="")]}, calls=TWO),
    whole("ids constant", {"tool_calls": [call(id="c"), call("b", '{"y":2}', id="c")]}, calls=TWO),
    whole(
        "function_call",
        {"content": None, "function_call": {"name": "a", "arguments": '{"x":1}'}},
        "function_call",
        calls=[("a", A)],
    ),
    whole("usage null", {"content": "hi"}, text="hi", usage=(0, 0), more={"usage": None}),
    whole("finish eos_token", {"content": "hi"}, "eos_token", text="hi"),
    whole("finish null", {"content": "hi"}, None, text="hi"),
    whole("reasoning_content", {"content": "hi", "reasoning_content": "hm"}, text="hi", reasoning="hm"),
    whole("reasoning", {"content": "hi", "reasoning": "hm"}, text="hi", reasoning="hm"),
    whole(
        "thinking part",
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                {"type": "text", "text": "hi"},
            ]
        },
        text="hi",
        reasoning="hm",
    ),
    whole(
        "reasoning_details kept",
        {"content": "hi", "reasoning_details": [{"d": 1}]},
        text="hi",
        extra={"reasoning_details": [{"d": 1}]},
    ),
    whole("refusal", {"content": None, "refusal": "I will not"}, text="I will not"),
    whole(
        "several choices",
        {"content": ""},
        text="second",
        more={"choices": [{"index": 0, "message": {"content": ""}}, {"index": 1, "message": {"content": "second"}}]},
    ),
    Case(
        "whole lone surrogate",
        [Attempt([http('{"choices":[{"message":{"content":"a\\ud83db"},"finish_reason":"stop"}]}')])],
        text="a\ufffdb",
    ),
    Case("whole bom", [Attempt([http(b"\xef\xbb\xbf" + json.dumps(reply({"content": "hi"})).encode())])], text="hi"),
    Case("whole choices empty", [Attempt([http(reply({}, choices=[]))])], fails="invalid_reply", says="no choice"),
    Case("whole choices null", [Attempt([http(reply({}, choices=None))])], fails="invalid_reply", says="no choice"),
    Case(
        "whole html page",
        [Attempt([http("<html><title>Welcome</title></html>", kind="text/html")])],
        fails="invalid_reply",
        says="web page.*Welcome",
    ),
    Case(
        "whole error object",
        [Attempt([http({"error": {"message": "bad model", "type": "invalid_request_error"}})])],
        fails="invalid_request",
        says="bad model",
    ),
    Case("whole not streamed though asked", [Attempt([http(reply({"content": "hi"}))])], streamed=True, text="hi"),
    Case("whole streamed though not asked", [Attempt([stream_head(), event(HI), event(STOP)])], text="hi"),
]

STREAMS = [
    stream("text", delta({"role": "assistant"}), HI, STOP, {"choices": [], "usage": USAGE}, text="hi", usage=(5, 3)),
    stream("role only first, content empty", delta({"role": "assistant", "content": ""}), HI, STOP, text="hi"),
    stream(
        "usage null in chunks",
        delta({"content": "hi"}, usage=None),
        delta({}, "stop", usage=USAGE),
        text="hi",
        usage=(5, 3),
    ),
    stream(
        "usage in the choice",
        HI,
        {"choices": [{"delta": {}, "finish_reason": "stop", "usage": USAGE}]},
        text="hi",
        usage=(5, 3),
    ),
    stream("without done", HI, STOP, done=False, text="hi"),
    stream("done without finish", HI, text="hi"),
    stream("choices null", {"choices": None}, HI, {"id": "x"}, STOP, text="hi"),
    stream("chunks without delta", HI, {"choices": [{"index": 0}]}, STOP, text="hi"),
    stream("finish empty in the middle", delta({"content": "h"}, ""), delta({"content": "i"}), STOP, text="hi"),
    stream("finish with content", delta({"content": "hi"}, "stop"), text="hi"),
    stream(
        "several choices",
        {"choices": [{"index": 1, "delta": {"content": "hi"}}, {"index": 0, "delta": {"content": "NO"}}]},
        {"choices": [{"index": 1, "delta": {}, "finish_reason": "stop"}]},
        text="hi",
    ),
    stream("content parts", delta({"content": [{"type": "text", "text": "hi"}]}), STOP, text="hi"),
    stream(
        "reasoning first",
        delta({"reasoning_content": "h"}),
        delta({"reasoning_content": "m"}),
        HI,
        STOP,
        text="hi",
        reasoning="hm",
    ),
    stream(
        "reasoning_details collected",
        delta({"reasoning_details": [{"d": 1}]}),
        delta({"reasoning_details": [{"d": 2}], "content": "hi"}),
        STOP,
        text="hi",
        extra={"reasoning_details": [{"d": 1}, {"d": 2}]},
    ),
    stream("refusal", delta({"refusal": "I will "}), delta({"refusal": "not"}), STOP, text="I will not"),
    raw(
        "comments and keep-alive",
        b": keep-alive\n\n: x\n\n",
        event(HI),
        b":\n\n",
        event(STOP),
        event("[DONE]"),
        text="hi",
    ),
    raw("crlf", event(HI, end="\r\n"), event(STOP, end="\r\n"), event("[DONE]", end="\r\n"), text="hi"),
    raw("cr", event(HI, end="\r"), event(STOP, end="\r"), text="hi"),
    raw("bom", b"\xef\xbb\xbf" + event(HI), event(STOP), text="hi"),
    raw("no blank line at the end", event(HI), event(STOP)[:-1], text="hi"),
    raw("no line end at all", event(HI), event(STOP)[:-2], text="hi"),
    raw(
        "no space behind the colon",
        event(HI).replace(b"data: ", b"data:"),
        event(STOP).replace(b"data: ", b"data:"),
        text="hi",
    ),
    raw(
        "data of several lines",
        b'data: {"choices":\ndata: [{"delta":{"content":"hi"},\ndata: "finish_reason":"stop"}]}\n\n',
        text="hi",
    ),
    raw("ids and retries of events", b"id: 1\nretry: 5\n" + event(HI), event(STOP), text="hi"),
    raw("byte by byte", *[bytes([byte]) for byte in event(delta(RECORD)) + event(STOP)], text="hé 中文 😀"),
    raw(
        "characters cut",
        *[
            json.dumps(delta(RECORD), ensure_ascii=False).encode().join([b"data: ", b"\n\n"])[at : at + 7]
            for at in range(0, 400, 7)
        ],
        event(STOP),
        text="hé 中文 😀",
    ),
    Case(
        "stream http chunks", [Attempt([chunked(event(HI)[:9], event(HI)[9:], event(STOP))])], streamed=True, text="hi"
    ),
    stream(
        "error object",
        HI,
        {"error": {"message": "it broke", "code": 500}},
        fails="server",
        status=500,
        says="it broke",
        partial="hi",
    ),
    raw(
        "error event",
        event(HI),
        event({"message": "it broke"}, name="error"),
        fails="server",
        says="it broke",
        partial="hi",
    ),
    stream("finish error", HI, delta({}, "error"), fails="server", partial="hi"),
    stream(
        "error text of an overload",
        {"error": {"message": "The engine is currently overloaded"}},
        fails="overloaded",
        says="overloaded",
    ),
    raw("junk", event(HI), event("not json"), event(STOP), fails="invalid_reply", says="not JSON", partial="hi"),
    raw(
        "lone surrogate",
        b'data: {"choices":[{"delta":{"content":"a\\ud83db"},"finish_reason":"stop"}]}\n\n',
        text="a\ufffdb",
    ),
    raw("truncated", event(HI), fails="invalid_reply", says="ended early", partial="hi"),
    raw("truncated in an event", event(HI), event(STOP)[:30], fails="invalid_reply", partial="hi"),
    raw("empty", fails="invalid_reply"),
    Case(
        "stream html page",
        [Attempt([http("<html><title>Login</title>", kind="text/html")])],
        streamed=True,
        fails="invalid_reply",
        says="web page.*Login",
    ),
]

CALLS = [
    calls_stream(
        "as specified",
        call("a", "", index=0, id="1"),
        call(None, '{"x"', index=0),
        call(None, ":1}", index=0),
        call("b", '{"y":2}', index=1, id="2"),
    ),
    calls_stream(
        "interleaved",
        call("a", '{"x"', index=0, id="1"),
        call("b", '{"y"', index=1, id="2"),
        call(None, ":1}", index=0),
        call(None, ":2}", index=1),
    ),
    calls_stream("index missing", call("a", '{"x"', id="1"), call(None, ":1}"), call("b", '{"y":2}', id="2")),
    calls_stream(
        "index always 0",
        call("a", '{"x":1}', index=0, id="1"),
        call("b", '{"y":', index=0, id="2"),
        call(None, "2}", index=0),
    ),
    calls_stream("index from 5", call("a", '{"x":1}', index=5, id="1"), call("b", '{"y":2}', index=9, id="2")),
    calls_stream("whole in one chunk", call("a", '{"x":1}', index=0, id="1"), call("b", '{"y":2}', index=1, id="2")),
    calls_stream("id missing", call("a", '{"x":1}', index=0), call("b", '{"y":2}', index=1)),
    calls_stream("id null", call("a", '{"x":1}', index=0, id=None), call("b", '{"y":2}', index=1, id=None)),
    calls_stream("id constant", call("a", '{"x":1}', index=0, id="c"), call("b", '{"y":2}', index=1, id="c")),
    calls_stream(
        "id in each piece",
        call("a", '{"x"', index=0, id="1"),
        call(None, ":1}", index=0, id="1"),
        call("b", '{"y":2}', index=1, id="2"),
    ),
    calls_stream(
        "names repeated",
        call("a", '{"x"', index=0, id="1"),
        call("a", ":1}", index=0, id="1"),
        call("b", '{"y"', index=1, id="2"),
        call("b", ":2}", index=1, id="2"),
    ),
    calls_stream("arguments an object", call("a", {"x": 1}, index=0, id="1"), call("b", {"y": 2}, index=1, id="2")),
    calls_stream("arguments empty", call("a", "", index=0, id="1"), calls=[("a", {})]),
    calls_stream(
        "opaque fields kept",
        call("a", '{"x":1}', index=0, id="1", extra_content={"google": {"thought_signature": "s"}}),
        calls=[("a", A)],
    ),
    stream("calls with finish stop", delta({"tool_calls": [call(index=0, id="1")]}), STOP, calls=[("a", A)]),
    stream(
        "calls function_call",
        delta({"function_call": {"name": "a", "arguments": '{"x"'}}),
        delta({"function_call": {"arguments": ":1}"}}),
        delta({}, "function_call"),
        calls=[("a", A)],
    ),
]

CASES = [*WHOLE, *STREAMS, *CALLS]
