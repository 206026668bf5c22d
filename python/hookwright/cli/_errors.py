"""What a user did wrong, told in a line with a hint and an exit code, never as a traceback."""

from __future__ import annotations

from typing import IO, Any

import click

from ..exceptions import HookwrightError, TrustError
from ._output import printable

EXIT_USAGE = 2
EXIT_NOT_TRUSTED = 3


class Failure(click.ClickException):
    """An error that is shown as it is, with the exit code that belongs to it."""

    def __init__(self, error: BaseException, hint: str | None, exit_code: int) -> None:
        super().__init__(str(error))
        # The base class declares it as one for all; it is read from the instance.
        self.__dict__["exit_code"] = exit_code
        # The message of an error of ours ends with its hint already.
        self.hint = None if getattr(error, "hint", None) else hint
        self.kind = type(error).__name__

    def show(self, file: IO[Any] | None = None) -> None:
        lines = self.message.splitlines() or [self.kind]
        lines = [f"error: {lines[0]}", *lines[1:]]
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        click.echo("\n".join(printable(line) for line in lines), err=True)


class Group(click.Group):
    """A group of commands that turns the errors of the package into messages."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except TrustError as error:
            hint = "read the hooks, then trust them: hookwright trust"
            raise Failure(error, hint, EXIT_NOT_TRUSTED) from error
        except BrokenPipeError:
            raise
        except (HookwrightError, OSError) as error:
            raise Failure(error, None, EXIT_USAGE) from error
        except ImportError as error:
            if "_native" not in str(error):
                raise
            hint = "the compiled part is missing: install the package again, or run `make demo` in a checkout"
            raise Failure(error, hint, EXIT_USAGE) from error
