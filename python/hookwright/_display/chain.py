"""A chain: its hooks, why they match, what they did, and what a replay of them found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ._page import escape, mark, milliseconds, page, shorten, table


def chain_html(hooks: Iterable[Mapping[str, Any]]) -> str:
    """The hooks in the order in which they run.

    Args:
        hooks: each `name`, `kind`, `role`, `level`, `events`, `filter`, `enabled`, `shadow` and `source`. All optional.
    """
    rows = []
    for hook in hooks:
        state = [word for word, on in (("off", not hook.get("enabled", True)), ("shadow", hook.get("shadow"))) if on]
        rows.append(
            (
                escape(hook.get("name")),
                escape(hook.get("role")),
                escape(hook.get("kind")),
                escape(hook.get("level")),
                "<br>".join(escape(event) for event in hook.get("events") or ()),
                f"<code>{escape(filter_text(hook.get('filter') or {}))}</code>",
                escape(", ".join(state)),
                f'<span class="quiet">{escape(hook.get("source"))}</span>',
            )
        )
    if not rows:
        return page('<div class="quiet">a chain without hooks</div>')
    return page(table(("hook", "role", "kind", "level", "events", "filter", "", "source"), rows))


def filter_text(conditions: Mapping[str, Any]) -> str:
    """The conditions of a filter on one line."""
    flat = {key: value for key, value in conditions.items() if not isinstance(value, Mapping)}
    for key, value in conditions.items():
        if isinstance(value, Mapping):
            flat.update({f"{key}.{name}": pattern for name, pattern in value.items()})
    return ", ".join(f"{key}={value}" for key, value in flat.items())


def explanation_html(event: str, hooks: Iterable[Mapping[str, Any]]) -> str:
    """Why each hook runs or not on one event.

    Args:
        event: its name.
        hooks: each `name`, `matches`, `why` and `warning`.
    """
    rows = []
    for hook in hooks:
        why = escape(hook.get("why"))
        if hook.get("warning"):
            why += f"<br>{mark('warn')} {escape(hook['warning'])}"
        rows.append((escape(hook.get("name")), "runs" if hook.get("matches") else '<span class="quiet">no</span>', why))
    body = table(("hook", "", "why"), rows) if rows else '<div class="quiet">a chain without hooks</div>'
    return page(f"<div><b>{escape(event)}</b></div>", body)


def stats_html(hooks: Iterable[Mapping[str, Any]]) -> str:
    """Counts and times.

    Args:
        hooks: each with the attributes of `HookStats`, and `why_never` for one that never matched.
    """
    counts = ("runs", "changes", "halts", "failures", "timeouts", "filtered", "passed_over")
    times = ("p50_ms", "p95_ms", "p99_ms")
    rows = []
    for hook in hooks:
        numbers = [escape(hook.get(name)) for name in counts]
        spent = [milliseconds(hook.get(name)) if hook.get("runs") else "" for name in times]
        never = f"{mark('warn')} never matched: {escape(hook['why_never'])}" if hook.get("why_never") else ""
        rows.append((escape(hook.get("name")), *numbers, *spent, never))
    header = ("hook", *(name.replace("_", " ") for name in counts), "p50 ms", "p95 ms", "p99 ms", "")
    return page(table(header, rows, frozenset(range(1, len(header) - 1))))


def replay_html(report: Mapping[str, Any]) -> str:
    """The events on which a chain decides otherwise than was recorded.

    Args:
        report: `headline`, `notes`, and `differences`: each `line`, `call`, `before` and `after` (each `action`,
            `reason` and `halted_by`), and `fields`: the names of those that end up different.
    """
    rows = []
    for one in report.get("differences") or ():
        rows.append(
            (
                escape(one.get("line")),
                f"<code>{escape(one.get('call'))}</code>",
                _decision(one.get("before") or {}),
                _decision(one.get("after") or {}),
                escape(", ".join(str(name) for name in one.get("fields") or ())),
            )
        )
    header = ("line", "event", "then", "now", "fields that differ")
    body = table(header, rows, frozenset({0})) if rows else ""
    notes = "".join(f'<div class="quiet">{escape(note)}</div>' for note in report.get("notes") or ())
    return page(f"<div><b>{escape(report.get('headline'))}</b></div>", body, notes)


def _decision(decision: Mapping[str, Any]) -> str:
    if decision.get("action") is None:
        return '<span class="quiet">let through</span>'
    reason = f" — {escape(shorten(str(decision['reason'])))}" if decision.get("reason") else ""
    return f"{mark(decision['action'])} by {escape(decision.get('halted_by'))}{reason}"
