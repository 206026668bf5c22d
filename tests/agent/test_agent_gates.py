"""A gate that fails in any way refuses, through every way into an agent; an observer that fails changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from failures import KINDS, Failure, add, cases
from runs import ENTRANCES, Probe, Run, call, check_history, told, transcript

import hookwright as hw

CASES = cases()
IDS = [f"{kind}-{failure.name}" for kind, failure in CASES]


def an_agent(probe: Probe, chain: hw.HookChain, session: hw.Session | None = None) -> hw.Agent:
    return hw.Agent(
        hw.Scripted([call(text="x", id="call_a"), "I see."]), tools=[probe.tool], hooks=chain, session=session
    )


def test_the_table_says_how_long_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert {kind for kind, _ in CASES} == {*KINDS, "shell"}
    with capsys.disabled():
        print(
            f"\nfail-closed in an agent: {len(CASES) * len(ENTRANCES)} cases "
            f"({len(CASES)} kinds and failures, {len(ENTRANCES)} entrances)"
        )


@pytest.mark.parametrize(("kind", "failure"), CASES, ids=IDS)
def test_a_gate_that_fails_keeps_the_tool_from_running(run: Run, probe: Probe, kind: str, failure: Failure) -> None:
    chain = hw.HookChain()
    add(chain, kind, failure, "pre_tool_execution", role="gate")
    agent = an_agent(probe, chain)
    result = run(agent, "go")
    assert probe.entered == []
    # The refusal does not kill the run: the model reads why and goes on.
    assert (result.status, result.text) == ("success", "I see.")
    (made,) = result.tool_calls
    assert (made.cause, made.ran, made.is_error) == ("denied", False, True)
    assert told(agent) == [made.result]
    assert "failing" in made.result
    assert failure.says in made.result
    check_history(agent.history)


@pytest.mark.parametrize(("kind", "failure"), CASES, ids=IDS)
@pytest.mark.parametrize("entrance", ["run_sync", "stream"])
def test_an_observer_that_fails_leaves_the_transcript_as_it_is(
    tmp_path: Path, entrance: str, kind: str, failure: Failure
) -> None:
    files = []
    for name, failing in (("without", False), ("with", True)):
        chain = hw.HookChain()
        if failing:
            for event in ("pre_tool_execution", "post_tool_execution"):
                add(chain, kind, failure, event, name=f"failing {event}", role="observer")
        session = hw.Session(tmp_path / name, id="session", cwd=tmp_path, clock=1.7e9)
        probe = Probe()
        agent = an_agent(probe, chain, session)
        result = ENTRANCES[entrance](agent, "go")
        assert (result.status, probe.entered) == ("success", ["x"])
        session.close()
        files.append((transcript(session), told(agent), (session.path / "session.json").read_bytes()))
    assert files[0] == files[1]


@pytest.mark.parametrize("event", ["pre_send_message", "pre_llm_request", "post_llm_response", "pre_tool_batch"])
def test_a_gate_that_fails_on_an_event_without_skip_stops_the_turn(run: Run, probe: Probe, event: str) -> None:
    chain = hw.HookChain()

    @chain.on(event, role="gate", name="broken")
    def broken(_: hw.HookEvent) -> None:
        raise ValueError("no idea")

    agent = an_agent(probe, chain)
    result = run(agent, "go")
    assert (result.status, result.stopped_by) == ("stopped", "broken")
    assert "no idea" in (result.reason or "")
    assert probe.entered == []
    check_history(agent.history)


def test_a_gate_judges_what_the_last_rewriter_left_though_it_was_registered_first(run: Run, probe: Probe) -> None:
    chain = hw.HookChain()

    @chain.on("pre_tool_execution", role="gate")
    def no_rm(event: hw.HookEvent) -> hw.HookResult | None:
        return hw.skip("deleting is not allowed") if "rm" in event.tool_arguments["text"] else None

    @chain.on("pre_tool_execution")
    def rewrites(event: hw.HookEvent) -> dict[str, object]:
        return {"tool_arguments": {"text": "rm -r ."}}

    agent = an_agent(probe, chain)
    result = run(agent, "go")
    assert probe.entered == []
    assert told(agent) == ["deleting is not allowed"] or "deleting is not allowed" in told(agent)[0]
    assert result.tool_calls[0].arguments == {"text": "rm -r ."}


def test_a_shadow_gate_refuses_nothing_and_says_what_it_would_have_done(run: Run, probe: Probe) -> None:
    chain = hw.HookChain()
    chain.add(lambda event: hw.skip("no"), "pre_tool_execution", role="gate", name="trial", shadow=True)
    result = run(an_agent(probe, chain), "go")
    assert probe.entered == ["x"]
    (outcome,) = result.trace
    assert outcome.runs[0].would_halt == ("skip", "no")
