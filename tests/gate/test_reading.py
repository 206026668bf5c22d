"""What gates let through because it only reads is run in the environment for reading, by the tool of the workspace."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from calls import chain_of
from runs import Run

import hookwright as hw


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose configuration has git run a marker when it shows what changed."""
    marker = tmp_path / "marker"
    marker.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    marker.chmod(0o755)
    work = tmp_path / "work"
    for words in (["init", "-q", str(work)], ["-C", str(work), "commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True)
    (work / "a.txt").write_text("one\n")
    subprocess.run(["git", "-C", str(work), "add", "."], check=True)
    (work / "a.txt").write_text("two\n")
    return work


def shown(run: Run, work: Path, command: str, hooks: hw.HookChain | None) -> str:
    call = hw.ToolCall("shell", {"command": command})
    agent = hw.Agent(hw.Scripted([call, "I see."]), tools=hw.workspace_tools(work), hooks=hooks)
    result = run(agent, "look")
    return str(result.tool_calls[0].result)


def test_git_does_not_run_what_the_repository_names(run: Run, repository: Path) -> None:
    subprocess.run(["git", "-C", repository, "config", "core.fsmonitor", repository.parent / "marker"], check=True)
    told = shown(run, repository, "git status --short", chain_of(hw.ReviewGate()))
    assert "AM a.txt" in told and not (repository.parent / "ran").exists()
    # Without a gate the tool is a plain shell: else this would show nothing.
    shown(run, repository, "git status --short", None)
    assert (repository.parent / "ran").exists()


def test_git_is_kept_from_a_repository_that_cannot_be_read_safely(run: Run, repository: Path) -> None:
    subprocess.run(["git", "-C", repository, "config", "diff.external", repository.parent / "marker"], check=True)
    told = shown(run, repository, "git diff; cat a.txt", chain_of(hw.ReviewGate()))
    assert "two" in told and "git was kept from this repository" in told and "diff.external" in told
    assert not (repository.parent / "ran").exists()


def test_permission_rules_let_reads_through_on_the_same_condition(run: Run, repository: Path) -> None:
    subprocess.run(["git", "-C", repository, "config", "core.fsmonitor", repository.parent / "marker"], check=True)
    told = shown(run, repository, "git status --short", chain_of(hw.PermissionRules()))
    assert "AM a.txt" in told and not (repository.parent / "ran").exists()


def test_a_tool_of_ones_own_is_told(run: Run) -> None:
    told: list[bool] = []

    @hw.tool(effect="execute")
    def shell(command: str, context: hw.Context) -> str:
        """Runs a command."""
        told.append(context.reading)
        return command

    for hooks in (chain_of(hw.ReviewGate()), hw.HookChain(shadow=True), None):
        if hooks is not None and hooks.shadow:
            hooks.add(hw.ReviewGate())
        run(
            hw.Agent(hw.Scripted([hw.ToolCall("shell", {"command": "ls"}), "I see."]), tools=[shell], hooks=hooks), "go"
        )
    assert told == [True, False, False]
