"""Small helpers for asyncio: proxies that carry a deadline, futures that another thread completes."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable
from typing import Any


class RemoteFailure(Exception):
    """A hook's failure, read on the thread on which it happened."""

    def __init__(self, message: str, detail: str, is_final: bool = False) -> None:
        super().__init__(message)
        self.hook_failure_detail = detail
        #: Whether another attempt would come to nothing else.
        self.hook_failure_is_final = is_final


class _Proxy(asyncio.Future[None]):
    """Stands in for the future that a hook waits on, so that its deadline can end the wait.

    The task waits on the proxy; cancelling the proxy cancels the real future, and the proxy is done when that is.
    """

    expired = False
    cancel_asked = False

    def __init__(self, inner: asyncio.Future[Any], seconds: float) -> None:
        loop = inner.get_loop()
        super().__init__(loop=loop)
        self._inner = inner
        inner._asyncio_future_blocking = False
        inner.add_done_callback(self._wake)
        self._timer = loop.call_later(seconds, self._expire)
        self._asyncio_future_blocking = True

    def _wake(self, _inner: asyncio.Future[Any]) -> None:
        self._timer.cancel()
        if not self.done():
            self.set_result(None)

    def _expire(self) -> None:
        self.expired = True
        self._inner.remove_done_callback(self._wake)
        self._inner.cancel()
        if not self.done():
            self.set_result(None)

    def cancel(self, msg: Any = None) -> bool:
        if self.done():
            return False
        self.cancel_asked = True
        return self._inner.cancel(msg)


def proxy(future: Any, seconds: float) -> _Proxy | None:
    """A proxy for an asyncio future that is being awaited; ``None`` for a bare ``yield``."""
    if getattr(future, "_asyncio_future_blocking", None) is None:
        if future is not None:
            _refuse_foreign_loop()
        return None
    return _Proxy(future, seconds)


def _refuse_foreign_loop() -> None:
    if "trio" in sys.modules and _under_trio():
        raise RuntimeError(
            "hookwright runs asynchronously on asyncio (or uvloop), not on trio; "
            "use the synchronous chain.run(...) or agent.run_sync(...) in a worker thread"
        )


def _under_trio() -> bool:
    try:
        import sniffio  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return False
    try:
        return bool(sniffio.current_async_library() == "trio")
    except sniffio.AsyncLibraryNotFoundError:
        return False


def open_future() -> tuple[asyncio.Future[None], Callable[[], None]]:
    """A future of the running loop and a function by which any thread may complete it."""
    _refuse_foreign_loop()
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def done() -> None:
        if not future.done():
            future.set_result(None)

    def wake() -> None:
        with contextlib.suppress(RuntimeError):  # The loop was closed: nobody waits any more.
            loop.call_soon_threadsafe(done)

    return future, wake


def cancel_requests() -> int:
    """How many cancellations the running task has that it has not taken back; 0 before Python 3.11."""
    try:
        cancelling = getattr(asyncio.current_task(), "cancelling", None)
    except RuntimeError:  # No loop runs here.
        return 0
    return cancelling() if cancelling else 0
