"""Every way in which a hook can fail, for every kind of hook: the table that fail-closed is tested with."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import hookwright as hw


@dataclass(frozen=True)
class Failure:
    """One way to fail. ``says``: what the reason must hold. ``halts``: whether this is also a way to halt."""

    name: str
    says: str
    body: Callable[[Any], Any] | None = None
    command: str | None = None
    is_async: bool = False
    halts: bool = False
    budget: float = 30.0
    timeout: float = 10.0


class _Odd(BaseException):
    pass


def _raise(error: BaseException) -> Callable[[Any], Any]:
    def body(event: Any) -> Any:
        raise error

    return body


def _spin(event: Any) -> Any:
    while True:
        pass


def _swallow(event: Any) -> Any:
    for _ in range(3):
        try:
            while True:
                pass
        except BaseException:
            pass
    return hw.allow("I looked at everything")


async def _sleep(event: Any) -> Any:
    await asyncio.sleep(60)


async def _sleep_on(event: Any) -> Any:
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)


async def _allow_too_late(event: Any) -> Any:
    try:
        await asyncio.sleep(60)
    except BaseException:
        return hw.allow("I looked at everything")


async def _raise_from_a_cancelled_task(event: Any) -> Any:
    task = asyncio.ensure_future(asyncio.sleep(60))
    task.cancel()
    await task


def _answer(value: Any) -> Callable[[Any], Any]:
    return lambda event: value


#: For functions, methods and callable objects, synchronous and asynchronous.
CALLS = [
    Failure("raises", "ValueError: broken", _raise(ValueError("broken"))),
    Failure("raises with no text", "RuntimeError", _raise(RuntimeError())),
    Failure("raises outside Exception", "_Odd: odd", _raise(_Odd("odd"))),
    Failure("exits the interpreter", "SystemExit: 0", _raise(SystemExit(0))),
    Failure("raises StopIteration", "StopIteration", _raise(StopIteration("x"))),
    Failure("loops past its timeout", "deadline", _spin, timeout=0.05),
    Failure("swallows the deadline and allows", "deadline", _swallow, timeout=0.05),
    Failure("unknown key", 'did you mean "action"', _answer({"actoin": "allow"})),
    Failure("unknown action", 'unknown action "alow"', _answer({"action": "alow"})),
    Failure("action of a wrong type", "action must be a string", _answer({"action": 1})),
    Failure("reason alone", "reason without an action", _answer({"reason": "fine"})),
    Failure("writes what no hook may write", "unknown key", _answer({"tool_name": "other"})),
    Failure("writes a field of another event", "assistant_output", _answer({"assistant_output": "x"})),
    Failure("returns a number", "value of type int", _answer(42)),
    Failure("returns text", "value of type str", _answer("allow")),
    Failure("returns a list", "value of type list", _answer([hw.allow()])),
    Failure("returns a class", "value of type type", _answer(hw.HookResult)),
    Failure("returns bytes in a dict", "no JSON form", _answer({"action": b"allow"})),
    Failure("budget used up before its turn", "ran out before its turn", _answer(None), budget=0.05),
]
#: For asynchronous ones only.
COROUTINES = [
    Failure("waits past its timeout", "deadline", _sleep, is_async=True, timeout=0.05),
    Failure("allows after its cancellation", "deadline", _allow_too_late, is_async=True, timeout=0.05),
    Failure("does not end when cancelled", "deadline", _sleep_on, is_async=True, timeout=0.05),
    Failure("cancelled by its own task", "Cancelled", _raise_from_a_cancelled_task, is_async=True),
]
#: For commands.
COMMANDS = [
    Failure("exits with 1", "exited with 1: broken", command="echo broken >&2; exit 1"),
    Failure("exits with 2 in silence", "blocked by", command="exit 2", halts=True),
    Failure("is not found", "command not found", command="no-such-command-at-all"),
    Failure("is not executable", "126", command="/dev/null"),
    Failure("dies by a signal", "signal 9", command="kill -9 $$"),
    Failure("is killed by its own abort", "signal 6", command="kill -6 $$"),
    Failure("prints noise", "no JSON object", command="echo all is well"),
    Failure("prints two documents", "two JSON documents", command="echo '{}'; echo '{\"action\": \"allow\"}'"),
    Failure("prints half a document", "ends too early", command='printf \'{"action": "all\''),
    Failure("prints text after the document", "after its JSON object", command="echo '{}'; echo done"),
    Failure("prints something other than UTF-8", "not UTF-8", command="printf '{}\\377'"),
    Failure("unknown key", 'did you mean "action"', command='echo \'{"actoin": "allow"}\''),
    Failure("unknown action", 'unknown action "alow"', command='echo \'{"action": "alow"}\''),
    Failure("prints a list", "no JSON object", command="echo '[1]'"),
    Failure("prints too much", "more than 8 MiB", command="head -c 9000000 /dev/zero"),
    Failure("times out", "deadline", command="sleep 60", timeout=0.1),
    Failure("says allow and times out", "deadline", command='echo \'{"action": "allow"}\'; sleep 60', timeout=0.1),
    Failure("budget used up before its turn", "ran out before its turn", command="true", budget=0.05),
]


class _Methods:
    def __init__(self, body: Callable[[Any], Any]) -> None:
        self.body = body

    def method(self, event: Any) -> Any:
        return self.body(event)

    async def coroutine_method(self, event: Any) -> Any:
        return await _resolve(self.body, event)


class _Callable(_Methods):
    def __call__(self, event: Any) -> Any:
        return self.body(event)


class _AsyncCallable(_Methods):
    async def __call__(self, event: Any) -> Any:
        return await _resolve(self.body, event)


async def _resolve(body: Callable[[Any], Any], event: Any) -> Any:
    await asyncio.sleep(0)
    value = body(event)
    return await value if asyncio.iscoroutine(value) else value


def _function(body: Callable[[Any], Any]) -> Any:
    def function(event: Any) -> Any:
        return body(event)

    return function


def _coroutine_function(body: Callable[[Any], Any]) -> Any:
    async def function(event: Any) -> Any:
        return await _resolve(body, event)

    return function


def _returns_coroutine(body: Callable[[Any], Any]) -> Any:
    return lambda event: _resolve(body, event)


#: What a hook can be made of, by name: how one is made from a body.
KINDS: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "function": _function,
    "bound method": lambda body: _Methods(body).method,
    "callable object": _Callable,
    "function in a thread": _function,
    "async function": _coroutine_function,
    "async bound method": lambda body: _Methods(body).coroutine_method,
    "async callable object": _AsyncCallable,
    "function that returns a coroutine": _returns_coroutine,
}
ASYNC_KINDS = [name for name in KINDS if "async" in name or "coroutine" in name]


def cases() -> list[tuple[str, Failure]]:
    """All pairs of kind and failure that there are."""
    calls = [(kind, failure) for kind in KINDS for failure in CALLS if not _endless(kind, failure)]
    coroutines = [(kind, failure) for kind in ASYNC_KINDS for failure in COROUTINES]
    return calls + coroutines + [("shell", failure) for failure in COMMANDS]


def _endless(kind: str, failure: Failure) -> bool:
    """A thread that is left behind in an endless loop would run until the tests end."""
    return kind == "function in a thread" and failure.body in (_spin, _swallow)


def add(chain: hw.HookChain, kind: str, failure: Failure, event: str, name: str = "failing", **options: Any) -> None:
    """Adds a hook of this kind that fails in this way; the chain's budget is set as the failure needs it."""
    chain.budget = failure.budget
    if failure.budget < 1:
        chain.add(_spin, event, name=f"slow {event}", order=-1)
    if kind == "shell":
        assert failure.command is not None
        chain.add(hw.ShellHook(event, failure.command, name=name, timeout=failure.timeout, **options))
    else:
        assert failure.body is not None
        isolate = {"isolate": "thread"} if kind == "function in a thread" else {}
        chain.add(KINDS[kind](failure.body), event, name=name, timeout=failure.timeout, **isolate, **options)
