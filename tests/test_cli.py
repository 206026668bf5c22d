"""The command line against a stand-in for the chain: what is printed where, and the exit codes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import hookwright
import pytest
from hookwright.cli import main
from hookwright.exceptions import ConfigError, ConfigProblem, TrustError, UnknownEventError

HOOK = SimpleNamespace(
    name="no\x1b[31m_deletes",
    kind="python",
    role="gate",
    level="project",
    order=0,
    events=["pre_tool_execution"],
    filter="tool_matcher='shell'",
    timeout=10.0,
    enabled=True,
    source="hooks.yaml:3",
)


class Outcome:
    def __init__(self, action: str | None) -> None:
        self.action = action

    def __repr__(self) -> str:
        return f"<Outcome {self.action}>"


class Chain:
    """Stands in for `HookChain` and notes what it is asked."""

    load_error: Exception | None = None
    differences: tuple[str, ...] = ()
    calls: list[tuple[Any, ...]]

    def __init__(self) -> None:
        type(self).calls = []
        self.hooks = [HOOK]

    def load(self, *, project: Path, user: bool, trust: bool | None) -> None:
        self.calls.append(("load", project, user, trust))
        if self.load_error:
            raise self.load_error

    def explain(self, event: str, tools: list[str] | None = None, **fields: Any) -> Any:
        if event == "pre_tool":
            raise UnknownEventError("unknown event 'pre_tool'; did you mean 'pre_tool_execution'?")
        self.calls.append(("explain", event, tools, fields))
        return SimpleNamespace(lines=["no_deletes: runs"], warnings=["no_deletes: 'shel' fits no tool"])

    def run(self, event: str, **fields: Any) -> Outcome:
        self.calls.append(("run", event, fields))
        return Outcome("skip" if "rm" in str(fields) else None)

    def replay(self, path: Path, shell: bool = False) -> Any:
        self.calls.append(("replay", path, shell))
        return SimpleNamespace(differences=self.differences)


@pytest.fixture(autouse=True)
def chain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> type[Chain]:
    fresh = type("FreshChain", (Chain,), {})
    monkeypatch.setattr(hookwright, "HookChain", fresh, raising=False)
    monkeypatch.chdir(tmp_path)
    return fresh


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    captured = capsys.readouterr()
    assert isinstance(stopped.value.code, int)
    return stopped.value.code, captured.out, captured.err


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--version")
    assert (code, out.split()[0]) == (0, "hookwright")
    code, out, _ = call(capsys, "hooks", "--help")
    assert code == 0
    for command in ("check", "list", "explain", "run", "replay", "trust"):
        assert f"  {command} " in out


def test_the_module_is_the_same_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hookwright", "hooks", "nonsense"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "No such command 'nonsense'" in done.stderr
    assert "Traceback" not in done.stderr


def test_check_without_mistakes(capsys: pytest.CaptureFixture[str], chain: type[Chain]) -> None:
    assert call(capsys, "hooks", "check", "--no-user") == (0, "no mistakes in 1 hook\n", "")
    assert chain.calls == [("load", Path(), False, None)]


def test_check_prints_every_mistake_and_exits_with_1(capsys: pytest.CaptureFixture[str], chain: type[Chain]) -> None:
    chain.load_error = ConfigError(
        problems=[
            ConfigProblem("hooks.yaml", 3, 5, "unknown key 'comand'", "did you mean 'command'?"),
            ConfigProblem("hooks.yaml", 9, 1, "no command"),
        ]
    )
    assert call(capsys, "hooks", "check") == (
        1,
        "hooks.yaml:3:5: unknown key 'comand'; did you mean 'command'?\nhooks.yaml:9:1: no command\n",
        "2 mistakes\n",
    )


def test_check_warns_of_a_matcher_that_fits_no_tool(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "hooks", "check", "--tool", "shell")
    assert (code, out) == (0, "warning: no_deletes: 'shel' fits no tool\nno mistakes in 1 hook\n")


def test_a_project_that_is_not_trusted_is_exit_code_3(capsys: pytest.CaptureFixture[str], chain: type[Chain]) -> None:
    chain.load_error = TrustError("the hooks of /p are not trusted")
    code, out, err = call(capsys, "hooks", "list")
    assert (code, out) == (3, "")
    assert err == (
        "error: the hooks of /p are not trusted\n  hint: read the hooks, then trust them: hookwright hooks trust\n"
    )
    code, out, err = call(capsys, "hooks", "check")
    assert (code, out, err) == (0, "no mistakes\n", "note: the hooks of /p are not trusted\n")


def test_list_is_tab_separated_and_free_of_control_characters(
    capsys: pytest.CaptureFixture[str], chain: type[Chain]
) -> None:
    code, out, _ = call(capsys, "hooks", "list", "--trust")
    header, row = out.splitlines()
    assert code == 0
    assert dict(zip(header.split("\t"), row.split("\t"), strict=True)) == {
        "name": "no\\x1b[31m_deletes",
        "kind": "python",
        "role": "gate",
        "level": "project",
        "order": "0",
        "events": "pre_tool_execution",
        "filter": "tool_matcher='shell'",
        "timeout": "10s",
        "enabled": "yes",
        "source": "hooks.yaml:3",
    }
    assert chain.calls == [("load", Path(), True, True)]


def test_list_on_a_terminal_is_a_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    code, out, _ = call(capsys, "hooks", "list")
    assert code == 0
    assert "\t" not in out
    assert "no\\x1b[31m_deletes" in out


def test_explain_passes_fields_as_json_or_text(capsys: pytest.CaptureFixture[str], chain: type[Chain]) -> None:
    arguments = ["--field", 'tool_arguments={"command":"ls"}', "--field", "tool_name=shell", "--tool", "shell"]
    assert call(capsys, "hooks", "explain", "pre_tool_execution", *arguments) == (0, "no_deletes: runs\n", "")
    fields = {"tool_arguments": {"command": "ls"}, "tool_name": "shell"}
    assert chain.calls[-1] == ("explain", "pre_tool_execution", ["shell"], fields)


def test_an_unknown_event_is_one_readable_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "hooks", "explain", "pre_tool") == (
        2,
        "",
        "error: unknown event 'pre_tool'; did you mean 'pre_tool_execution'?\n",
    )


def test_run_shows_the_outcome_and_exits_with_1_when_refused(
    capsys: pytest.CaptureFixture[str], chain: type[Chain], tmp_path: Path
) -> None:
    (tmp_path / "event.json").write_text('{"tool_name": "shell", "tool_arguments": {"command": "rm x"}}')
    assert call(capsys, "hooks", "run", "pre_tool_execution", "--input", "event.json")[:2] == (1, "<Outcome skip>\n")
    assert call(capsys, "hooks", "run", "turn_end", "--field", "status=success")[:2] == (0, "<Outcome None>\n")
    assert chain.calls[-1] == ("run", "turn_end", {"status": "success"})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "stop", "--field", "novalue"], "'novalue' is not NAME=VALUE"),
        (["run", "stop", "--input", "list.json"], "a JSON object of fields is needed"),
        (["run", "stop", "--input", "bad.json"], "not JSON: Expecting value"),
        (["replay", "missing.jsonl"], "File 'missing.jsonl' does not exist"),
        (["list", "--project", "nowhere"], "Directory 'nowhere' does not exist"),
    ],
)
def test_mistakes_of_usage_exit_with_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "bad.json").write_text("{oops")
    code, out, err = call(capsys, "hooks", *arguments)
    assert (code, out) == (2, "")
    assert message in err or "not JSON" in err


def test_replay_exits_with_1_on_differences(
    capsys: pytest.CaptureFixture[str], chain: type[Chain], tmp_path: Path
) -> None:
    (tmp_path / "record.jsonl").write_text("")
    assert call(capsys, "hooks", "replay", "record.jsonl")[0] == 0
    chain.differences = ("one",)
    assert call(capsys, "hooks", "replay", "record.jsonl", "--shell")[0] == 1
    assert chain.calls[-1] == ("replay", Path("record.jsonl"), True)


@pytest.mark.parametrize("command", [["hooks", "trust"], ["trust"]])
def test_trust_status_and_forget(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: list[str]
) -> None:
    trusted: set[Path] = set()
    store = ModuleType("hookwright.trust")
    store.trust = trusted.add  # type: ignore[attr-defined]
    store.forget = trusted.discard  # type: ignore[attr-defined]
    store.is_trusted = trusted.__contains__  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "hookwright.trust", store)
    monkeypatch.setattr(hookwright, "trust", store, raising=False)
    place = tmp_path.resolve()
    assert call(capsys, *command, "--status") == (3, f"not trusted: {place}\n", "")
    assert call(capsys, *command) == (0, f"trusted: {place}\n", "")
    assert trusted == {place}
    assert call(capsys, *command, "--status")[0] == 0
    assert call(capsys, *command, "--forget")[0] == 0
    assert trusted == set()
