"""Loading configuration files into a chain: reading, trust, importing functions, and putting it all in at once."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from . import _native
from ._functions import is_coroutine_function
from ._llm_hook import Asking, model_named
from .exceptions import ConfigError, ConfigProblem, TrustError

if TYPE_CHECKING:
    from ._chain import HookChain

#: The folders of a project in which its modules are looked for; trust covers the same ones.
_MODULE_FOLDERS = ("", "src", "python")
#: The name of the gate that permission rules in the files become.
_PERMISSIONS = "permissions"
#: How many files an error names before it only counts them.
_NAMED_FILES = 10


class LoadReport(Sequence[ConfigProblem]):
    """What `HookChain.load` did: the problems it passed over with ``strict=False``, as a sequence, and more.

    Attributes:
        problems: every problem; always empty after a strict load.
        notes: what may not be as it is meant, such as a name under ``disabled_hooks`` that no hook has here.
        hooks: the names of the hooks that were loaded.
        files: the files that were read.
        project: the folder of the project whose configuration was read; None if there is none.
        command_table: what gates know of programs with what the files add under ``gates``; the gate of the files'
            permission rules uses it, and so can yours: ``hw.ReviewGate(table=report.command_table)``.
    """

    __module__ = "hookwright"

    def __init__(
        self,
        problems: Iterable[ConfigProblem],
        notes: Iterable[ConfigProblem],
        hooks: Iterable[str],
        files: Iterable[str],
        project: str | None,
        command_table: _native.CommandTable,
    ) -> None:
        self.problems = tuple(problems)
        self.notes = tuple(notes)
        self.hooks = tuple(hooks)
        self.files = tuple(files)
        self.project = project
        self.command_table = command_table

    @overload
    def __getitem__(self, index: int) -> ConfigProblem: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ConfigProblem]: ...
    def __getitem__(self, index: int | slice) -> ConfigProblem | Sequence[ConfigProblem]:
        return self.problems[index]

    def __len__(self) -> int:
        return len(self.problems)

    def __repr__(self) -> str:
        head = f"<LoadReport: {_count(self.hooks, 'hook')} from {_count(self.files, 'file')}>"
        problems = [f"  problem: {problem}" for problem in self.problems]
        return "\n".join([head, *problems, *(f"  note: {note}" for note in self.notes)])


@dataclass
class Loaded:
    """What a chain has from configuration files, so that loading again can replace it."""

    #: The functions of the loaded hooks by the hooks' names; None for commands.
    functions: dict[str, Any] = field(default_factory=dict)
    #: Hooks of the program that the files switched off.
    disabled: set[str] = field(default_factory=set)
    #: The chain's budget before the files set one, and what they set it to.
    budget: tuple[float, float] | None = None

    def copy(self) -> Loaded:
        return Loaded(dict(self.functions), set(self.disabled), self.budget)


def load(
    chain: HookChain,
    project: Any,
    user: bool,
    trust: bool | None,
    strict: bool,
    file: Any = None,
    models: Mapping[str, Any] | None = None,
) -> LoadReport:
    """See `HookChain.load`."""
    folder = Path.cwd() if project is None else Path(os.fspath(project))
    registered = [(hook.name, hook.source) for hook in chain.hooks if hook.name not in chain._loaded.functions]
    # First what the files say, then whether exactly that is trusted: what is changed in between is asked about.
    configuration = _native.read_configuration(
        folder, user, trust is not False, registered, None if file is None else Path(os.fspath(file)).absolute()
    )
    refusal = None if trust or configuration.project is None else _refusal(configuration, configuration.project)
    problems = [ConfigProblem(*parts) for parts in configuration.problems]
    additions: list[tuple[_native.HookDefinition, tuple[Callable[..., Any], str] | None]] = []
    if refusal is None:
        additions, missing = _with_functions(configuration, models or {})
        problems = _in_order([*problems, *missing], configuration.files)
    table, gate = _native.CommandTable(), None
    if refusal is None:
        table, unreadable = _commands(configuration)
        gate, malformed = _permissions(configuration, table)
        problems = _in_order([*problems, *unreadable, *malformed], configuration.files)
    if problems and strict:
        raise ConfigError(problems=problems)
    if refusal is not None:
        raise refusal
    refused = _exchange(chain, configuration, registered, additions, gate, strict)
    if refused and strict:
        raise ConfigError(problems=refused)
    return LoadReport(
        _in_order([*problems, *refused], configuration.files),
        [ConfigProblem(*parts) for parts in configuration.notes],
        chain._loaded.functions,
        configuration.files,
        None if configuration.project is None else str(configuration.project),
        table,
    )


def _exchange(
    chain: HookChain,
    configuration: _native.Configuration,
    registered: list[tuple[str, str]],
    additions: list[tuple[_native.HookDefinition, tuple[Callable[..., Any], str] | None]],
    gate: _native.Gate | None,
    strict: bool,
) -> list[ConfigProblem]:
    """Puts what was read in the place of what an earlier load put in. Returns what the chain refuses."""
    before = chain._loaded
    enabled = {hook.name for hook in chain.hooks if hook.enabled}
    off = {name for name, _ in registered} & set(configuration.disabled)
    disable = {name for name in off if name in enabled}
    enable = before.disabled - off
    usual = chain.budget
    if before.budget is not None and chain.budget == before.budget[1]:
        usual = before.budget[0]
    budget = usual if configuration.budget is None else configuration.budget
    named = None if gate is None else (gate, _PERMISSIONS)
    switch = (sorted(enable), sorted(disable))
    refused = chain._exchange(list(before.functions), additions, named, switch, budget, strict)
    problems = [_refused(configuration, additions, index, message) for index, message in refused]
    if not (problems and strict):
        left_out = {index for index, _ in refused}
        functions = {
            definition.name: function and function[0]
            for index, (definition, function) in enumerate(additions)
            if index not in left_out
        }
        if named is not None and len(additions) not in left_out:
            functions[_PERMISSIONS] = None
        chain._loaded = Loaded(
            functions,
            disable | (before.disabled & off),
            None if configuration.budget is None else (usual, configuration.budget),
        )
    return problems


def _refused(
    configuration: _native.Configuration,
    additions: Sequence[tuple[_native.HookDefinition, Any]],
    index: int,
    message: str,
) -> ConfigProblem:
    if index < len(additions):
        return ConfigProblem(*additions[index][0].problem(message, None))
    file, line, column, _, _ = configuration.rules[0][3]
    return ConfigProblem(file, line, column, message, "the permissions of the files are a gate of this name")


def _commands(configuration: _native.Configuration) -> tuple[_native.CommandTable, list[ConfigProblem]]:
    """The table of programs with what the files add to it, and the files of commands that cannot be read."""
    table, problems = _native.CommandTable(), []
    for path, (file, line, column, _, _) in configuration.commands:
        try:
            table = table.load(path)
        except OSError as error:
            problems.append(ConfigProblem(file, line, column, f"{path} cannot be read: {error.strerror}"))
        except ValueError as error:
            problems.append(ConfigProblem(file, line, column, str(error)))
    return table, problems


def _permissions(
    configuration: _native.Configuration, table: _native.CommandTable
) -> tuple[_native.Gate | None, list[ConfigProblem]]:
    """The gate of the permission rules in the files, and the rules that cannot be read."""
    problems = []
    levels: dict[str, dict[str, list[str]]] = {}
    for name, level, rule, (file, line, column, _, _) in configuration.rules:
        mistake = _native.check_rule(rule)
        if mistake is None:
            levels.setdefault(level, {"allow": [], "ask": [], "deny": []})[name].append(rule)
        else:
            problems.append(ConfigProblem(file, line, column, f"permission rule {rule!r}: {mistake}"))
    if not levels:
        return None, problems
    lists = [(level, rules["allow"], rules["ask"], rules["deny"]) for level, rules in levels.items()]
    return _native.Gate.permissions(lists, "ask", "en", table), problems


def _in_order(problems: list[ConfigProblem], files: list[str]) -> list[ConfigProblem]:
    place = {file: index for index, file in enumerate(files)}
    return sorted(problems, key=lambda one: (place.get(one.file, len(files)), one.line or 0, one.column or 0))


def _refusal(configuration: _native.Configuration, root: Path) -> TrustError | None:
    """The error for a project that is not trusted as it is; None if it is."""
    state, files = _native.trust_state(root)
    nothing = not files and not any(definition.level == "project" for definition in configuration.definitions)
    if state == "trusted" or (state == "unknown" and nothing):
        return None
    named = ", ".join(f"{path} ({kind})" for path, kind in files[:_NAMED_FILES])
    if len(files) > _NAMED_FILES:
        named += f" and {len(files) - _NAMED_FILES} more"
    why = "changed since they were trusted" if state == "changed" else "are not trusted"
    return TrustError(
        f"the hooks of {root} {why}: {named}",
        project=str(root),
        hint=f"they run commands on your machine: read them, then run: hookwright trust {shlex.quote(str(root))}",
    )


def _with_functions(
    configuration: _native.Configuration, models: Mapping[str, Any]
) -> tuple[list[tuple[_native.HookDefinition, tuple[Callable[..., Any], str] | None]], list[ConfigProblem]]:
    """The definitions with the functions that they name, and what is wrong with those."""
    additions: list[tuple[_native.HookDefinition, tuple[Callable[..., Any], str] | None]] = []
    problems = []
    for definition in configuration.definitions:
        if definition.question is not None:
            try:
                additions.append((definition, (_asking(definition, *definition.question, models), "async")))
            except LookupError as mistake:
                problems.append(ConfigProblem(*definition.problem(*mistake.args)))
            continue
        if definition.callable is None:
            additions.append((definition, None))
            continue
        root = configuration.project if definition.level == "project" else None
        try:
            function = _import(*definition.callable, root)
            mode = _mode(function, definition.isolated)
        except _Mistake as mistake:
            problems.append(ConfigProblem(*definition.problem(mistake.message, mistake.suggestion)))
        else:
            additions.append((definition, (function, mode)))
    return additions, problems


def _asking(
    definition: _native.HookDefinition,
    prompt: str,
    model: str,
    base_url: str | None,
    key_variable: str | None,
    models: Mapping[str, Any],
) -> Asking:
    chosen = model_named(model, base_url, key_variable, models)
    return Asking(definition.name, prompt, definition.events, definition.role, chosen)


class _Mistake(Exception):
    def __init__(self, message: str, suggestion: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.suggestion = suggestion


def _import(module: str, function: str, root: Path | None) -> Any:
    try:
        with _importable(root):
            value = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise _Mistake(f"importing {module} failed: {error}", "install what it needs") from None
        where = "on Python's path" if root is None else f"in {root} or on Python's path"
        raise _Mistake(f"there is no module {error.name!r}", f"it is looked for {where}") from None
    except Exception as error:
        raise _Mistake(f"importing {module} failed: {type(error).__name__}: {error}") from None
    owner = module
    for part in function.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            near = difflib.get_close_matches(part, _callables(value), 1)
            raise _Mistake(f"{owner} has no {part!r}", f"did you mean {near[0]!r}?" if near else None) from None
        owner = f"{owner}.{part}"
    if not callable(value):
        raise _Mistake(f"{module}:{function} is no function, but {type(value).__name__}")
    return value


def _callables(owner: Any) -> list[str]:
    return [name for name, value in vars(owner).items() if callable(value)] if hasattr(owner, "__dict__") else []


@contextlib.contextmanager
def _importable(root: Path | None) -> Iterator[None]:
    """Makes the modules of a trusted project importable: before all others for the block, after them from then on.

    First, so that trust is given to the file that is then imported; last afterwards, so that a file of the project
    does not stand in for a module that some other code imports later.
    """
    if root is None:
        yield
        return
    folders = [str(root / folder) if folder else str(root) for folder in _MODULE_FOLDERS if (root / folder).is_dir()]
    importlib.invalidate_caches()
    sys.path[:0] = folders
    try:
        yield
    finally:
        for folder in folders:
            with contextlib.suppress(ValueError):
                sys.path.remove(folder)
        sys.path.extend(folder for folder in folders if folder not in sys.path)


def _mode(function: Any, isolated: bool) -> str:
    is_async = is_coroutine_function(function)
    if isolated and is_async:
        raise _Mistake('the function is async, so "isolate: thread" has nothing to isolate', "leave out isolate")
    return "thread" if isolated else "async" if is_async else "inline"


def _count(items: Sequence[Any], noun: str) -> str:
    return f"{len(items)} {noun}{'s' * (len(items) != 1)}"
