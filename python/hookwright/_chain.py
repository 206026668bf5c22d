"""The hook chain: decorators, registration and inspection on top of the native dispatcher."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from . import _lifecycle, _native  # noqa: F401 (the first takes care of fork and exit)
from ._explain import Explanation, HookExplanation
from ._functions import is_coroutine_function, same_function, source_of
from ._gates import Gate
from ._hook_kinds import COMMON, FILTERS, Level, LlmHook, OnError, Role, ShellHook
from ._llm_hook import Asking
from ._load import Loaded, LoadReport, load
from ._replay import ReplayReport, report
from ._stats import ChainStats, HookStats
from .exceptions import HookError

Function = TypeVar("Function", bound=Callable[..., Any])

_logger = logging.getLogger("hookwright")


@dataclass(frozen=True)
class HookInfo:
    """What a hook in a chain is. ``timeout`` is in seconds; ``source`` is a file and line or a module and function."""

    __module__ = "hookwright"

    name: str
    events: list[str]
    kind: str
    role: str
    level: str
    order: int
    timeout: float
    retry: int
    on_error: str
    shadow: bool
    enabled: bool
    source: str
    filter: Mapping[str, Any]


def _event_names(events: Iterable[Any]) -> list[str]:
    names: list[str] = []
    for event in events:
        names.extend([str(getattr(event, "value", event))] if isinstance(event, str) else _event_names(event))
    return names


# Called as functions: as methods they would be looked up in the dict of the chain first, with each dispatch.
_run = _native.HookChain._run
_arun = _native.HookChain._arun


class HookChain(_native.HookChain):
    """An ordered chain of hooks, gates and observers.

    Args:
        budget: seconds that a whole dispatch may take.
        shadow: hooks run and what they decide is recorded, but nothing is applied.

    Example:
        >>> import hookwright as hw
        >>> hooks = hw.HookChain()
        >>> @hooks.on("pre_tool_execution", tool_matcher="shell|write_*", role="gate")
        ... def no_deletes(event):
        ...     if "rm " in event.tool_arguments.get("command", ""):
        ...         return hw.skip("deleting is not allowed here; move it to trash/")
        >>> outcome = hooks.run("pre_tool_execution", tool_name="shell", tool_arguments={"command": "rm x"})
        >>> outcome.action, outcome.halted_by
        ('skip', 'no_deletes')
    """

    __module__ = "hookwright"

    def __init__(self, *, budget: float = 30.0, shadow: bool = False) -> None:
        self._functions: dict[str, Any] = {}
        self._identities: dict[str, Any] = {}
        self._shells: dict[str, ShellHook | LlmHook] = {}
        self._gates: dict[str, Gate] = {}
        self._loaded = Loaded()

    def run(self, event: str, /, **fields: Any) -> _native.Outcome:
        """Runs the hooks of ``event`` on the calling thread.

        Args:
            event: the event's name.
            fields: what the event carries, and ``session_id``, ``turn_id``, ``agent``, ``cwd``, ``continuation``.

        Raises:
            UnknownEventError: for an event that does not exist.
            TypeError: for a field that the event does not carry.
        """
        return _run(self, event, fields)

    def arun(self, event: str, /, **fields: Any) -> Awaitable[_native.Outcome]:
        """`run` to be awaited on asyncio: the hooks run on the caller's own loop, in the caller's task."""
        return _arun(self, event, fields)

    def on(
        self,
        *events: str | Sequence[str],
        name: str | None = None,
        role: Role = "hook",
        order: int = 0,
        timeout: float = 10.0,
        retry: int = 0,
        on_error: OnError | None = None,
        isolate: Literal["thread"] | None = None,
        shadow: bool = False,
        enabled: bool = True,
        level: Level = "session",
        tool_name: str | None = None,
        tool_matcher: str | None = None,
        tool_regex: str | None = None,
        model_prefix: str | None = None,
        agent: str | None = None,
        arguments: Mapping[str, str] | None = None,
    ) -> Callable[[Function], Function]:
        """Registers the decorated function for ``events``.

        Args:
            events: event names, such as ``"pre_tool_execution"``.
            name: unique in the chain; the function's own name by default.
            role: ``"hook"`` may change and halt, ``"gate"`` only decides and fails closed, ``"observer"`` only watches.
            order: position within its role and level; equal ones keep the order of registration.
            timeout: seconds that one attempt may take.
            retry: how often a failed attempt is repeated.
            on_error: ``"skip"``, ``"deny"`` or ``"stop"``; gates deny and the others skip by default.
            isolate: ``"thread"`` runs a synchronous function on a thread that is left behind at the deadline.
            shadow: run it and record what it would do, without applying it.
            enabled: whether it runs at all.
            level: ``"builtin"``, ``"user"``, ``"project"`` or ``"session"``.
            tool_name: the exact name of a tool; wins over ``tool_matcher``.
            tool_matcher: names and globs separated by ``|``.
            tool_regex: a regular expression for the whole name.
            model_prefix: how the model's name begins.
            agent: a glob for the agent's name.
            arguments: globs for tool arguments by name.

        Raises:
            HookError: when another hook has this name, or the combination means nothing.
            UnknownEventError: for an event that does not exist.
            ValueError: for a value out of range.
        """
        options = {
            key: value
            for key, value in locals().items()
            if key not in ("self", "events", "name", "isolate") and value is not None
        }
        if not events:
            raise HookError('hooks.on(...) needs an event name, such as "pre_tool_execution"')
        if callable(events[0]):
            raise HookError('write @hooks.on("pre_tool_execution"), with the event in parentheses')

        def register(function: Function) -> Function:
            self._add_function(function, _event_names(events), name, isolate, options)
            return function

        return register

    def add(self, hook: Any, *events: str | Sequence[str], **options: Any) -> Any:
        """Adds a `ShellHook`, an `LlmHook`, a gate such as `ReviewGate`, or a callable with the events
        and options of `on`.

        A gate takes the options ``name``, ``order``, ``level``, ``shadow``, ``enabled`` and the filters of `on`.

        Returns:
            What was added.
        """
        if isinstance(hook, Gate):
            if events:
                raise HookError(f"a {type(hook).__name__} knows its events itself; leave them out of add(...)")
            self._add_builtin_gate(hook, options)
            return hook
        if isinstance(hook, (ShellHook, LlmHook)):
            if events or options:
                kind = type(hook).__name__
                raise HookError(f"a {kind} brings its events and options itself; leave them out of add(...)")
            self._add_shell_hook(hook) if isinstance(hook, ShellHook) else self._add_llm_hook(hook)
            return hook
        if not callable(hook):
            raise HookError(f"{hook!r} is neither a function nor a ShellHook or LlmHook")
        return self.on(*events, **options)(hook)

    def _add_builtin_gate(self, gate: Gate, options: dict[str, Any]) -> None:
        known = {"name", "order", "level", "shadow", "enabled", *FILTERS}
        unknown = sorted(set(options) - known)
        if unknown:
            raise HookError(
                f"a {type(gate).__name__} takes no option {unknown[0]!r}; it takes {', '.join(sorted(known))}"
            )
        name = options.get("name") or gate._default_name
        before = self._gates.get(name)
        again = before is not None and type(before) is type(gate) and before._parts == gate._parts
        if before is not None and not again:
            raise HookError(
                f"this chain has a gate {name!r} that is made otherwise",
                hint=f"take it out with hooks.remove({name!r}), or give this one another name: add(..., name=...)",
            )
        chosen = {key: value for key, value in options.items() if value is not None}
        source = f"hookwright:{type(gate).__name__}"
        self._add_gate(
            gate._native, again, {**chosen, "name": name, "events": ["pre_tool_execution"], "source": source}
        )
        self._gates[name] = gate

    def _add_function(
        self, function: Any, events: list[str], name: str | None, isolate: str | None, options: dict[str, Any]
    ) -> None:
        if not callable(function):
            raise HookError(f"{function!r} cannot be called, so it is no hook")
        derived, source = source_of(function)
        identity = (tuple(events), tuple(sorted((key, str(value)) for key, value in options.items())))
        chosen, replace = self._choose_name(function, name, derived, identity)
        if isolate not in (None, "none", "thread"):
            raise HookError(f'isolate={isolate!r} is not there in this version; use isolate="thread" or leave it out')
        if isolate == "thread" and is_coroutine_function(function):
            raise HookError(f'hook {chosen!r} is async, so isolate="thread" has nothing to isolate; leave it out')
        mode = "thread" if isolate == "thread" else "async" if is_coroutine_function(function) else "inline"
        full = {**options, "name": chosen, "events": events, "source": source}
        before = self._identities.get(chosen)
        if self._add_python(function, mode, replace, full):
            _logger.info("hook %r was registered again and replaces the earlier one", chosen)
            if before not in (None, identity) and options.get("role") == "gate":
                text = f"the gate {chosen!r} was registered again with other events or conditions; the new ones hold"
                warnings.warn(text, UserWarning, stacklevel=4)
        self._shells.pop(chosen, None)
        self._functions[chosen] = (function, mode)
        self._identities[chosen] = identity

    def _is_again(self, name: str, function: Any, identity: Any) -> bool:
        """Whether this registers the hook ``name`` again. The very same function for other events or with other
        conditions is another hook: a second decorator must not undo the first."""
        known = self._functions[name][0]
        return same_function(known, function) and (known is not function or self._identities[name] == identity)

    def _choose_name(self, function: Any, name: str | None, derived: str, identity: Any) -> tuple[str, bool]:
        wanted = name or derived
        known = self._functions.get(wanted)
        if known is not None:
            if self._is_again(wanted, function, identity):
                return wanted, True
            if name is None:
                number = 2
                while f"{derived}_{number}" in self._functions:
                    if self._is_again(f"{derived}_{number}", function, identity):
                        return f"{derived}_{number}", True
                    number += 1
                return f"{derived}_{number}", False
        return wanted, False

    def _add_shell_hook(self, hook: ShellHook) -> None:
        if not isinstance(hook.command, str):
            raise HookError(f'the command of a ShellHook is text, such as "ls -l", not {hook.command!r}')
        words = hook.command.split()
        if not words:
            raise HookError("a ShellHook needs a command")
        name = hook.name or words[0].rsplit("/", 1)[-1]
        self._add_shell(hook.command, hook.folder, self._shells.get(name) == hook, self._described(hook, name))
        self._shells[name] = hook

    def _add_llm_hook(self, hook: LlmHook) -> None:
        options = self._described(hook, hook.name)
        asking = Asking(hook.name, hook.prompt, options["events"], hook.role, hook.model)
        self._add_llm(asking, self._shells.get(hook.name) == hook, options)
        self._shells[hook.name] = hook

    def _described(self, hook: ShellHook | LlmHook, name: str) -> dict[str, Any]:
        options = {key: getattr(hook, key) for key in COMMON}
        given = {key: value for key, value in options.items() if value is not None}
        return {**given, "name": name, "events": _event_names([hook.events])}

    def remove(self, hook: str | Callable[..., Any] | Gate) -> None:
        """Takes a hook out, by name or by function; from the next dispatch on it no longer runs.

        Raises:
            HookError: when there is no such hook; names the nearest.
        """
        name = self._name_of(hook)
        self._remove(name)
        self._functions.pop(name, None)
        self._shells.pop(name, None)
        self._gates.pop(name, None)
        self._loaded.functions.pop(name, None)

    def enable(self, hook: str | Callable[..., Any] | Gate) -> None:
        """Switches a hook on, from the next dispatch on."""
        self._set_enabled(self._name_of(hook), True)

    def disable(self, hook: str | Callable[..., Any] | Gate) -> None:
        """Switches a hook off, from the next dispatch on; it is recorded as ``disabled``."""
        self._set_enabled(self._name_of(hook), False)

    def _name_of(self, hook: str | Callable[..., Any] | Gate) -> str:
        if isinstance(hook, str):
            return hook
        for name, gate in self._gates.items():
            if gate is hook:
                return name
        registered = ((name, function) for name, (function, _) in self._functions.items())
        for name, function in (*registered, *self._loaded.functions.items()):
            if function is hook or function == hook:
                return name
        for name, (function, _) in self._functions.items():
            if callable(hook) and same_function(function, hook):
                return name
        raise HookError(
            f"{hook!r} is not a hook of this chain; name the hook, or give the function that was registered"
        )

    @contextmanager
    def override(
        self,
        *,
        disable: Iterable[str | Callable[..., Any] | Gate] = (),
        enable: Iterable[str | Callable[..., Any] | Gate] = (),
        add: Iterable[ShellHook | LlmHook | Gate] = (),
    ) -> Iterator[HookChain]:
        """Changes the chain for the length of a ``with`` block and puts everything back as it was.

        Example:
            >>> import hookwright as hw
            >>> hooks = hw.HookChain()
            >>> gate = hooks.on("pre_tool_execution", role="gate", name="closed")(lambda event: False)
            >>> with hooks.override(disable=["closed"]):
            ...     print(hooks.run("pre_tool_execution", tool_name="shell", tool_arguments={}).action)
            None
            >>> hooks.run("pre_tool_execution", tool_name="shell", tool_arguments={}).action
            'skip'
        """
        snapshot = self._snapshot()
        functions, shells, loaded = dict(self._functions), dict(self._shells), self._loaded.copy()
        identities, gates = dict(self._identities), dict(self._gates)
        try:
            for hook in disable:
                self.disable(hook)
            for hook in enable:
                self.enable(hook)
            for shell in add:
                self.add(shell)
            yield self
        finally:
            self._restore(snapshot)
            self._functions, self._shells, self._loaded = functions, shells, loaded
            self._identities, self._gates = identities, gates

    def copy(self) -> HookChain:
        """A chain of its own with the same hooks."""
        other = HookChain(budget=self.budget, shadow=self.shadow)
        other._copy_from(self)
        other._functions, other._shells = dict(self._functions), dict(self._shells)
        other._identities, other._gates = dict(self._identities), dict(self._gates)
        other._loaded = self._loaded.copy()
        return other

    def _with(self, other: HookChain, name: str) -> HookChain:
        """A chain with the hooks of both; those of ``other`` whose names are taken get ``name`` behind them."""
        both = self.copy()
        both._copy_from(other, name)
        return both

    @property
    def hooks(self) -> list[HookInfo]:
        """The hooks in the order in which they run."""
        return [HookInfo(**description) for description in self._describe()]

    def explain(self, event: str, tools: Sequence[str] | None = None, **fields: Any) -> Explanation:
        """Says of each hook whether it would run for this event and why, without running anything.

        Args:
            event: the event's name.
            tools: the names of the registered tools, to find matchers that fit none of them.
            fields: the event's fields, as for `run`.

        Example:
            >>> import hookwright as hw
            >>> hooks = hw.HookChain()
            >>> audit = hooks.on("pre_tool_execution", tool_name="shell", name="audit")(lambda event: None)
            >>> hooks.explain("pre_tool_execution", tool_name="grep")[0].matches
            False
        """
        name = _event_names([event])[0]
        return Explanation(name, [HookExplanation(*hook) for hook in self._explain(name, tools, fields)])

    def load(
        self,
        project: str | os.PathLike[str] | None = None,
        *,
        user: bool = True,
        trust: bool | None = None,
        strict: bool = True,
        file: str | os.PathLike[str] | None = None,
        models: Mapping[str, Any] | None = None,
    ) -> LoadReport:
        """Loads the hooks of the configuration files, in the place of those that an earlier call loaded.

        Args:
            project: where to look for a folder ``.hookwright/``, there and upwards; the working directory by default.
            user: whether the user's own hooks are loaded, from ``$XDG_CONFIG_HOME/hookwright/``.
            trust: ``None`` asks the trust store whether the project's hooks may run; ``True`` lets them run this time,
                and nothing is remembered; ``False`` leaves them out.
            strict: whether a mistake keeps everything from being loaded. If not, hooks without mistakes are loaded and
                the problems are returned.
            file: one more configuration file, wherever it is. To name it is to trust it.
            models: the models that hooks of type ``llm`` may name, by name. ``openai:NAME`` and ``anthropic:NAME`` are
                known without it.

        Raises:
            ConfigError: with every mistake in `problems`; the chain is as it was.
            TrustError: when the project is not trusted as it is; the chain is as it was.
            OSError: when there is no such folder.

        Example:
            >>> import hookwright as hw
            >>> hooks = hw.HookChain()
            >>> hooks.load(user=False, trust=False)
            <LoadReport: 0 hooks from 0 files>
        """
        return load(self, project, user, trust, strict, file, models)

    def record(self, path: str | os.PathLike[str], *, redact: Iterable[str] = ()) -> _native.Recording:
        """Begins to append every event and its outcome to a file, as a JSON line with secrets redacted.

        Events are recorded whether or not a hook listens, so that a hook that is written later can be tried on them;
        only the pieces of streamed text are not, unless a hook listens.

        Args:
            path: the file; it is made if it is not there.
            redact: regular expressions for secrets of your own, besides the keys and passwords that are known.

        Returns:
            A handle: leave its ``with`` block or call its `stop` to end the recording.

        Raises:
            ValueError: for a bad pattern.
            OSError: when the file cannot be opened.
        """
        patterns = [redact] if isinstance(redact, str) else list(redact)
        return self._record(Path(path), patterns)

    def replay(self, path: str | os.PathLike[str], *, shell: bool = False) -> ReplayReport:
        """Runs this chain over recorded events and says where it decides otherwise than was recorded.

        Tools and models never run. Python and built-in hooks do. The replay counts in no statistics and is not
        recorded.

        Args:
            path: what `record` wrote.
            shell: whether shell hooks run as well; if not, what they did stands as it was recorded.

        Raises:
            OSError: when the file cannot be read.
        """
        return report(self._replay(Path(path), shell))

    def stats(self) -> ChainStats:
        """Counts and times of every hook so far, in the order in which they run."""
        return ChainStats(HookStats(**counts) for counts in self._stats())

    def __contains__(self, name: object) -> bool:
        return any(hook.name == name for hook in self.hooks)

    def __repr__(self) -> str:
        hooks = self.hooks
        lines = [f"<HookChain of {len(hooks)} hook{'s' * (len(hooks) != 1)}>"]
        for hook in hooks:
            off = "" if hook.enabled else ", disabled"
            lines.append(f"  {hook.role:8} {hook.name} ({hook.kind}, {hook.level}{off}): {', '.join(hook.events)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from ._display import chain_html

        return chain_html([vars(hook) for hook in self.hooks])
