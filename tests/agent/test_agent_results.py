"""Each call has exactly one result, in whatever way it and the turn end."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
from runs import Probe, Run, call, check_history, roles, told

import hookwright as hw


def turn(run: Run, tools: list[Any], *calls: hw.ToolCall, hooks: hw.HookChain | None = None, **options: Any) -> Any:
    """Runs one reply with these calls, and one more turn, to show that the history can be gone on from."""
    agent = hw.Agent(hw.Scripted([list(calls), "ok", "again"]), tools=tools, hooks=hooks, **options)
    result = run(agent, "go")
    check_history(agent.history)
    assert [made.result for made in result.tool_calls] == told(agent)
    if result.status == "success":
        assert run(agent, "and now?").text == "again"
        check_history(agent.history)
    return agent, result


@hw.tool(inline=True)
def add(left: int, right: int = 1) -> int:
    """Adds."""
    return left + right


@hw.tool
def fails() -> None:
    """Raises."""
    raise ValueError("no such thing")


@hw.tool
async def fails_later() -> None:
    """Raises."""
    await asyncio.sleep(0)
    raise ValueError("no such thing")


@hw.tool
def exits() -> None:
    """Ends the interpreter, or tries to."""
    raise SystemExit(3)


@hw.tool
async def cancels_itself() -> None:
    """Awaits something that was cancelled by somebody else than the caller."""
    task = asyncio.ensure_future(asyncio.sleep(60))
    task.cancel()
    await task


@hw.tool(inline=True)
def returns_error() -> dict[str, Any]:
    """Returns an error."""
    return {"error": {"message": "no such thing", "code": "not_found"}}


@hw.tool(returns="json")
def returns_json() -> str:
    """Returns an error as text."""
    return '{"error": "no such thing"}'


@hw.tool
async def returns_failed() -> dict[str, Any]:
    """Returns what a server of the Model Context Protocol does."""
    return {"isError": True, "content": [{"type": "text", "text": "no such thing"}]}


@hw.tool
def returns_exception() -> Exception:
    """Returns what others raise."""
    return hw.ToolError("no such thing", code="denied")


#: What is called, why it fails, and words that the model must read about it.
FAILURES: list[tuple[str, hw.ToolCall, str, list[str]]] = [
    ("raises", call("fails"), "exception", ["ValueError: no such thing"]),
    ("raises in a coroutine", call("fails_later"), "exception", ["ValueError: no such thing"]),
    ("returns an error", call("returns_error"), "error_result", ["Error (not_found): no such thing"]),
    ("returns an error as JSON text", call("returns_json"), "error_result", ["Error (exception): no such thing"]),
    ("returns a failed result of a protocol", call("returns_failed"), "error_result", ["no such thing"]),
    ("returns an exception", call("returns_exception"), "exception", ["Error (denied): no such thing"]),
    ("exits the interpreter", call("exits"), "exception", ["SystemExit: 3"]),
    ("cancels itself", call("cancels_itself"), "exception", ["CancelledError"]),
    ("unknown tool", call("ad"), "unknown_tool", ["no tool named", "Did you mean add?", "Tools: add"]),
    ("unlike any tool", call("zzzzz"), "unknown_tool", ["no tool named", "Tools: add"]),
    ("no JSON", hw.ToolCall("add", '{"left": 1,,}'), "invalid_arguments", ["column"]),
    ("cut off", hw.ToolCall("add", '{"left": 1'), "invalid_arguments", ["cut off"]),
    ("no object", hw.ToolCall("add", "[1]"), "invalid_arguments", ["object"]),
    ("wrong types", call("add", left="one", right="two"), "invalid_arguments", ["left", "right"]),
    ("missing", call("add", right=1), "invalid_arguments", ["left"]),
    ("unknown argument", call("add", left=1, rigth=2), "invalid_arguments", ["rigth"]),
]
TOOLS = [add, returns_error, returns_json, returns_failed, returns_exception, fails, fails_later, exits, cancels_itself]


@pytest.mark.parametrize(("bad", "cause", "says"), [row[1:] for row in FAILURES], ids=[row[0] for row in FAILURES])
def test_one_bad_call_among_siblings_is_told_why_and_the_others_count(
    run: Run, bad: hw.ToolCall, cause: str, says: list[str]
) -> None:
    _, result = turn(run, TOOLS, call("add", left=1), bad, call("add", left=5))
    first, failed, last = result.tool_calls
    assert (first.result, last.result) == ("2", "6")
    assert (failed.is_error, failed.cause) == (True, cause)
    for text in says:
        assert text in failed.result
    assert result.status == "success"


def test_every_entrance_tells_the_model_the_same(run: Run) -> None:
    agent, _ = turn(run, TOOLS, *(row[1] for row in FAILURES))
    reference = hw.Agent(hw.Scripted([[row[1] for row in FAILURES], "ok", "again"]), tools=TOOLS)
    reference.run_sync("go")
    assert told(agent) == told(reference)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_tool_that_takes_too_long_is_given_up(run: Run, is_async: bool) -> None:
    release = threading.Event()

    def blocks() -> str:
        release.wait(30)
        return "late"

    async def waits() -> str:
        await asyncio.sleep(30)
        return "late"

    slow = hw.tool(waits if is_async else blocks, name="slow", timeout=0.05)
    try:
        agent, result = turn(run, [slow, add], call("slow"), call("add", left=1))
    finally:
        release.set()
    slow_run, fine = result.tool_calls
    assert (slow_run.cause, slow_run.ran, fine.result) == ("timeout", True, "2")
    assert "did not return within 0.05 s" in slow_run.result
    assert "late" not in told(agent)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_calls_side_by_side_have_their_time_side_by_side(run: Run, is_async: bool) -> None:
    release = threading.Event()

    def blocks(number: int) -> None:
        release.wait(30)

    async def waits(number: int) -> None:
        await asyncio.sleep(30)

    slow = hw.tool(waits if is_async else blocks, name="slow", timeout=0.4, parallel=True)
    try:
        _, result = turn(run, [slow], *(call("slow", number=number) for number in range(8)))
    finally:
        release.set()
    assert [made.cause for made in result.tool_calls] == ["timeout"] * 8
    assert all(made.ms < 1200 for made in result.tool_calls)
    assert result.ms < 2000


def test_an_argument_that_fits_after_conversion_reaches_the_tool_converted(run: Run) -> None:
    _, result = turn(run, TOOLS, hw.ToolCall("add", ""), hw.ToolCall("add", '{"left": 2}'))
    assert result.tool_calls[0].cause == "invalid_arguments"
    assert result.tool_calls[1].result == "3"


@pytest.mark.parametrize("ids", [["same", "same", "same"], ["", "", ""], ["a", "", "a"]])
def test_ids_are_made_where_they_are_missing_or_double(run: Run, probe: Probe, ids: list[str]) -> None:
    script = [[call(id=id, text=f"{turn}{position}") for position, id in enumerate(ids)] for turn in range(2)]
    agent = hw.Agent(hw.Scripted([*script, "ok"]), tools=[probe.tool])
    result = run(agent, "go")
    made = [made.id for made in result.tool_calls]
    assert len(set(made)) == 6
    assert all(made)
    assert made[0] == (ids[0] or made[0])
    assert probe.entered == ["00", "01", "02", "10", "11", "12"]
    check_history(agent.history)


def test_ids_stay_unique_from_turn_to_turn(run: Run, probe: Probe) -> None:
    agent = hw.Agent(hw.Scripted([call(), "ok", call(), "ok"]), tools=[probe.tool])
    first, second = run(agent, "go"), run(agent, "go")
    assert first.tool_calls[0].id != second.tool_calls[0].id
    check_history(agent.history)


STOPPING = [
    "pre_send_message", "pre_llm_request", "post_llm_response", "pre_tool_batch", "post_tool_batch",
    "pre_tool_execution", "post_tool_execution", "post_tool_execution_failure", "permission_request", "stop",
]  # fmt: skip


@pytest.mark.parametrize("event", STOPPING)
@pytest.mark.parametrize("occasion", [1, 2])
def test_a_hook_may_stop_at_every_event_that_allows_it(run: Run, probe: Probe, event: str, occasion: int) -> None:
    hooks = hw.HookChain()
    seen = []

    @hooks.on(event, name="stopper", order=-1)
    def stopper(_: hw.HookEvent) -> hw.HookResult | None:
        seen.append(event)
        return hw.stop("that will do") if len(seen) == occasion else None

    hooks.add(
        lambda event: hw.ask("may I?") if event.tool_arguments.get("text") == "ask" else None, "pre_tool_execution"
    )
    script = [[call(text="ask"), call("fails"), call(text="2")] for _ in range(3)]
    agent = hw.Agent(
        hw.Scripted([*script, "ok", "next"]), tools=[probe.tool, fails], hooks=hooks, approver=lambda request: True,
        max_repeated_calls=None,
    )  # fmt: skip
    result = run(agent, "go")
    if event in ("pre_send_message", "stop") and occasion == 2:
        assert result.status == "success"
    elif event == "stop":
        assert result.status == "success"  # "end now" is what the model was about to do.
    else:
        assert (result.status, result.reason, result.stopped_by) == ("stopped", "that will do", "stopper")
    check_history(agent.history)
    assert len(probe.entered) <= 2 * len([message for message in agent.history if message.tool_calls])
    assert roles(agent)[:1] == ([] if event == "pre_send_message" and occasion == 1 else ["user"])
    assert run(agent, "and now?").status in ("success", "stopped")
    check_history(agent.history)


@pytest.mark.parametrize(
    ("answer", "ran", "says"),
    [
        (lambda request: True, True, "done"),
        (lambda request: "allow", True, "done"),
        (lambda request: False, False, "may I?"),
        (lambda request: None, False, "may I?"),
        (lambda request: (False, "not on a Friday"), False, "not on a Friday"),
        (lambda request: "maybe", False, "'maybe'"),
        (lambda request: 1, False, "1"),
        (lambda request: 1 / 0, False, "ZeroDivisionError"),
        (None, False, "nobody is there"),
    ],
    ids=["yes", "allow", "no", "nothing", "no and why", "maybe", "one", "raises", "nobody"],
)
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_question_goes_to_the_approver(
    run: Run, probe: Probe, answer: Any, ran: bool, says: str, is_async: bool
) -> None:
    hooks = hw.HookChain()
    hooks.add(lambda event: hw.ask("may I?"), "pre_tool_execution", name="asks")
    asked: list[hw.ApprovalRequest] = []

    def approver(request: hw.ApprovalRequest) -> Any:
        asked.append(request)
        return answer(request)

    async def async_approver(request: hw.ApprovalRequest) -> Any:
        await asyncio.sleep(0)
        return approver(request)

    chosen = None if answer is None else async_approver if is_async else approver
    _, result = turn(run, [probe.tool], call(text="x", id="c1"), hooks=hooks, approver=chosen)
    (made,) = result.tool_calls
    assert made.ran is ran
    assert bool(probe.entered) is ran
    assert says in made.result
    assert made.cause == (None if ran else "denied")
    if answer is not None:
        assert asked == [hw.ApprovalRequest("probe", {"text": "x"}, "may I?", "c1", "main")]


def test_an_approver_that_is_late_is_a_no(run: Run, probe: Probe) -> None:
    hooks = hw.HookChain()
    hooks.add(lambda event: hw.ask("may I?"), "pre_tool_execution", name="asks")
    release = threading.Event()

    def approver(request: hw.ApprovalRequest) -> bool:
        return release.wait(30)

    try:
        _, result = turn(run, [probe.tool], call(), hooks=hooks, approver=approver, approval_timeout=0.05)
    finally:
        release.set()
    assert "nobody answered" in result.tool_calls[0].result
    assert probe.entered == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("text", "text"), (None, ""), (True, "true"), (1.5, "1.5"), ([1, "a"], '[1,"a"]'), ("", ""),
        ({"b": 1, "a": None}, '{"b":1,"a":null}'), ("é" * 3, "ééé"),
    ],
)  # fmt: skip
def test_a_tools_value_is_told_as_text(run: Run, value: Any, text: str) -> None:
    agent, _ = turn(run, [Probe(value).tool], call())
    assert told(agent) == [text]


@pytest.mark.parametrize("value", [object(), {"x": object()}, b"\xff\xfe"])
def test_a_value_without_a_json_form_is_the_calls_failure(run: Run, value: Any) -> None:
    _, result = turn(run, [Probe(value).tool], call())
    (made,) = result.tool_calls
    assert (made.is_error, made.cause, made.ran) == (True, "exception", True), made
    assert "JSON" in made.result or "not UTF-8" in made.result


def test_a_tool_error_is_told_with_its_hint(run: Run) -> None:
    @hw.tool(inline=True)
    def picky() -> None:
        """Refuses."""
        raise hw.ToolError("the index is stale", hint="Rebuild it first.")

    agent, _ = turn(run, [picky], call("picky"))
    assert "the index is stale" in told(agent)[0]
    assert "Rebuild it first." in told(agent)[0]


def test_a_function_that_returns_an_awaitable_is_awaited(run: Run) -> None:
    async def later() -> str:
        return "awaited"

    tool = hw.tool(lambda: later(), name="lazy")
    inline = hw.tool(lambda: later(), name="lazy_inline", inline=True)
    agent, _ = turn(run, [tool, inline], call("lazy"), call("lazy_inline"))
    assert told(agent) == ["awaited", "awaited"]


def test_a_result_from_a_hook_takes_the_place_of_the_call(run: Run, probe: Probe) -> None:
    hooks = hw.HookChain()
    hooks.add(lambda event: {"tool_result": {"cached": True}}, "pre_tool_execution", name="cache")
    agent, result = turn(run, [probe.tool], call(), hooks=hooks)
    assert probe.entered == []
    assert json.loads(told(agent)[0]) == {"cached": True}
    assert (result.tool_calls[0].ran, result.tool_calls[0].is_error) == (False, False)


def test_arguments_that_a_hook_spoils_are_refused_and_name_the_hook(run: Run) -> None:
    hooks = hw.HookChain()
    hooks.add(lambda event: {"tool_arguments": {"left": "many"}}, "pre_tool_execution", name="spoiler")
    _, result = turn(run, [add], call("add", left=1), hooks=hooks)
    assert result.tool_calls[0].cause == "invalid_arguments"
    assert "spoiler" in result.tool_calls[0].result
