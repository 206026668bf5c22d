"""Limits end a turn cleanly: with a status, an event, and a history that can be gone on from."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import pytest
from runs import Probe, Run, call, check_history, told

import hookwright as hw


def limited(run: Run, probe: Probe, replies: Any, hooks: hw.HookChain | None = None, **limits: Any) -> Any:
    """Runs a turn that is expected to reach a limit, and one more."""
    hooks = hooks if hooks is not None else hw.HookChain()
    events: list[tuple[Any, ...]] = []
    for event in ("limit_reached", "turn_end"):
        hooks.add(
            lambda event: events.append(
                (event.limit, event.used, event.allowed) if event.event == "limit_reached" else (event.status,)
            ),
            event,
            name=event,
        )
    agent = hw.Agent(hw.Scripted(iter(replies)), tools=[probe.tool], hooks=hooks, **limits)
    result = run(agent, "go")
    check_history(agent.history)
    assert events[-1] == (result.status,)
    return agent, result, events[:-1]


def numbered() -> Any:
    return (call(text=str(number)) for number in itertools.count())


def test_rounds(run: Run, probe: Probe) -> None:
    agent, result, events = limited(run, probe, numbered(), max_rounds=3)
    assert (result.status, result.limit, result.rounds) == ("limit", "rounds", 3)
    assert events == [("rounds", 3, 3)]
    assert probe.entered == ["0", "1", "2"]
    assert "3 rounds" in (result.reason or "")
    assert run(agent, "go on").limit == "rounds"  # A turn of its own, with limits of its own.
    assert len(probe.entered) == 6
    check_history(agent.history)


def test_calls_in_the_middle_of_a_reply(run: Run, probe: Probe) -> None:
    replies = [[call(text=f"{turn}{position}") for position in range(3)] for turn in range(5)]
    agent, result, events = limited(run, probe, replies, max_calls_per_turn=4)
    assert (result.status, result.limit) == ("limit", "calls")
    assert events == [("calls", 4, 4)]
    assert probe.entered == ["00", "01", "02", "10"]
    assert [made.cause for made in result.tool_calls] == [None] * 4 + ["not_run"] * 2
    assert "limit was reached" in told(agent)[-1]


def test_the_same_call_three_times_in_a_row(run: Run, probe: Probe) -> None:
    _, result, events = limited(run, probe, (call(text="same") for _ in itertools.count()))
    assert (result.status, result.limit) == ("limit", "repeated_call")
    assert events == [("repeated_call", 3, 3)]
    assert probe.entered == ["same", "same"]
    assert result.tool_calls[-1].cause == "not_run"


def test_the_same_call_with_another_between_is_none(run: Run, probe: Probe) -> None:
    replies = [call(text=text) for text in "aabaab"] + ["ok"]
    _, result, _ = limited(run, probe, replies)
    assert result.status == "success"
    assert probe.entered == list("aabaab")


def test_no_limit_on_repetition_where_none_is_wanted(run: Run, probe: Probe) -> None:
    _, result, _ = limited(run, probe, [call()] * 6 + ["ok"], max_repeated_calls=None)
    assert result.status == "success"


@pytest.mark.parametrize("waits_in", ["tool", "async tool", "model", "async model"])
def test_seconds_though_something_hangs(run: Run, waits_in: str) -> None:
    import asyncio

    release = threading.Event()

    def hang() -> str:
        """Hangs."""
        release.wait(30)
        return "late"

    async def hang_async() -> str:
        """Hangs."""
        await asyncio.sleep(30)
        return "late"

    def model(request: hw.Request) -> Any:
        return hang() if waits_in == "model" else call("hang")

    async def async_model(request: hw.Request) -> Any:
        return await hang_async()

    tool = hw.tool(hang_async if waits_in == "async tool" else hang, name="hang")
    agent = hw.Agent(async_model if waits_in == "async model" else model, tools=[tool], max_seconds=0.3)
    try:
        result = run(agent, "go")
    finally:
        release.set()
    assert (result.status, result.limit) == ("limit", "seconds")
    assert result.ms < 5000
    check_history(agent.history)


def test_seconds_between_rounds(run: Run, probe: Probe) -> None:
    _, result, events = limited(run, probe, numbered(), max_seconds=1e-9)
    assert (result.status, result.limit, probe.entered) == ("limit", "seconds", [])
    ((limit, used, allowed),) = events
    assert (limit, allowed) == ("seconds", 1e-9)
    assert used >= allowed


@pytest.mark.parametrize("event", ["stop", "post_llm_response"])
def test_feedback_ends_at_the_cap(run: Run, probe: Probe, event: str) -> None:
    hooks = hw.HookChain()
    numbers = itertools.count()
    hooks.add(lambda event: hw.retry(f"not yet {next(numbers)}"), event, name="never happy")
    agent, result, events = limited(run, probe, (f"done {n}" for n in itertools.count()), hooks)
    assert (result.status, result.limit, result.rounds) == ("limit", "hook_loop", 9)
    assert events == [("hook_loop", 8, 8)]
    assert [message.text for message in agent.history if message.role == "user"][1:] == [
        f"not yet {number}" for number in range(8)
    ]


def test_the_same_feedback_twice_ends_earlier(run: Run, probe: Probe) -> None:
    hooks = hw.HookChain()
    hooks.add(lambda event: hw.retry("run the tests"), "stop", name="nag")
    _, result, _ = limited(run, probe, ("done" for _ in itertools.count()), hooks)
    assert (result.limit, result.rounds) == ("hook_loop", 2)
    assert "same feedback" in (result.reason or "")


def test_the_same_feedback_with_a_call_between_does_not(run: Run, probe: Probe) -> None:
    hooks = hw.HookChain()
    hooks.add(lambda event: hw.retry("run the tests"), "stop", name="nag")
    replies = itertools.chain.from_iterable(("done", call(text=str(number))) for number in itertools.count())
    _, result, _ = limited(run, probe, replies, hooks)
    assert (result.limit, len(probe.entered)) == ("hook_loop", 8)


def test_continuation_counts_how_often_hooks_have_sent_the_turn_back(run: Run, probe: Probe) -> None:
    hooks = hw.HookChain()
    seen: list[int] = []

    @hooks.on("stop", name="thrice")
    def thrice(event: hw.HookEvent) -> hw.HookResult | None:
        seen.append(event.continuation)
        return hw.retry(f"more {event.continuation}") if event.continuation < 2 else None

    _, result, _ = limited(run, probe, ["a", "b", "c"], hooks)
    assert (result.status, result.text, seen) == ("success", "c", [0, 1, 2])


@pytest.mark.parametrize(
    ("limits", "says"),
    [({"max_rounds": -1}, "max_rounds"), ({"max_parallel": 0}, "max_parallel"), ({"max_rounds": "x"}, "max_rounds"),
     ({"max_seconds": -1.0}, "max_seconds"), ({"max_calls_per_turn": 1.5}, "max_calls_per_turn"),
     ({"max_repeated_calls": True}, "max_repeated_calls")],
)  # fmt: skip
def test_a_limit_that_makes_no_sense_is_refused_at_once(limits: dict[str, Any], says: str) -> None:
    with pytest.raises((ValueError, TypeError), match=says):
        hw.Agent(hw.Scripted([]), **limits)
