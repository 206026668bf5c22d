"""A run that is watched, and what an approver is asked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from . import _aio
from ._drive_async import stream as stream_events
from ._native import RunEvent, RunResult, Session

if TYPE_CHECKING:
    from ._agent import Agent


class RunStream:
    """What `Agent.stream` returns: iterate it, once, for the events; ``result`` is there when it is over.

    Leaving the loop early ends the turn, with status ``"cancelled"``: at once with ``async with`` or ``aclose()``,
    otherwise as soon as the event loop comes to it.

    Example:
        >>> import asyncio, hookwright as hw
        >>> async def main():
        ...     async with hw.Agent(hw.Scripted(["hello"])).stream("hi") as stream:
        ...         return [event.delta async for event in stream if event.type == "text"]
        >>> asyncio.run(main())
        ['hello']
    """

    __module__ = "hookwright"

    def __init__(
        self,
        agent: Agent,
        text: str | None,
        session: Session | None,
        hold_text: bool = False,
        decisions: Mapping[str, Any] | None = None,
    ) -> None:
        self._agent = agent
        self._events = self._run(text, session, hold_text, decisions)
        self.result: RunResult | None = None

    async def _run(
        self, text: str | None, session: Session | None, hold_text: bool, decisions: Mapping[str, Any] | None
    ) -> AsyncGenerator[RunEvent, None]:
        _aio._refuse_foreign_loop()
        options: dict[str, Any] = {"watched": True, "hold_text": hold_text, "decisions": decisions}
        with self._agent._work(text, session, **options) as work:
            events = stream_events(work)
            try:
                async for event in events:
                    yield event
            finally:
                await events.aclose()
                self.result = work.running.result
            self._agent._check(work.running.result, work)

    def __aiter__(self) -> AsyncIterator[RunEvent]:
        return self._events

    async def aclose(self) -> None:
        """Ends the turn if it is not over."""
        await self._events.aclose()

    async def __aenter__(self) -> RunStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<RunStream of {self._agent.name!r}: {self.result or 'not over'}>"
