"""What the tests of the gates share: an agent that makes given calls, and tools that say that they were entered."""

from __future__ import annotations

from typing import Any

import hookwright as hw


class Tools:
    """Tools of given names that write down how they were called."""

    def __init__(self, **effects: Any) -> None:
        self.entered: list[tuple[str, dict[str, Any]]] = []
        self.tools = [self._tool(name, effect) for name, effect in effects.items()]

    def _tool(self, name: str, effect: Any) -> hw.Tool[..., Any]:
        def probe(
            command: str | None = None,
            script: str | None = None,
            path: str | None = None,
            content: str | None = None,
            url: str | None = None,
            action: str | None = None,
        ) -> str:
            given = {"command": command, "script": script, "path": path, "content": content, "url": url}
            given["action"] = action
            self.entered.append((name, {key: value for key, value in given.items() if value is not None}))
            return "done"

        return hw.tool(probe, name=name, effect=effect, inline=True)

    def agent(self, *calls: hw.ToolCall, hooks: hw.HookChain, **options: Any) -> hw.Agent:
        """An agent that makes these calls, each in a reply of its own."""
        return hw.Agent(hw.Scripted([*calls, "I see."]), tools=self.tools, hooks=hooks, **options)


def chain_of(*gates: Any) -> hw.HookChain:
    """A chain of these gates."""
    hooks = hw.HookChain()
    for gate in gates:
        hooks.add(gate)
    return hooks
