"""Runs as people read them: lines for a terminal, a page for a notebook."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ._display import timeline_html
from ._native import Outcome, RunEvent, RunResult

#: Runs of hooks that had nothing to do are not worth a line.
_SILENT = frozenset({"filtered", "disabled", "not_reached"})
_WIDTH = 110


def _cut(text: str, limit: int = _WIDTH) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def hook_lines(outcome: Outcome) -> list[str]:
    """What each hook did at one event, a line each."""
    lines = []
    for run in outcome.runs:
        if run.status in _SILENT:
            continue
        said = ""
        if outcome.halted_by == run.name:
            said = f" {outcome.action}: {outcome.reason}"
        elif run.status == "changed":
            fields = [change.field for change in outcome.changes if change.hook == run.name]
            said = f" {', '.join(dict.fromkeys(fields))}"
        if run.error:
            said = f" {run.error}"
        for note in run.notes:
            said += f" ({note})"
        head = f"    {run.role:8} {run.name:14} {run.status:8} {run.ms:7.2f} ms  "
        lines.append(head + _cut(f"{outcome.event}{said}", 80))
    return lines


def event_lines(event: RunEvent) -> list[str]:
    """What happened, as lines; nothing for what another event says better."""
    if event.type == "hooks":
        return hook_lines(event.outcome)
    if event.type == "message":
        message = event.message
        if message.role == "user":
            text, _, context = message.text.partition("\n\n<additional_context>\n")
            lines = [f"user    {_cut(text)}"]
            if context:
                lines.append(f"  added {_cut(context.removesuffix('</additional_context>'))}")
            return lines
        if message.role == "assistant" and message.text:
            return [f"model   {_cut(message.text)}"]
        return []
    if event.type == "tool_started":
        return [f"  call  {event.name}({_cut(json.dumps(event.arguments, ensure_ascii=False), 90)})"]
    if event.type == "tool_finished":
        call = event.call
        if not call.ran and call.cause is not None:
            arguments = _cut(json.dumps(call.arguments, ensure_ascii=False), 60)
            return [f"  {call.cause:7} {call.name}({arguments}): {_cut(call.result, 80)}"]
        return [f"  {'failed' if call.is_error else 'result':7} {call.name} {call.ms:.1f} ms: {_cut(call.result, 80)}"]
    if event.type == "notice":
        return [f"  notice {event.hook}: {_cut(event.text)}"]
    return []


def run_html(result: RunResult) -> str:
    """A run as a page for a notebook."""
    run = result.to_dict()
    return timeline_html(
        {
            "status": run["status"],
            "text": run["text"] if run["reason"] is None else f"{run['reason']}\n\n{run['text']}".strip(),
            "duration_ms": run["ms"],
            "usage": run["usage"],
            "trace": [*_steps(run)],
        }
    )


def _steps(run: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """The events to which somebody listened, each tool call after the events in front of it."""
    calls = iter(run["tool_calls"])
    for outcome in run["trace"]:
        yield {**outcome, "summary": ""}
        if outcome["event"] in ("post_tool_execution", "post_tool_execution_failure"):
            yield from _call_step(next(calls, None))
    for call in calls:
        yield from _call_step(call)


def _call_step(call: dict[str, Any] | None) -> Iterable[dict[str, Any]]:
    if call is not None:
        arguments = json.dumps(call["arguments"], ensure_ascii=False)
        summary = f"{_cut(arguments, 80)} → {_cut(call['result'], 120)}"
        step: dict[str, Any] = {"event": call["name"], "summary": summary}
        if call["cause"]:
            step["action"] = call["cause"]
        yield step
