"""Goals that survive their process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from goals import FAIL, PASS, Pursue, make, reviews, said_to, scripted

import hookwright as hw
from hookwright import _goal_drive


class Death(BaseException):
    """The process dies."""


def dying(monkeypatch: pytest.MonkeyPatch, at: int) -> list[int]:
    """Has the ``at``-th thing that a goal wants done kill its process. The list holds the count."""
    count = [0]

    def die() -> None:
        count[0] += 1
        if count[0] == at:
            raise Death

    perform, perform_blocking = _goal_drive._perform, _goal_drive._perform_blocking

    async def performed(goal: hw.Goal, effect: dict[str, Any]) -> dict[str, Any]:
        die()
        return await perform(goal, effect)

    def performed_blocking(goal: hw.Goal, effect: dict[str, Any]) -> dict[str, Any]:
        die()
        return perform_blocking(goal, effect)

    monkeypatch.setattr(_goal_drive, "_perform", performed)
    monkeypatch.setattr(_goal_drive, "_perform_blocking", performed_blocking)
    return count


class Course:
    """A goal that is reached in the third round, in a workspace that changes, with a word of the user in between."""

    def __init__(self, folder: Path, state: Path) -> None:
        self.folder, self.state = folder, state
        self.judged = 0
        self.goal: hw.Goal | None = None

    def work(self, request: hw.Request) -> str:
        text = request.messages[-1].text
        (self.folder / "done").write_text(f"{self.judged} {text}")
        return f"did: {text[:20]}"

    def review(self, request: hw.Request) -> str:
        self.judged += 1
        if self.judged == 1:
            assert self.goal is not None
            self.goal.send("hello")
        return FAIL if self.judged < 3 else PASS

    def agents(self) -> dict[str, Any]:
        """Agents as a process makes them that has just begun."""
        return {
            "executor": hw.Agent(hw.FunctionModel(self.work, inline=True), name="executor"),
            "reviewer": hw.Agent(hw.FunctionModel(self.review, inline=True), name="reviewer"),
            "workspace": self.folder,
        }

    def begin(self) -> hw.Goal:
        self.goal = hw.Goal("x", **self.agents(), state_file=self.state, max_rounds=4)
        return self.goal

    def resume(self) -> hw.Goal:
        self.goal = hw.Goal.resume(self.state, **self.agents())
        return self.goal


def test_a_restart_at_any_point_comes_to_the_same_end(
    pursue: Pursue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    died = 0
    for at in range(1, 30):
        folder = tmp_path / f"workspace{at}"
        folder.mkdir()
        course = Course(folder, tmp_path / f"{at}.json")
        with monkeypatch.context() as patch:
            count = dying(patch, at)
            try:
                result = pursue(course.begin())
            except Death:
                died += 1
                with pytest.raises(hw.GoalError, match=r"Goal\.resume"):
                    course.begin()
                result = pursue(course.resume())
        assert (result.status, len(result.rounds)) == ("passed", 3), at
        assert [entry.verdict for entry in result.rounds] == ["fail", "fail", "pass"]
        assert [message.text for message in result.messages] == ["hello"]
        assert course.resume().result == result
        if count[0] < at:
            break
    assert died == 10, "three rounds of three effects, and one delivery"


def test_a_cancelled_task_leaves_a_goal_that_can_be_resumed(tmp_path: Path) -> None:
    state = tmp_path / "goal.json"

    async def main() -> None:
        reached = asyncio.Event()

        async def work(request: hw.Request) -> str:
            reached.set()
            await asyncio.Event().wait()
            return "never"

        goal = make(hw.Agent(hw.FunctionModel(work), name="executor"), reviews(), state_file=state)
        task = asyncio.ensure_future(goal.run())
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    executor = scripted("again")
    result = hw.Goal.resume(state, executor=executor, reviewer=reviews(PASS), workspace=False).run_sync()
    assert result.status == "passed"
    assert "was interrupted before" in said_to(executor)[0]


def test_a_runner_whose_goal_was_taken_over_ends(pursue: Pursue, tmp_path: Path) -> None:
    state = tmp_path / "goal.json"

    def take_over(request: hw.Request) -> str:
        hw.Goal.resume(state, executor=scripted(), reviewer=reviews())
        return "done"

    goal = make(hw.Agent(hw.FunctionModel(take_over), name="executor"), reviews(PASS), state_file=state)
    with pytest.raises(hw.GoalError, match="another runner has taken over"):
        pursue(goal)


def test_a_damaged_state_file_is_a_clear_error(tmp_path: Path) -> None:
    state = tmp_path / "goal.json"
    make(scripted("one"), reviews(PASS), state_file=state).run_sync()
    whole = state.read_text()
    for damage, says in [
        (whole[:50], "was damaged"),
        (whole.replace("all tests pass", "no tests pass"), "checksum does not fit"),
        (whole.replace('"version":1', '"version":9'), "has version 9"),
        ("[]", "was damaged"),
    ]:
        state.write_text(damage)
        with pytest.raises(hw.GoalError, match=says) as caught:
            hw.Goal.resume(state, executor=scripted(), reviewer=reviews())
        assert "goal.json" in str(caught.value)
    with pytest.raises(hw.GoalError, match="there is no goal"):
        hw.Goal.resume(tmp_path / "nowhere.json", executor=scripted(), reviewer=reviews())
