"""The table of events, through Python: every field and every action on every event."""

from __future__ import annotations

from typing import Any

import pytest
from support import EVENTS, FIELDS, NOTIFY_ONLY, REPLACEMENTS, Dispatch, fields_of

import hookwright as hw

#: The events that do more than notify, as the documentation has them: what may be written / what may halt.
ROWS = """
pre_send_message: user_input additional_context / stop
system_prompt_built: system_prompt additional_context /
pre_llm_request: messages system_prompt inject_messages additional_context tools / stop
post_llm_response: assistant_output / stop retry_feedback
llm_error: additional_context / stop
pre_tool_batch: / stop
post_tool_batch: additional_context / stop
pre_tool_execution: tool_arguments tool_result / skip stop ask
permission_request: decision tool_arguments / skip stop
post_tool_execution: tool_result additional_context / stop
post_tool_execution_failure: tool_error additional_context / stop
stop: additional_context / stop retry_feedback
limit_reached: additional_context / stop
pre_micro_compact: / skip
post_micro_compact: messages /
pre_auto_compact: additional_context / skip
post_auto_compact: messages /
teammate_idle: / stop retry_feedback
message_routed: text recipients / skip
"""
ACTIONS = ["stop", "skip", "ask", "allow", "warn"]
WRITABLE = sorted({field for row in EVENTS.values() for field in row["writable"]})


def test_the_table_and_the_samples_are_whole() -> None:
    assert len(EVENTS) == 28
    assert set(REPLACEMENTS) == set(WRITABLE)
    readable = {field for row in EVENTS.values() for field in row["readable"]}
    assert readable <= set(FIELDS)


def test_the_table_is_that_of_the_documentation() -> None:
    documented = {}
    for line in ROWS.strip().splitlines():
        event, _, row = line.partition(":")
        writable, halting = (part.split() for part in row.split("/"))
        documented[event] = (set(writable), set(halting) - {"retry_feedback"}, "retry_feedback" in halting)
    for event in NOTIFY_ONLY:
        documented[event] = (set(), set(), False)
    actual = {event: (set(row["writable"]), set(row["halting"]), row["retry"]) for event, row in EVENTS.items()}
    assert actual == documented


@pytest.mark.parametrize("event", EVENTS)
def test_an_event_takes_the_fields_of_its_row_and_no_other(dispatch: Dispatch, event: str) -> None:
    writable = EVENTS[event]["writable"]
    for field in WRITABLE:
        chain = hw.HookChain()
        chain.add(lambda e, field=field: {field: REPLACEMENTS[field]}, event, name="writer")
        outcome = dispatch(chain, event, **fields_of(event))
        run = outcome.runs[0]
        if field in writable:
            assert run.status == "changed", (field, run.error)
            assert [(change.hook, change.field) for change in outcome.changes] == [("writer", field)]
            if field == "additional_context":
                assert outcome.additional_context == [("writer", REPLACEMENTS[field])]
            elif field == "inject_messages":
                assert outcome.inject_messages == REPLACEMENTS[field]
            else:
                assert outcome.fields[field] == REPLACEMENTS[field]
        else:
            assert run.status == "failed", field
            assert f"{event} does not let a hook write {field}" in run.error
            assert all(name in run.error for name in writable)
            assert outcome.changes == []
            assert outcome.fields == fields_of(event)


@pytest.mark.parametrize("event", EVENTS)
def test_an_event_takes_the_actions_of_its_row_and_no_other(dispatch: Dispatch, event: str) -> None:
    halting = EVENTS[event]["halting"]
    for role in ("hook", "gate"):
        for action in ACTIONS:
            chain = hw.HookChain()
            if role == "gate" and not {"skip", "stop"} & set(halting):
                with pytest.raises(hw.HookError, match="observer"):
                    chain.add(lambda e: None, event, role="gate", name="gate")
                continue
            chain.add(
                lambda e, action=action: {"action": action, "reason": "because"}, event, role=role, name="decides"
            )
            outcome = dispatch(chain, event, **fields_of(event))
            run = outcome.runs[0]
            if action in halting:
                assert (outcome.action, outcome.reason, run.status) == (action, "because", "halted")
            elif action in ("allow", "warn") and halting:
                assert (outcome.action, run.status) == (None, "ok")
                assert outcome.system_messages == ([("decides", "because")] if action == "warn" else [])
            else:
                assert run.status == "failed"
                assert f"{event} does not allow {action}" in run.error
                assert all(name in run.error for name in halting)
                denial = "skip" if "skip" in halting else "stop"
                assert outcome.action == (denial if role == "gate" else None)


@pytest.mark.parametrize("event", EVENTS)
def test_feedback_is_taken_where_a_turn_can_be_sent_back(dispatch: Dispatch, chain: hw.HookChain, event: str) -> None:
    chain.add(lambda e: hw.retry("first"), event, name="one")
    chain.add(lambda e: {"retry_feedback": "second"}, event, name="two")
    outcome = dispatch(chain, event, **fields_of(event))
    if EVENTS[event]["retry"]:
        assert outcome.retry_feedback == [("one", "first"), ("two", "second")]
    else:
        assert outcome.retry_feedback == []
        assert all(run.status == "failed" and "retry_feedback" in run.error for run in outcome.runs)
    assert {event for event, row in EVENTS.items() if row["retry"]} == {"stop", "post_llm_response", "teammate_idle"}


@pytest.mark.parametrize("event", EVENTS)
def test_a_system_message_is_taken_on_events_that_do_more_than_notify(
    dispatch: Dispatch, chain: hw.HookChain, event: str
) -> None:
    for name in ("one", "two"):
        chain.add(lambda e, name=name: {"system_message": name}, event, name=name)
    outcome = dispatch(chain, event, **fields_of(event))
    if event in NOTIFY_ONLY:
        assert outcome.system_messages == []
        assert [run.status for run in outcome.runs] == ["failed", "failed"]
    else:
        assert outcome.system_messages == [("one", "one"), ("two", "two")]
        assert [run.status for run in outcome.runs] == ["ok", "ok"]


def test_what_accumulates_does_so_in_order(dispatch: Dispatch, chain: hw.HookChain) -> None:
    for name in ("one", "two", "three"):
        answer = {"additional_context": f"context {name}", "inject_messages": [{"role": "user", "content": name}]}
        chain.add(lambda e, answer=answer: answer, "pre_llm_request", name=name)
    outcome = dispatch(chain, "pre_llm_request", **fields_of("pre_llm_request"))
    assert outcome.additional_context == [(name, f"context {name}") for name in ("one", "two", "three")]
    assert [message["content"] for message in outcome.inject_messages] == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("tool_arguments", "ls", "must be an object, not a string"),
        ("messages", [1], "must be a list of message objects"),
        ("tools", "shell", "must be a list of names"),
        ("recipients", [1], "must be a list of names"),
        ("user_input", 1, "must be a string, not a number"),
        ("system_prompt", None, "must be a string, not null"),
        ("assistant_output", ["x"], "must be a string, not a list"),
        ("decision", "maybe", '"allow" or "deny"'),
        ("inject_messages", {"role": "user"}, "must be a list of message objects"),
        ("additional_context", 1, "must be a string"),
    ],
)
def test_a_value_of_another_type_is_a_failure(dispatch: Dispatch, field: str, value: Any, says: str) -> None:
    event = next(event for event, row in EVENTS.items() if field in row["writable"])
    chain = hw.HookChain()
    chain.add(lambda e: {field: value}, event, name="writer")
    run = dispatch(chain, event, **fields_of(event)).runs[0]
    assert run.status == "failed"
    assert field in run.error
    assert says in run.error


def test_tools_may_be_left_out_and_not_added(dispatch: Dispatch) -> None:
    for tools, status in ((["grep"], "changed"), ([], "changed"), (["shell", "curl"], "failed")):
        chain = hw.HookChain()
        chain.add(lambda e, tools=tools: {"tools": tools}, "pre_llm_request", name="writer")
        outcome = dispatch(chain, "pre_llm_request", **fields_of("pre_llm_request"))
        assert outcome.runs[0].status == status
        assert outcome.tools == (tools if status == "changed" else FIELDS["tools"])


def test_an_observer_may_say_nothing(dispatch: Dispatch) -> None:
    for answer in (hw.skip("no"), hw.allow(), {"tool_arguments": {}}, {"system_message": "x"}, hw.warn("x")):
        chain = hw.HookChain()
        chain.add(lambda e, answer=answer: answer, "pre_tool_execution", name="eye", role="observer")
        outcome = dispatch(chain, "pre_tool_execution", **fields_of("pre_tool_execution"))
        assert (outcome.action, outcome.changes, outcome.system_messages) == (None, [], [])
        assert outcome.runs[0].status == "failed"
        assert "observer" in outcome.runs[0].error


def test_shadow_records_and_applies_nothing(dispatch: Dispatch) -> None:
    answer = {"tool_arguments": {"command": "pwd"}, "action": "skip", "reason": "no", "system_message": "told"}
    for whole in (True, False):
        chain = hw.HookChain(shadow=whole)
        chain.add(lambda e: answer, "pre_tool_execution", name="trial", shadow=not whole)
        chain.add(lambda e: 1 / 0, "pre_tool_execution", name="broken", role="gate", shadow=not whole)
        outcome = dispatch(chain, "pre_tool_execution", **fields_of("pre_tool_execution"))
        assert (outcome.action, outcome.changes, outcome.system_messages) == (None, [], [])
        assert outcome.fields == fields_of("pre_tool_execution")
        trial, broken = outcome.runs
        assert (trial.would_halt, trial.would_change) == (("skip", "no"), ["tool_arguments"])
        assert broken.would_halt[0] == "skip"
