"""The processes of shell hooks: they end, all of them, in time, and nothing of them is left."""

from __future__ import annotations

import asyncio
import gc
import os
from pathlib import Path

import pytest
from support import Dispatch, Stopwatch, children, descriptors, processes_of_group

import hookwright as hw

CALL = {"tool_name": "shell", "tool_arguments": {"command": "ls"}}
MEGABYTE = 1024 * 1024


def _group(path: Path) -> int:
    return int(path.read_text())


def test_a_background_child_does_not_delay_the_answer_and_is_killed(
    dispatch: Dispatch, chain: hw.HookChain, tmp_path: Path
) -> None:
    command = f'echo $$ > {tmp_path}/group; sleep 30 & echo \'{{"action": "skip"}}\''
    chain.add(hw.ShellHook("pre_tool_execution", command, name="parent", role="gate"))
    dispatch(chain, "pre_tool_execution", **CALL)  # The first of a process starts the runtime.
    outcome = dispatch(chain, "pre_tool_execution", **CALL)
    assert outcome.action == "skip"
    assert outcome.runs[0].ms < 200
    assert processes_of_group(_group(tmp_path / "group")) == []


@pytest.mark.parametrize(
    "command",
    [
        "sleep 30",
        "sleep 30 & sleep 30",
        "trap '' TERM; sleep 30",
        "trap '' TERM; while :; do sleep 1; done",
        "cat >&2; sleep 30",
    ],
)
def test_a_timeout_ends_the_whole_group_within_its_grace(
    dispatch: Dispatch, chain: hw.HookChain, command: str, tmp_path: Path
) -> None:
    chain.add(
        hw.ShellHook(
            "pre_tool_execution", f"echo $$ > {tmp_path}/group; {command}", name="slow", role="gate", timeout=1
        )
    )
    watch = Stopwatch()
    outcome = dispatch(chain, "pre_tool_execution", **CALL)
    assert 1.0 <= watch.seconds < 1.7
    assert (outcome.action, outcome.runs[0].status) == ("skip", "timeout")
    assert processes_of_group(_group(tmp_path / "group")) == []


def test_a_payload_that_nobody_reads_is_no_problem(dispatch: Dispatch, chain: hw.HookChain) -> None:
    for number, command in enumerate(["exit 0", "exec <&-; echo '{}'", "head -c 10 >/dev/null", "sleep 0.1"]):
        chain.add(hw.ShellHook("post_tool_execution", command, name=f"unread_{number}"))
    outcome = dispatch(chain, "post_tool_execution", tool_name="cat", tool_result="x" * 8 * MEGABYTE)
    assert [run.status for run in outcome.runs] == ["ok"] * 4


def test_writing_much_before_reading_much_does_not_deadlock(dispatch: Dispatch, chain: hw.HookChain) -> None:
    command = "head -c 1048576 /dev/zero | tr '\\0' 'n'; echo; head -c 1048576 /dev/zero >&2; cat >/dev/null; echo '{}'"
    chain.add(hw.ShellHook("post_tool_execution", command, name="writer"))
    outcome = dispatch(chain, "post_tool_execution", tool_name="cat", tool_result="x" * 2 * MEGABYTE)
    assert outcome.runs[0].status == "ok", outcome
    assert "passed over 1 line(s)" in outcome.runs[0].notes[0]


@pytest.mark.parametrize("way", ["run", "arun"])
def test_two_hundred_timeouts_leave_no_process_and_no_descriptor(chain: hw.HookChain, way: str, tmp_path: Path) -> None:
    command = f"echo $$ >> {tmp_path}/groups; sleep 60 & exec sleep 60"
    chain.add(hw.ShellHook("turn_start", command, name="slow", timeout=0.02))

    async def main() -> None:
        await chain.arun("turn_start", user_input="warm up")
        before = descriptors(), children()
        for _ in range(200):
            outcome = chain.run("turn_start", user_input="x") if way == "run" else await chain.arun("turn_start")
            assert outcome.runs[0].status == "timeout"
        gc.collect()
        assert (descriptors(), children()) == before

    asyncio.run(main())
    groups = [int(line) for line in (tmp_path / "groups").read_text().split()]
    assert len(groups) > 100  # Some are ended before they could say anything.
    assert [processes_of_group(group) for group in groups if processes_of_group(group)] == []


def test_a_cancelled_run_ends_its_command(chain: hw.HookChain, tmp_path: Path) -> None:
    fifo = tmp_path / "started"

    async def main() -> None:
        before = descriptors()
        os.mkfifo(fifo)
        chain.add(hw.ShellHook("turn_start", f"echo $$ > {fifo}; exec sleep 60", name="slow"))
        task = asyncio.create_task(chain.arun("turn_start", user_input="x"))
        group = int(await asyncio.to_thread(fifo.read_text))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        watch = Stopwatch()
        while processes_of_group(group):  # Killed by the runtime, which gives no sign when it is done.
            assert watch.seconds < 5
            await asyncio.sleep(0)
        assert descriptors() <= before + 1  # The loop's own thread pool.

    chain.run("turn_end", status="x")
    asyncio.run(main())
