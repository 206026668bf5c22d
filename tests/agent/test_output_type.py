"""Answers that have a type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pydantic
import pytest
from runs import Run

import hookwright as hw


class Finding(pydantic.BaseModel):
    file: str
    line: int


GOOD = '{"file": "a.py", "line": 3}'


@pytest.mark.parametrize(
    "answer", [GOOD, f"```json\n{GOOD}\n```", f"Here it is:\n```\n{GOOD}\n```\nDone.", f"I found {GOOD} for you."]
)
def test_the_answer_is_a_value(run: Run, answer: str) -> None:
    result = run(hw.Agent(hw.Scripted([answer]), output_type=Finding), "find it")
    assert result.output == Finding(file="a.py", line=3)
    assert (result.text, result.rounds) == (answer, 1)


def test_the_model_is_told_the_schema_and_a_bad_answer_is_sent_back_once(run: Run) -> None:
    asked: list[tuple[str, str]] = []

    def model(request: hw.Request) -> str:
        asked.append((request.system or "", request.messages[-1].text))
        return '{"file": "a.py", "line": "three"}' if len(asked) == 1 else GOOD

    result = run(hw.Agent(model, system="Be brief.", output_type=Finding), "find it")
    assert result.output == Finding(file="a.py", line=3)
    assert asked[0][0].startswith("Be brief.\n\n") and '"required": ["file", "line"]' in asked[0][0]
    assert "line: Input should be a valid integer" in asked[1][1]
    assert result.messages[2].sender == "hookwright"


def test_an_answer_that_stays_bad_is_an_error(run: Run) -> None:
    agent = hw.Agent(hw.Scripted(["no", "still not", "unused"]), output_type=Finding)
    with pytest.raises(hw.ModelError, match="does not have the type that was asked for, twice") as caught:
        run(agent, "find it")
    assert (caught.value.kind, caught.value.result.output, caught.value.result.rounds) == ("invalid_reply", None, 2)
    # The conversation can go on.
    assert [message.role for message in agent.history] == ["user", "assistant", "user", "assistant"]


def test_tools_come_before_the_answer(run: Run) -> None:
    @hw.tool(inline=True)
    def look() -> str:
        return "line 3"

    agent = hw.Agent(hw.Scripted([hw.ToolCall("look", {}), GOOD]), tools=[look], output_type=Finding)
    assert run(agent, "find it").output.line == 3


@dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    ("type_", "answer", "value"),
    [
        (Point, '{"x": 1}', Point(1)),
        (list[int], "[1, 2]", [1, 2]),
        (bool, "true", True),
        (dict[str, int], '{"a": 1}', {"a": 1}),
    ],
)
def test_types_of_every_kind(type_: Any, answer: str, value: Any) -> None:
    assert hw.Agent(hw.Scripted([answer]), output_type=type_).run_sync("go").output == value


def test_a_type_without_a_schema_is_refused() -> None:
    with pytest.raises(TypeError, match="has no JSON Schema"):
        hw.Agent(hw.Scripted([]), output_type=object())


def test_a_run_without_a_type_has_no_output() -> None:
    assert hw.Agent(hw.Scripted([GOOD])).run_sync("go").output is None
