"""`hookwright run` and `hookwright session`: an agent at the terminal."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ._output import printable

if TYPE_CHECKING:
    from .. import Agent, RunEvent, RunResult

F = TypeVar("F", bound=Callable[..., Any])

#: The longest line about a call, in characters.
_SHOWN = 160

_OPTIONS: list[Callable[[Any], Any]] = [
    click.option("--model", required=True, metavar="NAME", help="The model, as its server knows it."),
    click.option("--api", type=click.Choice(["openai", "anthropic"]), default="openai", show_default=True),
    click.option("--base-url", metavar="URL", help="Where the API begins, such as http://localhost:8080/v1."),
    click.option("--no-key", is_flag=True, help="The server asks for no key. Else it is in the usual variable."),
    click.option(
        "--tools",
        type=click.Choice(["workspace", "read", "none"]),
        default="read",
        show_default=True,
        help="All tools for the folder, those that only read, or none.",
    ),
    click.option(
        "--root",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        default=Path(),
        help="The folder that the tools work in. Default: the current one.",
    ),
    click.option(
        "--hooks", "hook_file", type=click.Path(exists=True, dir_okay=False), help="A hooks.yaml to use as well."
    ),
    click.option("--trust", "trust_once", is_flag=True, help="Trust the project's hooks for this run only."),
    click.option("--mode", type=click.Choice(["review", "plan"]), help="Only look (and, in review, run the tests)."),
    click.option("--system", default="", metavar="TEXT", help="The system prompt."),
    click.option("--max-rounds", type=click.IntRange(1), default=50, show_default=True),
    click.option("--no-stream", is_flag=True, help="Print the answer when it is there as a whole."),
]


def _agent_options(command: F) -> F:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command()
@click.argument("task")
@_agent_options
@click.option(
    "--session", "session_path", type=click.Path(path_type=Path), help="Where the conversation is kept, and goes on."
)
def run(task: str, session_path: Path | None, **options: Any) -> None:
    """Give an agent a TASK and watch it work; - reads the task from stdin.

    Calls that no rule allows are asked about at the terminal. The answer goes to stdout, all else to stderr. Exits with
    1 if the agent was stopped or ran into a limit.
    """
    text = sys.stdin.read() if task == "-" else task
    if not text.strip():
        raise click.BadParameter("it is empty", param_hint="TASK")
    _go(text, session_path or _new_session(), options)


@click.group()
def session() -> None:
    """Look at conversations that were kept, and go on with them."""


@session.command()
@click.argument("path", type=click.Path(exists=True, path_type=Path))
def show(path: Path) -> None:
    """Print the conversation in PATH."""
    from .. import Session

    opened = Session(path)
    for message in opened.messages:
        who = message.sender or message.role
        click.echo(f"[{printable(who)}] {printable(message.text)}".rstrip())
        for call in message.tool_calls:
            click.echo(f"  -> {_call_line(call.name, call.arguments)}")
    opened.close()


@session.command()
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.argument("task", required=False)
@_agent_options
def resume(path: Path, task: str | None, **options: Any) -> None:
    """Go on with the conversation in PATH: with TASK, or where its last turn was left."""
    _go(task, path, options)


def _new_session() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    return Path(state) / "hookwright" / "sessions" / name


def _agent(path: Path, options: dict[str, Any]) -> Agent:
    import hookwright as hw

    kind = hw.OpenAI if options["api"] == "openai" else hw.Anthropic
    try:
        model = kind(options["model"], base_url=options["base_url"], api_key=False if options["no_key"] else None)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    hooks = hw.HookChain()
    report = hooks.load(
        options["root"],
        trust=True if options["trust_once"] else None,
        file=options["hook_file"],
        models={"agent": model},
    )
    for note in report.notes:
        click.echo(f"note: {printable(note)}", err=True)
    if "permissions" not in report.hooks:
        hooks.add(hw.PermissionRules(table=report.command_table))
    hooks.add(hw.ReviewGate(when="review", table=report.command_table))
    hooks.add(hw.PlanGate(when="plan", table=report.command_table))
    tools: list[Any] = []
    if options["tools"] != "none":
        every = options["tools"] == "workspace"
        tools = list(hw.workspace_tools(options["root"], write=every, shell=every))
    path.parent.mkdir(parents=True, exist_ok=True)
    agent = hw.Agent(
        model,
        tools=tools,
        hooks=hooks,
        system=options["system"],
        session=path,
        approver=hw.TerminalApprover(),
        max_rounds=options["max_rounds"],
        cwd=options["root"],
    )
    if options["mode"]:
        agent.session.mode = options["mode"]
    return agent


def _go(text: str | None, path: Path, options: dict[str, Any]) -> None:
    from .. import ModelError

    agent = _agent(path, options)
    try:
        result = asyncio.run(_watch(agent, text, not options["no_stream"]))
    except ModelError as error:
        if error.partial is not None and error.partial.text and options["no_stream"]:
            click.echo(printable(error.partial.text))
        click.echo(f"session: {path}", err=True)
        raise
    except BaseException:
        click.echo(f"\nsession: {path}", err=True)
        raise
    finally:
        agent.close()
    used = f"{result.usage.input_tokens} tokens in, {result.usage.output_tokens} out"
    click.echo(f"{result.status}: {result.rounds} rounds, {len(result.tool_calls)} calls, {used}", err=True)
    if result.reason:
        click.echo(printable(result.reason), err=True)
    click.echo(f"session: {path}", err=True)
    if result.status != "success":
        sys.exit(1)


async def _watch(agent: Agent, text: str | None, streamed: bool) -> RunResult:
    if not streamed:
        result = await (agent.resume() if text is None else agent.run(text))
        click.echo(printable(result.text))
        return result
    printer = _Printer()
    async with agent.resume_stream() if text is None else agent.stream(text) as stream:
        async for event in stream:
            printer.show(event)
    printer.end_line()
    assert stream.result is not None
    return stream.result


class _Printer:
    """Prints what happens: text as it comes, a line for each call, retry and notice."""

    def __init__(self) -> None:
        self._open = False

    def show(self, event: RunEvent) -> None:
        kind = event.type
        if kind == "text":
            click.echo(printable(event.delta), nl=False)
            sys.stdout.flush()
            self._open = not event.delta.endswith("\n")
        elif kind == "tool_started":
            self._line(f"-> {_call_line(event.name, event.arguments)}")
        elif kind == "tool_finished":
            call = event.call
            said = call.result.strip().splitlines() or [""]
            word = f"failed ({call.cause})" if call.is_error else f"{call.ms:.0f} ms"
            self._line(f"<- {call.name}: {word} {said[0]}")
        elif kind == "retry":
            self._line(f"the model did not answer ({event.error}); asking again in {event.seconds:.1f} s")
        elif kind == "notice":
            self._line(f"{event.hook}: {event.text}")

    def _line(self, text: str) -> None:
        self.end_line()
        line = printable(text).replace("\n", " ")
        click.echo(line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…", err=True)

    def end_line(self) -> None:
        if self._open:
            click.echo()
            self._open = False


def _call_line(name: str, arguments: dict[str, Any]) -> str:
    given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    line = printable(f"{name}({given})").replace("\n", " ")
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"
