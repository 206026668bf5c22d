"""What the Messages API and its copies send."""

from __future__ import annotations

from typing import Any

from misbehaving import Attempt, Case, event, http, stream_head

A: dict[str, Any] = {"x": 1}
B: dict[str, Any] = {"y": 2}
USAGE = {"input_tokens": 5, "output_tokens": 3}
TEXT = {"type": "text", "text": "hi"}
TOOL = {"type": "tool_use", "id": "toolu_1", "name": "a", "input": {"x": 1}}
OTHER = {"type": "tool_use", "id": "toolu_2", "name": "b", "input": {"y": 2}}
THINK = {"type": "thinking", "thinking": "hm", "signature": "sig"}


def whole(
    name: str, content: Any, stop: Any = "end_turn", *, more: dict[str, Any] | None = None, **expected: Any
) -> Case:
    body = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": USAGE,
    }
    return Case(
        f"anthropic whole {name}", [Attempt([http({**body, **(more or {})})])], provider="anthropic", **expected
    )


def start(index: int, block: dict[str, Any]) -> bytes:
    return event({"type": "content_block_start", "index": index, "content_block": block}, "content_block_start")


def delta(index: int, **fields: Any) -> bytes:
    kinds = {
        "text": "text_delta",
        "partial_json": "input_json_delta",
        "thinking": "thinking_delta",
        "signature": "signature_delta",
    }
    kind = kinds[next(iter(fields))]
    return event(
        {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}, "content_block_delta"
    )


MESSAGE = {
    "id": "m1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [],
    "usage": {"input_tokens": 5, "output_tokens": 1},
}
HEAD = event({"type": "message_start", "message": MESSAGE}, "message_start")
PING = event({"type": "ping"}, "ping")
STOP = event({"type": "message_stop"}, "message_stop")


def end(reason: str = "end_turn") -> bytes:
    return event(
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 3}}, "message_delta"
    )


def stream(name: str, *events: bytes, head: bytes = HEAD, **expected: Any) -> Case:
    steps = [stream_head(), head, *events]
    return Case(f"anthropic stream {name}", [Attempt(steps)], provider="anthropic", streamed=True, **expected)


HI = [start(0, {"type": "text", "text": ""}), delta(0, text="hi")]

CASES = [
    whole("text", [TEXT], text="hi", usage=(5, 3)),
    whole("two texts", [{"type": "text", "text": "h"}, {"type": "text", "text": "i"}], text="hi"),
    whole("calls", [TEXT, TOOL, OTHER], "tool_use", text="hi", calls=[("a", A), ("b", B)]),
    whole("calls with end_turn", [TOOL], "end_turn", calls=[("a", A)]),
    whole("input an empty object", [{**TOOL, "input": {}}], "tool_use", calls=[("a", {})]),
    whole("input a string", [{**TOOL, "input": '{"x":1}'}], "tool_use", calls=[("a", A)]),
    whole("ids the same", [TOOL, {**OTHER, "id": "toolu_1"}], "tool_use", calls=[("a", A), ("b", B)]),
    whole("ids missing", [{**TOOL, "id": ""}, {**OTHER, "id": None}], "tool_use", calls=[("a", A), ("b", B)]),
    whole("thinking kept", [THINK, TEXT], text="hi", reasoning="hm", extra={"thinking_blocks": [THINK]}),
    whole(
        "redacted thinking kept",
        [{"type": "redacted_thinking", "data": "x"}, TEXT],
        text="hi",
        extra={"thinking_blocks": [{"type": "redacted_thinking", "data": "x"}]},
    ),
    whole("content empty", [], text=""),
    whole("content a string", "hi", text="hi"),
    whole("usage null", [TEXT], text="hi", usage=(0, 0), more={"usage": None}),
    whole(
        "cache counted",
        [TEXT],
        text="hi",
        usage=(15, 3),
        more={"usage": {**USAGE, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 3}},
    ),
    whole("unknown blocks", [{"type": "server_tool_use", "id": "x"}, TEXT], text="hi"),
    whole(
        "error object",
        [],
        more={"type": "error", "error": {"type": "invalid_request_error", "message": "too long"}},
        fails="invalid_request",
        says="too long",
    ),
    stream("text", *HI, PING, end(), STOP, text="hi", usage=(5, 3)),
    stream("without stop event", *HI, end(), text="hi"),
    stream("without block start", delta(0, text="hi"), end(), STOP, text="hi"),
    stream(
        "calls",
        start(0, {**TOOL, "input": {}}),
        delta(0, partial_json='{"x"'),
        delta(0, partial_json=":1}"),
        start(1, {**OTHER, "input": {}}),
        delta(1, partial_json='{"y":2}'),
        end("tool_use"),
        STOP,
        calls=[("a", A), ("b", B)],
    ),
    stream(
        "calls interleaved",
        start(0, {**TOOL, "input": {}}),
        start(1, {**OTHER, "input": {}}),
        delta(0, partial_json='{"x"'),
        delta(1, partial_json='{"y"'),
        delta(0, partial_json=":1}"),
        delta(1, partial_json=":2}"),
        end("tool_use"),
        STOP,
        calls=[("a", A), ("b", B)],
    ),
    stream("input whole at the start", start(0, TOOL), end("tool_use"), STOP, calls=[("a", A)]),
    stream("input never sent", start(0, {**TOOL, "input": {}}), end("tool_use"), STOP, calls=[("a", {})]),
    stream(
        "thinking kept",
        start(0, {"type": "thinking", "thinking": ""}),
        delta(0, thinking="h"),
        delta(0, thinking="m"),
        delta(0, signature="sig"),
        start(1, {"type": "text", "text": ""}),
        delta(1, text="hi"),
        end(),
        STOP,
        text="hi",
        reasoning="hm",
        extra={"thinking_blocks": [THINK]},
    ),
    stream("crlf", *[piece.replace(b"\n", b"\r\n") for piece in (*HI, end(), STOP)], text="hi"),
    stream("byte by byte", *[bytes([byte]) for piece in (*HI, end(), STOP) for byte in piece], text="hi"),
    stream(
        "overloaded",
        event({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "error"),
        fails="overloaded",
        says="Overloaded",
    ),
    stream(
        "error in the middle",
        *HI,
        event({"type": "error", "error": {"type": "api_error", "message": "it broke"}}, "error"),
        fails="server",
        says="it broke",
        partial="hi",
    ),
    stream("truncated", *HI, fails="invalid_reply", says="ended early", partial="hi"),
    stream(
        "truncated in a call",
        start(0, {**TOOL, "input": {}}),
        delta(0, partial_json='{"x"'),
        fails="invalid_reply",
        says="ended early",
    ),
]
