"""What happens in a team, for whoever watches."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ._team_loop import call_soon

if TYPE_CHECKING:
    from ._team import Team

_log = logging.getLogger("hookwright.team")

Channel = Literal["display", "context"]

#: What a model that leads the team should hear of.
_CONTEXT = frozenset({"joined", "mail", "ended", "back", "idle", "task"})
#: How many events wait for a slow watcher; then the oldest are left out, and it is told how many.
_BOUND = 10_000


@dataclass(frozen=True)
class Envelope:
    """A message between agents.

    Attributes:
        id: its name in the team.
        number: its place among all letters of the team.
        sender: who wrote it: a teammate or ``"lead"``.
        recipients: whom it addresses; ``"all"`` for everybody.
        text: the words.
        mention: whether the text itself named them, with ``@``.
        reply_to: the id of the message that it answers.
        sent_at: when, in UTC, as ISO 8601.
        private: whether nobody else overhears it.
        expects_reply: whether the sender waits for an answer.
        kind: ``"message"``, or ``"notice"`` for what the team itself says: who came, who ended.
    """

    __module__ = "hookwright"

    id: str
    sender: str
    recipients: list[str]
    text: str
    mention: bool = False
    reply_to: str | None = None
    sent_at: str = ""
    private: bool = False
    expects_reply: bool = False
    kind: str = "message"
    number: int = 0


@dataclass(frozen=True)
class TeamEvent:
    """Something that happened in a team. What it carries is in `data` and can be read as an attribute.

    Attributes:
        type: of the team: ``joined``, ``status``, ``mail``, ``held``, ``task``, ``idle``, ``ended``, ``back``; of a
            teammate's turn: ``turn_started``, ``draft`` (its prose, which others do not see), ``tool_started``,
            ``tool_finished``, ``retry``, ``fitted``, ``notice``, ``hooks``; ``left_out``: how many events a slow
            watcher has missed.
        teammate: whose event it is.
        data: what it carries.

    Example:
        >>> import hookwright as hw
        >>> event = hw.TeamEvent("ended", "ada", {"outcome": "done", "reason": "the parser is written"})
        >>> event.outcome, event
        ('done', <TeamEvent ada ended outcome='done', reason='the parser is written'>)
    """

    __module__ = "hookwright"

    type: str
    teammate: str
    data: dict[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["data"][name]
        except KeyError:
            known = ", ".join(self.__dict__.get("data", ())) or "nothing more"
            raise AttributeError(f"a {self.__dict__.get('type')} event has {known}, not {name!r}") from None

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={_short(value)}" for name, value in self.data.items())
        return f"<TeamEvent {self.teammate} {self.type}{' ' if said else ''}{said}>"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


class TeamEvents:
    """What `Team.events` returns: ``async for event in team.events(): …``. Events begin with this object."""

    __module__ = "hookwright"

    def __init__(self, team: Team, channel: Channel, callback: Callable[[TeamEvent], Any] | None = None) -> None:
        if channel not in ("display", "context"):
            raise ValueError(
                f"channel is 'display' (everything) or 'context' (what a lead should hear), not {channel!r}"
            )
        self._team = team
        self._channel = channel
        self._callback = callback
        self._waiting: deque[TeamEvent] = deque()
        self._left_out = 0
        self._closed = False
        self._wake: Callable[[], None] | None = None
        team._watch(self)

    def _push(self, event: TeamEvent) -> None:
        """Called on the team's loop."""
        if self._closed or (self._channel == "context" and event.type not in _CONTEXT):
            return
        if self._callback is not None:
            try:
                self._callback(event)
            except Exception:  # Whoever watches must not harm who is watched.
                _log.exception("a function that watches the team %r failed at %r", self._team.name, event)
            return
        if len(self._waiting) >= _BOUND:
            self._waiting.popleft()
            self._left_out += 1
        self._waiting.append(event)
        self._look()

    def _look(self) -> None:
        wake, self._wake = self._wake, None
        if wake is not None:
            wake()

    def __aiter__(self) -> AsyncIterator[TeamEvent]:
        return self

    async def __anext__(self) -> TeamEvent:
        while True:
            if self._left_out:
                count, self._left_out = self._left_out, 0
                return TeamEvent("left_out", "", {"count": count})
            if self._waiting:
                return self._waiting.popleft()
            if self._closed:
                raise StopAsyncIteration
            loop = asyncio.get_running_loop()
            future: asyncio.Future[None] = loop.create_future()
            self._wake = lambda loop=loop, future=future: call_soon(loop, _complete, future)
            # What came between the look and this line has found nobody to wake.
            if self._waiting or self._closed:
                self._wake = None
                continue
            await future

    def close(self) -> None:
        """No more events; what came before can still be read."""
        self._closed = True
        self._team._unwatch(self)
        self._look()

    async def aclose(self) -> None:
        """The same."""
        self.close()

    async def __aenter__(self) -> TeamEvents:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __enter__(self) -> TeamEvents:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<TeamEvents of {self._team.name!r}: {self._channel}, {len(self._waiting)} waiting>"


def _complete(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
