"""The driver of a turn on a thread that may block."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from . import _native, _workers
from ._approval import Deferred
from ._background import Job, on_loop, on_thread
from ._functions import is_coroutine_function
from ._models import FunctionModel, Scripted
from ._native import RunResult, WorkspaceTool
from ._work import Call, CallAnswer, Failed, Work, decision, failed_decision, is_awaitable, open_call, segments
from ._work import call as call_here


def drive_blocking(work: Work) -> RunResult:
    """Runs a turn to its end on the calling thread."""
    with _workers.waiting_by(work.running.wait):
        return _drive(work)


def _drive(work: Work) -> RunResult:
    turn, running = work.turn, work.running
    saved: BaseException | None = None
    action: Callable[[], Any] = lambda: turn.start(True)  # noqa: E731
    while True:
        try:
            kind, payload = action()
            if kind == "done":
                running.result = payload
                break
            if kind == "calls":
                answers, error = _run_calls(work, payload)
                saved = saved or error
                _heed(turn, error)
                action = functools.partial(turn.calls, answers, error is not None, True)
            else:
                action = _perform(work, kind, payload)
        except BaseException as error:
            # Whatever ended the wait, the turn has to be brought to its end: every call gets its result.
            saved = saved or error
            _heed(turn, error)
            action = lambda: turn.cancelled(True)  # noqa: E731
    if saved is not None and not running.take_back(saved):
        raise saved
    assert running.result is not None
    return running.result


def _heed(turn: _native.Turn, error: BaseException | None) -> None:
    """Takes the request to cancel off the turn when it has ended something: the hooks that hear of the end go on."""
    if isinstance(error, _workers.CallerCancelled):
        turn.take_cancel()


def _perform(work: Work, kind: str, payload: Any) -> Callable[[], Any]:
    """Does what the turn asks for; returns how to tell it what came of it."""
    turn = work.turn
    if kind in ("model", "more") and (call := open_call(work, payload)) is not None:
        return _await_server(work, call)
    if kind == "model":
        payload = payload[0]
        try:
            ended, reply = _ask_model(work, payload)
        except Failed as failed:
            work.model_error = failed.error
            return functools.partial(turn.failed, failed.error, True)
        return functools.partial(turn.reply, reply, True) if ended else functools.partial(turn.out_of_time, True)
    if kind == "check":
        return functools.partial(turn.checked, work.check_output(payload), True)
    answer, why = _approve(work, *payload)
    return functools.partial(turn.approval, answer, why, True)


def _await_server(work: Work, call: _native.ModelCall) -> Callable[[], Any]:
    """Waits until something of a reply has come in, or all of it."""
    turn = work.turn
    woken = threading.Event()
    try:
        while True:
            if call.has_pieces():
                return functools.partial(turn.pieces, call, True)
            if call.done():
                return functools.partial(turn.server_reply, call, True)
            woken.clear()
            if not call.wake_with(woken.set) and not work.running.wait(woken, work.seconds()):
                call.abort()
                return functools.partial(turn.out_of_time, True)
    except BaseException:
        call.abort()
        raise


def _ask_model(work: Work, request: Any) -> tuple[bool, Any]:
    """The reply, and whether there is one in time."""
    model = work.agent.model
    if isinstance(model, Scripted):
        return True, call_here(model.answer, request)
    assert isinstance(model, FunctionModel)  # One behind a server is asked elsewhere.
    if model.inline and not model.is_async:
        reply = call_here(model.function, request)
        if not is_awaitable(reply):
            return True, reply
        task = _Elsewhere(lambda: reply, is_async=True)
    else:
        task = _Elsewhere(lambda: model.function(request), is_async=model.is_async)
    if not task.wait(work, work.seconds()):
        return False, None
    return True, task.value()


def _approve(work: Work, call: Any, reason: str, suggested_rule: str | None) -> tuple[str, str | None]:
    agent = work.agent
    approver = agent.approver
    if approver is None:
        return "nobody", None
    if isinstance(approver, Deferred):
        return "later", None
    seconds = work.seconds(agent.approval_timeout)
    request = agent._approval_request(call, reason, suggested_rule, seconds)
    task = _Elsewhere(lambda: approver(request), is_async=is_coroutine_function(approver))
    try:
        return decision(task.value()) if task.wait(work, seconds) else ("late", None)
    except Failed as failed:
        return failed_decision(failed.error)
    finally:
        request.over.set()


def _run_calls(work: Work, calls: Sequence[Call]) -> tuple[list[CallAnswer], BaseException | None]:
    answers: list[CallAnswer] = [None] * len(calls)
    try:
        for group in segments(calls):
            _run_group(work, calls, group, answers)
    except BaseException as error:
        return answers, error
    return answers, None


def _run_group(work: Work, calls: Sequence[Call], group: Sequence[int], answers: list[CallAnswer]) -> None:
    """Runs calls side by side, as many as are allowed at once; the next begins when one has ended."""
    woken = threading.Event()
    to_begin = list(reversed(group))
    begun: dict[int, _Pending] = {}
    try:
        while to_begin or begun:
            while to_begin and len(begun) < work.agent.max_parallel:
                position = to_begin.pop()
                answer = _begin(work, calls[position], woken)
                if isinstance(answer, _Pending):
                    begun[position] = answer
                else:
                    answers[position] = answer
            # Cleared before anything is looked at: what ends from here on sets it again.
            woken.clear()
            ended = {position: answer for position, pending in begun.items() if (answer := pending.answer())}
            for position, answer in ended.items():
                answers[position] = answer
                del begun[position]
            if begun and not ended:
                ends = [pending.end for pending in begun.values() if pending.end is not None]
                work.running.wait(woken, max(0.0, min(ends) - time.monotonic()) if ends else None)
    except BaseException:
        for position, pending in begun.items():
            answers[position] = pending.answer() if pending.done() else None
            pending.give_up()
        raise


def _begin(work: Work, call: Call, woken: threading.Event) -> _Pending | CallAnswer:
    number, call_id, arguments, _, reading = call
    tool = work.agent.tools[number]
    if work.is_over_time():
        return work.not_begun(tool)
    if isinstance(tool, WorkspaceTool):
        return _Pending(work, tool, _NativeElsewhere(work, tool, arguments, woken, reading), work.seconds())
    context = work.context(tool, call_id, reading)
    if tool.inline and not tool.is_async and tool.timeout is None:
        began = time.perf_counter()
        try:
            value = call_here(tool.invoke, arguments, context)
        except Failed as failed:
            return "error", failed.error, time.perf_counter() - began
        if not is_awaitable(value):
            return "value", value, time.perf_counter() - began
        task = _Elsewhere(lambda: value, is_async=True, woken=woken)
    else:
        task = _Elsewhere(lambda: tool.invoke(arguments, context), is_async=tool.is_async, woken=woken)
    return _Pending(work, tool, task, work.seconds(tool.timeout))


class _Pending:
    """A call that runs elsewhere. ``end``: when its time is up."""

    def __init__(self, work: Work, tool: Any, task: _Elsewhere | _NativeElsewhere, seconds: float | None) -> None:
        self._work, self._tool, self._task = work, tool, task
        self._began = time.perf_counter()
        self.end = None if seconds is None else time.monotonic() + seconds

    def done(self) -> bool:
        return self._task.done()

    def give_up(self) -> None:
        self._task.give_up()

    def answer(self) -> CallAnswer:
        """What came of it; ``None`` while it has time left."""
        if self._task.done():
            seconds = self._task.ended_at - self._began
            try:
                return self._task.kind, self._task.value(), seconds
            except Failed as failed:
                return "error", failed.error, seconds
        if self.end is None or time.monotonic() < self.end:
            return None
        self.give_up()
        return self._work.overdue(self._tool, self._began)


class _Elsewhere:
    """A function on a worker thread, or a coroutine function on a private loop; ``woken`` is set when it has ended."""

    kind = "value"

    def __init__(self, function: Callable[[], Any], *, is_async: bool, woken: threading.Event | None = None) -> None:
        self._woken = threading.Event() if woken is None else woken
        self._ended = False
        self.ended_at = 0.0
        self._job: Job = (on_loop if is_async else on_thread)(function, self._end)
        self._job.begin()

    def _end(self) -> None:
        value = None if self._job.error is not None else self._job.result()
        if is_awaitable(value):
            # A synchronous function that gave back a coroutine: its time goes on.
            self._job = on_loop(lambda: value, self._end)
            self._job.begin()
            return
        self.ended_at = time.perf_counter()
        self._ended = True
        self._woken.set()

    def done(self) -> bool:
        return self._ended

    def give_up(self) -> None:
        self._job.cancel()

    def wait(self, work: Work, seconds: float | None) -> bool:
        """Whether it ended within ``seconds``; it is given up if not."""
        try:
            if work.running.wait(self._woken, seconds):
                return True
        except BaseException:
            self.give_up()
            raise
        self.give_up()
        return False

    def value(self) -> Any:
        """What it returned; raises `Failed` with what it raised."""
        if self._job.error is not None:
            raise Failed(self._job.error)
        return self._job.result()


class _NativeElsewhere:
    """A workspace tool on the runtime."""

    kind = "native"

    def __init__(
        self, work: Work, tool: WorkspaceTool, arguments: dict[str, Any], woken: threading.Event, reading: bool
    ) -> None:
        self._woken = woken
        self._ended = False
        self.ended_at = 0.0
        self._call = _native.launch_native(tool, arguments, work.cwd, self._end, reading, work.keeps_whole)

    def _end(self) -> None:
        self.ended_at = time.perf_counter()
        self._ended = True
        self._woken.set()

    def done(self) -> bool:
        return self._ended

    def give_up(self) -> None:
        self._call.abort()

    def value(self) -> Any:
        """What it came to."""
        return self._call.take()
