"""What an agent is given as tools, and how turns hear of them."""

from __future__ import annotations

from typing import Any

from ._native import WorkspaceTool
from ._tools import Tool
from ._tools import tool as make_tool


def as_tools(tools: Any) -> tuple[Any, ...]:
    if isinstance(tools, (Tool, WorkspaceTool)) or callable(tools):
        raise TypeError(f"tools takes a list; put this one into brackets: tools=[{getattr(tools, 'name', '...')}]")
    entries = tuple(as_tool(entry) for entry in tools)
    refuse_doubles(entries)
    return entries


def as_tool(entry: Any) -> Any:
    if isinstance(entry, (Tool, WorkspaceTool)):
        return entry
    if callable(entry):
        return make_tool(entry)
    if isinstance(entry, (list, tuple)):
        raise TypeError("a list of tools stands among the tools; unpack it: tools=[*hw.workspace_tools(...), ...]")
    raise TypeError(f"a tool is a function, a Tool or a workspace tool, not {entry!r}")


def described(entry: Any, deferred: bool = False) -> tuple[Any, ...]:
    """A tool as turns need to know it. The effect comes from here and not from what a model says."""
    effect = entry.effect_of if callable(entry.effect) else entry.effect
    declares_json = getattr(entry, "returns", None) == "json"
    root = getattr(entry, "root", None)
    return entry.name, entry.description, entry.schema, entry.parallel, declares_json, effect, root, deferred


def refuse_doubles(tools: tuple[Any, ...]) -> None:
    names = [entry.name for entry in tools]
    doubles = sorted({name for name in names if names.count(name) > 1})
    if doubles:
        raise ValueError(f"two tools have the same name: {', '.join(doubles)}; give one of them another name=")
