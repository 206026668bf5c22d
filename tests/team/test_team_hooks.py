"""Hooks, gates and approvers over teammates: the same as over any agent, and they are told whose the event is."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

import hookwright as hw

Call = hw.ToolCall


def send(text: str, to: Any = "bob") -> hw.ToolCall:
    return Call("send_message", {"to": to, "text": text})


def results(mate: hw.Teammate) -> list[str]:
    return [message.text for message in mate.history if message.role == "tool"]


@hw.tool
def build() -> str:
    """Builds."""
    return "built"


def test_every_event_tells_whose_it_is() -> None:
    hooks = hw.HookChain()
    seen: set[tuple[str, str, str, str | None]] = set()
    names = [event.value for event in hw.Event if event.value != "text_delta"]

    @hooks.on(*names, role="observer")
    def see(event: Any) -> None:
        seen.add((event.event, event.agent.name, event.agent.kind, event.agent.parent))

    with hw.Team(hooks=hooks, tools=[build]) as team:
        team.spawn("bob", model=hw.Scripted([]))
        team.spawn("ada", role="builds", prompt="go", model=hw.Scripted([[Call("build", {}), send("built")], "ok"]))
        team.join_sync(timeout=20)
    of_ada = {name for name, agent, kind, parent in seen if (agent, kind, parent) == ("ada", "teammate", "lead")}
    expected = {
        "session_start", "pre_send_message", "post_send_message", "turn_start", "system_prompt_built", "pre_llm_request",
        "post_llm_response", "pre_tool_batch", "pre_tool_execution", "post_tool_execution", "post_tool_batch",
        "message_routed", "stop", "turn_end", "teammate_start", "teammate_idle", "teammate_end",
    }  # fmt: skip
    assert expected <= of_ada, expected - of_ada


def test_start_idle_and_end_carry_their_fields() -> None:
    hooks = hw.HookChain()
    said: list[Any] = []

    @hooks.on("teammate_start")
    def start(event: hw.TeammateStart) -> None:
        said.append(("start", event.teammate, event.role))

    @hooks.on("teammate_idle")
    def idle(event: hw.TeammateIdle) -> None:
        said.append(("idle", event.teammate, event.waiting_for, event.open_tasks))

    @hooks.on("teammate_end")
    def end(event: hw.TeammateEnd) -> None:
        said.append(("end", event.teammate, event.role, event.reason))

    with hw.Team(hooks=hooks) as team:
        team.add_task("parse")
        script = [Call("task_claim", {"id": "t1"}), "later", Call("work_done", {"summary": "x"})]
        team.spawn("ada", role="parses", prompt="go", model=hw.Scripted(script))
        team.join_sync(timeout=20)
        team.send("@ada finish")
        team.join_sync(timeout=20)
        assert team.tasks[0]["state"] == "open", "what somebody leaves behind is open again"
    assert said == [
        ("start", "ada", "parses"), ("idle", "ada", "mail", ["t1"]), ("end", "ada", "parses", "done"),
    ]  # fmt: skip


def test_an_idle_hook_sends_back_to_work_as_often_as_it_may() -> None:
    hooks = hw.HookChain()

    @hooks.on("teammate_idle")
    def more(event: hw.TeammateIdle) -> hw.HookResult:
        return hw.retry("look once more")

    with hw.Team(lambda request: "nothing found", hooks=hooks, max_idle_loops=3) as team:
        ada = team.spawn("ada", prompt="go")
        team.join_sync(timeout=20)
        assert (ada.rounds, ada.status) == (4, "waiting")
        assert [message.sender for message in ada.history if message.role == "user"] == ["lead", *["hook"] * 3]


def test_an_idle_hook_may_end_it_and_is_not_asked_while_it_waits_for_an_answer() -> None:
    hooks = hw.HookChain()

    @hooks.on("teammate_idle", role="gate")
    def leave(event: hw.TeammateIdle) -> hw.HookResult:
        return hw.stop("nothing to do")

    ask = Call("send_message", {"to": "lead", "text": "which one?", "expects_reply": True})
    with hw.Team(hooks=hooks) as team:
        ada = team.spawn("ada", prompt="go", model=hw.Scripted([ask, "I wait", "thank you"]))
        team.join_sync(timeout=20)
        assert (ada.outcome, ada.status_detail["for"]) == (None, ["lead"])
        team.send("@ada the first")
        team.join_sync(timeout=20)
        assert (ada.outcome, ada.result.reason) == ("hook_stop", "nothing to do")


def test_routed_messages_can_be_changed_redirected_and_dropped() -> None:
    hooks = hw.HookChain()

    @hooks.on("message_routed")
    def route(event: hw.MessageRouted) -> Any:
        if "secret" in event.text:
            return hw.skip("no secrets")
        if "for bob" in event.text:
            return {"recipients": ["carol"]}
        return {"text": event.text.upper()}

    with hw.Team(hooks=hooks) as team:
        bob = team.spawn("bob", model=hw.Scripted(["ok"] * 5))
        carol = team.spawn("carol", model=hw.Scripted(["ok"] * 5))
        script = [send("the secret is 7"), send("hello"), send("this is for bob"), "ok"]
        ada = team.spawn("ada", prompt="go", model=hw.Scripted(script))
        team.join_sync(timeout=20)
        assert "no secrets" in results(ada)[0] and results(ada)[2].startswith("sent to carol")
        assert "HELLO" in bob.history[0].text and "this is for bob" in carol.history[0].text
        with pytest.raises(hw.TeamError, match="dropped by the hook"):
            team.send("the secret is 8", to="bob")
        assert team.send("good", to="bob").text == "GOOD"
        assert team.send("this is for bob", to="bob").recipients == ["carol"]


def test_hooks_see_a_send_before_it_goes_out() -> None:
    """`send_message` is a tool call like any other: gates may refuse it."""
    hooks = hw.HookChain()

    @hooks.on("pre_tool_execution", role="gate")
    def quiet(event: hw.PreToolExecution) -> Any:
        return hw.skip("silence") if event.tool_name == "send_message" else None

    with hw.Team(hooks=hooks) as team:
        bob = team.spawn("bob", model=hw.Scripted([]))
        ada = team.spawn("ada", prompt="go", model=hw.Scripted([send("hello"), "ok"]))
        team.join_sync(timeout=20)
        assert "silence" in results(ada)[0] and bob.history == []


def test_gates_let_teammates_talk_and_ask_the_team_s_approver(tmp_path: Path) -> None:
    asked: list[Any] = []

    def approver(request: hw.ApprovalRequest) -> bool:
        asked.append((request.agent, request.tool_name))
        return request.agent == "ada"

    hooks = hw.HookChain()
    hooks.add(hw.PermissionRules(allow=["Read"]))
    write = Call("write_file", {"path": "a.txt", "content": "x"})
    script = [send("hello", "lead"), Call("task_add", {"title": "t"}), write, "ok"]
    with hw.Team(hooks=hooks, tools=hw.workspace_tools(tmp_path), approver=approver, cwd=tmp_path) as team:
        ada = team.spawn("ada", prompt="go", model=hw.Scripted(script))
        team.join_sync(timeout=20)
        assert asked == [("ada", "write_file")] and (tmp_path / "a.txt").read_text() == "x"
        bob = team.spawn("bob", prompt="go", model=hw.Scripted([write, "ok"]))
        team.join_sync(timeout=20)
        assert "refused" in results(bob)[0] and ada.outcome is None
    with hw.Team(hooks=hooks, tools=hw.workspace_tools(tmp_path), cwd=tmp_path) as team:
        bob = team.spawn("bob", prompt="go", model=hw.Scripted([write, "ok"]))
        team.join_sync(timeout=20)
        assert "nobody is there to give it" in results(bob)[0]
    with pytest.raises(ValueError, match="Deferred"):
        hw.Team(hw.Scripted([]), approver=hw.Deferred())


def test_a_failing_hook_follows_its_role_and_others_go_on() -> None:
    hooks = hw.HookChain()

    @hooks.on("pre_tool_execution", role="gate")
    def broken(event: hw.PreToolExecution) -> None:
        if event.agent.name == "ada":
            raise RuntimeError("broken gate")

    with hw.Team(hooks=hooks, tools=[build]) as team:
        ada = team.spawn("ada", prompt="go", model=hw.Scripted([Call("build", {}), "ok"]))
        bob = team.spawn("bob", prompt="go", model=hw.Scripted([Call("build", {}), "ok"]))
        team.join_sync(timeout=20)
        assert "built" not in results(ada)[0] and results(bob) == ["built"]
        assert (ada.status, bob.status) == ("waiting", "waiting")


def test_a_hook_that_stops_ends_as_hook_stop() -> None:
    hooks = hw.HookChain()
    hooks.on("pre_llm_request", role="gate")(lambda event: hw.stop("enough"))
    with hw.Team(hw.Scripted(["never"]), hooks=hooks) as team:
        ada = team.spawn("ada", prompt="go")
        team.join_sync(timeout=20)
        assert (ada.outcome, ada.status, ada.result.reason) == ("hook_stop", "failed", "enough")


def test_a_mode_holds_for_teammates_that_come(tmp_path: Path) -> None:
    hooks = hw.HookChain()
    hooks.add(hw.ReviewGate(when="review"))
    write = Call("write_file", {"path": "a.txt", "content": "x"})
    with hw.Team(hooks=hooks, tools=hw.workspace_tools(tmp_path), cwd=tmp_path, mode="review") as team:
        ada = team.spawn("ada", prompt="go", model=hw.Scripted([write, send("seen", "lead"), "ok"]))
        team.join_sync(timeout=20)
        assert ada.alive and not (tmp_path / "a.txt").exists() and ada.history[2].is_error
        assert results(ada)[1].startswith("sent to lead")


def test_disabled_tools_and_hooks() -> None:
    hooks = hw.HookChain()
    heard: list[str] = []

    @hooks.on("pre_llm_request", name="listen")
    def listen(event: hw.PreLlmRequest) -> None:
        heard.append(event.agent.name)

    seen: list[list[str]] = []

    def model(request: hw.Request) -> str:
        seen.append([tool["name"] for tool in request.tools])
        return "ok"

    with hw.Team(model, hooks=hooks, tools=[build]) as team:
        team.spawn("ada", prompt="go", disabled_tools=["build", "task_add"], disabled_hooks=["listen"])
        team.join_sync(timeout=20)
        team.spawn("bob", prompt="go", may_spawn=True)
        team.join_sync(timeout=20)
        assert heard == ["bob"]
        assert "build" not in seen[0] and "task_add" not in seen[0] and "send_message" in seen[0]
        assert {"build", "task_add", "spawn_teammate"} <= set(seen[1]) and "spawn_teammate" not in seen[0]


def test_teammates_start_others_where_they_may() -> None:
    def spawn(name: str) -> hw.ToolCall:
        return Call("spawn_teammate", {"name": name, "role": "helps", "prompt": "help"})

    with hw.Team(hw.Scripted(["ok"] * 9), max_depth=1) as team:
        ada = team.spawn(
            "ada", prompt="go", model=hw.Scripted([spawn("bob"), spawn("bob"), "ok", "ok"]), may_spawn=True
        )
        team.join_sync(timeout=20)
        assert "as deep as it may be" in results(ada)[0]
    with hw.Team(hw.Scripted(["ok"] * 9)) as team:
        model = hw.Scripted([spawn("bob"), spawn("bob"), spawn("lead"), "ok"])
        ada = team.spawn("ada", prompt="go", model=model, may_spawn=True)
        team.join_sync(timeout=20)
        assert results(ada)[0] == "bob has joined the team" and "already" in results(ada)[1]
        assert [mate.name for mate in team.teammates] == ["ada", "bob"]
        assert team["bob"]._view["parent"] == "ada"


def test_a_busy_cell_does_not_stall_the_team() -> None:
    """The loop of whoever leads is blocked; the team works on its own."""

    async def cell() -> str | None:
        with hw.Team(hw.Scripted([Call("work_done", {"summary": "meanwhile"})])) as team:
            ended = threading.Event()
            team.on_event(lambda event: ended.set() if event.type == "ended" else None)
            ada = team.spawn("ada", prompt="go")
            assert ended.wait(20)  # Nothing else runs on this loop until then.
            return ada.result.summary

    assert asyncio.run(cell()) == "meanwhile"


def test_a_team_on_a_loop_of_ones_own() -> None:
    async def main() -> list[str]:
        threads: set[str] = set()

        async def model(request: hw.Request) -> str:
            threads.add(threading.current_thread().name)
            return "ok"

        loop = asyncio.get_running_loop()
        async with hw.Team(hw.FunctionModel(model), loop=loop) as team:
            events = team.events()
            team.spawn("ada", prompt="go")
            await team.join(timeout=20)
            with pytest.raises(RuntimeError, match=r"await team\.join"):
                team.join_sync()
            assert threads == {threading.current_thread().name}
            events.close()
            return [event.type async for event in events]

    kinds = asyncio.run(main())
    assert kinds[0] == "joined" and "draft" in kinds


def test_the_context_channel_is_short() -> None:
    with hw.Team(hw.Scripted([send("done", "lead"), Call("work_done", {"summary": "x"})])) as team:
        events, all_events = team.events("context"), team.events()
        team.spawn("ada", prompt="go")
        team.join_sync(timeout=20)
        events.close()
        all_events.close()

        async def kinds(stream: hw.TeamEvents) -> list[str]:
            return [event.type async for event in stream]

        short, everything = asyncio.run(kinds(events)), asyncio.run(kinds(all_events))
        assert set(short) <= {"joined", "mail", "ended", "idle"} and "ended" in short
        assert {"status", "turn_started", "tool_finished"} <= set(everything)
        with pytest.raises(ValueError, match="channel is"):
            team.events("loud")  # type: ignore[arg-type]


def test_an_agent_leads_a_team() -> None:
    team = hw.Team(hw.Scripted([send("4 files", "lead"), Call("work_done", {"summary": "counted"})]))
    script = [
        Call("task_add", {"title": "count the files"}),
        Call("spawn_teammate", {"name": "ada", "role": "counts", "prompt": "count"}),
        Call("spawn_teammate", {"name": "lead", "role": "counts", "prompt": "count"}),
        Call("send_message", {"to": ["eve"], "text": "hello"}),
        Call("wait_for_team", {"seconds": 20}),
        Call("list_team", {}),
        "4 files",
    ]
    with team:
        result = asyncio.run(hw.Agent(hw.Scripted(script), tools=team.lead_tools()).run("how many files?"))
        said = [call.result for call in result.tool_calls]
        assert said[0] == "added t1" and said[1] == "ada has joined the team"
        assert "cannot be a teammate's name" in said[2] and "there are: ada, lead" in said[3]
        assert "4 files" in said[4] and "ada has ended (done): counted" in said[4] and "t1 [open]" in said[5]


def test_two_that_tell_each_other_the_same_are_stopped() -> None:
    with hw.Team() as team:
        thanks = hw.FunctionModel(
            lambda request: "" if request.messages[-1].role == "tool" else send("Thank you!", "bob")
        )
        welcome = hw.FunctionModel(
            lambda request: "" if request.messages[-1].role == "tool" else send("You're welcome", "ada")
        )
        ada, bob = team.spawn("ada", model=thanks), team.spawn("bob", model=welcome)
        team.send("@ada say thanks")
        team.join_sync(timeout=20)
        assert (ada.rounds, bob.rounds) == (6, 6)
        assert "tell each other the same for the third time" in results(bob)[-1]


def test_two_that_undo_each_other_s_work_are_stopped(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")

    def edit(old: str, new: str) -> hw.ToolCall:
        return Call("edit_file", {"path": "a.txt", "old_text": old, "new_text": new})

    def undoing(old: str, new: str, other: str) -> hw.FunctionModel:
        def model(request: hw.Request) -> Any:
            last = request.messages[-1]
            if last.role == "tool":
                number = sum(message.role == "tool" for message in request.messages)
                return send(f"your turn {number}", other) if "to and fro" not in last.text and number % 2 else ""
            return edit(old, new)

        return hw.FunctionModel(model)

    with hw.Team(tools=hw.workspace_tools(tmp_path), cwd=tmp_path) as team:
        ada = team.spawn("ada", model=undoing("one", "two", "bob"))
        bob = team.spawn("bob", model=undoing("two", "one", "ada"))
        team.send("@ada begin")
        team.join_sync(timeout=30)
        said = [*results(ada), *results(bob)]
        assert any("the same calls change a.txt to and fro" in text for text in said), said
        assert (tmp_path / "a.txt").read_text() in ("one", "two") and ada.rounds < 20


def test_a_snapshot_is_what_was_really_sent() -> None:
    hooks = hw.HookChain()

    @hooks.on("pre_llm_request")
    def add(event: hw.PreLlmRequest) -> Any:
        return {"additional_context": "the time is noon"}

    with hw.Team(hw.Scripted(["ok"]), hooks=hooks) as team:
        ada = team.spawn("ada", prompt="what time is it?")
        assert team.spawn("bob").snapshot is None
        team.join_sync(timeout=20)
        assert ada.snapshot is not None and ada.snapshot.system is not None
        said = [message.text for message in ada.snapshot.messages]
        assert "what time is it?" in said[0] and "the time is noon" in said[-1]
