"""The events of a turn: which, in which order, with which fields, and what hooks may do at each."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from runs import Probe, Run, call, check_history, roles, told
from support import EVENTS

import hookwright as hw


def listening(events: Any = tuple(EVENTS)) -> tuple[hw.HookChain, list[hw.HookEvent]]:
    """A chain that only listens, and what it has heard."""
    hooks, heard = hw.HookChain(), []
    for event in events:
        hooks.add(heard.append, event, name=f"listen {event}", role="observer")
    return hooks, heard


def test_all_events_of_a_turn_with_two_calls_in_order(run: Run, probe: Probe) -> None:
    hooks, heard = listening([event for event in EVENTS if event not in ("text_delta", "session_start", "session_end")])
    agent = hw.Agent(
        hw.Scripted([hw.Reply("first", [call(text="1", id="a"), call("unknown", id="b")]), "second"]),
        tools=[probe.tool], hooks=hooks, system="be brief",
    )  # fmt: skip
    run(agent, "go")
    assert [event.event for event in heard] == [
        "pre_send_message", "post_send_message", "turn_start", "system_prompt_built",
        "pre_llm_request", "post_llm_response", "pre_tool_batch",
        "pre_tool_execution", "post_tool_execution", "post_tool_execution_failure", "post_tool_batch",
        "pre_llm_request", "post_llm_response", "stop", "turn_end",
    ]  # fmt: skip
    (
        before, queued, start, prompt, request, reply, batch, call_before, call_behind, failed, batch_behind,
        request_2, reply_2, stop, end,
    ) = heard  # fmt: skip
    assert (before.user_input, before.messages) == ("go", [])
    assert [message.text for message in queued.messages] == ["go"]
    assert (queued.user_input, start.user_input) == ("go", "go")
    assert (prompt.system_prompt, prompt.user_input) == ("be brief", "go")
    assert (request.system_prompt, request.model, request.tools) == ("be brief", "scripted", ["probe"])
    assert [message.role for message in request.messages] == ["user"]
    assert reply.assistant_output == "first"
    expected = [
        {"id": "a", "name": "probe", "arguments": {"text": "1"}},
        {"id": "b", "name": "unknown", "arguments": {}},
    ]
    assert reply.tool_calls == expected
    assert batch.tool_calls == expected
    assert (call_before.tool_name, call_before.tool_arguments, call_before.tool_call_id) == (
        "probe",
        {"text": "1"},
        "a",
    )
    assert call_before.tool_arguments_json == '{"text":"1"}'
    assert (call_behind.tool_result, call_behind.tool_arguments) == ("done", {"text": "1"})
    assert call_behind.duration_ms >= 0
    assert (failed.tool_name, failed.cause) == ("unknown", "unknown_tool")
    assert [(made["id"], made["result"][:4], made["is_error"]) for made in batch_behind.tool_calls] == [
        ("a", "done", False), ("b", "Erro", True),
    ]  # fmt: skip
    assert [message.role for message in request_2.messages] == ["user", "assistant", "tool", "tool"]
    assert (reply_2.assistant_output, reply_2.tool_calls) == ("second", [])
    assert (stop.assistant_output, stop.system_prompt, stop.model) == ("second", "be brief", "scripted")
    assert stop.messages[-1].text == "second"
    assert (end.status, end.assistant_output) == ("success", "second")
    assert end.usage["input_tokens"] == 0


def test_common_fields_are_right_in_every_event(run: Run, probe: Probe, tmp_path: Path) -> None:
    hooks, heard = listening()
    sends_back = iter([hw.retry("again"), None])
    hooks.add(lambda event: next(sends_back), "stop", name="sends back")
    session = hw.Session(tmp_path / "s", id="the-session")
    agent = hw.Agent(
        hw.Scripted([call(), "a", "b"]), tools=[probe.tool], hooks=hooks, name="worker", session=session, cwd=tmp_path
    )
    result = run(agent, "go")
    assert len(heard) > 10
    assert len({event.event_id for event in heard}) == len(heard)
    for event in heard:
        assert event.session_id == "the-session"
        assert (event.agent.name, event.agent.kind, event.agent.parent) == ("worker", "main", None)
        assert Path(event.cwd) == tmp_path
        assert event.timestamp
        assert 0 < event.budget_ms <= 30_000
    turn_events = [event for event in heard if event.event not in ("session_start", "session_end")]
    assert {event.turn_id for event in turn_events} == {result.turn_id}
    assert result.turn_id
    first_stop = [event.event for event in turn_events].index("stop")
    assert {event.continuation for event in turn_events[: first_stop + 1]} == {0}
    assert {event.continuation for event in turn_events[first_stop + 1 :]} == {1}


def test_a_tool_is_told_where_its_call_comes_from(run: Run, tmp_path: Path) -> None:
    seen: list[hw.Context] = []

    @hw.tool
    def where(context: hw.Context, depth: int = 1) -> None:
        """Notes it."""
        seen.append(context)

    agent = hw.Agent(hw.Scripted([call("where", id="x1"), "ok"]), tools=[where], name="worker", cwd=tmp_path)
    result = run(agent, "go")
    assert seen == [hw.Context("worker", agent.session.id, result.turn_id, "x1", tmp_path)]
    assert result.turn_id
    assert "context" not in where.schema["properties"]


def test_a_request_is_rewritten_for_this_request_only(run: Run, probe: Probe) -> None:
    asked: list[tuple[str | None, list[str], list[str]]] = []
    hooks = hw.HookChain()

    @hooks.on("pre_llm_request", name="rewrite")
    def rewrite(event: hw.HookEvent) -> dict[str, Any] | None:
        if asked:
            return None
        return {
            "messages": [{"role": "user", "content": "something else"}],
            "system_prompt": "be long",
            "inject_messages": [{"role": "user", "content": "injected"}],
            "additional_context": "the tide is high",
            "tools": ["probe"],
        }

    def model(request: hw.Request) -> Any:
        asked.append((request.system, [m.text for m in request.messages], [tool["name"] for tool in request.tools]))
        return call() if len(asked) == 1 else "ok"

    other = hw.tool(lambda: None, name="other")
    agent = hw.Agent(hw.FunctionModel(model), tools=[probe.tool, other], hooks=hooks, system="be brief")
    run(agent, "go")
    first, second = asked
    assert first[0] == "be long"
    assert first[1][:2] == ["something else", "injected"]
    assert "the tide is high" in first[1][2]
    assert first[2] == ["probe"]
    assert second == ("be brief", ["go", "", "done"], ["probe", "other"])
    assert roles(agent) == ["user", "assistant", "tool", "assistant"]


def test_additional_context_stands_where_it_belongs(run: Run, probe: Probe) -> None:
    hooks = hw.HookChain()
    for event in (
        "pre_send_message", "system_prompt_built", "pre_llm_request", "post_tool_execution",
        "post_tool_execution_failure", "post_tool_batch",
    ):  # fmt: skip
        hooks.add(lambda event: {"additional_context": f"ctx {event.event}"}, event, name=event)
    asked: list[hw.Request] = []

    def model(request: hw.Request) -> Any:
        asked.append(request)
        return [call(), call("unknown")] if len(asked) == 1 else "ok"

    agent = hw.Agent(model, tools=[probe.tool], hooks=hooks, system="be brief")
    run(agent, "go")
    user = agent.history[0].text
    assert user.startswith("go\n")
    assert "ctx pre_send_message" in user
    assert asked[0].system is not None
    assert asked[0].system.startswith("be brief")
    assert "ctx system_prompt_built" in asked[0].system
    assert asked[1].system == asked[0].system
    for request in asked:
        assert "ctx pre_llm_request" in request.messages[-1].text
    assert "ctx pre_llm_request" not in "".join(message.text for message in agent.history)
    fine, failed = told(agent)
    assert fine.startswith("done")
    assert "ctx post_tool_execution\n" in fine
    assert "ctx post_tool_execution_failure" in failed
    assert "ctx post_tool_batch" in agent.history[4].text
    check_history(agent.history)


def test_a_system_message_reaches_the_user_and_never_the_model(run: Run, probe: Probe) -> None:
    hooks = hw.HookChain()
    events = ("pre_send_message", "pre_llm_request", "pre_tool_execution", "post_tool_execution", "stop")
    for event in events:
        hooks.add(lambda event: {"system_message": f"note {event.event}"}, event, name=event)
    hooks.add(lambda event: hw.warn("odd"), "pre_tool_execution", name="warns", role="gate")
    asked: list[str] = []

    def model(request: hw.Request) -> Any:
        asked.extend([request.system or "", *(message.text for message in request.messages)])
        return call() if len(request.messages) == 1 else "ok"

    agent = hw.Agent(model, tools=[probe.tool], hooks=hooks)
    result = run(agent, "go")
    assert probe.entered == [""]
    notices = [(hook, text) for hook, text in result.notices]
    for event in events:
        assert (event, f"note {event}") in notices
    assert any(hook == "warns" and "odd" in text for hook, text in notices)
    assert "note" not in "".join(asked)
    assert "note" not in "".join(message.text for message in agent.history)


def test_a_stream_tells_everything_in_order(probe: Probe) -> None:
    hooks = hw.HookChain()
    hooks.add(lambda event: {"system_message": "careful"}, "pre_tool_execution", name="notes")
    agent = hw.Agent(
        hw.Scripted([hw.Reply("let me", [call(text="1", id="a")]), "done"]), tools=[probe.tool], hooks=hooks
    )

    async def main() -> list[hw.RunEvent]:
        return [event async for event in agent.stream("go")]

    events = asyncio.run(main())
    assert [event.type for event in events] == [
        "turn_started", "message", "text", "notice", "hooks", "message", "tool_started", "message", "tool_finished",
        "text", "message",
    ]  # fmt: skip
    assert events[0].turn_id == "t1"
    assert events[2].delta == "let me"
    assert (events[3].hook, events[3].text) == ("notes", "careful")
    assert events[5].message == agent.history[1]
    assert (events[6].id, events[6].name, events[6].arguments) == ("a", "probe", {"text": "1"})
    assert events[8].call.result == "done"
    assert [event.message for event in events if event.type == "message"] == agent.history


def test_feedback_on_a_reply_sends_it_back_and_runs_none_of_its_calls(run: Run, probe: Probe) -> None:
    hooks = hw.HookChain()
    feedback = iter([hw.retry("use fewer tools"), None])
    hooks.add(lambda event: next(feedback), "post_llm_response", name="critic")
    agent = hw.Agent(hw.Scripted([call(), "fine"]), tools=[probe.tool], hooks=hooks)
    result = run(agent, "go")
    assert (result.text, probe.entered) == ("fine", [])
    assert [made.cause for made in result.tool_calls] == ["not_run"]
    assert [message.text for message in agent.history if message.role == "user"] == ["go", "use fewer tools"]
    check_history(agent.history)


@pytest.mark.parametrize(("decision", "ran"), [("allow", True), ("deny", False)])
def test_a_hook_decides_about_a_permission_and_the_decision_is_told(
    run: Run, probe: Probe, decision: str, ran: bool
) -> None:
    hooks, heard = listening(["permission_request", "permission_decided"])
    hooks.add(lambda event: hw.ask("is it safe?"), "pre_tool_execution", name="asks")
    hooks.add(lambda event: {"decision": decision}, "permission_request", name="decides")
    asked: list[object] = []
    agent = hw.Agent(hw.Scripted([call(), "ok"]), tools=[probe.tool], hooks=hooks, approver=asked.append)
    run(agent, "go")
    assert bool(probe.entered) is ran
    assert asked == []
    request, decided = heard
    assert (request.tool_name, request.reason) == ("probe", "is it safe?")
    assert (decided.tool_name, decided.decision, decided.by) == ("probe", decision, "decides")


def test_arguments_rewritten_with_a_permission_are_judged_again(run: Run, probe: Probe) -> None:
    hooks = hw.HookChain()
    judged: list[str] = []

    @hooks.on("pre_tool_execution", role="gate", name="gate")
    def gate(event: hw.HookEvent) -> hw.HookResult | None:
        text = event.tool_arguments["text"]
        judged.append(text)
        return {"ask": hw.ask("may I?"), "ask again": hw.ask("and now?"), "bad": hw.skip("never")}.get(text)

    new = {"value": "fine"}
    hooks.add(
        lambda event: {"decision": "allow", "tool_arguments": {"text": new["value"]}},
        "permission_request",
        name="rewrites",
    )
    for value, entered, says in (
        ("fine", ["fine"], "done"),
        ("bad", [], "never"),
        ("ask again", [], "second question"),
    ):
        new["value"] = value
        judged.clear()
        probe.entered.clear()
        agent = hw.Agent(hw.Scripted([call(text="ask"), "ok"]), tools=[probe.tool], hooks=hooks)
        result = run(agent, "go")
        assert judged == ["ask", value]
        assert probe.entered == entered
        assert says in told(agent)[0]
        assert result.tool_calls[0].arguments == {"text": value}


def test_a_hook_removed_or_added_during_a_turn_counts_from_the_next_event(run: Run, probe: Probe) -> None:
    hooks = hw.HookChain()
    heard: list[str] = []

    @hooks.on("pre_tool_execution", name="first")
    def first(event: hw.HookEvent) -> None:
        heard.append("first " + event.tool_arguments["text"])
        hooks.remove("first")
        hooks.add(lambda event: heard.append("new " + event.tool_arguments["text"]), "pre_tool_execution", name="new")

    agent = hw.Agent(
        hw.Scripted([[call(text="1"), call(text="2")], call(text="3"), "ok"]), tools=[probe.tool], hooks=hooks
    )
    run(agent, "go")
    assert heard == ["first 1", "new 2", "new 3"]
