"""Conversations: one turn at a time, beside one another, begun anew, forked, cut short, killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
from runs import Probe, Run, call, check_history, roles, told, transcript

import hookwright as hw


def test_a_second_run_on_a_busy_session_is_refused_and_one_beside_it_is_not() -> None:
    entered, release = threading.Event(), threading.Event()

    def model(request: hw.Request) -> str:
        if request.messages[-1].text == "first":
            entered.set()
            release.wait(20)
        return "ok"

    agent = hw.Agent(model)

    async def main() -> None:
        first = asyncio.ensure_future(agent.run("first"))
        while not entered.is_set():
            await asyncio.sleep(0.001)
        for attempt in (lambda: agent.run("second"), lambda: asyncio.to_thread(agent.run_sync, "second")):
            with pytest.raises(hw.SessionBusy) as refused:
                await attempt()
            assert "session=" in str(refused.value) + str(getattr(refused.value, "hint", ""))
        with pytest.raises(hw.SessionBusy):
            async for _ in agent.stream("second"):
                pass
        with pytest.raises(hw.SessionBusy):
            agent.reset()
        other = hw.Session()
        assert (await agent.run("beside", session=other)).status == "success"
        assert [message.text for message in other.messages] == ["beside", "ok"]
        release.set()
        assert (await first).text == "ok"

    asyncio.run(main())
    assert [message.text for message in agent.history] == ["first", "ok"]
    assert agent.run_sync("second").status == "success"


def test_turns_go_on_from_one_another_and_reset_begins_anew(run: Run, tmp_path: Path) -> None:
    sizes: list[int] = []

    def model(request: hw.Request) -> str:
        sizes.append(len(request.messages))
        return f"answer {len(sizes)}"

    agent = hw.Agent(model, session=tmp_path / "s")
    run(agent, "one")
    run(agent, "two")
    agent.reset()
    run(agent, "three")
    assert sizes == [1, 3, 1]
    assert [message.text for message in agent.history] == ["three", "answer 3"]
    assert b"answer 1" in transcript(agent.session)
    agent.close()
    assert [message.text for message in hw.Session(tmp_path / "s").messages] == ["three", "answer 3"]


def test_a_fork_goes_on_its_own(run: Run, tmp_path: Path) -> None:
    agent = hw.Agent(lambda request: request.messages[-1].text.upper(), session=tmp_path / "a")
    run(agent, "one")
    other = agent.fork(tmp_path / "b")
    run(agent, "two")
    run(other, "three")
    assert [message.text for message in agent.history] == ["one", "ONE", "two", "TWO"]
    assert [message.text for message in other.history] == ["one", "ONE", "three", "THREE"]
    assert other.session.id != agent.session.id
    other.close()
    assert len(hw.Session(tmp_path / "b").messages) == 4


def test_a_session_is_the_same_when_opened_again(run: Run, tmp_path: Path, probe: Probe) -> None:
    model = hw.Scripted([[call(text="é 漢 😀"), call("unknown"), hw.ToolCall("probe", "{bad")], "done"])
    agent = hw.Agent(model, tools=[probe.tool], session=tmp_path / "s")
    run(agent, "go")
    before = [message.to_dict() for message in agent.history]
    agent.close()
    again = hw.Session(tmp_path / "s")
    assert [message.to_dict() for message in again.messages] == before
    assert again.repair is None
    assert again.turn_count == 1
    assert run(hw.Agent(hw.Scripted(["more"]), session=again), "on").text == "more"


def test_a_transcript_cut_anywhere_opens_again(tmp_path: Path, probe: Probe) -> None:
    session = hw.Session(tmp_path / "s", id="s", clock=1.7e9)
    agent = hw.Agent(
        hw.Scripted([[call(text="é" * 9, id="a"), call(id="b")], "done"]), tools=[probe.tool], session=session
    )
    agent.run_sync("go")
    agent.close()
    whole = transcript(session)
    metadata = (tmp_path / "s" / "session.json").read_bytes()
    known = [message.text for message in session.messages]
    for cut in [*range(0, len(whole), 37), *range(len(whole) - 3, len(whole) + 1)]:
        folder = tmp_path / f"cut{cut}"
        folder.mkdir()
        (folder / "transcript.jsonl").write_bytes(whole[:cut])
        (folder / "session.json").write_bytes(metadata)
        opened = hw.Session(folder)
        check_history(opened.messages)
        kept = [message.text for message in opened.messages if "interrupted" not in message.text]
        assert kept == known[: len(kept)]
        assert hw.Agent(hw.Scripted(["next"]), session=opened).run_sync("on").text == "next"
        check_history(opened.messages)
        opened.close()


def test_a_session_belongs_to_one_process(tmp_path: Path) -> None:
    session = hw.Session(tmp_path / "s")
    code = f"import hookwright as hw\ntry:\n    hw.Session({str(tmp_path / 's')!r})\nexcept hw.SessionBusy as e:\n    print('busy', e)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.startswith("busy"), result
    assert str(tmp_path / "s") in result.stdout
    session.close()
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout == ""


KILLED = """
    import sys, time, hookwright as hw
    def wait():
        print("entered", flush=True)
        time.sleep(60)
    agent = hw.Agent(hw.Scripted([[hw.ToolCall("quick", {}, id="a"), hw.ToolCall("wait", {}, id="b"),
                                   hw.ToolCall("quick", {}, id="c")]]),
                     tools=[hw.tool(wait), hw.tool(lambda: "quick", name="quick")], session=sys.argv[1])
    agent.run_sync("go")
"""


def test_a_process_killed_in_a_tool_leaves_an_interrupted_call(tmp_path: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path / "s")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "entered\n"
        os.kill(child.pid, signal.SIGKILL)
        child.wait(20)
    session = hw.Session(tmp_path / "s")
    check_history(session.messages)
    assert "b" in session.interrupted_calls
    results = {message.tool_call_id: message for message in session.messages if message.role == "tool"}
    assert set(results) == {"a", "b", "c"}
    assert results["b"].is_error
    assert "interrupted" in results["b"].text
    agent = hw.Agent(hw.Scripted(["I see"]), session=session)
    assert agent.run_sync("on").text == "I see"
    assert roles(agent) == ["user", "assistant", "tool", "tool", "tool", "user", "assistant"]


def test_a_closed_session_is_refused_in_words(run: Run, tmp_path: Path) -> None:
    agent = hw.Agent(hw.Scripted(["a"]), session=tmp_path / "s")
    agent.close()
    with pytest.raises(hw.SessionError, match="closed"):
        run(agent, "go")


def test_a_message_appended_between_turns_is_seen_by_the_next(run: Run) -> None:
    seen: list[str] = []
    agent = hw.Agent(lambda request: seen.extend(message.text for message in request.messages) or "ok")
    agent.session.append(hw.Message("user", "by the way", sender="clock"))
    run(agent, "go")
    assert seen == ["by the way", "go"]


def test_what_a_transcript_holds_is_one_json_document_a_line(run: Run, tmp_path: Path, probe: Probe) -> None:
    agent = hw.Agent(hw.Scripted([call(), "done"]), tools=[probe.tool], session=tmp_path / "s")
    run(agent, "go")
    lines = transcript(agent.session).decode().splitlines()
    assert len(lines) > len(agent.history)
    for line in lines:
        assert "{" in line
        json.loads(line[line.index("{") : line.rindex("}") + 1])
    assert told(agent) == ["done"]
