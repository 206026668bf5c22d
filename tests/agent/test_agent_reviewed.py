"""Cases that a review of the agent against its specification found."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from runs import Run, call

import hookwright as hw


def test_what_turns_are_made_from_cannot_be_assigned_later() -> None:
    agent = hw.Agent(hw.Scripted(["a"]))
    for name, value in [("hooks", hw.HookChain()), ("system", "x"), ("model", hw.Scripted([])), ("tools", [])]:
        with pytest.raises(AttributeError, match="make another one"):
            setattr(agent, name, value)
    with pytest.raises(AttributeError, match="did you mean 'max_rounds'"):
        agent.max_round = 3  # type: ignore[attr-defined]
    agent.approver = lambda request: True


@pytest.mark.parametrize("how", ["close", "aclose"])
def test_closing_during_a_run_ends_the_run_first(how: str, tmp_path: Path) -> None:
    heard: list[str] = []
    hooks = hw.HookChain()
    hooks.on("turn_end", "session_end", role="observer", name="hear")(
        lambda event: heard.append(f"{event.event} {event.get('status') or event.get('reason')}")
    )

    async def main() -> hw.RunResult:
        entered = asyncio.Event()

        @hw.tool
        async def wait() -> None:
            entered.set()
            await asyncio.sleep(60)

        agent = hw.Agent(hw.Scripted([hw.ToolCall("wait"), "never"]), tools=[wait], hooks=hooks, session=tmp_path / "s")
        task = asyncio.ensure_future(agent.run("go"))
        await entered.wait()
        if how == "close":
            agent.close()
        else:
            await agent.aclose()
        return await task

    result = asyncio.run(main())
    assert result.status == "cancelled"
    assert heard == ["turn_end cancelled", "session_end closed"]
    with hw.Session(tmp_path / "s") as session:
        assert session.interrupted_calls == []
        assert session.messages[-1].is_error


def test_hooks_hear_of_the_beginning_and_end_of_each_session() -> None:
    heard: list[tuple[str, str]] = []
    hooks = hw.HookChain()
    hooks.on("session_start", "session_end", role="observer", name="hear")(
        lambda event: heard.append((event.event, event.get("source") or event.get("reason")))
    )
    other = hw.Session()
    with hw.Agent(hw.Scripted(["a", "b", "c"]), hooks=hooks) as agent:
        agent.run_sync("one")
        agent.run_sync("two")
        agent.run_sync("three", session=other)
    assert heard == [("session_start", "new")] * 2 + [("session_end", "closed")] * 2


def test_session_end_is_heard_at_the_exit_of_the_interpreter() -> None:
    code = """
import hookwright as hw
hooks = hw.HookChain()
hooks.on("session_end", role="observer", name="hear")(lambda event: print(event.event, event.reason, flush=True))
agent = hw.Agent(hw.Scripted(["a"]), hooks=hooks)
agent.run_sync("one")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("session_end exit\n", "", 0)


def test_the_error_of_a_model_function_keeps_its_traceback(run: Run) -> None:
    def broken(request: Any) -> str:
        raise ZeroDivisionError("here")

    with pytest.raises(hw.ModelError) as caught:
        run(hw.Agent(broken), "go")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert caught.value.__cause__.__traceback__ is not None


def test_lone_surrogates_are_replaced_wherever_text_comes_in(run: Run) -> None:
    hooks = hw.HookChain()
    hooks.on("pre_tool_execution", role="gate", name="no")(lambda event: hw.skip("no \ud800"))

    @hw.tool
    def work() -> str:
        return "x"

    agent = hw.Agent(hw.Scripted([call("work"), "said \ud800"]), tools=[work], hooks=hooks, system="s \ud800")
    result = run(agent, "u \ud800")
    assert result.text == "said \ufffd"
    assert agent.history[0].text == "u \ufffd"
    assert "no \ufffd" in result.tool_calls[0].result


def test_a_recorded_session_is_replayed_against_a_new_gate_without_running_anything(run: Run, tmp_path: Path) -> None:
    entered: list[str] = []

    @hw.tool
    def shell(command: str) -> str:
        entered.append(command)
        return "done"

    hooks = hw.HookChain()
    script = [call("shell", command="ls"), call("shell", command="rm x"), "done"]
    with hooks.record(tmp_path / "record.jsonl"):
        run(hw.Agent(hw.Scripted(script), tools=[shell], hooks=hooks), "go")
    assert entered == ["ls", "rm x"]
    hooks.add(hw.ShellHook("pre_tool_execution", f"touch {tmp_path}/ran", name="never"))
    hooks.on("pre_tool_execution", role="gate", name="no_rm")(lambda event: "rm" not in event.tool_arguments["command"])
    report = hooks.replay(tmp_path / "record.jsonl")
    assert [dict(refused.tool_arguments) for refused in report.would_refuse] == [{"command": "rm x"}]
    assert entered == ["ls", "rm x"]
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tools": hw.tool(lambda: "x", name="x")}, "put this one into brackets"),
        ({"tools": [hw.workspace_tools(".")]}, "unpack it"),
        ({"system": None}, "system must be text"),
        ({"approver": True}, "approver must be a function"),
        ({"cwd": "/nowhere/at/all"}, "cwd must be a folder"),
    ],
)
def test_a_newcomers_mistake_is_told_what_to_do(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, OSError), match=message):
        hw.Agent(hw.Scripted([]), **arguments)


def test_a_path_for_a_session_of_one_run_is_told_what_to_write() -> None:
    with pytest.raises(TypeError, match=r"hw\.Session\('/tmp/x'\)"):
        hw.Agent(hw.Scripted([])).run_sync("go", session="/tmp/x")  # type: ignore[arg-type]


def test_a_generator_may_make_steps() -> None:
    agent = hw.Agent(hw.Scripted(iter([hw.Step("fine", expect="hello"), hw.Step("never", expect="bye")])))
    assert agent.run_sync("hello").text == "fine"
    with pytest.raises(hw.ModelError, match="expects 'bye'"):
        agent.run_sync("hello")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("entrance", ["run", "run_sync"])
def test_fifty_exits_with_a_run_pending_are_clean(entrance: str) -> None:
    code = f"""
import asyncio, os, sys, threading, time
import hookwright as hw
entered = threading.Event()
@hw.tool
def wait() -> str:
    entered.set()
    time.sleep(60)
    return "x"
agent = hw.Agent(hw.Scripted([hw.ToolCall("wait"), "never"]), tools=[wait], hooks=hw.HookChain())
def work():
    {"asyncio.run(agent.run('go'))" if entrance == "run" else "agent.run_sync('go')"}
threading.Thread(target=work, daemon=True).start()
entered.wait()
child = os.fork()
if child == 0:
    os._exit(0 if hw.Agent(hw.Scripted(["a"])).run_sync("b").text == "a" else 3)
assert os.waitpid(child, 0)[1] == 0
"""
    for start in range(0, 50, 5):
        running = [
            subprocess.Popen([sys.executable, "-W", "ignore", "-c", code], stdout=-1, stderr=-1, text=True)
            for _ in range(start, start + 5)
        ]
        for process in running:
            _, stderr = process.communicate(timeout=60)
            assert (stderr, process.returncode) == ("", 0)


def test_the_transcript_of_a_closed_agent_is_json_lines(tmp_path: Path) -> None:
    with hw.Agent(hw.Scripted(["a"]), session=tmp_path / "s") as agent:
        agent.run_sync("one")
    lines = (tmp_path / "s" / "transcript.jsonl").read_text(encoding="utf-8").splitlines()
    assert all(isinstance(json.loads(line), dict) for line in lines)
