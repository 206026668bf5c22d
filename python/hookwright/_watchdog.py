"""The parts of the watchdog that have to be Python: the exception class, the C function that raises it, and how asyncio
answers Ctrl-C.

``PyThreadState_SetAsyncExc`` is not in the limited API's safe surface, so it is reached through ctypes.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import itertools
import signal
import threading
from collections.abc import Iterator
from typing import Any


class Deadline(BaseException):
    """Raised inside a hook whose time is up, or whose caller was interrupted. Private: what a caller sees is a run with
    status ``timeout``, or the interrupt."""


set_async_exception: Any = ctypes.pythonapi.PyThreadState_SetAsyncExc
set_async_exception.argtypes = [ctypes.c_ulong, ctypes.py_object]
set_async_exception.restype = ctypes.c_int

#: Without a type, because the oldest Python's tasks do not count their cancellations.
_TASK: Any = asyncio.Task

#: A null pointer: takes a pending exception back.
NOTHING = ctypes.py_object()


def thread() -> tuple[int, bool]:
    """The calling thread, and whether an event loop on it would hold an interrupt back.

    Only the main thread gets signals. Before Python 3.11 asyncio has no handler of its own: Ctrl-C is raised at once,
    in whatever runs.
    """
    ident = threading.get_ident()
    return ident, ident == threading.main_thread().ident and hasattr(asyncio.Task, "cancelling")


def held_back() -> tuple[int, int] | None:
    """The interrupt that `asyncio.run` has answered by cancelling its task, while the task that runs has not seen it.

    Called from another thread while the main one is inside a function that does not let the loop go on. The handler
    that `asyncio.Runner` installs knows the task that it cancels. The cancellation is under way when a task is to be
    cancelled with its next step, or when what it waits for has been cancelled.

    Returns:
        What tells this interrupt from others; ``None`` if there is none.
    """
    if _unseen:
        return id(_unseen), _unseen[-1]
    main: Any = getattr(signal.getsignal(signal.SIGINT), "keywords", {}).get("main_task")
    if not isinstance(main, _TASK) or main.done() or not main.cancelling():
        return None
    for task in (asyncio.current_task(main.get_loop()), main):
        waits_for = getattr(task, "_fut_waiter", None)
        if getattr(task, "_must_cancel", False) or (waits_for is not None and waits_for.cancelled()):
            return id(main), main.cancelling()
    return None


#: The numbers of the interrupts of a notebook's cell that the cell's event loop has not heard of.
_unseen: list[int] = []
_numbers = itertools.count(1)


@contextlib.contextmanager
def noting_interrupts() -> Iterator[None]:
    """Notes interrupts of an awaited cell for `held_back`: the kernel answers them by telling the loop to cancel the
    cell, and a function that does not let the loop go on keeps the loop from hearing it."""
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or usual in (signal.default_int_handler, None):
        yield
        return
    loop = asyncio.get_running_loop()

    def note(number: int, frame: Any) -> None:
        _unseen.append(next(_numbers))
        loop.call_soon_threadsafe(_unseen.clear)
        if callable(usual):
            usual(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is note:
            signal.signal(signal.SIGINT, usual)
