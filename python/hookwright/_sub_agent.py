"""An agent that another agent calls as a tool."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._native import Session
from ._tools import Context, Tool
from .exceptions import ModelError, ToolError

if TYPE_CHECKING:
    from ._agent import Agent
    from ._work import Work


def as_tool(agent: Agent, name: str | None, description: str | None) -> Tool[..., Any]:
    """See `Agent.as_tool`."""

    usual = f"Gives a task to the agent {agent.name}, which works on its own."

    async def call(task: str, context: Context) -> Any:
        work: Work | None = context._work
        if work is None:
            raise ToolError(f"{agent.name} is called by an agent only", hint="await agent.run(...) instead")
        child = _under(agent, work, context)
        try:
            result = await child.run(task)
        except ModelError as error:
            if error.result is not None:
                work.turn.add_spent(error.result)
            raise ToolError(f"the agent {agent.name} failed: {error.message}") from error
        finally:
            child.session.close()
        work.turn.add_spent(result)
        if result.status == "success":
            return result.text
        said = f" It had said: {result.text}" if result.text else ""
        raise ToolError(f"the agent {agent.name} did not finish ({result.status}): {result.reason}.{said}")

    return Tool(
        call,
        name=name or agent.name,
        description=description or agent.description or usual,
        effect="dispatch",
        parallel=True,
    )


def _under(agent: Agent, work: Work, context: Context) -> Agent:
    """The agent under the hooks, the mode and the approver of the one that calls it, in a conversation of its own."""
    parent = work.agent
    where = work.session.path
    # Some servers use the ids of calls again in another turn.
    path = None if where is None else Path(where) / "agents" / f"{context.turn_id}-{context.call_id}"
    session = Session(path, agent=agent.name, cwd=agent.cwd or work.cwd)
    session.mode = work.session.mode
    child = agent._apart(_both(parent, agent), session)
    child.__dict__.update(_kind="sub", _parent=parent.name)
    if child.approver is None:
        child.__dict__.update(approver=parent.approver, approval_timeout=parent.approval_timeout)
    return child


def _both(parent: Agent, child: Agent) -> Any:
    """The hooks that watch over a sub-agent: those of the one that calls it, which nothing leaves out, and its own."""
    if child.hooks is None or child.hooks is parent.hooks:
        return parent.hooks
    if parent.hooks is None:
        return child.hooks
    return parent.hooks._with(child.hooks, child.name)
