"""A run under way, as `Agent.cancel` sees it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._workers import CallerCancelled

if TYPE_CHECKING:
    from ._native import RunResult, Turn


class Cancelled(CallerCancelled):
    """Ends a wait of a synchronous run that `Agent.cancel` was called for."""


class Running:
    """One run under way.

    A request to cancel is a token on the turn: whoever sees it first takes it, so that the run is cancelled once and
    the hooks that hear of its end are not.
    """

    def __init__(self, turn: Turn, *, detached: bool = False) -> None:
        self.turn = turn
        self.result: RunResult | None = None
        self.over = False
        self._asked = self._interrupted = False
        self._task: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: threading.Event | None = None
        if not detached:
            self._loop = asyncio._get_running_loop()
            if self._loop is not None:
                self._task = asyncio.current_task(self._loop)
        self._cancelling_before = self._cancelling()

    def _cancelling(self) -> int:
        cancelling = getattr(self._task, "cancelling", None)  # Python 3.11.
        return 0 if cancelling is None else int(cancelling())

    def cancel(self) -> None:
        """Asks for the end of the run, from any thread."""
        self._asked = True
        self.turn.request_cancel()
        waiting = self._waiting
        if waiting is not None:
            waiting.set()
        if self._task is not None and self._loop is not None:
            with contextlib.suppress(RuntimeError):  # The loop is closed: the run is over.
                self._loop.call_soon_threadsafe(self._interrupt)

    def _interrupt(self) -> None:
        # A run that ended or has seen the request meanwhile is not to be cancelled: that would hit its caller.
        if not self.over and self._task is not None and self.turn.take_cancel():
            self._interrupted = True
            self._task.cancel()

    def check(self) -> None:
        """Raises `Cancelled` once if the run is to be cancelled."""
        if self.turn.take_cancel():
            raise Cancelled

    def wait(self, finished: threading.Event, seconds: float | None) -> bool:
        """Waits for an event that `cancel` sets as well."""
        outer, self._waiting = self._waiting, finished
        try:
            self.check()
            done = finished.wait(seconds)
            self.check()
            return done
        finally:
            self._waiting = outer

    def take_back(self, error: BaseException) -> bool:
        """Whether ``error`` is the cancellation that `Agent.cancel` asked for, so that the run returns its result."""
        if not self._asked or not isinstance(error, asyncio.CancelledError):
            return False
        if self._interrupted:
            self._interrupted = False
            uncancel = getattr(self._task, "uncancel", None)
            if uncancel is not None:
                uncancel()
        return self._cancelling() <= self._cancelling_before


class Runs:
    """The runs of an agent that are going on."""

    def __init__(self) -> None:
        self._running: set[Running] = set()
        self._idle: list[Callable[[], None]] = []

    def add(self, running: Running) -> None:
        self._running.add(running)

    def discard(self, running: Running) -> None:
        """Takes out a run that is over, and tells who waits for the last."""
        self._running.discard(running)
        if not self._running:
            waiting, self._idle = self._idle, []
            for tell in waiting:
                tell()

    def cancel(self) -> None:
        """Asks for the end of all."""
        for running in list(self._running):
            running.cancel()

    def settle(self, seconds: float, afterwards: Callable[[], None]) -> bool:
        """Waits until none goes on, where this thread may wait: True if so. Else ``afterwards`` is called then."""
        if not self._running:
            return True
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is None:
            finished = threading.Event()
            self._idle.append(finished.set)
            finished.wait(seconds)
            if not self._running:
                return True
        self._idle.append(afterwards)
        return False

    async def asettle(self, seconds: float) -> None:
        """Waits on the running loop until none goes on, or for so many seconds."""
        if not self._running:
            return
        loop = asyncio.get_running_loop()
        idle: asyncio.Future[None] = loop.create_future()

        def done() -> None:
            if not idle.done():
                idle.set_result(None)

        def tell() -> None:
            with contextlib.suppress(RuntimeError):  # The loop is closed: nobody waits any more.
                loop.call_soon_threadsafe(done)

        self._idle.append(tell)
        await asyncio.wait([idle], timeout=seconds)
