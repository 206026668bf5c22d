"""The laws of merging, on random chains, beside a model that says in a few lines what they are."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import ENTRANCES

import hookwright as hw

ROLES = ["hook", "gate", "observer"]
LEVELS = ["builtin", "user", "project", "session"]
START = {"tool_name": "shell", "tool_arguments": {"value": 0}}


@dataclass(frozen=True)
class Spec:
    """A random hook."""

    role: str
    level: str
    order: int
    kind: str
    on_error: str
    enabled: bool
    answer: Any


RESULTS = st.fixed_dictionaries(
    {},
    optional={
        "tool_arguments": st.fixed_dictionaries({"value": st.integers(0, 2)}),
        "tool_result": st.sampled_from(["a", "b"]),
        "action": st.sampled_from(["stop", "skip", "ask", "allow", "warn"]),
        "system_message": st.sampled_from(["m", "n"]),
        "retry_feedback": st.just("not taken on this event"),
        "unknown": st.just(1),
    },
)
ANSWERS = st.one_of(st.none(), RESULTS, st.just(ZeroDivisionError()), st.booleans())


@st.composite
def specs(draw: st.DrawFn) -> list[Spec]:
    def one() -> Spec:
        role = draw(st.sampled_from(ROLES))
        on_error = "skip" if role == "observer" else draw(st.sampled_from(["skip", "deny", "stop"]))
        return Spec(
            role,
            draw(st.sampled_from(LEVELS)),
            draw(st.integers(-1, 1)),
            draw(st.sampled_from(["sync", "async", "thread"])),
            on_error,
            draw(st.sampled_from([True, True, True, False])),
            draw(ANSWERS),
        )

    return [one() for _ in range(draw(st.integers(0, 7)))]


@dataclass
class Model:
    """What an outcome must be."""

    fields: dict[str, Any] = field(default_factory=lambda: dict(START))
    action: str | None = None
    halted_by: str | None = None
    changes: list[tuple[str, str, Any, Any]] = field(default_factory=list)
    messages: list[tuple[str, str]] = field(default_factory=list)
    statuses: dict[str, str] = field(default_factory=dict)

    def halt(self, name: str, action: str) -> None:
        if self.action is None or action != "ask":
            self.action, self.halted_by = action, name

    def take(self, name: str, spec: Spec) -> str:
        answer = spec.answer
        if isinstance(answer, bool) and spec.role == "observer":
            answer = None
        if answer is False and spec.role == "gate":
            answer = {"action": "skip"}
        if answer is True and spec.role == "gate":
            answer = None
        written = [key for key in answer or () if key.startswith("tool_")] if isinstance(answer, dict) else []
        wrong = isinstance(answer, dict) and {"unknown", "retry_feedback"} & set(answer)
        silent = spec.role == "observer" or (spec.role == "gate" and written)
        fails = isinstance(answer, (Exception, bool)) or wrong or (answer and silent)
        if fails:
            if spec.on_error != "skip":
                self.halt(name, {"deny": "skip", "stop": "stop"}[spec.on_error])
            return "failed"
        changed = False
        for key in written:
            before = self.fields.get(key)
            if before != answer[key]:
                self.changes.append((name, key, before, answer[key]))
                self.fields[key] = answer[key]
                changed = True
        action = (answer or {}).get("action")
        if "system_message" in (answer or {}):
            self.messages.append((name, answer["system_message"]))
        if action == "warn":
            self.messages.append((name, f"warning from {name}"))
        if action in ("stop", "skip", "ask"):
            self.halt(name, action)
            return "halted"
        return "changed" if changed else "ok"


def model_of(hooks: list[Spec]) -> Model:
    model = Model()

    def key(item: tuple[int, Spec]) -> tuple[int, int, int, int]:
        number, spec = item
        return ROLES.index(spec.role), LEVELS.index(spec.level), spec.order, number

    for number, spec in sorted(enumerate(hooks), key=key):
        name = f"hook_{number}"
        if not spec.enabled:
            model.statuses[name] = "disabled"
        elif model.action in ("stop", "skip") and spec.role != "observer":
            model.statuses[name] = "not_reached"
        else:
            model.statuses[name] = model.take(name, spec)
    return model


def _function(spec: Spec) -> Any:
    def sync(event: hw.HookEvent) -> Any:
        if isinstance(spec.answer, Exception):
            raise spec.answer
        return spec.answer

    async def coroutine(event: hw.HookEvent) -> Any:
        await asyncio.sleep(0)
        return sync(event)

    return coroutine if spec.kind == "async" else sync


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(specs())
def test_a_random_chain_comes_to_what_the_model_says_through_every_entrance(hooks: list[Spec]) -> None:
    chain = hw.HookChain()
    for number, spec in enumerate(hooks):
        chain.add(
            _function(spec),
            "pre_tool_execution",
            name=f"hook_{number}",
            role=spec.role,
            level=spec.level,
            order=spec.order,
            on_error=spec.on_error,
            enabled=spec.enabled,
            isolate="thread" if spec.kind == "thread" else None,
        )
    model = model_of(hooks)
    for dispatch in ENTRANCES.values():
        outcome = dispatch(chain, "pre_tool_execution", **START)
        assert (outcome.action, outcome.halted_by) == (model.action, model.halted_by)
        assert outcome.fields == model.fields
        assert [(c.hook, c.field, c.before, c.after) for c in outcome.changes] == model.changes
        assert outcome.system_messages == model.messages
        assert {run.name: run.status for run in outcome.runs} == model.statuses
        assert [run.name for run in outcome.runs] == list(model.statuses)
