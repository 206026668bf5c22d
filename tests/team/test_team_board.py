"""What a team says about itself, and the tasks that it shares."""

from __future__ import annotations

import asyncio
import threading

import pytest

import hookwright as hw
from hookwright import _team_events

Call = hw.ToolCall


def test_the_board_says_who_does_what() -> None:
    release, begun = threading.Event(), threading.Event()

    @hw.tool
    def build() -> str:
        """Builds."""
        begun.set()
        assert release.wait(20)
        return "built"

    usage = hw.Usage(input_tokens=1200, output_tokens=34)
    reply = hw.Reply("", [Call("task_claim", {"id": "t1"}), Call("build", {})], usage=usage)
    with hw.Team(tools=[build], name="<makers>") as team:
        team.add_task("parse <b>it</b>", depends_on=[])
        team.spawn("ada", role="builds & tests", prompt="go", model=hw.Scripted([reply, "ok"]))
        team.spawn("bob", model=hw.Scripted([]))
        assert begun.wait(20)
        board = team.board()
        text, html = str(board), board._repr_html_()
        assert "ada  working (build), 1 rounds" in text and "t1 [in_progress] parse <b>it</b> (ada)" in text
        assert "bob  waiting" in text and repr(board) == "<TeamBoard '<makers>': 2 teammates, 1 round, 1234 tokens>"
        assert "&lt;makers&gt;" in html and "builds &amp; tests" in html and "parse &lt;b&gt;it&lt;/b&gt;" in html
        assert "1,234" in html and ">working<" in html and "build; t1" in html and "<b>it</b>" not in html
        assert team._repr_html_() == html and repr(team) == repr(board).replace("TeamBoard", "Team")
        release.set()
        team.join_sync(timeout=20)


def test_a_large_board_is_cut() -> None:
    with hw.Team(hw.Scripted([])) as team:
        assert "nobody is here yet" in team._repr_html_()
        for number in range(120):
            team.spawn(f"m{number}")
        text, html = str(team.board()), team._repr_html_()
        assert "m39" in text and "m40" not in text and "and 80 more" in text
        assert "m99" in html and "m100" not in html and "and 20 more" in html


def test_tasks_of_the_lead() -> None:
    with hw.Team(hw.Scripted([Call("task_claim", {"id": "t1"}), "ok"])) as team:
        assert team.add_task("parse", "the grammar") == {
            "id": "t1", "title": "parse", "detail": "the grammar", "owner": None, "state": "open", "added_by": "lead",
        }  # fmt: skip
        with pytest.raises(hw.TeamError, match="has no title"):
            team.add_task(" ")
        with pytest.raises(hw.TeamError, match='no task "t9"; tasks: t1'):
            team.add_task("print", depends_on=["t9"])
        with pytest.raises(hw.TeamError, match="is nobody's: claim it"):
            team.update_task("t1", "in_progress")
        team.spawn("ada", prompt="go")
        team.join_sync(timeout=20)
        assert team.tasks[0]["owner"] == "ada"
        assert team.update_task("t1", "done", "looks good")["note"] == "looks good"
        assert team.tasks[0]["state"] == "done"


def test_names_that_nobody_has_and_letters_to_one() -> None:
    with hw.Team(lambda request: "ok") as team:
        with pytest.raises(KeyError, match="there is: nobody"):
            team["ada"]
        ada = team.spawn("ada")
        assert "ada" in team and "bob" not in team and len(team) == 1 and team["ada"] is ada
        with pytest.raises(KeyError, match="there is: ada"):
            team.cancel("bob")
        assert ada.send("hello", private=True).recipients == ["ada"]
        team.join_sync(timeout=20)
        assert ada.result == hw.TeammateResult("ok", None, None, None)
        with pytest.raises(TypeError, match="name is text"):
            team.spawn(7)  # type: ignore[arg-type]
    with pytest.raises(hw.TeamError, match="the team is closed"):
        team.send("hello", to="ada")
    with pytest.raises(TypeError, match="who answers"):
        hw.Team().spawn("ada")
    with pytest.raises(ValueError, match="called send_message"):
        hw.Team(hw.Scripted([]), tools=[hw.Tool(lambda text: text, name="send_message", description="mine")])


def test_waiting_has_an_end() -> None:
    release = threading.Event()

    def slow(request: hw.Request) -> str:
        release.wait(20)
        return "ok"

    with hw.Team(slow) as team:
        ada = team.spawn("ada", prompt="go")
        with pytest.raises(TimeoutError, match=r"the team is not quiet after 0\.01 s"):
            team.join_sync(timeout=0.01)
        with pytest.raises(TimeoutError, match=r"ada has not ended after 0\.01 s"):
            asyncio.run(ada.wait(timeout=0.01))
        with pytest.raises(ValueError, match="until is"):
            team.join_sync(until="soon")  # type: ignore[arg-type]
        release.set()
        team.join_sync(timeout=20)


def test_events_tell_what_they_carry() -> None:
    event = hw.TeamEvent("ended", "ada", {"outcome": "done", "reason": "x" * 100})
    assert event.outcome == "done" and repr(event).startswith("<TeamEvent ada ended outcome='done', reason='xxx")
    with pytest.raises(AttributeError, match=r"an? ended event has outcome, reason, not 'status'"):
        event.status  # noqa: B018


def test_a_slow_watcher_is_told_what_it_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_team_events, "_BOUND", 5)
    with hw.Team(lambda request: "ok") as team:
        events = team.events()
        assert repr(events) == "<TeamEvents of 'team': display, 0 waiting>"
        for number in range(6):
            team.spawn(f"m{number}", prompt="go")
        team.join_sync(timeout=20)
        events.close()

        async def read() -> list[hw.TeamEvent]:
            return [event async for event in events]

        first, *rest = asyncio.run(read())
        assert first.type == "left_out" and first.count > 5 and len(rest) == 5
