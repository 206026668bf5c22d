"""The driver of a turn on the caller's event loop.

The rules are in the native turn, a state machine without I/O. A driver does what the turn asks for and tells it what
came of it; it knows nothing of hooks, limits or messages.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from . import _aio, _native, _workers
from ._functions import is_coroutine_function
from ._models import FunctionModel
from ._native import RunEvent, RunResult, WorkspaceTool
from ._work import Call, CallAnswer, Work, decision, failed_decision, is_awaitable, segments

#: How often an event loop in a notebook wakes up to see an interrupt, in seconds.
_HEARTBEAT = 0.05
#: How long a cancelled coroutine may take to clean up before the run goes on without it, in seconds.
_GRACE = 0.05


async def drive(work: Work) -> RunResult:
    """Runs a turn to its end on the running loop."""
    async for _ in _steps(work):
        pass
    assert work.running.result is not None
    return work.running.result


async def stream(work: Work) -> AsyncGenerator[RunEvent, None]:
    """The same, telling what happens. Closing it early cancels the turn."""
    steps = _steps(work)
    try:
        async for _ in steps:
            for event in work.turn.events():
                yield event
    finally:
        await steps.aclose()


async def _steps(work: Work) -> AsyncGenerator[None, None]:
    turn, running = work.turn, work.running
    saved: BaseException | None = None
    abandoned = False
    step = turn.start(False)
    while True:
        if not isinstance(saved, GeneratorExit):
            try:
                yield
            except GeneratorExit as error:
                # Whoever watched has gone. Things can still be awaited, so hooks hear of the end.
                saved = error
                if step[0] != "done":
                    _close_unawaited(step)
                    step = turn.cancelled(False)
        kind, payload = step
        if kind == "done":
            running.result = payload
            break
        if abandoned:
            # Whoever awaited this is gone and nothing can be awaited any more: the turn is closed without hooks.
            _close_unawaited(step)
            step = turn.cancelled(False)
            continue
        try:
            with _heartbeat():
                if kind == "calls":
                    answers, broken = await _run_calls(work, payload)
                    if broken is not None:
                        saved = saved or broken
                        abandoned = isinstance(broken, GeneratorExit)
                    step = turn.calls(answers, broken is not None, False)
                else:
                    step = await _perform(work, kind, payload)
        except BaseException as error:
            # Whatever ended the wait, the turn has to be brought to its end: every call gets its result.
            saved = saved or error
            abandoned = abandoned or isinstance(error, GeneratorExit)
            step = turn.cancelled(False)
    if saved is not None and not running.take_back(saved):
        raise saved


def _close_unawaited(step: Any) -> None:
    if step[0] == "await":
        step[1].close()


async def _perform(work: Work, kind: str, payload: Any) -> Any:
    turn = work.turn
    if kind == "await":
        return turn.outcome(await payload)
    if kind == "model":
        try:
            ended, reply = await _ask_model(work, payload)
        except Exception as error:
            return turn.failed(error, False)
        return turn.reply(reply, False) if ended else turn.out_of_time(False)
    call, reason = payload
    answer, why = await _approve(work, call, reason)
    return turn.approval(answer, why, False)


async def _ask_model(work: Work, request: Any) -> tuple[bool, Any]:
    """The reply, and whether there is one in time."""
    model = work.agent.model
    if not isinstance(model, FunctionModel):
        return True, model.answer(request)
    if model.inline and not model.is_async:
        reply = model.function(request)
        return (True, reply) if not is_awaitable(reply) else await _within(lambda: reply, work.seconds())
    return await _elsewhere(model.function, (request,), is_async=model.is_async, seconds=work.seconds())


async def _elsewhere(
    function: Callable[..., Any], arguments: tuple[Any, ...], *, is_async: bool, seconds: float | None
) -> tuple[bool, Any]:
    """Calls a function that may take its time: a coroutine function in a task of its own, another one on a thread.

    Returns:
        Whether it ended within ``seconds``, and its value.
    """
    if is_async:
        return await _within(lambda: function(*arguments), seconds)
    if seconds is None:
        value = await _in_thread(function, arguments)
        return (True, value) if not is_awaitable(value) else await _within(lambda: value, None)

    async def call() -> Any:
        value = await _in_thread(function, arguments)
        return await value if is_awaitable(value) else value

    return await _within(call, seconds)


async def _in_thread(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """What a function returns on a worker thread. Whatever it raises, the cancellation of a task of its own included,
    is its failure and not the caller's."""

    def call() -> tuple[Any, BaseException | None]:
        try:
            return function(*arguments), None
        except BaseException as error:
            return None, error

    value, error = await _workers.in_thread(call, ())
    if error is not None:
        raise _own(error)
    return value


async def _within(function: Callable[[], Awaitable[Any]], seconds: float | None) -> tuple[bool, Any]:
    """Awaits in a task of its own, so that neither a deadline nor a cancellation waits for what the coroutine still
    does, and a cancellation inside it is told from the caller's."""
    failure: list[BaseException] = []

    async def call() -> Any:
        try:
            return await function()
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            failure.append(error)
            return None

    task = asyncio.ensure_future(call())
    try:
        done, _ = await asyncio.wait([task], timeout=seconds)
        if not done:
            task.cancel()
            return False, None
    except GeneratorExit:
        task.cancel()
        raise
    except BaseException:
        task.cancel()
        # So that what was cancelled is over before the history says so.
        await asyncio.wait([task], timeout=_GRACE)
        raise
    if failure:
        raise _own(failure[0])
    return True, task.result()


class _OwnFailure(Exception):
    """Stands for what a user's function raised that is no `Exception`, so that it is not taken for the caller's."""


def _own(error: BaseException) -> Exception:
    if isinstance(error, Exception):
        return error
    stand_in = _OwnFailure(str(error))
    stand_in.__cause__ = error
    return stand_in


async def _run_calls(work: Work, calls: Sequence[Call]) -> tuple[list[CallAnswer], BaseException | None]:
    answers: list[CallAnswer] = [None] * len(calls)
    for group in segments(calls):
        try:
            if len(group) == 1:
                answers[group[0]] = await _run_call(work, calls[group[0]])
            else:
                await _run_group(work, calls, group, answers)
        except BaseException as error:
            return answers, error
    return answers, None


async def _run_group(work: Work, calls: Sequence[Call], group: Sequence[int], answers: list[CallAnswer]) -> None:
    places = asyncio.Semaphore(work.agent.max_parallel)

    async def one(position: int) -> None:
        async with places:
            answers[position] = await _run_call(work, calls[position])

    tasks = [asyncio.ensure_future(one(position)) for position in group]
    try:
        await asyncio.gather(*tasks)
    except GeneratorExit:
        for task in tasks:
            task.cancel()
        raise
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=2 * _GRACE)
        raise


async def _run_call(work: Work, call: Call) -> CallAnswer:
    number, call_id, arguments, _ = call
    tool = work.agent.tools[number]
    if work.is_over_time():
        return work.not_begun(tool)
    began = time.perf_counter()
    try:
        if isinstance(tool, WorkspaceTool):
            ended, value = await _await_native(tool, arguments, work.cwd, work.seconds())
            kind = "native"
        else:
            ended, value = await _await_tool(work, tool, arguments, call_id)
            kind = "value"
    except _OwnFailure as error:
        return "error", error.__cause__, time.perf_counter() - began
    except Exception as error:
        return "error", error, time.perf_counter() - began
    return (kind, value, time.perf_counter() - began) if ended else work.overdue(tool, began)


async def _await_tool(work: Work, tool: Any, arguments: dict[str, Any], call_id: str) -> tuple[bool, Any]:
    context = work.context(call_id)
    seconds = work.seconds(tool.timeout)
    if tool.inline and not tool.is_async and tool.timeout is None:
        value = _inline(tool, arguments, context)
        return (True, value) if not is_awaitable(value) else await _within(lambda: value, seconds)
    return await _elsewhere(tool.invoke, (arguments, context), is_async=tool.is_async, seconds=seconds)


def _inline(tool: Any, arguments: dict[str, Any], context: Any) -> Any:
    try:
        return tool.invoke(arguments, context)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _own(error) from None if isinstance(error, Exception) else error


async def _await_native(
    tool: WorkspaceTool, arguments: dict[str, Any], cwd: Path, seconds: float | None
) -> tuple[bool, Any]:
    future, wake = _aio.open_future()
    call = _native.launch_native(tool, arguments, cwd, wake)
    try:
        if seconds is None:
            await future
        else:
            done, _ = await asyncio.wait([future], timeout=seconds)
            if not done:
                call.abort()
                return False, None
    except BaseException:
        call.abort()
        raise
    return True, call.take()


async def _approve(work: Work, call: Any, reason: str) -> tuple[str, str | None]:
    agent = work.agent
    approver = agent.approver
    if approver is None:
        return "nobody", None
    request = agent._approval_request(call, reason)
    seconds = work.seconds(agent.approval_timeout)
    try:
        ended, answer = await _elsewhere(
            approver, (request,), is_async=is_coroutine_function(approver), seconds=seconds
        )
    except _OwnFailure as error:
        return failed_decision(error.__cause__ or error)
    except Exception as error:
        return failed_decision(error)
    return decision(answer) if ended else ("late", None)


@contextlib.contextmanager
def _heartbeat() -> Iterator[None]:
    """Wakes a notebook's loop now and then: an interrupt of an awaited cell is seen only when the loop wakes."""
    if "ipykernel" not in sys.modules:
        yield
        return
    loop = asyncio.get_running_loop()
    handle: asyncio.TimerHandle | None = None

    def beat() -> None:
        nonlocal handle
        handle = loop.call_later(_HEARTBEAT, beat)

    beat()
    try:
        yield
    finally:
        if handle is not None:
            handle.cancel()
