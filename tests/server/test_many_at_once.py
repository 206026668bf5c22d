"""A thousand runs at once against a server: all are under way together, and none has a thread of its own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import waiting

import hookwright as hw

RUNS = 1000
#: The runtime's workers and the threads of the interpreter; far fewer than there are runs.
THREADS = 64


@contextmanager
def server(mode: str, number: float) -> Iterator[str]:
    command = [sys.executable, waiting.__file__, mode, str(number)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.kill()
        process.wait()


def threads() -> int:
    status = Path("/proc/self/status")
    if not status.exists():
        import threading

        return threading.active_count()
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("Threads:"))


def test_a_thousand_runs_are_under_way_together() -> None:
    waiting.raise_file_limit()
    most = 0

    async def main(url: str) -> list[hw.RunResult]:
        agent = hw.Agent(hw.OpenAI("fake", base_url=url, api_key=False, retry=hw.RetryPolicy.never()))

        async def count() -> None:
            nonlocal most
            while True:
                most = max(most, threads())
                await asyncio.sleep(0.02)

        counting = asyncio.create_task(count())
        try:
            return await asyncio.gather(*(agent.run(f"run {n}", session=hw.Session()) for n in range(RUNS)))
        finally:
            counting.cancel()

    # The server answers nobody before all have asked.
    with server("hold", RUNS) as url:
        results = asyncio.run(main(url))
    assert [result.text for result in results] == ["done"] * RUNS
    assert all(result.status == "success" and result.usage.input_tokens == 10 for result in results)
    assert 0 < most < THREADS, f"{most} threads for {RUNS} runs"
