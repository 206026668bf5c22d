"""The agent: a model, its tools, the hooks that watch over it, and a conversation."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import difflib
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from . import _aio, _native, _workers
from ._agent_tools import as_tools, described
from ._approval import ApprovalRequest
from ._background import on_thread
from ._chain import HookChain
from ._drive_async import drive
from ._drive_blocking import drive_blocking
from ._models import FunctionModel, Scripted
from ._native import Message, RunResult, Session, WorkspaceTool
from ._output import OutputType
from ._registry import ToolRegistry
from ._render import well_formed
from ._running import Running, Runs
from ._servers import ServerModel
from ._stream import RunStream
from ._sub_agent import as_tool
from ._tools import Tool
from ._work import Work, decision
from .exceptions import ModelError, SessionBusy, SessionError

#: How long an interrupted run waits for its thread to close the turn, in seconds.
_AFTERMATH = 0.15
#: How long `Agent.close` waits for the ends of runs: hooks on their turn_end have a second. In seconds.
_CLOSING = 2.0


#: Agents whose sessions have begun: what is still open at exit is closed, so that session_end is heard.
_open_agents: weakref.WeakSet[Agent] = weakref.WeakSet()


@atexit.register
def _close_open_agents() -> None:
    for agent in list(_open_agents):
        with contextlib.suppress(Exception):  # A hook that fails has been recorded; the exit goes on.
            agent._end_sessions("exit")


_LIMITS = (
    "max_rounds", "max_calls_per_turn", "max_repeated_calls", "max_hook_loops", "max_seconds", "max_tokens", "max_cost",
)  # fmt: skip
_FIXED = frozenset(
    {"model", "hooks", "system", "name", "tools", "cwd", "session", "max_parallel", "output_type", "prices"}
)
_FREE = frozenset(
    {
        "approver", "approval_timeout", "description", "_kind", "_parent", "_window", "_result_cap", "_count_tokens",
        "_registry", "_deferred",
        "_limits", "_configs", "_runs", "_begun",
    }
)  # fmt: skip


class Agent:
    """An agent with tools, hooks and a conversation.

    Args:
        model: who answers: `OpenAI`, `Anthropic` or another model behind a server, `Scripted`, `FunctionModel`, or a
            Python function, which becomes a `FunctionModel`.
        tools: what it can call: functions with `tool`, plain functions, or `workspace_tools(...)`.
        hooks: the chain that watches over it.
        system: the system prompt.
        output_type: a type that the answer has: a pydantic model, a dataclass, or any type that pydantic understands.
            The model is told its JSON Schema; an answer that does not fit is sent back once. ``result.output`` is the
            value.
        name: the agent's name in events.
        session: where its conversation is kept; in memory by default. A path opens or makes a session there.
        approver: asked when a hook or rule says ask: takes an `ApprovalRequest`, returns ``True``, ``"always"`` (by the
            suggested rule from now on), ``False``, or ``(False, "why")``; sync or async. `TerminalApprover` asks on the
            terminal. Without one, such calls are denied.
        approval_timeout: seconds to wait for it; then the call is denied.
        cwd: the working directory that hooks run in and that hooks and tools are told; the session's by default.
            Workspace tools work in their own root.
        max_rounds: requests to the model in one turn.
        max_calls_per_turn: tool calls in one turn.
        max_repeated_calls: the same call so many times in a row ends the turn; ``None`` for no limit.
        max_hook_loops: how often hooks may send a turn back.
        max_seconds: the time of a turn.
        max_tokens: tokens of all requests of a turn, input and output, those of agents called as tools included.
        max_cost: money of a turn, by ``prices``.
        prices: what a million tokens cost, in any unit of money: ``{"input": 2.0, "output": 8.0, "cached": 0.5,
            "cache_write": 2.5}``. What is not given costs nothing.
        context_window: the tokens that the model holds, its answer included. Where a conversation does not fit, old
            results of tools are shortened, then older messages summarised, then some left out of what is sent; the
            session keeps everything. None sends everything.
        reserved_tokens: of the window, what is left free for the answer.
        auto_compact: above which share of the window, from 0.2 to 1, the model is asked to summarise older messages;
            None never asks.
        count_tokens: a function from text to its number of tokens; by default an estimate that learns from the server.
        description: what the agent is for, for agents that call it as a tool.
        max_parallel: how many calls run side by side.
        result_cap: how much of a call's result the model is shown, in bytes. The middle of a longer one is left out;
            the whole is in `RunResult.tool_calls`, and in a file beside the transcript if the session has a folder.

    Example:
        >>> import hookwright as hw
        >>> @hw.tool(inline=True)
        ... def add(a: int, b: int) -> int:
        ...     '''Adds two numbers.'''
        ...     return a + b
        >>> agent = hw.Agent(hw.Scripted([hw.ToolCall("add", {"a": 1, "b": 2}), "It is 3."]), tools=[add])
        >>> result = agent.run_sync("what is 1 + 2?")
        >>> result.text, result.tool_calls[0].result
        ('It is 3.', '3')
    """

    __module__ = "hookwright"

    def __init__(
        self,
        model: Scripted | FunctionModel | ServerModel | Callable[..., Any],
        *,
        tools: Iterable[Tool[..., Any] | WorkspaceTool | Callable[..., Any]] | ToolRegistry = (),
        hooks: HookChain | None = None,
        system: str = "",
        name: str = "main",
        session: Session | str | Path | None = None,
        approver: Callable[[ApprovalRequest], Any | Awaitable[Any]] | None = None,
        approval_timeout: float = 300.0,
        cwd: str | Path | None = None,
        max_rounds: int = 50,
        max_calls_per_turn: int | None = None,
        max_repeated_calls: int | None = 3,
        max_hook_loops: int = 8,
        max_seconds: float | None = None,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        prices: Mapping[str, float] | None = None,
        max_parallel: int = 8,
        result_cap: int = 100_000,
        output_type: Any = None,
        description: str = "",
        context_window: int | None = None,
        reserved_tokens: int = 4096,
        auto_compact: float | None = 0.8,
        count_tokens: Callable[[str], int] | None = None,
    ) -> None:
        if not isinstance(model, (Scripted, FunctionModel, ServerModel)):
            if not callable(model):
                kinds = "one such as hw.OpenAI(...), a Scripted, a FunctionModel or a function"
                raise TypeError(f"model must be {kinds}, not {model!r}")
            model = FunctionModel(model)
        if hooks is not None and not isinstance(hooks, HookChain):
            raise TypeError(f"hooks must be a HookChain, not {type(hooks).__name__}")
        for label, value in (("system", system), ("name", name)):
            if not isinstance(value, str):
                raise TypeError(f"{label} must be text, not {value!r}")
        if approver is not None and not callable(approver):
            raise TypeError(f"approver must be a function that takes an ApprovalRequest, not {approver!r}")
        if cwd is not None and not Path(cwd).is_dir():
            raise NotADirectoryError(f"cwd must be a folder that exists, not {str(cwd)!r}")
        _check_number("max_parallel", max_parallel, least=1)
        _check_number("max_rounds", max_rounds)
        _check_number("max_hook_loops", max_hook_loops)
        if max_calls_per_turn is not None:
            _check_number("max_calls_per_turn", max_calls_per_turn)
        if max_repeated_calls is not None:
            _check_number("max_repeated_calls", max_repeated_calls, least=1)
        _check_seconds("approval_timeout", approval_timeout)
        if max_seconds is not None:
            _check_seconds("max_seconds", max_seconds)
        if max_tokens is not None:
            _check_number("max_tokens", max_tokens)
        if max_cost is not None and not prices:
            raise ValueError("max_cost needs prices=, such as prices={'input': 2.0, 'output': 8.0} per million tokens")
        self.model = model
        self.hooks = hooks
        self.system = well_formed(system)
        self.description = well_formed(description)
        self.output_type = None if output_type is None else OutputType(output_type)
        self.prices = dict(prices or {})
        if context_window is not None:
            _check_number("context_window", context_window, least=1024)
            _check_number("reserved_tokens", reserved_tokens)
            if reserved_tokens >= context_window:
                raise ValueError(
                    f"reserved_tokens={reserved_tokens} leaves nothing of the {context_window} of the window"
                )
        if auto_compact is not None and not (isinstance(auto_compact, (int, float)) and 0.2 <= auto_compact <= 1):
            raise ValueError(f"auto_compact is a share of the window from 0.2 to 1, or None, not {auto_compact!r}")
        self._window = None if context_window is None else (context_window, reserved_tokens, auto_compact)
        self._count_tokens = count_tokens
        self._kind, self._parent = "main", None
        self.name = well_formed(name)
        self.approver = approver
        self.approval_timeout = approval_timeout
        self.max_parallel = max_parallel
        _check_number("result_cap", result_cap, least=200)
        self._result_cap = result_cap
        self.cwd = None if cwd is None else Path(cwd)
        self._registry = tools if isinstance(tools, ToolRegistry) else None
        self.tools, self._deferred = (as_tools(tools), frozenset()) if self._registry is None else self._registry._all()
        self.session = session if isinstance(session, Session) else Session(session, agent=name, cwd=self.cwd)
        self._limits = {
            "max_rounds": max_rounds,
            "max_calls_per_turn": max_calls_per_turn,
            "repeated_call": max_repeated_calls,
            "max_hook_loops": max_hook_loops,
            "max_seconds": max_seconds,
            "max_tokens": max_tokens,
            "max_cost": max_cost,
        }
        self._configs: dict[str, _native.TurnConfig] = {}
        self._runs = Runs()
        self._begun: weakref.WeakSet[Session] = weakref.WeakSet()
        self._config(self.session)  # Mistakes in tools and limits show here and not in the first run.

    def __setattr__(self, name: str, value: Any) -> None:
        # What turns are made from is put together once; a later assignment would go nowhere, a gate's among them.
        if name in _FIXED and name in self.__dict__:
            raise AttributeError(
                f"an agent's {name} does not change; make another one: "
                f"hw.Agent(..., {name}=..., session=agent.session) goes on with the same conversation"
            )
        if name not in _FIXED and name not in _FREE:
            near = difflib.get_close_matches(name, [*_FIXED, *_LIMITS], n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise AttributeError(f"an Agent has no attribute {name!r}{hint} Limits are arguments of hw.Agent(...).")
        object.__setattr__(self, name, value)

    async def run(self, text: str, *, session: Session | None = None) -> RunResult:
        """Runs one turn on the caller's event loop.

        Args:
            text: what the user says.
            session: another conversation than the agent's own; turns of different sessions run side by side.

        Raises:
            SessionBusy: when a turn of this session is going on.
            ModelError: when the model fails for good; its ``result`` is what was done until then.
            asyncio.CancelledError: when the task is cancelled; the history is consistent all the same.
        """
        return await self._run(text, session)

    async def _run(
        self, text: str | None, session: Session | None, decisions: Mapping[str, Any] | None = None
    ) -> RunResult:
        _aio._refuse_foreign_loop()
        with self._work(text, session, decisions=decisions) as work:
            return self._check(await drive(work), work)

    async def resume(self, *, decisions: Mapping[str, Any] | None = None, session: Session | None = None) -> RunResult:
        """Goes on where a turn was left: after a process that ended in the middle, a limit, a cancellation or a model
        that failed. Calls that were running then have a result that says so; they are not run again.

        Args:
            decisions: what was decided about the calls in `awaiting`, by their ids: what an approver answers, such as
                True, False, ``"always"`` or ``(False, "why")``. Calls without a decision go on waiting. A call that may
                run is judged again, by the hooks that are there now.
            session: another conversation than the agent's own.

        Raises:
            SessionError: when there is nothing to go on with, or no such call waits.
            SessionBusy, ModelError: as `run`.

        Example:
            >>> import hookwright as hw
            >>> agent = hw.Agent(hw.Scripted([hw.ModelError("the server is down"), "hello again"]))
            >>> try:
            ...     agent.run_sync("hi")
            ... except hw.ModelError as error:
            ...     print(error)
            the server is down
            >>> agent.resume_sync().text
            'hello again'
        """
        self._check_resumable(session, decisions)
        return await self._run(None, session, decisions)

    def resume_sync(self, *, decisions: Mapping[str, Any] | None = None, session: Session | None = None) -> RunResult:
        """The same on the calling thread, as `run_sync`."""
        self._check_resumable(session, decisions)
        return self._run_sync(None, session, decisions)

    @property
    def awaiting(self) -> list[ApprovalRequest]:
        """The calls of the agent's own conversation that wait for a decision; see `Deferred`."""
        return [
            ApprovalRequest(name, arguments, reason, call_id, self.name, rule)
            for call_id, name, arguments, reason, rule in self.session.awaiting
        ]

    def _check_resumable(self, session: Session | None, decisions: Mapping[str, Any] | None = None) -> None:
        awaiting = [call_id for call_id, *_ in (session or self.session).awaiting]
        for call_id in decisions or {}:
            if call_id not in awaiting:
                waits = f"waiting: {', '.join(awaiting)}" if awaiting else "none does"
                raise SessionError(f"no call {call_id!r} waits for a decision; {waits}")
        messages = (session or self.session).messages
        if not messages or (messages[-1].role == "assistant" and not messages[-1].tool_calls):
            said = "the last turn has its answer" if messages else "nothing was said yet"
            raise SessionError(f"there is nothing to resume: {said}", hint="say something: agent.run('...')")

    def as_tool(self, name: str | None = None, description: str | None = None) -> Tool[..., Any]:
        """This agent as a tool of another one, with one argument: the task. Each call is a conversation of its own.

        The hooks, gates, mode and approver of the agent that calls it hold for it as well, beside its own; events tell
        it as an agent of kind ``"sub"`` with its parent's name. What it uses counts for the limits of its parent.

        Args:
            name: the tool's name; the agent's by default.
            description: what the model reads about it; the agent's own by default.

        Example:
            >>> import hookwright as hw
            >>> reader = hw.Agent(hw.Scripted(["There are 3 files."]), name="reader")
            >>> script = [hw.ToolCall("reader", {"task": "count the files"}), "3 files."]
            >>> result = hw.Agent(hw.Scripted(script), tools=[reader.as_tool()]).run_sync("how many files?")
            >>> result.tool_calls[0].result
            'There are 3 files.'
        """
        return as_tool(self, name, description)

    def run_sync(self, text: str, *, session: Session | None = None) -> RunResult:
        """Runs one turn on the calling thread; inside a running event loop, on a thread of its own.

        Raises:
            SessionBusy: when a turn of this session is going on.
            ModelError: when the model fails for good.
            KeyboardInterrupt: on Ctrl-C; the history is consistent all the same.
        """
        return self._run_sync(text, session)

    def _run_sync(
        self, text: str | None, session: Session | None, decisions: Mapping[str, Any] | None = None
    ) -> RunResult:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            with self._work(text, session, decisions=decisions) as work:
                return self._check(drive_blocking(work), work)
        with self._work(text, session, detached=True, decisions=decisions) as work:
            finished = threading.Event()
            thread: list[int] = []

            def drive_there() -> RunResult:
                thread.append(threading.get_ident())
                return drive_blocking(work)

            job = on_thread(drive_there, finished.set)
            job.begin()
            try:
                _workers._wait(finished, threading.TIMEOUT_MAX)
            except BaseException:
                work.running.cancel()
                if thread:
                    _native._interrupt_thread(thread[0])
                # The turn is brought to its end, so that the next one finds the session free.
                finished.wait(_AFTERMATH)
                raise
            return self._check(job.result(), work)

    def stream(self, text: str, *, session: Session | None = None, hold_text: bool = False) -> RunStream:
        """Runs one turn and tells what happens: ``async for event in agent.stream("…")``.

        Pieces of text are provisional; the message that follows them is what counts. The stream's ``result`` is the
        `RunResult` when it is over.

        Args:
            text: what the user says.
            session: another conversation than the agent's own.
            hold_text: tell text only when hooks on ``post_llm_response`` have seen the whole reply, so that what they
                take out is never shown.
        """
        return RunStream(self, text, session, hold_text)

    def resume_stream(self, *, decisions: Mapping[str, Any] | None = None, session: Session | None = None) -> RunStream:
        """`resume`, telling what happens as `stream` does."""
        self._check_resumable(session, decisions)
        return RunStream(self, None, session, decisions=decisions)

    def cancel(self) -> None:
        """Ends every run of this agent that is going on; each returns a result with status ``"cancelled"``."""
        self._runs.cancel()

    @property
    def history(self) -> list[Message]:
        """The messages of the agent's own conversation."""
        return self.session.messages

    def reset(self) -> None:
        """Begins the conversation anew. What was said stays in the transcript.

        Raises:
            SessionBusy: while a turn is going on.
        """
        self.session.reset()

    def fork(self, session: str | Path | None = None) -> Agent:
        """An agent like this one whose conversation goes on from here on its own. The model is the same object, so a
        `Scripted` goes on in one script for both."""
        other: Agent = object.__new__(type(self))
        other.__dict__.update({**self.__dict__, "session": self.session.fork(session)})
        other._configs, other._runs, other._begun = {}, Runs(), weakref.WeakSet()
        return other

    def close(self) -> None:
        """Ends what is running, runs the hooks on ``session_end`` and gives the session free for others.

        Runs on this thread's own event loop cannot be waited for here: the session is closed when the last has ended.
        """
        self.cancel()
        if self._runs.settle(_CLOSING, self._close_now):
            self._close_now()

    async def aclose(self) -> None:
        """The same on the running event loop, which goes on meanwhile."""
        self.cancel()
        await self._runs.asettle(_CLOSING)
        await self._aclose_now()

    async def _aclose_now(self) -> None:
        if self.hooks is not None:
            for session in self._take_begun():
                await self.hooks.arun("session_end", **self._session_fields(session, "closed"))
        self.session.close()

    def _apart(self, hooks: HookChain, session: Session) -> Agent:
        """This agent under another chain and in another conversation. `cancel` reaches its runs as well."""
        other: Agent = object.__new__(type(self))
        other.__dict__.update({**self.__dict__, "hooks": hooks, "session": session})
        other._configs, other._begun = {}, weakref.WeakSet()
        return other

    def _close_now(self) -> None:
        self._end_sessions("closed")
        self.session.close()

    def _end_sessions(self, reason: str) -> None:
        if self.hooks is not None:
            for session in self._take_begun():
                self.hooks.run("session_end", **self._session_fields(session, reason))

    def _take_begun(self) -> list[Session]:
        begun, self._begun = list(self._begun), weakref.WeakSet()
        _open_agents.discard(self)
        return begun

    def _session_fields(self, session: Session, reason: str) -> dict[str, Any]:
        return {
            "reason": reason,
            "messages": session.messages,
            "session_id": session.id,
            "agent": self.name,
            "cwd": str(self.cwd or session.cwd),
        }

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Agent:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _config(self, session: Session) -> _native.TurnConfig:
        config = self._configs.get(session.id)
        if config is None and self._configs:
            # Only the conversation differs: what the tools take was read and checked before.
            return next(iter(self._configs.values())).for_session(session, self.cwd)
        if config is None:
            config = _native.TurnConfig(
                name=self.name,
                kind=self._kind,
                parent=self._parent,
                model=self.model.name,
                system=self._prompt(),
                tools=[described(entry, entry.name in self._deferred) for entry in self.tools],
                chain=self.hooks,
                session=session,
                cwd=self.cwd,
                limits=self._limits,
                prices=self.prices,
                result_cap=self._result_cap,
                window=self._window,
                count_tokens=self._count_tokens,
                checks_output=self.output_type is not None,
                script=self.model.native if isinstance(self.model, Scripted) else None,
            )
            if session is self.session:
                self._configs[session.id] = config
        return config

    def _prompt(self) -> str:
        if self.output_type is None:
            return self.system
        return f"{self.system}\n\n{self.output_type.instruction}" if self.system else self.output_type.instruction

    def _work(
        self,
        text: str | None,
        session: Session | None,
        *,
        watched: bool = False,
        hold_text: bool = False,
        detached: bool = False,
        sender: str | None = None,
        decisions: Mapping[str, Any] | None = None,
    ) -> Work:
        if text is not None and not isinstance(text, str):
            raise TypeError(f"run takes the user's message as text, not {type(text).__name__}")
        session = session if session is not None else self.session
        if not isinstance(session, Session):
            raise TypeError(f"session must be a Session, such as hw.Session({str(session)!r}), not {session!r}")
        source = None
        if session not in self._begun:
            source = session.source
            self._begun.add(session)
            _open_agents.add(self)
        turn = self._config(session).begin(
            "" if text is None else well_formed(text),
            watched=watched,
            hold_text=hold_text,
            source=source,
            sender=sender,
            resumed=text is None,
            missing=set() if self._registry is None else self._registry._missing(),
            decisions={call_id: decision(answer) for call_id, answer in (decisions or {}).items()},
        )
        return Work(self, turn, Running(turn, detached=detached), session)

    def _check(self, result: RunResult | None, work: Work) -> RunResult:
        assert result is not None
        if result.status == "error":
            kind, reason = result.error_kind, result.reason or ""
            if kind == "session_busy":
                raise SessionBusy(reason, hint="wait for that run, or use run(..., session=hw.Session()) beside it")
            if kind == "session":
                raise SessionError(reason)
            failure = result.failure or {}
            raise ModelError(
                reason,
                result=result,
                kind=kind,
                status=failure.get("status"),
                attempts=failure.get("attempts", 1),
                partial=result.partial,
            ) from work.model_error
        if work.output is not None and result.status == "success":
            result._set_output(work.output[0])
        return result

    def _approval_request(
        self, call: Any, reason: str, suggested_rule: str | None, timeout: float | None
    ) -> ApprovalRequest:
        return ApprovalRequest(call.name, call.arguments, reason, call.id, self.name, suggested_rule, timeout)

    def __repr__(self) -> str:
        tools = ", ".join(entry.name for entry in self.tools) or "no tools"
        hooks = f"{len(self.hooks)} hooks" if self.hooks is not None else "no hooks"
        return f"<Agent {self.name!r} on {self.model.name!r}: {tools}; {hooks}; {len(self.session)} messages>"


def _check_number(name: str, value: Any, least: int = 0) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**32:
        raise ValueError(f"{name} must be a whole number from {least} on, not {value!r}")


def _check_seconds(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        raise ValueError(f"{name} must be a number of seconds, not {value!r}")
