"""Registering, replacing, removing: what a chain holds, and when a change of it takes effect."""

from __future__ import annotations

import functools
import gc
import logging
import re
import weakref
from typing import Any

import pytest
from support import NOTIFY_ONLY, Dispatch

import hookwright as hw

CALL = {"tool_name": "shell", "tool_arguments": {"command": "ls"}}


def _cell(chain: hw.HookChain, answer: str) -> None:
    """What running a notebook cell again does: a new function under the same module and name."""
    code = f"@chain.on('pre_tool_execution', role='gate')\ndef gate(event):\n    return hw.skip({answer!r})\n"
    exec(code, {"chain": chain, "hw": hw, "__name__": "__main__"})


def test_running_a_cell_again_replaces_its_hook_with_a_notice(
    dispatch: Dispatch, chain: hw.HookChain, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "hookwright")
    _cell(chain, "first")
    chain.add(lambda event: None, "pre_tool_execution", role="gate", name="later")
    assert caplog.records == []
    _cell(chain, "second")
    assert [record.message for record in caplog.records] == [
        "hook 'gate' was registered again and replaces the earlier one"
    ]
    assert [hook.name for hook in chain.hooks] == ["gate", "later"]  # At its old place.
    assert dispatch(chain, "pre_tool_execution", **CALL).reason == "second"


def test_running_a_cell_with_a_shell_hook_again_replaces_it(chain: hw.HookChain) -> None:
    for _ in range(2):
        chain.add(hw.ShellHook("turn_start", "true", name="shell"))
    assert len(chain) == 1
    with pytest.raises(hw.HookError, match="already a hook named"):
        chain.add(hw.ShellHook("turn_start", "false", name="shell"))


def test_closures_of_a_factory_are_kept_apart(dispatch: Dispatch, chain: hw.HookChain) -> None:
    def forbid(word: str) -> Any:
        @chain.on("pre_tool_execution", role="gate")
        def forbidden(event: hw.HookEvent) -> Any:
            return hw.skip(word) if word in event.tool_arguments["command"] else None

        return forbidden

    for _ in range(2):  # The cell is run again: still two hooks.
        forbid("rm")
        forbid("curl")
    assert [hook.name for hook in chain.hooks] == ["forbidden", "forbidden_2"]
    for word in ("rm", "curl"):
        outcome = dispatch(chain, "pre_tool_execution", tool_name="shell", tool_arguments={"command": f"{word} x"})
        assert outcome.reason == word


class Gate:
    """A gate with a word of its own."""

    def __init__(self, word: str, seen: list[str]) -> None:
        self.word = word
        self.seen = seen

    def check(self, event: hw.HookEvent) -> None:
        self.seen.append(self.word)

    def __call__(self, event: hw.HookEvent) -> None:
        self.seen.append(f"called {self.word}")


def _with_word(word: str, seen: list[str], event: hw.HookEvent) -> None:
    seen.append(f"partial {word}")


def test_methods_objects_and_partial_functions_are_kept_apart(dispatch: Dispatch, chain: hw.HookChain) -> None:
    seen: list[str] = []
    for _ in range(2):  # As when a cell that makes them is run again: still two of each.
        for word in ("one", "two"):
            chain.add(Gate(word, seen).check, "turn_start")
            chain.add(Gate(word, seen), "turn_start")
            chain.add(functools.partial(_with_word, word, seen), "turn_start")
    dispatch(chain, "turn_start", user_input="x")
    assert seen == ["one", "called one", "partial one", "two", "called two", "partial two"]
    assert [hook.name for hook in chain.hooks] == ["check", "Gate", "_with_word", "check_2", "Gate_2", "_with_word_2"]
    chain.add(lambda event: None, "turn_start", name="check_3")
    with pytest.raises(hw.HookError, match="already a hook named"):
        chain.add(Gate("three", seen).check, "turn_start", name="check")


def test_remove_enable_disable_by_name_and_by_function(dispatch: Dispatch, chain: hw.HookChain) -> None:
    @chain.on("turn_start")
    def first(event: hw.HookEvent) -> None: ...

    @chain.on("turn_start")
    def second(event: hw.HookEvent) -> None: ...

    def statuses() -> list[str]:
        return [run.status for run in dispatch(chain, "turn_start", user_input="x").runs]

    chain.disable(first)
    assert statuses() == ["disabled", "ok"]
    chain.disable("second")
    chain.enable("first")
    assert statuses() == ["ok", "disabled"]
    chain.remove(first)
    assert statuses() == ["disabled"]
    assert "first" not in chain and "second" in chain
    with pytest.raises(hw.HookError, match='no hook named "secnd"; did you mean "second"'):
        chain.remove("secnd")
    with pytest.raises(hw.HookError, match='did you mean "second"'):
        chain.enable("seconds")
    chain.remove("second")
    with pytest.raises(hw.HookError, match="the chain is empty"):
        chain.disable("second")


def test_override_puts_everything_back_even_after_an_error(dispatch: Dispatch, chain: hw.HookChain) -> None:
    chain.add(lambda event: hw.skip("closed"), "pre_tool_execution", name="closed", role="gate")
    chain.add(lambda event: None, "pre_tool_execution", name="off", enabled=False)

    def action() -> str | None:
        return dispatch(chain, "pre_tool_execution", **CALL).action

    with (
        pytest.raises(RuntimeError, match="inside"),
        chain.override(
            disable=["closed"], enable=["off"], add=[hw.ShellHook("pre_tool_execution", "true", name="new")]
        ),
    ):
        assert action() is None
        assert [(hook.name, hook.enabled) for hook in chain.hooks] == [("off", True), ("new", True), ("closed", False)]
        raise RuntimeError("inside")
    assert action() == "skip"
    assert [(hook.name, hook.enabled) for hook in chain.hooks] == [("off", False), ("closed", True)]


def test_a_copy_is_a_chain_of_its_own(dispatch: Dispatch) -> None:
    chain = hw.HookChain(budget=7, shadow=True)
    chain.add(lambda event: hw.skip("no"), "pre_tool_execution", name="gate", role="gate", tool_name="shell", timeout=3)
    chain.add(hw.ShellHook("pre_tool_execution", "true", name="shell"))
    copy = chain.copy()
    assert copy.hooks == chain.hooks
    assert (copy.budget, copy.shadow) == (7.0, True)
    copy.remove("gate")
    copy.add(lambda event: None, "turn_start", name="more")
    assert [hook.name for hook in chain.hooks] == ["shell", "gate"]
    assert dispatch(chain, "pre_tool_execution", **CALL).runs[1].would_halt == ("skip", "no")


def test_a_change_during_a_dispatch_takes_effect_at_the_next(dispatch: Dispatch, chain: hw.HookChain) -> None:
    @chain.on("turn_start")
    def changes(event: hw.HookEvent) -> None:
        if "removed" in chain:
            chain.remove("removed")
            chain.disable("disabled")
            chain.add(lambda event: None, "turn_start", name="added")

    chain.add(lambda event: None, "turn_start", name="removed")
    chain.add(lambda event: None, "turn_start", name="disabled")

    def runs() -> list[tuple[str, str]]:
        return [(run.name, run.status) for run in dispatch(chain, "turn_start", user_input="x").runs]

    assert runs() == [("changes", "ok"), ("removed", "ok"), ("disabled", "ok")]
    assert runs() == [("changes", "ok"), ("disabled", "disabled"), ("added", "ok")]


def test_a_hook_may_remove_itself_and_clear_the_chain(dispatch: Dispatch, chain: hw.HookChain) -> None:
    @chain.on("turn_start")
    def once(event: hw.HookEvent) -> None:
        for hook in chain.hooks:
            chain.remove(hook.name)
        gc.collect()

    chain.add(lambda event: None, "turn_start", name="other")
    assert [run.status for run in dispatch(chain, "turn_start", user_input="x").runs] == ["ok", "ok"]
    assert dispatch(chain, "turn_start", user_input="x").runs == []


MISTAKES: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"events": "pre_tool_exection"}, hw.UnknownEventError, 'did you mean "pre_tool_execution"'),
    ({"tool_regex": "("}, hw.HookError, "tool_regex|regex"),
    ({"tool_matcher": "shell||grep"}, hw.HookError, "tool_matcher|empty"),
    ({"arguments": {"path": "[a"}}, hw.HookError, "path|arguments"),
    ({"role": "gat"}, ValueError, 'did you mean "gate"'),
    ({"level": "sesion"}, ValueError, 'did you mean "session"'),
    ({"on_error": "denny"}, ValueError, 'did you mean "deny"'),
    ({"timeout": 0}, ValueError, "timeout must be a number of seconds above 0"),
    ({"timeout": float("nan")}, ValueError, "timeout must be"),
    ({"timeout": -1}, ValueError, "timeout must be"),
    ({"role": "observer", "on_error": "deny"}, hw.HookError, "observer cannot refuse"),
    ({"events": []}, hw.HookError, "event"),
    ({"isolate": "process"}, hw.HookError, "isolate"),
    ({"order": "first"}, TypeError, "order"),
]


@pytest.mark.parametrize(("options", "error", "says"), MISTAKES)
def test_a_mistake_is_an_error_at_registration(
    chain: hw.HookChain, options: dict[str, Any], error: type[Exception], says: str
) -> None:
    options = dict(options)
    events = options.pop("events", "pre_tool_execution")
    with pytest.raises(error, match=says):
        chain.add(lambda event: None, events, name="mistaken", **options)
    assert len(chain) == 0


def test_a_gate_on_an_event_that_only_notifies_is_an_error(chain: hw.HookChain) -> None:
    for event in [*NOTIFY_ONLY, "system_prompt_built", "post_micro_compact", "post_auto_compact"]:
        with pytest.raises(hw.HookError, match=re.escape('use role="observer"')):
            chain.add(lambda event: None, event, role="gate", name="gate")


def test_other_mistakes_have_hints(chain: hw.HookChain) -> None:
    with pytest.raises(hw.HookError, match="in parentheses"):
        chain.on(lambda event: None)
    with pytest.raises(hw.HookError, match="neither a function nor a ShellHook"):
        chain.add("echo", "turn_start")
    with pytest.raises(hw.HookError, match="brings its events"):
        chain.add(hw.ShellHook("turn_start", "true"), "turn_end")
    with pytest.raises(hw.UnknownEventError, match="did you mean"):
        chain.run("turn_strat")
    with pytest.raises(TypeError, match='did you mean "user_input"'):
        chain.run("turn_start", user_inputs="x")
    chain.add(lambda event: None, "turn_start", name="one")
    with pytest.raises(hw.HookError, match="already a hook named"):
        chain.add(lambda event: 1, "turn_end", name="one")


def test_a_chain_and_what_its_hooks_close_over_are_collected() -> None:
    class Marker:
        pass

    def make() -> list[weakref.ref[Any]]:
        chain, marker = hw.HookChain(), Marker()

        @chain.on("turn_start")
        def hook(event: hw.HookEvent) -> None:
            assert chain is not None and marker is not None

        @chain.on("turn_start", isolate="thread")
        def in_thread(event: hw.HookEvent) -> None:
            assert chain is not None and marker is not None

        marker.chain = chain.copy()  # type: ignore[attr-defined]
        chain.run("turn_start", user_input=[marker])
        return [weakref.ref(chain), weakref.ref(marker), weakref.ref(hook), weakref.ref(in_thread)]

    gc.collect()
    references = make()
    gc.collect()
    assert [reference() for reference in references] == [None] * 4


def test_an_option_of_the_wrong_type_says_what_it_must_be(chain: hw.HookChain) -> None:
    for error, options, message in (
        (ValueError, {"retry": -1}, "retry must be a whole number from 0 on, not -1"),
        (
            TypeError,
            {"tool_matcher": ["shell", "write_*"]},
            "tool_matcher must be text with | between names, such as \"shell|write_*\", not ['shell', 'write_*']",
        ),
        (TypeError, {"enabled": "yes"}, "enabled must be True or False, not 'yes'"),
        (TypeError, {"order": 1.5}, "order must be a whole number, not 1.5"),
    ):
        with pytest.raises(error, match=re.escape(message)):
            chain.add(lambda event: None, "pre_tool_execution", name="x", **options)
    assert len(chain) == 0


def test_an_outcome_does_not_keep_the_code_of_its_hooks_alive(chain: hw.HookChain) -> None:
    class Keeper:
        def hook(self, event: hw.HookEvent) -> None:
            self.event = event

    keeper = Keeper()
    chain.add(keeper.hook, "turn_start", name="kept")
    keeper.outcome = chain.run("turn_start", user_input="x")  # type: ignore[attr-defined]
    chain.remove("kept")
    gone = weakref.ref(keeper)
    del keeper
    gc.collect()
    assert gone() is None


def test_statistics_count_what_shadow_hooks_would_have_done(chain: hw.HookChain) -> None:
    chain.add(lambda event: hw.skip("no"), "pre_tool_execution", name="halts", shadow=True)
    chain.add(lambda event: {"tool_arguments": {}}, "pre_tool_execution", name="changes", shadow=True)
    for _ in range(2):
        chain.run("pre_tool_execution", tool_name="shell", tool_arguments={"command": "ls"})
    halts, changes = chain.stats()
    assert (halts.would_halt, halts.would_change, halts.halts) == (2, 0, 0)
    assert (changes.would_halt, changes.would_change, changes.changes) == (0, 2, 0)
    assert "2 would halt" in repr(chain.stats())
