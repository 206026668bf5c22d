"""`hookwright gate`: what a shell command would do."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._display.shell import marked
from ._output import printable

if TYPE_CHECKING:
    from ..shell import Analysis, CommandTable

_LANGUAGES = click.Choice(["en", "zh"])


@click.command()
@click.argument("command", required=False)
@click.option(
    "--file",
    type=click.File(encoding="utf-8"),
    help="Judge every line of a file, or of standard input for `-`: a command, or a JSON object with a `command`.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a command.")
@click.option(
    "--allow-tests/--no-allow-tests", default=True, show_default=True, help="Whether running the tests is let through."
)
@click.option(
    "--commands",
    "tables",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A TOML file that describes more programs. Repeatable.",
)
@click.option("--language", type=_LANGUAGES, default="en", show_default=True, help="The language of the reasons.")
def gate(
    command: str | None, file: Any, as_json: bool, allow_tests: bool, tables: tuple[Path, ...], language: str
) -> None:
    """Say what a shell command would do, without running it.

    Exits with 0 if it only reads (or runs the project's tests), with 1 if not or if that cannot be told.
    """
    from ..shell import analyze

    if (command is None) == (file is None):
        raise click.UsageError("give either a command, in quotes, or --file.")
    table = _table(tables)
    allowed = {"read_only", "runs_tests"} if allow_tests else {"read_only"}
    refused = 0
    commands = [command] if command is not None else _commands(file)
    for one in commands:
        analysis = analyze(one, table=table)
        passes = analysis.effect in allowed
        refused += not passes
        if as_json:
            click.echo(json.dumps(_as_dict(analysis, passes, language), ensure_ascii=False))
        elif command is None:
            first = analysis.reasons[0].code if analysis.reasons else ""
            click.echo("\t".join(["allowed" if passes else "refused", analysis.effect, first, _one_line(one)]))
        else:
            _show(analysis, passes, language)
    sys.exit(1 if refused else 0)


def _table(paths: tuple[Path, ...]) -> CommandTable | None:
    from ..shell import CommandTable

    if not paths:
        return None
    table = CommandTable()
    for path in paths:
        try:
            table = table.load(path)
        except (ValueError, OSError) as error:
            raise click.ClickException(str(error)) from None
    return table


def _commands(file: Any) -> Iterator[str]:
    """The commands of a file. Split at newlines only: other characters that end lines belong to the command."""
    for number, line in enumerate(file.read().split("\n"), 1):
        if not line.strip():
            continue
        if not line.lstrip().startswith("{"):
            yield line
            continue
        try:
            command = json.loads(line)["command"]
        except (ValueError, KeyError, TypeError):
            # Braces begin groups in the shell as well.
            yield line
            continue
        if not isinstance(command, str):
            raise click.ClickException(f"line {number}: `command` must be text, not {type(command).__name__}.")
        yield command


def _one_line(command: str) -> str:
    return printable(command.replace("\n", "\\n").replace("\t", "\\t"))


def _show(analysis: Analysis, passes: bool, language: str) -> None:
    click.echo(f"{'allowed' if passes else 'refused'}: {analysis.effect}")
    click.echo()
    lines = marked(printable(analysis.command), [reason.span for reason in analysis.reasons])
    for line in lines:
        click.echo(f"  {line}")
    for reason in analysis.reasons:
        click.echo()
        click.echo(f"{reason.code}: {printable(reason.message(language))}")
        click.echo(f"  {printable(reason.hint(language))}")
    if "hardened_git" in analysis.requires:
        click.echo()
        click.echo("note: git only reads in the environment for reading (hookwright.shell.read_only_environment)")


def _as_dict(analysis: Analysis, passes: bool, language: str) -> dict[str, Any]:
    return {
        "command": analysis.command,
        "allowed": passes,
        "effect": analysis.effect,
        "effects": list(analysis.effects),
        "requires": list(analysis.requires),
        "reasons": [
            {
                "code": reason.code,
                "effect": reason.effect,
                "span": list(reason.span),
                "subject": reason.subject,
                "message": reason.message(language),
                "hint": reason.hint(language),
            }
            for reason in analysis.reasons
        ],
        "commands": [
            {"words": list(one.words), "effect": one.effect, "span": list(one.span)} for one in analysis.commands
        ],
    }
