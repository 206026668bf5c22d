"""Models that need no server: the script, strict, and the function, in whatever form."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from typing import Any

import pytest
from runs import Probe, Run, call, check_history

import hookwright as hw


def failure(run: Run, agent: hw.Agent, text: str = "go") -> hw.ModelError:
    with pytest.raises(hw.ModelError) as caught:
        run(agent, text)
    check_history(agent.history)
    return caught.value


def test_a_script_says_what_it_was_asked_when_it_is_used_up(run: Run, probe: Probe) -> None:
    agent = hw.Agent(hw.Scripted([call()]), tools=[probe.tool])
    error = failure(run, agent, "please")
    assert "used up" in str(error)
    assert "done" in str(error)  # The last thing it was asked: the result of the call.
    assert error.result is not None
    assert (error.result.status, error.result.error_kind) == ("error", "script")
    assert [made.name for made in error.result.tool_calls] == ["probe"]
    assert [message.role for message in agent.history] == ["user", "assistant", "tool"]


def test_a_script_says_what_it_expected(run: Run) -> None:
    script = hw.Scripted([hw.Step("fine", expect="weather"), hw.Step("never", expect="tides")])
    agent = hw.Agent(script)
    assert run(agent, "how is the weather?").text == "fine"
    error = failure(run, agent, "and the moon?")
    assert "tides" in str(error)
    assert "and the moon?" in str(error)
    assert (script.used, script.remaining) == (1, 1)


def test_a_script_from_a_generator_answers_as_it_goes(run: Run, probe: Probe) -> None:
    def replies() -> Any:
        yield call(text="1")
        yield [call(text="2"), call(text="3")]
        yield hw.Reply("done", usage=hw.Usage(3, 4))

    agent = hw.Agent(hw.Scripted(replies()), tools=[probe.tool])
    result = run(agent, "go")
    assert probe.entered == ["1", "2", "3"]
    assert (result.text, result.usage) == ("done", hw.Usage(3, 4))
    assert "'more'" in str(failure(run, agent, "more"))


def test_a_scripted_failure_is_a_failed_request_and_the_next_turn_goes_on(run: Run) -> None:
    agent = hw.Agent(hw.Scripted([ConnectionError("the line is dead"), "back again"]))
    error = failure(run, agent)
    assert "the line is dead" in str(error)
    assert run(agent, "and now?").text == "back again"


@pytest.mark.parametrize(
    ("answer", "text", "calls"),
    [
        ("text", "text", 0),
        (lambda: call(), "", 1),
        (lambda: [call(), call()], "", 2),
        (lambda: (call(),), "", 1),
        (lambda: hw.Reply("and", [call()]), "and", 1),
        (lambda: hw.Reply("words", reasoning="because"), "words", 0),
        (lambda: hw.Message("assistant", "words"), "words", 0),
        ("", "", 0),
        ([], "", 0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["sync", "async", "inline", "partial", "object", "async object", "lazy"])
def test_a_function_may_answer_in_every_form(
    run: Run, probe: Probe, kind: str, answer: Any, text: str, calls: int
) -> None:
    answers = iter([answer() if callable(answer) else answer, "end"])

    def plain(request: hw.Request) -> Any:
        return next(answers)

    async def later(request: hw.Request) -> Any:
        await asyncio.sleep(0)
        return next(answers)

    class Sync:
        def __call__(self, request: hw.Request) -> Any:
            return next(answers)

    class Async:
        async def __call__(self, request: hw.Request) -> Any:
            return next(answers)

    model: Any = {
        "sync": plain,
        "async": later,
        "inline": hw.FunctionModel(plain, inline=True),
        "partial": functools.partial(later),
        "object": Sync(),
        "async object": Async(),
        "lazy": lambda request: later(request),
    }[kind]
    agent = hw.Agent(model, tools=[probe.tool])
    result = run(agent, "go")
    assert result.status == "success"
    reply = agent.history[1]
    assert (reply.text, len(reply.tool_calls), len(probe.entered)) == (text, calls, calls)
    check_history(agent.history)


@pytest.mark.parametrize("nonsense", [None, 42, {"role": "assistant"}, [1, 2], object(), b"bytes"], ids=repr)
@pytest.mark.parametrize("inline", [True, False])
def test_nonsense_is_a_failed_request(run: Run, nonsense: Any, inline: bool) -> None:
    agent = hw.Agent(hw.FunctionModel(lambda request: nonsense, inline=inline))
    error = failure(run, agent)
    assert type(nonsense).__name__ in str(error)
    assert "a model answers with" in str(error)


@pytest.mark.parametrize("kind", ["sync", "async", "inline"])
@pytest.mark.parametrize(
    ("error", "says"),
    [
        (ValueError("no idea"), "ValueError: no idea"),
        (ValueError(), "ValueError"),
        (SystemExit(2), "SystemExit"),
        (asyncio.CancelledError(), "CancelledError"),
        (StopIteration("x"), "StopIteration"),
        (hw.ModelError("overloaded"), "overloaded"),
    ],
    ids=repr,
)
def test_a_function_that_raises_is_a_model_error_with_the_run_so_far(
    run: Run, probe: Probe, kind: str, error: BaseException, says: str
) -> None:
    heard: list[Any] = []
    hooks = hw.HookChain()
    hooks.add(lambda event: heard.append(event.error), "llm_error", name="llm_error")
    hooks.add(lambda event: heard.append(event.status), "turn_end", name="turn_end")

    def plain(request: hw.Request) -> Any:
        if request.messages[-1].role == "user":
            return call()
        raise error

    async def later(request: hw.Request) -> Any:
        return plain(request)

    model = later if kind == "async" else hw.FunctionModel(plain, inline=kind == "inline")
    agent = hw.Agent(model, tools=[probe.tool], hooks=hooks)
    caught = failure(run, agent)
    if not (kind == "async" and isinstance(error, StopIteration)):  # Which Python makes a RuntimeError of.
        assert says in str(caught)
    assert caught.result.status == "error"
    assert probe.entered == [""]
    assert heard[-1] == "error"
    assert heard[0]["message"]


def test_a_synchronous_function_does_not_keep_the_loop_from_running() -> None:
    ticked = threading.Event()

    def model(request: hw.Request) -> str:
        return "ticked" if ticked.wait(20) else "stood still"

    async def main() -> str:
        asyncio.get_running_loop().call_soon(lambda: asyncio.get_running_loop().call_soon(ticked.set))
        return (await hw.Agent(model).run("go")).text

    assert asyncio.run(main()) == "ticked"


def test_a_synchronous_tool_does_not_either_and_inline_ones_stay_on_the_callers_thread(run: Run) -> None:
    threads: dict[str, int] = {}

    def note(name: str) -> str:
        threads[name] = threading.get_ident()
        return name

    tools = [
        hw.tool(lambda: note("worker"), name="worker"),
        hw.tool(lambda: note("inline"), name="inline", inline=True),
    ]
    model = hw.FunctionModel(lambda request: note("model") and next(replies), inline=True)
    replies = iter([[call("worker"), call("inline")], "ok"])
    run(hw.Agent(model, tools=tools), "go")
    assert threads["inline"] == threads["model"]
    assert threads["worker"] != threads["inline"]


def test_context_variables_reach_models_tools_and_hooks(run: Run) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
    seen: dict[str, str] = {}

    def note(name: str) -> None:
        seen[name] = variable.get()

    async def note_later(name: str) -> None:
        seen[name] = variable.get()

    hooks = hw.HookChain()
    hooks.add(lambda event: note("hook"), "pre_tool_execution", name="sync")
    hooks.add(lambda event: note_later("async hook"), "pre_tool_execution", name="async")
    hooks.add(lambda event: note("thread hook"), "pre_tool_execution", name="thread", isolate="thread")
    hooks.add(lambda event: hw.ask("?"), "pre_tool_execution", name="asks")

    async def async_tool() -> None:
        note("async tool")

    tools = [
        hw.tool(lambda: note("tool"), name="tool"),
        hw.tool(async_tool),
        hw.tool(lambda: note("inline"), name="inline", inline=True),
    ]
    replies = iter([[call("tool"), call("async_tool"), call("inline")], "ok"])

    def model(request: hw.Request) -> Any:
        note("model")
        return next(replies)

    agent = hw.Agent(model, tools=tools, hooks=hooks, approver=lambda request: note("approver") or True)
    token = variable.set("set")
    try:
        run(agent, "go")
    finally:
        variable.reset(token)
    names = {"hook", "async hook", "thread hook", "tool", "async tool", "inline", "model", "approver"}
    assert seen == dict.fromkeys(names, "set")
