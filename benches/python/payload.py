"""What must cost nothing: an event without listeners, and a message list that no hook looks at."""

from __future__ import annotations

from typing import Any

import hookwright as hw

from .measure import Timed, clock, side_by_side
from .table import Section, duration, multiple, verdict

#: The most that an event may cost to which nobody listens, in seconds.
UNHEARD_BAR = 0.3e-6
#: The most that 10 MB may cost beside a few bytes: less than a single pass over the data would take.
LARGE_BAR = 1.5


def messages(size: int) -> list[dict[str, Any]]:
    """Messages with ``size`` bytes of text among them, in pieces of 10 kB at most."""
    piece = min(size, 10_000)
    return [{"role": "user", "content": "x" * piece} for _ in range(size // piece)]


def _run(chain: hw.HookChain, **fields: Any) -> Timed:
    def timed(number: int) -> float:
        run = chain.run
        start = clock()
        for _ in range(number):
            run("pre_llm_request", **fields)
        return clock() - start

    return timed


def _unheard() -> Timed:
    chain = hw.HookChain()
    chain.add(lambda event: None, "turn_end", name="elsewhere")
    arguments = {"command": "ls"}

    def timed(number: int) -> float:
        run = chain.run
        start = clock()
        for _ in range(number):
            run("pre_tool_execution", tool_name="shell", tool_arguments=arguments)
        return clock() - start

    return timed


def sections(**settings: Any) -> list[Section]:
    """The table of this module."""
    chain = hw.HookChain()
    for index in range(10):
        chain.add(lambda event: None, "pre_llm_request", name=f"hook_{index}")
    small, large = messages(100), messages(10_000_000)
    series = side_by_side(
        {
            "unheard": _unheard(),
            "small": _run(chain, messages=small, model="m"),
            "large": _run(chain, messages=large, model="m"),
        },
        **settings,
    )
    outcome = chain.run("pre_llm_request", messages=large, model="m")
    assert [run.status for run in outcome.runs] == ["ok"] * 10
    unheard, ratio = series.median("unheard"), series.ratio("large", "small")
    return [
        Section(
            "What must cost nothing",
            ["case", "time", "bar"],
            [
                ["an event that nobody subscribed to", duration(unheard), f"0.3 us: {verdict(unheard, UNHEARD_BAR)}"],
                ["10 hooks, 100 bytes of messages", duration(series.median("small")), ""],
                [
                    "10 hooks, 10 MB of messages, untouched",
                    f"{duration(series.median('large'))} ({multiple(ratio)})",
                    f"not copied, {LARGE_BAR:g}x: {verdict(ratio, LARGE_BAR)}",
                ],
            ],
        )
    ]
