"""A plan is looked for and written down in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from calls import chain_of
from runs import Run

import hookwright as hw


def test_only_the_plan_file_is_written(run: Run, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "code.py").write_text("old")
    (tmp_path / "docs" / "link").symlink_to("../code.py")
    hooks = chain_of(hw.PlanGate(plan_file="docs/plan.md"))

    def write(path: str) -> hw.ToolCall:
        return hw.ToolCall("write_file", {"path": path, "content": "new"})

    paths = ["docs/plan.md", "docs/../docs/plan.md", "code.py", "docs/../code.py", "docs/link", str(tmp_path / "x")]
    agent = hw.Agent(
        hw.Scripted([*map(write, paths), hw.ToolCall("shell", {"command": "pytest -q"}), "There is a plan."]),
        tools=hw.workspace_tools(tmp_path),
        hooks=hooks,
        cwd=tmp_path,
    )
    result = run(agent, "plan it")
    assert [call.cause for call in result.tool_calls] == [None, None, *["denied"] * 5]
    assert (tmp_path / "docs/plan.md").read_text() == "new"
    assert (tmp_path / "code.py").read_text() == "old"
    assert "only the plan file may be written" in result.tool_calls[2].result
    assert "Write the plan file: `docs/plan.md`" in result.tool_calls[2].result


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("write_file", {"path": "PLAN.md", "content": ""}, None),
        ("Edit", {"file_path": "PLAN.md", "old_string": "a", "new_string": "b"}, None),
        ("apply_patch", {"input": "*** Begin Patch\n*** Add File: PLAN.md\n+x\n*** End Patch"}, None),
        ("apply_patch", {"input": "*** Begin Patch\n*** Add File: x.md\n+x\n*** End Patch"}, "not_the_plan_file"),
        ("write_file", {"path": "PLAN.md", "elsewhere": "x.py"}, "unclear_path"),
        ("write_file", {}, "unclear_path"),
        ("Task", {"prompt": "x"}, "dispatch"),
        ("read_file", {"path": "x"}, None),
    ],
)
def test_what_a_planner_may_do(tmp_path: Path, tool: str, arguments: dict[str, Any], code: str | None) -> None:
    decision = hw.PlanGate(plan_file="PLAN.md").decide(tool, arguments, cwd=tmp_path)
    assert (decision.denial.code if decision.denial else None) == code


def test_a_plan_file_that_is_a_link_is_another_file(tmp_path: Path) -> None:
    (tmp_path / "code.py").touch()
    (tmp_path / "PLAN.md").symlink_to("code.py")
    gate = hw.PlanGate(plan_file="PLAN.md")
    for path in ("PLAN.md", "code.py"):
        assert not gate.decide("write_file", {"path": path, "content": ""}, cwd=tmp_path).allowed


def test_without_a_plan_file_nothing_is_written(tmp_path: Path) -> None:
    assert hw.PlanGate().decide("write_file", {"path": "PLAN.md"}, cwd=tmp_path).action == "deny"
    with pytest.raises(ValueError, match="names one file"):
        hw.PlanGate(plan_file="plans/")


def test_plan_mode_holds_while_the_session_is_in_it() -> None:
    gate = hw.PlanGate(when="plan")
    assert gate.decide("Write", {"path": "a"}, mode="plan").action == "deny"
    assert gate.decide("Write", {"path": "a"}, mode="review").action == "allow"
