"""What the tests of the agent share: the ways in, a tool that notices when it is entered, and what always holds."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import hookwright as hw

Run = Callable[..., hw.RunResult]
STATUSES = {"success", "stopped", "cancelled", "error", "limit"}


def _run_sync(agent: hw.Agent, text: str, **options: Any) -> hw.RunResult:
    return agent.run_sync(text, **options)


def _run(agent: hw.Agent, text: str, **options: Any) -> hw.RunResult:
    return asyncio.run(agent.run(text, **options))


def _stream(agent: hw.Agent, text: str, **options: Any) -> hw.RunResult:
    async def main() -> hw.RunResult:
        stream = agent.stream(text, **options)
        async for _ in stream:
            pass
        assert stream.result is not None
        return stream.result

    return asyncio.run(main())


def _run_sync_in_a_loop(agent: hw.Agent, text: str, **options: Any) -> hw.RunResult:
    async def main() -> hw.RunResult:
        return agent.run_sync(text, **options)

    return asyncio.run(main())


#: The ways into an agent. All mean the same, so whatever is tested through one is tested through all.
ENTRANCES: dict[str, Run] = {
    "run_sync": _run_sync,
    "run": _run,
    "stream": _stream,
    "run_sync_in_a_loop": _run_sync_in_a_loop,
}


class Probe:
    """A tool that writes down how it was called."""

    def __init__(self, answer: Any = "done") -> None:
        self.entered: list[str] = []
        self.answer = answer
        self._lock = threading.Lock()
        self.tool = hw.tool(self.probe, inline=True)

    def probe(self, text: str = "") -> Any:
        """Writes down how it was called."""
        with self._lock:
            self.entered.append(text)
        return self.answer


def call(tool: str = "probe", /, id: str = "", **arguments: Any) -> hw.ToolCall:
    """A call of a tool."""
    return hw.ToolCall(tool, arguments, id=id)


def roles(agent: hw.Agent) -> list[str]:
    """The roles of the messages of a history, in order."""
    return [message.role for message in agent.history]


def told(agent: hw.Agent) -> list[str]:
    """What the model was told of its calls, in order."""
    return [message.text for message in agent.history if message.role == "tool"]


def check_history(messages: list[hw.Message]) -> None:
    """Each call has exactly one result, right behind the message that asks for it, in the order of the calls."""
    waiting: list[str] = []
    seen: set[str] = set()
    for message in messages:
        if message.role == "tool":
            assert waiting, f"a result that nobody asked for: {message}"
            assert message.tool_call_id == waiting.pop(0), messages
            continue
        assert not waiting, f"calls without a result before {message}: {waiting}"
        waiting = [tool_call.id for tool_call in message.tool_calls]
        assert all(waiting), f"a call without an id: {message}"
        assert len(set(waiting)) == len(waiting), waiting
        seen.update(waiting)
    assert not waiting, f"calls without a result: {waiting}"


def transcript(session: hw.Session) -> bytes:
    """The transcript of a session, as it is on disk."""
    assert session.path is not None
    return (session.path / "transcript.jsonl").read_bytes()
