"""Teams: agents that live side by side, talk, wait for free, and come back."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from . import _native
from ._approval import Deferred
from ._board import TeamBoard
from ._chain import HookChain
from ._lead import lead_tools
from ._native import Session
from ._profile import SPAWN, Profile, moved, session_of
from ._team_events import Channel, Envelope, TeamEvent, TeamEvents
from ._team_loop import call_soon, team_loop
from ._team_waits import Waits
from ._teammate import Teammate
from ._tools import Tool
from .exceptions import TeamError

if TYPE_CHECKING:
    from ._worktree import Worktree

#: How long `Team.close` waits for teammates to end, in seconds.
_CLOSING = 2.0
#: What is written down about a member so that `Team.resume` makes it again as it was.
_MADE = "made"

_open_teams: weakref.WeakSet[Team] = weakref.WeakSet()


@atexit.register
def _close_open_teams() -> None:
    for team in list(_open_teams):
        with contextlib.suppress(Exception):
            team.close()


class Team:
    """Teammates that work side by side, led by whoever holds this object.

    Args:
        model: who answers, unless `spawn` says otherwise; as for `Agent`.
        tools: what teammates can call beside the tools of every team.
        hooks: the chain that watches over all of them; events tell whose they are.
        system: what stands in the prompt of each, behind who they are and who is there.
        session: the folder in which everything is kept, so that `resume` brings it back; in memory by default.
        name: the team's name.
        approver: asked when a hook or rule says ask; without an answer in time, the call is denied.
        approval_timeout: seconds to wait for it.
        cwd: the folder that hooks and tools are told.
        idle_timeout: seconds that a teammate waits for mail before it ends as ``"idle"``; None: as long as it takes.
        max_rounds: requests to the model of each teammate, in all.
        max_calls: tool calls of each teammate, in all.
        max_tokens: tokens of each teammate, in all.
        max_cost: money of each teammate, by ``prices``.
        max_teammates: how many there can be.
        max_depth: how many starters may stand between a teammate and the lead.
        team_rounds: requests of all together.
        team_calls: tool calls of all together.
        team_tokens: tokens of all together.
        team_cost: money of all together.
        max_idle_loops: how often hooks on ``teammate_idle`` may send one back to work in a row.
        worktree: gives each teammate a git worktree and branch of its own.
        mode: the mode that gates go by, such as ``"review"``; for teammates that come.
        loop: the event loop on which teammates run; by default one on a thread of its own, so that a busy cell of a
            notebook does not stall them.
        agent: further arguments of `Agent`, for all teammates: prices, context_window, max_seconds, result_cap, …

    Example:
        >>> import hookwright as hw
        >>> answer = hw.ToolCall("send_message", {"to": "lead", "text": "4 files"})
        >>> with hw.Team(hw.Scripted([answer, ""])) as team:
        ...     ada = team.spawn("ada", role="counts files", prompt="how many are there?")
        ...     board = team.join_sync()
        ...     [letter.text for letter in team.receive()]
        ['4 files']
    """

    __module__ = "hookwright"

    def __init__(
        self,
        model: Any = None,
        *,
        tools: Iterable[Any] = (),
        hooks: HookChain | None = None,
        system: str = "",
        session: str | Path | None = None,
        name: str = "team",
        approver: Callable[..., Any] | None = None,
        approval_timeout: float = 300.0,
        cwd: str | Path | None = None,
        idle_timeout: float | None = None,
        max_rounds: int = 200,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        max_teammates: int = 20_000,
        max_depth: int = 3,
        team_rounds: int | None = None,
        team_calls: int | None = None,
        team_tokens: int | None = None,
        team_cost: float | None = None,
        max_idle_loops: int = 8,
        worktree: bool = False,
        mode: str | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
        _resume: bool = False,
        **agent: Any,
    ) -> None:
        if isinstance(approver, Deferred):
            raise ValueError(
                "a team's approver answers while the team runs: Deferred() is for an agent that is resumed later; "
                "give a function, or none, and such calls are denied"
            )
        if (team_cost is not None or max_cost is not None) and not agent.get("prices"):
            raise ValueError("max_cost and team_cost need prices=, such as prices={'input': 2.0, 'output': 8.0}")
        self.name = name
        self.hooks = hooks
        self._model, self._tools, self._system = model, tuple(tools), system
        self._agent = {"approver": approver, "approval_timeout": approval_timeout, "cwd": cwd, **agent}
        self._limits = {
            "max_rounds": max_rounds, "max_calls": max_calls, "max_tokens": max_tokens, "max_cost": max_cost,
        }  # fmt: skip
        self._idle_timeout, self._max_idle_loops, self._worktrees = idle_timeout, max_idle_loops, worktree
        self._mode = mode
        self._path = None if session is None else Path(session)
        self._journal = None if self._path is None else Session(self._path / "team", agent=name, cwd=cwd)
        if self._journal is not None and (self._journal.source == "resumed") is not _resume:
            self._journal.close()
            raise TeamError(
                f"there is no team in {str(self._path)!r}" if _resume else f"there is a team in {str(self._path)!r}",
                hint="make one: hw.Team(..., session=...)" if _resume else "take it up: hw.Team.resume(...)",
            )
        limits = {
            "max_teammates": max_teammates, "max_depth": max_depth, "max_rounds": team_rounds,
            "max_calls": team_calls,
            "max_tokens": team_tokens, "max_cost": team_cost,
        }  # fmt: skip
        self._office = _native.Office(limits, self._journal)
        self._loop = loop if loop is not None else team_loop()
        self._profiles: dict[Any, Profile] = {}
        self._mates: dict[str, Teammate] = {}
        self._watchers: list[TeamEvents] = []
        self._waits = Waits(self._loop)
        self._lock = threading.Lock()
        self._beginning: list[tuple[Teammate, bool]] = []
        self._ready: list[tuple[Teammate, bool]] = []
        self._closed = False
        _open_teams.add(self)
        self._listen()
        if model is not None:
            self._profile(None, None, (), None)  # Mistakes show here and not with the first teammate.

    # People.

    def spawn(
        self,
        name: str,
        *,
        role: str = "",
        prompt: str | None = None,
        model: Any = None,
        tools: Iterable[Any] | None = None,
        system: str = "",
        disabled_tools: Iterable[str] = (),
        disabled_hooks: Iterable[str] = (),
        max_rounds: int | None = None,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        idle_timeout: float | None = None,
        may_spawn: bool = False,
        worktree: bool | None = None,
        cwd: str | Path | None = None,
    ) -> Teammate:
        """Starts a teammate and returns at once.

        Args:
            name: what it is called; any script, spaces too.
            role: what it is there for; others read it.
            prompt: what it is to do; without one it waits for a message.
            model: who answers for it; the team's by default.
            tools: instead of the team's.
            system: more of its prompt.
            disabled_tools: tools that it does not have, those of every team among them.
            disabled_hooks: hooks of the team that do not watch over it.
            max_rounds: instead of the team's; so ``max_calls``, ``max_tokens``, ``max_cost``, ``idle_timeout``,
                ``worktree`` and ``cwd``.
            may_spawn: whether it may start teammates of its own.

        Raises:
            TeamError: for a name that cannot be or is taken, a full team, a closed one.
        """
        limits = {"max_rounds": max_rounds, "max_calls": max_calls, "max_tokens": max_tokens, "max_cost": max_cost}
        return self._spawn(
            name,
            role=role,
            prompt=prompt,
            model=model,
            tools=tools,
            system=system,
            disabled_tools=disabled_tools,
            disabled_hooks=disabled_hooks,
            limits=limits,
            idle_timeout=idle_timeout,
            may_spawn=may_spawn,
            worktree=worktree,
            cwd=cwd,
        )

    def _spawn(
        self,
        name: str,
        *,
        role: str = "",
        prompt: str | None = None,
        model: Any = None,
        tools: Iterable[Any] | None = None,
        system: str = "",
        disabled_tools: Iterable[str] = (),
        disabled_hooks: Iterable[str] = (),
        limits: Mapping[str, Any] | None = None,
        idle_timeout: float | None = None,
        may_spawn: bool = False,
        worktree: bool | None = None,
        cwd: str | Path | None = None,
        parent: Teammate | None = None,
    ) -> Teammate:
        if not isinstance(name, str):
            raise TypeError(f"a teammate's name is text, not {name!r}")
        tools = None if tools is None else tuple(tools)
        own = {key: value for key, value in (limits or {}).items() if value is not None}
        starter = "lead" if parent is None else parent.name
        if parent is not None and model is None and self._model is None:
            model = parent.profile.agent.model
        made = {
            "system": system,
            "missing": sorted({*disabled_tools, *(() if may_spawn else (SPAWN,))}),
            "idle_timeout": self._idle_timeout if idle_timeout is None else idle_timeout,
            "disabled_hooks": sorted(disabled_hooks),
            "parent": starter,
            "cwd": None if cwd is None else str(cwd),
        }
        self._profile(model, tools, made["disabled_hooks"], None)
        member = {
            "name": name, "role": role, "parent": starter, "limits": {**self._limits, **own}, "may_spawn": may_spawn,
        }  # fmt: skip
        wanted = self._worktrees if worktree is None else worktree
        tree = self._tree(name, wanted and name not in self._mates, made)
        try:
            profile = self._profile(model, tools, made["disabled_hooks"], tree)
            self._office.join(member)
        except BaseException:
            if tree is not None:
                tree.finish()
            raise
        mate = self._mates[name] = Teammate(self, name, profile, made, tree)
        if self._journal is not None:
            self._office.note(name, _MADE, {**made, "worktree": None if tree is None else tree._as_dict()})
        if prompt is not None:
            # Others are told the role, and need not read what each is to do.
            self._office.send(starter, prompt, [name], private=True)
        self._begin(mate)
        return mate

    def _tree(self, name: str, wanted: bool, made: dict[str, Any]) -> Worktree | None:
        if not wanted:
            return None
        from ._worktree import Worktree

        repo = Path(made["cwd"] or self._agent["cwd"] or Path.cwd())
        folder = (self._path or repo.resolve().parent / f".{repo.resolve().name}-{self.name}") / "worktrees"
        tree = Worktree.create(repo, name, folder)
        made["cwd"] = str(tree.path)
        return tree

    def _profile(self, model: Any, tools: tuple[Any, ...] | None, disabled: Any, tree: Any) -> Profile:
        model = self._model if model is None else model
        if model is None:
            raise TypeError("who answers? give the team a model, such as hw.Team(hw.OpenAI('…')), or spawn(model=…)")
        tools = self._tools if tools is None else tools
        root = None if tree is None else tree.path
        key = (id(model), tuple(map(id, tools)), tuple(disabled), root)
        known = self._profiles.get(key)
        if known is None:
            hooks = self.hooks
            if disabled:
                if hooks is None:
                    raise ValueError(f"there are no hooks to disable: {', '.join(disabled)}")
                hooks = hooks.copy()
                for hook in disabled:
                    hooks.disable(hook)
            options = dict(self._agent)
            if root is not None:
                tools, options["cwd"] = moved(tools, root), root
            known = self._profiles[key] = Profile(self, model, tools, hooks, self._system, options)
        return known

    @property
    def teammates(self) -> list[Teammate]:
        """All, in the order in which they came."""
        return list(self._mates.values())

    def __getitem__(self, name: str) -> Teammate:
        try:
            return self._mates[name]
        except KeyError:
            known = ", ".join(self._mates) or "nobody"
            raise KeyError(f"nobody in the team is called {name!r}; there is: {known}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._mates

    def __len__(self) -> int:
        return len(self._mates)

    # Letters.

    def send(
        self,
        text: str,
        to: str | Iterable[str] | None = None,
        *,
        private: bool = False,
        reply_to: str | None = None,
        expects_reply: bool = False,
        id: str | None = None,
    ) -> Envelope:
        """Sends a message from the lead. Whom it addresses wakes; others overhear it.

        Args:
            text: the words. Without ``to``, ``@name`` at their beginning says to whom; without that, all are addressed.
            to: a name, several, or ``"all"``.
            private: nobody else overhears it.
            reply_to: the id of the message that it answers.
            expects_reply: its receivers are told that an answer is waited for.
            id: an id of your own; sending it again changes nothing.

        Returns:
            The envelope.

        Raises:
            TeamError: for somebody who is not there (with the names of those who are) or does not come back, and when a
                hook on ``message_routed`` drops it.
        """
        names = [] if to is None else [to] if isinstance(to, str) else list(to)
        text, names = self._routed(text, names)
        envelope, _, _ = self._office.send(
            "lead", text, names, private=private, reply_to=reply_to, expects_reply=expects_reply, id=id
        )
        return Envelope(**envelope)

    def _routed(self, text: str, names: list[str]) -> tuple[str, list[str]]:
        """A letter of the lead as hooks leave it."""
        recipients = self._office.recipients("lead", text, names)
        if self.hooks is None:
            return text, names
        outcome = self.hooks.run("message_routed", sender="lead", recipients=recipients, text=text, agent="lead")
        if outcome.action is not None:
            raise TeamError(f"the message was dropped by the hook {outcome.halted_by}: {outcome.reason}")
        fields = outcome.fields
        left = list(fields.get("recipients", recipients))
        return str(fields.get("text", text)), left if left != recipients or names else names

    def receive(self) -> list[Envelope]:
        """What came in for the lead since the last time: messages, and who ended how. Each comes once."""
        return [Envelope(**letter) for letter in self._office.lead_mail()]

    @property
    def unread(self) -> int:
        """How many letters the lead has not read yet; looking does not read them."""
        return self._office.lead_waiting()

    def context(self) -> str:
        """What a model that leads the team has not read yet: its mail, fenced as teammates read theirs."""
        return self._office.lead_context()

    def lead_tools(self) -> list[Tool[..., Any]]:
        """Tools by which an agent leads this team: ``spawn_teammate``, ``send_message``, ``list_team``, ``task_add``
        and ``wait_for_team``, which returns what came in for it.

        Example:
            >>> import hookwright as hw
            >>> team = hw.Team(hw.Scripted([hw.ToolCall("work_done", {"summary": "4 files"})]))
            >>> start = hw.ToolCall("spawn_teammate", {"name": "ada", "role": "counts", "prompt": "count the files"})
            >>> script = [start, hw.ToolCall("wait_for_team", {}), "There are 4 files."]
            >>> lead = hw.Agent(hw.Scripted(script), tools=team.lead_tools())
            >>> result = lead.run_sync("how many files are there?")
            >>> print(result.tool_calls[1].result.splitlines()[-2])
            ada has ended (done): 4 files
            >>> team.close()
        """
        return lead_tools(self)

    # Tasks.

    @property
    def tasks(self) -> list[dict[str, Any]]:
        """The tasks that the team shares: id, title, detail, owner, state, depends_on, added_by, note."""
        return self._office.tasks()

    def add_task(self, title: str, detail: str = "", *, depends_on: Iterable[str] = ()) -> dict[str, Any]:
        """Adds a task.

        Raises:
            TeamError: without a title, or for a task that it depends on and that is not there.
        """
        return self._office.add_task("lead", title, detail, list(depends_on))

    def update_task(
        self,
        id: str,
        state: Literal["open", "in_progress", "done", "cancelled"] | None = None,
        note: str | None = None,
    ) -> dict[str, Any]:
        """Changes a task, whosoever it is.

        Raises:
            TeamError: for a task that is not there.
        """
        return self._office.update_task("lead", id, state, note)

    # Watching.

    def events(self, channel: Channel = "display") -> TeamEvents:
        """What happens from now on, to be read with ``async for``, on any event loop.

        Args:
            channel: ``"display"`` for everything, ``"context"`` for what a model that leads the team should hear of.
        """
        return TeamEvents(self, channel)

    def on_event(self, callback: Callable[[TeamEvent], Any], channel: Channel = "display") -> TeamEvents:
        """Calls a function with each event, on the team's thread; it should be quick. ``close()`` of what is returned
        ends that."""
        return TeamEvents(self, channel, callback)

    def board(self) -> TeamBoard:
        """Who does what at this moment."""
        return TeamBoard(self.name, self._office.members(), self._office.tasks(), self._office.totals())

    def _is_watched(self) -> bool:
        return bool(self._watchers)

    def _watch(self, events: TeamEvents) -> None:
        with self._lock:
            self._watchers.append(events)
            self._office.watch(True)

    def _unwatch(self, events: TeamEvents) -> None:
        with self._lock:
            if events in self._watchers:
                self._watchers.remove(events)
            self._office.watch(bool(self._watchers))

    def _publish(self, event: TeamEvent) -> None:
        for watcher in list(self._watchers):
            watcher._push(event)

    def _listen(self) -> None:
        """Asks for news, hands it on, and asks to be called when there is more. Runs on the team's loop."""
        self._drain()
        self._waits.check()

    def _drain(self) -> None:
        events, revived = self._office.news(self._news)
        for _, kind, teammate, data in events:
            self._publish(TeamEvent(kind, teammate, data))
        for name in revived:
            if name in self._mates:
                self._mates[name]._start(False)

    def _begin(self, mate: Teammate, interrupted: bool = False) -> None:
        """Has the loop begin a life; one call of the loop for as many as there are. From any thread."""
        with self._lock:
            self._beginning.append((mate, interrupted))
            alone = len(self._beginning) == 1
        if alone:
            call_soon(self._loop, self._begin_all)

    def _begin_all(self) -> None:
        with self._lock:
            beginning, self._beginning = self._beginning, []
        for mate, interrupted in beginning:
            mate._start(interrupted)

    def _news(self) -> None:
        call_soon(self._loop, self._listen)

    def _look(self) -> None:
        """A teammate went to wait or ended: whoever waits for that looks. Runs on the team's loop."""
        self._waits.look()

    # Waiting and ending.

    async def join(self, *, until: Literal["quiet", "ended"] = "quiet", timeout: float | None = None) -> TeamBoard:
        """Waits until nobody does anything and nobody has mail that would wake it, or until all have ended.

        Args:
            until: ``"quiet"`` or ``"ended"``.
            timeout: seconds; None for as long as it takes.

        Returns:
            The board as it is then; questions that nobody answered stand in it.

        Raises:
            TimeoutError: when it takes longer.
        """
        await self._until(self._goal(until), timeout, f"the team is not {until}")
        return self.board()

    def join_sync(self, *, until: Literal["quiet", "ended"] = "quiet", timeout: float | None = None) -> TeamBoard:
        """The same on a thread that may block.

        Raises:
            RuntimeError: on the event loop on which the teammates run, which would wait for itself.
        """
        if _running_loop() is self._loop:
            raise RuntimeError("the teammates run on this event loop, which this would block: await team.join()")
        if not self._waits.block(self._goal(until), timeout):
            raise TimeoutError(f"the team is not {until} after {timeout} s: {self.board()!r}")
        return self.board()

    def _goal(self, until: str) -> Callable[[], bool]:
        if until == "ended":
            return self._office.has_ended
        if until == "quiet":
            return self._office.is_quiet
        raise ValueError(f"until is 'quiet' or 'ended', not {until!r}")

    async def _until(self, goal: Callable[[], bool], timeout: float | None, otherwise: str) -> None:
        if not await self._waits.until(goal, timeout):
            raise TimeoutError(f"{otherwise} after {timeout} s: {self.board()!r}")

    def cancel(self, name: str | None = None) -> None:
        """Ends a teammate, or all of them, whatever they do. Others go on.

        Raises:
            KeyError: for a name that nobody has.
        """
        for mate in self.teammates if name is None else [self[name]]:
            mate.cancel()

    def close(self) -> None:
        """Ends everything that goes on and gives the folder free. Closing twice is fine.

        A team in a folder is put down and not ended: `resume` takes up everybody where they were.
        """
        if self._closed:
            return
        self._put_down()
        here = _running_loop()
        if here is not self._loop:
            end = time.monotonic() + _CLOSING
            with contextlib.suppress(TimeoutError):
                self.join_sync(until="ended", timeout=max(0.0, end - time.monotonic()))
        self._finish()

    async def aclose(self) -> None:
        """The same on the running event loop, which goes on meanwhile."""
        if self._closed:
            return
        self._put_down()
        with contextlib.suppress(TimeoutError):
            await self.join(until="ended", timeout=_CLOSING)
        self._finish()

    def _put_down(self) -> None:
        self._closed = True
        if self._journal is not None:
            self._office.suspend()
        self.cancel()

    def _finish(self) -> None:
        self._office.close()
        _open_teams.discard(self)
        for watcher in list(self._watchers):
            watcher.close()
        for mate in self._mates.values():
            if mate._session is not None:
                if self.hooks is not None and mate._config is not None:
                    fields = mate.profile.agent._session_fields(mate._session, "closed")
                    self.hooks.run("session_end", **{**fields, "agent": mate.name, "cwd": str(mate.cwd)})
                mate._session.close()
        if self._journal is not None:
            self._journal.close()

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Team:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # Coming back.

    def _folder_of(self, name: str) -> Path | None:
        return None if self._path is None else self._path / "teammates" / _native.folder_of(name)

    def _session_of(self, mate: Teammate) -> Session:
        session = session_of(self, mate.name, mate.agent_options["cwd"] or self._agent["cwd"])
        if self._mode is not None and session.source == "new":
            session.mode = self._mode
        return session

    @classmethod
    def resume(
        cls,
        session: str | Path,
        model: Any = None,
        *,
        models: Mapping[str, Any] | None = None,
        teammate_tools: Mapping[str, Iterable[Any]] | None = None,
        start: bool = True,
        **options: Any,
    ) -> Team:
        """Brings a team back from its folder: everybody with history, status, tasks and mail that was not delivered.

        A call that was running when the process died gets a result that says so and is not run again; a turn that was
        under way goes on.

        Args:
            session: the folder.
            model: as for `Team`; what is alive, such as models, tools and hooks, is given again.
            models: models of single teammates, by name.
            teammate_tools: tools of single teammates, by name.
            start: whether everybody goes on at once. With False they do when `start` is called: for models and tools
                that use the team, which is only there when this has returned.
            options: as for `Team`.

        Raises:
            TeamError: when there is no team, or its journal cannot be read.
            SessionBusy: when another process has it.
        """
        team = cls(model, session=session, _resume=True, **options)
        try:
            team._take_up(dict(models or {}), dict(teammate_tools or {}))
            if start:
                team.start()
        except BaseException:
            team._closed = True
            team._finish()
            raise
        return team

    def _take_up(self, models: dict[str, Any], tools: dict[str, Iterable[Any]]) -> None:
        for member in self._office.members():
            name = member["name"]
            made = self._office.noted(name, _MADE) or {
                "system": "", "missing": [SPAWN], "idle_timeout": self._idle_timeout, "disabled_hooks": [],
                "parent": member["parent"], "cwd": None, "worktree": None,
            }  # fmt: skip
            tree = None
            if made.get("worktree"):
                from ._worktree import Worktree

                tree = Worktree._from_dict(made["worktree"])
            own = tuple(tools[name]) if name in tools else None
            mate = Teammate(self, name, self._profile(models.get(name), own, made["disabled_hooks"], tree), made, tree)
            self._mates[name] = mate
            interrupted = _unfinished(mate.session)
            if self._office.delivered(name, mate.session):
                self._ready.append((mate, interrupted))

    def start(self) -> None:
        """Has everybody go on who was taken up by `resume` with ``start=False``."""
        ready, self._ready = self._ready, []
        for mate, interrupted in ready:
            self._begin(mate, interrupted)

    def __repr__(self) -> str:
        return repr(self.board()).replace("TeamBoard", "Team", 1)

    def _repr_html_(self) -> str:
        return self.board()._repr_html_()


def _unfinished(session: Session) -> bool:
    """Whether something stands at the end of a conversation that its model has not answered: its turn goes on."""
    messages = session.messages
    if not messages or (messages[-1].role == "assistant" and not messages[-1].tool_calls):
        return False
    if messages[-1].role != "tool":
        return True
    calls = next((message.tool_calls for message in reversed(messages) if message.tool_calls), [])
    worked = {message.tool_call_id for message in messages[-len(calls) :] if not message.is_error}
    # These end a turn without a word of the model.
    return not any(call.name in ("ignore_message", "work_done") and call.id in worked for call in calls)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
