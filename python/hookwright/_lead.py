"""The tools by which an agent leads a team."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from ._tools import Tool
from .exceptions import TeamError, ToolError

if TYPE_CHECKING:
    from ._team import Team


def lead_tools(team: Team) -> list[Tool[..., Any]]:
    """See `Team.lead_tools`."""

    def spawn_teammate(name: str, role: str, prompt: str) -> str:
        """Starts a teammate, which works beside you and can be written to.

        Args:
            name: what it is called.
            role: what it is there for.
            prompt: what it is to do.
        """
        with _told():
            team.spawn(name, role=role, prompt=prompt)
        return f"{name} has joined the team"

    def send_message(to: list[str], text: str, expects_reply: bool = False) -> str:
        """Sends a message to teammates.

        Args:
            to: their names, or "all".
            text: what you say.
            expects_reply: whether you wait for an answer.
        """
        with _told():
            return f"sent ({team.send(text, to=to, expects_reply=expects_reply).id})"

    def list_team() -> str:
        """Lists who is in the team, what they do, and the tasks."""
        return str(team.board())

    def task_add(title: str, detail: str = "", depends_on: list[str] | None = None) -> str:
        """Adds a task to the list that the team shares.

        Args:
            title: what is to be done.
            detail: more about it.
            depends_on: ids of tasks that are to be done before.
        """
        with _told():
            return f"added {team.add_task(title, detail, depends_on=depends_on or ())['id']}"

    async def wait_for_team(seconds: float = 60.0) -> str:
        """Waits until nobody in the team does anything any more, and returns what came in for you.

        Args:
            seconds: how long at most.
        """
        with contextlib.suppress(TimeoutError):
            await team.join(timeout=seconds)
        return "\n".join(part for part in (str(team.board()), team.context()) if part)

    return [
        Tool(spawn_teammate, effect="dispatch"),
        Tool(send_message, effect="dispatch"),
        Tool(list_team, effect="read"),
        Tool(task_add, effect="read"),
        Tool(wait_for_team, effect="read", parallel=False),
    ]


class _told(contextlib.AbstractContextManager["_told"]):
    """What cannot be done is told to the model."""

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, (TeamError, ValueError, TypeError)):
            raise ToolError(str(error)) from error
