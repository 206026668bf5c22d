"""`hookwright hooks ...`: check, list, explain, run, replay and trust a hook configuration."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..exceptions import ConfigError, TrustError
from ._output import print_table, printable

if TYPE_CHECKING:
    from .._chain import HookChain

F = TypeVar("F", bound=Callable[..., Any])

_project = click.option(
    "--project",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    help="Where to look for .hookwright/, here and upwards. Default: the current folder.",
)
_no_user = click.option("--no-user", is_flag=True, help="Leave out the user's own hooks.")
_trust_once = click.option("--trust", "trust_once", is_flag=True, help="Trust the project for this command only.")
_tools = click.option(
    "--tool", "tools", multiple=True, metavar="NAME", help="A tool that exists, to compare matchers with. Repeatable."
)
_fields = click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="NAME=VALUE",
    help="A field of the event; the value is JSON, or else text. Repeatable.",
)


def _where(command: F) -> F:
    """The options that say which hooks are meant."""
    return _project(_no_user(_trust_once(command)))


@click.group()
def hooks() -> None:
    """Look at, try and trust the hooks of the user and of a project."""


@hooks.command()
@_where
@_tools
def check(project: Path, no_user: bool, trust_once: bool, tools: tuple[str, ...]) -> None:
    """Report every mistake in the configuration files. Runs nothing. Exits with 1 if there is one."""
    chain = _new_chain()
    try:
        report = chain.load(project, user=not no_user, trust=True if trust_once else None)
    except ConfigError as error:
        for problem in error.problems or (error,):
            click.echo(printable(problem))
        count = len(error.problems) or 1
        click.echo(f"{count} {'mistake' if count == 1 else 'mistakes'}", err=True)
        sys.exit(1)
    except TrustError as error:
        click.echo("no mistakes, but nothing was loaded")
        if tools:
            click.echo("note: no matcher was compared with the tools; add --trust to do so", err=True)
        click.echo(f"note: {printable(error)}", err=True)
        return
    for note in report.notes:
        click.echo(f"note: {printable(note)}", err=True)
    warnings = _unused_matchers(chain, tools) if tools else []
    for warning in warnings:
        click.echo(f"warning: {printable(warning)}")
    count = len(chain.hooks)
    click.echo(f"no mistakes in {count} {'hook' if count == 1 else 'hooks'}")


@hooks.command("list")
@_where
def list_hooks(project: Path, no_user: bool, trust_once: bool) -> None:
    """List the hooks in the order in which they run."""
    from .._display import filter_text

    chain = _loaded(project, no_user, trust_once)
    print_table(
        ("name", "kind", "role", "level", "order", "events", "filter", "timeout", "enabled", "source"),
        (
            (
                hook.name,
                hook.kind,
                hook.role,
                hook.level,
                hook.order,
                ",".join(hook.events),
                filter_text(hook.filter),
                f"{hook.timeout:g}s",
                "yes" if hook.enabled else "no",
                hook.source,
            )
            for hook in chain.hooks
        ),
    )


@hooks.command()
@click.argument("event")
@_where
@_tools
@_fields
def explain(
    event: str, project: Path, no_user: bool, trust_once: bool, tools: tuple[str, ...], fields: tuple[str, ...]
) -> None:
    """Say for each hook whether it would run on EVENT, and why not. Runs nothing."""
    values = _parsed(fields)
    chain = _loaded(project, no_user, trust_once)
    with _fields_are_good():
        explanation = chain.explain(event, tools=list(tools) or None, **values)
    for line in explanation.lines:
        click.echo(printable(line))
    if not explanation:
        click.echo("there are no hooks: neither the user nor a project here or above it has any")


@hooks.command()
@click.argument("event")
@_where
@_fields
@click.option("--input", "source", type=click.File("r", encoding="utf-8"), help="A JSON object of fields; - is stdin.")
def run(
    event: str, project: Path, no_user: bool, trust_once: bool, fields: tuple[str, ...], source: Any | None
) -> None:
    """Run the hooks on EVENT, for real, and show the outcome. Exits with 1 if they stop, skip or ask."""
    values = {**_read_object(source), **_parsed(fields)}
    chain = _loaded(project, no_user, trust_once)
    with _fields_are_good():
        outcome = chain.run(event, **values)
    click.echo(printable(repr(outcome)))
    sys.exit(1 if outcome.action is not None else 0)


@hooks.command()
@click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_where
@click.option("--shell", is_flag=True, help="Run shell hooks too. Tools and models never run.")
def replay(path: Path, project: Path, no_user: bool, trust_once: bool, shell: bool) -> None:
    """Run the hooks over the events recorded in PATH. Exits with 1 if an outcome differs from the recorded one."""
    report = _loaded(project, no_user, trust_once).replay(path, shell=shell)
    for line in report.lines:
        click.echo(printable(line))
    if not report.events and report.bad_lines:
        raise click.UsageError(f"{path} is not a record: none of its lines is an event that a chain recorded")
    sys.exit(1 if report.differences else 0)


@click.command()
@click.argument("project", type=click.Path(exists=True, file_okay=False, path_type=Path), default=Path())
@click.option("--forget", "action", flag_value="forget", help="Take the trust back.")
@click.option("--status", "action", flag_value="status", help="Say whether it is trusted; exits with 3 if not.")
def trust(project: Path, action: str | None) -> None:
    """Trust the hooks of PROJECT as they are now. A changed file must be trusted again.

    Hooks run commands on your machine: read them first. What is trusted is listed: the configuration, the hook folders,
    and the scripts and modules of the project that they name.
    """
    from hookwright import trust as store

    project = project.resolve()
    if action == "forget":
        known = store.forget(project)
        click.echo(f"{'forgotten' if known else 'was not trusted'}: {printable(project)}")
    elif action == "status":
        trusted = store.is_trusted(project)
        click.echo(f"{'trusted' if trusted else 'not trusted'}: {printable(project)}")
        sys.exit(0 if trusted else 3)
    else:
        files = store.trust(project)
        click.echo(f"trusted: {printable(project)}")
        for file in files:
            click.echo(f"  {printable(file)}")


hooks.add_command(trust)


def _new_chain() -> HookChain:
    # Only now: `--help` and `--version` work without the compiled part.
    from .. import HookChain

    return HookChain()


def _loaded(project: Path, no_user: bool, trust_once: bool) -> HookChain:
    chain = _new_chain()
    report = chain.load(project, user=not no_user, trust=True if trust_once else None)
    for note in report.notes:
        click.echo(f"note: {printable(note)}", err=True)
    return chain


def _unused_matchers(chain: HookChain, tools: tuple[str, ...]) -> list[str]:
    """The warnings of `explain`, which looks at every hook whatever the event."""
    return chain.explain("pre_tool_execution", tools=list(tools)).warnings


@contextlib.contextmanager
def _fields_are_good() -> Iterator[None]:
    """A field that the event does not have, or of the wrong type, is wrong usage. What hooks raise never comes here."""
    try:
        yield
    except (TypeError, OverflowError) as error:
        raise click.BadParameter(str(error), param_hint="--field") from None


def _parsed(fields: tuple[str, ...]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for field in fields:
        name, separator, text = field.partition("=")
        if not separator or not name:
            raise click.BadParameter(f"{field!r} is not NAME=VALUE", param_hint="--field")
        try:
            values[name] = json.loads(text)
        except ValueError:
            values[name] = text
    return values


def _read_object(source: Any | None) -> dict[str, Any]:
    if source is None:
        return {}
    try:
        value = json.load(source)
    except ValueError as error:
        raise click.BadParameter(f"not JSON: {error}", param_hint="--input") from None
    if not isinstance(value, dict):
        raise click.BadParameter("a JSON object of fields is needed", param_hint="--input")
    return value
