"""A gate that fails in any way refuses; whatever else fails changes nothing."""

from __future__ import annotations

import pytest
from failures import ASYNC_KINDS, COMMANDS, KINDS, Failure, add, cases
from support import ENTRANCES, Dispatch, fields_of, shown

import hookwright as hw

CASES = cases()
IDS = [f"{kind}-{failure.name}" for kind, failure in CASES]
#: What refusing means on an event that has skip, and on one that has only stop.
REFUSALS = {"pre_tool_execution": "skip", "pre_llm_request": "stop"}


def test_the_table_holds_every_kind_of_hook_and_says_how_long_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert {kind for kind, _ in CASES} == {*KINDS, "shell"}
    assert len(ASYNC_KINDS) == 4
    assert len(CASES) > 180
    with capsys.disabled():
        total = len(CASES) * len(ENTRANCES) * len(REFUSALS)
        print(
            f"\nfail-closed: {total} cases ({len(CASES)} kinds and failures, {len(ENTRANCES)} entrances, "
            f"{len(REFUSALS)} events)"
        )


@pytest.mark.parametrize(("kind", "failure"), CASES, ids=IDS)
def test_a_gate_that_fails_refuses_with_a_readable_reason(dispatch: Dispatch, kind: str, failure: Failure) -> None:
    for event, action in REFUSALS.items():
        chain = hw.HookChain()
        add(chain, kind, failure, event, role="gate")
        outcome = dispatch(chain, event, **fields_of(event))
        assert (outcome.action, outcome.halted_by) == (action, "failing"), outcome
        assert outcome.reason is not None
        assert "failing" in outcome.reason
        assert failure.says in outcome.reason
        assert outcome.runs[-1].status in ("failed", "timeout", "budget_exhausted", *["halted"] * failure.halts)
        assert [run.status for run in outcome.runs[:-1]] == ["timeout"] * (failure.budget < 1)


@pytest.mark.parametrize(("kind", "failure"), CASES, ids=IDS)
def test_an_observer_that_fails_changes_nothing_but_its_own_record(
    dispatch: Dispatch, kind: str, failure: Failure
) -> None:
    for role in ("observer", "hook"):
        if role == "hook" and failure.halts:
            continue  # Exit 2 is the way in which a command that may halt says so.
        event = "pre_tool_execution"
        without, chain = hw.HookChain(), hw.HookChain()
        add(chain, kind, failure, event, role=role, on_error="skip")
        expected = shown(dispatch(without, event, **fields_of(event)))
        outcome = dispatch(chain, event, **fields_of(event))
        assert shown(outcome) == expected
        assert outcome.runs[-1].name == "failing"


@pytest.mark.parametrize("failure", COMMANDS[:1], ids=["exit 1"])
def test_on_error_stop_stops_the_pipeline_and_on_error_skip_goes_on(dispatch: Dispatch, failure: Failure) -> None:
    expected = {"deny": "skip", "stop": "stop", "skip": None}
    for on_error, action in expected.items():
        for role in ("gate", "hook"):
            chain = hw.HookChain()
            add(chain, "shell", failure, "pre_tool_execution", role=role, on_error=on_error)
            assert dispatch(chain, "pre_tool_execution", tool_name="shell", tool_arguments={}).action == action


def test_a_failure_keeps_its_traceback_and_a_command_its_stderr(dispatch: Dispatch, chain: hw.HookChain) -> None:
    def broken(event: hw.HookEvent) -> None:
        raise KeyError("missing")

    chain.add(broken, "turn_start")
    chain.add(hw.ShellHook("turn_start", "echo one >&2; echo two >&2; exit 3", name="command"))
    python, shell = dispatch(chain, "turn_start", user_input="x").runs
    assert python.error == "KeyError: 'missing'"
    assert 'raise KeyError("missing")' in python.detail
    assert "broken" in python.detail
    assert shell.error == "exited with 3: two"
    assert shell.detail == "one\ntwo"


def test_a_failed_attempt_is_repeated_as_often_as_retry_says(dispatch: Dispatch, chain: hw.HookChain) -> None:
    calls: list[int] = []

    @chain.on("pre_tool_execution", role="gate", retry=2)
    def flaky(event: hw.HookEvent) -> None:
        calls.append(len(calls))
        if len(calls) % 3:
            raise ValueError("not yet")

    outcome = dispatch(chain, "pre_tool_execution", tool_name="shell", tool_arguments={})
    assert (outcome.action, outcome.runs[0].status, outcome.runs[0].attempts) == (None, "ok", 3)
    chain.add(lambda event: 1 / 0, "pre_tool_execution", role="gate", name="broken", retry=1)
    outcome = dispatch(chain, "pre_tool_execution", tool_name="shell", tool_arguments={})
    assert (outcome.halted_by, outcome.runs[1].status, outcome.runs[1].attempts) == ("broken", "failed", 2)
