"""Hooks, gates, teams and lessons for people who build agents."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._agent import Agent, ApprovalRequest, RunStream
    from ._chain import Explanation, HookChain, HookExplanation, HookInfo, ShellHook
    from ._models import FunctionModel, Scripted, Step
    from ._native import (
        Change,
        HookEvent,
        HookResult,
        HookRun,
        Message,
        Outcome,
        Reply,
        Request,
        RunEvent,
        RunResult,
        Session,
        ToolCall,
        ToolRun,
        Usage,
        WorkspaceTool,
        allow,
        ask,
        retry,
        skip,
        stop,
        warn,
        workspace_tools,
    )
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
    "._agent": ("Agent", "ApprovalRequest", "RunStream"),
    "._chain": ("Explanation", "HookChain", "HookExplanation", "HookInfo", "ShellHook"),
    "._models": ("FunctionModel", "Scripted", "Step"),
    "._native": (
        "Change", "HookEvent", "HookResult", "HookRun", "Message", "Outcome", "Reply", "Request", "RunEvent",
        "RunResult", "Session", "ToolCall", "ToolRun", "Usage", "WorkspaceTool", "allow", "ask", "retry", "skip",
        "stop", "warn", "workspace_tools",
    ),
    "._tools": ("Context", "Tool", "tool"),
    ".exceptions": (
        "ConfigError", "ConfigProblem", "HookError", "HookTimeout", "HookwrightError", "ModelError", "SessionBusy",
        "SessionError", "ToolError", "TrustError", "UnknownEventError",
    ),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Agent",
    "ApprovalRequest",
    "Change",
    "ConfigError",
    "ConfigProblem",
    "Context",
    "Explanation",
    "FunctionModel",
    "HookChain",
    "HookError",
    "HookEvent",
    "HookExplanation",
    "HookInfo",
    "HookResult",
    "HookRun",
    "HookTimeout",
    "HookwrightError",
    "Message",
    "ModelError",
    "Outcome",
    "Reply",
    "Request",
    "RunEvent",
    "RunResult",
    "RunStream",
    "Scripted",
    "Session",
    "SessionBusy",
    "SessionError",
    "ShellHook",
    "Step",
    "Tool",
    "ToolCall",
    "ToolError",
    "ToolRun",
    "TrustError",
    "UnknownEventError",
    "Usage",
    "WorkspaceTool",
    "allow",
    "ask",
    "retry",
    "skip",
    "stop",
    "tool",
    "warn",
    "workspace_tools",
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
