"""`hookwright.shell` and `hookwright gate`: what people see of the analysis."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

import hookwright as hw
from hookwright import shell
from hookwright.cli import cli


def run(*arguments: str, stdin: str | None = None) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["gate", *arguments], input=stdin)
    return result.exit_code, result.output


def test_an_analysis_shows_itself() -> None:
    analysis = hw.shell.analyze("git diff | head -50")
    assert (analysis.effect, analysis.effects, analysis.reasons) == ("read_only", ("read_only",), ())
    assert analysis.requires == ("hardened_git",)
    assert [one.words for one in analysis.commands] == [("git", "diff"), ("head", "-50")]
    assert repr(analysis) == "<Analysis read_only>"
    refused = shell.analyze("ls && rm -rf build > log.txt")
    assert repr(refused) == "<Analysis writes (program_writes, redirect_writes)>"
    assert repr(refused.reasons[0]) == "<Reason program_writes: rm at 6-8>"
    assert refused.commands[1].redirects == (("write", "log.txt"),)
    assert (refused.commands[1].effect, refused.commands[1].span) == ("writes", (6, 18))
    assert repr(refused.commands[1]) == "<SimpleCommand writes: rm -rf build>"
    assert refused.command == "ls && rm -rf build > log.txt"


def test_spans_count_characters() -> None:
    command = "echo '日本語' && rm 日本"
    (reason,) = shell.analyze(command).reasons
    assert command[slice(*reason.span)] == "rm"


def test_what_permission_rules_match_has_no_options_before_the_sub_command() -> None:
    (command,) = shell.analyze("git -C sub --no-pager push origin $x").commands
    assert command.subject == ("git", "push", "origin", None)


def test_reasons_are_worded_in_both_languages() -> None:
    (reason,) = shell.analyze("rm x").reasons
    assert (reason.code, reason.effect, reason.subject) == ("program_writes", "writes", "rm")
    assert "rm" in reason.message() and reason.hint()
    assert reason.message("zh") != reason.message("en")
    with pytest.raises(ValueError, match="there are en, zh"):
        reason.message("fr")
    with pytest.raises(ValueError, match="there are en, zh"):
        reason.hint("fr")


def test_a_table_is_extended(tmp_path: Path) -> None:
    table = shell.CommandTable()
    assert "git" in table.programs and "ledger" not in table.programs
    more = table.extend('[[program]]\nnames = ["ledger"]\noptions.writes.values = "--output"\n')
    assert shell.analyze("ledger balance", table=more).effect == "read_only"
    assert shell.analyze("ledger --output=x", table=more).effect == "writes"
    assert shell.analyze("ledger balance").effect == "unknown"
    assert repr(more) == f"<CommandTable of {len(more.programs)} programs>"
    path = tmp_path / "more.toml"
    path.write_text('[[program]]\nnames = ["ledger"]\nefect = "writes"\n')
    with pytest.raises(ValueError, match=r"more\.toml.*efect.*did you mean `effect`"):
        table.load(path)
    with pytest.raises(FileNotFoundError):
        table.load(tmp_path / "none.toml")


def test_the_environment_for_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD_NOT", "x")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    environment = shell.read_only_environment(tmp_path)
    assert environment["GIT_OPTIONAL_LOCKS"] == "0" and "GIT_ATTR_SOURCE" in environment
    assert "LD_PRELOAD_NOT" not in environment
    assert str(tmp_path) not in environment["PATH"]
    assert shell.git_risk(tmp_path) is None
    done = subprocess.run(
        shell.read_only_arguments("git status --short; echo $-"),
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "p" in done.stdout
    subprocess.run(["git", "-C", tmp_path, "config", "diff.external", "./evil"], check=True)
    risk = shell.git_risk(tmp_path)
    assert risk is not None and "diff.external" in risk


def test_the_command_line_marks_what_it_refuses() -> None:
    code, shown = run("ls && rm -rf build > log.txt")
    assert code == 1
    assert shown.splitlines()[:4] == [
        "refused: writes",
        "",
        "  ls && rm -rf build > log.txt",
        "        ^^             ^^^^^^^",
    ]
    assert "program_writes: " in shown and "redirect_writes: " in shown
    code, shown = run("git diff | head -50")
    assert code == 0 and shown.startswith("allowed: read_only\n") and "note: git only reads" in shown
    assert run("pytest -q")[0] == 0
    assert run("pytest -q", "--no-allow-tests")[0] == 1
    assert "原因" not in run("rm x", "--language", "zh")[1]
    assert run("rm x", "--language", "zh")[1] != run("rm x")[1]


def test_marks_stand_under_wide_characters() -> None:
    _, shown = run("echo 日本 > 文")
    assert shown.splitlines()[2:4] == ["  echo 日本 > 文", "              ^^"]


def test_the_command_line_judges_many() -> None:
    lines = 'ls\nrm x\n\n{"command": "cat a\\nwc -l a", "label": "x"}\n{ ls; }\n'
    code, shown = run("--file", "-", stdin=lines)
    assert code == 1
    assert shown.splitlines() == [
        "allowed\tread_only\t\tls",
        "refused\twrites\tprogram_writes\trm x",
        "allowed\tread_only\t\tcat a\\nwc -l a",
        "allowed\tread_only\t\t{ ls; }",
    ]
    code, shown = run("--file", "-", "--json", stdin="rm x")
    told = json.loads(shown)
    assert (code, told["allowed"], told["effect"], told["reasons"][0]["span"]) == (1, False, "writes", [0, 2])
    assert told["commands"][0]["words"] == ["rm", "x"]
    assert run("--file", "-", stdin="ls\npwd\n")[0] == 0


def test_mistakes_are_told() -> None:
    code, shown = run()
    assert code == 2 and "either a command, in quotes, or --file" in shown
    code, shown = run("--file", "-", stdin='{"command": 3}')
    assert code == 1 and "line 1: `command` must be text, not int" in shown


def test_a_table_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "more.toml"
    path.write_text('[[program]]\nnames = ["ledger"]\n')
    assert run("ledger")[0] == 1
    assert run("ledger", "--commands", str(path))[0] == 0
    path.write_text("[[program]\n")
    code, shown = run("ledger", "--commands", str(path))
    assert code == 1 and "more.toml" in shown


def test_it_shows_itself_in_a_notebook() -> None:
    html = shell.analyze("echo '<b>' > out.txt")._repr_html_()
    assert "<del>out.txt</del>" in html and "&lt;b&gt;" in html and "redirect_writes" in html
    assert "<table>" not in shell.analyze("ls")._repr_html_()
