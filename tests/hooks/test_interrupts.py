"""Ctrl-C and cancellation pass through hooks of every kind, soon, and leave nothing running."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from support import Dispatch, Stopwatch, in_child

import hookwright as hw

SCRIPT = """
import asyncio, os, signal, sys, threading, time
import hookwright as hw

kind, how, path = sys.argv[1:]
chain = hw.HookChain()
started = threading.Event()

def spin(event):
    started.set()
    while True: pass

def sleep(event):
    started.set()
    time.sleep(60)

async def wait(event):
    started.set()
    await asyncio.sleep(60)

if kind == "shell":
    read, write = os.pipe()
    os.set_inheritable(write, True)
    def announce():
        os.read(read, 1)
        started.set()
    threading.Thread(target=announce).start()
    chain.add(hw.ShellHook("turn_start", f"echo $$ >{path}; echo . >&{write}; exec sleep 60"))
else:
    hook = {"loop": spin, "sleep": sleep, "thread": sleep, "async": wait}[kind]
    chain.add(hook, "turn_start", isolate="thread" if kind == "thread" else None)

sent = None
def interrupt():
    global sent
    started.wait()
    time.sleep(0.05)  # Into the middle of the wait; any moment has to do.
    sent = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)
    if how != "run" and kind == "sleep":
        # asyncio answers the first one by cancelling the task, which C code that does not return cannot notice.
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)
interrupter = threading.Thread(target=interrupt)
interrupter.start()

try:
    if how == "run":
        chain.run("turn_start", user_input="x")
    elif how == "run_in_a_loop":
        async def main():
            chain.run("turn_start", user_input="x")
        asyncio.run(main())
    else:
        async def main():
            await chain.arun("turn_start", user_input="x")
        asyncio.run(main())
except KeyboardInterrupt:
    print(f"{(time.monotonic() - sent) * 1000:.0f}")
else:
    print("no interrupt arrived")
while interrupter.is_alive():
    try:
        interrupter.join()
    except KeyboardInterrupt:
        pass  # The second one, where the first was enough.
other = hw.HookChain()
other.on("turn_start")(lambda event: None)
assert other.run("turn_start", user_input="y").runs[0].status == "ok"
"""


@pytest.mark.parametrize("how", ["run", "run_in_a_loop", "arun"])
@pytest.mark.parametrize("kind", ["loop", "sleep", "thread", "async", "shell"])
def test_an_interrupt_returns_at_once_and_leaves_nothing_running(kind: str, how: str, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    done = in_child(SCRIPT, kind, how, str(path))
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) < 200
    if kind == "shell":
        with pytest.raises(ProcessLookupError):
            os.kill(int(path.read_text()), 0)


@pytest.mark.parametrize("kind", ["sync", "thread", "async"])
def test_an_interrupt_that_a_hook_raises_passes_through(dispatch: Dispatch, chain: hw.HookChain, kind: str) -> None:
    def hook(event: hw.HookEvent) -> None:
        raise KeyboardInterrupt("from within")

    async def coroutine(event: hw.HookEvent) -> None:
        await asyncio.sleep(0)
        raise KeyboardInterrupt("from within")

    isolate = {"isolate": "thread"} if kind == "thread" else {}
    chain.add(coroutine if kind == "async" else hook, "turn_start", name="interrupted", **isolate)
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt, match="from within"):
            dispatch(chain, "turn_start", user_input="x")
    chain.remove("interrupted")
    chain.add(lambda event: asyncio.sleep(0), "turn_start")
    assert dispatch(chain, "turn_start", user_input="x").runs[0].status == "ok"


async def _cancelled(hook: Any, *, isolate: str | None = None) -> list[str]:
    """Cancels a run while the hook waits. Returns what the hook did after that."""
    chain = hw.HookChain()
    started = asyncio.Event()
    trail: list[str] = []
    if isinstance(hook, str):
        chain.add(hw.ShellHook("turn_start", hook))
        asyncio.get_running_loop().call_later(0.05, started.set)
    else:
        chain.add(lambda event: hook(started, trail), "turn_start", name="cancelled", isolate=isolate)
    chain.add(lambda event: trail.append("next hook ran"), "turn_start", name="next")
    task = asyncio.create_task(chain.arun("turn_start", user_input="x"))
    await started.wait()
    assert task.cancel("from outside")
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()
    return trail


async def _wait(started: asyncio.Event, trail: list[str]) -> None:
    started.set()
    try:
        await asyncio.sleep(60)
    finally:
        trail.append("cleaned up")


async def _wait_for_a_task(started: asyncio.Event, trail: list[str]) -> None:
    await asyncio.create_task(_wait(started, trail))


async def _clean_up_slowly(started: asyncio.Event, trail: list[str]) -> None:
    started.set()
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.01)
        trail.append("cleaned up")


async def _swallow(started: asyncio.Event, trail: list[str]) -> None:
    started.set()
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        trail.append("cleaned up")


async def _make_something_else_of_it(started: asyncio.Event, trail: list[str]) -> None:
    started.set()
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        trail.append("cleaned up")
        raise ValueError("cancelled") from None


def test_cancelling_the_task_cancels_the_hook_and_passes_through() -> None:
    for hook in (_wait, _wait_for_a_task, _clean_up_slowly):
        assert asyncio.run(_cancelled(hook)) == ["cleaned up"]
    watch = Stopwatch()
    assert asyncio.run(_cancelled("sleep 60")) == []
    assert watch.seconds < 5


@pytest.mark.skipif(sys.version_info < (3, 11), reason="a task does not say that it is being cancelled")
def test_a_hook_cannot_swallow_the_cancellation_of_its_caller() -> None:
    for hook in (_swallow, _make_something_else_of_it):
        assert asyncio.run(_cancelled(hook)) == ["cleaned up"]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="a task does not count its cancellations")
def test_a_chain_runs_in_a_task_that_is_being_cancelled() -> None:
    chain = hw.HookChain()

    @chain.on("turn_end")
    async def hook(event: hw.HookEvent) -> None:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.sleep(60)
        except TimeoutError:
            pass

    seen: list[str] = []

    async def main() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            outcome = await chain.arun("turn_end", status="cancelled")
            seen.extend(run.status for run in outcome.runs)
            raise

    async def cancel() -> None:
        task = asyncio.create_task(main())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert seen == ["ok"]


def test_a_cancellation_of_its_own_is_the_failure_of_a_hook(dispatch: Dispatch, chain: hw.HookChain) -> None:
    @chain.on("turn_start")
    async def hook(event: hw.HookEvent) -> None:
        task = asyncio.create_task(asyncio.sleep(60))
        task.cancel()
        await task

    @chain.on("turn_start")
    def synchronous(event: hw.HookEvent) -> None:
        raise asyncio.CancelledError("mine")

    runs = dispatch(chain, "turn_start", user_input="x").runs
    assert [(run.status, run.error) for run in runs] == [
        ("failed", "CancelledError"),
        ("failed", "CancelledError: mine"),
    ]


IN_ANOTHER_TASK = """
import asyncio, os, signal, sys, threading, time
import hookwright as hw

chain = hw.HookChain()

@chain.on("turn_start")
def spin(event):
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    while True:
        pass

cleaned = []

async def child():
    await asyncio.sleep(0)
    try:
        await chain.arun("turn_start", user_input="x")
    finally:
        await asyncio.sleep(0.001)  # The cancellation has been delivered; it does not come a second time.
        cleaned.append(True)

async def main():
    if sys.argv[1] == "task":
        await asyncio.create_task(child())
    elif sys.argv[1] == "gather":
        await asyncio.gather(child())
    else:
        async with asyncio.TaskGroup() as group:
            group.create_task(child())

try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted", cleaned)
"""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="there are no task groups")
@pytest.mark.parametrize("how", ["task", "gather", "group"])
def test_an_interrupt_reaches_a_loop_in_another_task_than_the_one_that_asyncio_cancels(how: str) -> None:
    done = in_child(IN_ANOTHER_TASK, how)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "interrupted [True]\n")


HEEDED = """
import asyncio, os, signal, threading, time
import hookwright as hw

chain = hw.HookChain()
seen = []

@chain.on("turn_end")
def long(event):
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        pass
    seen.append(event.status)

async def main():
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        await asyncio.sleep(60)
    finally:
        await chain.arun("turn_end", status="cancelled")

try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted", seen)
"""


def test_an_interrupt_that_was_heeded_does_not_end_the_long_hooks_that_follow() -> None:
    done = in_child(HEEDED)
    assert (done.returncode, done.stdout) == (0, "interrupted ['cancelled']\n")
