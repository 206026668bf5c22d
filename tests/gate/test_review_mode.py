"""A review looks and runs tests: whatever else a model tries is refused with a hint, through every way in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from calls import Tools, chain_of
from runs import Run
from support import Dispatch

import hookwright as hw

REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("Task", {"prompt": "x"}, "dispatch"),
    ("spawn_agent", {"prompt": "x"}, "dispatch"),
    ("sub_agent", {"action": "spawn"}, "dispatch"),
    ("SendMessage", {"to": "x"}, "dispatch"),
    ("schedule", {"at": "x"}, "dispatch"),
    ("AskUserQuestion", {"question": "x"}, "ask_user"),
    ("Write", {"path": "a"}, "write"),
    ("WRITE", {"path": "a"}, "write"),
    ("write", {"path": "a"}, "write"),
    ("apply_patch", {"patch": "x"}, "write"),
    ("NotebookEdit", {"notebook_path": "a"}, "write"),
    ("eval", {"code": "1"}, "execute"),
    ("terminal_key", {"key": "x"}, "unknown_tool"),
    ("mcp__fs__write_file", {"path": "a"}, "unknown_tool"),
    ("shell", {"command": "true", "script": "rm -r x"}, "program_writes"),
    ("Bash", {"cmd": "true", "then": "rm -r x"}, "program_writes"),
    ("exec_command", {"args": ["rm", "-r", "x"]}, "program_writes"),
    ("shell", {}, "no_command"),
    ("shell", {"description": "ls"}, "no_command"),
    ("shell", {"command": "true", "run_in_background": True}, "detached"),
]
ALLOWED: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {"path": "a"}),
    ("Read", {"file_path": "a"}),
    ("sub_agent", {"action": "get_result"}),
    ("sub_agent", {"action": "list"}),
    ("agent", {"action": "templates"}),
]
TESTS = ["timeout 60 pytest -q", "cargo test 2>&1 | tail -50", "npx vitest run", "npm run test:unit"]


@pytest.mark.parametrize(("tool", "arguments", "code"), REFUSED)
def test_what_does_more_than_look_is_refused_with_a_hint(
    dispatch: Dispatch, tool: str, arguments: dict[str, Any], code: str
) -> None:
    gate = hw.ReviewGate()
    decision = gate.decide(tool, arguments)
    assert (decision.action, decision.allowed) == ("deny", False)
    assert decision.denial is not None
    assert decision.denial.code in (code, "unknown_program")
    assert decision.denial.hint
    outcome = dispatch(chain_of(gate), "pre_tool_execution", tool_name=tool, tool_arguments=arguments)
    assert (outcome.action, outcome.halted_by, outcome.reason) == ("skip", "review_gate", decision.reason)
    assert decision.denial.hint in outcome.reason


@pytest.mark.parametrize(("tool", "arguments"), ALLOWED)
def test_what_looks_passes(dispatch: Dispatch, tool: str, arguments: dict[str, Any]) -> None:
    outcome = dispatch(chain_of(hw.ReviewGate()), "pre_tool_execution", tool_name=tool, tool_arguments=arguments)
    assert outcome.action is None
    assert outcome.runs[0].notes == ["allowed"]


@pytest.mark.parametrize("command", TESTS)
def test_tests_run_unless_told_otherwise(command: str) -> None:
    assert hw.ReviewGate().decide("shell", {"command": command}).allowed
    refused = hw.ReviewGate(tests=False).decide("shell", {"command": command})
    assert refused.denial is not None
    assert refused.denial.code == "runs_tests"


def test_the_agent_tells_the_gate_what_its_tools_declare(run: Run) -> None:
    tools = Tools(look=None, mcp__fs__read="read", lookup="write", Bash="read", remote="network")
    calls = [hw.ToolCall(name, {"path": "a"}) for name in ("look", "mcp__fs__read", "lookup", "remote")]
    agent = tools.agent(*calls, hw.ToolCall("Bash", {"command": "rm -r x"}), hooks=chain_of(hw.ReviewGate()))
    result = run(agent, "go")
    assert tools.entered == [("mcp__fs__read", {"path": "a"})]
    assert [call.cause for call in result.tool_calls] == ["denied", None, "denied", "denied", "denied"]
    assert "Whoever made this one can declare its effect" in result.tool_calls[0].result


def test_an_effect_by_arguments_is_that_of_the_arguments_that_hooks_left(run: Run) -> None:
    seen: list[Any] = []

    def effect(arguments: dict[str, Any]) -> str:
        if arguments.get("path") == "boom":
            raise RuntimeError("no idea")
        return "read" if arguments.get("path") == "a" else "write"

    tools = Tools(store=effect)
    hooks = chain_of(hw.ReviewGate())
    rewritten: dict[str, str] = {}

    @hooks.on("pre_tool_execution", order=-1)
    def rewrites(event: hw.PreToolExecution) -> dict[str, Any] | None:
        seen.append(event.tool_effect)
        path = event.tool_arguments["path"]
        return {"tool_arguments": {"path": rewritten[path]}} if path in rewritten else None

    rewritten["c"] = "a"
    rewritten["a2"] = "b"
    calls = [hw.ToolCall("store", {"path": path}) for path in ("a", "b", "c", "a2")]
    result = run(tools.agent(*calls, hooks=hooks), "go")
    assert [call.cause for call in result.tool_calls] == [None, "denied", None, "denied"]
    assert tools.entered == [("store", {"path": "a"}), ("store", {"path": "a"})]
    assert seen == ["read", "write", "write", "write"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_effect_function_that_fails_is_taken_for_the_worst() -> None:
    def effect(arguments: dict[str, Any]) -> str:
        raise RuntimeError("no idea")

    tools = Tools(read_file=effect)
    result = tools.agent(hw.ToolCall("read_file", {"path": "a"}), hooks=chain_of(hw.ReviewGate())).run_sync("go")
    assert (tools.entered, result.tool_calls[0].cause) == ([], "denied")


def test_a_gate_tied_to_a_mode_follows_the_session_also_within_a_turn(run: Run) -> None:
    tools = Tools(write_file=None)
    session = hw.Session()
    hooks = chain_of(hw.ReviewGate(when="review"))

    @hooks.on("post_tool_execution", role="observer")
    def switch(_: Any) -> None:
        session.mode = "review"

    write = hw.ToolCall("write_file", {"path": "a"})
    result = run(tools.agent(write, write, hooks=hooks, session=session), "go")
    assert [call.cause for call in result.tool_calls] == [None, "denied"]
    session.mode = None
    result = run(tools.agent(write, hooks=hooks, session=session), "go")
    assert result.tool_calls[0].cause is None


def test_the_mode_is_kept_with_the_session_and_its_forks(tmp_path: Path) -> None:
    with hw.Session(tmp_path / "session") as session:
        assert session.mode is None
        session.mode = "review"
        assert session.fork().mode == "review"
    with hw.Session(tmp_path / "session") as session:
        assert session.mode == "review"
        session.mode = None
    with hw.Session(tmp_path / "session") as session:
        assert session.mode is None
    with pytest.raises(hw.SessionError):
        session.mode = "review"
    assert session.mode is None


def test_a_recorded_event_is_judged_in_its_mode_and_by_its_declared_effect(tmp_path: Path) -> None:
    tools = Tools(mcp__fs__read="read", write_file=None)
    hooks, session = hw.HookChain(), hw.Session()
    session.mode = "review"
    with hooks.record(tmp_path / "record.jsonl"):
        calls = [hw.ToolCall(name, {"path": "a"}) for name in ("mcp__fs__read", "write_file")]
        tools.agent(*calls, hooks=hooks, session=session).run_sync("go")
    assert len(tools.entered) == 2
    report = chain_of(hw.ReviewGate(when="review")).replay(tmp_path / "record.jsonl")
    assert [difference.after.action for difference in report.differences] == ["skip"]
    assert not chain_of(hw.ReviewGate(when="plan")).replay(tmp_path / "record.jsonl").differences


def test_refusals_speak_the_language_that_was_asked_for() -> None:
    decision = hw.ReviewGate(language="zh").decide("Write", {"path": "a"})
    assert decision.reason is not None
    assert decision.reason.startswith("已拒绝：Write `a`。\n评审模式")
    with pytest.raises(ValueError, match='there are "en" and "zh"'):
        hw.ReviewGate(language="de")  # type: ignore[arg-type]


def test_a_gate_on_a_chain_is_one_hook_and_can_be_taken_out() -> None:
    hooks = hw.HookChain()
    gate = hooks.add(hw.ReviewGate())
    hooks.add(hw.ReviewGate())
    assert [(hook.name, hook.kind, hook.role, hook.on_error) for hook in hooks.hooks] == [
        ("review_gate", "builtin", "gate", "deny")
    ]
    with pytest.raises(hw.HookError, match="is made otherwise"):
        hooks.add(hw.ReviewGate(tests=False))
    hooks.add(hw.ReviewGate(tests=False), name="strict")
    with pytest.raises(hw.HookError, match="leave them out"):
        hooks.add(hw.ReviewGate(), "turn_start")
    with pytest.raises(hw.HookError, match="takes no option 'role'"):
        hooks.add(hw.ReviewGate(), name="x", role="observer")
    assert len(hooks.copy()) == 2
    hooks.remove("strict")
    with hooks.override(disable=["review_gate"]):
        assert hooks.run("pre_tool_execution", tool_name="Write", tool_arguments={}).action is None
    hooks.remove("review_gate")
    assert len(hooks) == 0
    assert gate.decide("Write", {}).action == "deny"
