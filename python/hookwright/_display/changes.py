"""What a hook changed, as a diff - without showing what a redaction took out."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from ._page import escape, shorten

OPEN_FIELDS = frozenset({"tool_arguments", "tool_name", "decision", "recipients", "tools"})
"""Fields whose values are shown. Any other value may hold what a hook redacted: only its length and hash are shown."""

_LONGEST = 2_000
#: What the core shows of a value that it holds back.
_HELD_BACK = re.compile(r"<(\d+) characters, blake3 ([0-9a-f]{8})>")
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")


def change_html(change: Mapping[str, Any]) -> str:
    """One change as HTML.

    Args:
        change: `field`, `before` and `after`. A value may also be given as `{"length": ..., "hash": ...}`, or as the
            core shows it (`<9 characters, blake3 0a1b2c3d>`), when the caller holds no more than that.
    """
    field = str(change.get("field", ""))
    before, after = _digest(change.get("before")), _digest(change.get("after"))
    if field not in OPEN_FIELDS or _is_digest(before) or _is_digest(after):
        return f"<code>{escape(field)}</code>: {escape(describe(before))} → {escape(describe(after))}"
    old, new = _text(before), _text(after)
    if len(old) + len(new) > _LONGEST:
        return f"<code>{escape(field)}</code>: {escape(describe(before))} → {escape(describe(after))}"
    return f"<code>{escape(field)}: {_diff(old, new)}</code>"


def describe(value: Any) -> str:
    """A value without its content: its length in characters and the start of its SHA-256."""
    if value is None:
        return "nothing"
    if _is_digest(value):
        return f"{value['length']} characters, #{str(value['hash'])[:8]}"
    text = _text(value)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{len(text)} characters, #{digest[:8]}"


def _digest(value: Any) -> Any:
    held_back = _HELD_BACK.fullmatch(value) if isinstance(value, str) else None
    return {"length": int(held_back[1]), "hash": held_back[2]} if held_back else value


def _is_digest(value: Any) -> bool:
    return isinstance(value, Mapping) and set(value) == {"length", "hash"}


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=lambda item: f"<{type(item).__name__}>")


def _diff(old: str, new: str) -> str:
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    parts = []
    for operation, i1, i2, j1, j2 in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        removed, added = "".join(before[i1:i2]), "".join(after[j1:j2])
        if operation == "equal":
            parts.append(escape(shorten(removed, 160)))
            continue
        if removed:
            parts.append(f"<del>{escape(shorten(removed))}</del>")
        if added:
            parts.append(f"<ins>{escape(shorten(added))}</ins>")
    return "".join(parts)
