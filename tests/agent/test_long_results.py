"""Results that are longer than a model should read at once: shown capped, kept whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from runs import Run

import hookwright as hw

TEXTS = {
    "five megabytes": "0123456789" * 500_000,
    "a lone surrogate": "a lone \ud800 half " * 20_000,
    "emoji at each byte": "x😀" * 60_000,
    "one line of 200,000 characters": "é" * 200_000,
}


def agent_with(text: str, **options: Any) -> tuple[hw.Agent, list[hw.Request]]:
    asked: list[hw.Request] = []

    @hw.tool(inline=True)
    def produce() -> str:
        """Produces a text."""
        return text

    def model(request: hw.Request) -> Any:
        asked.append(request)
        return hw.ToolCall("produce", {}) if len(asked) == 1 else "done"

    return hw.Agent(hw.FunctionModel(model, inline=True), tools=[produce], **options), asked


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_the_model_sees_both_ends_and_the_whole_is_kept(run: Run, tmp_path: Path, text: str) -> None:
    agent, asked = agent_with(text, session=tmp_path / "s")
    result = run(agent, "go")
    whole = text.replace("\ud800", "\ufffd")
    assert result.tool_calls[0].result == whole
    shown = asked[1].messages[-1].text
    assert len(shown.encode()) < 100_500
    head, _, rest = shown.partition("\n[... ")
    note, _, tail = rest.partition(" ...]\n")
    assert whole.startswith(head) and whole.endswith(tail) and len(tail) > 10_000
    size = len(whole.encode())
    missing = size - len(head.encode()) - len(tail.encode())
    assert note.startswith(f"{missing} of {size} bytes left out; the whole is in ")
    saved = Path(note.split("; the whole is in ")[1])
    assert saved.parent == tmp_path / "s" / "results"
    assert saved.read_text(encoding="utf-8") == whole
    assert saved.stat().st_mode & 0o077 == 0
    agent.session.close()
    # What is stored is valid, and the same when it is read again.
    again = hw.Session(tmp_path / "s")
    assert [message.text for message in again.messages] == [message.text for message in agent.history]
    for line in (tmp_path / "s" / "transcript.jsonl").read_text(encoding="utf-8").splitlines():
        json.loads(line)


def test_without_a_folder_the_whole_is_in_the_result_only(run: Run) -> None:
    agent, asked = agent_with("word " * 100_000)
    result = run(agent, "go")
    assert len(result.tool_calls[0].result) == 500_000
    shown = asked[1].messages[-1].text
    assert "of 500000 bytes left out ...]" in shown and len(shown) < 100_500


def test_hooks_see_it_first_and_what_they_take_out_is_nowhere(run: Run, tmp_path: Path) -> None:
    hooks = hw.HookChain()
    hooks.on("post_tool_execution", name="redact")(
        lambda event: {"tool_result": event.tool_result.replace("sk-secret", "[key]")}
    )
    agent, _ = agent_with("sk-secret and more " * 20_000, session=tmp_path / "s", hooks=hooks)
    result = run(agent, "go")
    assert result.tool_calls[0].result.startswith("[key] and more")
    files = [path for path in (tmp_path / "s").rglob("*") if path.is_file()]
    assert any(path.parent.name == "results" for path in files)
    assert not any(b"sk-secret" in path.read_bytes() for path in files)


def test_the_cap_is_the_agent_s(run: Run) -> None:
    agent, asked = agent_with("word " * 1000, result_cap=1000)
    run(agent, "go")
    assert len(asked[1].messages[-1].text) < 1100
    with pytest.raises(ValueError, match="result_cap"):
        hw.Agent(hw.Scripted([]), result_cap=10)


def test_a_command_s_output_is_kept_whole(run: Run, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    model = hw.Scripted([hw.ToolCall("shell", {"command": "seq 1 100000; echo at the end >&2"}), "done"])
    agent = hw.Agent(model, tools=hw.workspace_tools(tmp_path / "w"), session=tmp_path / "s")
    result = run(agent, "go")
    whole = "exit code 0\nstdout:\n" + "\n".join(map(str, range(1, 100_001))) + "\nstderr:\nat the end"
    assert result.tool_calls[0].result == whole
    (saved,) = (tmp_path / "s" / "results").iterdir()
    assert saved.read_text() == whole
    shown = agent.history[2].text
    assert shown.startswith("exit code 0\nstdout:\n1\n2\n") and shown.endswith("100000\nstderr:\nat the end")


def test_an_old_long_result_names_where_its_whole_is(tmp_path: Path) -> None:
    text = "many words " * 20_000
    numbers = iter(range(100))

    @hw.tool(inline=True)
    def produce(number: int) -> str:
        """Produces a text."""
        return text

    asked: list[hw.Request] = []

    def model(request: hw.Request) -> Any:
        asked.append(request)
        number = next(numbers)
        return hw.ToolCall("produce", {"number": number}) if number < 10 else "done"

    agent = hw.Agent(
        hw.FunctionModel(model, inline=True),
        tools=[produce],
        session=tmp_path / "s",
        result_cap=8000,
        context_window=20_000,
        auto_compact=None,
    )
    agent.run_sync("go")
    left_out = [m.text for m in asked[-1].messages if m.text.startswith("[result of produce left out")]
    assert left_out and all("; the whole is in " in line for line in left_out)
