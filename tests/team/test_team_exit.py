"""A program that ends while its team lives ends cleanly."""

from __future__ import annotations

import gc
import logging
import subprocess
import sys
import textwrap
import weakref
from pathlib import Path

import pytest

import hookwright as hw


@pytest.mark.parametrize("session", [False, True])
def test_leaving_a_team_alive(session: bool, tmp_path: Path) -> None:
    program = f"""
        import time, threading, hookwright as hw
        begun = threading.Event()
        async def slow(request):
            begun.set()
            await __import__("asyncio").sleep(3600)
        def stuck(request):
            time.sleep(3600)
        team = hw.Team(hw.FunctionModel(slow), session={str(tmp_path / "s")!r} if {session} else None)
        team.spawn("ada", prompt="go")
        team.spawn("bob", prompt="go", model=stuck)
        team.spawn("carol")
        assert begun.wait(20)
        print("over")
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "over\n", "")
    if session:
        with hw.Team.resume(tmp_path / "s", lambda request: "hello again") as team:
            team.join_sync(timeout=20)
            assert [mate.result.text for mate in team.teammates] == ["hello again", "hello again", ""]


def test_a_closed_team_is_gone() -> None:
    gone = []
    for _ in range(3):
        with hw.Team(lambda request: "ok") as team:
            team.spawn("ada", prompt="go")
            team.spawn("bob")
            team.join_sync(timeout=20)
        gone.append(weakref.ref(team))
        del team
    # The thread of teams lets go of the last one with the next thing that it does.
    with hw.Team(lambda request: "ok") as other:
        other.spawn("carol", prompt="go")
        other.join_sync(timeout=20)
        gc.collect()
        assert [team() for team in gone] == [None, None, None]


def test_who_watches_and_fails_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def fail(event: hw.TeamEvent) -> None:
        raise RuntimeError("broken watcher")

    with caplog.at_level(logging.ERROR, "hookwright.team"), hw.Team(lambda request: "ok") as team:
        team.on_event(fail)
        ada = team.spawn("ada", prompt="go")
        team.join_sync(timeout=20)
        assert ada.result.text == "ok" and "broken watcher" in caplog.text
