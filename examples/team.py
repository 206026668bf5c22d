"""A team of three notes down what each Python file of a repository is for. In the middle of it the process is killed;
the team is taken up again and comes to its end, with nothing lost and nothing done twice.

``python examples/team.py [REPOSITORY]``. The models are functions, so it needs no key; the repository is a copy.
"""

from __future__ import annotations

import ast
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hookwright as hw

FILES = 6


def tools_of(work: Path) -> list[Any]:
    """What the team can do in the copy of the repository."""

    @hw.tool
    def outline(path: str) -> str:
        """Says what stands at the top of a Python file."""
        tree = ast.parse((work / path).read_text(encoding="utf-8"))
        return (ast.get_docstring(tree) or "no docstring").splitlines()[0]

    @hw.tool(parallel=False)
    def note(path: str, text: str) -> str:
        """Adds a line to NOTES.md."""
        with (work / "NOTES.md").open("a", encoding="utf-8") as file:
            file.write(f"- `{path}`: {text}\n")
        return "noted"

    return [outline, note]


def called(request: hw.Request, name: str) -> list[dict[str, Any]]:
    """The arguments of the calls of a tool that a model has made so far."""
    calls = [call for message in request.messages for call in message.tool_calls]
    return [call.arguments for call in calls if call.name == name]


def planner(files: list[str]) -> Callable[[hw.Request], Any]:
    """Adds a task for each file, then says so."""

    def model(request: hw.Request) -> Any:
        added = called(request, "task_add")
        if len(added) < len(files):
            return hw.ToolCall("task_add", {"title": files[len(added)]})
        if not called(request, "send_message"):
            return hw.ToolCall("send_message", {"to": "writer", "text": f"{len(files)} tasks are there"})
        return hw.ToolCall("work_done", {"summary": f"planned {len(files)} notes"})

    return model


def writer(team: Callable[[], hw.Team], die_after: int | None) -> Callable[[hw.Request], Any]:
    """Takes one task after the other: looks, notes, says so. With ``die_after`` the power goes out after so many."""

    def model(request: hw.Request) -> Any:
        tasks = team().tasks
        mine = next((task for task in tasks if task["owner"] == "writer" and task["state"] == "in_progress"), None)
        if mine is None:
            free = [task for task in tasks if task["state"] == "open"]
            done = len([task for task in tasks if task["state"] == "done"])
            if die_after is not None and done >= die_after:
                os.kill(os.getpid(), signal.SIGKILL)
            if free:
                return hw.ToolCall("task_claim", {"id": free[0]["id"]})
            sent = any("all is noted" in letter["text"] for letter in called(request, "send_message"))
            return "" if sent or not tasks else hw.ToolCall("send_message", {"to": "checker", "text": "all is noted"})
        path = mine["title"]
        if not any(arguments["path"] == path for arguments in called(request, "outline")):
            return hw.ToolCall("outline", {"path": path})
        if not any(arguments["path"] == path for arguments in called(request, "note")):
            return hw.ToolCall("note", {"path": path, "text": request.messages[-1].text})
        return hw.ToolCall("task_update", {"id": mine["id"], "state": "done"})

    return model


def checker(work: Path) -> Callable[[hw.Request], Any]:
    """Waits until all is noted, counts, and tells the lead."""

    def model(request: hw.Request) -> Any:
        if not any("all is noted" in message.text for message in request.messages if message.role == "user"):
            return "I wait for the writer."
        lines = (work / "NOTES.md").read_text(encoding="utf-8").splitlines()
        return hw.ToolCall("work_done", {"summary": f"{len(lines)} notes, {len(set(lines))} different ones"})

    return model


def begin(work: Path, session: Path, files: list[str], die_after: int) -> None:
    """The first process: starts the team, and dies in the middle of its work."""
    team = hw.Team(tools=tools_of(work), session=session, cwd=work, max_repeated_calls=None)
    team.spawn("checker", role="checks the notes", model=checker(work))
    team.spawn("writer", role="writes the notes", model=writer(lambda: team, die_after))
    team.spawn("planner", role="plans", prompt="Plan notes on the files.", model=planner(files))
    team.join_sync(timeout=60)


def main(repository: Path) -> hw.TeamBoard:
    """Makes the copy, lets the first process die, and takes the team up again."""
    place = Path(tempfile.mkdtemp(prefix="hookwright-team-"))
    work, session = place / "repository", place / "session"
    shutil.copytree(repository, work, ignore=shutil.ignore_patterns(".git", "target", ".venv", "__pycache__"))
    files = sorted(str(path.relative_to(work)) for path in work.rglob("*.py"))[:FILES]
    first = [sys.executable, str(Path(__file__).resolve()), "--begin", str(work), str(session), *files]
    died = subprocess.run(first, check=False)
    notes = (work / "NOTES.md").read_text(encoding="utf-8").splitlines()
    print(f"the first process ended with {died.returncode}; {len(notes)} notes so far")

    team: hw.Team
    models = {"planner": planner(files), "writer": writer(lambda: team, None), "checker": checker(work)}
    options: dict[str, Any] = {"tools": tools_of(work), "cwd": work, "max_repeated_calls": None}
    # The models use the team, so nobody goes on before it is there.
    team = hw.Team.resume(session, hw.Scripted([]), models=models, start=False, **options)
    with team:
        team.start()
        board = team.join_sync(timeout=60)
        print(board)
        for letter in team.receive():
            print(f"to the lead, from {letter.sender}: {letter.text}")
        print((work / "NOTES.md").read_text(encoding="utf-8"))
        assert team["checker"].result.summary == f"{len(files)} notes, {len(files)} different ones"
    return board


if __name__ == "__main__":
    if sys.argv[1:2] == ["--begin"]:
        begin(Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:], die_after=3)
    else:
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1])
