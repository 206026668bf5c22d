"""Hooks, gates, teams and lessons for people who build agents."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import shell, trust
    from ._agent import Agent
    from ._approval import ApprovalRequest, Deferred
    from ._board import TeamBoard
    from ._chain import HookChain, HookInfo
    from ._events import (
        Event,
        LimitReached,
        LlmError,
        MessageRouted,
        PermissionDecided,
        PermissionRequest,
        PostAutoCompact,
        PostLlmResponse,
        PostMicroCompact,
        PostSendMessage,
        PostToolBatch,
        PostToolExecution,
        PostToolExecutionFailure,
        PreAutoCompact,
        PreLlmRequest,
        PreMicroCompact,
        PreSendMessage,
        PreToolBatch,
        PreToolExecution,
        SessionEnd,
        SessionStart,
        Stop,
        SystemPromptBuilt,
        TeammateEnd,
        TeammateIdle,
        TeammateStart,
        TextDelta,
        TurnEnd,
        TurnStart,
    )
    from ._explain import Explanation, HookExplanation
    from ._failures import is_failure
    from ._gates import PermissionRules, PlanGate, ReviewGate
    from ._goal import Goal
    from ._goal_result import GoalMessage, GoalResult, GoalRound
    from ._hook_kinds import LlmHook, ShellHook
    from ._load import LoadReport
    from ._models import FunctionModel, Scripted, Step
    from ._native import (
        Change,
        Decision,
        Denial,
        HookEvent,
        HookResult,
        HookRun,
        Message,
        Outcome,
        Recording,
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
    from ._registry import ToolRegistry
    from ._replay import ReplayDifference, ReplayReport
    from ._servers import Anthropic, OpenAI, Recorder, Replay, RetryPolicy, ServerModel
    from ._stats import ChainStats, HookStats
    from ._stream import RunStream
    from ._team import Team
    from ._team_events import Envelope, TeamEvent, TeamEvents
    from ._teammate import Teammate, TeammateResult
    from ._terminal import TerminalApprover
    from ._tools import Context, Tool, tool
    from .exceptions import (
        AnswerError,
        ConfigError,
        ConfigProblem,
        GoalError,
        HookError,
        HookTimeout,
        HookwrightError,
        ModelError,
        SessionBusy,
        SessionError,
        TeamError,
        ToolError,
        TrustError,
        UnknownEventError,
    )

#: Where each public name lives. Names are looked up when first used: importing the package stays quick.
_HOMES = {
    "._agent": ("Agent",),
    "._chain": ("HookChain", "HookInfo"),
    "._hook_kinds": ("LlmHook", "ShellHook"),
    "._events": (
        "Event", "LimitReached", "LlmError", "MessageRouted", "PermissionDecided", "PermissionRequest",
        "PostAutoCompact", "PostLlmResponse", "PostMicroCompact", "PostSendMessage", "PostToolBatch",
        "PostToolExecution", "PostToolExecutionFailure", "PreAutoCompact", "PreLlmRequest", "PreMicroCompact",
        "PreSendMessage", "PreToolBatch", "PreToolExecution", "SessionEnd", "SessionStart", "Stop",
        "SystemPromptBuilt", "TeammateEnd", "TeammateIdle", "TeammateStart", "TextDelta", "TurnEnd",
        "TurnStart",
    ),
    "._explain": ("Explanation", "HookExplanation"),
    "._failures": ("is_failure",),
    "._goal": ("Goal",),
    "._goal_result": ("GoalMessage", "GoalResult", "GoalRound"),
    "._gates": ("PermissionRules", "PlanGate", "ReviewGate"),
    "._load": ("LoadReport",),
    "._models": ("FunctionModel", "Scripted", "Step"),
    "._native": (
        "Change", "Decision", "Denial", "HookEvent", "HookResult", "HookRun", "Message", "Outcome", "Recording",
        "Reply", "Request", "RunEvent", "RunResult", "Session", "ToolCall", "ToolRun", "Usage", "WorkspaceTool",
        "allow", "ask", "retry", "skip", "stop", "warn", "workspace_tools",
    ),
    "._replay": ("ReplayDifference", "ReplayReport"),
    "._servers": ("Anthropic", "OpenAI", "Recorder", "Replay", "RetryPolicy", "ServerModel"),
    "._board": ("TeamBoard",),
    "._team": ("Team",),
    "._team_events": ("Envelope", "TeamEvent", "TeamEvents"),
    "._teammate": ("Teammate", "TeammateResult"),
    "._stats": ("ChainStats", "HookStats"),
    "._terminal": ("TerminalApprover",),
    "._approval": ("ApprovalRequest", "Deferred"),
    "._stream": ("RunStream",),
    "._registry": ("ToolRegistry",),
    "._tools": ("Context", "Tool", "tool"),
    ".exceptions": (
        "AnswerError", "ConfigError", "ConfigProblem", "GoalError", "HookError", "HookTimeout", "HookwrightError",
        "ModelError", "SessionBusy", "SessionError", "TeamError", "ToolError", "TrustError", "UnknownEventError",
    ),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

#: Modules that are public as a whole.
_MODULES = ("shell", "trust")

__all__ = [
    "Agent",
    "AnswerError",
    "Anthropic",
    "ApprovalRequest",
    "ChainStats",
    "Change",
    "ConfigError",
    "ConfigProblem",
    "Context",
    "Decision",
    "Deferred",
    "Denial",
    "Envelope",
    "Event",
    "Explanation",
    "FunctionModel",
    "Goal",
    "GoalError",
    "GoalMessage",
    "GoalResult",
    "GoalRound",
    "HookChain",
    "HookError",
    "HookEvent",
    "HookExplanation",
    "HookInfo",
    "HookResult",
    "HookRun",
    "HookStats",
    "HookTimeout",
    "HookwrightError",
    "LimitReached",
    "LlmError",
    "LlmHook",
    "LoadReport",
    "Message",
    "MessageRouted",
    "ModelError",
    "OpenAI",
    "Outcome",
    "PermissionDecided",
    "PermissionRequest",
    "PermissionRules",
    "PlanGate",
    "PostAutoCompact",
    "PostLlmResponse",
    "PostMicroCompact",
    "PostSendMessage",
    "PostToolBatch",
    "PostToolExecution",
    "PostToolExecutionFailure",
    "PreAutoCompact",
    "PreLlmRequest",
    "PreMicroCompact",
    "PreSendMessage",
    "PreToolBatch",
    "PreToolExecution",
    "Recorder",
    "Recording",
    "Replay",
    "ReplayDifference",
    "ReplayReport",
    "Reply",
    "Request",
    "RetryPolicy",
    "ReviewGate",
    "RunEvent",
    "RunResult",
    "RunStream",
    "Scripted",
    "ServerModel",
    "Session",
    "SessionBusy",
    "SessionEnd",
    "SessionError",
    "SessionStart",
    "ShellHook",
    "Step",
    "Stop",
    "SystemPromptBuilt",
    "Team",
    "TeamBoard",
    "TeamError",
    "TeamEvent",
    "TeamEvents",
    "Teammate",
    "TeammateEnd",
    "TeammateIdle",
    "TeammateResult",
    "TeammateStart",
    "TerminalApprover",
    "TextDelta",
    "Tool",
    "ToolCall",
    "ToolError",
    "ToolRegistry",
    "ToolRun",
    "TrustError",
    "TurnEnd",
    "TurnStart",
    "UnknownEventError",
    "Usage",
    "WorkspaceTool",
    "allow",
    "ask",
    "is_failure",
    "retry",
    "shell",
    "skip",
    "stop",
    "tool",
    "trust",
    "warn",
    "workspace_tools",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
