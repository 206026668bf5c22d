"""The exceptions of hookwright.

Everything the package raises on purpose is a `HookwrightError`. Where Python has a class for the same thing, ours is
one as well, so that `except TimeoutError` or `except ValueError` works as a reader expects.

The classes stand here, and not in the compiled module, because an extension for the stable ABI cannot subclass
exceptions with their own attributes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

__all__ = [
    "ConfigError",
    "ConfigProblem",
    "GoalError",
    "HookError",
    "HookTimeout",
    "HookwrightError",
    "ModelError",
    "SessionBusy",
    "SessionError",
    "TeamError",
    "ToolError",
    "TrustError",
    "UnknownEventError",
]


class HookwrightError(Exception):
    """The base of all errors of this package.

    Args:
        message: what went wrong, and where.
        hint: what to do about it, if there is something to say; shown on a line of its own.
    """

    __module__ = "hookwright"

    message: str
    hint: str | None

    def __init__(self, message: str = "", *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions pickle by calling the class with `args`, which would lose keyword-only attributes.
        return (_restore, (type(self), self.args, self.__dict__))


def _restore(cls: type[BaseException], args: tuple[Any, ...], state: dict[str, Any]) -> BaseException:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


@dataclass(frozen=True)
class ConfigProblem:
    """One mistake in a configuration.

    Attributes:
        file: the file it stands in.
        line: its line, counted from 1; None if it belongs to the file as a whole.
        column: its column, counted from 1; None if unknown.
        message: what is wrong.
        suggestion: what was probably meant, or what to do; None if there is nothing to suggest.
    """

    __module__ = "hookwright"

    file: str
    line: int | None
    column: int | None
    message: str
    suggestion: str | None = None

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        return f"{place}: {self.message}" + (f"; {self.suggestion}" if self.suggestion else "")


class ConfigError(HookwrightError, ValueError):
    """A configuration with mistakes. All of them are in `problems`, not only the first.

    Args:
        message: one line for the whole; made from the problems if left out.
        problems: every mistake found, in the order of the files.
        hint: what to do about it.
    """

    __module__ = "hookwright"

    problems: tuple[Any, ...]

    def __init__(self, message: str = "", problems: Iterable[Any] = (), *, hint: str | None = None) -> None:
        self.problems = tuple(problems)
        if not message:
            count = len(self.problems)
            message = f"{count} {'problem' if count == 1 else 'problems'} in the hook configuration"
        super().__init__(message, hint=hint)

    def __str__(self) -> str:
        lines = [self.message, *(f"  {problem}" for problem in self.problems)]
        return "\n".join([*lines, f"  hint: {self.hint}"] if self.hint else lines)


class GoalError(HookwrightError):
    """A goal that cannot be pursued, resumed or spoken to."""

    __module__ = "hookwright"


class TeamError(HookwrightError):
    """Something that cannot be done in a team: a name, an address, a task, a team that cannot be taken up."""

    __module__ = "hookwright"


class HookError(HookwrightError):
    """A hook that cannot be registered, found or called as it stands."""

    __module__ = "hookwright"


class AnswerError(HookError):
    """A model that gave no usable answer to the hook that asked it, not even when it was asked once more."""

    __module__ = "hookwright"

    #: Asking a third time would come to nothing else.
    hook_failure_is_final = True


class HookTimeout(HookError, TimeoutError):
    """A hook that passed its deadline."""

    __module__ = "hookwright"


class UnknownEventError(HookError, ValueError):
    """An event name that does not exist.

    Args:
        message: what was asked for.
        name: the unknown name.
        suggestion: the nearest real name, if one is near.
        hint: what to do about it.
    """

    __module__ = "hookwright"

    name: str
    suggestion: str | None

    def __init__(
        self, message: str = "", *, name: str = "", suggestion: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.name = name
        self.suggestion = suggestion


class SessionError(HookwrightError):
    """A session that cannot be opened, written or resumed."""

    __module__ = "hookwright"


class SessionBusy(SessionError, RuntimeError):
    """A second run on a session while one is going. Use `run(session=...)` to run side by side."""

    __module__ = "hookwright"


class ModelError(HookwrightError):
    """A model that failed for good, after its retries.

    Args:
        message: what the model or its server said.
        result: the partial `RunResult`: what was done until then.
        hint: what to do about it.

    Attributes:
        kind: ``"connection"``, ``"timeout"``, ``"rate_limited"``, ``"overloaded"``, ``"server"``,
            ``"invalid_request"``, ``"authentication"``, ``"invalid_reply"``, ``"function"``, ``"script"`` or
            ``"cancelled"``.
        status: the HTTP status, if there was an answer.
        attempts: how often it was tried.
        partial: the `Reply` that had come in until the server ended it early; never the answer.
    """

    __module__ = "hookwright"

    result: Any
    kind: str | None
    status: int | None
    attempts: int
    partial: Any

    def __init__(
        self,
        message: str = "",
        *,
        result: Any = None,
        hint: str | None = None,
        kind: str | None = None,
        status: int | None = None,
        attempts: int = 1,
        partial: Any = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.result = result
        self.kind, self.status, self.attempts, self.partial = kind, status, attempts, partial


class ToolError(HookwrightError):
    """A tool call that failed, in words for the model. Raise or return it from a tool to say more than a bare exception
    does.

    Args:
        detail: what went wrong. Empty means "the tool failed without saying why".
        code: the kind of failure: `required`, `type`, `invalid`, `unauthorized`, `denied`, `timeout`, `not_found`,
            `cancelled`, `exception`, `panic` or `truncated_arguments`.
        field: the argument that is to blame, if one is; of several, the first.
        hint: what to try instead.
        retryable: whether the same call may work later.
        retry_after: seconds to wait before that; says that the call is retryable.
        problems: with several wrong arguments, each as (field, what is wrong).

    Raises:
        ValueError: for a code that does not exist, or a wait that is none.

    Example:
        >>> raise ToolError("no such file: notes.md", code="not_found", hint="list the folder first")
        Traceback (most recent call last):
        ...
        hookwright.ToolError: no such file: notes.md
          hint: list the folder first
        >>> ToolError("no such file: notes.md", code="not_found", field="path").render()
        'Error (not_found), argument `path`: no such file: notes.md'
    """

    __module__ = "hookwright"

    code: str
    field: str | None
    detail: str
    retryable: bool
    retry_after: float | None
    problems: tuple[tuple[str, str], ...]

    def __init__(
        self,
        detail: str = "",
        *,
        code: str = "exception",
        field: str | None = None,
        hint: str | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
        problems: Iterable[tuple[str, str]] = (),
    ) -> None:
        detail = str(detail)
        detail = detail if detail.strip() else "the tool failed without saying why"
        super().__init__(detail, hint=hint)
        self.code = _checked_code(code)
        self.field = field
        self.detail = detail
        self.retryable = retryable or retry_after is not None
        self.retry_after = _checked_wait(retry_after)
        self.problems = tuple(problems)

    def render(self) -> str:
        """The text that a model reads: what failed, which argument, why, and what to do."""
        from ._failures import fields_of
        from ._native import render_tool_error

        return render_tool_error(fields_of(self))


def _checked_code(code: str) -> str:
    from ._native import tool_error_codes

    codes = tool_error_codes()
    if code in codes:
        return code
    near = difflib.get_close_matches(str(code), codes, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(codes)}"
    raise ValueError(f"ToolError has no code {code!r}{hint}")


def _checked_wait(seconds: float | None) -> float | None:
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < 1e15:
        raise ValueError(f"retry_after is a number of seconds, not {seconds!r}")
    return float(seconds)


class TrustError(HookwrightError, PermissionError):
    """Hooks of a project that is not trusted, or that changed since it was.

    Args:
        message: which project, and why it is not trusted.
        project: the project's folder.
        hint: how to trust it.
    """

    __module__ = "hookwright"

    project: str | None

    def __init__(self, message: str = "", *, project: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.project = project
