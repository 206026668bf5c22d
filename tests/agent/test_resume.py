"""Going on where a turn was left, and the limits on tokens and money."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from runs import Run

import hookwright as hw


@pytest.fixture(params=["async", "sync"])
def resume(request: pytest.FixtureRequest) -> Callable[[hw.Agent], hw.RunResult]:
    import asyncio

    return (
        (lambda agent: agent.resume_sync()) if request.param == "sync" else (lambda agent: asyncio.run(agent.resume()))
    )


Resume = Callable[[hw.Agent], hw.RunResult]


@hw.tool(inline=True)
def count() -> str:
    """Counts."""
    return "3"


def test_a_turn_goes_on_after_a_model_that_failed(resume: Resume) -> None:
    script = [hw.ToolCall("count", {}), hw.ModelError("down"), "3 files"]
    agent = hw.Agent(hw.Scripted(script), tools=[count])
    with pytest.raises(hw.ModelError):
        agent.run_sync("how many?")
    result = resume(agent)
    assert (result.status, result.text) == ("success", "3 files")
    assert [message.role for message in agent.history] == ["user", "assistant", "tool", "assistant"]


def test_a_turn_goes_on_after_a_limit_and_in_another_process(resume: Resume, tmp_path: Path) -> None:
    with hw.Agent(
        hw.Scripted([hw.ToolCall("count", {})]), tools=[count], max_rounds=1, session=tmp_path / "s"
    ) as agent:
        assert agent.run_sync("how many?").status == "limit"
    with hw.Agent(hw.Scripted(["3"]), tools=[count], session=tmp_path / "s") as agent:
        assert resume(agent).text == "3"
        assert [message.role for message in agent.history] == ["user", "assistant", "tool", "assistant"]


def test_nothing_to_go_on_with_is_an_error(resume: Resume) -> None:
    agent = hw.Agent(hw.Scripted(["hello"]))
    with pytest.raises(hw.SessionError, match="nothing was said yet"):
        resume(agent)
    agent.run_sync("hi")
    with pytest.raises(hw.SessionError, match="the last turn has its answer"):
        resume(agent)


def test_hooks_hear_of_the_turn_but_not_of_a_message(resume: Resume) -> None:
    hooks = hw.HookChain()
    heard: list[str] = []
    for event in ("pre_send_message", "turn_start", "turn_end"):
        hooks.on(event, name=event)(lambda event: heard.append(event.event))
    agent = hw.Agent(hw.Scripted([hw.ModelError("down"), "hello"]), hooks=hooks)
    with pytest.raises(hw.ModelError):
        agent.run_sync("hi")
    heard.clear()
    resume(agent)
    assert heard == ["turn_start", "turn_end"]


def reply(tokens: int, text: str = "", **parts: int) -> hw.Reply:
    usage = hw.Usage(input_tokens=tokens, **parts)
    return hw.Reply(text, None if text else [hw.ToolCall("count", {"n": tokens})], usage=usage)


@hw.tool(name="count", inline=True)
def count_up(n: int) -> str:
    """Counts."""
    return str(n)


def test_tokens_and_money_are_limited(run: Run) -> None:
    agent = hw.Agent(hw.Scripted([reply(60), reply(61), reply(1, "never")]), tools=[count_up], max_tokens=100)
    result = run(agent, "go")
    assert (result.status, result.limit, result.rounds, result.usage.input_tokens) == ("limit", "tokens", 2, 121)
    script = [reply(400_000, output_tokens=100_000), reply(500_000), reply(1, "never")]
    prices = {"input": 1.0, "output": 10.0}
    agent = hw.Agent(hw.Scripted(script), tools=[count_up], max_cost=1.8, prices=prices)
    result = run(agent, "go")
    assert (result.status, result.limit) == ("limit", "cost")
    assert result.cost == pytest.approx(0.4 + 1.0 + 0.5)


def test_bad_limits_are_refused() -> None:
    with pytest.raises(ValueError, match="max_cost needs prices="):
        hw.Agent(hw.Scripted([]), max_cost=1.0)
    with pytest.raises(ValueError, match="inputs"):
        hw.Agent(hw.Scripted([]), prices={"inputs": 1.0})
