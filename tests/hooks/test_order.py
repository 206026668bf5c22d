"""Determinism: the order is that of the chain, whatever takes how long, and no edit is lost."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from typing import Any

import pytest
from support import Dispatch

import hookwright as hw

CALL = {"tool_name": "shell", "tool_arguments": {"command": "ls"}}


def _rewriter(value: str, seconds: list[float], kind: str) -> Any:
    def answer() -> dict[str, Any]:
        return {"tool_arguments": {"command": value}}

    def sync(event: hw.HookEvent) -> dict[str, Any]:
        time.sleep(seconds[0])
        return answer()

    async def coroutine(event: hw.HookEvent) -> dict[str, Any]:
        await asyncio.sleep(seconds[0])
        return answer()

    return coroutine if kind == "async" else sync


@pytest.mark.parametrize("kinds", list(itertools.product(["sync", "async", "thread"], repeat=2)), ids="-".join)
def test_the_last_of_two_rewriting_hooks_wins_whatever_they_take(dispatch: Dispatch, kinds: tuple[str, str]) -> None:
    delays = [[0.0], [0.0]]
    chain = hw.HookChain()
    for name, kind, delay in zip(("first", "second"), kinds, delays, strict=True):
        isolate = {"isolate": "thread"} if kind == "thread" else {}
        chain.add(_rewriter(name, delay, kind), "pre_tool_execution", name=name, **isolate)
    randomness = random.Random(7)
    for _ in range(100):
        delays[0][0], delays[1][0] = (randomness.choice([0, 0, 0.001, 0.002]) for _ in range(2))
        outcome = dispatch(chain, "pre_tool_execution", **CALL)
        assert outcome.tool_arguments == {"command": "second"}
        assert [(c.hook, c.field, c.before["command"], c.after["command"]) for c in outcome.changes] == [
            ("first", "tool_arguments", "ls", "first"),
            ("second", "tool_arguments", "first", "second"),
        ]


@pytest.mark.parametrize("position", ["before", "after", "both"])
def test_a_hook_that_returns_nothing_never_loses_an_edit(
    dispatch: Dispatch, chain: hw.HookChain, position: str
) -> None:
    async def silent(event: hw.HookEvent) -> None:
        await asyncio.sleep(0)

    def add_silent(suffix: str) -> None:
        chain.add(lambda event: None, "pre_tool_execution", name=f"function_{suffix}")
        chain.add(silent, "pre_tool_execution", name=f"coroutine_{suffix}")
        chain.add(lambda event: {}, "pre_tool_execution", name=f"empty_{suffix}")
        chain.add(lambda event: hw.HookResult(), "pre_tool_execution", name=f"result_{suffix}")
        chain.add(hw.ShellHook("pre_tool_execution", "echo '{}'", name=f"shell_{suffix}"))

    if position != "after":
        add_silent("before")
    chain.add(_rewriter("changed", [0.0], "async"), "pre_tool_execution", name="rewriter")
    if position != "before":
        add_silent("after")
    outcome = dispatch(chain, "pre_tool_execution", **CALL)
    assert outcome.tool_arguments == {"command": "changed"}
    assert [change.hook for change in outcome.changes] == ["rewriter"]


def test_a_gate_judges_what_the_last_rewriter_left(dispatch: Dispatch, chain: hw.HookChain) -> None:
    judged = []

    @chain.on("pre_tool_execution", role="gate")
    def gate(event: hw.HookEvent) -> bool:
        judged.append(event.tool_arguments["command"])
        return "rm" not in event.tool_arguments["command"]

    chain.add(hw.ShellHook("pre_tool_execution", "grep -q 'rm x' && exit 2; exit 0", name="shell_gate", role="gate"))
    chain.add(_rewriter("rm x", [0.0], "async"), "pre_tool_execution", name="rewriter")
    outcome = dispatch(chain, "pre_tool_execution", **CALL)
    assert (outcome.action, outcome.halted_by, judged) == ("skip", "gate", ["rm x"])
    chain.remove("gate")
    assert dispatch(chain, "pre_tool_execution", **CALL).halted_by == "shell_gate"


def test_roles_then_levels_then_order_then_registration(dispatch: Dispatch, chain: hw.HookChain) -> None:
    ran: list[str] = []
    levels = ["session", "user", "builtin", "project"]
    expected = []
    for role, level, order in itertools.product(["observer", "gate", "hook"], levels, [1, -1, 0]):
        for number in range(2):
            name = f"{role} {level} {order} {number}"
            chain.add(
                lambda event, name=name: ran.append(name),
                "pre_tool_execution",
                name=name,
                role=role,
                level=level,
                order=order,
            )
            expected.append(
                (
                    ["hook", "gate", "observer"].index(role),
                    ["builtin", "user", "project", "session"].index(level),
                    order,
                    number,
                    name,
                )
            )
    outcome = dispatch(chain, "pre_tool_execution", **CALL)
    in_order = [entry[-1] for entry in sorted(expected)]
    assert ran == in_order
    assert [run.name for run in outcome.runs] == in_order == [hook.name for hook in chain.hooks]


@pytest.mark.parametrize("action", ["skip", "stop", "ask"])
def test_redact_then_halt_keeps_the_redaction(dispatch: Dispatch, chain: hw.HookChain, action: str) -> None:
    chain.add(_rewriter("[redacted]", [0.0], "sync"), "pre_tool_execution", name="redact")
    chain.add(lambda event: {"action": action, "reason": "no"}, "pre_tool_execution", name="halt")
    chain.add(_rewriter("never", [0.0], "sync"), "pre_tool_execution", name="later")
    outcome = dispatch(chain, "pre_tool_execution", **CALL)
    assert outcome.action == action
    assert outcome.tool_arguments == {"command": "never" if action == "ask" else "[redacted]"}


def test_one_hook_may_change_and_halt_at_once(dispatch: Dispatch, chain: hw.HookChain) -> None:
    answer = {
        "tool_arguments": {"command": "[redacted]"},
        "action": "skip",
        "reason": "secret",
        "system_message": "told",
    }
    chain.add(lambda event: answer, "pre_tool_execution", name="both")
    outcome = dispatch(chain, "pre_tool_execution", **CALL)
    assert (outcome.action, outcome.tool_arguments) == ("skip", {"command": "[redacted]"})
    assert outcome.system_messages == [("both", "told")]


def test_after_a_halt_hooks_and_gates_are_not_reached_and_observers_see_it(
    dispatch: Dispatch, chain: hw.HookChain
) -> None:
    seen: list[Any] = []
    chain.add(lambda event: hw.skip("first"), "pre_tool_execution", name="halts")
    chain.add(lambda event: hw.stop("second"), "pre_tool_execution", name="later_hook")
    chain.add(lambda event: hw.stop("third"), "pre_tool_execution", name="gate", role="gate")
    chain.add(
        lambda event: seen.append((event.outcome.action, event.outcome.halted_by)),
        "pre_tool_execution",
        name="eye",
        role="observer",
    )
    outcome = dispatch(chain, "pre_tool_execution", **CALL)
    assert [(run.name, run.status) for run in outcome.runs] == [
        ("halts", "halted"),
        ("later_hook", "not_reached"),
        ("gate", "not_reached"),
        ("eye", "ok"),
    ]
    assert (outcome.action, outcome.reason, seen) == ("skip", "first", [("skip", "halts")])


def test_ask_and_allow_end_no_phase_and_the_more_severe_wins(dispatch: Dispatch) -> None:
    answers = {
        "allow": lambda event: hw.allow("fine"),
        "ask": lambda event: hw.ask("sure?"),
        "skip": lambda event: hw.skip("no"),
        "stop": lambda event: hw.stop("never"),
        "warn": lambda event: hw.warn("careful"),
        "none": lambda event: None,
    }
    count = 0
    for names in itertools.product(answers, repeat=3):
        chain = hw.HookChain()
        for number, name in enumerate(names):
            chain.add(answers[name], "pre_tool_execution", name=f"{name}_{number}", role="gate" if number else "hook")
        outcome = dispatch(chain, "pre_tool_execution", **CALL)
        # The first skip or stop ends the phases; before it an ask stands, and allow never beats anything.
        final = next((name for name in names if name in ("skip", "stop")), "ask" if "ask" in names else None)
        assert outcome.action == final, names
        if final is not None:
            assert outcome.halted_by == f"{final}_{names.index(final)}"
        count += 1
    assert count == 216


def test_a_gate_that_returns_false_denies_annotated_or_not(dispatch: Dispatch) -> None:
    def annotated(event: hw.HookEvent) -> bool:
        return False

    async def coroutine(event: hw.HookEvent) -> Any:
        return False

    for gate in (annotated, coroutine, lambda event: False):
        for event, action in (("pre_tool_execution", "skip"), ("pre_llm_request", "stop"), ("stop", "stop")):
            chain = hw.HookChain()
            chain.add(gate, event, role="gate", name="gate")
            outcome = dispatch(chain, event)
            assert (outcome.action, outcome.reason) == (action, "refused by gate")
            chain = hw.HookChain()
            chain.add(gate, event, name="no_gate")
            assert (dispatch(chain, event).action, dispatch(chain, event).runs[0].status) == (None, "failed")
    chain = hw.HookChain()
    chain.add(lambda event: True, "pre_tool_execution", role="gate", name="gate")
    assert dispatch(chain, "pre_tool_execution", **CALL).runs[0].status == "ok"


def test_filters_see_the_values_at_the_turn_of_the_hook(dispatch: Dispatch, chain: hw.HookChain) -> None:
    chain.add(_rewriter("rm x", [0.0], "sync"), "pre_tool_execution", name="rewriter")
    chain.add(lambda event: hw.skip("rm"), "pre_tool_execution", name="on_rm", arguments={"command": "rm *"})
    chain.add(lambda event: hw.skip("ls"), "pre_tool_execution", name="on_ls", arguments={"command": "ls"}, order=1)
    chain.add(lambda event: hw.skip("case"), "pre_tool_execution", name="case", tool_name="Shell", order=-1)
    outcome = dispatch(chain, "pre_tool_execution", **CALL)
    assert outcome.halted_by == "on_rm"
    assert (outcome.runs[0].name, outcome.runs[0].status) == ("case", "filtered")
