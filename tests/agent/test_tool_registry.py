"""Tools that are switched off, available only sometimes, or loaded by the model when it needs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from runs import Run

import hookwright as hw


def weather(city: str) -> str:
    """Tells the weather of a city.

    It rains most of the time.
    """
    return f"It rains in {city}."


def look() -> str:
    """Looks around."""
    return "all is fine"


class Watched:
    """A model that answers from a list and keeps which tools it was told of."""

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)
        self.told: list[list[str]] = []
        self.described: dict[str, str] = {}

    def __call__(self, request: hw.Request) -> Any:
        self.told.append([tool["name"] for tool in request.tools])
        self.described = {tool["name"]: tool["description"] for tool in request.tools}
        return self.replies.pop(0)


def results(result: hw.RunResult) -> list[str]:
    return [call.result for call in result.tool_calls]


def load(name: str) -> hw.ToolCall:
    return hw.ToolCall("load_tool", {"name": name})


def call(city: str = "Bergen") -> hw.ToolCall:
    return hw.ToolCall("weather", {"city": city})


def with_weather(**options: Any) -> hw.ToolRegistry:
    registry = hw.ToolRegistry([look])
    registry.add(weather, **{"deferred": True, **options})
    return registry


def test_a_deferred_tool_is_told_of_once_it_is_loaded(run: Run) -> None:
    model = Watched(call(), load("weather"), call(), "done")
    agent = hw.Agent(hw.FunctionModel(model), tools=with_weather())
    result = run(agent, "go")
    assert model.told == [["look", "load_tool"]] * 2 + [["look", "weather", "load_tool"]] * 2
    assert "- weather: Tells the weather of a city." in model.described["load_tool"]
    assert "most of the time" not in model.described["load_tool"]
    first, second, third = results(result)
    assert "the tool weather is not loaded" in first and "load_tool" in first
    assert second.startswith("weather can be called from now on. Tells the weather")
    assert third == "It rains in Bergen."


def test_what_was_loaded_stays_loaded_in_the_conversation(run: Run, tmp_path: Path) -> None:
    agent = hw.Agent(hw.FunctionModel(Watched(load("weather"), "loaded")), tools=with_weather(), session=tmp_path / "s")
    run(agent, "load it")
    agent.session.close()
    model = Watched(call("Oslo"), "done")
    again = hw.Agent(hw.FunctionModel(model), tools=with_weather(), session=tmp_path / "s")
    assert results(run(again, "and in Oslo?")) == ["It rains in Oslo."]
    other = Watched("hello")
    run(hw.Agent(hw.FunctionModel(other), tools=with_weather()), "go")
    assert other.told == [["look", "load_tool"]]


def test_loading_what_is_not_there_says_what_is(run: Run) -> None:
    model = Watched(load("wether"), call(), "done")
    result = run(hw.Agent(hw.FunctionModel(model), tools=with_weather()), "go")
    first, second = results(result)
    assert "there is no tool wether to load" in first and "Did you mean weather?" in first
    assert "not loaded" in second


def test_a_gate_that_refuses_the_loading_keeps_the_tool_away(run: Run) -> None:
    hooks = hw.HookChain()
    hooks.on("pre_tool_execution", role="gate", name="no", tool_name="load_tool")(lambda event: hw.skip("not now"))
    model = Watched(load("weather"), call(), "done")
    result = run(hw.Agent(hw.FunctionModel(model), tools=with_weather(), hooks=hooks), "go")
    assert "not loaded" in results(result)[1]


def test_review_mode_lets_tools_be_loaded(run: Run) -> None:
    hooks = hw.HookChain()
    hooks.add(hw.ReviewGate())
    model = Watched(load("weather"), "done")
    result = run(hw.Agent(hw.FunctionModel(model), tools=with_weather(), hooks=hooks), "go")
    assert not result.tool_calls[0].is_error


def test_a_tool_that_is_disabled_or_not_available_is_not_there(run: Run) -> None:
    there = [True]
    registry = with_weather(deferred=False, available=lambda: there[0])
    model = Watched(call(), "one", call(), hw.ToolCall("look", {}), "two", hw.ToolCall("look", {}), "three")
    agent = hw.Agent(hw.FunctionModel(model), tools=registry)
    assert results(run(agent, "go")) == ["It rains in Bergen."]
    there[0] = False
    refused, fine = results(run(agent, "go"))
    assert "there is no tool named" in refused and "Tools: look." in refused
    assert fine == "all is fine"
    registry.disable("look")
    assert "there is no tool named" in results(run(agent, "go"))[0]
    assert model.told == [["look", "weather"]] * 2 + [["look"]] * 3 + [[]] * 2
    registry.enable("look")
    assert repr(registry) == "<ToolRegistry: look, weather>"


def test_what_cannot_tell_whether_it_is_available_is_not(run: Run) -> None:
    model = Watched("done")
    agent = hw.Agent(hw.FunctionModel(model), tools=with_weather(deferred=False, available=lambda: 1 / 0))
    with pytest.warns(UserWarning, match="whether the tool weather is available"):
        run(agent, "go")
    assert model.told == [["look"]]


def test_mistakes_are_named() -> None:
    registry = with_weather()
    assert (len(registry), "weather" in registry, "x" in registry) == (2, True, False)
    assert [getattr(tool, "name", None) for tool in registry] == ["look", "weather"]
    assert repr(registry) == "<ToolRegistry: look, weather (deferred)>"
    with pytest.raises(ValueError, match="two tools have the same name: weather"):
        registry.add(weather)
    with pytest.raises(KeyError, match="did you mean 'weather'"):
        registry.disable("wether")
    with pytest.raises(ValueError, match="load_tool is the name"):
        registry.add(hw.tool(look, name="load_tool"))
    assert len(registry) == 2
