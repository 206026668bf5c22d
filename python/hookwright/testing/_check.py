"""Feeds a hook the hostile cases and reports what went wrong."""

from __future__ import annotations

import asyncio
import dataclasses
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from .._chain import HookChain
from .._hook_kinds import Role, ShellHook
from .._native import Outcome
from ..exceptions import HookError
from ._cases import HostileCase, command_cases, hostile_cases

Kind = Literal["failed", "timeout", "noise", "unstable", "executes"]


@dataclass(frozen=True)
class Problem:
    """One thing that went wrong.

    Attributes:
        case: the name of the case.
        kind: ``"failed"`` (an exception, an exit code, an answer that cannot be read), ``"timeout"``, ``"noise"``
            (lines before the answer, processes that were left running), ``"unstable"`` (another answer the second time
            or under ``arun``) or ``"executes"`` (text of the event was run as code).
        text: what happened.
    """

    case: str
    kind: Kind
    text: str


@dataclass(frozen=True)
class HookReport:
    """What `check_hook` found.

    Attributes:
        hook: the hook's name.
        cases: the names of the cases that it was fed with.
        problems: what went wrong, in the order of the cases.
    """

    hook: str
    cases: tuple[str, ...]
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing went wrong."""
        return not self.problems

    def raise_problems(self) -> None:
        """Raises `AssertionError` with the whole report if anything went wrong."""
        if self.problems:
            raise AssertionError(repr(self))

    def __repr__(self) -> str:
        lines = [f"<HookReport of {self.hook}: {len(self.cases)} cases, {len(self.problems)} problems>"]
        return "\n".join([*lines, *(f"  {p.kind:8} {p.case}: {p.text}" for p in self.problems)])


def check_hook(
    hook: Callable[..., Any] | ShellHook,
    *events: str,
    role: Role | None = None,
    timeout: float | None = None,
    fields: Mapping[str, Any] | None = None,
    cases: Iterable[HostileCase] | None = None,
    ignore: Iterable[str] = (),
) -> HookReport:
    """Feeds a hook the hostile cases, each through `HookChain.run` twice and `HookChain.arun` once.

    A failing gate refuses, so none of this is dangerous; but a gate that refuses everything unusual is switched off
    soon, and a hook that fails does not do its work.

    Args:
        hook: a function (async or not), a callable object, or a `ShellHook`, whose filters are left out.
        events: the events to try; a `ShellHook` brings its own.
        role: the role to try it in; by default ``"hook"``, or the `ShellHook`'s own.
        timeout: seconds that one call may take; by default 10, or the `ShellHook`'s own.
        fields: values that fit the hook, such as ``tool_name`` and ``tool_arguments``.
        cases: other cases than those of `hostile_cases`.
        ignore: names of cases that need not work, such as ``"no fields at all"``.

    Raises:
        HookError: when no event is given.

    Example:
        >>> check_hook(lambda event: None, "turn_start").ok
        True
    """
    chain, names, label = _chain_of(hook, events, role, timeout)
    ignored = set(ignore)
    problems: list[Problem] = []
    tried: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        mark = Path(folder) / "mark"
        given = None if cases is None else list(cases)
        for event in names:
            mine = (
                [case for case in given if case.event == event]
                if given is not None
                else [*hostile_cases(event, fields), *command_cases(event, fields, str(mark))]
            )
            for case in mine:
                if case.name not in ignored:
                    tried.append(case.name)
                    problems += _problems(chain, case, mark)
    return HookReport(label, tuple(tried), tuple(problems))


def _chain_of(
    hook: Any, events: tuple[str, ...], role: Role | None, timeout: float | None
) -> tuple[HookChain, list[str], str]:
    chain = HookChain()
    if isinstance(hook, ShellHook):
        if events:
            raise HookError("a ShellHook brings its events itself; leave them out of check_hook(...)")
        filters: Any = dict.fromkeys(("tool_name", "tool_matcher", "tool_regex", "model_prefix", "agent", "arguments"))
        chain.add(
            dataclasses.replace(hook, enabled=True, role=role or hook.role, timeout=timeout or hook.timeout, **filters)
        )
    else:
        if not events:
            raise HookError('check_hook(...) needs an event to try the hook on, such as "pre_tool_execution"')
        chain.add(hook, *events, role=role or "hook", timeout=timeout or 10.0)
    info = chain.hooks[0]
    return chain, info.events, info.name


def _problems(chain: HookChain, case: HostileCase, mark: Path) -> list[Problem]:
    problems: list[Problem] = []

    def problem(kind: Kind, text: str) -> None:
        problems.append(Problem(case.name, kind, text))

    outcome = chain.run(case.event, **case.fields)
    run = outcome.runs[0]
    if run.status in ("failed", "timeout"):
        problem("timeout" if run.status == "timeout" else "failed", run.error or "no reason given")
    else:
        if _answer(outcome) != _answer(chain.run(case.event, **case.fields)):
            problem("unstable", "the same event had another answer the second time")
        if _answer(outcome) != _answer(_awaited(chain, case)):
            problem("unstable", "the same event had another answer under arun")
        for note in run.notes:
            if note.startswith(("passed over", "left processes")):
                problem("noise", note)
    if mark.exists():
        mark.unlink()
        problem("executes", "text of the event was run as code: pass it on as data, in quotes")
    return problems


def _answer(outcome: Outcome) -> Any:
    return (
        outcome.action,
        outcome.runs[0].status,
        [(change.field, change.after) for change in outcome.changes],
        [text for _, text in outcome.system_messages],
    )


def _awaited(chain: HookChain, case: HostileCase) -> Outcome:
    async def main() -> Outcome:
        return await chain.arun(case.event, **case.fields)

    # On a thread of its own, so that this works in a notebook and in asynchronous tests as well.
    with ThreadPoolExecutor(1) as pool, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "hook .* kept the event loop", RuntimeWarning)  # 8 MB take their time.
        return pool.submit(lambda: asyncio.run(main())).result()
