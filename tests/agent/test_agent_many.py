"""Many runs at once: no thread each, little memory, none in another's way."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import textwrap
import threading
from typing import Any

import pytest
from runs import Probe, Run, call, check_history, told

import hookwright as hw


def test_a_hundred_runs_at_once_in_one_loop() -> None:
    gate = asyncio.Event()
    arrived = 0

    @hw.tool
    async def meet(number: int) -> int:
        """Comes back when all have come."""
        nonlocal arrived
        arrived += 1
        if arrived == 100:
            gate.set()
        await gate.wait()
        return number

    hooks = hw.HookChain()
    counted: list[str] = []
    hooks.add(lambda event: counted.append(event.session_id), "post_tool_execution", name="count")

    async def main() -> list[Any]:
        agents = [
            hw.Agent(hw.Scripted([call("meet", number=number), f"done {number}"]), tools=[meet], hooks=hooks)
            for number in range(100)
        ]
        results = await asyncio.gather(*(agent.run("go") for agent in agents))
        return list(zip(agents, results, strict=True))

    for number, (agent, result) in enumerate(asyncio.run(main())):
        assert result.text == f"done {number}"
        assert told(agent) == [str(number)]
    assert len(set(counted)) == 100


def test_a_hundred_runs_of_one_agent_beside_one_another() -> None:
    def model(request: hw.Request) -> str:
        return request.messages[-1].text.upper()

    agent = hw.Agent(hw.FunctionModel(model, inline=True))

    async def main() -> list[str]:
        sessions = [hw.Session() for _ in range(100)]
        results = await asyncio.gather(*(agent.run(f"s{n}", session=s) for n, s in enumerate(sessions)))
        for session in sessions:
            check_history(session.messages)
            assert len(session.messages) == 2
        return [result.text for result in results]

    assert asyncio.run(main()) == [f"S{number}" for number in range(100)]
    assert agent.history == []


MEASURED = """
    import asyncio, gc, sys, threading, tracemalloc
    import hookwright as hw

    if sys.argv[1] == "python":
        tracemalloc.start()

    def used():
        if sys.argv[1] == "python":
            return tracemalloc.get_traced_memory()[0]
        return int(open("/proc/self/statm").read().split()[1]) * 4096

    @hw.tool
    async def meet() -> str:
        global waiting
        waiting += 1
        await gate.wait()
        return "ok"

    hooks = hw.HookChain()
    hooks.add(lambda event: None, "pre_tool_execution", name="watch")

    async def batch(count):
        global gate, waiting
        gate, waiting = asyncio.Event(), 0
        agents = [hw.Agent(hw.Scripted([hw.ToolCall("meet"), "done"]), tools=[meet], hooks=hooks) for _ in range(count)]
        gc.collect()
        before = used()
        tasks = [asyncio.ensure_future(agent.run("go")) for agent in agents]
        while waiting < count:
            await asyncio.sleep(0)
        more = used() - before
        threads = threading.active_count()
        gate.set()
        assert {result.status for result in await asyncio.gather(*tasks)} == {"success"}
        return more / count, threads

    async def main():
        await batch(100)  # What the first runs of a process need once.
        threads = threading.active_count()
        size, threads_then = await batch(1000)
        assert threads_then == threads, (threads, threads_then)
        print(round(size))

    asyncio.run(main())
"""


@pytest.mark.parametrize("what", ["resident", "python"])
def test_a_thousand_runs_cost_neither_threads_nor_much_memory(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = [sys.executable, "-c", textwrap.dedent(MEASURED), what]
    child = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert child.returncode == 0, child.stderr
    with capsys.disabled():
        print(f"\n1,000 runs at once: {child.stdout.strip()} bytes each ({what})", end="")
    assert int(child.stdout) < 20_000


def test_two_runs_in_a_row_in_each_way_and_mixed(run: Run, probe: Probe) -> None:
    agent = hw.Agent(hw.Scripted([call(text="1"), "a", call(text="2"), "b", "c"]), tools=[probe.tool])
    assert [run(agent, "one").text, run(agent, "two").text, agent.run_sync("three").text] == ["a", "b", "c"]
    assert probe.entered == ["1", "2"]
    check_history(agent.history)


def test_synchronous_runs_on_many_threads() -> None:
    barrier = threading.Barrier(8)
    results: list[str] = []

    @hw.tool
    def meet() -> str:
        """Waits until all are here."""
        barrier.wait(20)
        return "ok"

    async def hook(event: hw.HookEvent) -> None:
        await asyncio.sleep(0)

    hooks = hw.HookChain()
    hooks.add(hook, "pre_tool_execution", name="async")

    def work() -> None:
        agent = hw.Agent(hw.Scripted([call("meet"), "done"]), tools=[meet], hooks=hooks)
        results.append(agent.run_sync("go").text)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert results == ["done"] * 8


def test_what_a_run_held_is_given_free() -> None:
    import weakref

    class Big:
        pass

    def once() -> weakref.ref[Big]:
        big = Big()
        hooks = hw.HookChain()
        agent: list[hw.Agent] = []
        hooks.add(lambda event: [big, agent].clear(), "pre_tool_execution", name="holds")
        tool = hw.tool(lambda: str(big), name="work")
        agent.append(hw.Agent(hw.Scripted([call("work"), "done"]), tools=[tool], hooks=hooks))
        asyncio.run(agent[0].run("go"))
        return weakref.ref(big)

    held = once()
    gc.collect()
    assert held() is None
