"""What the two drivers of a turn share: the work to be done, how calls are grouped, what answers mean."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from ._native import Session, Turn, _call_interruptibly
from ._servers import ServerModel
from ._tools import Context, Tool
from ._workers import CallerCancelled

if TYPE_CHECKING:
    from ._agent import Agent
    from ._running import Running

#: A call as the turn hands it over: which tool, the call's id, the arguments, whether it may run beside others,
#: and whether it was let through because it only reads.
Call = tuple[int, str, dict[str, Any], bool, bool]
#: What came of a call: its kind, the value or exception, and seconds; ``None`` if it was cancelled.
CallAnswer = tuple[str, Any, float] | None


class Work:
    """One turn and everything its effects need; entered for as long as it goes on."""

    def __init__(self, agent: Agent, turn: Turn, running: Running, session: Session) -> None:
        self.agent = agent
        self.turn = turn
        self.running = running
        self.session = session
        #: What the model's function raised, for the traceback of the error that the run ends with.
        self.model_error: BaseException | None = None
        #: The request to a server that is under way.
        self.model_call: _native.ModelCall | None = None
        #: The answer as a value of the agent's output type, in a tuple; ``None`` while there is none.
        self.output: tuple[Any] | None = None
        seconds = agent._limits["max_seconds"]
        self.end = None if seconds is None else time.monotonic() + seconds

    @property
    def cwd(self) -> Path:
        """The folder that tools are told."""
        return self.agent.cwd or Path(self.session.cwd)

    @property
    def keeps_whole(self) -> bool:
        """Whether there is a place for results that are too long to be shown."""
        return self.session.path is not None

    def __enter__(self) -> Work:
        self.agent._runs.add(self.running)
        return self

    def __exit__(self, *_: object) -> None:
        self.running.over = True
        self.agent._runs.discard(self.running)

    def context(self, tool: Tool[..., Any], call_id: str, reading: bool) -> Context | None:
        """What a tool may know of where its call comes from, if it asks for that."""
        if not tool._takes_context:
            return None
        return Context(
            agent=self.agent.name,
            session_id=self.session.id,
            turn_id=self.session.open_turn,
            call_id=call_id,
            cwd=self.cwd,
            reading=reading,
            _work=self,
        )

    def check_output(self, text: str) -> str | None:
        """What is wrong with an answer that has to have a type."""
        assert self.agent.output_type is not None
        value, problem = self.agent.output_type.read(text)
        if problem is None:
            self.output = (value,)
        return problem

    def seconds(self, seconds: float | None = None) -> float | None:
        """How long something may take that has ``seconds`` of its own: no longer than the turn."""
        if self.end is None:
            return seconds
        left = max(0.0, self.end - time.monotonic())
        return left if seconds is None else min(seconds, left)

    def is_over_time(self) -> bool:
        """Whether the turn's time is used up."""
        return self.end is not None and time.monotonic() >= self.end

    def overdue(self, tool: Any, began: float) -> CallAnswer:
        """The answer for a call that was given up: its own time was up, or the turn's."""
        if self.is_over_time():
            return "expired", (tool.name, True), time.perf_counter() - began
        return "timeout", (tool.name, tool.timeout), time.perf_counter() - began

    def not_begun(self, tool: Any) -> CallAnswer:
        """The answer for a call that came to its turn when the time was used up."""
        return "expired", (tool.name, False), 0.0


def segments(calls: Sequence[Call]) -> Iterator[Sequence[int]]:
    """The positions of calls that run side by side, one group after the other: a call that may not run beside others
    is a group of its own, so that what it does comes after what stands before it."""
    group: list[int] = []
    for position, (_, _, _, parallel, _) in enumerate(calls):
        if parallel:
            group.append(position)
            continue
        if group:
            yield group
            group = []
        yield [position]
    if group:
        yield group


def open_call(work: Work, payload: Any) -> _native.ModelCall | None:
    """The request to a server that is under way, or that this begins; None if another kind of model is asked."""
    if payload is not None and isinstance(work.agent.model, ServerModel):
        request, streamed = payload
        # Pieces that nobody looks at wake nobody.
        work.model_call = _native.launch_model(work.agent.model.native, request, streamed, streamed)
    return work.model_call


class Failed(Exception):
    """Stands for what a user's function raised, an exit or the cancellation of a task of its own included, so that it
    is not taken for the end of whoever called it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a user's function on this thread.

    Raises:
        Failed: with what it raised, but for an interrupt, which is meant for this thread.
        CallerCancelled: when an interrupt ended it that the event loop holds back.
    """
    try:
        return _call_interruptibly(function, *arguments)
    except (KeyboardInterrupt, CallerCancelled):
        raise
    except BaseException as error:
        raise Failed(error) from None


def is_awaitable(value: Any) -> bool:
    """Whether a synchronous function gave back something that has to be awaited."""
    return hasattr(value, "__await__")


def decision(answer: Any) -> tuple[str, str | None]:
    """What an approver's answer means. Anything that is not clearly a yes is a no."""
    if answer is True or answer == "allow":
        return "allow", None
    if answer == "always":
        return "always", None
    if isinstance(answer, tuple) and len(answer) == 2:
        verdict, why = answer
        return decision(verdict)[0], str(why)
    if answer is None or answer is False or answer == "deny":
        return "deny", None
    return "deny", f"the approver answered {answer!r}, which is neither True nor False"


def failed_decision(error: BaseException) -> tuple[str, str | None]:
    """What it means that the approver failed: a no as well."""
    return "deny", f"the approver failed ({type(error).__name__}: {error})"
