"""What the tests of goals share: the ways to pursue one, a clock, agents with scripts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import hookwright as hw

PASS = '{"verdict": "pass"}'
FAIL = json.dumps({"verdict": "fail", "feedback": "a test is red", "items": ["test_a", {"line": 3}]})

Pursue = Callable[[hw.Goal], hw.GoalResult]


def _run(goal: hw.Goal) -> hw.GoalResult:
    return asyncio.run(goal.run())


def _run_sync_in_a_loop(goal: hw.Goal) -> hw.GoalResult:
    async def main() -> hw.GoalResult:
        return goal.run_sync()

    return asyncio.run(main())


#: The ways to pursue a goal. All mean the same.
WAYS: dict[str, Pursue] = {"run": _run, "run_sync": hw.Goal.run_sync, "run_sync_in_a_loop": _run_sync_in_a_loop}


class Clock:
    """Time that passes when somebody says so."""

    def __init__(self) -> None:
        self.now = 0.0
        self._waiting: list[tuple[float, Callable[[], None]]] = []

    def after(self, seconds: float, fire: Callable[[], None]) -> Callable[[], None]:
        entry = (self.now + seconds, fire)
        self._waiting.append(entry)
        return lambda: self._waiting.remove(entry) if entry in self._waiting else None

    def advance(self, seconds: float) -> None:
        self.now += seconds
        due = [entry for entry in self._waiting if entry[0] <= self.now]
        self._waiting = [entry for entry in self._waiting if entry[0] > self.now]
        for _, fire in due:
            fire()


def scripted(*replies: Any, name: str = "executor", **options: Any) -> hw.Agent:
    return hw.Agent(hw.Scripted(list(replies)), name=name, **options)


def make(executor: hw.Agent, reviewer: hw.Agent, **options: Any) -> hw.Goal:
    return hw.Goal("all tests pass", executor=executor, reviewer=reviewer, **{"workspace": False, **options})


def reviews(*replies: str) -> hw.Agent:
    return scripted(*replies, name="reviewer")


def said_to(agent: hw.Agent) -> list[str]:
    return [message.text for message in agent.history if message.role == "user"]
