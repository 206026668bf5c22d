"""The command line.

Exit codes:
    0: done, and nothing to complain about.
    1: what was asked about is not so: `check` found mistakes, `run` was refused, `replay` found differences, the
       demo did not show what it should.
    2: wrong usage: an unknown option or event, a file that is not there, a configuration that cannot be loaded.
    3: the project's hooks are not trusted.
    130: interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

from ._errors import EXIT_USAGE, Group
from ._gate import gate
from ._hooks import hooks, trust
from ._run import run, session

__all__ = ["cli", "main"]

EXIT_INTERRUPTED = 130


def _version() -> str:
    try:
        return version("hookwright")
    except PackageNotFoundError:
        return "unknown (running from a source tree that is not installed)"


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(_version(), prog_name="hookwright", message="%(prog)s %(version)s")
def cli() -> None:
    """Hooks, gates, teams and lessons for people who build agents."""


@cli.command()
@click.option(
    "--repo",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The git repository to work on a copy of. Default: the one around the current folder, else a packaged one.",
)
def demo(repo: Path | None) -> None:
    """Run a guarded agent on a copy of a git repository.

    No network and no model are needed: the agent is scripted, everything else is real. Exits with 0 only if what it
    shows is true.
    """
    from .._demo import run_demo

    sys.exit(run_demo(repo))


cli.add_command(gate)
cli.add_command(hooks)
cli.add_command(run)
cli.add_command(session)
cli.add_command(trust)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line and exits. What a user did wrong is told in one line with a hint, never as a traceback.

    Args:
        arguments: in place of those of the process.
    """
    try:
        code = cli.main(arguments, prog_name="hookwright", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:  # asked for nothing: the help is the answer, as an error
        click.echo(error.format_message(), err=True)
        code = EXIT_USAGE
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        code = EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has enough. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = EXIT_USAGE
    sys.exit(code if isinstance(code, int) else 0)
