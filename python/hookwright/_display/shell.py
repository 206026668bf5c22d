"""A shell command with the places that matter marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unicodedata import east_asian_width

from ._page import escape, page, table


def marked(command: str, spans: Sequence[tuple[int, int]]) -> list[str]:
    """The lines of ``command``, each followed by a line of carets under what the spans cover, if they cover any."""
    under = [False] * (len(command) + 1)
    for start, end in spans:
        for at in range(start, max(end, start + 1)):
            if at < len(under):
                under[at] = True
    lines: list[str] = []
    at = 0
    for line in command.split("\n"):
        lines.append(line)
        marks = "".join(
            ("^" * _width(character) if under[at + index] else " " * _width(character))
            if character != "\t"
            else ("^" if under[at + index] else "\t")
            for index, character in enumerate(line)
        ).rstrip()
        if not marks and under[at + len(line)] and not line:
            marks = "^"
        if marks:
            lines.append(marks)
        at += len(line) + 1
    return lines


def _width(character: str) -> int:
    """How many columns of a terminal a character takes."""
    return 2 if east_asian_width(character) in "WF" else 1


def analysis_html(analysis: dict[str, Any]) -> str:
    """The command with marked spans, its effect, and the reasons.

    Args:
        analysis: `command`, `effect`, and `reasons`: each with `code`, `span` (in characters), `message` and `hint`.
    """
    command: str = analysis["command"]
    reasons = analysis["reasons"]
    inside = {at for reason in reasons for at in range(*reason["span"])}
    text, at = "", 0
    while at < len(command):
        end = at
        while end < len(command) and (end in inside) == (at in inside):
            end += 1
        part = escape(command[at:end])
        text += f"<del>{part}</del>" if at in inside else part
        at = end
    kind = "good" if analysis["effect"] in ("read_only", "runs_tests") else "bad"
    rows = [
        (f"<code class='name'>{escape(reason['code'])}</code>", escape(reason["message"]), escape(reason["hint"]))
        for reason in reasons
    ]
    why = table(("code", "why", "instead"), rows) if rows else ""
    return page(f"<span class='mark {kind}'>{escape(analysis['effect'])}</span>", f"<pre>{text}</pre>", why)
