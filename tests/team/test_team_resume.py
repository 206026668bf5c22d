"""Teams in a folder: put down, taken up again, in another process too."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

import hookwright as hw

Call = hw.ToolCall


def heard(mate: hw.Teammate) -> str:
    return "\n".join(message.text for message in mate.history if message.role == "user")


def test_everybody_comes_back_as_they_were(tmp_path: Path) -> None:
    models: dict[str, Any] = {
        "ada": hw.Scripted([Call("task_claim", {"id": "t1"}), "I am on it"]),
        "张三": hw.Scripted([Call("work_done", {"summary": "read it all"})]),
        "bob": hw.Scripted([]),
    }
    with hw.Team(session=tmp_path / "s") as team:
        team.add_task("parse", "the grammar")
        for name, model in models.items():
            prompt = None if name == "bob" else "go"
            team.spawn(name, role=f"{name}'s role", model=model, prompt=prompt, disabled_tools=["list_team"])
        team.join_sync(timeout=20)
        said = sorted(letter.text for letter in team.receive())
        assert said == ["ada waits, and t1 is in progress", "张三 has ended (done): read it all"]
        team.send("for later", to="bob", id="later-1")
        team.join_sync(timeout=20)
        usage = team.board().totals
    seen: list[hw.Request] = []

    def model(request: hw.Request) -> str:
        seen.append(request)
        return "hello again"

    with hw.Team.resume(tmp_path / "s", model) as team:
        ada, zhang, bob = (team[name] for name in ("ada", "张三", "bob"))
        team.join_sync(timeout=20)
        assert (ada.status, ada.outcome, ada.result.text, ada.role) == ("waiting", None, "", "ada's role")
        assert (zhang.outcome, zhang.result.summary, bob.outcome) == ("done", "read it all", "error")
        assert team.tasks[0]["owner"] == "ada" and team.receive() != []  # bob's end, from before.
        assert team.receive() == [] and team.board().totals["rounds"] == usage["rounds"]
        assert [message.role for message in ada.history] == ["user", "assistant", "tool", "assistant"]
        assert seen == [], "nobody had anything to do"
        team.send("@ada are you there?")
        team.send("@张三 one more thing")
        team.join_sync(timeout=20)
        assert len(seen) == 2 and all("list_team" not in [tool["name"] for tool in request.tools] for request in seen)
        assert "one more thing" in heard(zhang) and zhang.outcome is None and zhang.result.text == "hello again"


def test_mail_that_was_not_delivered_is_delivered_once(tmp_path: Path) -> None:
    release = threading.Event()

    def slow(request: hw.Request) -> str:
        release.wait(20)
        return "never heard"

    team = hw.Team(slow, session=tmp_path / "s")
    team.spawn("ada", prompt="first")
    team.spawn("bob")
    team.send("second", to="ada")
    team.send("overheard by ada", to="bob")
    team.close()
    release.set()
    for _ in range(2):
        with hw.Team.resume(tmp_path / "s", lambda request: "ok") as team:
            team.join_sync(timeout=20)
            text = heard(team["ada"])
            assert [text.count(said) for said in ("first", "second", "overheard by ada")] == [1, 1, 1]
            assert team["ada"].result.text == "ok" or team["ada"].rounds > 0


def test_nobody_goes_on_before_it_is_said(tmp_path: Path) -> None:
    with hw.Team(lambda request: "ok", session=tmp_path / "s") as team:
        team.spawn("ada", prompt="go")
        team.join_sync(timeout=20)
    asked: list[str] = []

    def model(request: hw.Request) -> str:
        asked.append(team.name)
        return "ok"

    team = hw.Team.resume(tmp_path / "s", model, start=False, name="again")
    with team:
        team.send("@ada again")
        assert asked == [] and team["ada"].status == "initializing"
        team.start()
        team.join_sync(timeout=20)
        assert asked == ["again"] and team["ada"].result.text == "ok"


def test_a_call_that_was_running_is_interrupted_and_not_run_again(tmp_path: Path) -> None:
    pid = os.fork()
    if pid == 0:  # The process that dies, without a word.

        @hw.tool
        def build() -> str:
            """Builds."""
            (tmp_path / "built").write_text(str(int((tmp_path / "built").read_text() or 0) + 1))
            os._exit(9)

        (tmp_path / "built").write_text("")
        team = hw.Team(hw.Scripted([Call("build", {})]), session=tmp_path / "s", tools=[build])
        team.spawn("ada", prompt="build")
        threading.Event().wait(30)
        os._exit(1)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 9

    @hw.tool
    def build() -> str:
        """Builds."""
        raise AssertionError("it is run again")

    with hw.Team.resume(tmp_path / "s", hw.Scripted(["I will look first"]), tools=[build]) as team:
        team.join_sync(timeout=20)
        ada = team["ada"]
        assert ada.history[2].is_error and "interrupted" in ada.history[2].text
        assert ada.result.text == "I will look first" and (tmp_path / "built").read_text() == "1"


def test_a_team_that_is_there_is_not_made_anew_nor_one_that_is_not_taken_up(tmp_path: Path) -> None:
    with pytest.raises(hw.TeamError, match="there is no team in"):
        hw.Team.resume(tmp_path / "s", hw.Scripted([]))
    hw.Team(hw.Scripted([]), session=tmp_path / "t").close()
    with pytest.raises(hw.TeamError, match=r"there is a team in .*\n.*Team.resume"):
        hw.Team(hw.Scripted([]), session=tmp_path / "t")
    with hw.Team.resume(tmp_path / "t", hw.Scripted([])), pytest.raises(hw.SessionBusy):
        hw.Team.resume(tmp_path / "t", hw.Scripted([]))


def test_a_journal_that_says_what_nobody_understands_is_refused(tmp_path: Path) -> None:
    hw.Team(hw.Scripted([]), session=tmp_path / "s").close()
    session = hw.Session(tmp_path / "s" / "team")
    session.close()
    from zlib import crc32

    text = '{"kind":"team_mail","envelope":7}'
    line = json.dumps({"len": len(text), "crc": f"{crc32(text.encode()):08x}"})[:-1] + f',"entry":{text}}}\n'
    with (tmp_path / "s" / "team" / "transcript.jsonl").open("a") as file:
        file.write(line.replace('": ', '":').replace(', "', ',"'))
    with pytest.raises(hw.TeamError, match="journal cannot be read"):
        hw.Team.resume(tmp_path / "s", hw.Scripted([]))


def test_a_folder_is_kept_apart_for_each_name(tmp_path: Path) -> None:
    names = ["Ada", "ada", "张三", "ada lovelace"]
    with hw.Team(lambda request: "ok", session=tmp_path / "s") as team:
        for name in names:
            team.spawn(name, prompt="go")
        team.join_sync(timeout=20)
    folders = sorted(path.name for path in (tmp_path / "s" / "teammates").iterdir())
    assert len({folder.lower() for folder in folders}) == 4 and "ada" in folders and "张三" in folders


def test_secrets_in_letters_are_kept_only_for_the_owner(tmp_path: Path) -> None:
    with hw.Team(lambda request: "ok", session=tmp_path / "s") as team:
        team.spawn("ada", prompt="go")
        team.join_sync(timeout=20)
    for path in (tmp_path / "s").rglob("*.jsonl"):
        assert path.stat().st_mode & 0o077 == 0, path
