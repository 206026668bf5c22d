"""What all pages share: the style, escaping, tables."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

# Colours are mixed from the page's own text colour, so that light and dark themes both read well. The style is
# scoped by a class name; a notebook holds many of these side by side.
_STYLE = """
.hookwright{font-size:13px;line-height:1.45;color:inherit;max-width:100%;overflow-x:auto}
.hookwright table{border-collapse:collapse;margin:.3em 0}
.hookwright th,.hookwright td{padding:.15em .7em;text-align:left;vertical-align:top;background:none;
border:0;border-bottom:1px solid rgba(128,128,128,.3);color:inherit}
.hookwright th{font-weight:600;opacity:.75}
.hookwright td.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.hookwright code,.hookwright pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:12px;
color:inherit;background:none;margin:0;padding:0;white-space:pre-wrap;overflow-wrap:anywhere}
.hookwright code.name{white-space:nowrap}
.hookwright .mark{border-left:3px solid rgba(128,128,128,.6);padding-left:.4em;white-space:nowrap}
.hookwright .good{border-color:#2e9e5b}.hookwright .change{border-color:#3b82d6}
.hookwright .bad{border-color:#d64545}.hookwright .warn{border-color:#d19a1f}
.hookwright del{background:rgba(214,69,69,.22);text-decoration:none}
.hookwright ins{background:rgba(46,158,91,.25);text-decoration:none}
.hookwright .quiet{opacity:.7}
.hookwright summary{cursor:pointer}
""".replace("\n", "")

_KINDS = {
    "ok": "good",
    "success": "good",
    "passed": "good",
    "pass": "good",
    "done": "good",
    "fail": "bad",
    "blocked": "bad",
    "gone": "bad",
    "changed": "change",
    "halted": "bad",
    "failed": "bad",
    "timeout": "bad",
    "error": "bad",
    "stop": "bad",
    "stopped": "bad",
    "skip": "bad",
    "deny": "bad",
    "denied": "bad",
    "budget_exhausted": "bad",
    "ask": "warn",
    "warn": "warn",
    "limit": "warn",
    "cancelled": "warn",
    "awaiting_approval": "warn",
}


def escape(value: Any) -> str:
    """Any value as text that is safe between tags and in quoted attributes."""
    text = value if isinstance(value, str) else "" if value is None else str(value)
    # A notebook stores its cells as UTF-8, which has no surrogates.
    return html.escape(text.encode("utf-8", "replace").decode(), quote=True)


def page(*parts: str) -> str:
    """The parts as one block with its style."""
    return f'<div class="hookwright"><style>{_STYLE}</style>{"".join(parts)}</div>'


def mark(word: Any) -> str:
    """A status or action with a coloured edge; the word carries the meaning, the colour only helps."""
    kind = _KINDS.get(str(word), "")
    return f'<span class="mark {kind}">{escape(word)}</span>'


def milliseconds(value: Any) -> str:
    """A duration in milliseconds for a table cell; empty if there is none."""
    return "" if value is None else f"{float(value):.3f}" if float(value) < 10 else f"{float(value):.1f}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], numbers: frozenset[int] = frozenset()) -> str:
    """A table of cells that are HTML already; columns in `numbers` are aligned right."""
    head = "".join(f"<th>{escape(title)}</th>" for title in header)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="number">{cell}</td>' if index in numbers else f"<td>{cell}</td>"
            for index, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def shorten(text: str, limit: int = 400) -> str:
    """Text cut in the middle, with a note of how much is left out."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]} … {len(text) - 2 * half} characters … {text[-half:]}"
