"""The drivers of a turn: they do what the turn asks for and tell it what came of it.

The rules are in the native turn, a state machine without I/O. One driver runs on the caller's event loop, one blocks;
what they share is only how calls are grouped. Neither knows anything of hooks, limits or messages.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _aio, _native, _workers
from ._background import CoroutineJob, start, start_coroutine
from ._functions import is_coroutine_function
from ._models import FunctionModel
from ._native import RunEvent, RunResult, Turn, WorkspaceTool
from ._tools import Context, Tool

if TYPE_CHECKING:
    from ._agent import Agent, ApprovalRequest, _Running

#: A call as the turn hands it over: which tool, the call's id, the arguments, whether it may run beside others.
Call = tuple[int, str, dict[str, Any], bool]
#: What came of a call: its kind, the value or exception, and seconds; ``None`` if it was cancelled.
CallAnswer = tuple[str, Any, float] | None

#: How often an event loop in a notebook wakes up to see an interrupt, in seconds.
_HEARTBEAT = 0.05


def segments(calls: Sequence[Call]) -> Iterator[Sequence[int]]:
    """The positions of calls that run side by side, one group after the other: a call that may not run beside others
    is a group of its own, so that what it does comes after what stands before it."""
    group: list[int] = []
    for position, (_, _, _, parallel) in enumerate(calls):
        if parallel:
            group.append(position)
            continue
        if group:
            yield group
            group = []
        yield [position]
    if group:
        yield group


class Work:
    """One turn and everything its effects need."""

    def __init__(self, agent: Agent, turn: Turn, running: _Running, session_id: str, cwd: Path) -> None:
        self.agent = agent
        self.turn = turn
        self.running = running
        self.session_id = session_id
        self.cwd = cwd

    def context(self, call_id: str) -> Context:
        return Context(
            agent=self.agent.name,
            session_id=self.session_id,
            turn_id=self.running.turn_id,
            call_id=call_id,
            cwd=self.cwd,
        )


# --- on the caller's event loop -------------------------------------------------------------------------------------


async def drive(work: Work) -> RunResult:
    """Runs a turn to its end on the running loop."""
    steps = _steps(work)
    async for _ in steps:
        pass
    assert work.running.result is not None
    return work.running.result


async def stream(work: Work) -> AsyncIterator[RunEvent]:
    """The same, telling what happens."""
    async for _ in _steps(work):
        for event in work.turn.events():
            yield event


async def _steps(work: Work) -> AsyncIterator[None]:
    turn, running = work.turn, work.running
    saved: BaseException | None = None
    step = turn.start(False)
    while True:
        try:
            yield
        except GeneratorExit as error:
            saved = error
        kind, payload = step
        if kind == "done":
            running.result = payload
            break
        if isinstance(saved, GeneratorExit):
            # Whoever awaited this is gone and nothing can be awaited any more: the turn is closed without hooks.
            step = turn.cancelled(False)
            continue
        try:
            with _heartbeat():
                if kind == "calls":
                    answers, ended = await _run_calls(work, payload)
                    saved = saved or ended
                    step = turn.calls(answers, ended is not None, False)
                else:
                    step = await _perform(work, kind, payload)
        except BaseException as error:
            # Whatever ended the wait, the turn has to be brought to its end: every call gets its result.
            saved = saved or error
            step = turn.cancelled(False)
    if saved is not None and not running.take_back(saved):
        raise saved


async def _perform(work: Work, kind: str, payload: Any) -> Any:
    turn = work.turn
    if kind == "await":
        return turn.outcome(await payload)
    if kind == "model":
        try:
            reply = await _ask_model(work.agent.model, payload)
        except Exception as error:
            return turn.failed(error, False)
        return turn.reply(reply, False)
    call, reason = payload
    answer, why = await _approve(work.agent, call, reason)
    return turn.approval(answer, why, False)


async def _ask_model(model: Any, request: Any) -> Any:
    if isinstance(model, FunctionModel):
        if model.is_async:
            return await model.function(request)
        if not model.inline:
            return await _workers.in_thread(model.function, (request,))
        reply = model.function(request)
        return await reply if hasattr(reply, "__await__") else reply
    return model.answer(request)


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
    except BaseException:
        for task in tasks:
            task.cancel()
        # One turn of the loop, so that what was cancelled is over before the history says so.
        await asyncio.wait(tasks, timeout=0.05)
        raise


async def _run_call(work: Work, call: Call) -> CallAnswer:
    number, call_id, arguments, _ = call
    tool = work.agent.tools[number]
    began = time.perf_counter()
    try:
        if isinstance(tool, WorkspaceTool):
            return "native", await _await_native(tool, arguments, work.cwd), time.perf_counter() - began
        value = await _await_tool(tool, arguments, work.context(call_id))
        return "value", value, time.perf_counter() - began
    except _TimedOut:
        return "timeout", (tool.name, tool.timeout), time.perf_counter() - began
    except Exception as error:
        return "error", error, time.perf_counter() - began


class _TimedOut(Exception):
    """A tool did not return in its time."""


async def _await_tool(tool: Tool[..., Any], arguments: dict[str, Any], context: Context) -> Any:
    if tool.inline and not tool.is_async and tool.timeout is None:
        value = tool.invoke(arguments, context)
        return await value if hasattr(value, "__await__") else value
    if tool.is_async:
        pending = tool.invoke(arguments, context)
    else:
        pending = _workers.in_thread(tool.invoke, (arguments, context))
    if tool.timeout is None:
        return await pending
    task = asyncio.ensure_future(pending)
    done, _ = await _wait(task, tool.timeout)
    if not done:
        task.cancel()
        raise _TimedOut
    return task.result()


async def _wait(task: asyncio.Future[Any], seconds: float) -> tuple[set[Any], set[Any]]:
    try:
        done, pending = await asyncio.wait([task], timeout=seconds)
    except BaseException:
        task.cancel()
        raise
    return done, pending


async def _await_native(tool: WorkspaceTool, arguments: dict[str, Any], cwd: Path) -> Any:
    future, wake = _aio.open_future()
    call = _native.launch_native(tool, arguments, cwd, wake)
    try:
        await future
    except BaseException:
        call.abort()
        raise
    return call.take()


async def _approve(agent: Agent, call: Any, reason: str) -> tuple[str, str | None]:
    approver = agent.approver
    if approver is None:
        return "nobody", None
    request = agent._approval_request(call, reason)

    async def ask() -> Any:
        if is_coroutine_function(approver):
            return await approver(request)
        value = await _workers.in_thread(approver, (request,))
        return await value if hasattr(value, "__await__") else value

    task = asyncio.ensure_future(ask())
    done, _ = await _wait(task, agent.approval_timeout)
    if not done:
        task.cancel()
        return "late", None
    try:
        return decision(task.result())
    except Exception as error:
        return "deny", f"the approver failed ({type(error).__name__}: {error})"


def decision(answer: Any) -> tuple[str, str | None]:
    """What an approver's answer means. Anything that is not clearly a yes is a no."""
    if answer is True or answer == "allow":
        return "allow", None
    if isinstance(answer, tuple) and len(answer) == 2:
        verdict, why = answer
        return decision(verdict)[0], str(why)
    if answer is None or answer is False or answer == "deny":
        return "deny", None
    return "deny", f"the approver answered {answer!r}, which is neither True nor False"


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


# --- on a thread that may block -------------------------------------------------------------------------------------


def drive_blocking(work: Work) -> RunResult:
    """Runs a turn to its end on the calling thread."""
    turn, running = work.turn, work.running
    saved: BaseException | None = None
    action: Callable[[], Any] = lambda: turn.start(True)  # noqa: E731
    while True:
        try:
            kind, payload = action()
        except BaseException as error:
            # A hook was interrupted, or a call's answer could not be handed in.
            saved = saved or error
            action = lambda: turn.cancelled(True)  # noqa: E731
            continue
        if kind == "done":
            running.result = payload
            break
        try:
            if kind == "calls":
                answers, ended = _run_calls_blocking(work, payload)
                saved = saved or ended
                action = functools.partial(turn.calls, answers, ended is not None, True)
            else:
                action = _perform_blocking(work, kind, payload)
        except BaseException as error:
            saved = saved or error
            action = lambda: turn.cancelled(True)  # noqa: E731
    if saved is not None and not running.take_back(saved):
        raise saved
    assert running.result is not None
    return running.result


def _perform_blocking(work: Work, kind: str, payload: Any) -> Callable[[], Any]:
    """Does what the turn asks for; returns how to tell it what came of it."""
    turn, agent = work.turn, work.agent
    work.running.check()
    if kind == "model":
        try:
            reply = _ask_model_blocking(work, payload)
        except Exception as error:
            return functools.partial(turn.failed, error, True)
        return functools.partial(turn.reply, reply, True)
    call, reason = payload
    if agent.approver is None:
        return functools.partial(turn.approval, "nobody", None, True)
    answer, why = _ask_approver_blocking(work, agent._approval_request(call, reason))
    return functools.partial(turn.approval, answer, why, True)


def _ask_model_blocking(work: Work, request: Any) -> Any:
    model = work.agent.model
    if not isinstance(model, FunctionModel):
        return model.answer(request)
    if model.inline and not model.is_async:
        return model.function(request)
    task = _Background(work, lambda: model.function(request), is_async=model.is_async)
    return task.wait(None)


def _ask_approver_blocking(work: Work, request: ApprovalRequest) -> tuple[str, str | None]:
    approver = work.agent.approver
    assert approver is not None
    task = _Background(work, lambda: approver(request), is_async=is_coroutine_function(approver))
    try:
        return decision(task.wait(work.agent.approval_timeout))
    except _TimedOut:
        return "late", None
    except Exception as error:
        return "deny", f"the approver failed ({type(error).__name__}: {error})"


def _run_calls_blocking(work: Work, calls: Sequence[Call]) -> tuple[list[CallAnswer], BaseException | None]:
    answers: list[CallAnswer] = [None] * len(calls)
    try:
        for group in segments(calls):
            if len(group) == 1:
                answers[group[0]] = _run_call_blocking(work, calls[group[0]])
                continue
            for start in range(0, len(group), work.agent.max_parallel):
                part = group[start : start + work.agent.max_parallel]
                begun = [(position, _begin(work, calls[position])) for position in part]
                try:
                    for position, pending in begun:
                        answers[position] = pending()
                except BaseException:
                    for position, pending in begun:
                        if answers[position] is None and pending.done():
                            answers[position] = pending()
                        pending.give_up()
                    raise
    except BaseException as error:
        return answers, error
    return answers, None


def _run_call_blocking(work: Work, call: Call) -> CallAnswer:
    number, call_id, arguments, _ = call
    tool = work.agent.tools[number]
    if isinstance(tool, Tool) and tool.inline and not tool.is_async and tool.timeout is None:
        began = time.perf_counter()
        try:
            return "value", tool.invoke(arguments, work.context(call_id)), time.perf_counter() - began
        except Exception as error:
            return "error", error, time.perf_counter() - began
    pending = _begin(work, call)
    try:
        return pending()
    except BaseException:
        pending.give_up()
        raise


def _begin(work: Work, call: Call) -> _PendingCall:
    number, call_id, arguments, _ = call
    tool = work.agent.tools[number]
    if isinstance(tool, WorkspaceTool):
        return _PendingCall(work, tool, None, arguments)
    context = work.context(call_id)
    task = _Background(work, lambda: tool.invoke(arguments, context), is_async=tool.is_async)
    return _PendingCall(work, tool, task, arguments)


class _PendingCall:
    """A call that runs elsewhere while this thread waits for it."""

    def __init__(self, work: Work, tool: Any, task: _Background | None, arguments: dict[str, Any]) -> None:
        self._work, self._tool, self._task = work, tool, task
        self._began = time.perf_counter()
        self._finished = threading.Event()
        self._native = None
        if task is None:
            self._native = _native.launch_native(tool, arguments, work.cwd, self._finished.set)

    def done(self) -> bool:
        return self._finished.is_set() if self._task is None else self._task.done()

    def give_up(self) -> None:
        if self._native is not None:
            self._native.abort()
        if self._task is not None:
            self._task.give_up()

    def __call__(self) -> CallAnswer:
        try:
            if self._native is not None:
                self._work.running.wait(self._finished, None)
                return "native", self._native.take(), time.perf_counter() - self._began
            assert self._task is not None
            return "value", self._task.wait(self._tool.timeout), time.perf_counter() - self._began
        except _TimedOut:
            self.give_up()
            return "timeout", (self._tool.name, self._tool.timeout), time.perf_counter() - self._began
        except Exception as error:
            return "error", error, time.perf_counter() - self._began


class _Background:
    """A function on a worker thread, or a coroutine function on the private loop, while this thread waits."""

    def __init__(self, work: Work, function: Callable[[], Any], *, is_async: bool) -> None:
        self._work = work
        self._finished = threading.Event()
        self._job = (start_coroutine if is_async else start)(function, self._finished.set)

    def done(self) -> bool:
        return self._finished.is_set()

    def give_up(self) -> None:
        self._job.cancel()

    def wait(self, seconds: float | None) -> Any:
        """The function's value.

        Raises:
            _TimedOut: when it has none after ``seconds``.
        """
        try:
            if not self._work.running.wait(self._finished, seconds):
                raise _TimedOut
        except BaseException:
            self.give_up()
            raise
        value = self._job.result()
        if isinstance(self._job, CoroutineJob) or not hasattr(value, "__await__"):
            return value
        return _Background(self._work, lambda: value, is_async=True).wait(seconds)
