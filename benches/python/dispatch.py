"""What a dispatch costs: no-op hooks on ``pre_tool_execution``, beside a bare loop and peers.

Measured is the default build as users get it: deadlines armed (10 s a hook, 30 s a chain), records and timing on,
results merged. After each measurement the last outcome is asked whether that is so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Any

import agent_framework
import pluggy

import hookwright as hw
from hookwright import _native

from .measure import Series, Timed, clock, side_by_side
from .table import Section, duration, multiple, verdict

COUNTS = (0, 1, 10, 100)
#: What must be reached and what is hoped for, in multiples of the bare loop (one hook: 6 at most, see decisions).
BARS = {1: (4.0, 3.0), 10: (2.5, 2.0), 100: (2.0, 1.7)}
EVENT = "pre_tool_execution"
ARGUMENTS = {"command": "ls -la", "timeout": 10}

Function = Callable[[Any], Any]


def sync_hooks(count: int) -> list[Function]:
    """Functions that do nothing, each an object of its own."""

    def make() -> Function:
        def hook(event: Any) -> None:
            return None

        return hook

    return [make() for _ in range(count)]


def async_hooks(count: int) -> list[Function]:
    """The same as coroutine functions."""

    def make() -> Function:
        async def hook(event: Any) -> None:
            return None

        return hook

    return [make() for _ in range(count)]


def chain_of(hooks: Sequence[Function]) -> hw.HookChain:
    """A chain with all defaults."""
    chain = hw.HookChain()
    for index, hook in enumerate(hooks):
        chain.add(hook, EVENT, name=f"hook_{index}")
    return chain


def event_object() -> Any:
    """The object that hooks are called with, for the contenders that do not make one."""
    seen: list[Any] = []
    chain_of([seen.append]).run(EVENT, tool_name="shell", tool_arguments=ARGUMENTS)
    return seen[0]


def bare_loop(hooks: Sequence[Function], event: Any) -> Timed:
    """What one would write by hand for these functions alone."""

    def timed(number: int) -> float:
        start = clock()
        for _ in range(number):
            for function in hooks:
                result = function(event)
                if result is not None:
                    raise AssertionError(result)
        return clock() - start

    return timed


def bare_async_loop(hooks: Sequence[Function], event: Any) -> Timed:
    """The same with ``await``."""

    async def work(number: int) -> float:
        start = clock()
        for _ in range(number):
            for function in hooks:
                result = await function(event)
                if result is not None:
                    raise AssertionError(result)
        return clock() - start

    return lambda number: asyncio.run(work(number))


def hookwright_sync(chain: hw.HookChain) -> Timed:
    """``chain.run``, from the call to the outcome."""

    def timed(number: int) -> float:
        run, arguments = chain.run, ARGUMENTS
        start = clock()
        for _ in range(number):
            run("pre_tool_execution", tool_name="shell", tool_arguments=arguments)
        return clock() - start

    return timed


def hookwright_async(chain: hw.HookChain) -> Timed:
    """``await chain.arun``, from the call to the outcome."""

    async def work(number: int) -> float:
        run, arguments = chain.arun, ARGUMENTS
        start = clock()
        for _ in range(number):
            await run("pre_tool_execution", tool_name="shell", tool_arguments=arguments)
        return clock() - start

    return lambda number: asyncio.run(work(number))


def pluggy_call(hooks: Sequence[Function], event: Any) -> Timed:
    """pluggy calling the same functions: a list of results, no merging, no records."""
    namespace = SimpleNamespace(pre_tool_execution=lambda event: None)
    namespace.pre_tool_execution.__name__ = "pre_tool_execution"
    manager = pluggy.PluginManager("bench")
    pluggy.HookspecMarker("bench")(namespace.pre_tool_execution)
    manager.add_hookspecs(namespace)
    mark = pluggy.HookimplMarker("bench")
    for hook in hooks:
        manager.register(SimpleNamespace(pre_tool_execution=mark(hook)))
    if len(manager.hook.pre_tool_execution.get_hookimpls()) != len(hooks):
        raise AssertionError("pluggy did not take all hooks")

    def timed(number: int) -> float:
        call = manager.hook.pre_tool_execution
        start = clock()
        for _ in range(number):
            call(event=event)
        return clock() - start

    return timed


async def _final(context: Any) -> None:
    return None


def agent_framework_call(count: int) -> Timed:
    """agent-framework's chain of function middleware, which each call their successor; there is no sync form."""

    class Middleware(agent_framework.FunctionMiddleware):
        async def process(self, context: Any, call_next: Callable[[], Awaitable[None]]) -> None:
            await call_next()

    @agent_framework.tool
    def shell(command: str) -> str:
        """Runs a command."""
        return command

    pipeline = agent_framework._middleware.FunctionMiddlewarePipeline(*[Middleware() for _ in range(count)])

    async def work(number: int) -> float:
        start = clock()
        for _ in range(number):
            context = agent_framework.FunctionInvocationContext(function=shell, arguments=ARGUMENTS)
            await pipeline.execute(context, _final)
        return clock() - start

    return lambda number: asyncio.run(work(number))


def assert_complete(chain: hw.HookChain, outcome: hw.Outcome, count: int) -> None:
    """Asserts of a chain that was measured that nothing was left out to be fast."""
    assert len(outcome.runs) == count, outcome
    for run in outcome.runs:
        assert run.status == "ok" and run.attempts == 1 and run.ms > 0, run
    assert count == 0 or outcome.ms >= max(run.ms for run in outcome.runs)
    assert all(info.timeout == 10.0 for info in chain.hooks), chain.hooks
    if count:
        # One more hook on the same chain looks at the deadline that stands while it runs.
        left: list[float | None] = []
        chain.add(lambda event: left.append(_native._deadline_left()), EVENT, name="probe")
        try:
            probed = chain.run(EVENT, tool_name="shell", tool_arguments=ARGUMENTS)
        finally:
            chain.remove("probe")
        assert probed.runs[-1].status == "ok", probed
        assert left[0] is not None and 9.0 < left[0] <= 10.0, left
        stats = chain.stats()["hook_0"]
        assert stats.runs > 100 and stats.p50_ms > 0, stats


def measure_sync(count: int, **settings: Any) -> Series:
    """All synchronous contenders with ``count`` hooks."""
    hooks, event = sync_hooks(count), event_object()
    chain = chain_of(hooks)
    series = side_by_side(
        {
            "bare loop": bare_loop(hooks, event),
            "hookwright": hookwright_sync(chain),
            "pluggy": pluggy_call(hooks, event),
        },
        **settings,
    )
    assert_complete(chain, chain.run(EVENT, tool_name="shell", tool_arguments=ARGUMENTS), count)
    return series


def measure_async(count: int, **settings: Any) -> Series:
    """All asynchronous contenders with ``count`` hooks."""
    hooks, event = async_hooks(count), event_object()
    chain = chain_of(hooks)
    series = side_by_side(
        {
            "bare loop": bare_async_loop(hooks, event),
            "hookwright": hookwright_async(chain),
            "agent-framework": agent_framework_call(count),
        },
        **settings,
    )

    async def once() -> hw.Outcome:
        return await chain.arun(EVENT, tool_name="shell", tool_arguments=ARGUMENTS)

    assert_complete(chain, asyncio.run(once()), count)
    return series


def sections(**settings: Any) -> list[Section]:
    """The tables of this module."""
    made = []
    for kind, measure, peers in (
        ("sync", measure_sync, ["pluggy"]),
        ("async", measure_async, ["agent-framework"]),
    ):
        section = Section(
            f"Dispatch of {EVENT} over no-op {kind} hooks",
            ["contender", *(f"{count} hooks" if count != 1 else "1 hook" for count in COUNTS)],
        )
        series = {count: measure(count, **settings) for count in COUNTS}
        for name in ("bare loop", "hookwright", *peers):
            cells = []
            for count in COUNTS:
                text = duration(series[count].median(name))
                if count and name != "bare loop":
                    text += f" ({multiple(series[count].ratio(name, 'bare loop'))})"
                cells.append(text)
            section.rows.append([name, *cells])
        if kind == "sync":
            bars = [
                f"{bar:g}x / {goal:g}x: {verdict(series[count].ratio('hookwright', 'bare loop'), bar)}"
                for count, (bar, goal) in BARS.items()
            ]
            section.rows.append(["bar / goal", "", *bars])
        made.append(section)
    made[0].notes.append(
        "In brackets: multiples of the bare loop in the same round. The bare loop is handed an event that was made "
        "before; hookwright makes event, records and outcome in each dispatch."
    )
    made[1].notes.append(
        "agent-framework has only asynchronous middleware, each of which calls its successor; its column is a chain "
        "of as many no-op middleware objects around an empty function."
    )
    return made
