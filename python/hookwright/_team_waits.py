"""Waiting until something holds of a team, on a thread that may block or on an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from ._team_loop import call_soon

Goal = Callable[[], bool]


class Waits:
    """Those who wait until something holds; looked at on the team's loop when a teammate goes to wait or ends."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lock = threading.Lock()
        self._waits: list[tuple[Goal, Callable[[], None]]] = []
        self._look_pending = False

    def look(self) -> None:
        """Something has changed. Runs on the team's loop."""
        if self._waits and not self._look_pending:
            self._look_pending = True
            self._loop.call_soon(self.check)

    def check(self) -> None:
        """Tells those whose goal is reached. Runs on the team's loop."""
        self._look_pending = False
        if not self._waits:
            return
        with self._lock:
            over = [wait for wait in self._waits if wait[0]()]
            self._waits = [wait for wait in self._waits if wait not in over]
        for _, tell in over:
            tell()

    def _add(self, goal: Goal, tell: Callable[[], None]) -> None:
        with self._lock:
            self._waits.append((goal, tell))
        call_soon(self._loop, self.check)

    def _forget(self, tell: Callable[[], None]) -> None:
        with self._lock:
            self._waits = [wait for wait in self._waits if wait[1] != tell]

    def block(self, goal: Goal, timeout: float | None) -> bool:
        """Waits on this thread; whether the goal was reached in time."""
        finished = threading.Event()
        self._add(goal, finished.set)
        try:
            return finished.wait(timeout)
        finally:
            self._forget(finished.set)

    async def until(self, goal: Goal, timeout: float | None) -> bool:
        """Waits on the running loop; whether the goal was reached in time."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def done() -> None:
            if not future.done():
                future.set_result(None)

        def tell() -> None:
            call_soon(loop, done)

        self._add(goal, tell)
        try:
            reached, _ = await asyncio.wait([future], timeout=timeout)
            return bool(reached)
        finally:
            self._forget(tell)
