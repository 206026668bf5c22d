"""The thread on which teammates' Python runs: one a process, with its own event loop, so that a busy cell of a notebook
does not stall a team."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from typing import Any

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def team_loop() -> asyncio.AbstractEventLoop:
    """The loop of this process's teams; its thread is started on first use."""
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_serve, args=(_loop,), name="hookwright-teams", daemon=True).start()
        return _loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()


def _after_fork() -> None:
    global _loop, _lock
    # The child has none of its parent's threads: a team of the parent's goes on there and not here.
    _loop, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def call_soon(loop: asyncio.AbstractEventLoop, function: Callable[..., Any], *arguments: Any) -> None:
    """Has a loop call a function, from any thread; nothing happens once the loop is closed."""
    try:
        loop.call_soon_threadsafe(function, *arguments)
    except RuntimeError:
        return
