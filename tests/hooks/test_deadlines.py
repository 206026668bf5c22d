"""Deadlines: on time where code can be interrupted, late but not forgotten where it cannot, never in the caller."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import sys
import time
from typing import Any

import pytest
from support import Dispatch, Stopwatch

import hookwright as hw

CALL = {"tool_name": "shell", "tool_arguments": {"command": "ls"}}
#: Far above what any of these takes if deadlines hold, far below what they take if not.
SOON = 3.0


def _spin(event: hw.HookEvent) -> Any:
    while True:
        pass


def _swallow(event: hw.HookEvent) -> Any:
    for _ in range(20):
        try:
            while True:
                pass
        except BaseException:
            pass
    return hw.allow()


def _sleep_in_c(event: hw.HookEvent) -> Any:
    time.sleep(0.4)
    return hw.allow()


async def _spin_in_a_coroutine(event: hw.HookEvent) -> Any:
    await asyncio.sleep(0)
    while True:
        pass


async def _wait(event: hw.HookEvent) -> Any:
    await asyncio.sleep(60)


async def _wait_and_swallow(event: hw.HookEvent) -> Any:
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)


async def _yield_for_ever(event: hw.HookEvent) -> Any:
    while True:
        await asyncio.sleep(0)


HOOKS = [_spin, _swallow, _spin_in_a_coroutine, _wait, _wait_and_swallow, _yield_for_ever]


def burn(count: int = 10_000) -> int:
    """Runs bytecodes in which a stray exception would surface."""
    total = 0
    for number in range(count):
        total += number
    return total


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_is_ended_at_its_deadline_and_a_gate_refuses(dispatch: Dispatch, chain: hw.HookChain, hook: Any) -> None:
    chain.add(hook, "pre_tool_execution", role="gate", timeout=0.1, name="late")
    after = []
    chain.add(lambda event: after.append(event.outcome.action), "pre_tool_execution", role="observer", name="after")
    watch = Stopwatch()
    outcome = dispatch(chain, "pre_tool_execution", **CALL)
    assert watch.seconds < SOON
    assert burn() == 49_995_000
    assert (outcome.action, outcome.halted_by) == ("skip", "late")
    assert [run.status for run in outcome.runs] == ["timeout", "ok"]
    assert after == ["skip"]
    assert outcome.runs[0].ms >= 99


def test_c_code_is_waited_for_and_its_late_permission_is_a_denial(dispatch: Dispatch, chain: hw.HookChain) -> None:
    chain.add(_sleep_in_c, "pre_tool_execution", role="gate", timeout=0.1, name="late")
    watch = Stopwatch()
    outcome = dispatch(chain, "pre_tool_execution", **CALL)
    assert watch.seconds >= 0.39
    assert (outcome.action, outcome.runs[0].status) == ("skip", "timeout")
    assert burn() == 49_995_000


def test_a_thread_lets_the_chain_go_on_while_c_code_is_stuck(dispatch: Dispatch, chain: hw.HookChain) -> None:
    chain.add(_sleep_in_c, "pre_tool_execution", role="gate", timeout=0.05, name="late", isolate="thread")
    outcome = dispatch(chain, "pre_tool_execution", **CALL)
    assert (outcome.action, outcome.runs[0].status) == ("skip", "timeout")
    assert 49 <= outcome.runs[0].ms < 390


@pytest.mark.parametrize("hook", [_spin, _swallow, _sleep_in_c])
def test_nothing_stray_reaches_the_caller_in_fifty_rounds(dispatch: Dispatch, chain: hw.HookChain, hook: Any) -> None:
    if hook is _sleep_in_c:

        def hook(event: hw.HookEvent) -> None:
            time.sleep(0.004)  # Returns just about when the deadline fires.

    chain.add(hook, "turn_start", timeout=0.003, name="late")
    if hook is _swallow:
        chain.budget = 0.01
    for _ in range(50 if hook is not _swallow else 5):
        status = dispatch(chain, "turn_start", user_input="x").runs[0].status
        assert status == "timeout"
        assert burn() == 49_995_000


def test_an_answer_just_before_the_deadline_leaves_nothing_behind(dispatch: Dispatch, chain: hw.HookChain) -> None:
    def busy(event: hw.HookEvent) -> None:
        end = time.monotonic() + 0.002
        while time.monotonic() < end:
            pass

    chain.add(busy, "turn_start", timeout=0.0022)
    statuses = set()
    for _ in range(50):
        statuses.add(dispatch(chain, "turn_start", user_input="x").runs[0].status)
        assert burn() == 49_995_000
    assert statuses <= {"ok", "timeout"}


@pytest.mark.parametrize("inner_hook", [_spin, _wait, "sleep 60", "thread"])
def test_an_inner_chain_does_not_swallow_the_outer_deadline(
    dispatch: Dispatch, chain: hw.HookChain, inner_hook: Any
) -> None:
    inner = hw.HookChain()
    if inner_hook == "sleep 60":
        inner.add(hw.ShellHook("turn_start", "sleep 60"))
    elif inner_hook == "thread":
        inner.add(lambda event: time.sleep(2), "turn_start", isolate="thread")
    else:
        inner.add(inner_hook, "turn_start")
    seen = []

    @chain.on("turn_start", timeout=0.2)
    def outer(event: hw.HookEvent) -> None:
        inner.run("turn_start", user_input="x")
        burn()
        seen.append("went on")

    watch = Stopwatch()
    outcome = dispatch(chain, "turn_start", user_input="x")
    assert outcome.runs[0].status == "timeout"
    assert watch.seconds < 1.5
    assert burn() == 49_995_000


@pytest.mark.parametrize("inner_hook", [_spin, _wait])
def test_the_outer_hook_goes_on_after_an_inner_deadline(
    dispatch: Dispatch, chain: hw.HookChain, inner_hook: Any
) -> None:
    inner = hw.HookChain()
    inner.add(inner_hook, "turn_start", timeout=0.05)

    @chain.on("turn_start")
    def outer(event: hw.HookEvent) -> dict[str, Any] | None:
        statuses = [inner.run("turn_start", user_input="x").runs[0].status for _ in range(3)]
        burn()
        assert statuses == ["timeout"] * 3
        return None

    assert dispatch(chain, "turn_start", user_input="x").runs[0].status == "ok"


@pytest.mark.parametrize("awaits", [True, False], ids=["arun", "run"])
def test_an_async_hook_may_run_a_chain_of_async_hooks(dispatch: Dispatch, chain: hw.HookChain, awaits: bool) -> None:
    inner = hw.HookChain()

    @inner.on("turn_start")
    async def within(event: hw.HookEvent) -> None:
        await asyncio.sleep(0.001)

    @chain.on("turn_start", timeout=SOON)
    async def outer(event: hw.HookEvent) -> None:
        fields = {"user_input": "x"}
        outcome = await inner.arun("turn_start", **fields) if awaits else inner.run("turn_start", **fields)
        assert outcome.runs[0].status == "ok"

    run = dispatch(chain, "turn_start", user_input="x").runs[0]
    assert run.status == "ok", run.detail


def test_an_awaited_inner_chain_ends_with_the_outer_hook(chain: hw.HookChain) -> None:
    inner = hw.HookChain()
    inner.add(_wait, "turn_start")
    inner.add(hw.ShellHook("turn_start", "sleep 60"))

    @chain.on("turn_start", timeout=0.1)
    async def outer(event: hw.HookEvent) -> None:
        await inner.arun("turn_start", user_input="x")

    async def main() -> hw.Outcome:
        return await chain.arun("turn_start", user_input="x")

    watch = Stopwatch()
    assert asyncio.run(main()).runs[0].status == "timeout"
    assert watch.seconds < SOON


def test_the_budget_of_the_chain_cuts_the_running_hook_short(dispatch: Dispatch) -> None:
    chain = hw.HookChain(budget=0.1)
    chain.add(_wait, "pre_tool_execution", name="first")
    chain.add(_spin, "pre_tool_execution", name="second")
    chain.add(lambda event: None, "pre_tool_execution", name="gate", role="gate")
    chain.add(lambda event: None, "pre_tool_execution", name="observer", role="observer")
    outcome = dispatch(chain, "pre_tool_execution", **CALL)
    assert [run.status for run in outcome.runs] == ["timeout", *["budget_exhausted"] * 3]
    assert (outcome.action, outcome.halted_by) == ("skip", "gate")


@pytest.mark.parametrize("scale", [0.1, pytest.param(1.0, marks=pytest.mark.slow)])
def test_six_slow_hooks_fit_into_the_budget(dispatch: Dispatch, scale: float) -> None:
    chain = hw.HookChain(budget=30 * scale)
    seconds = 9 * scale

    def loop(event: hw.HookEvent) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pass

    async def wait(event: hw.HookEvent) -> None:
        await asyncio.sleep(seconds)

    for number, make in enumerate(["shell", wait, loop] * 2):
        if make == "shell":
            chain.add(hw.ShellHook("pre_tool_execution", f"sleep {seconds}", name=f"hook_{number}"))
        else:
            chain.add(make, "pre_tool_execution", name=f"hook_{number}")
    chain.add(lambda event: None, "pre_tool_execution", name="gate", role="gate")
    watch = Stopwatch()
    outcome = dispatch(chain, "pre_tool_execution", **CALL)
    assert watch.seconds < 30 * scale + 0.5
    statuses = [run.status for run in outcome.runs]
    assert statuses == ["ok", "ok", "ok", "timeout", "budget_exhausted", "budget_exhausted", "budget_exhausted"]
    assert (outcome.action, outcome.halted_by) == ("skip", "gate")


VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


def test_contextvars_of_the_caller_are_seen_by_every_kind_of_function(dispatch: Dispatch, chain: hw.HookChain) -> None:
    seen: dict[str, str] = {}

    async def coroutine(event: hw.HookEvent) -> None:
        await asyncio.sleep(0)
        seen["async"] = VARIABLE.get()

    chain.add(lambda event: seen.update(sync=VARIABLE.get()), "turn_start", role="observer", name="sync")
    chain.add(
        lambda event: seen.update(thread=VARIABLE.get()), "turn_start", role="observer", name="t", isolate="thread"
    )
    chain.add(coroutine, "turn_start", role="observer")
    token = VARIABLE.set("set by the caller")
    try:
        outcome = dispatch(chain, "turn_start", user_input="x")
    finally:
        VARIABLE.reset(token)
    assert [run.status for run in outcome.runs] == ["ok"] * 3
    assert seen == dict.fromkeys(("sync", "thread", "async"), "set by the caller")


def test_a_task_and_its_timeouts_work_inside_an_async_hook(dispatch: Dispatch, chain: hw.HookChain) -> None:
    @chain.on("turn_start")
    async def hook(event: hw.HookEvent) -> None:
        assert asyncio.current_task() is not None
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.sleep(60), 0.01)
        if sys.version_info >= (3, 11):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await asyncio.sleep(60)
        results = await asyncio.gather(asyncio.sleep(0, "one"), asyncio.to_thread(lambda: "two"))
        assert results == ["one", "two"]

    run = dispatch(chain, "turn_start", user_input="x").runs[0]
    assert run.status == "ok", run.detail
