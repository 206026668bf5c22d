"""Hooks that are no functions: commands, and prompts that a model answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["hook", "gate", "observer"]
OnError = Literal["skip", "deny", "stop"]
Level = Literal["builtin", "user", "project", "session"]

FILTERS = ("tool_name", "tool_matcher", "tool_regex", "model_prefix", "agent", "arguments")
COMMON = ("role", "order", "timeout", "retry", "on_error", "shadow", "enabled", "level", "source", *FILTERS)


@dataclass(frozen=True, kw_only=True)
class _Options:
    role: Role = "hook"
    order: int = 0
    timeout: float = 10.0
    retry: int = 0
    on_error: OnError | None = None
    shadow: bool = False
    enabled: bool = True
    level: Level = "session"
    tool_name: str | None = None
    tool_matcher: str | None = None
    tool_regex: str | None = None
    model_prefix: str | None = None
    agent: str | None = None
    arguments: Mapping[str, str] | None = None
    source: str = ""


@dataclass(frozen=True)
class ShellHook(_Options):
    """A command as a hook: the event as JSON on its standard input, its answer on its standard output.

    Args:
        events: one event name or several.
        command: run through ``sh -c``, never a login shell.
        name: unique in the chain; by default the command's first word.
        role: ``"hook"``, ``"gate"`` or ``"observer"``.
        timeout: seconds until the process group is ended.
        retry: how often a failed attempt is repeated.
        folder: the hook's own folder: first on ``PATH``, and ``HOOKWRIGHT_HOOK_DIR``.

    The other arguments are those of `HookChain.on`.

    Example:
        >>> import hookwright as hw
        >>> hooks = hw.HookChain()
        >>> hooks.add(hw.ShellHook("turn_start", "true", name="nothing"))
        ShellHook('nothing')
        >>> hooks.run("turn_start", user_input="hi").runs[0].status
        'ok'
    """

    __module__ = "hookwright"

    events: str | Sequence[str]
    command: str
    name: str | None = field(default=None, kw_only=True)
    folder: str | None = field(default=None, kw_only=True)

    def __repr__(self) -> str:
        return f"ShellHook({self.name or self.command!r})"


@dataclass(frozen=True)
class LlmHook(_Options):
    """A prompt as a hook: a model is asked about the event and answers with the JSON that any hook answers with.

    The prompt may hold ``{{event}}``, ``{{cwd}}``, ``{{user_input}}``, ``{{assistant_output}}``, ``{{tool_name}}``,
    ``{{tool_arguments}}``, ``{{tool_result}}``, ``{{tool_error}}``, ``{{model}}``, ``{{system_prompt}}``,
    ``{{messages}}`` and ``{{session_id}}``. Values are put in once, between tags of that name, and the model is told
    that they are data. An answer that is no result is asked for once more; after that the hook has failed, and a gate
    has refused.

    Args:
        events: one event name or several.
        prompt: what the model is asked.
        model: any model that an `Agent` takes.
        name: unique in the chain.
        role: ``"hook"``, ``"gate"`` or ``"observer"``.
        timeout: seconds that one attempt may take, with the second question in it.
        retry: how often an attempt is repeated in which the model could not be reached or was too slow.

    The other arguments are those of `HookChain.on`.

    Raises:
        HookError: when added to a chain, for a prompt with a variable that there is not, or not on these events.

    Example:
        >>> import hookwright as hw
        >>> hooks = hw.HookChain()
        >>> judge = hw.Scripted(['{"action": "skip", "reason": "it deletes"}'])
        >>> prompt = "Is {{tool_arguments}} harmless?"
        >>> hooks.add(hw.LlmHook("pre_tool_execution", prompt, judge, name="judge", role="gate"))
        LlmHook('judge')
        >>> outcome = hooks.run("pre_tool_execution", tool_name="shell", tool_arguments={"command": "rm -rf x"})
        >>> outcome.action, outcome.reason
        ('skip', 'it deletes')
    """

    __module__ = "hookwright"

    events: str | Sequence[str]
    prompt: str
    model: Any
    name: str = field(kw_only=True)
    timeout: float = field(default=14.0, kw_only=True)
    retry: int = field(default=1, kw_only=True)

    def __repr__(self) -> str:
        return f"LlmHook({self.name!r})"
