"""The contract of shell hooks: what they get and what they answer."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from support import EVENTS, NOTIFY_ONLY, Dispatch, fields_of

import hookwright as hw

CALL = {"tool_name": "shell", "tool_arguments": {"command": "ls"}}


def _written(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_bytes()))


def test_the_event_arrives_on_stdin_as_one_json_document(
    dispatch: Dispatch, chain: hw.HookChain, tmp_path: Path
) -> None:
    chain.add(hw.ShellHook("pre_tool_execution", f"cat > {tmp_path}/stdin", name="save"))
    text = '{"command":   "ls"}'
    common = {"session_id": "s1", "turn_id": "t1", "agent": "ann", "cwd": str(tmp_path), "continuation": 2}
    assert dispatch(chain, "pre_tool_execution", **CALL, tool_arguments_json=text, **common).runs[0].status == "ok"
    document = _written(tmp_path / "stdin")
    assert document["event_id"].startswith("evt_")
    assert document["timestamp"] > 1e9
    assert 0 < document["budget_ms"] <= 30_000
    del document["event_id"], document["timestamp"], document["budget_ms"]
    assert document == {
        "event": "pre_tool_execution",
        "session_id": "s1",
        "turn_id": "t1",
        "agent": {"name": "ann", "kind": "main", "parent": None},
        "cwd": str(tmp_path),
        "continuation": 2,
        "tool_name": "shell",
        "tool_arguments": {"command": "ls"},
        "tool_arguments_json": text,
    }


@pytest.mark.parametrize("event", EVENTS)
def test_every_field_of_every_event_is_in_the_document(chain: hw.HookChain, event: str, tmp_path: Path) -> None:
    chain.add(hw.ShellHook(event, f"cat > {tmp_path}/stdin", name="save"))
    chain.run(event, **fields_of(event))
    document = _written(tmp_path / "stdin")
    assert {name: document[name] for name in EVENTS[event]["readable"]} == fields_of(event)


def test_text_of_any_length_and_script_arrives_as_it_was(
    dispatch: Dispatch, chain: hw.HookChain, tmp_path: Path
) -> None:
    chain.add(hw.ShellHook("post_tool_execution", f"cat > {tmp_path}/stdin", name="save"))
    chain.add(hw.ShellHook("post_tool_execution", "exit 0", name="unread"))
    whole = '汉字 and 😀 and \u0000\u001f"\\ é' * 11_000  # Some 300 kB of characters of one to four bytes.
    for cut in range(5):  # Wherever the pipe cuts the text, no character is lost.
        text = "x" * cut + whole
        outcome = dispatch(chain, "post_tool_execution", tool_name="cat", tool_result=text)
        assert [run.status for run in outcome.runs] == ["ok", "ok"]
        assert _written(tmp_path / "stdin")["tool_result"] == text


def test_an_answer_may_hold_any_text(dispatch: Dispatch, chain: hw.HookChain, tmp_path: Path) -> None:
    answer = {"tool_result": "汉字😀\u2028" * 30_000}
    (tmp_path / "answer").write_text(json.dumps(answer, ensure_ascii=False), encoding="utf-8")
    chain.add(hw.ShellHook("post_tool_execution", f"cat {tmp_path}/answer", name="answer"))
    outcome = dispatch(chain, "post_tool_execution", tool_name="cat", tool_result="")
    assert outcome.tool_result == answer["tool_result"]


def test_the_environment_holds_the_four_variables_and_the_folder_comes_first_on_the_path(
    dispatch: Dispatch, chain: hw.HookChain, tmp_path: Path
) -> None:
    folder, cwd = tmp_path / "hook", tmp_path / "work"
    folder.mkdir()
    cwd.mkdir()
    for name in ("ls", "only-here"):  # One of them stands in front of a program of the system.
        script = folder / name
        script.write_text(
            "#!/bin/sh\n"
            f"printf '%s\\n' {name} $HOOKWRIGHT_EVENT $HOOKWRIGHT_CWD $HOOKWRIGHT_SESSION_ID $HOOKWRIGHT_HOOK_DIR"
            ' "$(pwd)" >> out\n'
        )
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    chain.add(hw.ShellHook("turn_start", "ls && only-here", name="own", folder=str(folder)))
    outcome = dispatch(chain, "turn_start", user_input="x", cwd=str(cwd), session_id="s1")
    assert outcome.runs[0].status == "ok", outcome
    told = ["turn_start", str(cwd), "s1", str(folder), str(cwd)]
    assert (cwd / "out").read_text().split("\n") == ["ls", *told, "only-here", *told, ""]


def test_nothing_large_is_passed_in_the_environment_or_as_an_argument(chain: hw.HookChain, tmp_path: Path) -> None:
    chain.add(hw.ShellHook("turn_start", f"env > {tmp_path}/env; cat /proc/$$/cmdline > {tmp_path}/line", name="save"))
    chain.run("turn_start", user_input="needle" * 50_000)
    assert "needle" not in (tmp_path / "env").read_text()
    assert "needle" not in (tmp_path / "line").read_text()


def test_the_shell_is_no_login_shell(chain: hw.HookChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".profile").write_text("echo noise from the profile\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ENV", str(tmp_path / ".profile"))  # Read by interactive shells only.
    chain.add(hw.ShellHook("turn_start", "true", name="quiet"))
    run = chain.run("turn_start", user_input="x").runs[0]
    assert (run.status, run.notes) == ("ok", [])


def test_noise_before_the_answer_is_passed_over_and_noted(dispatch: Dispatch, chain: hw.HookChain) -> None:
    chain.add(
        hw.ShellHook(
            "pre_tool_execution", 'echo nvm loaded; echo; echo hi; echo \'{"action": "skip"}\'; echo', name="n"
        ),
    )
    outcome = dispatch(chain, "pre_tool_execution", **CALL)
    assert outcome.action == "skip"
    assert "2 line(s)" in outcome.runs[0].notes[0]
    assert "nvm loaded" in outcome.runs[0].notes[0]


#: What exit 2 means on each event.
BLOCKED = {
    event: (
        "retry"
        if event in ("stop", "teammate_idle")
        else "skip"
        if "skip" in row["halting"]
        else "stop"
        if "stop" in row["halting"]
        else "failed"
    )
    for event, row in EVENTS.items()
}


@pytest.mark.parametrize("event", EVENTS)
def test_exit_2_blocks_in_the_way_that_the_event_knows(dispatch: Dispatch, chain: hw.HookChain, event: str) -> None:
    chain.add(hw.ShellHook(event, "echo 'not like this' >&2; exit 2", name="blocks"))
    chain.add(hw.ShellHook(event, "exit 2", name="in_silence"))
    outcome = dispatch(chain, event, **fields_of(event))
    meaning = BLOCKED[event]
    if meaning == "retry":
        assert outcome.action is None
        assert outcome.retry_feedback == [("blocks", "not like this"), ("in_silence", "blocked by in_silence")]
    elif meaning == "failed":
        assert outcome.action is None
        assert [run.status for run in outcome.runs] == ["failed", "failed"]
        assert "notif" in outcome.runs[0].error or "halted" in outcome.runs[0].error
    else:
        assert (outcome.action, outcome.reason, outcome.halted_by) == (meaning, "not like this", "blocks")


def test_exit_2_fails_on_every_notify_event() -> None:
    assert {event for event, meaning in BLOCKED.items() if meaning == "failed"} >= set(NOTIFY_ONLY)
    assert len(NOTIFY_ONLY) == 9


def test_a_long_stderr_is_cut_and_says_so(dispatch: Dispatch, chain: hw.HookChain) -> None:
    chain.add(
        hw.ShellHook("pre_tool_execution", "head -c 200000 /dev/zero | tr '\\0' e >&2; exit 2", name="wordy"),
    )
    reason = dispatch(chain, "pre_tool_execution", **CALL).reason
    assert reason is not None
    assert reason.startswith("e" * 65_536)
    assert reason.count("e") < 66_000
    assert "of 200000 bytes left out" in reason


def test_stdout_up_to_its_cap_is_read_and_one_byte_more_is_a_failure(chain: hw.HookChain, tmp_path: Path) -> None:
    cap = 8 * 1024 * 1024
    answer = tmp_path / "answer"
    chain.add(hw.ShellHook("post_tool_execution", f"cat {answer}", name="large"))
    body = '{"tool_result": "' + "x" * (cap - 19) + '"}'
    for text, status in ((body, "changed"), (body + " " * 2, "failed")):
        answer.write_text(text)
        run = chain.run("post_tool_execution", tool_name="cat", tool_result="").runs[0]
        assert (len(text) <= cap, run.status) == (status == "changed", status), run.error
    assert run.error == "it wrote more than 8 MiB to standard output"


def test_an_event_that_has_no_json_form_fails_the_hook_and_is_named(dispatch: Dispatch, chain: hw.HookChain) -> None:
    chain.add(hw.ShellHook("pre_tool_execution", "true", name="gate", role="gate"))
    outcome = dispatch(chain, "pre_tool_execution", tool_name="shell", tool_arguments={"data": b"bytes"})
    assert outcome.action == "skip"
    assert outcome.reason is not None
    assert "tool_arguments has no JSON form: bytes" in outcome.reason


def test_a_folder_that_is_gone_is_named(dispatch: Dispatch, chain: hw.HookChain, tmp_path: Path) -> None:
    chain.add(hw.ShellHook("pre_tool_execution", "true", name="gate", role="gate"))
    outcome = dispatch(chain, "pre_tool_execution", **CALL, cwd=str(tmp_path / "gone"))
    assert outcome.action == "skip"
    assert outcome.reason is not None
    assert str(tmp_path / "gone") in outcome.reason


def test_ten_hooks_on_one_event_read_the_same(dispatch: Dispatch, chain: hw.HookChain, tmp_path: Path) -> None:
    for number in range(10):
        chain.add(hw.ShellHook("pre_tool_execution", f"cat > {tmp_path}/{number}", name=f"hook_{number}"))
    dispatch(chain, "pre_tool_execution", **CALL)
    documents = [_written(tmp_path / str(number)) for number in range(10)]
    budgets = [document.pop("budget_ms") for document in documents]
    assert budgets == sorted(budgets, reverse=True)
    assert documents == [documents[0]] * 10
    assert documents[0]["tool_arguments"] == {"command": "ls"}
