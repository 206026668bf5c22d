"""Goals: an executor works, a reviewer judges, and the runner decides."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from goals import FAIL, PASS, Clock, Pursue, make, reviews, said_to, scripted

import hookwright as hw

# Verdicts.


def test_a_goal_that_is_reached_at_once(pursue: Pursue) -> None:
    executor = scripted("I ran them: all pass.")
    goal = make(executor, reviews(f"Checked.\n{PASS}"), criteria="pytest exits with 0", max_rounds=5)
    result = pursue(goal)
    assert (result.status, result.reason, len(result.rounds)) == ("passed", None, 1)
    assert result.text == "I ran them: all pass."
    assert (result.rounds[0].verdict, result.rounds[0].ended) == ("pass", "done")
    assert goal.status == "passed" and goal.result == result
    (asked,) = executor.history[:1]
    assert asked.text.startswith("The goal:\nall tests pass\n\nIt is reached when:\npytest exits with 0")
    assert asked.sender == "goal"


def test_fail_then_pass_hands_the_feedback_on(pursue: Pursue) -> None:
    executor = scripted("one", "two")
    result = pursue(make(executor, reviews(FAIL, PASS)))
    assert (result.status, [entry.verdict for entry in result.rounds]) == ("passed", ["fail", "pass"])
    assert result.rounds[0].feedback == "a test is red"
    assert result.rounds[0].items == ("test_a", {"line": 3})
    assert '<review_feedback>\na test is red\n- test_a\n- {"line":3}\n</review_feedback>' in said_to(executor)[1]


def test_used_up_rounds_are_a_failure(pursue: Pursue) -> None:
    result = pursue(make(scripted("one", "two"), reviews(FAIL, FAIL), max_rounds=2))
    assert (result.status, result.reason) == ("failed", "the goal was not reached in 2 rounds")
    assert len(result.rounds) == 2


def test_a_quoted_example_before_the_verdict_is_no_verdict(pursue: Pursue) -> None:
    reply = f"The form is\n```json\n{PASS}\n```\nand what I found is:\n{FAIL}"
    assert pursue(make(scripted("one"), reviews(reply), max_rounds=1)).status == "failed"


def test_a_reply_without_a_verdict_is_asked_for_once_more_in_the_same_conversation(pursue: Pursue) -> None:
    asked: list[list[str]] = []

    def review(request: hw.Request) -> str:
        asked.append([message.text for message in request.messages if message.role == "user"])
        return "Looks good to me." if len(asked) == 1 else PASS

    result = pursue(make(scripted("one"), hw.Agent(hw.FunctionModel(review, inline=True), name="reviewer")))
    assert result.status == "passed"
    assert [len(texts) for texts in asked] == [1, 2]
    assert asked[1][1].startswith("Your last reply was no verdict: no JSON object stands at the end")
    assert result.rounds[0].invalid == ("no JSON object stands at the end of the reply, with nothing behind it",)


@pytest.mark.parametrize("second", ["still good", '{"verdict": "fail"}', '{"verdict": "perhaps"}'])
def test_two_replies_without_a_verdict_block(pursue: Pursue, second: str) -> None:
    result = pursue(make(scripted("one"), reviews("good", second)))
    assert result.status == "blocked"
    assert "no verdict in 2 replies" in str(result.reason)


def test_a_reviewer_whose_model_fails_gives_no_verdict(pursue: Pursue) -> None:
    result = pursue(make(scripted("one"), reviews()))
    assert result.status == "blocked"
    assert "the script is used up" in str(result.reason)


# The executor's ends.


def slow(clock: Clock, *, seconds: float) -> Any:
    """A model that takes its time, and never answers if it is not stopped."""
    never = threading.Event()

    def think(request: hw.Request) -> str:
        clock.advance(seconds)
        never.wait(60)
        return "too late"

    return hw.FunctionModel(think)


def test_an_executor_that_runs_out_of_time_twice_blocks(pursue: Pursue) -> None:
    clock = Clock()
    goal = make(hw.Agent(slow(clock, seconds=61), name="executor"), reviews(), round_timeout=60)
    goal._after = clock.after
    result = pursue(goal)
    assert (result.status, result.reason) == ("blocked", "the executor ran out of time 2 times")
    assert [entry.ended for entry in result.rounds] == ["timeout", "timeout"]
    assert "ran out of time" in said_to(goal.executor)[1]
    assert clock.now == 122


def test_an_executor_that_is_in_time_is_left_alone(pursue: Pursue) -> None:
    clock = Clock()

    def think(request: hw.Request) -> str:
        clock.advance(59)
        return "done"

    goal = make(hw.Agent(hw.FunctionModel(think), name="executor"), reviews(FAIL, PASS), round_timeout=60)
    goal._after = clock.after
    assert pursue(goal).status == "passed"


def test_a_reviewer_that_runs_out_of_time_gives_no_verdict(pursue: Pursue) -> None:
    clock = Clock()
    goal = make(scripted("one"), hw.Agent(slow(clock, seconds=31), name="reviewer"), review_timeout=30)
    goal._after = clock.after
    result = pursue(goal)
    assert (result.status, len(result.rounds[0].invalid)) == ("blocked", 2)
    assert "ran out of time" in str(result.reason)


def test_the_same_error_twice_blocks(pursue: Pursue) -> None:
    broken = hw.ModelError("the disk is full")
    executor = scripted(broken, broken)
    result = pursue(make(executor, reviews()))
    assert result.status == "blocked"
    assert "the same error came twice" in str(result.reason) and "the disk is full" in str(result.reason)
    assert "<last_error>" in said_to(executor)[1]


def test_an_error_that_does_not_come_again_does_not_block(pursue: Pursue) -> None:
    result = pursue(make(scripted(hw.ModelError("busy"), "done"), reviews(PASS)))
    assert (result.status, [entry.ended for entry in result.rounds]) == ("passed", ["error", "done"])


def test_an_executor_that_is_no_longer_there_ends_it(pursue: Pursue, tmp_path: Path) -> None:
    executor = scripted("never", session=tmp_path / "session")
    executor.close()
    result = pursue(make(executor, reviews()))
    assert result.status == "gone"
    assert len(result.rounds) == 1


def test_a_cancelled_executor_ends_it(pursue: Pursue) -> None:
    def think(request: hw.Request) -> str:
        executor.cancel()
        return "never heard"

    executor = hw.Agent(hw.FunctionModel(think), name="executor")
    result = pursue(make(executor, reviews()))
    assert (result.status, result.rounds[0].ended) == ("cancelled", "cancelled")


def test_a_cancelled_reviewer_ends_it(pursue: Pursue) -> None:
    def judge(request: hw.Request) -> str:
        reviewer.cancel()
        return PASS

    reviewer = hw.Agent(hw.FunctionModel(judge), name="reviewer")
    result = pursue(make(scripted("one"), reviewer))
    assert (result.status, result.reason) == ("cancelled", "the reviewer was cancelled")


@pytest.mark.parametrize("who", ["executor", "reviewer"])
def test_a_cancelled_goal_ends_at_once(pursue: Pursue, who: str) -> None:
    def think(request: hw.Request) -> str:
        goal.cancel()
        return PASS

    canceller = hw.Agent(hw.FunctionModel(think), name=who)
    executor, reviewer = (canceller, reviews()) if who == "executor" else (scripted("one"), canceller)
    goal = make(executor, reviewer)
    result = pursue(goal)
    assert (result.status, result.reason) == ("cancelled", "it was cancelled")
    assert all(entry.verdict is None for entry in result.rounds)


# The workspace.


def writer(path: Path, contents: list[str]) -> hw.Agent:
    """An executor that writes the next content in each round, and nothing when they are used up."""

    def write(request: hw.Request) -> str:
        if contents:
            path.write_text(contents.pop(0))
        return "done"

    return hw.Agent(hw.FunctionModel(write, inline=True), name="executor")


def test_a_workspace_left_alone_twice_blocks(pursue: Pursue, tmp_path: Path) -> None:
    goal = make(writer(tmp_path / "new", ["1", "2"]), reviews(*[FAIL] * 9), max_rounds=9, workspace=tmp_path)
    result = pursue(goal)
    assert (result.status, result.reason) == ("blocked", "two rounds in a row left the workspace as it was")
    assert [entry.unchanged for entry in result.rounds] == [False, False, True, True]


def test_untracked_content_alone_is_a_change(pursue: Pursue, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    goal = make(writer(tmp_path / "new", ["1", "2", "3", "4"]), reviews(*[FAIL] * 4), max_rounds=4, workspace=tmp_path)
    result = pursue(goal)
    assert result.status == "failed"
    assert len({entry.fingerprint for entry in result.rounds}) == 4


def test_the_folder_of_workspace_tools_is_what_is_looked_at(tmp_path: Path) -> None:
    calls = [hw.ToolCall("write_file", {"path": "a.txt", "content": str(number)}) for number in range(3)]
    replies = [reply for call in calls for reply in (call, "done")]
    executor = scripted(*replies, tools=hw.workspace_tools(tmp_path))
    goal = hw.Goal("x", executor=executor, reviewer=reviews(FAIL, FAIL, FAIL), max_rounds=3)
    result = goal.run_sync()
    assert (result.status, (tmp_path / "a.txt").read_text()) == ("failed", "2")
    assert [entry.unchanged for entry in result.rounds] == [False, False, False]
    assert result.rounds[0].calls[0]["name"] == "write_file"


# What the user says.


def test_text_during_a_review_waits_for_the_verdict_and_comes_in_order(pursue: Pursue) -> None:
    def review(request: hw.Request) -> str:
        if not said:
            said.extend(goal.send(text) for text in ("use tabs", "and be quick"))
            return FAIL
        return PASS

    said: list[str] = []
    executor = scripted("one", "tabs it is", "quick it is", "two")
    goal = make(executor, hw.Agent(hw.FunctionModel(review), name="reviewer"))
    result = pursue(goal)
    assert said == ["queued", "queued"]
    first, *delivered, second = said_to(executor)
    assert delivered == ["use tabs", "and be quick"]
    assert "review_feedback" in second and "review_feedback" not in first
    assert [message.sender for message in executor.history if message.role == "user"] == ["goal", None, None, "goal"]
    assert [(message.text, message.reply, message.status) for message in result.messages] == [
        ("use tabs", "tabs it is", "done"),
        ("and be quick", "quick it is", "done"),
    ]
    assert result.status == "passed"


def test_text_that_waits_is_delivered_after_the_last_verdict_too(pursue: Pursue) -> None:
    def review(request: hw.Request) -> str:
        goal.send("thank you")
        return PASS

    executor = scripted("one", "you are welcome")
    goal = make(executor, hw.Agent(hw.FunctionModel(review), name="reviewer"))
    result = pursue(goal)
    assert (result.status, said_to(executor)[1]) == ("passed", "thank you")
    with pytest.raises(hw.GoalError, match=r"executor\.run"):
        goal.send("one more")


def test_follow_ups_pass_while_a_verdict_is_awaited(pursue: Pursue) -> None:
    heard = threading.Event()
    told: list[str] = []

    def work(request: hw.Request) -> str:
        told.append(request.messages[-1].text)
        if told[-1] == "by the way":
            heard.set()
        return "noted"

    def review(request: hw.Request) -> str:
        assert goal.send("by the way", follow_up=True) == "passed"
        assert heard.wait(30), "a follow-up does not wait for the verdict"
        return PASS

    goal = make(hw.Agent(hw.FunctionModel(work), name="executor"), hw.Agent(hw.FunctionModel(review), name="reviewer"))
    result = pursue(goal)
    assert result.status == "passed"
    assert [(message.text, message.reply) for message in result.messages] == [("by the way", "noted")]


def test_commands_pass_and_attachments_are_refused(pursue: Pursue) -> None:
    said: list[Any] = []

    def review(request: hw.Request) -> str:
        said.append(goal.send("/status"))
        said.append(goal.send("/budget 3"))
        said.append(goal.send("/unknown"))
        with pytest.raises(hw.GoalError, match="attachments cannot be sent"):
            goal.send("look", attachments=["screen.png"])
        with pytest.raises(hw.GoalError, match="nothing in this message"):
            goal.send("  ")
        return PASS

    executor = scripted("one", "what is /unknown?")
    goal = make(executor, hw.Agent(hw.FunctionModel(review), name="reviewer"), commands=["/budget"])
    assert pursue(goal).status == "passed"
    assert said == ["command", "command", "queued"]


def test_the_cancel_command_ends_the_goal(pursue: Pursue) -> None:
    def review(request: hw.Request) -> str:
        goal.send("first")
        assert goal.send("/cancel") == "command"
        return PASS

    goal = make(scripted("one"), hw.Agent(hw.FunctionModel(review), name="reviewer"))
    result = pursue(goal)
    assert result.status == "cancelled"
    assert [(message.text, message.status) for message in result.messages] == [("first", "undelivered")]


# The gate.


def test_a_reviewer_whose_gate_would_refuse_nothing_does_not_run(pursue: Pursue) -> None:
    executor = scripted("never")
    goal = make(executor, scripted(PASS, name="reviewer", hooks=hw.HookChain(shadow=True)))
    with pytest.raises(hw.GoalError, match="would refuse nothing"):
        pursue(goal)
    assert executor.history == []


def test_a_gate_of_the_reviewers_own_judges_beside(pursue: Pursue) -> None:
    hooks = hw.HookChain()
    hooks.add(hw.ReviewGate(when="review", tests=False))
    calls = [hw.ToolCall("shell", {"command": "pytest -q"}), hw.ToolCall("shell", {"command": "ls > x"})]

    @hw.tool(effect="execute", inline=True)
    def shell(command: str) -> str:
        """Runs a command."""
        raise AssertionError(command)

    reviewer = scripted(*calls, PASS, name="reviewer", tools=[shell], hooks=hooks)
    assert pursue(make(scripted("one"), reviewer)).status == "passed"


def test_the_reviewer_works_under_the_gate_and_its_own_hooks(pursue: Pursue) -> None:
    written: list[str] = []
    seen: list[str] = []

    def write(path: str) -> str:
        """Writes."""
        written.append(path)
        return "written"

    hooks = hw.HookChain()
    for event in ("pre_tool_execution", "session_start", "session_end"):
        hooks.add(lambda event: seen.append(event.event), event, role="observer", name=event)
    tool = hw.tool(write, effect="write", inline=True)
    reviewer = scripted(hw.ToolCall("write", {"path": "x"}), PASS, name="reviewer", tools=[tool], hooks=hooks)
    result = pursue(make(scripted("one"), reviewer))
    assert (result.status, written) == ("passed", [])
    assert seen == ["session_start", "pre_tool_execution", "session_end"]
    assert reviewer.history == []
    assert len(hooks) == 3, "the reviewer's own chain is not changed"


def test_no_agent_judges_itself_and_a_goal_has_one_runner(pursue: Pursue) -> None:
    agent = scripted("one")
    with pytest.raises(ValueError, match="two agents"):
        hw.Goal("x", executor=agent, reviewer=agent)
    failures: list[str] = []

    def again() -> str:
        """Starts another round."""
        try:
            goal.run_sync()
        except hw.GoalError as error:
            failures.append(str(error))
        return "tried"

    goal = make(scripted(hw.ToolCall("again", {}), "done", tools=[hw.tool(again)]), reviews(PASS))
    assert pursue(goal).status == "passed"
    assert failures == ["this goal is being pursued already; a goal has one runner"]


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        ({"text": " "}, ValueError, "needs a text"),
        ({"text": 3}, TypeError, "text must be text"),
        ({"max_rounds": 0}, ValueError, "from 1 on"),
        ({"max_rounds": True}, ValueError, "from 1 on"),
        ({"round_timeout": 0}, ValueError, "round_timeout must be a number of seconds"),
        ({"review_timeout": float("nan")}, ValueError, "review_timeout must be a number of seconds"),
        ({"executor": "coder"}, TypeError, "executor must be an Agent"),
        ({"workspace": "/nonexistent"}, NotADirectoryError, "workspace must be a folder"),
        ({"commands": ["budget"]}, ValueError, "begins with a slash"),
    ],
)
def test_what_makes_no_goal_is_refused(wrong: dict[str, Any], error: type[Exception], says: str) -> None:
    options: dict[str, Any] = {"text": "x", "executor": scripted(), "reviewer": reviews(), **wrong}
    with pytest.raises(error, match=says):
        hw.Goal(options.pop("text"), **options)


# What people read.


def test_a_result_is_readable() -> None:
    goal = make(scripted("<b>one</b>", "two"), reviews(FAIL, PASS), max_rounds=3)
    assert repr(goal) == "<Goal 'all tests pass': not begun, round 0 of 3>"
    result = goal.run_sync()
    assert repr(goal) == "<Goal 'all tests pass': passed, round 2 of 3>"
    assert repr(result) == "<GoalResult passed; 'two'; 2 rounds, 0 tokens>"
    page = result._repr_html_()
    assert "&lt;b&gt;one&lt;/b&gt;" in page and "<b>one</b>" not in page
    assert "a test is red" in page and "passed" in page
    assert json.loads(json.dumps(result.to_dict()))["rounds"][0]["feedback"] == "a test is red"
    assert goal._repr_html_() == page


def test_usage_is_that_of_both_agents() -> None:
    def reply(text: str) -> hw.Reply:
        return hw.Reply(text, usage=hw.Usage(10, 1))

    result = make(scripted(reply("one"), reply("two")), reviews(reply(FAIL), reply(PASS))).run_sync()  # type: ignore[arg-type]
    assert result.usage == hw.Usage(40, 4)
    assert result.rounds[0].usage == hw.Usage(20, 2)
