"""Calls side by side: as many as allowed, in order where it counts, each once."""

from __future__ import annotations

import threading

from runs import Run, call, check_history, told

import hookwright as hw


class Gauge:
    """How many are inside at once, and who went in when."""

    def __init__(self) -> None:
        self.inside = self.most = 0
        self.order: list[str] = []
        self._lock = threading.Lock()

    def __call__(self, name: str) -> Gauge:
        with self._lock:
            self.order.append(name)
        return self

    def __enter__(self) -> None:
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.inside -= 1


def test_calls_that_may_run_side_by_side_do(run: Run) -> None:
    barrier = threading.Barrier(4)

    @hw.tool(effect="read")
    def meet(number: int) -> int:
        """Comes back when all have come."""
        barrier.wait(20)
        return number

    agent = hw.Agent(hw.Scripted([[call("meet", number=number) for number in range(4)], "ok"]), tools=[meet])
    run(agent, "go")
    assert told(agent) == ["0", "1", "2", "3"]


def test_no_more_than_allowed_run_at_once_and_the_next_begins_when_one_ends(run: Run) -> None:
    gauge = Gauge()
    last_began = threading.Event()

    @hw.tool(effect="read")
    def work(number: int) -> int:
        """The first comes back only when the last has begun."""
        with gauge(str(number)):
            if number == 0:
                assert last_began.wait(20)
            if number == 4:
                last_began.set()
        return number

    agent = hw.Agent(
        hw.Scripted([[call("work", number=number) for number in range(5)], "ok"]), tools=[work], max_parallel=2
    )
    run(agent, "go")
    assert told(agent) == ["0", "1", "2", "3", "4"]
    assert gauge.most == 2


def test_a_call_that_may_not_runs_alone_and_in_its_place(run: Run) -> None:
    gauge = Gauge()

    @hw.tool(effect="read")
    def read(name: str) -> str:
        """Reads."""
        with gauge(name):
            assert "w" not in gauge.order or name > "b"
        return name

    @hw.tool(effect="write")
    def write(name: str) -> str:
        """Writes."""
        with gauge(name):
            assert gauge.inside == 1
        return name

    names = ["a1", "a2", "w", "c1", "c2", "x", "y"]
    calls = [call("write" if name in ("w", "x", "y") else "read", name=name) for name in names]
    agent = hw.Agent(hw.Scripted([calls, "ok"]), tools=[read, write])
    result = run(agent, "go")
    assert told(agent) == names, result.tool_calls
    assert (sorted(gauge.order[:2]), gauge.order[2], sorted(gauge.order[3:5])) == (["a1", "a2"], "w", ["c1", "c2"])
    assert gauge.order[5:] == ["x", "y"]


def test_hooks_see_the_calls_in_order_before_and_behind_whichever_ends_first(run: Run) -> None:
    second_is_done = threading.Event()
    seen: list[tuple[str, str]] = []
    hooks = hw.HookChain()
    for event in ("pre_tool_execution", "post_tool_execution"):
        hooks.add(lambda event: seen.append((event.event, event.tool_arguments["name"])), event, name=event)

    @hw.tool(effect="read")
    def read(name: str) -> str:
        """The first ends last."""
        if name == "a":
            assert second_is_done.wait(20)
        if name == "b":
            second_is_done.set()
        return name

    agent = hw.Agent(hw.Scripted([[call("read", name=name) for name in "abc"], "ok"]), tools=[read], hooks=hooks)
    run(agent, "go")
    assert seen == [(event, name) for event in ("pre_tool_execution", "post_tool_execution") for name in "abc"]


def test_a_tool_runs_once_though_a_hook_behind_it_fails_or_stops(run: Run) -> None:
    for role in ("hook", "gate", "observer"):
        hooks = hw.HookChain()
        hooks.add(lambda event: 1 / 0, "post_tool_execution", name="broken", role=role)
        entered: list[int] = []

        @hw.tool(effect="read")
        def work(number: int, entered: list[int] | None = None) -> None:
            """Counts."""

        def count(number: int) -> str:
            """Counts."""
            entered.append(number)  # noqa: B023
            return "x"

        tool = hw.tool(count, effect="read")
        agent = hw.Agent(
            hw.Scripted([[call("count", number=1), call("count", number=2)], "ok"]), tools=[tool], hooks=hooks
        )
        run(agent, "go")
        assert sorted(entered) == [1, 2]
        check_history(agent.history)
