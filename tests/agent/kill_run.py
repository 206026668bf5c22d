"""The run that `test_kill.py` kills, at a point that it is told: ``python kill_run.py FOLDER POINT``."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hookwright as hw

TASK = "do all of it"
#: What the model asks for, round by round.
ROUNDS: list[list[hw.ToolCall]] = [
    [hw.ToolCall("note", {"text": "one"}, id="a1"), hw.ToolCall("wait", {"text": "two"}, id="a2")],
    [hw.ToolCall("fail", {"text": "three"}, id="b1"), hw.ToolCall("no_such_tool", {}, id="b2")],
    [hw.ToolCall("careful", {"text": "four"}, id="c1")],
    [hw.ToolCall("note", {"text": "five"}, id="d1")],
]
Reach = Callable[[str], None]


def never(point: str) -> None:
    """Goes on."""


def killer(wanted: str) -> Reach:
    """Ends the process for good at the point ``wanted``, as if the power had gone."""

    def reach(point: str) -> None:
        if point == wanted:
            os.kill(os.getpid(), signal.SIGKILL)

    return reach


def make(folder: Path, reach: Reach = never) -> hw.Agent:
    """The agent; what its tools do is written to a file beside the session."""
    effects = folder / "effects"

    def act(context: hw.Context, text: str) -> None:
        reach(f"in {context.call_id} before")
        with effects.open("a") as file:
            file.write(f"{context.call_id} {text}\n")
        reach(f"in {context.call_id} after")

    @hw.tool
    def note(text: str, context: hw.Context) -> str:
        """Notes a text."""
        act(context, text)
        return f"noted {text}"

    @hw.tool
    async def wait(text: str, context: hw.Context) -> str:
        """Notes a text after a moment."""
        await asyncio.sleep(0)
        act(context, text)
        return f"waited for {text}"

    @hw.tool
    def fail(text: str, context: hw.Context) -> str:
        """Notes a text and fails."""
        act(context, text)
        raise RuntimeError(f"{text} went wrong")

    @hw.tool
    def careful(text: str, context: hw.Context) -> str:
        """Notes a text, if a person lets it."""
        act(context, text)
        return f"carefully {text}"

    def model(request: hw.Request) -> Any:
        # What was asked for already is told by the conversation, so that a resumed run goes on where it was.
        asked = sum(1 for message in request.messages if message.tool_calls)
        reach(f"in the model, round {asked + 1}")
        return ROUNDS[asked] if asked < len(ROUNDS) else "all of it is done"

    def approve(request: hw.ApprovalRequest) -> bool:
        reach("in the approver")
        return True

    hooks = hw.HookChain()
    seen: Counter[str] = Counter()

    def watch(event: Any) -> None:
        seen[event.event] += 1
        reach(f"{event.event} {seen[event.event]}")

    hooks.on(*[event.value for event in hw.Event], name="watch")(watch)
    hooks.on("pre_tool_execution", role="gate", name="ask", tool_name="careful")(lambda event: hw.ask("it matters"))
    return hw.Agent(
        hw.FunctionModel(model),
        tools=[note, wait, fail, careful],
        hooks=hooks,
        system="be quick",
        session=folder / "session",
        approver=approve,
    )


async def watched(agent: hw.Agent, reach: Reach) -> None:
    """Runs it with somebody watching, who may be the last to see it alive."""
    seen: Counter[str] = Counter()
    async for event in agent.stream(TASK):
        seen[event.type] += 1
        reach(f"told {event.type} {seen[event.type]}")


if __name__ == "__main__":
    stop = killer(sys.argv[2])
    with make(Path(sys.argv[1]), stop) as running:
        asyncio.run(watched(running, stop))
