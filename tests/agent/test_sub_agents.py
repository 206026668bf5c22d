"""Agents that other agents call as tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from runs import Run

import hookwright as hw


@hw.tool(effect="write", inline=True)
def write() -> str:
    """Writes."""
    return "written"


def usage(text: Any, tokens: int) -> hw.Reply:
    calls = [text] if isinstance(text, hw.ToolCall) else None
    return hw.Reply(None if calls else text, calls, usage=hw.Usage(input_tokens=tokens, output_tokens=0))


def test_a_sub_agent_answers_in_a_conversation_of_its_own(run: Run) -> None:
    child = hw.Agent(hw.Scripted(["4 files", "5 files"]), name="reader", description="Reads files.")
    script = [hw.ToolCall("reader", {"task": "count"}), hw.ToolCall("reader", {"task": "again"}), "done"]
    parent = hw.Agent(hw.Scripted(script), tools=[child.as_tool()])
    result = run(parent, "how many?")
    assert [call.result for call in result.tool_calls] == ["4 files", "5 files"]
    assert child.history == []
    assert parent.tools[0].description == "Reads files."
    assert parent.tools[0].effect == "dispatch"


def test_hooks_and_gates_of_the_parent_hold_for_it_and_tell_who_it_is(run: Run) -> None:
    hooks, own = hw.HookChain(), hw.HookChain()
    seen = []

    @hooks.on("pre_tool_execution", role="gate", name="no writing")
    def gate(event: hw.PreToolExecution) -> Any:
        seen.append((event.agent.name, event.agent.kind, event.agent.parent, event.tool_name))
        return hw.skip("not allowed") if event.tool_name == "write" else None

    @own.on("pre_tool_execution", role="observer", name="no writing")
    def look(event: hw.PreToolExecution) -> None:
        seen.append(("own", event.tool_name))

    child = hw.Agent(hw.Scripted([hw.ToolCall("write", {}), "tried"]), name="writer", tools=[write], hooks=own)
    script = [hw.ToolCall("writer", {"task": "write it"}), "done"]
    result = run(hw.Agent(hw.Scripted(script), tools=[child.as_tool()], hooks=hooks), "go")
    assert result.tool_calls[0].result == "tried"
    assert seen == [
        ("main", "main", None, "writer"),
        ("writer", "sub", "main", "write"),
        ("own", "write"),
    ]


def test_the_mode_of_the_parent_holds_for_it(run: Run) -> None:
    own = hw.HookChain()
    own.add(hw.PlanGate(when="plan"))
    steps = [hw.ToolCall("write", {}), "tried", hw.ToolCall("write", {}), "tried again"]
    child = hw.Agent(hw.Scripted(steps), name="writer", tools=[write], hooks=own)
    heard = []
    own.on("post_tool_execution", name="success")(lambda event: heard.append("written"))
    own.on("post_tool_execution_failure", name="failure")(lambda event: heard.append("refused"))
    script = [hw.ToolCall("writer", {"task": "x"}), "done", hw.ToolCall("writer", {"task": "x"}), "done"]
    parent = hw.Agent(hw.Scripted(script), tools=[child.as_tool()])
    run(parent, "go")
    parent.session.mode = "plan"
    run(parent, "go")
    assert heard == ["written", "refused"]


def test_what_it_uses_counts_for_its_parent(run: Run) -> None:
    prices = {"input": 2.0}
    child = hw.Agent(hw.Scripted([usage("hello", 300)]), name="child", prices=prices)
    script = [usage(hw.ToolCall("child", {"task": "x"}), 100), usage("done", 50)]
    result = run(hw.Agent(hw.Scripted(script), tools=[child.as_tool()], prices=prices), "go")
    assert result.usage.input_tokens == 450
    assert result.cost == pytest.approx(450 * 2 / 1e6)
    child = hw.Agent(hw.Scripted([usage("hello", 300)]), name="child")
    script = [usage(hw.ToolCall("child", {"task": "x"}), 100), usage("never asked", 50)]
    result = run(hw.Agent(hw.Scripted(script), tools=[child.as_tool()], max_tokens=350), "go")
    assert (result.status, result.limit) == ("limit", "tokens")


def test_a_sub_agent_that_fails_is_a_failed_call(run: Run) -> None:
    broken = hw.Agent(hw.Scripted([hw.ModelError("the server is down")]), name="broken")
    slow = hw.Agent(hw.Scripted([hw.ToolCall("write", {}), "never"]), name="slow", tools=[write], max_rounds=1)
    script = [[hw.ToolCall("broken", {"task": "x"}), hw.ToolCall("slow", {"task": "y"})], "done"]
    result = run(hw.Agent(hw.Scripted(script), tools=[broken.as_tool(), slow.as_tool()]), "go")
    assert "the agent broken failed: the server is down" in result.tool_calls[0].result
    assert "the agent slow did not finish (limit)" in result.tool_calls[1].result
    assert all(call.is_error for call in result.tool_calls)


def test_its_conversation_is_kept_beside_that_of_its_parent(run: Run, tmp_path: Path) -> None:
    child = hw.Agent(hw.Scripted(["hello", "hello again"]), name="child")
    call = hw.ToolCall("child", {"task": "x"}, id="c1")
    parent = hw.Agent(hw.Scripted([call, "done", call, "done"]), tools=[child.as_tool()], session=tmp_path / "s")
    # Some servers use the ids of calls again in another turn: that is another conversation.
    for turn, said in [("t1", "hello"), ("t2", "hello again")]:
        run(parent, "go")
        kept = hw.Session(tmp_path / "s" / "agents" / f"{turn}-c1")
        assert [message.text for message in kept.messages] == ["x", said]


def test_outside_of_an_agent_it_says_what_to_do() -> None:
    tool = hw.Agent(hw.Scripted(["hello"]), name="child").as_tool()
    with pytest.raises(hw.ToolError, match="called by an agent only"):
        import asyncio

        asyncio.run(tool("x", hw.Context()))
