"""How to test a gate: call it through a chain, no agent and no model needed.

Run it with: pytest examples/gate_under_test.py
"""

from __future__ import annotations

import pytest

import hookwright as hw


def office_hours(event: hw.PreToolExecution) -> bool:
    """A gate: no deployments with --force."""
    return "--force" not in event.tool_arguments.get("command", "")


@pytest.mark.parametrize(("command", "action"), [("deploy", None), ("deploy --force", "skip")])
def test_a_forced_deployment_is_refused(command: str, action: str | None) -> None:
    chain = hw.HookChain()
    chain.add(office_hours, "pre_tool_execution", role="gate")
    outcome = chain.run("pre_tool_execution", tool_name="shell", tool_arguments={"command": command})
    assert outcome.action == action


def test_a_new_gate_is_tried_in_shadow_first() -> None:
    chain = hw.HookChain()
    chain.add(office_hours, "pre_tool_execution", role="gate", shadow=True)
    outcome = chain.run("pre_tool_execution", tool_name="shell", tool_arguments={"command": "deploy --force"})
    assert outcome.action is None
    assert outcome.runs[0].would_halt == ("skip", "refused by office_hours")
