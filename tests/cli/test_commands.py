"""The commands on real hooks: what is printed where, and the exit codes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import hookwright as hw
from hookwright.cli import cli

HOOKS = """\
version: 1
hooks:
  - name: "no\\x1bdeletes"
    events: [pre_tool_execution]
    type: shell
    command: "grep -q 'rm ' && { echo 'no deleting' >&2; exit 2; }; exit 0"
    role: gate
    filter: {tool_matcher: shell, arguments: {command: "*"}}
  - name: watch
    events: [turn_start, turn_end]
    type: shell
    command: "true"
    role: observer
    enabled: false
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = tmp_path / "project"
    (root / ".hookwright").mkdir(parents=True)
    (root / ".hookwright/hooks.yaml").write_text(HOOKS)
    monkeypatch.chdir(root)
    return root


def call(*arguments: str, stdin: str | None = None) -> Result:
    result = CliRunner().invoke(cli, list(arguments), input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_version_and_help() -> None:
    result = call("--version")
    assert (result.exit_code, result.stdout.split()[0]) == (0, "hookwright")
    result = call("hooks", "--help")
    assert result.exit_code == 0
    for command in ("check", "list", "explain", "run", "replay", "trust"):
        assert f"  {command} " in result.stdout


def test_check_without_mistakes() -> None:
    result = call("hooks", "check", "--trust")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "no mistakes in 2 hooks\n", "")


def test_check_prints_every_mistake_and_exits_with_1(project: Path) -> None:
    file = project / ".hookwright/hooks.yaml"
    file.write_text(HOOKS.replace("role: gate", "rolle: gate").replace("turn_end", "turn_ent"))
    result = call("hooks", "check")
    assert (result.exit_code, result.stderr) == (1, "2 mistakes\n")
    assert result.stdout == (
        f'{file}:7:5: unknown key "rolle"; did you mean "role"?\n'
        f'{file}:10:26: unknown event "turn_ent"; did you mean "turn_end"?\n'
    )


def test_check_warns_of_a_matcher_that_fits_no_tool() -> None:
    result = call("hooks", "check", "--trust", "--tool", "shel", "--tool", "grep")
    assert result.exit_code == 0
    assert result.stdout == (
        'warning: no\\x1bdeletes: tool_matcher "shell" fits none of the 2 registered tools; did you mean "shel"?\n'
        "no mistakes in 2 hooks\n"
    )
    assert call("hooks", "check", "--trust", "--tool", "shell").stdout == "no mistakes in 2 hooks\n"


def test_a_project_that_is_not_trusted_is_exit_code_3(project: Path) -> None:
    message = f"the hooks of {project} are not trusted: .hookwright/hooks.yaml (new)"
    hint = f"  hint: they run commands on your machine: read them, then run: hookwright trust {project}\n"
    result = call("hooks", "list")
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr == f"error: {message}\n{hint}"
    result = call("hooks", "check")
    assert (result.exit_code, result.stdout) == (0, "no mistakes, but nothing was loaded\n")
    assert result.stderr == f"note: {message}\n{hint}"
    result = call("hooks", "check", "--tool", "shell")
    assert "note: no matcher was compared with the tools; add --trust to do so" in result.stderr


def test_list_is_tab_separated_and_free_of_control_characters(project: Path) -> None:
    result = call("hooks", "list", "--trust")
    header, _, row = result.stdout.splitlines()
    assert result.exit_code == 0
    file = project / ".hookwright/hooks.yaml"
    assert dict(zip(header.split("\t"), row.split("\t"), strict=True)) == {
        "name": "watch",
        "kind": "shell",
        "role": "observer",
        "level": "project",
        "order": "0",
        "events": "turn_start,turn_end",
        "filter": "",
        "timeout": "10s",
        "enabled": "no",
        "source": f"{file}:9",
    }
    assert "\x1b" not in result.stdout
    assert "no\\x1bdeletes\tshell\tgate" in result.stdout
    assert "\ttool_matcher=shell, arguments.command=*\t" in result.stdout


def test_list_on_a_terminal_is_a_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    cli.main(["hooks", "list", "--trust"], prog_name="hookwright", standalone_mode=False)
    out = capsys.readouterr().out
    assert "\t" not in out
    assert "no\\x1bdeletes" in out


def test_explain_takes_fields_as_json_or_text() -> None:
    fields = ["--field", 'tool_arguments={"command": "ls"}', "--field", "tool_name=shell"]
    result = call("hooks", "explain", "pre_tool_execution", "--trust", *fields)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == ("runs  no\\x1bdeletes: its filter matches\nno    watch: listens to turn_start, turn_end\n")


def test_run_shows_the_outcome_and_exits_with_1_when_refused(tmp_path: Path) -> None:
    (tmp_path / "event.json").write_text('{"tool_name": "shell", "tool_arguments": {"command": "rm x"}}')
    result = call("hooks", "run", "pre_tool_execution", "--trust", "--input", str(tmp_path / "event.json"))
    assert result.exit_code == 1
    assert result.stdout.startswith('<Outcome pre_tool_execution skip by no\\x1bdeletes: "no deleting"; 1 of 1')
    fields = '{"tool_name": "shell", "tool_arguments": {"command": "ls"}}'
    assert call("hooks", "run", "pre_tool_execution", "--trust", "--input", "-", stdin=fields).exit_code == 0
    assert call("hooks", "run", "turn_end", "--trust", "--field", "status=success").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "stop", "--field", "novalue"], "'novalue' is not NAME=VALUE"),
        (["run", "stop", "--input", "list.json"], "a JSON object of fields is needed"),
        (["run", "stop", "--input", "bad.json"], "not JSON: Expecting property name"),
        (["run", "stop", "--trust", "--field", "tool_nam=x"], 'stop has no field "tool_nam"'),
        (["run", "turn_end", "--trust", "--field", "session_id=5"], "session_id: 'int' object"),
        (["explain", "stop", "--trust", "--field", "continuation=-1"], "--field"),
        (["replay", "missing.jsonl"], "File 'missing.jsonl' does not exist"),
        (["list", "--project", "nowhere"], "Directory 'nowhere' does not exist"),
        (["explain", "pre_tool", "--trust"], 'error: unknown event "pre_tool"; did you mean "'),
        (["nonsense"], "No such command 'nonsense'"),
    ],
)
def test_mistakes_of_usage_exit_with_2(project: Path, arguments: list[str], message: str) -> None:
    (project / "list.json").write_text("[]")
    (project / "bad.json").write_text("{oops")
    result = call("hooks", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_a_configuration_that_cannot_be_loaded_exits_with_2(project: Path) -> None:
    file = project / ".hookwright/hooks.yaml"
    file.write_text("version: 1\nhook: []\n")
    result = call("hooks", "list")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        f'error: 1 problem in the hook configuration\n  {file}:2:1: unknown key "hook"; did you mean "hooks"?\n'
    )


def test_replay_exits_with_1_on_differences(project: Path) -> None:
    hooks = hw.HookChain()
    fields: dict[str, Any] = {"tool_name": "shell", "tool_arguments": {"command": "rm x"}}
    with hooks.record("record.jsonl"):
        hooks.run("pre_tool_execution", **fields)
    result = call("hooks", "replay", "record.jsonl", "--trust")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[0] == "1 event replayed, no differences"
    assert result.stdout.splitlines()[1].startswith("  note: no\\x1bdeletes was left out of 1 event")
    result = call("hooks", "replay", "record.jsonl", "--trust", "--shell")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "1 event replayed, 1 difference, 1 would be refused",
        '  line 1: pre_tool_execution shell {"command": "rm x"}: let through -> skip by no\\x1bdeletes (no deleting)',
    ]


@pytest.mark.parametrize("command", [["hooks", "trust"], ["trust"]])
def test_trust_status_and_forget(project: Path, command: list[str]) -> None:
    assert call(*command, "--status").exit_code == 3
    result = call(*command)
    assert (result.exit_code, result.stdout) == (0, f"trusted: {project}\n  .hookwright/hooks.yaml\n")
    assert call(*command, "--status").stdout == f"trusted: {project}\n"
    assert call("hooks", "check").stdout == "no mistakes in 2 hooks\n"
    with (project / ".hookwright/hooks.yaml").open("a") as file:
        file.write("#")
    result = call("hooks", "list")
    assert result.exit_code == 3
    assert "changed since they were trusted: .hookwright/hooks.yaml (changed)" in result.stderr
    assert call(*command, "--forget").stdout == f"forgotten: {project}\n"
    assert call(*command, "--forget").stdout == f"was not trusted: {project}\n"


def test_nothing_to_trust_is_said_so(tmp_path: Path) -> None:
    result = call("trust", str(tmp_path))
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.startswith("error: there are no hooks to trust: neither ")
    assert "hint: a project's hooks stand in .hookwright/hooks.yaml" in result.stderr
    assert "hookwright trust" not in result.stderr


def test_explain_says_so_where_there_are_no_hooks(tmp_path: Path) -> None:
    result = call("hooks", "explain", "turn_start", "--project", str(tmp_path))
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "there are no hooks: neither the user nor a project here or above it has any\n"
