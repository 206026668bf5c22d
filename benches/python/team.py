"""Teams: what ten thousand that wait cost, how soon one wakes, how fast letters go, how long a hundred work."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import statistics
import threading
import time
import warnings
from typing import Any

import hookwright as hw

from .many import resident
from .table import Section, duration, multiple

MANY = 10_000
#: For how long the idle team is watched, in seconds.
WATCHED = float(os.environ.get("BENCH_IDLE_SECONDS", "60"))
WAKES = 1_000
LETTERS = 20_000
MATES, ROUNDS, LATENCY = 100, 20, 0.05


def spent() -> float:
    """Seconds of CPU that this process has used, as the operating system says."""
    times = os.times()
    return times.user + times.system


def idle_team(worked: bool) -> list[str]:
    """A row: ten thousand teammates that wait. ``worked``: each has had a turn before."""
    asked, calls = threading.Event(), [0]
    woken = [0.0]

    def model(request: hw.Request) -> str:
        calls[0] += 1
        woken[0] = time.perf_counter()
        asked.set()
        return "ok"

    gc.collect()
    before, began = resident(), time.perf_counter()
    with hw.Team(hw.FunctionModel(model, inline=True), max_rounds=100_000) as team:
        for number in range(MANY):
            team.spawn(f"m{number}")
        if worked:
            for number in range(MANY):
                team.send("hello", to=f"m{number}", private=True)
        team.join_sync(timeout=600)
        seconds = time.perf_counter() - began
        gc.collect()
        each = (resident() - before) / MANY
        calls_before, cpu = calls[0], spent()
        time.sleep(WATCHED)
        used, more = spent() - cpu, calls[0] - calls_before
        waits = []
        for number in range(WAKES):
            asked.clear()
            start = time.perf_counter()
            team.send("wake up", to=f"m{number * 7}", private=True)
            asked.wait()
            waits.append(woken[0] - start)
        waits.sort()
    what = "each has worked once" if worked else "none has worked yet"
    return [
        f"hookwright, {what}", duration(seconds), f"{each / 1024:.1f} KiB", f"{100 * used / WATCHED:.2f} %", str(more),
        f"{duration(waits[len(waits) // 2])} / {duration(waits[len(waits) * 99 // 100])}",
    ]  # fmt: skip


def idle_peer() -> list[str]:
    """The same number of assistants of AutoGen AgentChat, made and not asked for anything."""
    from autogen_agentchat.agents import AssistantAgent
    from autogen_core.models import ChatCompletionClient, ModelInfo

    class Nothing(ChatCompletionClient):
        async def create(self, *_: Any, **__: Any) -> Any: ...
        def create_stream(self, *_: Any, **__: Any) -> Any: ...
        async def close(self) -> None: ...
        def actual_usage(self) -> Any: ...
        def total_usage(self) -> Any: ...
        def count_tokens(self, *_: Any, **__: Any) -> int:
            return 0

        def remaining_tokens(self, *_: Any, **__: Any) -> int:
            return 0

        @property
        def capabilities(self) -> Any:
            return self.model_info

        @property
        def model_info(self) -> ModelInfo:
            return ModelInfo(
                vision=False, function_calling=True, json_output=False, family="unknown", structured_output=False
            )

    client = Nothing()
    gc.collect()
    before, began = resident(), time.perf_counter()
    agents = [AssistantAgent(f"m{number}", model_client=client) for number in range(MANY)]
    seconds = time.perf_counter() - began
    gc.collect()
    each = (resident() - before) / MANY
    assert len(agents) == MANY
    return ["AutoGen AgentChat, agents without a runtime", duration(seconds), f"{each / 1024:.1f} KiB", "", "", ""]


def letters() -> float:
    """Letters a CPU-second between two teammates without a model, through Python."""
    from hookwright import _native

    office = _native.Office({}, None)
    for name in ("ada", "bob"):
        office.join({"name": name, "parent": "lead"})
    cpu = spent()
    for number in range(LETTERS):
        sender, receiver = ("ada", "bob") if number % 2 else ("bob", "ada")
        office.send(sender, f"letter {number}", [receiver])
        if len(office.take(receiver)) < 1:
            raise AssertionError("a letter was lost")
    return LETTERS / (spent() - cpu)


def letters_of_peer() -> float:
    """The same for the runtime of autogen-core."""
    from . import team_peer

    cpu = spent()
    asyncio.run(team_peer.exchange())
    return team_peer.COUNT / (spent() - cpu)


def hundred() -> float:
    """Seconds for a hundred teammates of twenty rounds each, with a model that takes 50 ms."""

    async def model(request: hw.Request) -> Any:
        await asyncio.sleep(LATENCY)
        number = sum(message.role == "assistant" for message in request.messages) + 1
        return "done" if number == ROUNDS else hw.ToolCall("count", {"n": number})

    @hw.tool(inline=True)
    def count(n: int) -> int:
        """Counts."""
        return n + 1

    with hw.Team(hw.FunctionModel(model), tools=[count]) as team:
        for number in range(MATES):
            team.spawn(f"m{number}")
        team.join_sync(timeout=60)
        began = time.perf_counter()
        team.send("go")
        team.join_sync(timeout=600)
        seconds = time.perf_counter() - began
        assert {mate.rounds for mate in team.teammates} == {ROUNDS}
    return seconds


def sections(**_: Any) -> list[Section]:
    """The tables of this module."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    idle = Section(
        f"{MANY:,} teammates that wait, watched for {WATCHED:.0f} s",
        ["team", "there after", "memory each", "CPU", "model calls", "woken after, median / p99"],
    )
    idle.rows += [idle_team(worked=False), idle_team(worked=True), idle_peer()]
    idle.rows.append(["bar", "1 s", "8 KiB", "0.0 %", "0", "1 ms in the core"])
    idle.notes.append(
        "Through Python: from `team.send` on one thread to the call of a model's function on the team's thread. The "
        "core alone is in `cargo bench --no-default-features --bench core -- team/`."
    )
    ours = statistics.median(letters() for _ in range(5))
    theirs = statistics.median(letters_of_peer() for _ in range(3))
    post = Section("Letters between two, no model", ["who", "letters a CPU-second"])
    post.rows += [
        ["hookwright, through Python: sent, taken, stored", f"{ours:,.0f} ({multiple(ours / theirs)})"],
        ["autogen-core, SingleThreadedAgentRuntime: sent and handled", f"{theirs:,.0f}"],
        ["bar", "30,000"],
    ]
    seconds = statistics.median(hundred() for _ in range(3))
    work = Section(
        f"{MATES} teammates x {ROUNDS} rounds with a model of {duration(LATENCY)}", ["what", "measured", "bar"]
    )
    whole = ROUNDS * LATENCY
    work.rows.append(["wall time", f"{duration(seconds)} ({multiple(seconds / whole)})", f"{duration(1.05 * whole)}"])
    return [idle, post, work]
