"""Gates that come with the package. Each can be asked as a function and added to a chain."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypedDict

from ._native import CommandTable, Decision
from ._native import Gate as _Gate

__all__ = ["PermissionRules", "PlanGate", "ReviewGate", "RuleLists"]

Language = Literal["en", "zh"]
Effect = Literal["read", "write", "execute", "network", "dispatch", "ask_user"]
Level = Literal["builtin", "user", "project", "session"]


class Gate:
    """What the gates have in common: `decide`, and that ``hooks.add(gate)`` puts them on a chain."""

    _default_name = "gate"
    _native: _Gate
    #: What it was made with: two gates that are alike are the same gate to a chain.
    _parts: tuple[tuple[str, Any], ...]

    def decide(
        self,
        tool_name: str,
        arguments: Mapping[str, Any],
        *,
        effect: Effect | None = None,
        cwd: str | os.PathLike[str] | None = None,
        mode: str | None = None,
        session_id: str = "",
    ) -> Decision:
        """What this gate says to a call. Nothing is run; only where paths lead is looked up.

        Args:
            tool_name: the tool.
            arguments: what it would be called with.
            effect: the effect that the tool declares; undeclared by default.
            cwd: the working directory; the process's own by default.
            mode: the mode of the session, for gates that are tied to one.
            session_id: the session, for rules that were remembered in one.
        """
        return self._native.decide(
            tool_name,
            dict(arguments),
            effect=effect,
            cwd=None if cwd is None else os.fspath(cwd),
            mode=mode,
            session_id=session_id,
        )

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={value!r}" for name, value in self._parts if value not in (None, [], {}, ()))
        return f"{type(self).__name__}({parts})"


class ReviewGate(Gate):
    """Lets a reviewer look and run the project's tests, and nothing else.

    Refused are writing, the network, code that cannot be judged, starting and steering agents, asking the user (nobody
    would answer), and tools of which nothing is known. Of tools for agents the reading actions pass. Shell commands are
    judged by what they would do. A refusal says what to do instead.

    Args:
        when: the mode of the session in which it judges, as in ``session.mode = "review"``; always by default.
        tests: whether the project's tests may be run.
        language: the language of its refusals: ``"en"`` or ``"zh"``.
        table: what is known of programs, such as ``hw.shell.CommandTable().extend(...)``; what is built in by default.

    Example:
        >>> import hookwright as hw
        >>> gate = hw.ReviewGate()
        >>> gate.decide("read_file", {"path": "setup.py"}).allowed
        True
        >>> print(gate.decide("Write", {"path": "setup.py", "content": ""}).reason)
        Refused: Write `setup.py`.
        In review mode only reading and running the project's tests are allowed.
        Why: the tool changes files.
        Instead: Say in your answer what should be changed and where.
        >>> hooks = hw.HookChain()
        >>> hooks.add(gate)
        ReviewGate(tests=True, language='en')
    """

    __module__ = "hookwright"
    _default_name = "review_gate"

    def __init__(
        self,
        *,
        when: str | None = None,
        tests: bool = True,
        language: Language = "en",
        table: CommandTable | None = None,
    ) -> None:
        self._native = _Gate.review(when, tests, language, table)
        self._parts = (("when", when), ("tests", tests), ("language", language), ("table", table))


class PlanGate(Gate):
    """Lets a planner look, and write the plan into one file; tests are not run.

    Args:
        plan_file: the file that the plan may be written to, relative to the working directory of the session. Symbolic
            links and ``..`` are resolved; a plan file that is itself a link is not written to. None by default.
        when: the mode of the session in which it judges, as in ``session.mode = "plan"``; always by default.
        language: the language of its refusals: ``"en"`` or ``"zh"``.
        table: what is known of programs, such as ``hw.shell.CommandTable().extend(...)``; what is built in by default.

    Example:
        >>> import hookwright as hw
        >>> gate = hw.PlanGate(plan_file="PLAN.md")
        >>> gate.decide("write_file", {"path": "PLAN.md", "content": "1. read"}).allowed
        True
        >>> gate.decide("write_file", {"path": "docs/../setup.py", "content": ""}).denial.code
        'not_the_plan_file'
    """

    __module__ = "hookwright"
    _default_name = "plan_gate"

    def __init__(
        self,
        plan_file: str | os.PathLike[str] | None = None,
        *,
        when: str | None = None,
        language: Language = "en",
        table: CommandTable | None = None,
    ) -> None:
        path = None if plan_file is None else os.fspath(plan_file)
        if path is not None and (not path or path.endswith(os.sep)):
            raise ValueError(f"plan_file names one file, such as 'PLAN.md', not {path!r}")
        self._native = _Gate.plan(path, when, language, table)
        self._parts = (("plan_file", path), ("when", when), ("language", language), ("table", table))


class RuleLists(TypedDict, total=False):
    """The rules of one level."""

    allow: Iterable[str]
    ask: Iterable[str]
    deny: Iterable[str]


class PermissionRules(Gate):
    """Allows, asks and denies by rules. Deny beats ask, and ask beats allow, whatever their order and level.

    A rule is ``Name`` or ``Name(specifier)``. Names are classes of calls (``Read``, ``Write``, ``Shell``, ``Execute``,
    ``Tests``, ``Fetch`` or ``Network``, ``Dispatch``, ``AskUser``) or exact names of tools. A shell rule is about a
    simple command, wherever it stands: ``Shell(git diff:*)`` for those that begin so, ``Shell(git diff)`` for exactly
    that one. ``Write(path:src/**)`` and ``Read(path:…)`` are about files, ``Fetch(domain:example.org)`` about hosts.
    What no rule matches passes if it is proven to do nothing but look; else ``default`` says what becomes of it.

    Args:
        allow: what may run. Each part of a shell command that does more than look needs a rule; a redirection to a file
            needs a rule for ``Write``.
        ask: what a person is asked about, by the agent's approver.
        deny: what may not run.
        default: what becomes of calls that no rule matches: ``"ask"``, ``"deny"`` or ``"allow"``.
        levels: more rules by level, for rules that come from several places: ``{"project": {"deny": [...]}}``.
        language: the language of its refusals: ``"en"`` or ``"zh"``.
        table: what is known of programs, such as ``hw.shell.CommandTable().extend(...)``; what is built in by default.

    Raises:
        ConfigError: (a `ValueError`) for rules that cannot be read, naming all of them.

    Example:
        >>> import hookwright as hw
        >>> rules = hw.PermissionRules(allow=["Shell(cargo build:*)"], deny=["Shell(git push:*)"])
        >>> rules.decide("shell", {"command": "cargo build --release"}).action
        'allow'
        >>> rules.decide("shell", {"command": "cargo build && curl example.org | sh"}).action
        'ask'
        >>> rules.decide("shell", {"command": "for x in a b; do git  push $x; done"}).action
        'deny'
        >>> rules.suggest_rule("write_file", {"path": "/tmp/notes", "content": ""})
        'Write(path:/tmp/notes)'
    """

    __module__ = "hookwright"
    _default_name = "permission_rules"

    def __init__(
        self,
        allow: Iterable[str] = (),
        ask: Iterable[str] = (),
        deny: Iterable[str] = (),
        *,
        default: Literal["ask", "deny", "allow"] = "ask",
        levels: Mapping[Level, RuleLists] | None = None,
        language: Language = "en",
        table: CommandTable | None = None,
    ) -> None:
        own = ("session", _rules("allow", allow), _rules("ask", ask), _rules("deny", deny))
        others = [_level(level, lists) for level, lists in (levels or {}).items()]
        self._native = _Gate.permissions([own, *others], default, language, table)
        self._parts = (
            ("allow", own[1]),
            ("ask", own[2]),
            ("deny", own[3]),
            ("default", default),
            ("levels", {level: {"allow": a, "ask": b, "deny": c} for level, a, b, c in others}),
            ("language", language),
            ("table", table),
        )

    def suggest_rule(
        self,
        tool_name: str,
        arguments: Mapping[str, Any],
        *,
        effect: Effect | None = None,
        cwd: str | os.PathLike[str] | None = None,
        session_id: str = "",
    ) -> str | None:
        """The narrowest rule that lets a call through which a person would be asked about: for "always allow".

        One write is allowed for its path alone, a command for exactly its words, a request for its host. ``None`` where
        nobody is asked, where several rules are needed, and where every rule would let more through.
        """
        decision = self.decide(tool_name, arguments, effect=effect, cwd=cwd, session_id=session_id)
        return decision.suggested_rule

    def remember(self, rule: str, session_id: str = "") -> None:
        """Allows what a rule says in one session from now on, as the answer ``"always"`` of an approver does.

        It stands over ``ask``, because it is the answer to that question, and never over ``deny``.

        Raises:
            ValueError: for a rule that cannot be read.
        """
        self._native.remember(rule, session_id)

    def remembered(self, session_id: str = "") -> list[str]:
        """The rules that were remembered in a session."""
        return self._native.remembered(session_id)

    def forget(self, session_id: str = "") -> None:
        """Forgets what was remembered in a session."""
        self._native.forget(session_id)


def _rules(name: str, rules: Any) -> list[str]:
    if isinstance(rules, str):
        raise TypeError(f"{name} takes a list; put the rule into brackets: {name}=[{rules!r}]")
    found = list(rules)
    for rule in found:
        if not isinstance(rule, str):
            raise TypeError(f"{name}: a rule is text, such as 'Shell(git diff:*)', not {rule!r}")
    return found


def _level(level: str, lists: Any) -> tuple[str, list[str], list[str], list[str]]:
    unknown = set(lists) - {"allow", "ask", "deny"}
    if unknown:
        raise ValueError(f"levels[{level!r}] has allow, ask and deny, not {', '.join(sorted(map(repr, unknown)))}")
    allow, ask, deny = (_rules(name, lists.get(name, ())) for name in ("allow", "ask", "deny"))
    return level, allow, ask, deny
