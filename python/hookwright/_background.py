"""Work that runs on another thread while this one waits or goes on."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from typing import Any

from . import _workers


class Job:
    """A call under way. ``error``: what it raised, once it has ended."""

    def __init__(self) -> None:
        self._value: Any = None
        self.error: BaseException | None = None

    def result(self) -> Any:
        """Its value; raises what it raised."""
        if self.error is not None:
            raise self.error
        return self._value

    def begin(self) -> None:
        """Begins it. Apart from making it, so that whoever is told of its end holds it already."""
        raise NotImplementedError

    def cancel(self) -> None:
        """Gives it up."""


class ThreadJob(Job):
    """A function on a worker thread. Given up, the thread is left behind and its value thrown away."""

    def __init__(self, function: Callable[[], Any], done: Callable[[], None]) -> None:
        super().__init__()
        context = contextvars.copy_context()

        def call() -> None:
            try:
                self._value = context.run(function)
            except BaseException as error:
                self.error = error

        self._job = _workers._Job(call, done)

    def begin(self) -> None:
        _workers._pool.submit(self._job)


class CoroutineJob(Job):
    """A coroutine on a private loop's thread."""

    def __init__(self, function: Callable[[], Awaitable[Any]], done: Callable[[], None]) -> None:
        super().__init__()
        self._private = _workers.take_loop()
        self._function, self._done = function, done
        self._task: asyncio.Task[Any] | None = None
        self._cancelled = False
        self._context = contextvars.copy_context()

    async def _call(self) -> None:
        # Caught here and not left to the task: an exit that a task raises also ends its loop.
        try:
            self._value = await self._function()
        except BaseException as error:
            self.error = error

    def _end(self, _task: asyncio.Task[Any]) -> None:
        _workers.give_back_loop(self._private)
        self._done()

    def begin(self) -> None:
        self._private.loop.call_soon_threadsafe(self._begin)

    def _begin(self) -> None:
        self._task = self._context.run(self._private.loop.create_task, self._call())
        self._task.add_done_callback(self._end)
        if self._cancelled:
            self._task.cancel()

    def cancel(self) -> None:
        """Cancels it."""
        self._cancelled = True
        self._private.loop.call_soon_threadsafe(lambda: self._task is not None and self._task.cancel())


def on_thread(function: Callable[[], Any], done: Callable[[], None]) -> ThreadJob:
    """A call of ``function`` on a worker thread, to be begun; ``done`` is called there when it has ended."""
    return ThreadJob(function, done)


def on_loop(function: Callable[[], Any], done: Callable[[], None]) -> CoroutineJob:
    """The coroutine that ``function`` makes, to be begun; ``done`` is called on its loop's thread when it has ended."""
    return CoroutineJob(function, done)
