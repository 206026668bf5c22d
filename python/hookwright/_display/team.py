"""A team as a page: who does what, and the tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._page import escape, mark, page, shorten, table

#: How many teammates a page shows.
_SHOWN = 100


def board_html(
    name: str, teammates: Sequence[Mapping[str, Any]], tasks: Sequence[Mapping[str, Any]], totals: Mapping[str, Any]
) -> str:
    """A table of teammates (status, tool, rounds, tokens, mail) and one of tasks.

    Args:
        name: the team's name.
        teammates: as `TeamBoard.teammates`.
        tasks: as `Team.tasks`.
        totals: what all together used.
    """
    rows = [_row(mate) for mate in teammates[:_SHOWN]]
    more = len(teammates) - _SHOWN
    parts = [
        f"<div><b>team {escape(name)}</b> <span class='quiet'>{len(teammates)} teammates, "
        f"{escape(totals.get('rounds', 0))} rounds, {_tokens(totals):,} tokens{_money(totals)}</span></div>",
        table(("teammate", "role", "status", "now", "rounds", "tokens", "mail", "last"), rows, frozenset({4, 5, 6}))
        if rows
        else '<div class="quiet">nobody is here yet</div>',
    ]
    if more > 0:
        parts.append(f'<div class="quiet">and {more} more</div>')
    if tasks:
        parts.append(table(("task", "state", "title", "owner", "after", "note"), [_task(task) for task in tasks]))
    return page(*parts)


def _tokens(used: Mapping[str, Any]) -> int:
    usage = used.get("usage") or {}
    return int(usage.get("input_tokens", 0)) + int(usage.get("output_tokens", 0))


def _money(used: Mapping[str, Any]) -> str:
    return f", cost {float(used['cost']):.4g}" if used.get("cost") else ""


def _row(mate: Mapping[str, Any]) -> tuple[str, ...]:
    status = mate["status"]
    now = ", ".join(status.get("tools") or ()) or ", ".join(f"answer of {name}" for name in status.get("for") or ())
    if status.get("error"):
        now = shorten(str(status["error"]), 120)
    if mate.get("tasks"):
        now = f"{now}{'; ' if now else ''}{', '.join(mate['tasks'])}"
    return (
        f"<code class='name'>{escape(mate['name'])}</code>",
        escape(shorten(str(mate.get("role") or ""), 120)),
        mark(mate.get("outcome") or status["status"]),
        escape(now),
        escape(mate["rounds"]),
        f"{_tokens(mate):,}",
        escape(mate["mail"]),
        f'<span class="quiet">{escape(shorten(str(mate.get("summary") or mate.get("text") or ""), 160))}</span>',
    )


def _task(task: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        escape(task["id"]),
        mark(task["state"]),
        escape(task["title"]),
        escape(task.get("owner") or ""),
        escape(", ".join(task.get("depends_on") or ())),
        escape(task.get("note") or ""),
    )
