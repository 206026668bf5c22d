"""Recording what happened, and trying another chain on it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import hookwright as hw


def run(hooks: hw.HookChain, command: str, **fields: Any) -> hw.Outcome:
    return hooks.run("pre_tool_execution", tool_name="shell", tool_arguments={"command": command}, **fields)


def refusing(word: str) -> hw.HookChain:
    hooks = hw.HookChain()

    @hooks.on("pre_tool_execution", role="gate", name=f"no_{word}")
    def gate(event: Any) -> Any:
        if word in event.tool_arguments["command"]:
            return hw.skip(f"no {word}")
        return None

    return hooks


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return tmp_path / "record.jsonl"


def test_every_event_is_recorded_also_without_hooks(record: Path) -> None:
    hooks = hw.HookChain()
    with hooks.record(record) as recording:
        run(hooks, "ls", session_id="s1", turn_id="t1", agent="main", continuation=2, cwd="/tmp")
        asyncio.run(hooks.arun("turn_end", status="success"))
        hooks.run("text_delta", delta="x")
        assert (recording.path, recording.events) == (record.resolve(), 2)
    run(hooks, "not recorded any more")
    first, second = (json.loads(line) for line in record.read_text().splitlines())
    assert first["event"] == "pre_tool_execution"
    assert first["fields"] == {"tool_name": "shell", "tool_arguments": {"command": "ls"}}
    assert (first["session_id"], first["turn_id"], first["continuation"]) == ("s1", "t1", 2)
    assert (second["event"], second["fields"]) == ("turn_end", {"status": "success"})
    assert record.stat().st_mode & 0o077 == 0, "for the user alone"


def test_stopping_says_whether_it_was_going_and_the_same_file_is_recorded_once(record: Path) -> None:
    hooks = hw.HookChain()
    first = hooks.record(record)
    second = hooks.record(str(record))
    run(hooks, "ls")
    assert (first.stop(), second.stop(), second.stop()) == (False, True, False)
    assert len(record.read_text().splitlines()) == 1


def test_secrets_are_redacted_known_ones_and_ones_of_ones_own(record: Path) -> None:
    hooks = hw.HookChain()
    with hooks.record(record, redact=["ACME-[0-9]+"]):
        run(hooks, "curl -H 'Authorization: Bearer abcd1234EFGH5678ijkl' --password=hunter2 ACME-123")
    text = record.read_text()
    for secret in ("abcd1234EFGH5678ijkl", "hunter2", "ACME-123"):
        assert secret not in text
    assert text.count("[redacted]") >= 3


def test_what_a_hook_took_out_is_not_in_the_record(record: Path) -> None:
    hooks = hw.HookChain()
    hooks.on("post_tool_execution")(lambda event: {"tool_result": "nothing to see"})
    with hooks.record(record):
        hooks.run("post_tool_execution", tool_name="shell", tool_arguments={}, tool_result="the treasure is here")
    assert "treasure" not in record.read_text()


def test_a_bad_pattern_and_a_bad_path_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r'bad redaction pattern "\("'):
        hw.HookChain().record(tmp_path / "x", redact=["("])
    with pytest.raises(FileNotFoundError, match="nowhere"):
        hw.HookChain().record(tmp_path / "nowhere" / "x")
    with pytest.raises(FileNotFoundError, match="missing"):
        hw.HookChain().replay(tmp_path / "missing")


def test_a_gate_that_is_added_is_tried_on_what_was_recorded(record: Path) -> None:
    hooks = hw.HookChain()
    with hooks.record(record):
        for command in ("ls", "git push --force", "rm x"):
            run(hooks, command)
        hooks.run("turn_end", status="success")
    report = refusing("--force").replay(record)
    assert report.events == 4
    (difference,) = report.would_refuse
    assert report.differences == (difference,)
    assert (difference.line, difference.event, difference.tool_name) == (2, "pre_tool_execution", "shell")
    assert difference.event_id.startswith("evt_")
    assert difference.tool_arguments == {"command": "git push --force"}
    assert (difference.before.action, difference.before.reason, difference.before.halted_by) == (None, None, None)
    after = difference.after
    assert (after.action, after.reason, after.halted_by) == ("skip", "no --force", "no_--force")
    assert report.lines == [
        "4 events replayed, 1 difference, 1 would be refused",
        '  line 2: pre_tool_execution shell {"command": "git push --force"}: '
        "let through -> skip by no_--force (no --force)",
    ]
    assert repr(report) == "\n".join([f"<ReplayReport: {report.lines[0]}>", report.lines[1]])
    assert "git push --force" in report._repr_html_()


def test_a_refusal_that_is_gone_is_a_difference_and_not_a_refusal(record: Path) -> None:
    hooks = refusing("rm")
    with hooks.record(record):
        run(hooks, "rm x")
    report = hw.HookChain().replay(record)
    assert [(one.before.action, one.after.action) for one in report.differences] == [("skip", None)]
    assert report.would_refuse == ()
    assert hooks.replay(record).differences == ()
    assert hooks.replay(record).lines == ["1 event replayed, no differences"]


def test_changed_fields_are_named_with_both_values(record: Path) -> None:
    hooks = hw.HookChain()
    hooks.on("pre_tool_execution", name="long")(lambda event: {"tool_arguments": {"command": "ls -l"}})
    with hooks.record(record):
        run(hooks, "ls")
    (difference,) = hw.HookChain().replay(record).differences
    assert difference.fields == {"tool_arguments": ({"command": "ls -l"}, {"command": "ls"})}
    assert str(difference) == 'line 1: pre_tool_execution shell {"command": "ls"}: tool_arguments differs'


def test_python_hooks_run_in_a_replay_with_the_scope_of_then_and_are_not_counted(record: Path) -> None:
    with hw.HookChain().record(record) as recording:
        pass
    source = hw.HookChain()
    with source.record(record):
        run(source, "ls", session_id="s1", turn_id="t1", agent="ann", cwd="/work", continuation=3)
    assert recording.stop() is False
    seen = []
    hooks = hw.HookChain()

    @hooks.on("pre_tool_execution", role="observer")
    async def watch(event: Any) -> None:
        await asyncio.sleep(0)
        seen.append((event.session_id, event.turn_id, event.agent.name, event.cwd, event.continuation))

    hooks.replay(record)
    assert seen == [("s1", "t1", "ann", "/work", 3)]
    assert hooks.stats()["watch"].runs == 0


def test_shell_hooks_are_left_out_with_a_note_unless_they_are_asked_for(record: Path, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    hooks = hw.HookChain()
    hooks.add(hw.ShellHook("pre_tool_execution", f"touch {marker}; exit 2", name="closed", role="gate"))
    with hooks.record(record):
        run(hooks, "ls")
    marker.unlink()
    report = hooks.replay(record)
    assert not marker.exists()
    assert (report.differences, dict(report.left_out)) == ((), {"closed": 1})
    assert report.lines[1:] == [
        "  note: closed was left out of 1 event; it starts a program, so it runs only with shell=True"
    ]
    assert hooks.replay(record, shell=True).lines == ["1 event replayed, no differences"]
    assert marker.exists()


def test_a_torn_last_line_and_foreign_lines_are_reported_and_passed_over(record: Path) -> None:
    hooks = hw.HookChain()
    with hooks.record(record):
        run(hooks, "ls")
        run(hooks, "rm x")
    whole = record.read_bytes()
    record.write_bytes(b"# a remark\n\n" + whole[:-30])
    report = refusing("ls").replay(record)
    assert (report.events, len(report.would_refuse)) == (1, 1)
    assert report.bad_lines == (
        (1, "it is no recorded event: expected value at line 1 column 1"),
        (4, "it is cut off"),
    )
    assert report.notes[1] == "line 4 was passed over: it is cut off"
    with hooks.record(record):
        run(hooks, "pwd")
    assert refusing("pwd").replay(record).would_refuse[0].line == 5, "the torn line does not swallow the next one"


def test_a_record_cut_at_any_byte_can_be_replayed(record: Path) -> None:
    hooks = hw.HookChain()
    with hooks.record(record):
        run(hooks, "echo 字🦀")
    whole = record.read_bytes()
    for end in range(len(whole)):
        record.write_bytes(whole[:end])
        report = hooks.replay(record)
        complete = end == len(whole) - 1  # all but the line end
        assert (report.events, len(report.bad_lines)) == ((1, 0) if complete else (0, 1 if end else 0)), end


def test_the_statistics_name_hooks_that_never_matched() -> None:
    hooks = refusing("rm")
    hooks.on("pre_tool_execution", name="other", tool_name="grep")(lambda event: None)
    hooks.on("turn_end", name="end")(lambda event: None)
    for command in ("ls", "rm x", "rm y"):
        run(hooks, command)
    stats = hooks.stats()
    assert stats.never_matched == ["other", "end"]
    assert (stats["no_rm"].runs, stats["no_rm"].halts, stats["other"].filtered) == (3, 2, 3)
    assert [hook.name for hook in stats] == ["other", "end", "no_rm"]
    lines = repr(stats).splitlines()
    assert lines[:3] == [
        "<ChainStats of 3 hooks>",
        "  other  never matched: its filter did not match 3 times",
        "  end    never matched: none of its events came",
    ]
    assert lines[3].startswith("  no_rm  3 runs, 2 halts; p50 ")
    assert "never matched" in stats._repr_html_()
    with pytest.raises(KeyError):
        stats["nobody"]


def test_an_outcome_and_a_chain_show_as_tables() -> None:
    hooks = refusing("rm")
    hooks.on("pre_tool_execution", name="rewrite")(lambda event: {"tool_arguments": {"command": "rm <b>"}})
    hooks.on("post_tool_execution", name="hide")(lambda event: {"tool_result": "short", "additional_context": "so"})
    html = run(hooks, "ls")._repr_html_()
    assert "rm &lt;b&gt;" in html.replace("<ins>", "").replace("</ins>", "").replace("</del>", "")
    assert "no_rm — no rm" in html
    assert " ms</span>" in html
    html = hooks.run("post_tool_execution", tool_name="x", tool_arguments={}, tool_result="a secret")._repr_html_()
    assert "8 characters, #" in html
    assert "a secret" not in html
    assert "context (hide): so" in html
    assert "pre_tool_execution" in hooks._repr_html_()
    assert "a chain without hooks" in hw.HookChain()._repr_html_()
