"""A person decides later, perhaps in another process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hookwright as hw

Resume = Callable[..., hw.RunResult]


def resume_sync(agent: hw.Agent, **options: Any) -> hw.RunResult:
    return agent.resume_sync(**options)


def resume(agent: hw.Agent, **options: Any) -> hw.RunResult:
    return asyncio.run(agent.resume(**options))


def resume_stream(agent: hw.Agent, **options: Any) -> hw.RunResult:
    async def main() -> hw.RunResult:
        async with agent.resume_stream(**options) as stream:
            async for _ in stream:
                pass
        assert stream.result is not None
        return stream.result

    return asyncio.run(main())


every_way = pytest.mark.parametrize("go_on", [resume_sync, resume, resume_stream])


class Office:
    """Tools that note what was done, and hooks that ask about deployments."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.hooks = hw.HookChain()

        @self.hooks.on("pre_tool_execution", role="gate", name="careful", tool_name="deploy")
        def careful(event: Any) -> Any:
            return hw.ask("it deploys")

    def agent(self, replies: list[Any], **options: Any) -> hw.Agent:
        @hw.tool
        def deploy(place: str) -> str:
            """Deploys to a place."""
            self.done.append(f"deploy {place}")
            return f"deployed to {place}"

        @hw.tool
        def look(place: str) -> str:
            """Looks at a place."""
            self.done.append(f"look {place}")
            return f"{place} is fine"

        options.setdefault("approver", hw.Deferred())
        return hw.Agent(hw.Scripted(replies), tools=[deploy, look], hooks=self.hooks, **options)


def calls() -> list[hw.ToolCall]:
    return [
        hw.ToolCall("deploy", {"place": "north"}, id="c1"),
        hw.ToolCall("look", {"place": "south"}, id="c2"),
        hw.ToolCall("deploy", {"place": "west"}, id="c3"),
    ]


def waiting(agent: hw.Agent) -> list[str]:
    return [request.call_id for request in agent.awaiting]


@every_way
def test_the_run_ends_and_goes_on_with_the_decisions(go_on: Resume, tmp_path: Path) -> None:
    office = Office()
    agent = office.agent([calls()], session=tmp_path / "s")
    result = agent.run_sync("deploy")
    assert (result.status, result.reason) == ("awaiting_approval", "2 calls wait for a decision")
    # Nobody has to decide about the sibling, so it has run.
    assert office.done == ["look south"]
    request = agent.awaiting[0]
    assert (request.tool_name, request.arguments, request.reason) == ("deploy", {"place": "north"}, "it deploys")
    assert waiting(agent) == ["c1", "c3"]
    agent.session.close()

    again = office.agent([hw.Step("all done", expect="the strait is closed")], session=tmp_path / "s")
    assert waiting(again) == ["c1", "c3"]
    result = go_on(again, decisions={"c1": True, "c3": (False, "the strait is closed")})
    assert (result.status, result.text) == ("success", "all done")
    assert office.done == ["look south", "deploy north"]
    assert waiting(again) == []
    results = {m.tool_call_id: m.text for m in again.history if m.role == "tool"}
    assert results["c1"] == "deployed to north" and "the strait is closed" in results["c3"]
    assert len([m for m in again.history if m.role == "tool"]) == 3


@every_way
def test_calls_without_a_decision_go_on_waiting_and_the_model_is_not_asked(go_on: Resume) -> None:
    office = Office()
    agent = office.agent([calls(), "done"])
    agent.run_sync("deploy")
    assert go_on(agent).status == "awaiting_approval"
    assert go_on(agent, decisions={"c3": "allow"}).status == "awaiting_approval"
    assert waiting(agent) == ["c1"]
    assert office.done == ["look south", "deploy west"]
    assert go_on(agent, decisions={"c1": False}).text == "done"
    assert office.done == ["look south", "deploy west"]


def test_a_decided_call_is_judged_again_by_the_hooks_that_are_there_now() -> None:
    office = Office()
    agent = office.agent([calls(), hw.Step("I see", expect="frozen")])
    agent.run_sync("deploy")
    office.hooks.on("pre_tool_execution", role="gate", name="freeze", tool_name="deploy")(lambda e: hw.skip("frozen"))
    assert agent.resume_sync(decisions={"c1": True, "c3": True}).text == "I see"
    assert office.done == ["look south"]


def test_a_call_that_a_hook_changes_after_the_decision_is_not_run() -> None:
    office = Office()
    agent = office.agent([calls(), hw.Step("I see", expect="changed the call after")])
    agent.run_sync("deploy")
    office.hooks.on("pre_tool_execution", name="elsewhere", tool_name="deploy")(
        lambda event: {"tool_arguments": {"place": "moon"}}
    )
    assert agent.resume_sync(decisions={"c1": True, "c3": True}).text == "I see"
    assert office.done == ["look south"]


def test_hooks_hear_of_the_question_and_of_the_decision() -> None:
    office = Office()
    heard: list[tuple[Any, ...]] = []
    office.hooks.on("permission_request", role="observer", name="asked")(lambda e: heard.append((e.event, e.tool_name)))
    office.hooks.on("permission_decided", role="observer", name="told")(
        lambda e: heard.append((e.event, e.decision, e.by))
    )
    agent = office.agent([[calls()[0]], "done"])
    agent.run_sync("deploy")
    assert heard == [("permission_request", "deploy")]
    agent.resume_sync(decisions={"c1": True})
    assert heard[1:] == [("permission_decided", "allow", "approver")]


def test_saying_something_else_gives_the_waiting_calls_up() -> None:
    office = Office()
    agent = office.agent([calls(), "never mind then"])
    agent.run_sync("deploy")
    assert agent.run_sync("forget it").text == "never mind then"
    assert office.done == ["look south"]
    assert waiting(agent) == []
    results = [m for m in agent.history if m.role == "tool"]
    assert [m.tool_call_id for m in results] == ["c2", "c1", "c3"]
    assert all("nobody decided" in m.text for m in results[1:])


def test_a_decision_about_no_such_call_is_an_error() -> None:
    office = Office()
    agent = office.agent([[calls()[0]], "done"])
    with pytest.raises(hw.SessionError, match="no call 'c9' waits for a decision; none does"):
        agent.resume_sync(decisions={"c9": True})
    agent.run_sync("deploy")
    with pytest.raises(hw.SessionError, match="waiting: c1"):
        agent.resume_sync(decisions={"c9": True})
    assert office.done == []


def test_a_process_that_died_leaves_what_waits_waiting(tmp_path: Path) -> None:
    office = Office()
    agent = office.agent([calls()], session=tmp_path / "s")
    agent.run_sync("deploy")
    agent.session.close()
    # As if the process had died before the turn ended: the last line is gone.
    transcript = tmp_path / "s" / "transcript.jsonl"
    lines = transcript.read_text().splitlines(keepends=True)
    assert "turn_end" in lines[-1]
    transcript.write_text("".join(lines[:-1]))
    again = office.agent(["done"], session=tmp_path / "s")
    assert waiting(again) == ["c1", "c3"]
    assert again.resume_sync(decisions={"c1": True, "c3": False}).status == "success"
    assert office.done == ["look south", "deploy north"]


def test_cancelled_while_others_wait_leaves_no_open_call() -> None:
    office = Office()

    @office.hooks.on("post_tool_execution", name="halt")
    def halt(event: Any) -> Any:
        return hw.stop("enough")

    agent = office.agent([calls(), "done"])
    assert agent.run_sync("deploy").status == "stopped"
    answered = [m.tool_call_id for m in agent.history if m.role == "tool"]
    assert sorted(filter(None, answered)) == ["c1", "c2", "c3"]
    assert waiting(agent) == []
