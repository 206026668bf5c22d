"""The drivers of a goal: what the native machine wants done, done on the caller's event loop or thread.

The rules are in the machine. A driver knows how to run an agent, look at a folder, and wait.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _workers
from ._drive_async import drive
from ._drive_blocking import drive_blocking
from ._failures import describe
from ._native import RunResult
from .exceptions import ModelError, SessionBusy, SessionError

if TYPE_CHECKING:
    from ._agent import Agent
    from ._goal import Goal

#: Who speaks to the agents for the runner.
_SENDER = "goal"
#: How much of a call is kept as evidence, in characters.
_EVIDENCE = 500

#: Tasks of follow-ups, held on to until they are over: an event loop does not.
_tasks: set[asyncio.Task[None]] = set()


async def pursue(goal: Goal) -> None:
    """Pursues a goal to its end on the running loop."""
    try:
        while (step := _next(goal)) is not None:
            generation, effect = step
            value = await _perform(goal, effect)
            goal._machine.answer(generation, effect["kind"], value)
            if effect["kind"] == "review" and not _is_review(goal):
                await _dismiss(goal)
        await _all_heard(goal)
        goal._machine.save()
    finally:
        await _dismiss(goal)


def pursue_blocking(goal: Goal) -> None:
    """The same on the calling thread."""
    try:
        while (step := _next(goal)) is not None:
            generation, effect = step
            value = _perform_blocking(goal, effect)
            if goal._abandoned:
                raise _workers.CallerCancelled
            goal._machine.answer(generation, effect["kind"], value)
            if effect["kind"] == "review" and not _is_review(goal):
                _dismiss_blocking(goal)
        _all_heard_blocking(goal)
        goal._machine.save()
    finally:
        _dismiss_blocking(goal)


def _next(goal: Goal) -> tuple[int, dict[str, Any]] | None:
    """What is to be done, once it is kept that it is being done."""
    step = goal._machine.next()
    goal._machine.save()
    return step


def _is_review(goal: Goal) -> bool:
    return bool(goal._machine.state()["phase"]["name"] == "review")


async def _perform(goal: Goal, effect: dict[str, Any]) -> dict[str, Any]:
    if effect["kind"] == "sample":
        return await _workers.in_thread(goal._sample, ())
    if effect["kind"] == "review":
        agent, text = _review_of(goal, effect)
        return await run(goal, agent, text, effect["timeout"], _SENDER)
    await _all_heard(goal)
    sender = _SENDER if effect["kind"] == "dispatch" else None
    return await run(goal, goal.executor, effect["text"], effect["timeout"], sender)


def _perform_blocking(goal: Goal, effect: dict[str, Any]) -> dict[str, Any]:
    if effect["kind"] == "sample":
        return goal._sample()
    if effect["kind"] == "review":
        agent, text = _review_of(goal, effect)
        return run_blocking(goal, agent, text, effect["timeout"], _SENDER)
    _all_heard_blocking(goal)
    sender = _SENDER if effect["kind"] == "dispatch" else None
    return run_blocking(goal, goal.executor, effect["text"], effect["timeout"], sender)


def _review_of(goal: Goal, effect: dict[str, Any]) -> tuple[Agent, str]:
    """Who reviews, and what they are told: one that has just given a bad reply is only reminded."""
    knows = goal._review is not None
    return goal._reviewing(), effect["reminder"] if knows and effect["reminder"] else effect["text"]


async def _dismiss(goal: Goal) -> None:
    """Ends the conversation of a review."""
    review = goal._take_review()
    if review is not None:
        await review._aclose_now()


def _dismiss_blocking(goal: Goal) -> None:
    review = goal._take_review()
    if review is not None:
        review._close_now()


async def run(goal: Goal, agent: Agent, text: str, seconds: float | None, sender: str | None) -> dict[str, Any]:
    """One run of an agent on the running loop, as the machine reads it."""
    began = time.perf_counter()
    try:
        with agent._work(text, None, sender=sender) as work, goal._watching(work.running, seconds) as expired:
            result = agent._check(await drive(work), work)
    except Exception as error:
        return _failed(error, began)
    return _execution(result, expired, began)


def run_blocking(goal: Goal, agent: Agent, text: str, seconds: float | None, sender: str | None) -> dict[str, Any]:
    """One run of an agent on the calling thread, as the machine reads it."""
    began = time.perf_counter()
    try:
        with agent._work(text, None, sender=sender) as work, goal._watching(work.running, seconds) as expired:
            result = agent._check(drive_blocking(work), work)
    except Exception as error:
        return _failed(error, began)
    return _execution(result, expired, began)


def begin_pass(goal: Goal, text: str, heard: Callable[[dict[str, Any]], None]) -> None:
    """Tells the executor something beside the review, on the running loop."""

    async def tell() -> None:
        value: dict[str, Any] = {"ended": "cancelled"}
        try:
            value = await run(goal, goal.executor, text, None, None)
        finally:
            heard(value)

    task = asyncio.get_running_loop().create_task(tell())
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


def pass_blocking(goal: Goal, text: str, heard: Callable[[dict[str, Any]], None]) -> None:
    """Tells the executor something beside the review, on the calling thread."""
    value: dict[str, Any] = {"ended": "cancelled"}
    try:
        value = run_blocking(goal, goal.executor, text, None, None)
    finally:
        heard(value)


async def _all_heard(goal: Goal) -> None:
    """Waits until the executor is free of what passed by the queue."""
    while goal._passing:
        await asyncio.wait([asyncio.wrap_future(passing) for passing in list(goal._passing)])


def _all_heard_blocking(goal: Goal) -> None:
    while goal._passing:
        concurrent.futures.wait(list(goal._passing))


def _failed(error: Exception, began: float) -> dict[str, Any]:
    """A run that raised. A model that fails may work in the next round, and a session may be free by then; whatever
    else is wrong with an agent stays."""
    if isinstance(error, ModelError) and isinstance(error.result, RunResult):
        return {**_execution(error.result, [], began), "ended": "error", "error": error.message}
    ended = "error" if isinstance(error, (ModelError, SessionBusy)) else "gone"
    words = error.message if isinstance(error, (ModelError, SessionError)) else describe(error)
    return {"ended": ended, "error": words, "ms": _since(began)}


def _execution(result: RunResult, expired: list[float], began: float) -> dict[str, Any]:
    ended, error = _ending(result, expired)
    usage = result.usage
    return {
        "ended": ended,
        "text": result.text,
        "error": error,
        "calls": [
            {
                "name": call.name,
                "arguments": json.dumps(call.arguments, ensure_ascii=False, separators=(",", ":"))[:_EVIDENCE],
                "result": call.result[:_EVIDENCE],
                "is_error": call.is_error,
            }
            for call in result.tool_calls
        ],
        "usage": {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
        },
        "ms": _since(began),
    }


def _ending(result: RunResult, expired: list[float]) -> tuple[str, str | None]:
    if result.status == "cancelled":
        return ("timeout", f"it took longer than {expired[0]:g} s") if expired else ("cancelled", None)
    if result.status == "limit":
        # Out of time is out of time, whoever set the limit. Other limits leave work that is worth a look.
        return ("timeout", result.reason) if result.limit == "seconds" else ("done", None)
    if result.status == "success":
        return "done", None
    return "error", result.reason


def _since(began: float) -> float:
    return (time.perf_counter() - began) * 1e3
