"""What a hook took out is nowhere: not in the history, on disk, in a repr, in a record or in a notebook's view."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from runs import Probe, Run, call, check_history, told, transcript

import hookwright as hw

SECRET = "swordfish-9000-x7"


@pytest.fixture
def session(tmp_path: Path) -> hw.Session:
    return hw.Session(tmp_path / "session")


def everything_shown(agent: hw.Agent, result: hw.RunResult) -> str:
    """All that is kept or shown of a run, in one text."""
    events = [repr(outcome) + json.dumps(outcome.to_dict()) + outcome._repr_html_() for outcome in result.trace]
    changes = [repr(change) for outcome in result.trace for change in outcome.changes]
    parts = [
        *(json.dumps(message.to_dict()) for message in agent.history),
        *(json.dumps(message.to_dict()) for message in result.messages),
        transcript(agent.session).decode(),
        repr(result),
        json.dumps(result.to_dict()),
        result._repr_html_(),
        *(repr(made) + made.result + json.dumps(made.arguments) for made in result.tool_calls),
        *events,
        *changes,
        repr(agent),
    ]
    return "\n".join(parts)


def test_redact_then_skip_keeps_the_redaction_in_what_is_stored(run: Run, probe: Probe, session: hw.Session) -> None:
    chain = hw.HookChain()

    @chain.on("pre_tool_execution", order=1)
    def redact(event: hw.HookEvent) -> dict[str, object]:
        return {"tool_arguments": {"text": event.tool_arguments["text"].replace(SECRET, "[redacted]")}}

    @chain.on("pre_tool_execution", order=2)
    def refuse(event: hw.HookEvent) -> hw.HookResult:
        return hw.skip("not today")

    model = hw.Scripted([call(text=f"key={SECRET}"), "ok"])
    agent = hw.Agent(model, tools=[probe.tool], hooks=chain, session=session)
    result = run(agent, "go")
    assert probe.entered == []
    (asked,) = [message for message in agent.history if message.tool_calls]
    assert asked.tool_calls[0].arguments == {"text": "key=[redacted]"}
    assert b"key=[redacted]" in transcript(session)
    assert SECRET.encode() not in transcript(session)
    assert result.tool_calls[0].arguments == {"text": "key=[redacted]"}


def test_redact_then_stop_keeps_it_as_well(run: Run, probe: Probe, session: hw.Session) -> None:
    chain = hw.HookChain()
    chain.add(lambda event: {"tool_arguments": {"text": "clean"}}, "pre_tool_execution", name="redact")
    chain.add(lambda event: hw.stop("enough"), "pre_tool_execution", name="stop", order=1)
    agent = hw.Agent(hw.Scripted([call(text=SECRET)]), tools=[probe.tool], hooks=chain, session=session)
    assert run(agent, "go").status == "stopped"
    assert SECRET.encode() not in transcript(session)
    check_history(agent.history)


@pytest.mark.parametrize("answer", [f"key={SECRET}", {"key": [SECRET]}], ids=["text", "json"])
def test_a_secret_taken_out_of_a_result_is_nowhere(
    run: Run, tmp_path: Path, session: hw.Session, answer: object
) -> None:
    chain = hw.HookChain()
    chain.record(tmp_path / "record.jsonl")

    @chain.on("post_tool_execution")
    def redact(event: hw.HookEvent) -> dict[str, object]:
        return {"tool_result": json.dumps(json.loads(json.dumps(event.tool_result))).replace(SECRET, "[redacted]")}

    @chain.on("post_tool_execution", role="observer")
    def watch(event: hw.HookEvent) -> None:
        seen.append(event.tool_result)

    seen: list[object] = []
    asked: list[str] = []

    def model(request: hw.Request) -> object:
        asked.extend(json.dumps(message.to_dict()) for message in request.messages)
        return call() if request.messages[-1].role == "user" else "ok"

    agent = hw.Agent(hw.FunctionModel(model, inline=True), tools=[Probe(answer).tool], hooks=chain, session=session)
    result = run(agent, "go")
    assert "[redacted]" in told(agent)[0]
    assert SECRET not in everything_shown(agent, result)
    assert SECRET not in (tmp_path / "record.jsonl").read_text()
    assert SECRET not in "".join(asked)
    assert SECRET not in str(seen)


def test_a_gate_on_the_result_that_refuses_or_fails_withholds_it(run: Run, session: hw.Session) -> None:
    chain = hw.HookChain()

    @chain.on("post_tool_execution", role="gate", name="leaks")
    def leaks(event: hw.HookEvent) -> hw.HookResult | None:
        if "fail" in event.tool_result:
            raise ValueError("cannot tell")
        return hw.stop("that is a secret")

    for answer, why in ((f"fail {SECRET}", "cannot tell"), (SECRET, "that is a secret")):
        agent = hw.Agent(hw.Scripted([call(), "never"]), tools=[Probe(answer).tool], hooks=chain, session=session)
        result = run(agent, "go")
        assert (result.status, result.stopped_by) == ("stopped", "leaks")
        assert why in told(agent)[-1]
        assert result.tool_calls[0].ran
        assert SECRET not in everything_shown(agent, result)
        check_history(agent.history)


def test_a_gate_on_a_failure_that_refuses_withholds_its_text(run: Run, session: hw.Session) -> None:
    chain = hw.HookChain()
    chain.add(lambda event: hw.stop("no errors here"), "post_tool_execution_failure", role="gate", name="leaks")

    @hw.tool(inline=True)
    def broken() -> None:
        raise ValueError(f"could not log in with {SECRET}")

    agent = hw.Agent(hw.Scripted([call("broken"), "never"]), tools=[broken], hooks=chain, session=session)
    result = run(agent, "go")
    assert result.status == "stopped"
    assert "no errors here" in told(agent)[0]
    assert SECRET not in everything_shown(agent, result)


def test_a_redacted_error_is_told_in_its_redacted_form(run: Run, session: hw.Session) -> None:
    chain = hw.HookChain()

    @chain.on("post_tool_execution_failure")
    def redact(event: hw.HookEvent) -> dict[str, object]:
        return {"tool_error": "the login failed"}

    @hw.tool(inline=True)
    def broken() -> None:
        raise ValueError(f"could not log in with {SECRET}")

    agent = hw.Agent(hw.Scripted([call("broken"), "ok"]), tools=[broken], hooks=chain, session=session)
    result = run(agent, "go")
    assert told(agent) == ["the login failed"]
    assert SECRET not in everything_shown(agent, result)


def test_what_a_hook_makes_of_the_models_words_is_what_is_kept(run: Run, session: hw.Session) -> None:
    chain = hw.HookChain()

    @chain.on("post_llm_response")
    def redact(event: hw.HookEvent) -> dict[str, object]:
        return {"assistant_output": event.assistant_output.replace(SECRET, "[redacted]")}

    agent = hw.Agent(hw.Scripted([f"it is {SECRET}"]), hooks=chain, session=session)
    result = run(agent, "go")
    assert result.text == "it is [redacted]"
    assert SECRET not in everything_shown(agent, result)


def test_what_a_hook_makes_of_the_users_words_is_what_is_kept(run: Run, session: hw.Session) -> None:
    chain = hw.HookChain()

    @chain.on("pre_send_message")
    def redact(event: hw.HookEvent) -> dict[str, object]:
        return {"user_input": event.user_input.replace(SECRET, "[redacted]")}

    agent = hw.Agent(hw.Scripted(["ok"]), hooks=chain, session=session)
    result = run(agent, f"my key is {SECRET}")
    assert agent.history[0].text == "my key is [redacted]"
    assert SECRET not in everything_shown(agent, result)


def test_arguments_that_hooks_never_saw_are_not_stored(run: Run, session: hw.Session) -> None:
    chain = hw.HookChain()
    chain.add(lambda event: hw.stop("enough"), "pre_tool_batch", name="enough")
    chain.add(lambda event: {"tool_arguments": {"text": "[redacted]"}}, "pre_tool_execution", name="redact")

    @hw.tool(inline=True)
    def say(text: str) -> str:
        return text

    agent = hw.Agent(hw.Scripted([call("say", text=SECRET), "never"]), tools=[say], hooks=chain, session=session)
    result = run(agent, "go")
    assert result.status == "stopped"
    assert SECRET not in session.path.joinpath("transcript.jsonl").read_text(encoding="utf-8")
    assert [message.role for message in session.messages] == ["user", "assistant", "tool"]


def test_held_text_is_told_only_as_hooks_left_it(session: hw.Session) -> None:
    chain = hw.HookChain()
    chain.add(
        lambda event: {"assistant_output": event.assistant_output.replace(SECRET, "[redacted]")},
        "post_llm_response",
        name="redact",
    )

    async def texts(hold_text: bool) -> list[str]:
        agent = hw.Agent(hw.Scripted([f"it is {SECRET}"]), hooks=chain)
        return [event.delta async for event in agent.stream("go", hold_text=hold_text) if event.type == "text"]

    assert asyncio.run(texts(True)) == ["it is [redacted]"]
    assert asyncio.run(texts(False)) == [f"it is {SECRET}"]
