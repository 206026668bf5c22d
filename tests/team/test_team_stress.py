"""Thirty teammates on real threads write to each other at random while some are cancelled: nothing is lost or comes twice.

``TEAM_SEEDS=50`` tries more seeds.
"""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest

import hookwright as hw

NAMES = [f"m{number}" for number in range(30)]
REQUESTS = 1500


class Chatter:
    """A model that does this and that, until all requests are used."""

    def __init__(self, seed: int) -> None:
        self.seed, self.used, self.lock = seed, 0, threading.Lock()

    def of(self, name: str) -> hw.FunctionModel:
        chance = random.Random(f"{self.seed} {name}")

        def model(request: hw.Request) -> Any:
            with self.lock:
                self.used += 1
                number = self.used
            what = chance.random()
            if number > REQUESTS or what > 0.8:
                return "nothing more"
            if what < 0.6:
                others = [other for other in chance.sample(NAMES, chance.randint(1, 3)) if other != name] or ["lead"]
                private = chance.random() < 0.3
                return hw.ToolCall("send_message", {"to": others, "text": f"letter {number}.", "private": private})
            if what < 0.66:
                return hw.ToolCall("work_done", {"summary": "for now"})
            if what < 0.72:
                return hw.ToolCall("task_add", {"title": f"task {number}"})
            return hw.ToolCall("task_claim", {"id": f"t{chance.randint(1, 9)}"})

        return hw.FunctionModel(model, inline=chance.random() < 0.5)


def received(mate: hw.Teammate) -> Counter[str]:
    """How often each letter that is addressed to a teammate stands in its conversation."""
    found: Counter[str] = Counter()
    for message in mate.history:
        for part in message.text.split("<message ")[1:]:
            found[part.split(">\n", 1)[1].split("\n</message>")[0]] += 1
    return found


@pytest.mark.parametrize("seed", range(int(os.environ.get("TEAM_SEEDS", "3"))))
def test_nothing_is_lost_and_nothing_comes_twice(seed: int) -> None:
    chance, chatter = random.Random(seed), Chatter(seed)
    with hw.Team(max_rounds=10**6, max_repeated_calls=None) as team:
        for name in NAMES:
            team.spawn(name, model=chatter.of(name), idle_timeout=0.02 if chance.random() < 0.2 else None)
        for number in range(60):
            with suppress(hw.TeamError):  # It was cancelled.
                team.send(f"order {number}.", to=chance.choice(NAMES) if chance.random() < 0.8 else None)
            if chance.random() < 0.05:
                team.cancel(chance.choice(NAMES))
        team.join_sync(timeout=100)
        letters = {mate.name: received(mate) for mate in team.teammates}
        checked = 0
        for mate in team.teammates:
            assert all(count == 1 for count in letters[mate.name].values()), f"{mate.name} got a letter twice"
            open_calls: dict[str, hw.ToolCall] = {}
            for message in mate.history:
                open_calls.update({call.id: call for call in message.tool_calls})
                if message.role != "tool" or not message.text.startswith("sent to"):
                    continue
                call = open_calls[str(message.tool_call_id)]
                for to in call.arguments["to"]:
                    if to != "lead" and team[to].outcome in (None, "done", "idle"):
                        checked += 1
                        assert letters[to][call.arguments["text"]] == 1, f"{to} never got {call.arguments['text']}"
        assert checked > 20
        told = Counter(letter.sender for letter in team.receive() if "has ended" in letter.text)
        assert all(told[mate.name] for mate in team.teammates if mate.outcome is not None)
