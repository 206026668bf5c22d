"""Calls about which a person decides, now or later."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ApprovalRequest:
    """A call about which somebody asked.

    Attributes:
        tool_name: the tool.
        arguments: what it would be called with.
        reason: why a hook or rule asked.
        call_id: the call.
        agent: the agent that wants to make it.
        suggested_rule: the rule that lets such calls through from now on if the answer is ``"always"``; ``None`` where
            there is no rule that would let nothing else through.
        timeout: seconds until nobody waits for the answer any more; the call is then denied.
        over: set when nobody waits any more, so that an approver that still asks can stop.
    """

    __module__ = "hookwright"

    tool_name: str
    arguments: dict[str, Any]
    reason: str
    call_id: str
    agent: str
    suggested_rule: str | None = None
    timeout: float | None = field(default=None, compare=False)
    over: threading.Event = field(default_factory=threading.Event, repr=False, compare=False)


class Deferred:
    """An approver that does not answer now: a run in which somebody has to decide about a call ends with status
    ``"awaiting_approval"``. `Agent.awaiting` tells about which calls; ``agent.resume(decisions={...})`` goes on, also
    in another process.

    Example:
        >>> import hookwright as hw
        >>> hooks = hw.HookChain()
        >>> gate = hooks.on("pre_tool_execution", role="gate", name="careful")(lambda event: hw.ask("it deploys"))
        >>> @hw.tool
        ... def deploy() -> str:
        ...     '''Deploys it.'''
        ...     return "deployed"
        >>> model = hw.Scripted([hw.ToolCall("deploy", {}, id="c1"), "It is out."])
        >>> agent = hw.Agent(model, tools=[deploy], hooks=hooks, approver=hw.Deferred())
        >>> agent.run_sync("deploy it").status
        'awaiting_approval'
        >>> [(request.call_id, request.reason) for request in agent.awaiting]
        [('c1', 'it deploys')]
        >>> agent.resume_sync(decisions={"c1": True}).text
        'It is out.'
    """

    __module__ = "hookwright"

    def __call__(self, request: ApprovalRequest) -> Any:
        raise TypeError("Deferred answers nothing; go on with agent.resume(decisions={call_id: True})")

    def __repr__(self) -> str:
        return "Deferred()"
