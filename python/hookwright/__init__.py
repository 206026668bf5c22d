"""Hooks, gates, teams and lessons for people who build agents."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._chain import Explanation, HookChain, HookExplanation, HookInfo, ShellHook
    from ._native import Change, HookEvent, HookResult, HookRun, Outcome, allow, ask, retry, skip, stop, warn
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

#: Where each public name lives. Names are looked up when first used: importing the package stays quick.
_HOMES = {
    "._chain": ("Explanation", "HookChain", "HookExplanation", "HookInfo", "ShellHook"),
    "._native": (
        "Change", "HookEvent", "HookResult", "HookRun", "Outcome", "allow", "ask", "retry", "skip", "stop", "warn",
    ),
    "._tools": ("Context", "Tool", "tool"),
    ".exceptions": (
        "ConfigError", "ConfigProblem", "HookError", "HookTimeout", "HookwrightError", "ModelError", "SessionBusy",
        "SessionError", "ToolError", "TrustError", "UnknownEventError",
    ),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Change",
    "ConfigError",
    "ConfigProblem",
    "Context",
    "Explanation",
    "HookChain",
    "HookError",
    "HookEvent",
    "HookExplanation",
    "HookInfo",
    "HookResult",
    "HookRun",
    "HookTimeout",
    "HookwrightError",
    "ModelError",
    "Outcome",
    "SessionBusy",
    "SessionError",
    "ShellHook",
    "Tool",
    "ToolError",
    "TrustError",
    "UnknownEventError",
    "allow",
    "ask",
    "retry",
    "skip",
    "stop",
    "tool",
    "warn",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
