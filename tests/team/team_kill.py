"""A team of five that works on a list of tasks and can be killed at any moment: ``python team_kill.py FOLDER AT``.

It prints a line at each step, and at line AT it kills itself. Run again on the same folder, it goes on. With AT 0 it runs to
the end, and says so.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import hookwright as hw

NAMES = ["ada", "bob", "carol", "dave", "张三"]
TASKS = 8
_lock = threading.Lock()
_ready = threading.Event()
_steps = 0


def step(folder: Path, at: int) -> None:
    """One more step; the last one that is wanted ends the process, as a power switch does."""
    global _steps
    with _lock:
        _steps += 1
        if _steps == at:
            os.kill(os.getpid(), signal.SIGKILL)


def main(folder: Path, at: int) -> None:
    @hw.tool(parallel=False)
    def mark(task: str, context: hw.Context) -> str:
        """Writes down that a task is worked on."""
        step(folder, at)
        with (folder / "marks").open("a", encoding="utf-8") as file:
            file.write(f"{task} {context.agent} {context.call_id}\n")
        step(folder, at)
        return f"marked {task}"

    def model_of(name: str) -> hw.FunctionModel:
        """Claims the next open task, marks it, tells the next teammate, finishes it; what is next follows from the
        conversation alone."""

        def model(request: hw.Request) -> Any:
            assert _ready.wait(30)
            step(folder, at)
            tasks = team.tasks
            mine = [task for task in tasks if task["owner"] == name and task["state"] == "in_progress"]
            if mine:
                task = mine[0]["id"]
                marks = (folder / "marks").read_text(encoding="utf-8") if (folder / "marks").exists() else ""
                if f"{task} " not in marks:
                    return hw.ToolCall("mark", {"task": task})
                other = NAMES[(NAMES.index(name) + 1) % len(NAMES)]
                sent = any(f"{task} is done" in call.arguments.get("text", "") for call in calls(request))
                if not sent:
                    return hw.ToolCall("send_message", {"to": other, "text": f"{task} is done, says {name}"})
                return hw.ToolCall("task_update", {"id": task, "state": "done"})
            free = [task["id"] for task in tasks if task["state"] == "open"]
            return hw.ToolCall("task_claim", {"id": free[0]}) if free else "nothing to do"

        return hw.FunctionModel(model, name=name)

    def calls(request: hw.Request) -> list[hw.ToolCall]:
        return [call for message in request.messages for call in message.tool_calls]

    options: dict[str, Any] = {"tools": [mark], "max_rounds": 10_000, "max_repeated_calls": None}
    models = {name: model_of(name) for name in NAMES}
    fresh = not (folder / "team").exists()
    if fresh:
        team = hw.Team(session=folder, **options)
    else:
        try:
            team = hw.Team.resume(folder, hw.Scripted([]), models=models, **options)
        except hw.TeamError:
            team = hw.Team(session=folder, **options)
    _ready.set()
    team.on_event(lambda event: step(folder, at))
    have = {task["title"] for task in team.tasks}
    for number in range(TASKS):
        if f"job {number}" not in have:
            team.add_task(f"job {number}")
    for name in NAMES:
        if name not in team:
            team.spawn(name, model=models[name])
        # The same id: sent once, however often this program begins.
        team.send("work on the tasks until there is none", to=name, id=f"begin {name}")
    team.join_sync(timeout=60)
    team.close()
    print(f"over {_steps}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
