"""What teammates with the same model, tools and hooks have in common; made once for all of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from ._agent import Agent
from ._native import Session, WorkspaceTool
from ._teammate import Teammate, agent_of
from ._tools import Context, Tool
from ._workers import in_thread
from .exceptions import ConfigError, TeamError, ToolError

if TYPE_CHECKING:
    from ._team import Team

#: What the desk of every teammate carries out itself.
TEAM_TOOLS = (
    "send_message", "ignore_message", "work_done", "list_team", "task_add", "task_claim", "task_update", "task_list",
)  # fmt: skip
SPAWN = "spawn_teammate"


class Profile:
    """An agent that stands for teammates of one kind, and what their turns are made from."""

    def __init__(self, team: Team, model: Any, tools: Any, hooks: Any, system: str, options: dict[str, Any]) -> None:
        tools = (*tools, spawn_tool(team))
        taken = sorted({getattr(tool, "name", "") for tool in tools} & set(TEAM_TOOLS))
        if taken:
            raise ValueError(
                f"every teammate has a tool of its team called {', '.join(taken)}; give yours another name="
            )
        self.agent = Agent(model, tools=tools, hooks=hooks, system=system, max_rounds=2**31, **options)
        self._first: _native.TurnConfig | None = None

    def config(self, teammate: Teammate) -> _native.TurnConfig:
        """What the turns of a teammate are made from. Its tools are read and checked for the first one."""
        team, options = teammate.team, teammate.agent_options
        parts = (team._office.introduction(teammate.name), self.agent._prompt(), options["system"])
        made = (self._first or self.agent._config(self.agent.session)).for_teammate(
            team._office,
            teammate.session,
            name=teammate.name,
            parent=options["parent"],
            prompt="\n\n".join(part for part in parts if part),
            cwd=teammate.cwd,
        )
        self._first = self._first or made
        return made

    def agent_of(self, teammate: Teammate) -> Agent:
        """The agent under which a teammate's turns run."""
        return agent_of(self.agent, teammate)


def moved(tools: Any, root: Path) -> tuple[Any, ...]:
    """The tools with those of a workspace under another root."""
    others = [tool for tool in tools if not isinstance(tool, WorkspaceTool)]
    names = [tool.name for tool in tools if isinstance(tool, WorkspaceTool)]
    if not names:
        return tuple(others)
    there = {tool.name: tool for tool in _native.workspace_tools(root)}
    missing = sorted(set(names) - set(there))
    if missing:
        raise ConfigError(f"these workspace tools cannot be moved to a worktree: {', '.join(missing)}")
    return (*others, *(there[name] for name in names))


def spawn_tool(team: Team) -> Tool[..., Any]:
    """The tool by which a teammate starts another, where it may."""

    async def spawn_teammate(name: str, role: str, prompt: str, context: Context) -> str:
        """Starts a teammate of yours, which works beside you and can be written to.

        Args:
            name: what it is called.
            role: what it is there for.
            prompt: what it is to do.
        """
        starter: Teammate | None = getattr(context._work.agent, "_teammate", None) if context._work else None
        if starter is None:
            raise ToolError("only a teammate can start another")
        try:
            # A worktree takes its time, and the loop of the team is not to wait for it.
            await in_thread(lambda: team._spawn(name, role=role, prompt=prompt, parent=starter), ())
        except (TeamError, ValueError) as error:
            raise ToolError(str(error)) from error
        return f"{name} has joined the team"

    return Tool(spawn_teammate, name=SPAWN, effect="dispatch", parallel=False)


def session_of(team: Team, name: str, cwd: Any) -> Session:
    """The conversation of a teammate: beside the team's journal, or in memory."""
    path = team._folder_of(name)
    return Session(path, agent=name, cwd=cwd)
