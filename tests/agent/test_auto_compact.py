"""Older messages become a summary, which the session keeps beside them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from runs import Run

import hookwright as hw

WINDOW = 8000
SUMMARISE = "You summarise a part of a conversation"


class Talker:
    """A model that reads pages, and that writes a summary when it is asked for one."""

    def __init__(self, pages: int, summary: Any = "pages were read") -> None:
        self.pages = pages
        self.read = 0
        self.summary = summary
        self.sent: list[list[hw.Message]] = []
        self.asked: list[str] = []

    def __call__(self, request: hw.Request) -> Any:
        if (request.system or "").startswith(SUMMARISE):
            assert not request.tools
            self.asked.append(request.messages[-1].text)
            if isinstance(self.summary, Exception):
                raise self.summary
            return f"{self.summary} ({len(self.asked)})"
        self.sent.append(request.messages)
        if self.read < self.pages:
            self.read += 1
            return hw.ToolCall("look", {"number": self.read})
        return "done"


@hw.tool(inline=True)
def look(number: int) -> str:
    """Looks at a page."""
    return f"page {number}: " + "many words of a long page " * 100


def agent_of(model: Talker, **options: Any) -> hw.Agent:
    options.setdefault("context_window", WINDOW)
    return hw.Agent(hw.FunctionModel(model, inline=True), tools=[look], reserved_tokens=1000, **options)


def leave_results_alone(hooks: hw.HookChain) -> hw.HookChain:
    hooks.on("pre_micro_compact", name="leave")(lambda event: hw.skip("not now"))
    return hooks


def test_older_messages_are_summarised_and_the_session_keeps_them(run: Run) -> None:
    model = Talker(40)
    agent = agent_of(model, hooks=leave_results_alone(hw.HookChain()))
    result = run(agent, "the task: look at all pages")
    assert result.text == "done"
    assert model.asked and all("<conversation_part>" in prompt for prompt in model.asked)
    # Not with each request, but when there is something old again.
    assert len(model.asked) < len(model.sent) / 2
    last = model.sent[-1]
    assert last[0].text == "the task: look at all pages"
    assert last[1].text.startswith("[Summary of the conversation up to here]\n")
    assert f"pages were read ({len(model.asked)})" in last[1].text
    for sent in model.sent:
        calls = [call.id for message in sent for call in message.tool_calls]
        assert calls == [message.tool_call_id for message in sent if message.role == "tool"]
    assert sum(message.role == "tool" for message in agent.history) == model.read


def test_the_next_turn_and_another_process_go_on_with_the_summary(run: Run, tmp_path: Path) -> None:
    model = Talker(20)
    agent = agent_of(model, hooks=leave_results_alone(hw.HookChain()), session=tmp_path / "s")
    run(agent, "the task")
    before = len(model.asked)
    assert before
    run(agent, "thanks")
    assert any("pages were read" in message.text for message in model.sent[-1])
    agent.session.close()
    again = Talker(0)
    resumed = agent_of(again, hooks=leave_results_alone(hw.HookChain()), session=tmp_path / "s")
    run(resumed, "and now?")
    assert not again.asked
    assert any("pages were read" in message.text for message in again.sent[-1])
    assert len(again.sent[-1]) < len(resumed.history)
    fork = resumed.session.fork()
    forked = Talker(0)
    run(agent_of(forked, hooks=leave_results_alone(hw.HookChain()), session=fork), "and you?")
    assert any("pages were read" in message.text for message in forked.sent[-1])


def test_a_summary_that_cannot_be_had_does_not_end_the_turn() -> None:
    async def main() -> tuple[list[str], Talker, str]:
        model = Talker(30, summary=hw.ModelError("no summary today", kind="server"))
        agent = agent_of(model, hooks=leave_results_alone(hw.HookChain()))
        notices, text = [], ""
        async for event in agent.stream("the task"):
            if event.type == "notice":
                notices.append(event.text)
            elif event.type == "text":
                text += event.delta
        return notices, model, text

    notices, model, text = asyncio.run(main())
    assert text == "done"
    assert len(model.asked) == 1  # Once in a turn.
    assert len(notices) == 1
    assert "no summary today" in notices[0] and "left out of requests" in notices[0]
    assert model.sent[-1][0].text == "the task"
    assert sum(len(message.text) for message in model.sent[-1]) / 4 < WINDOW


def test_hooks_protect_text_see_the_summary_and_may_leave_it_out(run: Run) -> None:
    hooks = leave_results_alone(hw.HookChain())
    seen: list[Any] = []

    @hooks.on("pre_auto_compact", name="protect")
    def protect(event: Any) -> dict[str, str]:
        assert event.tokens_before > event.target_tokens
        return {"additional_context": "The password of the vault is a secret."}

    @hooks.on("post_auto_compact", name="after")
    def after(event: Any) -> None:
        seen.append((event.summary, event.tokens_before > event.tokens_after, len(event.ids_before)))

    requests: list[str] = []
    hooks.on("pre_llm_request", name="requests")(lambda event: requests.append(event.system_prompt))
    model = Talker(12)
    run(agent_of(model, hooks=hooks), "the task")
    assert seen and seen[0][0].startswith("pages were read") and seen[0][1]
    assert "To be kept as it is:\nThe password of the vault is a secret." in model.sent[-1][1].text
    assert sum(prompt.startswith(SUMMARISE) for prompt in requests) == len(model.asked)

    hooks.on("pre_auto_compact", name="not_now")(lambda event: hw.skip("not now"))
    model = Talker(12)
    run(agent_of(model, hooks=hooks), "the task")
    assert not model.asked


def test_a_request_for_a_summary_that_a_hook_stops_is_only_left_out(run: Run) -> None:
    hooks = leave_results_alone(hw.HookChain())

    @hooks.on("pre_llm_request", name="no_summaries")
    def no_summaries(event: Any) -> Any:
        return hw.stop("nothing of this leaves the house") if event.system_prompt.startswith(SUMMARISE) else None

    model = Talker(12)
    assert run(agent_of(model, hooks=hooks), "the task").text == "done"
    assert not model.asked


def test_a_watched_run_tells_of_it_and_none_asks_for_none() -> None:
    async def main(**options: Any) -> tuple[int, Talker]:
        model = Talker(12)
        agent = agent_of(model, hooks=leave_results_alone(hw.HookChain()), **options)
        return sum([event.summarised async for event in agent.stream("go") if event.type == "fitted"]), model

    summarised, model = asyncio.run(main())
    assert summarised == len(model.asked) > 0
    summarised, model = asyncio.run(main(auto_compact=None))
    assert summarised == len(model.asked) == 0
