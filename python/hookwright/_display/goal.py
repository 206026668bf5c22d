"""A goal: its rounds, what was found in each, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._page import escape, mark, milliseconds, page, shorten, table


def goal_html(goal: Mapping[str, Any]) -> str:
    """The rounds of a goal as a table.

    Args:
        goal: `status`, `text` (the goal), `reason`, `usage` (`input_tokens`, `output_tokens`), `rounds`: a list of
            `number`, `ended`, `text`, `error`, `unchanged`, `verdict`, `feedback`, `items`, `invalid`, `calls`, `ms`;
            `messages`: a list of `text`, `status`, `reply`.
    """
    head = f"<div>{mark(goal.get('status') or 'running')} <b>{escape(shorten(str(goal.get('text') or ''), 300))}</b>"
    head += f" — {escape(shorten(str(goal['reason'])))}" if goal.get("reason") else ""
    usage = goal.get("usage") or {}
    tokens = f"{usage.get('input_tokens') or 0} tokens in, {usage.get('output_tokens') or 0} out"
    head += f' <span class="quiet">{escape(tokens)}</span></div>'
    rows = [_row(entry) for entry in goal.get("rounds") or ()]
    rounds = table(("round", "executor", "said", "verdict", "feedback", "ms"), rows, frozenset({0, 5})) if rows else ""
    return page(head, rounds, _messages(goal.get("messages") or ()))


def _row(entry: Mapping[str, Any]) -> tuple[str, ...]:
    said = escape(shorten(str(entry.get("text") or "")))
    said += f"<div>{mark('error')} {escape(shorten(str(entry['error'])))}</div>" if entry.get("error") else ""
    calls = len(entry.get("calls") or ())
    said += f'<div class="quiet">{calls} tool call{"" if calls == 1 else "s"}</div>' if calls else ""
    said += '<div class="quiet">workspace unchanged</div>' if entry.get("unchanged") else ""
    found = [str(entry.get("feedback") or ""), *(f"- {item}" for item in entry.get("items") or ())]
    found += [f"no verdict: {why}" for why in entry.get("invalid") or ()]
    feedback = "<br>".join(escape(shorten(line)) for line in found if line)
    verdict = mark(entry["verdict"]) if entry.get("verdict") else ""
    number = escape(entry.get("number"))
    return number, mark(entry.get("ended") or ""), said, verdict, feedback, milliseconds(entry.get("ms"))


def _messages(messages: Any) -> str:
    rows = [
        (
            escape(shorten(str(message.get("text")))),
            mark(message.get("status")),
            escape(shorten(str(message.get("reply")))),
        )
        for message in messages
    ]
    return table(("said meanwhile", "", "reply"), rows) if rows else ""
