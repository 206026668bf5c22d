"""The outcome of one dispatch as a small table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ._page import escape, mark, milliseconds, page, shorten, table
from .changes import change_html


def outcome_html(outcome: Mapping[str, Any]) -> str:
    """The runs of a chain with their status and milliseconds, and what they changed.

    Args:
        outcome: `event`, `action`, `reason`, `halted_by`, `ms`, `runs` (each `name`, `kind`, `role`, `level`,
            `status`, `attempts`, `ms`, `error`), `changes` (each `hook`, `field`, `before`, `after`), and
            `retry_feedback`, `additional_context`, `system_messages` as lists of text, of (hook, text) or of
            {hook, text}. All optional: what `Outcome.to_dict` returns.
    """
    return page(outcome_body(outcome))


def outcome_body(outcome: Mapping[str, Any]) -> str:
    """`outcome_html` without the surrounding block, for a page that holds several."""
    return _headline(outcome) + runs_table(outcome.get("runs") or (), outcome.get("changes") or ()) + _notes(outcome)


def runs_table(runs: Iterable[Mapping[str, Any]], changes: Iterable[Mapping[str, Any]]) -> str:
    """One row a hook."""
    by_hook: dict[str, list[str]] = {}
    for change in changes:
        by_hook.setdefault(str(change.get("hook")), []).append(change_html(change))
    rows = []
    for run in runs:
        details = by_hook.pop(str(run.get("name")), [])
        if run.get("error"):
            details.append(f'<span class="quiet">{escape(shorten(str(run["error"])))}</span>')
        details += [f'<span class="quiet">{escape(shorten(str(note)))}</span>' for note in run.get("notes") or ()]
        if run.get("would_halt"):
            would = run["would_halt"]
            details.append(f"shadow: would {escape(would.get('action'))} — {escape(shorten(str(would.get('reason'))))}")
        if run.get("would_change"):
            details.append(f"shadow: would change {escape(', '.join(map(str, run['would_change'])))}")
        if (run.get("attempts") or 0) > 1:
            details.append(f'<span class="quiet">{escape(run["attempts"])} attempts</span>')
        rows.append(
            (
                escape(run.get("name")),
                escape(run.get("kind")),
                escape(run.get("role")),
                mark(run.get("status")),
                milliseconds(run.get("ms")),
                "<br>".join(details),
            )
        )
    if not rows:
        return '<div class="quiet">no hook ran</div>'
    return table(("hook", "kind", "role", "status", "ms", "what"), rows, frozenset({4}))


def _headline(outcome: Mapping[str, Any]) -> str:
    parts = [f"<b>{escape(outcome.get('event'))}</b>", mark(outcome.get("action") or "ok")]
    if outcome.get("halted_by"):
        parts.append(f"by {escape(outcome['halted_by'])}")
    if outcome.get("reason"):
        parts.append(f"— {escape(shorten(str(outcome['reason'])))}")
    if outcome.get("ms") is not None:
        parts.append(f'<span class="quiet">{milliseconds(outcome["ms"])} ms</span>')
    return f"<div>{' '.join(parts)}</div>"


def _notes(outcome: Mapping[str, Any]) -> str:
    html = ""
    for key, title in (
        ("system_messages", "message"),
        ("retry_feedback", "sent back"),
        ("additional_context", "context"),
    ):
        for entry in outcome.get(key) or ():
            if isinstance(entry, Mapping):
                hook, text = entry.get("hook"), entry.get("text")
            else:
                hook, text = entry if isinstance(entry, (tuple, list)) else ("", entry)
            by = f" ({escape(hook)})" if hook else ""
            html += f'<div class="quiet">{title}{by}: {escape(shorten(str(text)))}</div>'
    return html
