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
from typing import Any

from . import _aio, _native, _watchdog, _workers
from ._approval import Deferred
from ._functions import is_coroutine_function
from ._models import FunctionModel, Scripted
from ._native import RunEvent, RunResult, WorkspaceTool
from ._work import Call, CallAnswer, Failed, Work, decision, failed_decision, is_awaitable, open_call, segments
from ._work import call as call_here

#: How often an event loop in a notebook wakes up to see an interrupt, in seconds.
_HEARTBEAT = 0.05
#: How long a cancelled coroutine may take to clean up before the run goes on without it, in seconds.
_GRACE = 0.05


async def drive(work: Work) -> RunResult:
    """Runs a turn to its end on the running loop."""
    course = _Course(work)
    while not course.is_over():
        await course.go_on()
    return course.result()


async def stream(work: Work) -> AsyncGenerator[RunEvent, None]:
    """The same, telling what happens. Closing it early cancels the turn."""
    course = _Course(work)
    watched = True
    while True:
        if watched:
            try:
                for event in work.turn.events():
                    yield event
            except GeneratorExit as error:
                # Whoever watched has gone. Things can still be awaited, so hooks hear of the end.
                watched = False
                course.leave(error)
        if course.is_over():
            course.result()
            return
        await course.go_on()


class _Course:
    """Where a turn is. No generator: closing a coroutine that awaits one does not reach what it waits for.

    Closing a coroutine closes what it waits for first, from the inside out, and throws away what that returns.
    """

    def __init__(self, work: Work) -> None:
        self._work = work
        self._ended_by: BaseException | None = None
        self._step = work.turn.start(False)

    def is_over(self) -> bool:
        return bool(self._step[0] == "done")

    def result(self) -> RunResult:
        """What came of it; raises what ended it, unless that was `Agent.cancel`."""
        result: RunResult = self._step[1]
        self._work.running.result = result
        if self._ended_by is not None and not self._work.running.take_back(self._ended_by):
            raise self._ended_by
        return result

    def leave(self, error: BaseException) -> None:
        """Cancels the turn between two steps."""
        self._ended_by = self._ended_by or error
        if not self.is_over():
            self._cancel_step()

    def _cancel_step(self) -> None:
        kind, payload = self._step
        if kind == "await":
            payload.close()  # Nobody awaits it any more.
        self._step = self._work.turn.cancelled(False)

    def _abandon(self, error: GeneratorExit) -> None:
        """Closes the turn without hooks: whoever awaited it is gone, and nothing can be awaited any more."""
        self.leave(error)
        while not self.is_over():
            self._cancel_step()

    async def go_on(self) -> None:
        """Does what the turn asks for next."""
        try:
            await self._go_on()
        except GeneratorExit as error:
            self._abandon(error)
            self.result()

    async def _go_on(self) -> None:
        turn = self._work.turn
        try:
            if "ipykernel" not in sys.modules:
                self._step = await self._next()
            else:
                with _heartbeat(), _watchdog.noting_interrupts():
                    self._step = await self._next()
        except GeneratorExit:
            raise
        except BaseException as error:
            # Whatever ended the wait, the turn has to be brought to its end: every call gets its result.
            self._ended_by = self._ended_by or error
            await _heed(error)
            self._step = turn.cancelled(False)

    async def _next(self) -> Any:
        kind, payload = self._step
        if kind != "calls":
            return await _perform(self._work, kind, payload)
        answers, broken = await _run_calls(self._work, payload)
        if broken is not None:
            self._ended_by = self._ended_by or broken
            await _heed(broken)
        return self._work.turn.calls(answers, broken is not None, False)


async def _heed(error: BaseException | None) -> None:
    """Has the loop deliver the cancellation that ended a function which did not let the loop go on. It would otherwise
    come with the next wait, which is that of a hook that hears of the end."""
    if isinstance(error, _workers.CallerCancelled):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0)


async def _perform(work: Work, kind: str, payload: Any) -> Any:
    turn = work.turn
    if kind == "await":
        return turn.outcome(await payload)
    if kind in ("model", "more") and (call := open_call(work, payload)) is not None:
        return await _await_server(work, call)
    if kind == "model":
        payload = payload[0]
        try:
            ended, reply = await _ask_model(work, payload)
        except Failed as failed:
            work.model_error = failed.error
            return turn.failed(failed.error, False)
        return turn.reply(reply, False) if ended else turn.out_of_time(False)
    if kind == "check":
        return turn.checked(work.check_output(payload), False)
    answer, why = await _approve(work, *payload)
    return turn.approval(answer, why, False)


async def _await_server(work: Work, call: _native.ModelCall) -> Any:
    """Waits until something of a reply has come in, or all of it."""
    turn = work.turn
    try:
        while True:
            if call.has_pieces():
                return turn.pieces(call, False)
            if call.done():
                return turn.server_reply(call, False)
            future, wake = _aio.open_future()
            if call.wake_with(wake):
                continue
            seconds = work.seconds()
            if seconds is None:
                await future
                continue
            done, _ = await asyncio.wait([future], timeout=seconds)
            if not done:
                call.abort()
                return turn.out_of_time(False)
    except BaseException:
        call.abort()
        raise


async def _ask_model(work: Work, request: Any) -> tuple[bool, Any]:
    """The reply, and whether there is one in time."""
    model = work.agent.model
    if isinstance(model, Scripted):
        return True, call_here(model.answer, request)
    assert isinstance(model, FunctionModel)  # One behind a server is asked elsewhere.
    if model.inline and not model.is_async:
        reply = call_here(model.function, request)
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
    """What a function returns on a worker thread. Whatever it raises is its failure: nothing there is meant for the
    caller."""

    def call() -> tuple[Any, BaseException | None]:
        try:
            return function(*arguments), None
        except BaseException as error:
            return None, error

    value, error = await _workers.in_thread(call, ())
    if error is not None:
        raise Failed(error)
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
        except Failed as failed:
            failure.append(failed.error)
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
        raise Failed(failure[0])
    return True, task.result()


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
    number, call_id, arguments, _, reading = call
    tool = work.agent.tools[number]
    if work.is_over_time():
        return work.not_begun(tool)
    began = time.perf_counter()
    try:
        if isinstance(tool, WorkspaceTool):
            ended, value = await _await_native(work, tool, arguments, work.seconds(), reading)
            kind = "native"
        else:
            ended, value = await _await_tool(work, tool, arguments, call_id, reading)
            kind = "value"
    except Failed as failed:
        return "error", failed.error, time.perf_counter() - began
    return (kind, value, time.perf_counter() - began) if ended else work.overdue(tool, began)


async def _await_tool(
    work: Work, tool: Any, arguments: dict[str, Any], call_id: str, reading: bool
) -> tuple[bool, Any]:
    context = work.context(tool, call_id, reading)
    seconds = work.seconds(tool.timeout)
    if tool.inline and not tool.is_async and tool.timeout is None:
        value = call_here(tool.invoke, arguments, context)
        return (True, value) if not is_awaitable(value) else await _within(lambda: value, seconds)
    return await _elsewhere(tool.invoke, (arguments, context), is_async=tool.is_async, seconds=seconds)


async def _await_native(
    work: Work, tool: WorkspaceTool, arguments: dict[str, Any], seconds: float | None, reading: bool
) -> tuple[bool, Any]:
    future, wake = _aio.open_future()
    call = _native.launch_native(tool, arguments, work.cwd, wake, reading, work.keeps_whole)
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


async def _approve(work: Work, call: Any, reason: str, suggested_rule: str | None) -> tuple[str, str | None]:
    agent = work.agent
    approver = agent.approver
    if approver is None:
        return "nobody", None
    if isinstance(approver, Deferred):
        return "later", None
    seconds = work.seconds(agent.approval_timeout)
    request = agent._approval_request(call, reason, suggested_rule, seconds)
    try:
        ended, answer = await _elsewhere(
            approver, (request,), is_async=is_coroutine_function(approver), seconds=seconds
        )
    except Failed as failed:
        return failed_decision(failed.error)
    finally:
        request.over.set()
    return decision(answer) if ended else ("late", None)


@contextlib.contextmanager
def _heartbeat() -> Iterator[None]:
    """Wakes a notebook's loop now and then: an interrupt of an awaited cell is seen only when the loop wakes."""
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
