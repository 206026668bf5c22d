"""`hookwright run` and `session` against a real server."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

sys.path.append(str(Path(__file__).parents[1] / "server"))

from cases_openai import HI, STOP, call, delta, reply
from misbehaving import Attempt, Case, Server, event, http, stream_head

import hookwright as hw
from hookwright.cli import cli


def streamed(*chunks: Any) -> Attempt:
    return Attempt([stream_head(), *(event(chunk) for chunk in chunks), event("[DONE]")])


READ = call("read_file", json.dumps({"path": "a.txt"}), index=0, id="1")
SHELL = call("shell", json.dumps({"command": "rm a.txt"}), index=0, id="1")
CASES = [
    Case(
        "reads",
        [
            streamed(delta({"content": "I look.\n"}), delta({"tool_calls": [READ]}), delta({}, "tool_calls")),
            streamed(HI, STOP),
        ],
    ),
    Case("writes", [streamed(delta({"tool_calls": [SHELL]}), delta({}, "tool_calls")), streamed(HI, STOP)]),
    Case("whole", [Attempt([http(reply({"content": "hi"}))])]),
    Case("refuses", [Attempt([http({"error": {"message": "no such model"}}, 404)])]),
    Case("breaks", [Attempt([http({"error": {"message": "no"}}, 400)]), streamed(HI, STOP)]),
]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server(CASES)
    yield server
    server.close()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("a line\n")
    return tmp_path


def go(
    server: Server, name: str, *arguments: str, command: tuple[str, ...] = ("run", "look at it"), **options: Any
) -> Result:
    case = next(case for case in CASES if case.name == name)
    server.requests.setdefault(name, []).clear()
    url = ["--model", "m", "--base-url", server.url(case), "--no-key", "--session", "s"]
    if command[0] == "session":
        url = url[:-2]
    return CliRunner().invoke(cli, [*command, *url, *arguments], catch_exceptions=False, **options)


def test_text_goes_to_stdout_and_what_happens_to_stderr(server: Server, folder: Path) -> None:
    result = go(server, "reads")
    assert (result.exit_code, result.stdout) == (0, "I look.\nhi\n")
    lines = result.stderr.splitlines()
    assert lines[0] == "-> read_file(path='a.txt')"
    assert lines[1].startswith("<- read_file: ") and "a line" in lines[1]
    assert lines[-2].startswith("success: 2 rounds, 1 calls")
    assert lines[-1] == "session: s"
    shown = CliRunner().invoke(cli, ["session", "show", "s"])
    assert shown.output.startswith("[user] look at it\n[assistant] I look.\n  -> read_file(path='a.txt')\n[tool] ")
    assert shown.output.endswith("[assistant] hi\n")


def test_what_no_rule_allows_is_denied_where_nobody_can_be_asked(server: Server, folder: Path) -> None:
    result = go(server, "writes", "--tools", "workspace")
    assert result.exit_code == 0
    assert "<- shell: failed (denied)" in result.stderr
    assert (folder / "a.txt").exists()


def test_a_hooks_file_is_used(server: Server, folder: Path) -> None:
    (folder / "own.yaml").write_text("version: 1\npermissions: {allow: [Shell]}\n")
    result = go(server, "writes", "--tools", "workspace", "--hooks", "own.yaml")
    assert (result.exit_code, (folder / "a.txt").exists()) == (0, False)
    again = go(server, "writes", "--tools", "workspace", "--hooks", "own.yaml", "--mode", "review")
    assert "<- shell: failed (denied)" in again.stderr


def test_an_answer_as_a_whole(server: Server) -> None:
    result = go(server, "whole", "--no-stream", command=("run", "-"), input="from stdin")
    assert (result.exit_code, result.stdout) == (0, "hi\n")
    assert server.requests["whole"][0]["messages"][-1]["content"] == "from stdin"


def test_mistakes_are_told_in_a_line(server: Server) -> None:
    result = go(server, "refuses")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "error: the model's server refused the request: no such model; check the model's name" in result.stderr
    assert go(server, "whole", command=("run", " ")).exit_code == 2
    result = CliRunner().invoke(cli, ["run", "x", "--model", "m", "--base-url", "localhost:1", "--no-key"])
    assert result.exit_code == 2 and "base_url" in result.stderr


def test_a_conversation_goes_on_where_it_was_left(server: Server) -> None:
    assert go(server, "breaks").exit_code == 2
    server.requests["breaks"].append({})  # The first attempt was the one above.
    case = next(case for case in CASES if case.name == "breaks")
    arguments = ["session", "resume", "s", "--model", "m", "--base-url", server.url(case), "--no-key"]
    result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert (result.exit_code, result.stdout) == (0, "hi\n")
    with hw.Session("s") as session:
        assert [message.role for message in session.messages] == ["user", "assistant"]
    server.requests["breaks"].append({})
    result = CliRunner().invoke(cli, [*arguments[:3], "and more", *arguments[3:]], catch_exceptions=False)
    assert (result.exit_code, result.stdout) == (0, "hi\n")
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 2 and "there is nothing to resume" in result.stderr
