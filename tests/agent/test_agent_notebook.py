"""In a notebook: awaited, synchronous and streamed runs, and an interrupted cell behind which the next one goes on."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

CELLS = [
    """
    import hookwright as hw, asyncio, time
    hooks = hw.HookChain()
    @hooks.on("pre_tool_execution", role="gate")
    async def gate(event):
        await asyncio.sleep(0)
    @hw.tool
    def work(seconds: float) -> str:
        print("working", flush=True)
        time.sleep(seconds)
        return "worked"
    @hw.tool(inline=True)
    def spin(seconds: float) -> str:
        print("working", flush=True)
        while True:
            pass
    def agent():
        return hw.Agent(hw.Scripted([hw.ToolCall("work", {"seconds": 0}), "one", "two", "three"]), tools=[work], hooks=hooks)
    a = agent()
    """,
    "(await a.run('x')).text",
    "a.run_sync('y').text",
    """
    stream = a.stream('z')
    print([event.type async for event in stream][0])
    stream.result.text
    """,
    "(await a.run('x')) if False else a.history[-1].text",
]
INTERRUPTED = {
    "awaited": "await b.run('go')",
    "synchronous": "b.run_sync('go')",
    "streamed": "async for event in b.stream('go'): pass",
}
#: An interrupted cell that notes when it ended. What follows until the client knows is IPython's: it takes most of a
#: second to render the traceback.
TIMED = """
try:
    {code}
except BaseException:
    ended = time.monotonic()
    raise
"""
#: What the specification promises, in seconds.
PROMPT = 0.2
BEHIND = """
assert [m.role for m in b.history] == ['user', 'assistant', 'tool'], b.history
assert 'cancelled' in b.history[-1].text
(await b.run('and now?')).text
"""


def client(cells: list[str]) -> NotebookClient:
    import textwrap

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(textwrap.dedent(cell)) for cell in cells])
    return NotebookClient(notebook, timeout=60, kernel_name="python3", interrupt_on_timeout=False)


def results(cells: list[Any]) -> list[str | None]:
    values = []
    for cell in cells:
        data = [output["data"]["text/plain"] for output in cell.outputs if output.output_type == "execute_result"]
        values.append(data[0] if data else None)
    return values


def test_runs_in_a_notebook() -> None:
    book = client(CELLS)
    book.execute()
    assert results(book.nb.cells) == [None, "'one'", "'two'", "'three'", "'three'"]
    assert not [output for cell in book.nb.cells for output in cell.outputs if output.get("name") == "stderr"]


@pytest.mark.parametrize("tool", ["work", "spin"])
@pytest.mark.parametrize("how", INTERRUPTED)
def test_interrupting_the_kernel_ends_the_run_and_the_next_cell_goes_on(
    how: str, tool: str, capsys: pytest.CaptureFixture[str]
) -> None:
    script = f"[hw.ToolCall('{tool}', {{'seconds': 30}}), 'next']"
    setup = f"b = hw.Agent(hw.Scripted({script}), tools=[work, spin], hooks=hooks)"
    book = client([CELLS[0], setup, TIMED.format(code=INTERRUPTED[how]), BEHIND, "ended"])
    cell = book.nb.cells[2]
    times: list[float] = []

    def interrupt() -> None:
        end = time.monotonic() + 30
        while time.monotonic() < end and not any("working" in str(output) for output in cell.outputs):
            time.sleep(0.01)
        # One clock for both processes: the system's, which counts from its start.
        times.append(time.monotonic())
        os.kill(book.km.provisioner.process.pid, signal.SIGINT)

    with book.setup_kernel():
        for index in (0, 1):
            book.execute_cell(book.nb.cells[index], index)
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(CellExecutionError) as caught:
            book.execute_cell(cell, 2)
        seconds = time.monotonic() - times[0]
        thread.join()
        assert "KeyboardInterrupt" in str(caught.value) or "CancelledError" in str(caught.value)
        for index in (3, 4):
            book.execute_cell(book.nb.cells[index], index)
    text, ended = results(book.nb.cells[3:])
    assert text == "'next'"
    own = float(str(ended)) - times[0]
    with capsys.disabled():
        print(f"\ninterrupted {how} cell, {tool}: {own * 1000:.0f} ms, seen after {seconds * 1000:.0f} ms", end="")
    assert 0 <= own < PROMPT
    assert seconds < 5
