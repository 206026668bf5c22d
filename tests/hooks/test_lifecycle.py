"""Fork, spawn, exit, many threads, many tasks: nothing hangs, nothing is left running, nothing is printed."""

from __future__ import annotations

import asyncio
import concurrent.futures
import multiprocessing
import os
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from support import in_child

import hookwright as hw

CHAIN = """
import asyncio, os, sys, threading, time
import hookwright as hw

chain = hw.HookChain()

@chain.on("turn_start")
def sync_hook(event):
    pass

@chain.on("turn_start")
async def async_hook(event):
    await asyncio.sleep(0)

@chain.on("turn_start", isolate="thread")
def thread_hook(event):
    pass

chain.add(hw.ShellHook("turn_start", "true", name="shell_hook"))

def check(outcome):
    assert [run.status for run in outcome.runs] == ["ok"] * 4, outcome

async def arun():
    check(await chain.arun("turn_start", user_input="x"))

def run_all():
    check(chain.run("turn_start", user_input="x"))
    asyncio.run(arun())
"""

FORK = (
    CHAIN
    + """
run_all()
# A thread that keeps the locks of the core busy while the process forks.
stop = threading.Event()
def busy():
    while not stop.is_set():
        chain.run("turn_start", user_input="x")
worker = threading.Thread(target=busy)
worker.start()
for _ in range(5):
    child = os.fork()
    if child == 0:
        try:
            run_all()
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        sys.exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
stop.set()
worker.join()
run_all()
"""
)

PENDING = {
    "async": "async def hook(event):\n    started.set()\n    await asyncio.sleep(60)\nchain.add(hook, 'turn_start')",
    "thread": (
        "def hook(event):\n    started.set()\n    time.sleep(60)\n"
        "chain.add(hook, 'turn_start', isolate='thread', timeout=60)"
    ),
    "shell": (
        "read, write = os.pipe()\nos.set_inheritable(write, True)\n"
        "def wait():\n    os.read(read, 1)\n    started.set()\nthreading.Thread(target=wait).start()\n"
        "chain.add(hw.ShellHook('turn_start', f'echo $$ >{path}; echo . >&{write}; exec sleep 60', timeout=60))"
    ),
    "inline": "def hook(event):\n    started.set()\n    time.sleep(60)\nchain.add(hook, 'turn_start', timeout=60)",
    "loop": ("def hook(event):\n    started.set()\n    while True: pass\nchain.add(hook, 'turn_start', timeout=60)"),
}
EXIT = """
import asyncio, os, sys, threading, time
import hookwright as hw
path, how = sys.argv[1:]
chain = hw.HookChain(budget=60)
started = threading.Event()
{hook}
def run():
    if how == "run":
        chain.run("turn_start", user_input="x")
    else:
        async def main():
            await chain.arun("turn_start", user_input="x")
        asyncio.run(main())
threading.Thread(target=run, daemon=True).start()
assert started.wait(30)
"""


def test_a_forked_child_runs_hooks_of_every_kind_and_so_does_its_parent() -> None:
    for _ in range(10):  # Fifty forks in all.
        done = in_child(FORK.replace("sys.exit(0)", "os._exit(0)"))
        assert (done.returncode, done.stderr) == (0, "")


def test_a_forked_child_may_exit_in_the_ordinary_way() -> None:
    done = in_child(FORK.replace("worker.start()", "").replace("worker.join()", ""))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("how", ["run", "arun"])
@pytest.mark.parametrize("kind", PENDING)
def test_exit_with_a_run_pending_is_clean_and_ends_commands(kind: str, how: str, tmp_path: Any) -> None:
    path = tmp_path / "pid"
    for _ in range(5):  # Fifty exits over the parameters.
        done = in_child(EXIT.replace("{hook}", PENDING[kind]), str(path), how)
        assert (done.returncode, done.stderr) == (0, "")
        if kind == "shell":
            with pytest.raises(ProcessLookupError):
                os.kill(int(path.read_text()), 0)


STUBBORN = """
import asyncio, sys
import hookwright as hw

async def stubborn(*_):
    while True:
        try:
            await asyncio.sleep(10)
        except BaseException:
            pass

chain = hw.HookChain()
chain.add(stubborn, "pre_tool_execution", timeout=0.2)
call = {"tool_name": "shell", "tool_arguments": {}}

async def arun():
    assert (await chain.arun("pre_tool_execution", **call)).runs[0].status == "timeout"

@hw.tool(timeout=0.2)
async def wait() -> None:
    await stubborn()

def agent():
    return hw.Agent(hw.Scripted([hw.ToolCall("wait"), "done"]), tools=[wait])

{
    "run": lambda: chain.run("pre_tool_execution", **call),
    "arun": lambda: asyncio.run(arun()),
    "agent.run_sync": lambda: agent().run_sync("go"),
}[sys.argv[1]]()
"""


@pytest.mark.parametrize("how", ["run", "arun", "agent.run_sync"])
def test_what_swallows_its_cancellation_does_not_keep_the_process_from_exiting(how: str) -> None:
    # A tool that does so under `asyncio.run` is left out: it is a task of the caller's loop, and that waits for its tasks.
    done = in_child(STUBBORN, how)
    assert (done.returncode, done.stderr) == (0, "")


def _spawned(number: int) -> tuple[int, str]:
    chain = hw.HookChain()

    @chain.on("pre_tool_execution")
    async def rewrite(event: hw.HookEvent) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"tool_arguments": {"number": number}}

    chain.add(hw.ShellHook("pre_tool_execution", "exit 2", name="closed", role="gate"))
    outcome = chain.run("pre_tool_execution", tool_name="shell", tool_arguments={})
    return outcome.tool_arguments["number"], outcome.action


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_chains_run_in_multiprocessing_workers(method: str) -> None:
    hw.HookChain().run("turn_start", user_input="used before")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        assert list(pool.map(_spawned, range(6))) == [(number, "skip") for number in range(6)]


def test_eight_threads_share_a_chain() -> None:
    chain = hw.HookChain()

    @chain.on("pre_tool_execution")
    def first(event: hw.HookEvent) -> dict[str, Any]:
        return {"tool_arguments": {"trail": [*event.tool_arguments["trail"], "sync"]}}

    @chain.on("pre_tool_execution")
    async def second(event: hw.HookEvent) -> dict[str, Any]:
        await asyncio.sleep(0.001)
        return {"tool_arguments": {"trail": [*event.tool_arguments["trail"], "async"]}}

    chain.add(
        hw.ShellHook("pre_tool_execution", 'echo \'{"additional_context": "x"}\'', name="shell", timeout=30),
    )

    def work(number: int) -> list[Any]:
        fields = {"tool_name": "shell", "tool_arguments": {"trail": [number]}}
        if number % 2:

            async def main() -> hw.Outcome:
                return await chain.arun("pre_tool_execution", **fields)

            outcome = asyncio.run(main())
        else:
            outcome = chain.run("pre_tool_execution", **fields)
        assert [run.status for run in outcome.runs] == ["changed", "changed", "failed"]
        return list(outcome.tool_arguments["trail"])

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(80))) == [[number, "sync", "async"] for number in range(80)]
    assert {hook.name: hook.runs for hook in chain.stats()} == {"first": 80, "second": 80, "shell": 80}


def test_a_hundred_runs_at_once_on_one_loop() -> None:
    chain = hw.HookChain()
    running = 0
    most = 0

    @chain.on("turn_start")
    async def hook(event: hw.HookEvent) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        while most < 100:  # Ends only if all are under way at the same time.
            await asyncio.sleep(0)
        running -= 1

    chain.add(lambda event: None, "turn_start", name="thread", isolate="thread")

    async def main() -> list[hw.Outcome]:
        return await asyncio.gather(*(chain.arun("turn_start", user_input=str(number)) for number in range(100)))

    outcomes = asyncio.run(main())
    assert [outcome.user_input for outcome in outcomes] == [str(number) for number in range(100)]
    assert all(run.status == "ok" for outcome in outcomes for run in outcome.runs)


def test_a_run_is_a_coroutine_for_asyncio_and_can_be_awaited_once() -> None:
    chain = hw.HookChain()

    @chain.on("turn_start")
    async def hook(event: hw.HookEvent) -> None:
        await asyncio.sleep(0)

    async def main() -> None:
        task = asyncio.create_task(chain.arun("turn_start", user_input="task"))
        assert (await task).user_input == "task"
        assert (await asyncio.wait_for(chain.arun("turn_start", user_input="timed"), 10)).user_input == "timed"
        run = chain.arun("turn_start", user_input="once")
        await run
        with pytest.raises(RuntimeError, match="awaited already"):
            await run

    asyncio.run(main(), debug=True)
    assert asyncio.run(chain.arun("turn_start", user_input="direct")).user_input == "direct"


def test_a_notebook_awaits_and_runs_chains_in_its_cells(tmp_path: Any) -> None:
    cells = [
        """
        import asyncio, hookwright as hw
        hooks = hw.HookChain()
        @hooks.on("pre_tool_execution")
        async def rewrite(event):
            await asyncio.sleep(0.01)
            return {"tool_arguments": {"command": "pwd"}}
        hooks.add(hw.ShellHook("pre_tool_execution", "exit 2", name="closed", role="gate"))
        call = {"tool_name": "shell", "tool_arguments": {"command": "ls"}}
        """,
        "outcome = await hooks.arun('pre_tool_execution', **call)\nprint(outcome.action, outcome.tool_arguments)",
        "outcome = hooks.run('pre_tool_execution', **call)\nprint(outcome.action, outcome.tool_arguments)",
        "outcome",
        "runs = [hooks.arun('pre_tool_execution', **call) for _ in range(5)]\n"
        "print([outcome.action for outcome in await asyncio.gather(*runs)])",
    ]
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell("\n".join(line.removeprefix(" " * 8) for line in cell.strip("\n").split("\n")))
               for cell in cells + cells[:3]]
    )  # fmt: skip
    NotebookClient(
        notebook, timeout=60, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    outputs = [cell.outputs for cell in notebook.cells]
    # What a cell prints may arrive in pieces.
    printed = ["".join(output.get("text", "") for output in cell) for cell in outputs]
    said = "skip {'command': 'pwd'}\n"
    assert [printed[number] for number in (1, 2, 6, 7)] == [said] * 4
    assert "<table" in outputs[3][0].data["text/html"]
    assert printed[4] == "['skip', 'skip', 'skip', 'skip', 'skip']\n"
    assert all(output.get("name") != "stderr" for cell in outputs for output in cell)
