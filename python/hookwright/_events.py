"""The names of events, and the classes of the objects that hooks receive."""

from __future__ import annotations

import enum

from ._native import (
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


class Event(str, enum.Enum):
    """The names of events. The plain string does as well: ``hooks.on("turn_start")``.

    Example:
        >>> import hookwright as hw
        >>> hw.Event.PRE_TOOL_EXECUTION == "pre_tool_execution"
        True
    """

    __module__ = "hookwright"

    SESSION_START = "session_start"
    SESSION_END = "session_end"
    TURN_START = "turn_start"
    PRE_SEND_MESSAGE = "pre_send_message"
    POST_SEND_MESSAGE = "post_send_message"
    SYSTEM_PROMPT_BUILT = "system_prompt_built"
    PRE_LLM_REQUEST = "pre_llm_request"
    TEXT_DELTA = "text_delta"
    POST_LLM_RESPONSE = "post_llm_response"
    LLM_ERROR = "llm_error"
    PRE_TOOL_BATCH = "pre_tool_batch"
    POST_TOOL_BATCH = "post_tool_batch"
    PRE_TOOL_EXECUTION = "pre_tool_execution"
    PERMISSION_REQUEST = "permission_request"
    PERMISSION_DECIDED = "permission_decided"
    POST_TOOL_EXECUTION = "post_tool_execution"
    POST_TOOL_EXECUTION_FAILURE = "post_tool_execution_failure"
    STOP = "stop"
    LIMIT_REACHED = "limit_reached"
    TURN_END = "turn_end"
    PRE_MICRO_COMPACT = "pre_micro_compact"
    POST_MICRO_COMPACT = "post_micro_compact"
    PRE_AUTO_COMPACT = "pre_auto_compact"
    POST_AUTO_COMPACT = "post_auto_compact"
    TEAMMATE_START = "teammate_start"
    TEAMMATE_END = "teammate_end"
    TEAMMATE_IDLE = "teammate_idle"
    MESSAGE_ROUTED = "message_routed"

    def __str__(self) -> str:
        return self.value


__all__ = [
    "Event",
    "LimitReached",
    "LlmError",
    "MessageRouted",
    "PermissionDecided",
    "PermissionRequest",
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
    "SessionEnd",
    "SessionStart",
    "Stop",
    "SystemPromptBuilt",
    "TeammateEnd",
    "TeammateIdle",
    "TeammateStart",
    "TextDelta",
    "TurnEnd",
    "TurnStart",
]
