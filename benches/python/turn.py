"""One turn: the model asks for a tool, the tool answers, the model ends the turn. In one process, nothing waits.

Each framework runs its own agent class with a fake model that answers at once, and one tool that returns its argument.
With hooks: ten no-op Python functions before the tool call, in the framework's own form of that. Telemetry is off
where it is on by default (openai-agents: tracing), as one would have it in a test; nothing else is changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import agent_framework
import agents
import pydantic_ai
import pydantic_ai.capabilities
import pydantic_ai.messages
import pydantic_ai.models.function
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

import hookwright as hw

from .dispatch import sync_hooks
from .measure import Timed, clock, side_by_side
from .table import Section, duration, multiple, verdict

HOOKS = 10
#: With the scripted model: the most without and with hooks, and how much faster than the fastest peer, at least.
BARS = {0: 0.10e-3, HOOKS: 0.11e-3}
INLINE_BAR = 0.2e-3
LEAD = 7.0
#: Turns on a new event loop before the clock starts, since some frameworks set things up once for each loop.
WARM_UP = 10
#: How long the turns that are measured together last at least, in seconds.
STRETCH = 0.1

#: Makes the coroutine of one turn.
Turn = Callable[[], Awaitable[None]]
#: Gets ready for a number of turns.
Prepare = Callable[[int], Turn]


def timed_turns(prepare: Prepare) -> Timed:
    """Turns one after the other on one event loop, each a conversation of its own with the same agent."""

    async def work(number: int) -> float:
        turn = prepare(number + WARM_UP)
        for _ in range(WARM_UP):
            await turn()
        start = clock()
        for _ in range(number):
            await turn()
        return clock() - start

    return lambda number: asyncio.run(work(number))


def agent_framework_turn(hooks: int) -> Prepare:
    """agent-framework with a chat client of ours under its own function calling, and function middleware."""

    class Client(agent_framework.FunctionInvocationLayer, agent_framework.BaseChatClient):  # type: ignore[misc]
        def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **kwargs: Any) -> Any:
            async def respond() -> agent_framework.ChatResponse:
                last = messages[-1].contents[-1]
                if last.type == "function_result":
                    content: Any = agent_framework.Content.from_text("done")
                else:
                    content = agent_framework.Content.from_function_call(
                        call_id="call_1", name="echo", arguments={"text": "x"}
                    )
                return agent_framework.ChatResponse(
                    messages=[agent_framework.Message(role="assistant", contents=[content])]
                )

            return respond()

    class Middleware(agent_framework.FunctionMiddleware):
        async def process(self, context: Any, call_next: Callable[[], Awaitable[None]]) -> None:
            await call_next()

    @agent_framework.tool(approval_mode="never_require")
    def echo(text: str) -> str:
        """Returns the text."""
        return text

    agent = agent_framework.Agent(Client(), tools=[echo], middleware=[Middleware() for _ in range(hooks)])

    async def turn() -> None:
        result = await agent.run("go")
        if result.text != "done":
            raise AssertionError(result)

    return lambda number: turn


def openai_agents_turn(hooks: int) -> Prepare:
    """openai-agents with a model of ours. It has one object of run hooks, which calls the functions in a loop."""
    from agents.usage import Usage

    class Model(agents.Model):
        async def get_response(self, system_instructions: Any, input: Any, *rest: Any, **named: Any) -> Any:
            last = input[-1] if isinstance(input, list) else {}
            output: Any
            if last.get("type") == "function_call_output":
                text = ResponseOutputText(text="done", type="output_text", annotations=[])
                output = ResponseOutputMessage(
                    id="msg_1", content=[text], role="assistant", status="completed", type="message"
                )
            else:
                output = ResponseFunctionToolCall(
                    call_id="call_1", name="echo", arguments='{"text": "x"}', type="function_call"
                )
            return agents.ModelResponse(output=[output], usage=Usage(), response_id=None)

        def stream_response(self, *rest: Any, **named: Any) -> Any:
            raise NotImplementedError

    functions = sync_hooks(hooks)

    class RunHooks(agents.RunHooks[Any]):
        async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
            for function in functions:
                function(context)

    @agents.function_tool
    def echo(text: str) -> str:
        """Returns the text."""
        return text

    agent = agents.Agent(name="bench", model=Model(), tools=[echo])
    config = agents.RunConfig(tracing_disabled=True)
    run_hooks = RunHooks() if hooks else None

    async def turn() -> None:
        result = await agents.Runner.run(agent, "go", run_config=config, hooks=run_hooks)
        if result.final_output != "done":
            raise AssertionError(result)

    return lambda number: turn


def pydantic_ai_turn(hooks: int) -> Prepare:
    """pydantic-ai with its own FunctionModel, and its own hooks before a tool is executed."""
    messages = pydantic_ai.messages

    def respond(history: list[Any], info: Any) -> Any:
        if any(isinstance(part, messages.ToolReturnPart) for part in history[-1].parts):
            return messages.ModelResponse(parts=[messages.TextPart("done")])
        return messages.ModelResponse(parts=[messages.ToolCallPart("echo", {"text": "x"}, tool_call_id="call_1")])

    capability = pydantic_ai.capabilities.Hooks()
    for _ in range(hooks):

        def hook(ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
            return args

        capability.on.before_tool_execute(hook)

    agent = pydantic_ai.Agent(
        pydantic_ai.models.function.FunctionModel(respond), capabilities=[capability] if hooks else []
    )

    @agent.tool_plain
    async def echo(text: str) -> str:  # A plain function would be run in a thread, which costs much more.
        """Returns the text."""
        return text

    async def turn() -> None:
        result = await agent.run("go")
        if result.output != "done":
            raise AssertionError(result)

    return lambda number: turn


def _hook_chain(hooks: int) -> hw.HookChain | None:
    if not hooks:
        return None
    chain = hw.HookChain()
    for index, hook in enumerate(sync_hooks(hooks)):
        chain.add(hook, "pre_tool_execution", name=f"hook_{index}")
    return chain


def hookwright_turn(hooks: int) -> Prepare:
    """hookwright with its scripted model and a tool in Rust's hands only as far as it calls the function inline."""

    @hw.tool(inline=True)
    def echo(text: str) -> str:
        """Returns the text."""
        return text

    chain = _hook_chain(hooks)

    def prepare(number: int) -> Turn:
        # A script is written for the turns that it is to answer; the agent is the same for all of them.
        model = hw.Scripted([hw.ToolCall("echo", {"text": "x"}), "done"] * number)
        agent = hw.Agent(model, tools=[echo], hooks=chain)

        async def turn() -> None:
            result = await agent.run("go", session=hw.Session())
            if result.text != "done":
                raise AssertionError(result)

        return turn

    return prepare


def hookwright_function_turn(hooks: int) -> Prepare:
    """hookwright with a model and a tool that are Python functions."""

    @hw.tool(inline=True)
    def echo(text: str) -> str:
        """Returns the text."""
        return text

    def respond(request: Any) -> Any:
        if request.messages[-1].role == "tool":
            return "done"
        return hw.ToolCall("echo", {"text": "x"})

    model = hw.FunctionModel(respond, inline=True)
    agent = hw.Agent(model, tools=[echo], hooks=_hook_chain(hooks))

    async def turn() -> None:
        result = await agent.run("go", session=hw.Session())
        if result.text != "done":
            raise AssertionError(result)

    return lambda number: turn


PEERS: dict[str, Callable[[int], Prepare]] = {
    "agent-framework": agent_framework_turn,
    "openai-agents": openai_agents_turn,
    "pydantic-ai": pydantic_ai_turn,
}
OURS: dict[str, Callable[[int], Prepare]] = {
    "hookwright, Scripted": hookwright_turn,
    "hookwright, FunctionModel": hookwright_function_turn,
}


def sections(*, stretch: float, **settings: Any) -> list[Section]:
    """The table of this module."""
    settings["stretch"] = max(stretch, STRETCH)
    contenders = {**OURS, **PEERS}
    section = Section(
        "One model -> tool -> model turn with a fake model",
        ["framework", "no hooks", f"{HOOKS} Python hooks on the tool call"],
    )
    series = {
        hooks: side_by_side({name: timed_turns(make(hooks)) for name, make in contenders.items()}, **settings)
        for hooks in (0, HOOKS)
    }
    for name in contenders:
        section.rows.append([name, *(duration(of.median(name)) for of in series.values())])
    cells = []
    for hooks, of in series.items():
        fastest = min(PEERS, key=of.median)
        lead = of.ratio(fastest, "hookwright, Scripted")
        cells.append(
            f"{duration(BARS[hooks])}: {verdict(of.median('hookwright, Scripted'), BARS[hooks])}; "
            f"{multiple(lead)} of {LEAD:g}x before {fastest}: {verdict(LEAD, lead)}"
        )
    section.rows.append(["bar, Scripted", *cells])
    section.rows.append(
        [
            "bar, FunctionModel",
            *(
                f"{duration(INLINE_BAR)}: {verdict(of.median('hookwright, FunctionModel'), INLINE_BAR)}"
                for of in series.values()
            ),
        ]
    )
    section.notes.append(
        "Every framework keeps what it would keep by default, but openai-agents runs with `tracing_disabled=True`; "
        "the others trace only when they are told to. The tool of pydantic-ai is a coroutine function, because it "
        "would run a plain one in a thread; the fastest peer decides the bar."
    )
    return [section]
