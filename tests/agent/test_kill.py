"""A process that is killed at any point of a run: what it had done stays done, and the run goes on from there."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import kill_run
import pytest

import hookwright as hw

CALLS = [call.id for calls in kill_run.ROUNDS for call in calls]
RAN = ["a1", "a2", "b1", "c1", "d1"]


def undisturbed(folder: Path) -> tuple[hw.Agent, list[str]]:
    """The agent after a run that nobody kills, and every point on its way."""
    points: list[str] = []
    agent = kill_run.make(folder, points.append)
    asyncio.run(kill_run.watched(agent, points.append))
    agent.close()
    return agent, points


#: Every point of a run, by name. `test_the_points_are_all_there_are` keeps it complete.
POINTS = [
    "session_start 1",
    "pre_send_message 1",
    "post_send_message 1",
    "turn_start 1",
    "system_prompt_built 1",
    *[f"pre_llm_request {n}" for n in range(1, 6)],
    *[f"in the model, round {n}" for n in range(1, 6)],
    *[f"post_llm_response {n}" for n in range(1, 6)],
    "text_delta 1",
    *[f"pre_tool_batch {n}" for n in range(1, 5)],
    *[f"pre_tool_execution {n}" for n in range(1, 6)],
    *[f"in {call} {when}" for call in RAN for when in ("before", "after")],
    "permission_request 1",
    "in the approver",
    "permission_decided 1",
    *[f"post_tool_execution {n}" for n in range(1, 5)],
    *[f"post_tool_execution_failure {n}" for n in range(1, 3)],
    *[f"post_tool_batch {n}" for n in range(1, 5)],
    "stop 1",
    "turn_end 1",
    "session_end 1",
]
#: Of these there are more, all of the same kind.
TOLD = [
    "told turn_started 1",
    "told text 1",
    *[f"told message {n}" for n in (1, 2, 3, 5, 8, 12)],
    "told tool_started 1",
]


def shape(agent: hw.Agent) -> list[tuple[str, str, list[str]]]:
    return [(m.role, m.text, [call.id for call in m.tool_calls]) for m in agent.history]


def kill_at(folder: Path, point: str) -> None:
    source = Path(kill_run.__file__)
    path = os.pathsep.join([str(Path(hw.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    child = subprocess.run(
        [sys.executable, str(source), str(folder), point], env={**os.environ, "PYTHONPATH": path}, capture_output=True
    )
    assert child.returncode == -signal.SIGKILL, f"{point} was not reached: {child.stderr.decode()}"


def go_on(folder: Path) -> hw.Agent:
    """What a program does that finds a session: resumes it, or says again what was never said."""
    agent = kill_run.make(folder)
    if not agent.history:
        agent.run_sync(kill_run.TASK)
    elif agent.history[-1].role != "assistant" or agent.history[-1].tool_calls:
        assert agent.resume_sync().status == "success"
    agent.close()
    return agent


def check(folder: Path, agent: hw.Agent, expected: list[tuple[str, str, list[str]]]) -> list[str]:
    """Nothing is done twice, every call has one result, and the rest is as it would have been. Returns what was lost."""
    done = [line.split()[0] for line in (folder / "effects").read_text().splitlines()]
    assert len(done) == len(set(done)), f"done twice: {done}"
    results = [m.tool_call_id for m in agent.history if m.role == "tool"]
    assert sorted(filter(None, results)) == sorted(CALLS)
    interrupted = [m.tool_call_id for m in agent.history if m.role == "tool" and "interrupted" in m.text]
    found = shape(agent)
    assert len(found) == len(expected)
    for (role, text, calls), wanted, message in zip(found, expected, agent.history, strict=True):
        if message.tool_call_id not in interrupted:
            assert (role, text, calls) == wanted
    # Whatever is not interrupted was done.
    assert set(RAN) - set(done) <= set(interrupted)
    # Read again, it is the same.
    again = hw.Session(folder / "session")
    assert [m.text for m in again.messages] == [m.text for m in agent.history]
    assert again.repair is None and again.interrupted_calls == []
    again.close()
    return [call for call in interrupted if call is not None]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str, list[str]]]:
    agent, _ = undisturbed(tmp_path_factory.mktemp("undisturbed"))
    return shape(agent)


def test_the_points_are_all_there_are(tmp_path: Path) -> None:
    _, points = undisturbed(tmp_path)
    assert len(POINTS) >= 30
    own = [point for point in points if not point.startswith("told ")]
    assert sorted(own) == sorted(POINTS)
    assert set(TOLD) <= set(points)


@pytest.mark.parametrize("point", [*POINTS, *TOLD])
def test_killed_at(point: str, tmp_path: Path, expected: list[tuple[str, str, list[str]]]) -> None:
    kill_at(tmp_path, point)
    agent = go_on(tmp_path)
    lost = check(tmp_path, agent, expected)
    # Only what was running can be lost: the calls of one reply.
    assert any(set(lost) <= {call.id for call in calls} for calls in kill_run.ROUNDS)
    if point.startswith(("session_", "pre_send", "post_send", "turn_", "system_", "pre_llm", "in the model", "stop")):
        assert lost == []


@pytest.mark.parametrize("point", ["in a2 before", "pre_llm_request 2", "post_tool_batch 1"])
def test_killed_twice(point: str, tmp_path: Path, expected: list[tuple[str, str, list[str]]]) -> None:
    kill_at(tmp_path, point)
    script = (
        f"import sys; sys.path.insert(0, {str(Path(kill_run.__file__).parent)!r}); import kill_run, pathlib\n"
        f"kill_run.make(pathlib.Path({str(tmp_path)!r}), kill_run.killer('in d1 after')).resume_sync()"
    )
    path = os.pathsep.join([str(Path(hw.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    child = subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": path}, capture_output=True)
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()
    lost = check(tmp_path, go_on(tmp_path), expected)
    assert "d1" in lost


def test_a_torn_last_line_at_any_byte(tmp_path: Path, expected: list[tuple[str, str, list[str]]]) -> None:
    undisturbed(tmp_path / "whole")
    whole = (tmp_path / "whole" / "session" / "transcript.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    for number in range(2, len(lines), 3):
        before = sum(map(len, lines[:number]))
        for cut in (1, len(lines[number]) // 2, len(lines[number]) - 1):
            folder = tmp_path / f"{number}-{cut}"
            (folder / "session").mkdir(parents=True)
            for name in ("session.json",):
                (folder / "session" / name).write_bytes((tmp_path / "whole" / "session" / name).read_bytes())
            (folder / "session" / "transcript.jsonl").write_bytes(whole[: before + cut])
            # What had been done by then, as far as the transcript can tell: every call that was started.
            started = [call for call in RAN if f'"call_id":"{call}"'.encode() in whole[: before + cut]]
            (folder / "effects").write_text("".join(f"{call} x\n" for call in started))
            check(folder, go_on(folder), expected)
