"""A thousand runs at once against a server that takes 200 ms for each answer."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import statistics
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import hookwright as hw

from .table import Section, duration, multiple

RUNS = 1000
LATENCY = 0.2
ROUNDS = 5


def _server_module() -> ModuleType:
    """The tests' server, and how they start it."""
    folder = Path(__file__).resolve().parents[2] / "tests" / "server"
    sys.path.insert(0, str(folder))
    try:
        spec = importlib.util.spec_from_file_location("test_many_at_once", folder / "test_many_at_once.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    return module


def resident() -> int:
    """The memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


async def together(url: str) -> tuple[float, int, int]:
    """Seconds, threads at the most, and how many bytes there are more while all of them wait."""
    module = _server_module()
    agent = hw.Agent(hw.OpenAI("fake", base_url=url, api_key=False))
    await agent.run("warm up", session=hw.Session())
    gc.collect()
    before, most, peak = resident(), 0, 0

    async def watch() -> None:
        nonlocal most, peak
        while True:
            most, peak = max(most, module.threads()), max(peak, resident())
            await asyncio.sleep(0.02)

    watching = asyncio.create_task(watch())
    start = time.perf_counter()
    results = await asyncio.gather(*(agent.run("go", session=hw.Session()) for _ in range(RUNS)))
    seconds = time.perf_counter() - start
    watching.cancel()
    if any(result.text != "done" for result in results):
        raise AssertionError("a run went wrong")
    return seconds, most, peak - before


def sections(**_: Any) -> list[Section]:
    """The table of this module."""
    module = _server_module()
    module.waiting.raise_file_limit()
    with module.server("delay", LATENCY) as url:
        measured = [asyncio.run(together(url)) for _ in range(ROUNDS)]
    seconds = statistics.median(one[0] for one in measured)
    section = Section(
        f"{RUNS:,} runs at once against a server that takes {duration(LATENCY)} for each answer",
        ["what", "measured"],
    )
    section.rows += [
        ["wall time of all", f"{duration(seconds)} ({multiple(seconds / LATENCY)} of the latency)"],
        ["the most threads of the process", str(max(one[1] for one in measured))],
        ["memory per run while all wait, at the first time", f"{measured[0][2] / RUNS / 1000:.1f} kB"],
        ["the same, later", f"{max(one[2] for one in measured[1:]) / RUNS / 1000:.1f} kB"],
    ]
    section.notes.append(
        f"Medians of {ROUNDS} rounds on the wall clock. The server is a process of its own on the same machine: what "
        "it computes counts as well. The memory holds a connection with its buffers, the session and the messages."
    )
    return [section]
