"""A process with a team of five is killed at random points, again and again, and the team goes on each time."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from team_kill import NAMES, TASKS

PROGRAM = Path(__file__).with_name("team_kill.py")
KILLS = int(os.environ.get("TEAM_KILLS", "50"))


def run(folder: Path, at: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROGRAM), str(folder), str(at)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def entries(folder: Path) -> list[dict[str, object]]:
    lines = (folder / "transcript.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["entry"] for line in lines]


def check(folder: Path) -> None:
    """What holds after the last start: everything delivered once, nothing run twice, all tasks done."""
    journal = entries(folder / "team")
    letters = {entry["envelope"]["id"]: entry for entry in journal if entry["kind"] == "team_mail"}  # type: ignore[index]
    assert len([entry for entry in journal if entry["kind"] == "team_mail"]) == len(letters)
    for path in (folder / "teammates").iterdir():
        transcript = entries(path)
        name = json.loads((path / "session.json").read_text(encoding="utf-8"))["agent"]
        delivered: Counter[str] = Counter()
        calls: Counter[str] = Counter()
        results: Counter[str] = Counter()
        for entry in transcript:
            if entry["kind"] != "message":
                continue
            message = entry["message"]
            delivered.update(message.get("mail", ()))  # type: ignore[attr-defined]
            calls.update([call["id"] for call in message.get("tool_calls", ())])  # type: ignore[attr-defined]
            if message["role"] == "tool":  # type: ignore[index]
                results[message["tool_call_id"]] += 1  # type: ignore[index]
        assert calls == results, f"{name}: a call without its result"
        addressed = {id for id, entry in letters.items() if name in entry["addressed"]}  # type: ignore[operator]
        assert addressed <= set(delivered), f"{name} never got {addressed - set(delivered)}"
        assert all(count == 1 for count in delivered.values()), f"{name} got a letter twice"
    tasks: dict[str, dict[str, object]] = {}
    for entry in journal:
        if entry["kind"] == "team_task":
            tasks[entry["task"]["id"]] = entry["task"]  # type: ignore[index]
    assert [task["state"] for task in tasks.values()] == ["done"] * TASKS
    marks = (folder / "marks").read_text(encoding="utf-8").splitlines()
    assert Counter(mark.split()[0] for mark in marks) == Counter(tasks.keys()), "a call was run twice, or never"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_again_and_again_a_team_comes_to_its_end(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole", 0)
    assert whole.returncode == 0, whole.stderr
    check(tmp_path / "whole")
    steps = int(whole.stdout.split()[-1])
    assert steps > 100
    chance = random.Random(int(os.environ.get("TEAM_SEED", "1")))
    kills, number = 0, 0
    while kills < KILLS:
        folder = tmp_path / f"team{number}"
        number += 1
        # Each team is killed some times, at some point of what is left.
        for _ in range(chance.randint(1, 4)):
            done = run(folder, chance.randint(1, steps * 2 // 3))
            if done.returncode == 0:
                break
            assert done.returncode == -9, f"kill {kills}: {done.stderr}"
            kills += 1
        done = run(folder, 0)
        assert done.returncode == 0, f"after kill {kills}: {done.stderr}"
        check(folder)
    assert kills >= KILLS and len(NAMES) == 5
