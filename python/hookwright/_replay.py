"""What a replay found: the events on which a chain decides otherwise than was recorded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

_REFUSALS = ("skip", "stop")
#: How much of a call is shown on a line, in characters.
_SHOWN = 100


@dataclass(frozen=True)
class Decision:
    """What was decided: ``action`` (None, ``"stop"``, ``"skip"`` or ``"ask"``), why, and by which hook."""

    action: str | None
    reason: str | None
    halted_by: str | None

    @property
    def refuses(self) -> bool:
        """Whether the step was skipped or stopped."""
        return self.action in _REFUSALS

    def __str__(self) -> str:
        if self.action is None:
            return "let through"
        reason = f" ({_cut(self.reason)})" if self.reason else ""
        return f"{self.action} by {self.halted_by}{reason}"


@dataclass(frozen=True)
class ReplayDifference:
    """One event on which the chain decides otherwise than was recorded.

    Attributes:
        line: its line in the record.
        event_id: its identifier when it happened.
        event: its name.
        tool_name: the tool, on events that have one.
        tool_arguments: the call's arguments as recorded, secrets redacted.
        before: what was decided then.
        after: what this chain decides.
        fields: the fields that end up different: name to (then, now), secrets redacted.
    """

    __module__ = "hookwright"

    line: int
    event_id: str
    event: str
    tool_name: str | None
    tool_arguments: Mapping[str, Any] | None
    before: Decision
    after: Decision
    fields: Mapping[str, tuple[Any, Any]]

    @property
    def call(self) -> str:
        """The event, and the call if it is about one."""
        if self.tool_name is None:
            return self.event
        arguments = "" if self.tool_arguments is None else " " + json.dumps(self.tool_arguments, ensure_ascii=False)
        return f"{self.event} {self.tool_name}{_cut(arguments)}"

    def __str__(self) -> str:
        parts = [] if self.before == self.after else [f"{self.before} -> {self.after}"]
        parts += [f"{name} differs" for name in self.fields]
        return f"line {self.line}: {self.call}: {'; '.join(parts)}"


@dataclass(frozen=True, repr=False)
class ReplayReport:
    """What `HookChain.replay` found.

    Attributes:
        events: how many recorded events were replayed.
        differences: the events on which this chain decides otherwise.
        left_out: hooks that start programs or ask models and so did not run, with the number of events on which they
            would have; what they did then stands as it was recorded.
        bad_lines: lines of the record that are no events, as (line, what is wrong).
    """

    __module__ = "hookwright"

    events: int
    differences: tuple[ReplayDifference, ...]
    left_out: Mapping[str, int]
    bad_lines: tuple[tuple[int, str], ...]

    @property
    def would_refuse(self) -> tuple[ReplayDifference, ...]:
        """The events that this chain refuses and the recorded one did not."""
        return tuple(one for one in self.differences if one.after.refuses and not one.before.refuses)

    @property
    def notes(self) -> list[str]:
        """What the replay did not cover."""
        notes = [
            f"{name} was left out of {_times(count)}; it starts a program, so it runs only with shell=True"
            for name, count in self.left_out.items()
        ]
        return notes + [f"line {line} was passed over: {reason}" for line, reason in self.bad_lines]

    @property
    def lines(self) -> list[str]:
        """The report for a terminal."""
        refused = len(self.would_refuse)
        count = len(self.differences)
        head = f"{_times(self.events)} replayed, {count or 'no'} difference{'s' * (count != 1)}"
        if refused:
            head += f", {refused} would be refused"
        return [head, *(f"  {one}" for one in self.differences), *(f"  note: {note}" for note in self.notes)]

    def __repr__(self) -> str:
        return "\n".join([f"<ReplayReport: {self.lines[0]}>", *self.lines[1:]])

    def _repr_html_(self) -> str:
        from ._display import replay_html

        differences = [{**asdict(one), "call": one.call, "fields": list(one.fields)} for one in self.differences]
        return replay_html({"headline": self.lines[0], "differences": differences, "notes": self.notes})


def report(found: Mapping[str, Any]) -> ReplayReport:
    """The report from what the native replay returns."""
    differences = tuple(
        ReplayDifference(**{**one, "before": Decision(**one["before"]), "after": Decision(**one["after"])})
        for one in found["differences"]
    )
    bad_lines = tuple((line, reason) for line, reason in found["bad_lines"])
    return ReplayReport(found["events"], differences, dict(found["left_out"]), bad_lines)


def _cut(text: str | None) -> str:
    text = " ".join((text or "").split()) if text and "\n" in text else text or ""
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _times(count: int) -> str:
    return f"{count} event{'s' * (count != 1)}"
