"""What a hook is given: typed events whose fields are deeply read-only and still pass for ordinary data."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from support import EVENTS, Dispatch, fields_of

import hookwright as hw
from hookwright import _native

ARGUMENTS: dict[str, Any] = {"path": "a", "nested": {"list": [1, {"deep": [2]}]}, "number": 1.5, "none": None}
CALL = {"tool_name": "shell", "tool_arguments": ARGUMENTS}


@pytest.fixture(params=["as given", "as rewritten"])
def view(request: pytest.FixtureRequest) -> Any:
    """The arguments as a hook sees them: those of the caller, and those that a hook before it returned."""
    chain, seen = hw.HookChain(), []
    if request.param == "as rewritten":
        chain.add(lambda event: {"tool_arguments": ARGUMENTS}, "pre_tool_execution", name="rewriter")
    chain.add(lambda event: seen.append(event.tool_arguments), "pre_tool_execution", name="reader", role="observer")
    given = copy.deepcopy(ARGUMENTS) if request.param == "as given" else {}
    chain.run("pre_tool_execution", tool_name="shell", tool_arguments=given)
    return seen[0]


def test_a_view_passes_for_a_dict(view: Any) -> None:
    assert isinstance(view, dict)
    assert view == ARGUMENTS
    assert json.loads(json.dumps(view)) == ARGUMENTS
    assert {**view, "path": "b"} == {**ARGUMENTS, "path": "b"}
    assert isinstance(view["nested"]["list"], list)
    assert [*view] == [*ARGUMENTS]


WRITES = [
    lambda view: view.__setitem__("path", "b"),
    lambda view: view.__delitem__("path"),
    lambda view: view.update(path="b"),
    lambda view: view.pop("path"),
    lambda view: view.setdefault("new", 1),
    lambda view: view.clear(),
    lambda view: view.popitem(),
    lambda view: view.__ior__({"path": "b"}),
    lambda view: view["nested"].__setitem__("list", 1),
    lambda view: view["nested"]["list"].append(3),
    lambda view: view["nested"]["list"].__iadd__([3]),
    lambda view: view["nested"]["list"].__imul__(2),
    lambda view: view["nested"]["list"].sort(),
    lambda view: view["nested"]["list"].reverse(),
    lambda view: view["nested"]["list"].insert(0, 0),
    lambda view: view["nested"]["list"].__setitem__(0, 0),
    lambda view: view["nested"]["list"].__delitem__(0),
    lambda view: view["nested"]["list"].pop(),
    lambda view: view["nested"]["list"].remove(1),
    lambda view: view["nested"]["list"].extend([3]),
    lambda view: view["nested"]["list"].clear(),
    lambda view: view["nested"]["list"][1]["deep"].append(3),
]


@pytest.mark.parametrize("write", WRITES)
def test_writing_is_refused_with_what_to_do_instead(view: Any, write: Any) -> None:
    with pytest.raises(TypeError, match=r"return \{'tool_arguments'"):
        write(view)
    assert view == ARGUMENTS


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda view: pickle.loads(pickle.dumps(view))])
def test_a_copy_is_ordinary_data_that_can_be_changed(view: Any, duplicate: Any) -> None:
    for made in (duplicate(view), copy.deepcopy({"inside": view})["inside"]):
        assert made == ARGUMENTS
        assert type(made) is dict
        assert type(made["nested"]) is dict
        assert type(made["nested"]["list"]) is list
        made["nested"]["list"][1]["deep"].append(3)
        assert view == ARGUMENTS
    assert type(view.copy()) is dict
    assert type(view["nested"]["list"].copy()) is list


def test_the_caller_keeps_its_own_data_to_itself(dispatch: Dispatch, chain: hw.HookChain) -> None:
    mine = copy.deepcopy(ARGUMENTS)
    chain.add(lambda event: {"tool_arguments": {**event.tool_arguments, "path": "b"}}, "pre_tool_execution", name="w")
    outcome = dispatch(chain, "pre_tool_execution", tool_name="shell", tool_arguments=mine)
    assert mine == ARGUMENTS
    assert outcome.tool_arguments == {**ARGUMENTS, "path": "b"}


@pytest.mark.parametrize("event", EVENTS)
def test_each_event_has_a_class_with_the_fields_of_its_row(dispatch: Dispatch, chain: hw.HookChain, event: str) -> None:
    seen: list[Any] = []

    @chain.on(event, role="observer")
    def read(given: hw.HookEvent) -> None:
        seen.append((type(given), {name: getattr(given, name) for name in EVENTS[event]["readable"]}, given.event))

    dispatch(chain, event, **fields_of(event))
    kind, fields, name = seen[0]
    assert kind is getattr(_native, event.title().replace("_", ""))
    assert issubclass(kind, hw.HookEvent)
    assert (fields, name) == (fields_of(event), event)


def test_an_event_is_frozen_and_names_the_field_that_was_meant(dispatch: Dispatch, chain: hw.HookChain) -> None:
    @chain.on("pre_tool_execution")
    def hook(event: Any) -> None:
        with pytest.raises(AttributeError):
            event.tool_name = "other"
        with pytest.raises(AttributeError, match='did you mean "tool_arguments"'):
            _ = event.tool_argument
        with pytest.raises(AttributeError, match="it carries: tool_name"):
            _ = event.zebra
        assert event.get("tool_name") == "shell"
        assert event.get("user_input", "none") == "none"
        assert event.tool_call_id is None
        assert event.outcome is None
        assert (event.session_id, event.turn_id, event.continuation) == ("", "", 0)
        assert (event.agent.name, event.agent.kind, event.agent.parent) == ("", "main", None)
        document = event.to_dict()
        assert document["tool_arguments"] == ARGUMENTS
        document["tool_arguments"]["path"] = "mine"
        assert event.tool_arguments == ARGUMENTS

    run = dispatch(chain, "pre_tool_execution", **CALL).runs[0]
    assert run.status == "ok", run.detail


def test_events_of_one_dispatch_share_an_id_and_those_of_two_do_not(dispatch: Dispatch, chain: hw.HookChain) -> None:
    ids: list[str] = []
    for name in ("one", "two"):
        chain.add(lambda event: ids.append(event.event_id), "turn_start", name=name, role="observer")
    for _ in range(3):
        dispatch(chain, "turn_start", user_input="x")
    assert ids[0] == ids[1] and ids[2] == ids[3]
    assert len(set(ids)) == 3


def test_an_outcome_has_no_truth_and_reads_as_one_line(dispatch: Dispatch, chain: hw.HookChain) -> None:
    chain.add(lambda event: hw.skip("not here"), "pre_tool_execution", name="gate", role="gate")
    outcome = dispatch(chain, "pre_tool_execution", **CALL)
    with pytest.raises(ValueError, match="neither true nor false"):
        bool(outcome)
    assert repr(outcome).startswith('<Outcome pre_tool_execution skip by gate: "not here"')
    with pytest.raises(AttributeError, match="no field"):
        _ = outcome.zebra
