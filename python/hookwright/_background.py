"""Work that runs on another thread while this one waits or goes on."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from typing import Any

from . import _workers


class ThreadJob:
    """A function on a worker thread."""

    def __init__(self, function: Callable[[], Any], done: Callable[[], None]) -> None:
        context = contextvars.copy_context()
        self._job = _workers._Job(lambda: context.run(function), done)
        _workers._pool.submit(self._job)

    def result(self) -> Any:
        """Its value; raises what it raised."""
        return self._job.result()

    def cancel(self) -> None:
        """Gives it up. A thread cannot be ended, so it is left behind and its value thrown away."""


class CoroutineJob:
    """A coroutine on a private loop's thread."""

    def __init__(self, function: Callable[[], Awaitable[Any]], done: Callable[[], None]) -> None:
        private = _workers.take_loop()
        self._loop = private.loop
        self._task: asyncio.Task[Any] | None = None
        self._cancelled = False
        context = contextvars.copy_context()

        async def call() -> Any:
            return await function()

        def end(_task: asyncio.Task[Any]) -> None:
            _workers.give_back_loop(private)
            done()

        def begin() -> None:
            self._task = context.run(self._loop.create_task, call())
            self._task.add_done_callback(end)
            if self._cancelled:
                self._task.cancel()

        self._loop.call_soon_threadsafe(begin)

    def result(self) -> Any:
        """Its value; raises what it raised."""
        assert self._task is not None
        return self._task.result()

    def cancel(self) -> None:
        """Cancels it."""
        self._cancelled = True
        self._loop.call_soon_threadsafe(lambda: self._task is not None and self._task.cancel())


def start(function: Callable[[], Any], done: Callable[[], None]) -> ThreadJob | CoroutineJob:
    """Begins ``function`` on a worker thread; ``done`` is called there when it has ended."""
    return ThreadJob(function, done)


def start_coroutine(function: Callable[[], Any], done: Callable[[], None]) -> ThreadJob | CoroutineJob:
    """Begins the coroutine that ``function`` makes; ``done`` is called on its loop's thread when it has ended."""
    return CoroutineJob(function, done)
