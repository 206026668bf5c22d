"""Ends: cancelled in each state, crashed, stopped by a hook, out of budget. Others go on."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import hookwright as hw

Call = hw.ToolCall


class Held:
    """Something that has begun and does not end by itself."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.release = threading.Event()

    def block(self, *_: Any) -> str:
        self.begun.set()
        self.release.wait(30)
        return "ok"

    async def wait(self, *_: Any) -> str:
        self.begun.set()
        await asyncio.sleep(3600)
        return "ok"


@pytest.fixture
def held() -> Iterator[Held]:
    it = Held()
    yield it
    it.release.set()


def thinking(held: Held) -> dict[str, Any]:
    return {"model": held.block}


def thinking_async(held: Held) -> dict[str, Any]:
    return {"model": held.wait}


def in_tool(held: Held) -> dict[str, Any]:
    @hw.tool
    def build() -> str:
        """Builds."""
        return held.block()

    return {"model": hw.Scripted([Call("build", {})]), "tools": [build]}


def in_async_tool(held: Held) -> dict[str, Any]:
    @hw.tool
    async def build() -> str:
        """Builds."""
        return await held.wait()

    return {"model": hw.Scripted([Call("build", {})]), "tools": [build]}


def in_hook(held: Held) -> dict[str, Any]:
    hooks = hw.HookChain()

    @hooks.on("pre_llm_request")
    async def slow(event: hw.PreLlmRequest) -> None:
        if event.agent.name == "ada":
            await held.wait()

    return {"model": hw.Scripted(["ok"]), "hooks": hooks}


def in_idle_hook(held: Held) -> dict[str, Any]:
    hooks = hw.HookChain()

    @hooks.on("teammate_idle", timeout=60)
    async def slow(event: hw.TeammateIdle) -> None:
        if event.agent.name == "ada":
            await held.wait()

    return {"model": hw.Scripted(["ok"]), "hooks": hooks}


def waiting(held: Held) -> dict[str, Any]:
    held.begun.set()
    return {"model": hw.Scripted(["ok"])}


def asking(held: Held) -> dict[str, Any]:
    hooks = hw.HookChain()
    hooks.on("pre_tool_execution", role="gate")(lambda event: hw.ask("sure?"))

    @hw.tool
    def build() -> str:
        """Builds."""
        return "built"

    return {"model": hw.Scripted([Call("build", {})]), "tools": [build], "hooks": hooks, "approver": held.block}


def compacting(held: Held) -> dict[str, Any]:
    def model(request: hw.Request) -> Any:
        if not request.tools:  # A summary is asked for without tools.
            held.block()
        return [Call("read", {"n": len(request.messages)})]

    @hw.tool
    def read(n: int) -> str:
        """Reads."""
        return f"{n} " + "word " * 900

    return {"model": model, "tools": [read], "context_window": 6000, "reserved_tokens": 500, "auto_compact": 0.3}


STATES: list[Callable[[Held], dict[str, Any]]] = [
    thinking, thinking_async, in_tool, in_async_tool, in_hook, in_idle_hook, waiting, asking, compacting,
]  # fmt: skip


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_cancel_in_each_state(state: Callable[[Held], dict[str, Any]], held: Held) -> None:
    options = state(held)
    with hw.Team(**options) as team:
        bob = team.spawn("bob", model=hw.Scripted(["I am here"]))
        ada = team.spawn("ada", prompt="go")
        assert held.begun.wait(30)
        if state is waiting:
            team.join_sync(timeout=20)
        now = {in_tool: "working", in_async_tool: "working", waiting: "waiting", compacting: "compacting"}
        assert ada.status == now.get(state, "thinking")
        began = time.perf_counter()
        team.cancel("ada")
        asyncio.run(ada.wait(timeout=20))
        # Not what decides: it is there so that a look at the report shows it.
        print(f"cancelled {state.__name__} in {(time.perf_counter() - began) * 1000:.1f} ms")
        assert (ada.outcome, ada.status) == ("cancelled", "cancelled")
        open_calls = {call.id for message in ada.history for call in message.tool_calls}
        assert open_calls == {message.tool_call_id for message in ada.history if message.role == "tool"}
        if state in (in_tool, in_async_tool):
            assert "[cancelled]" in ada.history[-1].text
        team.send("@bob hello")
        assert not held.release.is_set()
        team.join_sync(timeout=20)
        assert bob.result.text == "I am here"
        assert [letter.text for letter in team.receive()] == ["ada has ended (cancelled)"]


def test_cancel_in_a_retry_s_wait() -> None:
    """A server that refuses, and asks to come back in an hour."""
    import http.server

    class Refusing(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(503)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    policy = hw.RetryPolicy(overloaded=(3, 3000.0), longest_wait=3600, jitter=False, deadline=None)
    model = hw.OpenAI("m", base_url=f"http://127.0.0.1:{server.server_port}/v1", api_key="k", retry=policy)
    retrying = threading.Event()
    with hw.Team(model) as team:
        team.on_event(lambda event: retrying.set() if event.type == "status" and event.status == "retrying" else None)
        ada = team.spawn("ada", prompt="go")
        assert retrying.wait(30)
        assert ada.status == "retrying" and (ada.status_detail["attempt"], ada.status_detail["of"]) == (1, 4)
        team.cancel("ada")
        team.join_sync(until="ended", timeout=20)
        assert ada.outcome == "cancelled"
    server.shutdown()


def test_cancel_all(held: Held) -> None:
    with hw.Team(held.wait) as team:
        mates = [team.spawn(f"m{number}", prompt="go" if number % 2 else None) for number in range(20)]
        assert held.begun.wait(20)
        team.cancel()
        team.join_sync(until="ended", timeout=20)
        assert {mate.outcome for mate in mates} == {"cancelled"}
        assert len([letter for letter in team.receive() if "(cancelled)" in letter.text]) == 20


class Broken(hw.Team):
    """A team whose driver breaks in the middle of ada's turn."""

    def _publish(self, event: hw.TeamEvent) -> None:
        if event.teammate == "ada" and event.type == "turn_started":
            raise RuntimeError("the driver broke")
        super()._publish(event)


def test_a_crash_ends_one_and_is_announced() -> None:
    with Broken() as team:
        team.on_event(lambda event: None)
        bob = team.spawn("bob", model=hw.Scripted(["still here"]))
        ada = team.spawn("ada", prompt="go", model=hw.Scripted(["ok"]))
        team.join_sync(timeout=20)
        assert (ada.outcome, ada.result.reason) == ("crashed", "RuntimeError: the driver broke")
        assert isinstance(ada.error, RuntimeError)
        assert "ada has ended (crashed): RuntimeError: the driver broke" in [letter.text for letter in team.receive()]
        team.send("@bob hello")
        team.join_sync(timeout=20)
        assert bob.result.text == "still here"
        with pytest.raises(hw.TeamError, match="it ended as crashed"):
            team.send("@ada hello")


def test_a_tool_that_exits_is_a_failed_call() -> None:
    @hw.tool
    def leave() -> str:
        """Leaves."""
        raise SystemExit(3)

    with hw.Team(hw.Scripted([Call("leave", {}), "ok"]), tools=[leave]) as team:
        ada = team.spawn("ada", prompt="go")
        team.join_sync(timeout=20)
        assert ada.outcome is None and "SystemExit" in ada.history[2].text


def test_a_model_that_raises_is_an_error_with_its_traceback() -> None:
    def model(request: hw.Request) -> str:
        raise KeyError("no such thing")

    with hw.Team(model) as team:
        ada = team.spawn("ada", prompt="go")
        team.join_sync(timeout=20)
        assert ada.outcome == "error" and isinstance(ada.error, KeyError)
        assert "no such thing" in str(ada.result.reason)


def test_limits_of_one_and_of_all() -> None:
    def model(request: hw.Request) -> Any:
        return [Call("look", {"n": len(request.messages)})]

    @hw.tool
    def look(n: int) -> int:
        """Looks."""
        return n

    with hw.Team(model, tools=[look], max_rounds=3) as team:
        ada = team.spawn("ada", prompt="go")
        bob = team.spawn("bob", prompt="go", max_rounds=5)
        team.join_sync(timeout=20)
        assert (ada.outcome, ada.rounds, bob.outcome, bob.rounds) == ("limit", 3, "limit", 5)
        assert ada.result.reason == "the rounds of ada are used: 3 of 3"
    with hw.Team(model, tools=[look], max_calls=2, team_calls=5) as team:
        mates = [team.spawn(name, prompt="go") for name in ("ada", "bob")]
        team.join_sync(timeout=20)
        carol = team.spawn("carol", prompt="go", max_calls=50)
        team.join_sync(timeout=20)
        assert [(mate.outcome, mate.calls) for mate in mates] == [("limit", 2), ("limit", 2)]
        assert (carol.outcome, carol.result.reason) == ("limit", "the team's calls are used: 5 of 5")
    with hw.Team(model, tools=[look], team_rounds=4) as team:
        mates = [team.spawn(name, prompt="go") for name in ("ada", "bob")]
        board = team.join_sync(timeout=20)
        assert board.totals["rounds"] in (4, 5)  # Both may have been let through at the same instant.
        assert {mate.outcome for mate in mates} == {"limit"}
        assert "the team's rounds are used" in str(mates[0].result.reason)
    usage = hw.Usage(input_tokens=80, output_tokens=20)

    def counted(request: hw.Request) -> Any:
        return hw.Reply("", [Call("look", {"n": len(request.messages)})], usage=usage)

    with hw.Team(counted, tools=[look], max_tokens=250) as team:
        ada = team.spawn("ada", prompt="go")
        team.join_sync(timeout=20)
        assert (ada.outcome, ada.rounds, ada.usage.total_tokens) == ("limit", 3, 300)
    prices = {"input": 1e6, "output": 0.0}
    with hw.Team(counted, tools=[look], team_cost=100.0, prices=prices) as team:
        ada = team.spawn("ada", prompt="go")
        team.join_sync(timeout=20)
        assert (ada.outcome, ada.cost) == ("limit", 160.0)


def test_idle_timeout_ends_as_idle_and_a_message_brings_it_back() -> None:
    with hw.Team() as team:
        ada = team.spawn("ada", prompt="go", model=hw.Scripted(["ok", "ok again"]), idle_timeout=0.01)
        team.join_sync(until="ended", timeout=20)
        assert ada.outcome == "idle" and ada.status == "completed" and not ada.alive
        team.send("@ada again")
        team.join_sync(until="ended", timeout=20)
        assert (ada.outcome, ada.rounds) == ("idle", 2)
