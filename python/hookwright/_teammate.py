"""A teammate: what others see of it, and the driver of its life on the team's loop.

The rules are in the native life, a state machine without I/O. While it waits there is no task and no thread: only its
mailbox holds a function that the next letter calls.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from ._agent import Agent
from ._drive_async import stream
from ._native import Message, Request, RunEvent, RunResult, Session, Usage
from ._running import Running, Runs
from ._team_events import Envelope, TeamEvent
from ._team_loop import call_soon
from ._work import Work

if TYPE_CHECKING:
    from ._profile import Profile
    from ._team import Team
    from ._worktree import Worktree

#: Pieces of a reply are not told: whether the teammate chooses not to answer is known only at its end.
_PIECES = frozenset({"text", "reasoning", "call_delta"})


@dataclass(frozen=True)
class TeammateResult:
    """What came of a teammate.

    Attributes:
        text: its last words.
        summary: what it told the lead when its work was done.
        outcome: ``done``, ``idle``, ``limit``, ``hook_stop``, ``error``, ``cancelled`` or ``crashed``; None while it
            lives.
        reason: why, or with ``done`` the summary.
    """

    __module__ = "hookwright"

    text: str
    summary: str | None
    outcome: str | None
    reason: str | None


class Teammate:
    """A member of a team; made by `Team.spawn`.

    Example:
        >>> import hookwright as hw
        >>> with hw.Team(hw.Scripted([hw.ToolCall("work_done", {"summary": "nothing to do"})])) as team:
        ...     ada = team.spawn("ada", prompt="look around")
        ...     team.join_sync()
        ...     ada.outcome, ada.result.summary
        <TeamBoard 'team': 1 teammate, 1 round, 0 tokens>
        ('done', 'nothing to do')
    """

    __module__ = "hookwright"

    __slots__ = (
        "__weakref__",
        "_config",
        "_context",
        "_error",
        "_in_hooks",
        "_life",
        "_parked",
        "_running",
        "_session",
        "_source",
        "_task",
        "_timer",
        "_waker",
        "agent_options",
        "name",
        "profile",
        "team",
        "worktree",
    )  # fmt: skip

    def __init__(
        self, team: Team, name: str, profile: Profile, options: dict[str, Any], worktree: Worktree | None = None
    ) -> None:
        self.team = team
        self.name = name
        self.profile = profile
        #: What `Team.spawn` was given: cwd, missing, idle_timeout, system, parent.
        self.agent_options = options
        self.worktree = worktree
        self._session: Session | None = None
        self._config: _native.TurnConfig | None = None
        self._life: _native.TeammateLife | None = None
        self._running: Running | None = None
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._parked = self._in_hooks = False
        self._error: BaseException | None = None
        self._source: str | None = None
        self._context = contextvars.copy_context()
        self._waker: Callable[[], None] = self._wake

    # What others see.

    @property
    def _view(self) -> dict[str, Any]:
        view = self.team._office.member(self.name)
        assert view is not None
        return view

    @property
    def role(self) -> str:
        """What it is there for."""
        return str(self._view["role"])

    @property
    def status(self) -> str:
        """``initializing``, ``thinking``, ``working``, ``waiting``, ``retrying``, ``compacting``, ``completed``,
        ``cancelled`` or ``failed``."""
        return str(self._view["status"]["status"])

    @property
    def status_detail(self) -> dict[str, Any]:
        """The status with what belongs to it: ``tools``, ``for``, ``attempt``, ``delay``, ``error``; and ``sequence``,
        which counts up with each change."""
        view = self._view
        return {**view["status"], "sequence": view["sequence"]}

    @property
    def alive(self) -> bool:
        """Whether its life goes on: it works, or waits for mail."""
        return (self._life is not None or self._parked) and self.outcome is None

    @property
    def outcome(self) -> str | None:
        """How it ended; None while it lives."""
        return self._view["outcome"]  # type: ignore[no-any-return]

    @property
    def result(self) -> TeammateResult:
        """Its last words and its summary."""
        view = self._view
        return TeammateResult(view["text"], view["summary"], view["outcome"], view["reason"])

    @property
    def rounds(self) -> int:
        """How many requests were made to its model."""
        return int(self._view["rounds"])

    @property
    def calls(self) -> int:
        """How many tool calls its model made."""
        return int(self._view["calls"])

    @property
    def usage(self) -> Usage:
        """The tokens that it used."""
        return Usage(**self._view["usage"])

    @property
    def cost(self) -> float:
        """What they cost, in the unit of the team's prices."""
        return float(self._view["cost"])

    @property
    def mail(self) -> int:
        """How many letters lie in its mailbox."""
        return int(self._view["mail"])

    @property
    def error(self) -> BaseException | None:
        """What its driver or its model raised, with its traceback, if that ended it in this process."""
        return self._error

    @property
    def session(self) -> Session:
        """Its conversation."""
        if self._session is None:
            self._session = self.team._session_of(self)
        return self._session

    @property
    def history(self) -> list[Message]:
        """The messages of its conversation."""
        return self.session.messages

    @property
    def cwd(self) -> Path:
        """The folder that its hooks and tools are told."""
        return Path(self.agent_options["cwd"] or self.session.cwd)

    @property
    def snapshot(self) -> Request | None:
        """The last request to its model, as it was really sent; shared, not copied."""
        return self.team._office.snapshot(self.name)

    def send(self, text: str, **options: Any) -> Envelope:
        """Sends it a message from the lead; see `Team.send`."""
        return self.team.send(text, to=self.name, **options)

    def cancel(self) -> None:
        """Ends it, whatever it does; what was begun gets a ``[cancelled]`` result. Others go on."""
        if self.team._office.stop(self.name):
            call_soon(self.team._loop, self._interrupt)

    def finish_worktree(self) -> bool:
        """Removes its worktree and branch if it has ended and they hold no work; whether they are gone. Nothing removes
        them by itself."""
        if self.worktree is None or self.outcome is None:
            return False
        return self.worktree.finish()

    async def wait(self, timeout: float | None = None) -> TeammateResult:
        """Waits until it has ended.

        Raises:
            TimeoutError: when that takes longer than ``timeout`` seconds.
        """
        await self.team._until(lambda: self.outcome is not None, timeout, f"{self.name} has not ended")
        return self.result

    def __repr__(self) -> str:
        view = self._view
        ended = f", ended: {view['outcome']}" if view["outcome"] else ""
        used = f"{view['rounds']} rounds, {view['mail']} letters"
        return f"<Teammate {self.name!r} [{view['status']['text']}{ended}]: {used}>"

    # Its driver. All of it runs on the team's loop.

    @property
    def _needs_no_life(self) -> bool:
        """Whether nothing but mail can concern it while it waits: no hooks that hear of its beginning, no timeout."""
        return self.profile.agent.hooks is None and self.agent_options["idle_timeout"] is None

    def _start(self, interrupted: bool = False) -> None:
        """Begins its life, or the next one. One that has nothing to do yet begins when it has."""
        if self._life is not None:
            return
        try:
            if not interrupted and self._needs_no_life and not self._is_woken():
                self.team._office.waits(self.name)
                self.team._look()
                return
            self._life = self._make_life(interrupted)
        except BaseException as error:
            self._crash(error)
            return
        self._go(self._life.start)

    def _is_woken(self) -> bool:
        """Whether there is something to do already; if not, the next letter wakes it."""
        self._parked = True
        if self.team._office.wake_with(self.name, self._waker):
            self._parked = False
        return not self._parked

    def _make_life(self, interrupted: bool) -> _native.TeammateLife:
        session, options = self.session, self.agent_options
        if self._config is None:
            self._config = self.profile.config(self)
            self._source = session.source
        source, self._source = self._source, None
        return _native.TeammateLife(
            self.team._office,
            self._config,
            chain=self.profile.agent.hooks,
            missing=list(options["missing"]),
            idle_timeout=options["idle_timeout"],
            max_idle_loops=self.team._max_idle_loops,
            interrupted=interrupted,
            source=source,
        )

    def _go(self, advance: Callable[[], Any]) -> None:
        self._task = self._context.run(self.team._loop.create_task, self._live(advance))

    async def _live(self, advance: Callable[[], Any]) -> None:
        """Does what the life asks for, until it waits or is over."""
        life = self._life
        assert life is not None
        try:
            kind, payload = advance()
            while kind != "done":
                if kind == "turn":
                    kind, payload = await self._turn(life, payload)
                elif kind == "await":
                    kind, payload = await self._hooks(life, payload)
                elif self._park(payload):
                    return
                else:
                    kind, payload = life.woken()
        except BaseException as error:
            self._crash(error)
        else:
            self._life = None
        self._task = None
        self.team._look()

    def _crash(self, error: BaseException) -> None:
        self._error, self._life = error, None
        self.team._office.end(self.name, "crashed", f"{type(error).__name__}: {error}")
        self.team._look()

    async def _turn(self, life: _native.TeammateLife, turn: _native.Turn) -> Any:
        agent = self.profile.agent_of(self)
        work = Work(agent, turn, Running(turn), self.session)
        self._running = work.running
        try:
            if self.team._office.is_stopping(self.name):
                work.running.cancel()
            with work:
                events = stream(work)
                try:
                    async for event in events:
                        self._tell(event)
                finally:
                    await events.aclose()
        except BaseException as error:
            # The turn may have come to its end all the same: what it came to says more than what broke its driver.
            if work.running.result is None or not isinstance(error, asyncio.CancelledError):
                self._error = error
                return life.crashed(f"{type(error).__name__}: {error}")
        finally:
            self._running = None
        result: RunResult | None = work.running.result
        if result is None:
            return life.crashed("the turn ended without a result")
        if result.status == "error":
            self._error = work.model_error
        return life.turn_over(result)

    async def _hooks(self, life: _native.TeammateLife, dispatch: Any) -> Any:
        self._in_hooks = True
        try:
            return life.outcome(await dispatch)
        except asyncio.CancelledError:
            return life.cancelled()
        finally:
            self._in_hooks = False

    def _park(self, seconds: float | None) -> bool:
        """Waits for mail without a task. False if there is something to do already."""
        if self._is_woken():
            return False
        if seconds is not None:
            self._timer = self.team._loop.call_later(seconds, self._time_out)
        elif self._needs_no_life:
            self._life = None
        self._task = None
        self.team._look()
        return True

    def _wake(self) -> None:
        """There is mail; called on any thread."""
        call_soon(self.team._loop, self._resume)

    def _resume(self, timed_out: bool = False) -> None:
        if not self._parked:
            return
        self._parked = False
        if self._life is None:
            self._start()
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._go(self._life.timed_out if timed_out else self._life.woken)

    def _time_out(self) -> None:
        self._resume(timed_out=True)

    def _interrupt(self) -> None:
        """Cuts short what it does. One that waits was rung."""
        if self._running is not None:
            self._running.cancel()
        elif self._in_hooks and self._task is not None:
            self._task.cancel()

    def _tell(self, event: RunEvent) -> None:
        if event.type in _PIECES or not self.team._is_watched():
            return
        kind, data = event.type, event._fields()
        if kind == "message":
            message = data["message"]
            ignored = any(call.name == "ignore_message" for call in message.tool_calls)
            if message.role != "assistant" or not message.text or ignored:
                return
            kind, data = "draft", {"text": message.text}
        self.team._drain()  # What the team did before this stands before it.
        self.team._publish(TeamEvent(kind, self.name, data))


def agent_of(profile_agent: Agent, teammate: Teammate) -> Agent:
    """The agent under which a teammate's turns run: the profile's, with the teammate's name and conversation."""
    agent: Agent = object.__new__(Agent)
    agent.__dict__.update(
        profile_agent.__dict__,
        name=teammate.name,
        session=teammate.session,
        _kind="teammate",
        _parent=teammate.agent_options["parent"],
        _runs=Runs(),
        _teammate=teammate,
    )
    if teammate.agent_options["cwd"] is not None:
        agent.__dict__["cwd"] = Path(teammate.agent_options["cwd"])
    return agent
