"""Threads for code that may block: daemon threads that are reused, and a private event loop for synchronous runs.

Threads that are stuck in C code are left behind; being daemons they never keep the process from exiting.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import queue
import threading
import warnings
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from ._watchdog import Deadline

T = TypeVar("T")

#: How long an idle worker thread waits for more work, in seconds.
_IDLE_SECONDS = 10.0


class _Job:
    """One call that runs on a worker thread, and whoever waits for it."""

    __slots__ = ("_call", "_done", "_lock", "error", "value")

    def __init__(self, call: Callable[[], Any], done: Callable[[], None]) -> None:
        self._call = call
        self._done = done
        self.value: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.value = self._call()
        except BaseException as error:
            self.error = error
        self._done()

    def result(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


class _Pool:
    """Worker threads, as many as there are calls under way; an idle one takes the next call."""

    def __init__(self) -> None:
        self._idle: list[queue.SimpleQueue[_Job | None]] = []
        self._lock = threading.Lock()

    def submit(self, job: _Job) -> None:
        with self._lock:
            inbox = self._idle.pop() if self._idle else None
        if inbox is None:
            inbox = queue.SimpleQueue()
            threading.Thread(target=self._work, args=(inbox,), name="hookwright-worker", daemon=True).start()
        inbox.put(job)

    def _work(self, inbox: queue.SimpleQueue[_Job | None]) -> None:
        while True:
            try:
                job = inbox.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    if inbox in self._idle:
                        self._idle.remove(inbox)
                        return
                continue  # A job was handed over at the same moment.
            if job is None:
                return
            job.run()
            del job
            with self._lock:
                self._idle.append(inbox)


_pool = _Pool()
_loop: asyncio.AbstractEventLoop | None = None
_loop_lock = threading.Lock()


def _after_fork() -> None:
    """A forked child has none of its parent's threads."""
    global _pool, _loop, _loop_lock
    _pool = _Pool()
    _loop = None
    _loop_lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def call_in_thread(function: Callable[..., T], arguments: tuple[Any, ...], seconds: float) -> T:
    """Calls ``function`` on a worker thread and waits at most ``seconds``.

    Raises:
        Deadline: when it has not returned by then; the thread is left behind.
    """
    finished = threading.Event()
    context = contextvars.copy_context()
    job = _Job(lambda: context.run(function, *arguments), finished.set)
    _pool.submit(job)
    if not finished.wait(seconds):
        raise Deadline("its thread had not returned at the deadline and was left behind")
    return job.result()  # type: ignore[no-any-return]


async def in_thread(function: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    """Awaits ``function`` on a worker thread; when the wait is cancelled, the thread is left behind."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def done() -> None:
        if not future.done():
            future.set_result(None)

    def wake() -> None:
        with contextlib.suppress(RuntimeError):  # The loop was closed: nobody waits any more.
            loop.call_soon_threadsafe(done)

    context = contextvars.copy_context()
    job = _Job(lambda: context.run(function, *arguments), wake)
    _pool.submit(job)
    await future
    return job.result()  # type: ignore[no-any-return]


def _private_loop() -> asyncio.AbstractEventLoop:
    global _loop
    with _loop_lock:
        if _loop is None or _loop.is_closed():
            loop = asyncio.new_event_loop()

            def serve() -> None:
                asyncio.set_event_loop(loop)
                loop.run_forever()

            threading.Thread(target=serve, name="hookwright-loop", daemon=True).start()
            _loop = loop
        return _loop


def _forget_loop(stuck: asyncio.AbstractEventLoop) -> None:
    global _loop
    with _loop_lock:
        if _loop is stuck:
            _loop = None


async def _await(awaitable: Awaitable[T]) -> T:
    return await awaitable


def run_on_private_loop(awaitable: Awaitable[T], seconds: float) -> T:
    """Runs an awaitable on a private loop's thread while this thread waits, so it works inside a running loop as well.

    The awaitable keeps its own deadline; half a second later this side stops waiting whatever happens.

    Raises:
        Deadline: when the deadline passed.
    """
    loop = _private_loop()
    finished = threading.Event()
    box: list[asyncio.Task[T]] = []
    context = contextvars.copy_context()

    def start() -> None:
        coroutine: Coroutine[Any, Any, T] = _await(awaitable)
        task = context.run(loop.create_task, coroutine)
        box.append(task)
        task.add_done_callback(lambda _: finished.set())

    loop.call_soon_threadsafe(start)
    try:
        if not finished.wait(seconds + 0.5):
            _forget_loop(loop)
            raise Deadline("it kept its event loop from running past its deadline, and was left behind")
    except BaseException:
        if box:
            loop.call_soon_threadsafe(box[0].cancel)
        raise
    task = box[0]
    if task.cancelled():
        raise Deadline("it was cancelled")
    error = task.exception()
    if error is not None:
        raise error
    return task.result()


def warn_of_blocking(text: str) -> None:
    """Says once that a synchronous hook kept an event loop waiting."""
    warnings.warn(text, RuntimeWarning, stacklevel=3)
