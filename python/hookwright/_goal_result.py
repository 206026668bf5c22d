"""What came of a goal, and of each of its rounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ._native import Usage


@dataclass(frozen=True)
class GoalRound:
    """One round of a goal.

    Attributes:
        number: from 1.
        ended: how the executor's run ended: ``"done"``, ``"error"``, ``"timeout"``, ``"cancelled"`` or ``"gone"``.
        text: what the executor said.
        error: the last thing that went wrong and was not overcome.
        calls: the executor's tool calls: name, arguments, result, is_error.
        fingerprint: what stands for the content of the workspace afterwards.
        unchanged: whether the workspace is as the round before left it.
        verdict: ``"pass"`` or ``"fail"``; ``None`` if it was not reviewed.
        feedback: what the reviewer found missing.
        items: the reviewer's single findings.
        invalid: what was wrong with replies of the reviewer that held no verdict.
        usage: the tokens of both agents.
        ms: the time of both, in milliseconds.
    """

    __module__ = "hookwright"

    number: int
    ended: str
    text: str
    error: str | None
    calls: tuple[dict[str, Any], ...] = field(repr=False)
    fingerprint: str | None = field(repr=False)
    unchanged: bool
    verdict: str | None
    feedback: str
    items: tuple[Any, ...]
    invalid: tuple[str, ...]
    usage: Usage
    ms: float


@dataclass(frozen=True)
class GoalMessage:
    """Something that was said with `Goal.send`, and what came of it.

    Attributes:
        text: the words.
        status: how the executor's run ended, as `GoalRound.ended`; ``"undelivered"`` if it never heard them.
        reply: what the executor said.
        round: the round in which it was delivered; 0 before the first.
    """

    __module__ = "hookwright"

    text: str
    status: str
    reply: str
    round: int


@dataclass(frozen=True)
class GoalResult:
    """What came of a goal.

    Attributes:
        status: ``"passed"``, ``"failed"`` (the rounds are used up), ``"blocked"`` (going on would not help),
            ``"cancelled"`` or ``"gone"`` (an agent is no longer there).
        reason: why it did not pass.
        goal: the goal's text.
        text: the executor's last words.
        rounds: the rounds, in order.
        messages: what was said meanwhile, in the order of delivery.
        usage: the tokens of all.
    """

    __module__ = "hookwright"

    status: str
    reason: str | None
    goal: str
    text: str
    rounds: tuple[GoalRound, ...]
    messages: tuple[GoalMessage, ...]
    usage: Usage

    def to_dict(self) -> dict[str, Any]:
        """The result as ordinary data."""
        return {
            "status": self.status,
            "reason": self.reason,
            "goal": self.goal,
            "text": self.text,
            "rounds": [{**vars(entry), "usage": _usage_dict(entry.usage)} for entry in self.rounds],
            "messages": [dict(vars(message)) for message in self.messages],
            "usage": _usage_dict(self.usage),
        }

    def __repr__(self) -> str:
        why = f": {cut(self.reason, 120)}" if self.reason else ""
        count = f"{len(self.rounds)} round{'' if len(self.rounds) == 1 else 's'}"
        return f"<GoalResult {self.status}{why}; {cut(self.text, 100)!r}; {count}, {self.usage.total_tokens} tokens>"

    def _repr_html_(self) -> str:
        from ._display import goal_html

        return goal_html({**self.to_dict(), "text": self.goal})


def result_of(state: dict[str, Any]) -> GoalResult:
    """What has come of a goal so far, from what the machine remembers."""
    phase = state["phase"]
    over = phase["name"] == "ended"
    messages = [GoalMessage(said["text"], said["ended"], said["reply"], said["round"]) for said in state["deliveries"]]
    if over:
        waiting = [*(passing["text"] for passing in state["passing"]), *state["queue"]]
        messages += [GoalMessage(text, "undelivered", "", len(state["rounds"])) for text in waiting]
    replies = [entry["text"] for entry in state["rounds"]]
    return GoalResult(
        status=phase["status"] if over else "running",
        reason=state["reason"],
        goal=state["spec"]["text"],
        text=replies[-1] if replies else "",
        rounds=tuple(round_of(entry) for entry in state["rounds"]),
        messages=tuple(messages),
        usage=_usage(state["usage"]),
    )


def cut(text: str, limit: int) -> str:
    """Text on one line, and not longer than that."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def _usage(counts: dict[str, int]) -> Usage:
    return Usage(**counts)


def _usage_dict(usage: Usage) -> dict[str, int]:
    return {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}


def round_of(entry: dict[str, Any]) -> GoalRound:
    """A round as the machine remembers it."""
    verdict = entry["verdict"] or {}
    return GoalRound(
        number=entry["number"],
        ended=entry["ended"],
        text=entry["text"],
        error=entry["error"],
        calls=tuple(entry["calls"]),
        fingerprint=entry["fingerprint"],
        unchanged=entry["unchanged"],
        verdict=verdict.get("verdict"),
        feedback=verdict.get("feedback", ""),
        items=tuple(verdict.get("items", ())),
        invalid=tuple(entry["invalid"]),
        usage=_usage(entry["usage"]),
        ms=entry["ms"],
    )
