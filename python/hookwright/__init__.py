"""Hooks, gates, teams and lessons for people who build agents."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._tools import Context, Tool, tool
    from .exceptions import (
        ConfigError,
        ConfigProblem,
        HookError,
        HookTimeout,
        HookwrightError,
        ModelError,
        SessionBusy,
        SessionError,
        ToolError,
        TrustError,
        UnknownEventError,
    )

__all__ = [
    "ConfigError",
    "ConfigProblem",
    "Context",
    "HookError",
    "HookTimeout",
    "HookwrightError",
    "ModelError",
    "SessionBusy",
    "SessionError",
    "Tool",
    "ToolError",
    "TrustError",
    "UnknownEventError",
    "tool",
]

_TOOLS = frozenset({"Context", "Tool", "tool"})


def __getattr__(name: str) -> Any:
    # Names are looked up when first used: importing the package stays quick, and its pure parts need no extension.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module("._tools" if name in _TOOLS else ".exceptions", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
