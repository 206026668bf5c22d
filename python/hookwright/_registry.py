"""Tools that are not always there: switched off, available only sometimes, or loaded by the model when needed."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ._agent_tools import as_tool, refuse_doubles
from ._tools import Tool
from .exceptions import ToolError

#: The tool by which a model loads others; the core knows it by this name.
LOAD = "load_tool"


@dataclass
class _Entry:
    tool: Any
    deferred: bool
    available: Callable[[], Any] | None
    enabled: bool = True


class ToolRegistry:
    """Tools for an `Agent` that are not all there, or not all of the time.

    A *deferred* tool is not described to the model with each request: the model reads its name and first line in the
    description of ``load_tool``, and calls that when it needs the tool. What it has loaded in a conversation stays
    loaded. Whether a tool is enabled and available is asked when a turn begins; one that is not is not described nor
    run.

    Args:
        tools: tools, functions and workspace tools.

    Example:
        >>> import hookwright as hw
        >>> def weather(city: str) -> str:
        ...     '''Tells the weather of a city.'''
        ...     return "It rains."
        >>> registry = hw.ToolRegistry()
        >>> registry.add(weather, deferred=True)
        >>> load, call = hw.ToolCall("load_tool", {"name": "weather"}), hw.ToolCall("weather", {"city": "Bergen"})
        >>> agent = hw.Agent(hw.Scripted([load, call, "It rains."]), tools=registry)
        >>> [call.result for call in agent.run_sync("and in Bergen?").tool_calls][1]
        'It rains.'
    """

    __module__ = "hookwright"

    def __init__(self, tools: Iterable[Any] = ()) -> None:
        self._entries: dict[str, _Entry] = {}
        for tool in tools:
            self.add(tool)

    def add(self, tool: Any, *, deferred: bool = False, available: Callable[[], Any] | None = None) -> None:
        """Adds a tool. Agents that were made before do not get it.

        Args:
            tool: a function, a `Tool` or a workspace tool.
            deferred: described to the model only once it has loaded it.
            available: asked when a turn begins; where it says no, or fails, the tool is not there in that turn.

        Raises:
            ValueError: when another tool has this name.
        """
        entry = as_tool(tool)
        if entry.name == LOAD:
            raise ValueError(f"{LOAD} is the name of the tool by which others are loaded; give this one another name=")
        refuse_doubles((*(known.tool for known in self._entries.values()), entry))
        self._entries[entry.name] = _Entry(entry, deferred, available)

    def disable(self, *names: str) -> None:
        """Switches tools off, from the next turn on.

        Raises:
            KeyError: for a name that no tool has.
        """
        for name in names:
            self._known(name).enabled = False

    def enable(self, *names: str) -> None:
        """Switches tools on again, from the next turn on.

        Raises:
            KeyError: for a name that no tool has.
        """
        for name in names:
            self._known(name).enabled = True

    def _known(self, name: str) -> _Entry:
        try:
            return self._entries[name]
        except KeyError:
            near = difflib.get_close_matches(name, self._entries, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(self._entries) or 'none'}"
            raise KeyError(f"there is no tool {name!r}; {hint}") from None

    def _all(self) -> tuple[tuple[Any, ...], frozenset[str]]:
        """The tools for an agent, and which of them are deferred."""
        deferred = {name: entry.tool for name, entry in self._entries.items() if entry.deferred}
        tools = tuple(entry.tool for entry in self._entries.values())
        return (*tools, _loader(deferred)) if deferred else tools, frozenset(deferred)

    def _missing(self) -> set[str]:
        """The names of the tools that are not there now."""
        return {name for name, entry in self._entries.items() if not (entry.enabled and _is_there(name, entry))}

    def __iter__(self) -> Iterator[Any]:
        return (entry.tool for entry in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __repr__(self) -> str:
        marks = {name: _marks(entry) for name, entry in self._entries.items()}
        shown = ", ".join(f"{name}{mark}" for name, mark in marks.items())
        return f"<ToolRegistry: {shown or 'no tools'}>"


def _marks(entry: _Entry) -> str:
    marks = [word for word, is_so in (("deferred", entry.deferred), ("disabled", not entry.enabled)) if is_so]
    return f" ({', '.join(marks)})" if marks else ""


def _is_there(name: str, entry: _Entry) -> bool:
    if entry.available is None:
        return True
    try:
        return bool(entry.available())
    except Exception as error:
        warnings.warn(f"whether the tool {name} is available cannot be told ({error!r}): it is left out", stacklevel=2)
        return False


def _loader(deferred: dict[str, Any]) -> Tool[..., Any]:
    def first_line(tool: Any) -> str:
        return ((tool.description or "").strip().splitlines() or [""])[0]

    listed = "\n".join(f"- {name}: {first_line(tool)}" for name, tool in deferred.items())

    def load_tool(name: str) -> str:
        tool = deferred.get(name)
        if tool is None:
            near = difflib.get_close_matches(name, deferred, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(deferred)}."
            raise ToolError(f"there is no tool {name} to load", hint=hint)
        return f"{name} can be called from now on. {tool.description}"

    return Tool(
        load_tool,
        description=f"Loads a tool by its name, so that it can be called from the next reply on. There are:\n{listed}",
        effect="read",
        inline=True,
    )
