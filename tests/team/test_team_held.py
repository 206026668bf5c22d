"""Letters that are held because others came in while they were written."""

from __future__ import annotations

import threading
from typing import Any

import hookwright as hw

Call = hw.ToolCall


class Slow:
    """A model that answers from a script, each time only when the test says so."""

    def __init__(self, replies: list[Any]) -> None:
        self.replies = list(replies)
        self.asked = threading.Semaphore(0)
        self.go = threading.Semaphore(0)
        self.requests: list[hw.Request] = []

    def __call__(self, request: hw.Request) -> Any:
        self.requests.append(request)
        self.asked.release()
        assert self.go.acquire(timeout=20)
        return self.replies.pop(0)

    def wait(self) -> None:
        """Until it is asked."""
        assert self.asked.acquire(timeout=20)

    def answer(self) -> None:
        self.go.release()


def send(text: str, to: str = "bob") -> hw.ToolCall:
    return Call("send_message", {"to": to, "text": text})


def results(mate: hw.Teammate) -> list[str]:
    return [message.text for message in mate.history if message.role == "tool"]


def test_a_letter_is_held_quoted_and_sent_again() -> None:
    with hw.Team() as team:
        events: list[hw.TeamEvent] = []
        team.on_event(events.append)
        bob = team.spawn("bob", model=hw.Scripted(["ok"] * 9))
        model = Slow([send("the answer is 41"), send("the answer is 42"), "ok"])
        ada = team.spawn("ada", prompt="tell bob the answer", model=model)
        model.wait()
        team.send("it is 42, not 41", to="ada")
        model.answer()
        model.wait()
        last = model.requests[-1].messages[-1].text
        assert "<held>" in last and "to bob: the answer is 41" in last and "it is 42, not 41" in last
        assert last.index("<held>") < last.index("it is 42")
        assert results(ada)[0].startswith("[held] Not sent")
        assert not [message for message in bob.history if "41" in message.text]
        model.answer()
        model.wait()
        model.answer()
        team.join_sync(timeout=20)
        assert results(ada)[1].startswith("sent to bob")
        assert bob.history[0].text.endswith("\nthe answer is 42\n</message>")
        assert [event.why for event in events if event.type == "held"] == ["new messages"]


def test_two_letters_of_one_reply_are_held_together() -> None:
    with hw.Team() as team:
        for name in ("bob", "carol"):
            team.spawn(name, model=hw.Scripted(["ok"] * 9))
        both = [send("one"), send("two", "carol")]
        model = Slow([hw.Reply("", both), hw.Reply("", both), "ok"])
        ada = team.spawn("ada", prompt="go", model=model)
        model.wait()
        team.send("wait", to="ada")
        model.answer()
        model.wait()
        last = model.requests[-1].messages[-1].text
        assert "to bob: one" in last and "to carol: two" in last and last.count("<held>") == 1
        model.answer()
        model.wait()
        model.answer()
        team.join_sync(timeout=20)
        assert [text[:6] for text in results(ada)] == ["[held]", "[held]", "sent t", "sent t"]
        assert ada.calls == 4


def test_after_two_holds_it_goes_through() -> None:
    with hw.Team() as team:
        team.spawn("bob", model=hw.Scripted(["ok"] * 9))
        model = Slow([send("now"), send("now"), send("now"), "ok"])
        ada = team.spawn("ada", prompt="go", model=model)
        for number in range(3):
            model.wait()
            team.send(f"one more thing {number}", to="ada")
            model.answer()
        model.wait()
        model.answer()
        team.join_sync(timeout=20)
        assert [text[:6] for text in results(ada)] == ["[held]", "[held]", "sent t"]


def test_work_done_is_held_once() -> None:
    with hw.Team() as team:
        done = Call("work_done", {"summary": "all done"})
        model = Slow([done, done])
        ada = team.spawn("ada", prompt="go", model=model)
        model.wait()
        team.send("one more thing", to="ada")
        model.answer()
        model.wait()
        assert "work_done: all done" in model.requests[-1].messages[-1].text
        assert ada.outcome is None
        team.send("and another", to="ada")
        model.answer()
        # It went through, but the last letter brings it back.
        model.wait()
        assert "and another" in model.requests[-1].messages[-1].text
        model.replies.append("ok")
        model.answer()
        team.join_sync(timeout=20)
        assert [text[:6] for text in results(ada)] == ["[held]", "Your w"]


def test_what_is_only_overheard_holds_nothing() -> None:
    with hw.Team() as team:
        team.spawn("bob", model=hw.Scripted(["ok"] * 9))
        model = Slow([send("hello"), "ok"])
        ada = team.spawn("ada", prompt="go", model=model)
        model.wait()
        team.send("for bob alone", to="bob")
        model.answer()
        model.wait()
        model.answer()
        team.join_sync(timeout=20)
        assert results(ada)[0].startswith("sent to bob")


def test_a_chatty_team_starves_nobody() -> None:
    """Three that write to each other all the time, and one that has something to say to the lead: it is heard after two
    rounds at most."""
    with hw.Team() as team:
        names = ["bob", "carol", "dave"]

        def chatty(name: str, number: list[int]) -> Any:
            def model(request: hw.Request) -> Any:
                number[0] += 1
                if number[0] > 40:
                    return ""
                others = [other for other in ("ada", *names) if other != name]
                return Call("send_message", {"to": others, "text": f"{name} says {number[0]}"})

            return model

        calm = hw.FunctionModel(
            lambda request: (
                "ok"
                if any("sent to lead" in message.text for message in request.messages)
                else send("the result", "lead")
            )
        )
        ada = team.spawn("ada", model=calm)
        for name in names:
            team.spawn(name, prompt="chat", model=chatty(name, [0]))
        team.send("the result?", to="ada")
        team.join_sync(timeout=60)
        assert [letter.text for letter in team.receive() if letter.kind == "message"] == ["the result"]
        assert sum(text.startswith("[held]") for text in results(ada)) <= 2


def test_mail_reaches_a_busy_teammate_at_the_next_tool_boundary() -> None:
    started, release = threading.Event(), threading.Event()

    @hw.tool
    def build() -> str:
        """Builds."""
        started.set()
        assert release.wait(20)
        return "built"

    requests: list[hw.Request] = []

    def model(request: hw.Request) -> Any:
        requests.append(request)
        return [Call("build", {})] if len(requests) == 1 else "ok"

    with hw.Team(model, tools=[build]) as team:
        ada = team.spawn("ada", prompt="build it")
        assert started.wait(20)
        assert ada.status_detail["tools"] == ["build"]
        team.send("the branch has moved", to="ada")
        release.set()
        team.join_sync(timeout=20)
        assert len(requests) == 2 and "the branch has moved" in requests[1].messages[-1].text
        assert [message.role for message in ada.history] == ["user", "assistant", "tool", "user", "assistant"]
        assert ada.session.turn_count == 1
