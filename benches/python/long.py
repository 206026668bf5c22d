"""One long run: as many rounds of model -> tool as there are turns. In one process, nothing waits.

What a round costs must not grow with what was said before. Each framework runs its own agent class with a fake model
that asks for a tool as often as it is told, and one tool that returns its argument; nobody compacts anything.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Callable
from typing import Any

import agents
import pydantic_ai
import pydantic_ai.messages
import pydantic_ai.models.function
import pydantic_ai.usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

import hookwright as hw

from .measure import clock
from .table import Section, multiple

TURNS = (100, 300, 1000, 3000)
#: What peers cost grows with the square: more than so many turns would take half an hour.
PEERS_AT_MOST = 300
#: The most that a round of 3,000 may cost beside a round of 100.
FLAT = 2.0
ROUNDS = 3

Run = Callable[[int], None]


def hookwright_run(number: int) -> None:
    """hookwright with a model and a tool that are Python functions."""

    @hw.tool(inline=True)
    def echo(text: str) -> str:
        """Returns the text."""
        return text

    asked = 0

    def respond(request: Any) -> Any:
        nonlocal asked
        asked += 1
        return hw.ToolCall("echo", {"text": f"x{asked}"}) if asked <= number else "done"

    agent = hw.Agent(hw.FunctionModel(respond, inline=True), tools=[echo], max_rounds=number + 1)
    result = asyncio.run(agent.run("go"))
    if result.text != "done" or len(result.tool_calls) != number:
        raise AssertionError(result)


def openai_agents_run(number: int) -> None:
    """openai-agents with a model of ours; tracing is off."""
    from agents.usage import Usage

    asked = 0

    class Model(agents.Model):
        async def get_response(self, system_instructions: Any, input: Any, *rest: Any, **named: Any) -> Any:
            nonlocal asked
            asked += 1
            output: Any
            if asked > number:
                text = ResponseOutputText(text="done", type="output_text", annotations=[])
                output = ResponseOutputMessage(
                    id="msg_1", content=[text], role="assistant", status="completed", type="message"
                )
            else:
                output = ResponseFunctionToolCall(
                    call_id=f"call_{asked}", name="echo", arguments=f'{{"text": "x{asked}"}}', type="function_call"
                )
            return agents.ModelResponse(output=[output], usage=Usage(), response_id=None)

        def stream_response(self, *rest: Any, **named: Any) -> Any:
            raise NotImplementedError

    @agents.function_tool
    def echo(text: str) -> str:
        """Returns the text."""
        return text

    agent = agents.Agent(name="bench", model=Model(), tools=[echo])
    config = agents.RunConfig(tracing_disabled=True)
    result = asyncio.run(agents.Runner.run(agent, "go", run_config=config, max_turns=number + 2))
    if result.final_output != "done":
        raise AssertionError(result)


def pydantic_ai_run(number: int) -> None:
    """pydantic-ai with its own FunctionModel."""
    messages = pydantic_ai.messages
    asked = 0

    def respond(history: list[Any], info: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked > number:
            return messages.ModelResponse(parts=[messages.TextPart("done")])
        part = messages.ToolCallPart("echo", {"text": f"x{asked}"}, tool_call_id=f"call_{asked}")
        return messages.ModelResponse(parts=[part])

    agent = pydantic_ai.Agent(pydantic_ai.models.function.FunctionModel(respond))

    @agent.tool_plain
    async def echo(text: str) -> str:
        """Returns the text."""
        return text

    limits = pydantic_ai.usage.UsageLimits(request_limit=None)
    result = asyncio.run(agent.run("go", usage_limits=limits))
    if result.output != "done":
        raise AssertionError(result)


CONTENDERS: dict[str, Run] = {
    "hookwright, FunctionModel": hookwright_run,
    "openai-agents": openai_agents_run,
    "pydantic-ai": pydantic_ai_run,
}


def rate(run: Run, number: int) -> float:
    """Turns per second of CPU time."""
    start = clock()
    run(number)
    return number / (clock() - start)


def sections(**_: Any) -> list[Section]:
    """The table of this module."""
    section = Section(
        "Turns per CPU-second of one run with so many turns",
        ["framework", *(f"{number:,}" for number in TURNS), "a turn of the longest beside one of the shortest"],
    )
    for run in CONTENDERS.values():
        run(10)
    rates: dict[str, dict[int, list[float]]] = {name: {number: [] for number in TURNS} for name in CONTENDERS}
    for _round in range(ROUNDS):
        for number in TURNS:
            for name, run in CONTENDERS.items():
                if name.startswith("hookwright") or number <= PEERS_AT_MOST:
                    rates[name][number].append(rate(run, number))
    for name, of in rates.items():
        measured = [number for number in TURNS if of[number]]
        medians = [statistics.median(of[number]) for number in measured]
        growth = medians[0] / medians[-1]
        flat = ("; " + ("reached" if growth <= FLAT else "MISSED")) if name.startswith("hookwright") else ""
        cells = [f"{median:,.0f}" for median in medians] + [""] * (len(TURNS) - len(measured))
        section.rows.append([name, *cells, f"{multiple(growth)}{flat}"])
    section.notes.append(
        f"Medians of {ROUNDS} runs. Flat would be 1x; the bar is {FLAT:g}x. A round of hookwright hands its model a "
        "request that is read only where the model reads it; the peers hand theirs a list of all messages, and what "
        f"they cost grows so that they are measured up to {PEERS_AT_MOST} turns."
    )
    return [section]
