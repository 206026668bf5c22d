"""What the model sees of a tool's return value."""

from __future__ import annotations

import json
import math
from typing import Any

from pydantic_core import PydanticSerializationError, to_jsonable_python

from .exceptions import ToolError

_HINT = "return a str, a number, a list or dict of those, a dataclass or a pydantic model"


def render_result(value: Any) -> tuple[str, Any]:
    """Turns the return value of a tool into text for the model and, unless it is text already, JSON data.

    `None` is an empty text. A `str` stays as it is. Everything else becomes compact JSON: non-ASCII characters are
    kept, nothing is escaped for HTML, NaN and infinities become strings (JSON has none). Surrogates that are not part
    of a pair, which no server accepts, become U+FFFD.

    Args:
        value: what the tool returned.

    Returns:
        The text, and the value as JSON data; None for a text or None.

    Raises:
        ToolError: for a value without a JSON form. Showing the model the `repr` of an
            object would give it an address in memory.

    Example:
        >>> render_result({"name": "é", "sizes": (1, 2)})
        ('{"name":"é","sizes":[1,2]}', {'name': 'é', 'sizes': [1, 2]})
    """
    if value is None:
        return "", None
    if isinstance(value, str):
        return well_formed(str(value)), None
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _text(bytes(value)), None
    try:
        data = to_jsonable_python(value, fallback=_refuse)
        try:
            text = _dumps(data)
        except ValueError:
            data = _finite(data)
            text = _dumps(data)
    except ToolError:
        raise
    except (PydanticSerializationError, UnicodeError, TypeError, ValueError, RecursionError) as error:
        raise ToolError(
            f"the result of type {_name(value)} has no JSON form: {error}", code="exception", hint=_HINT
        ) from error
    clean = well_formed(text)
    # Outside strings JSON is ASCII, so replacing characters in the text is replacing them in the strings.
    return (text, data) if clean is text else (clean, json.loads(clean))


def well_formed(text: str) -> str:
    """The same text with each surrogate that is not part of a pair replaced by U+FFFD; pairs become one character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _dumps(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _finite(data: Any) -> Any:
    """The same JSON data with NaN and infinities as the strings "NaN", "Infinity" and "-Infinity"."""
    if isinstance(data, float) and not math.isfinite(data):
        return json.dumps(data)
    if isinstance(data, list):
        return [_finite(item) for item in data]
    if isinstance(data, dict):
        return {key: _finite(item) for key, item in data.items()}
    return data


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise ToolError(
            f"the result is {len(value)} bytes that are not UTF-8 text",
            code="exception",
            hint="decode it, or save it to a file and return the path",
        ) from None


def _refuse(value: Any) -> Any:
    raise ToolError(f"the result holds a {_name(value)}, which has no JSON form", code="exception", hint=_HINT)


def _name(value: Any) -> str:
    cls = type(value)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
