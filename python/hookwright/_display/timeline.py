"""A run of an agent as a timeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._page import escape, mark, milliseconds, page, shorten
from .outcome import runs_table

_SILENT = frozenset({"filtered", "disabled", "not_reached"})


def timeline_html(run: Mapping[str, Any]) -> str:
    """What happened in a run, in order: each event with its hooks, what was refused and why, and the final text.

    Args:
        run: `status`, `text`, `duration_ms`, `usage` (`input_tokens`, `output_tokens`), and `trace`: a list of
            `offset_ms`, `event`, `summary`, `action`, `reason`, `halted_by`, `runs`, `changes`. All optional. Events
            at which no hook did anything are shown as one line.
    """
    trace = run.get("trace") or ()
    return page(_headline(run), "".join(_step(step) for step in trace), _text(run))


def _headline(run: Mapping[str, Any]) -> str:
    parts = [mark(run.get("status") or "running")]
    if run.get("duration_ms") is not None:
        parts.append(f'<span class="quiet">{milliseconds(run["duration_ms"])} ms</span>')
    usage = run.get("usage") or {}
    if usage.get("input_tokens") is not None or usage.get("output_tokens") is not None:
        tokens = f"{usage.get('input_tokens') or 0} tokens in, {usage.get('output_tokens') or 0} out"
        parts.append(f'<span class="quiet">{escape(tokens)}</span>')
    return f"<div>{' '.join(parts)}</div>"


def _step(step: Mapping[str, Any]) -> str:
    runs = [hook for hook in step.get("runs") or () if hook.get("status") not in _SILENT]
    offset = milliseconds(step.get("offset_ms"))
    line = (f'<span class="quiet">{offset} ms</span> ' if offset else "") + f"<b>{escape(step.get('event'))}</b>"
    if step.get("summary"):
        line += f" <code>{escape(shorten(str(step['summary']), 160))}</code>"
    if step.get("action"):
        line += f" {mark(step['action'])}"
        line += f" by {escape(step['halted_by'])}" if step.get("halted_by") else ""
        line += f" — {escape(shorten(str(step['reason'])))}" if step.get("reason") else ""
    if not runs:
        return f"<div>{line}</div>"
    opened = " open" if step.get("action") or step.get("changes") else ""
    return f"<details{opened}><summary>{line}</summary>{runs_table(runs, step.get('changes') or ())}</details>"


def _text(run: Mapping[str, Any]) -> str:
    return f"<pre>{escape(shorten(str(run['text']), 4_000))}</pre>" if run.get("text") else ""
