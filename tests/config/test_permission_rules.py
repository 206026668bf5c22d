"""Permission rules in configuration files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hookwright as hw

PROJECT = """\
version: 1
permissions:
  allow: ["Shell(x:*)", "Write(path:src/**)"]
  ask: Dispatch
  deny:
    - Shell(x secret:*)
"""


def write(folder: Path, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hooks.yaml").write_text(text)


def action(hooks: hw.HookChain, command: str) -> Any:
    return hooks.run("pre_tool_execution", tool_name="shell", tool_arguments={"command": command}).action


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "config" / "hookwright"


def test_the_rules_of_all_levels_are_one_gate(tmp_path: Path, user: Path) -> None:
    write(tmp_path / "project" / ".hookwright", PROJECT)
    write(user, "version: 1\npermissions: {deny: ['Shell(x never:*)']}\n")
    hooks = hw.HookChain()
    report = hooks.load(tmp_path / "project", trust=True)
    assert report.hooks == ("permissions",)
    assert [(hook.name, hook.kind, hook.role) for hook in hooks.hooks] == [("permissions", "builtin", "gate")]
    assert [action(hooks, command) for command in ("x a", "y", "x secret", "x never")] == [None, "ask", "skip", "skip"]
    # Loading again replaces it.
    write(tmp_path / "project" / ".hookwright", "version: 1\n")
    hooks.load(tmp_path / "project", trust=True)
    assert [action(hooks, command) for command in ("x a", "x secret", "x never")] == ["ask", "ask", "skip"]
    write(user, "version: 1\n")
    assert hooks.load(tmp_path / "project", trust=True).hooks == ()
    assert len(hooks) == 0


def test_a_malformed_rule_is_a_mistake_at_its_line(tmp_path: Path, user: Path) -> None:
    text = PROJECT + "    - Write(src)\n    - 3\n  alow: [x]\n"
    write(tmp_path / ".hookwright", text)
    hooks = hw.HookChain()
    with pytest.raises(hw.ConfigError) as caught:
        hooks.load(tmp_path, trust=True)
    assert len(hooks) == 0
    problems = [(problem.line, problem.message) for problem in caught.value.problems]
    assert (7, "permission rule 'Write(src)': Write takes a path; write Write(path:src)") in problems
    assert {line for line, _ in problems} == {7, 8, 9}
    report = hooks.load(tmp_path, trust=True, strict=False)
    assert len(report.problems) == 3
    assert [action(hooks, command) for command in ("x a", "x secret")] == [None, "skip"]


def test_rules_of_a_project_that_is_not_trusted_allow_nothing(tmp_path: Path, user: Path) -> None:
    write(tmp_path / ".hookwright", PROJECT)
    hooks = hw.HookChain()
    with pytest.raises(hw.TrustError):
        hooks.load(tmp_path)
    assert len(hooks) == 0


def test_the_name_of_the_gate_is_taken_once(tmp_path: Path, user: Path) -> None:
    write(tmp_path / ".hookwright", PROJECT)
    hooks = hw.HookChain()
    hooks.add(hw.ReviewGate(), name="permissions")
    with pytest.raises(hw.ConfigError, match="the permissions of the files are a gate of this name"):
        hooks.load(tmp_path, trust=True)
    assert len(hooks) == 1
