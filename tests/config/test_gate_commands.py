"""Programs that a configuration file teaches to gates."""

from __future__ import annotations

from pathlib import Path

import pytest

import hookwright as hw

PROGRAMS = """
[[program]]
names = ["ledger"]
options.flags = "-q"
subcommand.balance.options.flags = "--sorted"
subcommand.import.effect = "writes"
"""
PROJECT = """\
version: 1
gates:
  commands: programs.toml
permissions:
  deny: [Network]
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def project(folder: Path, text: str = PROJECT, programs: str | None = PROGRAMS) -> Path:
    (folder / ".hookwright").mkdir(parents=True)
    (folder / ".hookwright" / "hooks.yaml").write_text(text)
    if programs is not None:
        (folder / ".hookwright" / "programs.toml").write_text(programs)
    return folder


def test_gates_of_the_files_and_of_the_program_know_them(tmp_path: Path) -> None:
    hooks = hw.HookChain()
    report = hooks.load(project(tmp_path / "p"), trust=True)

    def action(command: str) -> str | None:
        return hooks.run("pre_tool_execution", tool_name="shell", tool_arguments={"command": command}).action

    assert [action(command) for command in ("ledger balance --sorted", "ledger import x")] == [None, "ask"]
    gate = hw.ReviewGate(table=report.command_table)
    assert gate.decide("shell", {"command": "ledger -q balance"}).allowed
    assert not gate.decide("shell", {"command": "ledger import x"}).allowed
    assert not hw.ReviewGate().decide("shell", {"command": "ledger -q balance"}).allowed


def test_what_is_wrong_with_them_is_told_where_they_are_named(tmp_path: Path) -> None:
    with pytest.raises(hw.ConfigError) as caught:
        hw.HookChain().load(project(tmp_path / "missing", programs=None), trust=True)
    (problem,) = caught.value.problems
    assert (problem.line, problem.column) == (3, 13)
    assert "programs.toml cannot be read: No such file" in problem.message
    with pytest.raises(hw.ConfigError, match="nmaes"):
        hw.HookChain().load(project(tmp_path / "wrong", programs="[[program]]\nnmaes = ['x']\n"), trust=True)
    with pytest.raises(hw.ConfigError, match=r"did you mean .*commands"):
        hw.HookChain().load(project(tmp_path / "key", text="version: 1\ngates: {comands: x}\n"), trust=True)


def test_trust_covers_them(tmp_path: Path) -> None:
    folder = project(tmp_path / "p")
    hw.trust.trust(folder)
    assert hw.HookChain().load(folder).hooks == ("permissions",)
    (folder / ".hookwright" / "programs.toml").write_text(PROGRAMS.replace("writes", "read_only"))
    with pytest.raises(hw.TrustError, match="changed since they were trusted"):
        hw.HookChain().load(folder)
