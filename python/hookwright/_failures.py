"""What counts as a failed tool call, and how an exception reads to a model."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

from . import _native
from ._render import render_result, well_formed
from .exceptions import ToolError

__all__ = ["is_failure"]

#: What Python shows of an object without a form of its own: `<module.Class object at 0x7f…>`.
_ADDRESS = re.compile(r"<(?:bound method |function |built-in method )?([\w.]+)[^<>]*? at 0x[0-9A-Fa-f]+>")
#: A stack that stands in the text of an exception; the line behind it says what happened.
_TRACEBACK = re.compile(r"^Traceback \(most recent call last\):\n(?:[ \t].*\n)+", re.MULTILINE)


def is_failure(value: Any, *, declares_json: bool = False) -> bool:
    """Whether what a tool returned counts as a failed call. An agent decides by the same rules.

    Failures are: an exception, a `ToolError` among them; ``{"error": …}`` with text that is not blank, an object that
    says something, or ``True``; ``{"isError": True, …}`` as servers of the Model Context Protocol send it; and a value
    that has no JSON form, because a model cannot be told of it. Exit codes and stderr are results, and free text is
    success, whatever it says.

    Args:
        value: what the tool returned.
        declares_json: the tool says that the text it returns is JSON: `tool(returns="json")`. A text that is one of
            these shapes as a whole is a failure then.

    Example:
        >>> is_failure({"error": "no such table"}), is_failure({"error": None, "rows": []})
        (True, False)
        >>> is_failure('{"error": "no such table"}'), is_failure('{"error": "no such table"}', declares_json=True)
        (False, True)
    """
    return _native.is_failure(value, declares_json)


def fields_of(error: BaseException) -> dict[str, Any]:
    """The fields of the failure that an exception stands for, as the core reads them."""
    if not isinstance(error, ToolError):
        return {"code": "exception", "detail": describe(error)}
    fields: dict[str, Any] = {"code": error.code, "detail": _clean(error.detail), "retryable": bool(error.retryable)}
    for name in ("field", "hint"):
        text = getattr(error, name)
        if text is not None:
            fields[name] = _clean(str(text))
    if error.retry_after is not None:
        fields["retry_after"] = float(error.retry_after)
        fields["retryable"] = True
    return fields


def describe(error: BaseException) -> str:
    """An exception in one text for a model: its class and its words, without what only Python's own displays show."""
    name = type(error).__name__
    text = ""
    with suppress(Exception):  # A text that cannot be made is no text.
        text = _clean(_words(error)).strip()
    return f"{name}: {text}" if text else f"the tool raised {name} without saying why"


def _words(error: BaseException) -> str:
    problems = getattr(error, "errors", None)
    if type(error).__module__.startswith("pydantic") and callable(problems):
        return "; ".join(_problem(problem) for problem in problems())
    if isinstance(error, KeyError) and type(error).__str__ is KeyError.__str__:
        # Its text is the display of the key.
        return f"there is no {_plain(error.args[0])}" if len(error.args) == 1 else _joined(error.args)
    if type(error).__str__ is BaseException.__str__:
        return _joined(error.args)
    return str(error)


def _problem(problem: dict[str, Any]) -> str:
    place = ".".join(str(part) for part in problem.get("loc", ()))
    return f"{place}: {problem['msg']}" if place else str(problem["msg"])


def _joined(values: tuple[Any, ...]) -> str:
    return ", ".join(_plain(value) for value in values)


def _plain(value: Any) -> str:
    """A value as text or JSON; one that has neither by the name of its class."""
    if isinstance(value, BaseException):
        return describe(value)
    try:
        return render_result(value)[0] if value is not None else "null"
    except ToolError:
        return f"a {type(value).__name__}"


def _clean(text: str) -> str:
    return _ADDRESS.sub(lambda match: f"a {match[1].rpartition('.')[2]}", _TRACEBACK.sub("", well_formed(text)))
