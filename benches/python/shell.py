"""A shell hook beside ``subprocess.run`` on the same command with the same input."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import hookwright as hw

from .measure import Timed, side_by_side
from .table import Section, duration, multiple, verdict

BAR, GOAL = 1.15, 1.0
COMMANDS = ("true", "cat >/dev/null")
SIZES = {"small": 0, "1 MiB": 1 << 20}


def _hook(chain: hw.HookChain, arguments: dict[str, Any]) -> Timed:
    def timed(number: int) -> float:
        start = perf_counter()
        for _ in range(number):
            outcome = chain.run("pre_tool_execution", tool_name="shell", tool_arguments=arguments)
            if outcome.runs[0].status != "ok":
                raise AssertionError(outcome)
        return perf_counter() - start

    return timed


def _document(arguments: dict[str, Any]) -> bytes:
    """The bytes that a hook finds on its standard input."""
    with tempfile.NamedTemporaryFile() as file:
        chain = hw.HookChain()
        chain.add(hw.ShellHook("pre_tool_execution", f"cat > {file.name}", name="keep"))
        chain.run("pre_tool_execution", tool_name="shell", tool_arguments=arguments)
        return Path(file.name).read_bytes()


def _subprocess(command: str, document: bytes) -> Timed:
    """``subprocess.run`` with the input as bytes that were made before."""

    def timed(number: int) -> float:
        start = perf_counter()
        for _ in range(number):
            done = subprocess.run(["/bin/sh", "-c", command], input=document, capture_output=True, timeout=10)
            if done.returncode != 0:
                raise AssertionError(done)
        return perf_counter() - start

    return timed


def _subprocess_with_json(command: str, document: bytes) -> Timed:
    """The same, with the input encoded each time, as a hook's is."""
    content = json.loads(document)

    def timed(number: int) -> float:
        start = perf_counter()
        for _ in range(number):
            text = json.dumps({**content, "tool_arguments_json": json.dumps(content["tool_arguments"])})
            done = subprocess.run(["/bin/sh", "-c", command], input=text.encode(), capture_output=True, timeout=10)
            if done.returncode != 0:
                raise AssertionError(done)
        return perf_counter() - start

    return timed


def sections(**settings: Any) -> list[Section]:
    """The table of this module."""
    section = Section(
        "A shell hook through chain.run, beside subprocess.run",
        ["command, payload", "subprocess.run", "with json.dumps", "hookwright", f"bar {BAR:g}x", f"goal {GOAL:g}x"],
    )
    for command in COMMANDS:
        for label, size in SIZES.items():
            arguments = {"command": "ls", "text": "x" * size}
            chain = hw.HookChain()
            chain.add(hw.ShellHook("pre_tool_execution", command, name="command"))
            document = _document(arguments)
            series = side_by_side(
                {
                    "subprocess.run": _subprocess(command, document),
                    "with json.dumps": _subprocess_with_json(command, document),
                    "hookwright": _hook(chain, arguments),
                },
                **settings,
            )
            ratio = series.ratio("hookwright", "subprocess.run")
            whole = series.ratio("with json.dumps", "subprocess.run")
            section.rows.append(
                [
                    f"`{command}`, {label}",
                    duration(series.median("subprocess.run")),
                    f"{duration(series.median('with json.dumps'))} ({multiple(whole)})",
                    f"{duration(series.median('hookwright'))} ({multiple(ratio)})",
                    verdict(ratio, BAR),
                    verdict(ratio, GOAL),
                ]
            )
    section.notes.append(
        "All start `/bin/sh -c` with the same bytes on standard input, capture both outputs and keep a timeout of "
        "10 s. `subprocess.run` is given bytes that were made before; the hook encodes the event each time, as does "
        "the second column. The hook also leads a process group that ends with it."
    )
    return [section]
