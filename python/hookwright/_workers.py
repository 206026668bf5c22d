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
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

from . import _aio
from ._watchdog import Deadline

T = TypeVar("T")

#: How long an idle worker thread waits for more work, in seconds.
_IDLE_SECONDS = 10.0


#: How often a synchronous wait inside an event loop looks whether its task is to be cancelled, in seconds.
_LOOK_SECONDS = 0.02


class CallerCancelled(asyncio.CancelledError):
    """The task in which a chain runs synchronously was asked to cancel, as asyncio does at Ctrl-C."""


#: How the synchronous agent run on this thread waits, if there is one: so that it can be cancelled meanwhile.
_waiting = threading.local()


@contextlib.contextmanager
def waiting_by(wait: Callable[[threading.Event, float | None], bool]) -> Iterator[None]:
    """Has everything that waits on this thread wait by ``wait``."""
    outer = getattr(_waiting, "wait", None)
    _waiting.wait = wait
    try:
        yield
    finally:
        _waiting.wait = outer


def _wait(finished: threading.Event, seconds: float) -> bool:
    """Waits until ``finished``, ``seconds`` at most.

    Raises:
        CallerCancelled: when this runs in a task that is asked to cancel meanwhile (from Python 3.11 on).
    """
    wait = getattr(_waiting, "wait", None)
    if wait is not None:
        return bool(wait(finished, seconds))
    try:
        cancelling = getattr(asyncio.current_task(), "cancelling", None)
    except RuntimeError:  # No loop runs here, so nothing but a signal can ask for anything.
        cancelling = None
    if cancelling is None:
        return finished.wait(seconds)
    before = cancelling()
    end = time.monotonic() + seconds
    while not finished.wait(min(_LOOK_SECONDS, max(0.0, end - time.monotonic()))):
        if cancelling() > before:
            raise CallerCancelled()
        if time.monotonic() >= end:
            return False
    return True


class _Job:
    """One call that runs on a worker thread, and whoever waits for it."""

    __slots__ = ("_call", "_done", "error", "value")

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
#: The private loops that nobody waits on; appending and popping are atomic.
_loops: list[_PrivateLoop] = []


def _after_fork() -> None:
    """A forked child has none of its parent's threads."""
    global _pool
    _pool = _Pool()
    _loops.clear()


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
    if not _wait(finished, seconds):
        raise Deadline("its thread had not returned at the deadline and was left behind")
    return job.result()  # type: ignore[no-any-return]


async def in_thread(function: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    """Awaits ``function`` on a worker thread; when the wait is cancelled, the thread is left behind."""
    future, wake = _aio.open_future()
    context = contextvars.copy_context()
    job = _Job(lambda: context.run(function, *arguments), wake)
    _pool.submit(job)
    await future
    return job.result()  # type: ignore[no-any-return]


class _PrivateLoop:
    """An event loop on a thread of its own, for one synchronous wait at a time."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self._serve, name="hookwright-loop", daemon=True).start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()


def take_loop() -> _PrivateLoop:
    """A private loop that nobody uses: the one that was used last, or a new one."""
    try:
        return _loops.pop()
    except IndexError:
        return _PrivateLoop()


def give_back_loop(private: _PrivateLoop) -> None:
    """Lets the next synchronous wait use the loop."""
    _loops.append(private)


class _Outcome:
    """What became of an awaitable. Kept apart from its task: an interrupt that a task raises also ends its loop."""

    value: Any = None
    error: BaseException | None = None

    async def of(self, awaitable: Awaitable[Any]) -> None:
        try:
            self.value = await awaitable
        except BaseException as error:
            self.error = error


def run_on_private_loop(awaitable: Awaitable[T], seconds: float) -> T:
    """Runs an awaitable on a private loop's thread while this thread waits, so it works inside a running loop as well.

    The loop that was used last is used again, so that what an asynchronous hook keeps open stays usable; a wait within
    a wait, or on another thread, gets another loop. The awaitable keeps its own deadline; half a second later this side
    stops waiting whatever happens, and the loop is left behind until it is free again.

    Raises:
        Deadline: when the deadline passed.
    """
    private = take_loop()
    finished = threading.Event()
    outcome = _Outcome()
    box: list[asyncio.Task[None]] = []
    context = contextvars.copy_context()

    def end(_task: asyncio.Task[None]) -> None:
        give_back_loop(private)
        finished.set()

    def start() -> None:
        task = context.run(private.loop.create_task, outcome.of(awaitable))
        box.append(task)
        task.add_done_callback(end)

    private.loop.call_soon_threadsafe(start)
    try:
        if not _wait(finished, seconds + 0.5):
            raise Deadline("it kept its event loop from running past its deadline, and was left behind")
    except BaseException:
        private.loop.call_soon_threadsafe(lambda: [task.cancel() for task in box])
        raise
    if outcome.error is not None:
        raise outcome.error
    return outcome.value  # type: ignore[no-any-return]


def warn_of_blocking(text: str) -> None:
    """Says once that a synchronous hook kept an event loop waiting."""
    warnings.warn(text, RuntimeWarning, stacklevel=3)
