"""What the tests of the hook chain share: ways in, one value for each field, and a look at the process table."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hookwright as hw
from hookwright import _native

Dispatch = Callable[..., hw.Outcome]

#: The table of events as the core has it: readable and writable fields, halting actions, whether feedback is taken.
EVENTS: dict[str, dict[str, Any]] = _native.event_table()
NOTIFY_ONLY = [event for event, row in EVENTS.items() if not row["writable"] and not row["halting"]]

#: One fitting value for each field.
FIELDS: dict[str, Any] = {
    "source": "new",
    "reason": "done",
    "messages": [{"role": "user", "content": "hello"}],
    "user_input": "hello",
    "additional_context": "more",
    "system_prompt": "be brief",
    "model": "model-1",
    "tools": ["shell", "grep"],
    "inject_messages": [{"role": "user", "content": "and another"}],
    "delta": "he",
    "assistant_output": "hi",
    "tool_calls": [{"name": "shell"}],
    "usage": {"input_tokens": 1},
    "error": {"kind": "timeout"},
    "tool_name": "shell",
    "tool_arguments": {"command": "ls"},
    "tool_arguments_json": '{"command": "ls"}',
    "tool_call_id": "call_1",
    "tool_effect": "write",
    "tool_result": "file.txt",
    "suggested_rule": "shell",
    "decision": "allow",
    "by": "user",
    "rule": "shell",
    "duration_ms": 1.5,
    "tool_error": "no such file",
    "cause": "raised",
    "retry_feedback": "again",
    "limit": "rounds",
    "used": 3,
    "allowed": 3,
    "status": "success",
    "tokens_before": 100,
    "tokens_after": 10,
    "target_tokens": 20,
    "summary": "short",
    "ids_before": ["m1"],
    "ids_after": ["m2"],
    "teammate": "ann",
    "role": "reviewer",
    "waiting_for": "mail",
    "open_tasks": 0,
    "sender": "ann",
    "recipients": ["bob"],
    "text": "hi bob",
}
#: Another fitting value for each field that a hook may write anywhere.
REPLACEMENTS: dict[str, Any] = {
    "user_input": "goodbye",
    "additional_context": "context",
    "system_prompt": "be long",
    "messages": [{"role": "user", "content": "changed"}],
    "inject_messages": [{"role": "user", "content": "injected"}],
    "tools": ["grep"],
    "assistant_output": "changed",
    "tool_arguments": {"command": "pwd"},
    "tool_result": "changed",
    "tool_error": "changed",
    "decision": "deny",
    "text": "changed",
    "recipients": ["cid"],
}


def fields_of(event: str) -> dict[str, Any]:
    """A fitting value for each field that the event carries."""
    return {name: FIELDS[name] for name in EVENTS[event]["readable"]}


def _run(chain: hw.HookChain, event: str, **fields: Any) -> hw.Outcome:
    return chain.run(event, **fields)


def _arun(chain: hw.HookChain, event: str, **fields: Any) -> hw.Outcome:
    async def main() -> hw.Outcome:
        return await chain.arun(event, **fields)

    return asyncio.run(main())


def _run_in_a_loop(chain: hw.HookChain, event: str, **fields: Any) -> hw.Outcome:
    async def main() -> hw.Outcome:
        return chain.run(event, **fields)

    return asyncio.run(main())


#: The ways into a chain. All mean the same, so whatever is tested through one is tested through all.
ENTRANCES: dict[str, Dispatch] = {"run": _run, "arun": _arun, "run_in_a_loop": _run_in_a_loop}


def shown(outcome: hw.Outcome, *, runs: bool = False) -> dict[str, Any]:
    """Everything about an outcome that does not differ from one time to the next; the runs by status, if asked for."""
    data = {name: value for name, value in outcome.to_dict().items() if name not in ("ms", "runs")}
    data["fields"] = outcome.fields
    data["values"] = [(change.hook, change.field, change.before, change.after) for change in outcome.changes]
    if runs:
        data["runs"] = [(run.name, run.status) for run in outcome.runs]
    return data


def processes_of_group(group: int) -> list[int]:
    """The processes of a group that run; dead ones that nobody has waited for yet do not count."""
    return [pid for pid, state, _, member_of in _processes() if member_of == group and state not in "ZX"]


def children() -> list[tuple[int, str]]:
    """The child processes of this process, zombies among them, with their state."""
    return [(pid, state) for pid, state, parent, _ in _processes() if parent == os.getpid()]


def _processes() -> list[tuple[int, str, int, int]]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text(errors="replace")
            except OSError:
                continue
            state, parent, group = stat.rpartition(")")[2].split()[:3]
            found.append((int(folder.name), state, int(parent), int(group)))
    return found


def descriptors() -> int:
    """How many file descriptors this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._start


def in_child(code: str, *arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Runs a script in an interpreter of its own."""
    command = [sys.executable, "-X", "faulthandler", "-W", "error", "-c", textwrap.dedent(code), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
