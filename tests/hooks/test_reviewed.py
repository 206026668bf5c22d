"""Cases that a review of the chain against its specification found."""

from __future__ import annotations

import asyncio
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from support import Dispatch

import hookwright as hw

CALL: dict[str, Any] = {"tool_name": "shell", "tool_arguments": {"command": "rm x"}}


def refuse(event: Any) -> bool:
    return False


def test_an_async_gate_that_swallows_everything_is_given_up(dispatch: Dispatch) -> None:
    chain = hw.HookChain()

    @chain.on("pre_tool_execution", role="gate", timeout=0.2)
    async def stubborn(event: Any) -> None:
        while True:
            try:
                await asyncio.sleep(10)
            except BaseException:
                pass

    outcome = dispatch(chain, "pre_tool_execution", **CALL)
    assert (outcome.action, outcome.runs[0].status) == ("skip", "timeout")


def test_one_function_for_two_tools_is_two_hooks(dispatch: Dispatch) -> None:
    chain = hw.HookChain()
    chain.on("pre_tool_execution", role="gate", tool_name="shell")(refuse)
    chain.on("pre_tool_execution", role="gate", tool_name="write_file")(refuse)
    chain.on("pre_tool_execution", role="gate", tool_name="write_file")(refuse)
    assert [hook.name for hook in chain.hooks] == ["refuse", "refuse_2"]
    for tool in ("shell", "write_file"):
        outcome = dispatch(chain, "pre_tool_execution", tool_name=tool, tool_arguments={})
        assert outcome.action == "skip", tool


def test_disabling_a_function_that_was_never_added_touches_no_hook_of_its_name() -> None:
    chain = hw.HookChain()
    chain.add(hw.ShellHook("pre_tool_execution", "exit 2", name="refuse", role="gate"))
    with pytest.raises(hw.HookError, match="not a hook of this chain"):
        chain.disable(refuse)
    assert chain.run("pre_tool_execution", **CALL).action == "skip"


@pytest.mark.parametrize("arguments", [{"command": "rm x", "other": object()}, json.dumps({"command": "rm x"})])
def test_a_gate_is_not_passed_over_for_arguments_that_nobody_can_read(dispatch: Dispatch, arguments: Any) -> None:
    chain = hw.HookChain()
    chain.on("pre_tool_execution", role="gate", arguments={"command": "*rm *"})(refuse)
    assert dispatch(chain, "pre_tool_execution", tool_name="shell", tool_arguments=arguments).action == "skip"


def test_time_before_an_awaitable_is_awaited_counts_for_no_hook() -> None:
    chain = hw.HookChain(budget=0.05)
    chain.on("pre_tool_execution", role="gate")(lambda event: None)

    async def main() -> hw.Outcome:
        run = chain.arun("pre_tool_execution", **CALL)
        await asyncio.sleep(0.15)
        return await run

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert asyncio.run(main()).action is None


def test_a_slow_function_in_a_running_loop_is_warned_of_once() -> None:
    chain = hw.HookChain()

    @chain.on("turn_start")
    def slow(event: Any) -> None:
        sum(range(8_000_000))
        sum(range(8_000_000))

    async def main() -> None:
        for _ in range(2):
            await chain.arun("turn_start", user_input="hi")

    with pytest.warns(RuntimeWarning, match='isolate="thread"') as caught:
        asyncio.run(main())
    assert len([warning for warning in caught if "slow" in str(warning.message)]) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chain.run("turn_start", user_input="hi")


def test_a_replay_tells_what_a_gate_in_shadow_would_have_refused(tmp_path: Path) -> None:
    chain = hw.HookChain()
    with chain.record(tmp_path / "record.jsonl"):
        chain.run("pre_tool_execution", **CALL)
    chain.on("pre_tool_execution", role="gate", shadow=True)(refuse)
    report = chain.replay(tmp_path / "record.jsonl")
    assert len(report.would_refuse) == 1


def test_a_shell_gate_that_gives_two_answers_in_one_refuses(dispatch: Dispatch) -> None:
    chain = hw.HookChain()
    command = """echo '{"action": "skip", "reason": "no", "action": "allow"}'"""
    chain.add(hw.ShellHook("pre_tool_execution", command, name="torn", role="gate"))
    outcome = dispatch(chain, "pre_tool_execution", **CALL)
    assert outcome.action == "skip"
    assert "stands twice" in outcome.reason


def test_a_gate_whose_filter_can_never_match_is_an_error() -> None:
    chain = hw.HookChain()
    with pytest.raises(hw.HookError, match="none of its events carries model"):
        chain.on("pre_tool_execution", role="gate", model_prefix="gpt")(refuse)


def test_a_command_that_is_a_list_is_told_how_to_write_it() -> None:
    with pytest.raises(hw.HookError, match='such as "ls -l"'):
        hw.HookChain().add(hw.ShellHook("turn_start", ["ls", "-l"]))  # type: ignore[arg-type]
