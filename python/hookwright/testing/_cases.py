"""Events that hooks stumble over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import _native
from ..exceptions import HookwrightError

_SHORT: dict[str, Any] = {
    "messages": [{"role": "user", "content": "hello"}],
    "tools": ["shell", "read_file"],
    "tool_calls": [{"id": "call_1", "name": "shell", "arguments": {"command": "ls"}}],
    "usage": {"input_tokens": 10, "output_tokens": 5},
    "error": {"kind": "timeout", "status": None, "message": "no answer", "attempts": 3},
    "tool_name": "shell",
    "tool_arguments": {"command": "ls", "path": "notes.txt"},
    "duration_ms": 12.5,
    "used": 10,
    "allowed": 10,
    "tokens_before": 1000,
    "tokens_after": 100,
    "target_tokens": 500,
    "ids_before": ["m1"],
    "ids_after": ["m2"],
    "open_tasks": 0,
    "recipients": ["bob"],
}

#: Text of many scripts, with characters of one to four bytes, a zero width joiner and a combining accent.
UNICODE = "删除文件 удалить ファイル 🧑‍🚀🔥 e\u0301"
#: What breaks text that is pasted into a command, a pattern or a line of JSON.
PUNCTUATION = "\"quoted\" 'single' \\ back\nnew line\ttab \x00 \x1b[31m %s {0} ${HOME} * ?"
_LARGE = 8 * 1024 * 1024


@dataclass(frozen=True)
class HostileCase:
    """One event to feed a hook with.

    Attributes:
        name: what is special about it.
        event: the event's name.
        fields: its fields.
    """

    name: str
    event: str
    fields: Mapping[str, Any] = field(repr=False)


def hostile_cases(event: str, fields: Mapping[str, Any] | None = None) -> list[HostileCase]:
    """The hostile cases for an event: missing and empty fields, other types, 8 MB of text, other scripts, and so on.

    Args:
        event: the event's name.
        fields: values that fit the hook, such as the tool that it is for; the rest is made up.

    Raises:
        HookwrightError: for an event that does not exist.

    Example:
        >>> [case.name for case in hostile_cases("text_delta")][:3]
        ['ordinary', 'no fields at all', 'without delta']
    """
    row = _native.event_table().get(event)
    if row is None:
        raise HookwrightError(f"there is no event {event!r}")
    ordinary = {name: _SHORT.get(name, "text") for name in row["readable"] if name != "tool_arguments_json"}
    ordinary.update(fields or {})
    return [HostileCase(name, event, values) for name, values in _variations(ordinary)]


def _variations(ordinary: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "ordinary", ordinary
    yield "no fields at all", {}
    for name in ordinary:
        yield f"without {name}", {key: value for key, value in ordinary.items() if key != name}
    yield "null in every field", dict.fromkeys(ordinary)
    yield "everything empty", _texts(ordinary, lambda _: "", lambda value: type(value)())
    yield "Chinese, Cyrillic, emoji", _texts(ordinary, lambda _: UNICODE)
    yield "quotes, control characters, line breaks", _texts(ordinary, lambda _: PUNCTUATION)
    yield "a lone surrogate", _texts(ordinary, lambda text: text + "\ud800")
    yield "8 MB of text", _largest(ordinary, "x" * _LARGE)
    yield "8 MB of four-byte characters", _largest(ordinary, "🔥" * (_LARGE // 4))
    if "tool_arguments" in ordinary:
        for name, value in (
            ("a number for text", 1),
            ("a list for text", ["ls"]),
            ("an object for text", {"command": "ls"}),
            ("null for text", None),
        ):
            arguments = dict.fromkeys(ordinary["tool_arguments"] or {"command": None}, value)
            yield f"{name} in tool_arguments", {**ordinary, "tool_arguments": arguments}
        deep: Any = "bottom"
        for _ in range(90):
            deep = {"deeper": deep}
        yield "arguments nested 90 deep", {**ordinary, "tool_arguments": {**ordinary["tool_arguments"], "extra": deep}}
        many = {**ordinary["tool_arguments"], **{f"extra_{number}": number for number in range(10_000)}}
        yield "10,000 arguments", {**ordinary, "tool_arguments": many}
        numbers = {**ordinary["tool_arguments"], "integer": 2**63 - 1, "small": -(2**63), "float": 1.7e308}
        yield "numbers at their limits", {**ordinary, "tool_arguments": numbers}


def _texts(
    values: dict[str, Any],
    text: Callable[[str], str],
    other: Callable[[Any], Any] | None = None,
) -> dict[str, Any]:
    """The values with every text in them replaced, names of keys, tools and roles aside."""

    def replace(value: Any) -> Any:
        if isinstance(value, str):
            return text(value)
        if isinstance(value, dict) and not (other and not value):
            return {key: item if key in ("role", "name", "id") else replace(item) for key, item in value.items()}
        if other is not None:
            return other(value)
        return [replace(item) for item in value] if isinstance(value, list) else value

    return {name: value if name in ("tool_name", "tools") else replace(value) for name, value in values.items()}


def _largest(ordinary: dict[str, Any], text: str) -> dict[str, Any]:
    """The values with the text in that field which is usually the longest."""
    if "tool_arguments" in ordinary and "tool_result" not in ordinary:
        first = next(iter(ordinary["tool_arguments"]), "command")
        return {**ordinary, "tool_arguments": {**ordinary["tool_arguments"], first: text}}
    for name in ("tool_result", "tool_error", "assistant_output", "user_input", "text", "delta", "system_prompt"):
        if name in ordinary:
            return {**ordinary, name: text}
    if "messages" in ordinary:
        return {**ordinary, "messages": [{"role": "user", "content": text}]}
    if "error" in ordinary:
        return {**ordinary, "error": {**ordinary["error"], "message": text}}
    if "tool_calls" in ordinary:
        return {**ordinary, "tool_calls": [{"id": "call_1", "name": "shell", "arguments": {"command": text}}]}
    first = next(name for name, value in ordinary.items() if isinstance(value, str))
    return {**ordinary, first: text}


def command_cases(event: str, fields: Mapping[str, Any] | None, mark: str) -> list[HostileCase]:
    """Cases whose text, taken for a command by a careless hook, makes the file ``mark``."""
    ordinary = dict(hostile_cases(event, fields)[0].fields)
    return [
        HostileCase(name, event, _texts(ordinary, lambda _, text=text: text))  # type: ignore[misc]
        for name, text in (
            ("a command in $()", f"$(touch {mark})"),
            ("a command in backticks", f"`touch {mark}`"),
            ("a command after quotes", f"'; touch {mark}; '"),
            ("a command after double quotes", f'"; touch {mark}; "'),
            ("Python code in text", f"' + str(__import__('pathlib').Path('{mark}').touch()) + '"),
        )
    ]
