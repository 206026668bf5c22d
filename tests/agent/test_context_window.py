"""Conversations that are longer than what the model holds."""

from __future__ import annotations

from typing import Any

import pytest
from runs import Run

import hookwright as hw

WINDOW = 6000


@hw.tool(inline=True)
def read(number: int) -> str:
    """Reads a page."""
    return f"page {number}: " + "many words of a long page " * 120


class Watched:
    """A model that reads pages, as many as it is told, and keeps what it was sent."""

    def __init__(self, pages: int) -> None:
        self.pages = pages
        self.sent: list[list[hw.Message]] = []

    def __call__(self, request: hw.Request) -> Any:
        self.sent.append(request.messages)
        number = len(self.sent)
        return hw.ToolCall("read", {"number": number}) if number <= self.pages else "done"


def estimate(messages: list[hw.Message]) -> int:
    return sum(len(message.text) for message in messages) // 4


def test_what_is_sent_fits_and_the_session_keeps_everything(run: Run) -> None:
    model = Watched(30)
    agent = hw.Agent(
        hw.FunctionModel(model, inline=True),
        tools=[read],
        context_window=WINDOW,
        reserved_tokens=1000,
        auto_compact=None,
    )
    result = run(agent, "the task: read all pages")
    assert (result.text, result.rounds) == ("done", 31)
    assert len(agent.history) == 62
    for sent in model.sent:
        assert estimate(sent) < WINDOW
        assert sent[0].text == "the task: read all pages"
        calls = [call.id for message in sent for call in message.tool_calls]
        assert calls == [message.tool_call_id for message in sent if message.role == "tool"]
    last = model.sent[-1]
    assert any(message.text.startswith("[result of read left out") for message in last)
    assert last[-1].text.startswith("page 30: many words")


def test_a_conversation_that_fits_is_sent_as_it_is(run: Run) -> None:
    model = Watched(2)
    agent = hw.Agent(hw.FunctionModel(model, inline=True), tools=[read], context_window=100_000)
    run(agent, "read two pages")
    assert [message.text for message in model.sent[-1]] == [message.text for message in agent.history[:-1]]


def test_hooks_hear_of_it_and_can_leave_it_out(run: Run) -> None:
    hooks = hw.HookChain()
    heard: list[tuple[str, int, int]] = []

    @hooks.on("post_micro_compact", name="after")
    def after(event: Any) -> None:
        heard.append((event.event, event.tokens_before, event.tokens_after))

    model = Watched(20)
    agent = hw.Agent(
        hw.FunctionModel(model, inline=True), tools=[read], hooks=hooks, context_window=WINDOW, auto_compact=None
    )
    run(agent, "read")
    assert heard and all(before > after for _, before, after in heard)
    # What was shortened stays so: not every request is another one for the server's cache.
    assert len(heard) < 8
    heard.clear()
    hooks.on("pre_micro_compact", name="before")(lambda event: hw.skip("not now"))
    model = Watched(20)
    agent = hw.Agent(
        hw.FunctionModel(model, inline=True), tools=[read], hooks=hooks, context_window=WINDOW, auto_compact=None
    )
    run(agent, "read")
    assert not heard
    assert all(estimate(sent) < WINDOW for sent in model.sent)


def test_a_function_of_ones_own_counts(run: Run) -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    model = Watched(6)
    agent = hw.Agent(
        hw.FunctionModel(model, inline=True),
        tools=[read],
        context_window=12_000,
        reserved_tokens=1000,
        count_tokens=count,
        auto_compact=None,
    )
    run(agent, "read")
    assert counted
    assert all(sum(len(message.text) for message in sent) < 12_000 for sent in model.sent)


def test_a_watched_run_tells_of_it() -> None:
    import asyncio

    async def main() -> list[tuple[int, int]]:
        model = hw.FunctionModel(Watched(20), inline=True)
        agent = hw.Agent(model, tools=[read], context_window=WINDOW, auto_compact=None)
        return [(event.left_out, event.shortened) async for event in agent.stream("read") if event.type == "fitted"]

    fitted = asyncio.run(main())
    assert any(shortened for _, shortened in fitted)


def test_windows_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="context_window"):
        hw.Agent(hw.Scripted([]), context_window=10)
    with pytest.raises(ValueError, match="leaves nothing"):
        hw.Agent(hw.Scripted([]), context_window=4096)
    for share in (0.1, 1.5, "half"):
        with pytest.raises(ValueError, match="auto_compact"):
            hw.Agent(hw.Scripted([]), context_window=8192, auto_compact=share)  # type: ignore[arg-type]
