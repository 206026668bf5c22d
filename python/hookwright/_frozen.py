"""Read-only views of event fields, and plain data from rich Python objects."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import pathlib
from collections.abc import Mapping, Sequence, Set
from typing import Any, NoReturn

_HINT = "event fields are read-only; return {'tool_arguments': {...}} (the field's name and its new value) to change it"


def _refuse(self: Any, *_args: Any, **_kwargs: Any) -> NoReturn:
    raise TypeError(_HINT)


class FrozenDict(dict[str, Any]):
    """A dict that cannot be changed. ``dict(view)`` or ``copy.deepcopy(view)`` makes an ordinary one."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def copy(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {key: _thaw(value) for key, value in self.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return (dict, (_thaw(self),))


class FrozenList(list[Any]):
    """A list that cannot be changed. ``list(view)`` or ``copy.deepcopy(view)`` makes an ordinary one."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def copy(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [_thaw(value) for value in self]

    def __reduce__(self) -> tuple[Any, ...]:
        return (list, (_thaw(self),))


def _thaw(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _thaw(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_thaw(item) for item in value]
    return value


def freeze(value: Any) -> Any:
    """A deeply read-only copy of dicts, lists and tuples; other values as they are."""
    kind = type(value)
    if kind is FrozenDict or kind is FrozenList:
        return value
    if isinstance(value, dict):
        return FrozenDict({key: freeze(item) for key, item in value.items()})
    if isinstance(value, (list, tuple)):
        return FrozenList([freeze(item) for item in value])
    return value


def plain(value: Any) -> Any:
    """A rich object as dicts, lists and scalars: what JSON can hold.

    Raises:
        TypeError: for an object that is none of the known kinds.
    """
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, pathlib.PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError("bytes have no JSON form; decode them or encode them as base64 text")
    if isinstance(value, (Sequence, Set)):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no JSON form; return dicts, lists, text, numbers, or a pydantic model")
