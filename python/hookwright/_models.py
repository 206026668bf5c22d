"""Models that need no server: a script, and a Python function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Union

from . import _native
from ._functions import is_coroutine_function
from ._native import Reply, Request, ToolCall
from .exceptions import ModelError

Answer = Union[str, ToolCall, Sequence[ToolCall], Reply, "ModelError"]


@dataclass(frozen=True)
class Step:
    """One answer of a script, and what the question has to contain for it to fit.

    Args:
        reply: text, a `ToolCall`, a list of them, a `Reply`, or an exception that stands for a failed request.
        expect: text that the last message from the user or a tool must contain.
    """

    __module__ = "hookwright"

    reply: Any
    expect: str | None = None


class Scripted:
    """A model that answers from a fixed list, or from a generator. Strict: where the script does not fit, the request
    fails and says what was asked and how many answers were used.

    Args:
        replies: text, a `ToolCall`, a list of them, a `Reply`, a `Step`, or an exception for a failed request, one
            after the other; or an iterator that makes them as they are needed.
        name: the model's name in events.

    Example:
        >>> import hookwright as hw
        >>> agent = hw.Agent(hw.Scripted(["hello"]))
        >>> agent.run_sync("hi").text
        'hello'
    """

    __module__ = "hookwright"

    def __init__(self, replies: Iterable[Any], *, name: str = "scripted") -> None:
        if isinstance(replies, (str, ToolCall, Reply)):
            raise TypeError("Scripted takes a list of replies; put this one into brackets")
        self.name = name
        self.native: _native.Script | None = None
        self._replies: Iterator[Any] | None = None
        if isinstance(replies, Iterator):
            self._replies = replies
        else:
            steps = [reply if isinstance(reply, Step) else Step(reply) for reply in replies]
            self.native = _native.Script([(step.reply, step.expect) for step in steps])

    @property
    def used(self) -> int | None:
        """How many replies were used; ``None`` for an iterator."""
        return self.native.used if self.native is not None else None

    @property
    def remaining(self) -> int | None:
        """How many replies are left; ``None`` for an iterator."""
        return self.native.remaining if self.native is not None else None

    def answer(self, request: Request) -> Any:
        """The next reply of an iterator."""
        assert self._replies is not None
        try:
            reply = next(self._replies)
        except StopIteration:
            messages = request.messages
            asked = messages[-1].text[:200] if messages else ""
            raise _failure("script", f"the script is at its end, and the model was asked: {asked!r}") from None
        if isinstance(reply, Step):
            asked = request.messages[-1].text if request.messages else ""
            if reply.expect is not None and reply.expect not in asked:
                raise _failure("script", f"the script expects {reply.expect!r} in what is asked: {asked[:200]!r}")
            reply = reply.reply
        if isinstance(reply, BaseException):
            raise reply
        return reply

    def __repr__(self) -> str:
        if self.native is None:
            return f"<Scripted {self.name!r} from an iterator>"
        return f"<Scripted {self.name!r}: {self.used} replies used, {self.remaining} left>"


def _failure(kind: str, message: str) -> ModelError:
    return ModelError(message, kind=kind)


class FunctionModel:
    """A Python function as a model: how anything can answer an agent.

    Args:
        function: takes a `Request`; returns text, a `ToolCall`, a list of them, or a `Reply`. Synchronous ones run on
            a worker thread, so that they never block the event loop.
        name: the model's name in events; the function's by default.
        inline: run a synchronous function that is quick on the caller's thread.

    Example:
        >>> import hookwright as hw
        >>> def shout(request):
        ...     return request.messages[-1].text.upper()
        >>> hw.Agent(hw.FunctionModel(shout)).run_sync("hi").text
        'HI'
    """

    __module__ = "hookwright"

    def __init__(
        self, function: Callable[[Request], Any | Awaitable[Any]], *, name: str | None = None, inline: bool = False
    ) -> None:
        if not callable(function):
            raise TypeError(f"FunctionModel takes a function, not {function!r}")
        self.function = function
        self.name = name or getattr(function, "__name__", type(function).__name__)
        self.inline = inline
        self.is_async = is_coroutine_function(function)

    def __repr__(self) -> str:
        return f"<FunctionModel {self.name!r}>"
