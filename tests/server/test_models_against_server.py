"""Models against a server that misbehaves on purpose: each quirk and fault by name, with the right value."""

from __future__ import annotations

import asyncio
import logging
import re
import traceback
from collections.abc import Iterator
from pathlib import Path

import cases_anthropic
import cases_faults
import cases_openai
import pytest
from misbehaving import Case, Server

import hookwright as hw

KEY = "sk-test-SECRET123"
CASES = [*cases_openai.CASES, *cases_anthropic.CASES, *cases_faults.CASES]
#: How often a request is made again by these tests, so soon that nobody notices.
AGAIN = (2, 0.001)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server(CASES)
    yield server
    server.close()


def model_of(server: Server, case: Case) -> hw.ServerModel:
    kind = hw.OpenAI if case.provider == "openai" else hw.Anthropic
    retry = hw.RetryPolicy(connection=AGAIN, rate_limited=AGAIN, server=AGAIN, overloaded=AGAIN, jitter=False)
    hangs = "hang" in case.name
    return kind(
        "m",
        base_url=server.url(case),
        api_key=KEY,
        retry=retry,
        timeout=0.3 if hangs else 20,
        idle_timeout=0.3 if hangs else 20,
    )


@hw.tool(inline=True)
def a(x: int = 0) -> str:
    """A tool."""
    return "done"


@hw.tool(inline=True)
def b(y: int = 0) -> str:
    """Another one."""
    return "done"


def ask(agent: hw.Agent, streamed: bool) -> tuple[hw.RunResult | None, hw.ModelError | None, list[hw.RunEvent]]:
    """The result or the error, and the events if it was streamed."""
    events: list[hw.RunEvent] = []

    async def watch() -> hw.RunResult | None:
        stream = agent.stream("hi")
        async for event in stream:
            events.append(event)
        return stream.result

    try:
        return (asyncio.run(watch()) if streamed else agent.run_sync("hi")), None, events
    except hw.ModelError as error:
        return None, error, events


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_reply_is_read_right_whatever_the_server_does(server: Server, case: Case) -> None:
    server.requests.pop(case.name, None)
    agent = hw.Agent(model_of(server, case), tools=[a, b], max_rounds=1)
    result, error, events = ask(agent, case.streamed)
    asked = len(server.requests[case.name])
    if case.fails is not None:
        assert error is not None, f"it did not fail: {result!r}"
        assert (error.kind, error.status) == (case.fails, case.status), error
        assert re.search(case.says, str(error)), error
        assert case.partial is None or (error.partial and error.partial.text == case.partial), error.partial
        # What was shown is not asked for again; what is of no use neither.
        again = error.kind in ("connection", "timeout", "rate_limited", "server", "overloaded", "invalid_reply")
        shown = case.partial is not None
        assert asked == (1 if shown or not again or case.name.endswith("no money left") else asked)
        assert asked == error.attempts
        assert [message.role for message in agent.history] == ["user"]
        return
    assert error is None, error
    assert result is not None
    reply = agent.history[1]
    assert reply.text == case.text
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [
        (name, dict(given)) for name, given in case.calls
    ]
    assert len({call.id for call in reply.tool_calls}) == len(case.calls)
    assert all(call.id for call in reply.tool_calls)
    assert reply.reasoning == case.reasoning
    if case.usage is not None:
        assert (result.usage.input_tokens, result.usage.output_tokens) == case.usage
    stored = reply.to_dict()
    assert {name: stored.get(name) for name in case.extra} == case.extra
    assert asked == len(case.attempts) == result.retries + 1
    if case.streamed and "not streamed" not in case.name:
        assert "".join(event.delta for event in events if event.type == "text") == case.text or "refusal" in case.name


def test_there_are_many_cases() -> None:
    print(f"{len(CASES)} cases", end="")
    assert len(CASES) >= 150
    assert len({case.name for case in CASES}) == len(CASES)


def test_a_failure_that_is_tried_again_is_told(server: Server) -> None:
    case = next(case for case in CASES if case.name == "openai streamed 503")
    server.requests.pop(case.name, None)
    _, _, events = ask(hw.Agent(model_of(server, case)), True)
    (retry,) = [event for event in events if event.type == "retry"]
    assert (retry.attempt, retry.seconds) == (1, 0.001)
    assert "it broke" in retry.error


def test_the_key_is_nowhere(server: Server, caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    caplog.set_level(logging.DEBUG)
    said: list[str] = []
    for number, case in enumerate(CASES):
        if "hang" in case.name:
            continue
        server.requests.pop(case.name, None)
        model = model_of(server, case)
        recorder = hw.Recorder(model, tmp_path / f"{number}.jsonl")
        agent = hw.Agent(recorder, tools=[a, b], max_rounds=1, session=tmp_path / str(number))
        result, error, events = ask(agent, case.streamed)
        said += [repr(model), repr(recorder), repr(agent), repr(result), repr(events), str(result and result.to_dict())]
        if error is not None:
            said += [repr(error), str(error), str(error.args), *traceback.format_exception(error), repr(error.partial)]
        agent.close()
        assert KEY in server.heads[case.name][-1], "the server did not get the key, so this shows nothing"
    said += [record.getMessage() for record in caplog.records]
    said += [path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file()]
    assert not [text for text in said if "SECRET123" in text]


def test_cassettes_answer_as_the_server_did(server: Server, tmp_path: Path) -> None:
    for case in [*cases_openai.CASES, *cases_anthropic.CASES]:
        if case.fails is not None:
            continue
        server.requests.pop(case.name, None)
        path = tmp_path / "cassette.jsonl"
        asked = hw.Agent(hw.Recorder(model_of(server, case), path), tools=[a, b], max_rounds=1)
        _, error, _ = ask(asked, case.streamed)
        assert error is None, (case.name, error)
        replayed = hw.Agent(hw.Replay(path), tools=[a, b], max_rounds=1)
        _, error, _ = ask(replayed, case.streamed)
        assert error is None, (case.name, error)
        first, second = asked.history[1], replayed.history[1]
        assert (first.text, first.reasoning) == (second.text, second.reasoning), case.name
        assert [(call.name, call.arguments) for call in first.tool_calls] == [
            (call.name, call.arguments) for call in second.tool_calls
        ], case.name
