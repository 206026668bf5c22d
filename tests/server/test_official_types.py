"""What the providers' own packages say of the bodies that are sent and of what cassettes hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from anthropic.types import Message
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from cases_anthropic import OTHER, TEXT, THINK, TOOL
from cases_openai import BOTH, reply
from misbehaving import Attempt, Case, Server, http
from openai.types.chat import ChatCompletion
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from pydantic import TypeAdapter

import hookwright as hw

CHAT = Case(
    "chat",
    [
        Attempt([http(reply({"role": "assistant", "content": "I look.", "tool_calls": BOTH}, "tool_calls"))]),
        Attempt([http(reply({"role": "assistant", "content": "done"}))]),
    ],
)
HEAD = {"id": "m1", "type": "message", "role": "assistant", "model": "claude", "stop_sequence": None}
USAGE = {"input_tokens": 5, "output_tokens": 3}
MESSAGES = Case(
    "messages",
    [
        Attempt([http({**HEAD, "content": [THINK, TEXT, TOOL, OTHER], "stop_reason": "tool_use", "usage": USAGE})]),
        Attempt([http({**HEAD, "content": [TEXT], "stop_reason": "end_turn", "usage": USAGE})]),
    ],
    provider="anthropic",
)


@hw.tool(inline=True)
def a(x: int) -> str:
    """A tool."""
    return ""


@hw.tool(inline=True)
def b(y: int) -> str:
    """A tool that fails."""
    raise ValueError("no")


def exchange(case: Case, path: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The bodies of two requests with calls between them, and the exchanges of the cassette."""
    server = Server([case])
    kind = hw.OpenAI if case.provider == "openai" else hw.Anthropic
    model = hw.Recorder(
        kind("m", base_url=server.url(case), api_key="sk-test-1", max_tokens=100, temperature=0.5), path
    )
    hooks = hw.HookChain()
    hooks.on("pre_llm_request")(lambda event: {"additional_context": "a note"})
    hw.Agent(model, tools=[a, b], system="Be brief.", hooks=hooks).run_sync("hi")
    server.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return server.requests[case.name], lines[1:]


def test_openai_accepts_what_is_sent_and_what_is_kept(tmp_path: Path) -> None:
    bodies, kept = exchange(CHAT, tmp_path / "c.jsonl")
    assert len(bodies) == len(kept) == 2
    for body in bodies:
        TypeAdapter(CompletionCreateParamsNonStreaming).validate_python(body)
    roles = [message["role"] for message in bodies[1]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "user"]
    assert [call["id"] for call in bodies[1]["messages"][2]["tool_calls"]] == ["1", "2"]
    assert [message["tool_call_id"] for message in bodies[1]["messages"][3:5]] == ["1", "2"]
    assert [ChatCompletion.model_validate_json(one["body"]).choices[0].finish_reason for one in kept] == [
        "tool_calls",
        "stop",
    ]


def test_anthropic_accepts_what_is_sent_and_what_is_kept(tmp_path: Path) -> None:
    bodies, kept = exchange(MESSAGES, tmp_path / "c.jsonl")
    for body in bodies:
        TypeAdapter(MessageCreateParamsNonStreaming).validate_python(body)
    assert [message["role"] for message in bodies[1]["messages"]] == ["user", "assistant", "user"]
    assert bodies[1]["messages"][1]["content"][0] == THINK
    results = bodies[1]["messages"][2]["content"]
    assert [block["type"] for block in results] == ["tool_result", "tool_result", "text"]
    assert [block.get("is_error") for block in results[:2]] == [None, True]
    assert [Message.model_validate_json(one["body"]).stop_reason for one in kept] == ["tool_use", "end_turn"]
