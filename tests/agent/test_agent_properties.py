"""What holds for every run, whatever the model says and hooks do."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from runs import ENTRANCES, STATUSES, check_history
from support import EVENTS as EVENTS_OF_THE_CORE

import hookwright as hw

TEXT = st.sampled_from(["", "a", "é漢😀", "x" * 300, "\u0000", "\ud800"[:0] + "line\nline", "{}"])
ARGUMENTS = st.one_of(
    st.fixed_dictionaries({"text": TEXT}),
    st.sampled_from(["", "{", '{"text": "x"}', '{"text": 1}', "[]", "null", '"{}"']),
    st.fixed_dictionaries({"other": st.integers(-(2**63), 2**63 - 1)}),
)
CALLS = st.builds(
    lambda name, arguments, id: hw.ToolCall(name, arguments, id=id),
    st.sampled_from(["plain", "later", "raises", "unknown", ""]),
    ARGUMENTS,
    st.sampled_from(["", "same", "a", "b"]),
)
REPLIES = st.lists(
    st.one_of(
        TEXT,
        st.lists(CALLS, max_size=4),
        st.builds(lambda text, calls: hw.Reply(text, calls), TEXT, st.lists(CALLS, max_size=3)),
    ),
    max_size=6,
)
RESULTS = st.sampled_from(
    [
        None, hw.skip("no"), hw.stop("stop"), hw.ask("may I?"), hw.retry("again"), hw.allow(), hw.warn("odd"),
        {"tool_arguments": {"text": "new"}}, {"tool_arguments": {"text": 1}}, {"tool_result": "mine"},
        {"additional_context": "more"}, {"assistant_output": "other"}, {"user_input": "else"}, {"nonsense": 1},
        {"tool_error": "oops"}, {"decision": "allow"}, {"messages": []}, ValueError("broken"),
    ]
)  # fmt: skip
EVENTS = [
    "pre_send_message", "system_prompt_built", "pre_llm_request", "post_llm_response", "pre_tool_batch",
    "pre_tool_execution", "permission_request", "post_tool_execution", "post_tool_execution_failure", "post_tool_batch",
    "stop", "limit_reached", "turn_end",
]  # fmt: skip
HOOKS = st.lists(
    st.tuples(st.sampled_from(EVENTS), RESULTS, st.sampled_from(["hook", "gate", "observer"]), st.integers(0, 3)),
    max_size=5,
)


@hw.tool(inline=True, parallel=True)
def plain(text: str) -> str:
    """Gives it back."""
    return text


@hw.tool(parallel=True)
async def later(text: str) -> str:
    """Gives it back."""
    return text


@hw.tool(inline=True)
def raises(text: str) -> str:
    """Does not."""
    raise ValueError(text)


def a_chain(specifications: list[tuple[str, Any, str, int]]) -> hw.HookChain:
    hooks = hw.HookChain()
    for number, (event, result, role, at) in enumerate(specifications):
        seen: list[int] = []

        def hook(_: Any, result: Any = result, at: int = at, seen: list[int] = seen) -> Any:
            seen.append(1)
            if at and len(seen) != at:
                return None
            if isinstance(result, Exception):
                raise result
            return result

        if role == "gate" and not EVENTS_OF_THE_CORE[event]["halting"]:
            continue  # Refused when it is added: it could refuse nothing.
        hooks.add(hook, event, name=f"hook {number}", role=role)
    return hooks


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(replies=REPLIES, hooks=HOOKS, entrance=st.sampled_from(list(ENTRANCES)), calls=st.sampled_from([None, 2]))
def test_every_run_ends_in_order(replies: list[Any], hooks: Any, entrance: str, calls: int | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        agent = hw.Agent(
            hw.Scripted(replies), tools=[plain, later, raises], hooks=a_chain(hooks), session=Path(folder) / "s",
            max_rounds=8, max_calls_per_turn=calls, approver=lambda request: True,
        )  # fmt: skip
        for text in ("go", "on"):
            try:
                result = ENTRANCES[entrance](agent, text)
            except hw.ModelError as error:
                assert error.result is not None
                result = error.result
            assert result.status in STATUSES
            check_history(agent.history)
            asked = [made.id for message in result.messages for made in message.tool_calls]
            assert asked == [made.id for made in result.tool_calls]
            assert asked == [message.tool_call_id for message in result.messages if message.role == "tool"]
            assert [made.result for made in result.tool_calls] == [
                message.text for message in result.messages if message.role == "tool"
            ]
            assert agent.session.open_turn is None
        kept = [message.to_dict() for message in agent.history]
        agent.close()
        again = hw.Session(Path(folder) / "s")
        assert [message.to_dict() for message in again.messages] == kept
        assert again.repair is None
        assert again.interrupted_calls == []
        again.close()
