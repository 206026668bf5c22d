"""The kit that feeds a user's own hook the hostile cases, and what it finds in careless ones."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import hookwright as hw
from hookwright import _native
from hookwright.testing import HookReport, HostileCase, check_hook, hostile_cases

CAREFUL = """
import json, sys
event = json.load(sys.stdin)
command = (event.get("tool_arguments") or {}).get("command")
if isinstance(command, str) and "rm " in command:
    print(json.dumps({"action": "skip", "reason": "no " + command}))
"""


def kinds(report: HookReport) -> set[str]:
    return {problem.kind for problem in report.problems}


def careful(event: hw.HookEvent) -> Any:
    command = (event.get("tool_arguments") or {}).get("command")
    return not (isinstance(command, str) and "rm " in command)


async def careful_coroutine(event: hw.HookEvent) -> Any:
    await asyncio.sleep(0)
    return careful(event)


@pytest.mark.parametrize("hook", [careful, careful_coroutine])
def test_a_careful_function_has_no_problems(hook: Any) -> None:
    report = check_hook(hook, "pre_tool_execution", role="gate")
    assert report.problems == (), report
    assert len(report.cases) == 25
    assert report.ok
    report.raise_problems()


def test_a_careful_command_has_no_problems(tmp_path: Path) -> None:
    script = tmp_path / "hook.py"
    script.write_text(CAREFUL)
    hook = hw.ShellHook("pre_tool_execution", f"{sys.executable} -I {script}", role="gate", tool_name="shell")
    report = check_hook(hook)
    assert report.problems == (), report


def test_a_careless_function_fails_where_it_takes_things_for_granted() -> None:
    def careless(event: Any) -> Any:
        return "rm " not in event.tool_arguments["command"]

    report = check_hook(careless, "pre_tool_execution", role="gate")
    failed = {problem.case for problem in report.problems}
    assert kinds(report) == {"failed"}
    assert failed >= {"no fields at all", "without tool_arguments", "a number for text in tool_arguments"}
    assert failed & {"ordinary", "8 MB of text", "Chinese, Cyrillic, emoji"} == set()
    with pytest.raises(AssertionError, match="without tool_arguments: TypeError"):
        report.raise_problems()
    assert check_hook(careless, "pre_tool_execution", role="gate", ignore=failed).ok


def test_a_function_that_answers_differently_each_time_is_unstable() -> None:
    calls: list[int] = []

    def unstable(event: Any) -> Any:
        calls.append(1)
        return hw.skip("odd") if len(calls) % 2 else None

    assert kinds(check_hook(unstable, "pre_tool_execution")) == {"unstable"}


def test_a_function_that_hangs_on_some_input_is_named_with_it() -> None:
    def hangs(event: Any) -> None:
        while len(event.user_input or "") > 1_000_000:
            pass

    report = check_hook(hangs, "turn_start", timeout=0.2)
    assert [(problem.case, problem.kind) for problem in report.problems] == [
        ("8 MB of text", "timeout"),
        ("8 MB of four-byte characters", "timeout"),
    ]


@pytest.mark.parametrize(
    ("command", "kind", "says"),
    [
        ("exit 1", "failed", "exited with 1"),
        ("no-such-command-at-all", "failed", "command not found"),
        ("echo hello", "failed", "no JSON object"),
        ("echo hello; echo '{}'", "noise", "passed over 1 line"),
        ("printf '\\377'", "failed", "not UTF-8"),
        ("echo '{}'; echo '{}'", "failed", "two JSON documents"),
        ("sleep 30 & echo '{}'", "noise", "left processes running"),
        ("kill -9 $$", "failed", "signal 9"),
        ("sleep 30", "timeout", "deadline"),
    ],
)
def test_a_careless_command_is_found_out(command: str, kind: str, says: str) -> None:
    cases = hostile_cases("turn_start")[:2]
    report = check_hook(hw.ShellHook("turn_start", command, name="careless", timeout=0.5), cases=cases)
    assert {(problem.case, problem.kind) for problem in report.problems} == {(case.name, kind) for case in cases}
    assert all(says in problem.text for problem in report.problems)


def test_a_command_that_never_reads_its_input_is_fine() -> None:
    assert check_hook(hw.ShellHook("turn_start", "true")).ok


def test_a_command_that_runs_text_of_the_event_is_found_out(tmp_path: Path) -> None:
    script = tmp_path / "hook.py"
    script.write_text(
        "import json, subprocess, sys\n"
        "text = json.load(sys.stdin).get('user_input') or ''\n"
        "if isinstance(text, str) and len(text) < 1000 and chr(0) not in text:\n"
        "    subprocess.run('echo \"' + text + '\" > /dev/null', shell=True, errors='replace')\n"
    )
    report = check_hook(hw.ShellHook("turn_start", f"{sys.executable} -I {script}", name="careless"))
    assert "executes" in kinds(report)

    def evaluates(event: Any) -> None:
        with contextlib.suppress(SyntaxError, TypeError, ValueError):
            eval(f"'{event.user_input}'")

    assert [p.case for p in check_hook(evaluates, "turn_start").problems if p.kind == "executes"] == [
        "Python code in text"
    ]


@pytest.mark.parametrize("event", _native.event_table())
def test_every_event_has_cases_that_the_chain_itself_stands(event: str) -> None:
    cases = hostile_cases(event)
    assert len(cases) >= 9
    assert len({case.name for case in cases}) == len(cases)
    report = check_hook(lambda event: event.to_dict() and None, event)
    assert report.problems == (), report
    sizes = [len(json.dumps(dict(case.fields))) for case in cases]
    assert max(sizes) > 8_000_000


def test_fields_of_the_caller_are_the_ground_for_the_cases() -> None:
    cases = hostile_cases(
        "pre_tool_execution", {"tool_name": "write_file", "tool_arguments": {"path": "a", "text": "b"}}
    )
    by_name = {case.name: case for case in cases}
    assert by_name["ordinary"].fields["tool_arguments"] == {"path": "a", "text": "b"}
    assert by_name["without tool_call_id"].fields["tool_name"] == "write_file"
    assert set(by_name["null for text in tool_arguments"].fields["tool_arguments"]) == {"path", "text"}


def test_own_cases_replace_the_others() -> None:
    seen: list[Any] = []
    mine = HostileCase("mine", "turn_start", {"user_input": "x"})
    report = check_hook(lambda event: seen.append(event.user_input), "turn_start", cases=[mine])
    assert (report.cases, seen) == (("mine",), ["x", "x", "x"])


def test_mistakes_in_the_call_are_named() -> None:
    with pytest.raises(hw.HookError, match="needs an event"):
        check_hook(careful)
    with pytest.raises(hw.HookError, match="brings its events"):
        check_hook(hw.ShellHook("turn_start", "true"), "turn_end")
    with pytest.raises(hw.HookwrightError, match="there is no event"):
        hostile_cases("turn_strat")


def test_the_fixture_fails_the_test_with_the_report(check_hook: Any) -> None:
    assert check_hook(careful, "pre_tool_execution", role="gate").ok
    with pytest.raises(pytest.fail.Exception, match="ZeroDivisionError"):
        check_hook(lambda event: 1 / 0, "turn_start")


def test_the_check_works_inside_a_running_loop() -> None:
    async def main() -> HookReport:
        return check_hook(careful_coroutine, "pre_tool_execution", role="gate")

    assert asyncio.run(main()).ok
