"""Goals: an executor works, a reviewer only looks, and neither decides how often."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from . import _aio, _goal_drive, _workers
from ._agent import Agent
from ._background import on_thread
from ._chain import HookChain
from ._gates import ReviewGate
from ._goal_result import GoalResult, GoalRound, cut, result_of, round_of
from ._native import GoalMachine, Session, WorkspaceTool, workspace_fingerprint
from ._running import Running
from .exceptions import GoalError

#: How long an interrupted `Goal.run_sync` waits for its thread to close the turn, in seconds.
_AFTERMATH = 0.15


#: The name of the gate that reviewers work under, beside those that they bring.
_GATE = "goal_review_gate"


def _gated(hooks: HookChain | None) -> HookChain:
    """A chain like this one, under the gate for reviewers. Without one that judges, no reviewer runs."""
    chain = HookChain() if hooks is None else hooks.copy()
    chain.add(ReviewGate(), name=_GATE)
    judges = any(hook.name == _GATE and hook.enabled and not hook.shadow for hook in chain.hooks)
    if chain.shadow or not judges:
        raise GoalError(
            "the reviewer's chain does not apply what its hooks decide, so its ReviewGate would refuse nothing",
            hint="give the reviewer a chain without shadow=True on which no hook is disabled by that name",
        )
    return chain


def _in_real_time(seconds: float, fire: Callable[[], None]) -> Callable[[], None]:
    """Calls ``fire`` in so many seconds; returns how to call that off. Tests bring a clock of their own."""
    timer = threading.Timer(seconds, fire)
    timer.daemon = True
    timer.start()
    return timer.cancel


class Goal:
    """A goal that an executor works on and a reviewer judges, round by round, until it is reached.

    The runner owns the rounds: no model can start, wait for or steer one. The executor's words reach the reviewer only
    as claims to be checked, and the reviewer's reach the executor only as feedback. The reviewer works under
    `ReviewGate` and in a conversation of its own for each round.

    It ends as ``blocked`` when going on would be more of the same: the same error in two rounds running, a workspace
    that two rounds running left as it was, two rounds out of time, two replies of a reviewer without a verdict.

    Args:
        text: what is to be reached.
        criteria: by what the reviewer is to tell that it is.
        executor: who works. Its conversation goes on through the rounds.
        reviewer: who judges; another agent than the executor.
        max_rounds: rounds at most.
        round_timeout: seconds for the executor in one round; None for no limit but its own.
        review_timeout: seconds for one reply of the reviewer.
        workspace: the folder or folders in which a change is looked for; ``False`` for none. By default those of the
            executor's workspace tools, or its working directory.
        state_file: where the state is kept, so that `Goal.resume` can go on in another process.
        commands: words that begin with a slash and that your program understands; `send` lets them pass.

    Raises:
        ValueError: for a goal that is blank or has no rounds, for waits that are none.
        GoalError: if an unfinished goal is in the state file, or something else is.

    Example:
        >>> import hookwright as hw
        >>> coder = hw.Agent(hw.Scripted(["done"]), name="coder")
        >>> critic = hw.Agent(hw.Scripted(['{"verdict": "pass"}']), name="critic")
        >>> goal = hw.Goal("all tests pass", executor=coder, reviewer=critic, max_rounds=3)
        >>> goal
        <Goal 'all tests pass': not begun, round 0 of 3>
    """

    __module__ = "hookwright"

    def __init__(
        self,
        text: str,
        *,
        executor: Agent,
        reviewer: Agent,
        criteria: str | None = None,
        max_rounds: int = 5,
        round_timeout: float | None = None,
        review_timeout: float | None = 600.0,
        workspace: str | Path | Sequence[str | Path] | Literal[False] | None = None,
        state_file: str | Path | None = None,
        commands: Iterable[str] = (),
    ) -> None:
        spec = {
            "text": text,
            "criteria": criteria,
            "max_rounds": max_rounds,
            "round_timeout": round_timeout,
            "review_timeout": review_timeout,
        }
        for name in ("text", "criteria"):
            if not isinstance(spec[name], str) and not (name == "criteria" and criteria is None):
                raise TypeError(f"{name} must be text, not {spec[name]!r}")
        if isinstance(max_rounds, bool) or not isinstance(max_rounds, int) or not 1 <= max_rounds < 2**32:
            raise ValueError(f"max_rounds must be a whole number from 1 on, not {max_rounds!r}")
        for name in ("round_timeout", "review_timeout"):
            _check_seconds(name, spec[name])
        _check_agents(executor, reviewer)
        file = None if state_file is None else Path(state_file)
        self._prepare(GoalMachine(spec, list(commands), file, secrets.token_hex(8)), executor, reviewer, workspace)

    @classmethod
    def resume(
        cls,
        path: str | Path,
        *,
        executor: Agent,
        reviewer: Agent,
        workspace: str | Path | Sequence[str | Path] | Literal[False] | None = None,
        commands: Iterable[str] = (),
    ) -> Goal:
        """The goal that is kept in a state file; `run` goes on where it was. What was under way begins again: a round
        that was interrupted is dispatched again, with a note that says so.

        A runner that still has the goal in another process ends with a `GoalError`, and changes nothing any more.

        Args:
            path: the state file.
            executor: who works on; give its `Session` the path that it had, to go on in the same conversation.
            reviewer: who judges.
            workspace: as for `Goal`.
            commands: as for `Goal`.

        Raises:
            GoalError: if there is none, or the file is damaged or of a later version.
        """
        _check_agents(executor, reviewer)
        goal = cls.__new__(cls)
        machine = GoalMachine.resume(Path(path), list(commands), secrets.token_hex(8))
        goal._prepare(machine, executor, reviewer, workspace)
        return goal

    def _prepare(self, machine: GoalMachine, executor: Agent, reviewer: Agent, workspace: Any) -> None:
        self._machine = machine
        self.executor = executor
        self.reviewer = reviewer
        self._workspace = _folders(workspace, executor)
        self._after = _in_real_time
        self._going_on = threading.Lock()
        self._running: set[Running] = set()
        self._abandoned = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._passing: set[concurrent.futures.Future[None]] = set()
        self._review: Agent | None = None

    async def run(self) -> GoalResult:
        """Pursues the goal on the caller's event loop, to its end.

        Raises:
            GoalError: if it is being pursued already, the reviewer cannot be put under a gate, or the state cannot be
                kept.
            asyncio.CancelledError: when the task is cancelled; the state file is as if the process had died.
        """
        _aio._refuse_foreign_loop()
        with self._pursuit():
            self._loop = asyncio.get_running_loop()
            try:
                await _goal_drive.pursue(self)
            finally:
                self._loop = None
            return self._result()

    def run_sync(self) -> GoalResult:
        """Pursues the goal on the calling thread, to its end; inside a running event loop, on a thread of its own.

        Raises:
            GoalError: as `run`.
            KeyboardInterrupt: on Ctrl-C; the state file is as if the process had died.
        """
        with self._pursuit():
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                _goal_drive.pursue_blocking(self)
                return self._result()
            finished = threading.Event()
            job = on_thread(lambda: _goal_drive.pursue_blocking(self), finished.set)
            job.begin()
            try:
                _workers._wait(finished, threading.TIMEOUT_MAX)
            except BaseException:
                self._abandon()
                finished.wait(_AFTERMATH)
                raise
            job.result()
            return self._result()

    def send(
        self, text: str, *, follow_up: bool = False, attachments: Sequence[Any] = ()
    ) -> Literal["queued", "passed", "command"]:
        """Says something to the executor while the goal is under way, from any thread.

        While the executor works, it waits until the end of that run. While a verdict is awaited, it waits for the
        verdict. What waits is delivered in order, each as a turn of its own.

        Args:
            text: what to say. A known command such as ``/status`` passes: it is for your program, but for ``/cancel``,
                ``/stop`` and ``/abort``, which end the goal.
            follow_up: do not wait for the verdict, if the executor is free.
            attachments: refused, because only text can wait.

        Returns:
            What became of it.

        Raises:
            GoalError: for a message with attachments, a blank one, or when the goal is over.
        """
        if not isinstance(text, str):
            raise TypeError(f"send takes text, not {type(text).__name__}")
        kind, payload = self._machine.send(text, follow_up, bool(attachments))
        if kind == "command":
            if payload[1]:
                self.cancel()
            return "command"
        self._machine.save()
        if kind == "passed":
            self._pass(payload, text)
            return "passed"
        return "queued"

    def cancel(self) -> None:
        """Ends the goal, from any thread, with status ``"cancelled"``."""
        if self._machine.cancel():
            self._stop_runs()
            self._machine.save()

    @property
    def status(self) -> str:
        """How it ended, or ``"running"``."""
        return self._machine.status or "running"

    @property
    def result(self) -> GoalResult | None:
        """What came of it; None until it is over."""
        return self._result() if self._machine.status else None

    @property
    def rounds(self) -> tuple[GoalRound, ...]:
        """The rounds so far, the one under way not included."""
        return tuple(round_of(entry) for entry in self._machine.state()["rounds"])

    def __repr__(self) -> str:
        state = self._machine.state()
        begun = state["begun"] or state["rounds"]
        status = self._machine.status or ("running" if begun else "not begun")
        text, most = cut(state["spec"]["text"], 80), state["spec"]["max_rounds"]
        return f"<Goal {text!r}: {status}, round {len(state['rounds'])} of {most}>"

    def _repr_html_(self) -> str:
        return self._result()._repr_html_()

    # What follows is for the drivers.

    @contextlib.contextmanager
    def _pursuit(self) -> Iterator[None]:
        if not self._going_on.acquire(blocking=False):
            raise GoalError("this goal is being pursued already; a goal has one runner")
        try:
            _gated(self.reviewer.hooks)
            self._abandoned = False
            yield
        except BaseException:
            self._abandon()
            raise
        finally:
            self._going_on.release()

    def _reviewing(self) -> Agent:
        """The reviewer under its gate, in the conversation of this review."""
        if self._review is None:
            session = Session(agent=self.reviewer.name, cwd=Path(self.reviewer.session.cwd))
            session.mode = "review"  # For gates of the reviewer's own that go by it.
            self._review = self.reviewer._apart(_gated(self.reviewer.hooks), session)
        return self._review

    def _take_review(self) -> Agent | None:
        review, self._review = self._review, None
        return review

    def _sample(self) -> dict[str, Any]:
        if not self._workspace:
            return {"fingerprint": None}
        try:
            return {"fingerprint": workspace_fingerprint(self._workspace)}
        except OSError:
            return {"fingerprint": None}  # Not there to be looked at: then this breaker has nothing to say.

    @contextlib.contextmanager
    def _watching(self, running: Running, seconds: float | None) -> Iterator[list[float]]:
        """Has a run end in so many seconds, or with the goal. What it gives holds the seconds if they were up."""
        expired: list[float] = []

        def expire() -> None:
            assert seconds is not None
            expired.append(seconds)
            running.cancel()

        self._running.add(running)
        call_off = self._after(seconds, expire) if seconds is not None else None
        try:
            if self._machine.status is not None or self._abandoned:
                running.cancel()
            yield expired
        finally:
            if call_off is not None:
                call_off()
            self._running.discard(running)

    def _stop_runs(self) -> None:
        for running in list(self._running):
            running.cancel()

    def _abandon(self) -> None:
        self._abandoned = True
        self._stop_runs()

    def _pass(self, number: int, text: str) -> None:
        """Tells the executor at once, beside the review."""
        passing: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._passing.add(passing)

        def heard(value: dict[str, Any]) -> None:
            self._machine.passed(number, value)
            self._passing.discard(passing)
            passing.set_result(None)

        loop = self._loop
        if loop is not None:
            loop.call_soon_threadsafe(lambda: _goal_drive.begin_pass(self, text, heard))
        else:
            on_thread(lambda: _goal_drive.pass_blocking(self, text, heard), _nothing).begin()

    def _result(self) -> GoalResult:
        return result_of(self._machine.state())


def _nothing() -> None:
    pass


def _check_seconds(name: str, value: Any) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise ValueError(f"{name} must be a number of seconds above 0, not {value!r}")


def _check_agents(executor: Any, reviewer: Any) -> None:
    for name, agent in (("executor", executor), ("reviewer", reviewer)):
        if not isinstance(agent, Agent):
            raise TypeError(f"{name} must be an Agent, not {type(agent).__name__}")
    if executor is reviewer:
        raise ValueError("executor and reviewer must be two agents: nobody judges their own work")


def _folders(workspace: Any, executor: Agent) -> list[Path]:
    if workspace is False:
        return []
    if workspace is None:
        roots = [entry.root for entry in executor.tools if isinstance(entry, WorkspaceTool) and entry.root is not None]
        return list(dict.fromkeys(roots)) or [executor.cwd or Path(executor.session.cwd)]
    folders = [workspace] if isinstance(workspace, (str, Path)) else list(workspace)
    for folder in folders:
        if not Path(folder).is_dir():
            raise NotADirectoryError(f"workspace must be a folder that exists, not {str(folder)!r}")
    return [Path(folder) for folder in folders]
