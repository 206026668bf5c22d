"""What a shell command would do, without running it; and the environment in which one that only reads is run.

The text is parsed as bash parses it, and each simple command in it is judged by a table of programs. Everything that is
not proven to only read is not `read_only`. This is a check of a text and the first line of defence, not a sandbox.
"""

from __future__ import annotations

import os
from pathlib import Path

from . import _native
from ._native import Analysis, CommandTable, Reason, SimpleCommand

__all__ = [
    "Analysis",
    "CommandTable",
    "Reason",
    "SimpleCommand",
    "analyze",
    "git_risk",
    "read_only_arguments",
    "read_only_environment",
]


def analyze(command: str, *, table: CommandTable | None = None) -> Analysis:
    """What would this command do?

    Args:
        command: text for bash; at most 16 KiB of it are read, a longer one is `unknown`.
        table: what is known of programs. Default: what is built in.

    Returns:
        Its effect (`read_only`, `runs_tests`, `writes`, `network`, `executes` or `unknown`) and the reasons.

    Example:
        >>> from hookwright import shell
        >>> shell.analyze("git diff | head -50").effect
        'read_only'
        >>> [(reason.code, reason.subject) for reason in shell.analyze("ls && rm -rf build").reasons]
        [('program_writes', 'rm')]
    """
    return _native.analyze_command(command, table)


def read_only_environment(
    folder: str | os.PathLike[str] = ".", *, work_tree: str | os.PathLike[str] | None = None, command: str = ""
) -> dict[str, str]:
    """The environment in which a command that only reads is to be run: without it git, for one, runs what the
    repository's configuration names, whatever the command says.

    Args:
        folder: where the command will run.
        work_tree: programs below this folder are not found. Default: ``folder``.
        command: what will be run. Git works in the repository around ``folder``, and in those that the command goes to
            (``git -C …``, ``cd … && git``) if they name no programs; it refuses all others.

    Returns:
        All its variables: what is not in it must not be handed on.

    Example:
        >>> from hookwright import shell
        >>> shell.read_only_environment()["GIT_OPTIONAL_LOCKS"]
        '0'
    """
    folder = Path(folder).absolute()
    environment, _ = _native.reading_environment(folder, Path(work_tree or folder).absolute(), command)
    return {str(name): str(value) for name, value in environment}


def git_risk(folder: str | os.PathLike[str] = ".") -> str | None:
    """Why git must not even read here: the repository itself names programs that git would run in the environment of
    `read_only_environment` as well. None if nothing stands against it.

    Args:
        folder: where git would run.

    Example:
        >>> from hookwright import shell
        >>> shell.git_risk() is None
        True
    """
    _, risk = _native.reading_environment(Path(folder).absolute(), Path(folder).absolute(), "")
    return risk


def read_only_arguments(command: str) -> list[str]:
    """The arguments that run a command as `analyze` reads it: by bash, without start-up files.

    Args:
        command: text for bash.

    Example:
        >>> from hookwright import shell
        >>> shell.read_only_arguments("ls")
        ['bash', '--noprofile', '--norc', '-p', '-c', 'ls']
    """
    return ["bash", "--noprofile", "--norc", "-p", "-c", command]
