"""Rules that allow, ask and deny, as a function, on a chain, and in an agent with somebody to ask."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from calls import Tools, chain_of
from hypothesis import given
from hypothesis import strategies as st
from runs import Run
from support import Dispatch

import hookwright as hw

PUSHES = [
    "git push",
    "cd . && git push",
    "git -C . push",
    "for x in a b; do git push $x; done",
    "echo $(git push)",
    "git  push",
    'git "push" origin',
    "if true; then (git push); fi",
    "true | xargs git push",
    "/usr/bin/git push",
]


def shell(rules: hw.PermissionRules, command: str) -> str:
    return rules.decide("shell", {"command": command}).action


@pytest.mark.parametrize("command", PUSHES)
def test_a_denied_command_is_found_wherever_it_stands(dispatch: Dispatch, command: str) -> None:
    rules = hw.PermissionRules(allow=["Shell"], deny=["Shell(git push:*)"])
    arguments = {"command": command}
    outcome = dispatch(chain_of(rules), "pre_tool_execution", tool_name="shell", tool_arguments=arguments)
    assert (outcome.action, outcome.halted_by) == ("skip", "permission_rules")
    assert "`Shell(git push:*)` forbids it" in outcome.reason
    assert outcome.to_dict()["rule"] == "Shell(git push:*)"
    assert outcome.runs[0].notes == ["by the rule Shell(git push:*)"]


@pytest.mark.parametrize(
    ("command", "action"),
    [
        ("cargo build --release", "allow"),
        ("cargo build && curl x | sh", "ask"),
        ("cargo build; rm -r x", "ask"),
        ("cargo build > log", "ask"),
        ("cargo build $(curl x)", "ask"),
        ("LD_PRELOAD=x cargo build", "ask"),
        ("curl x", "ask"),
    ],
)
def test_an_allowed_command_allows_nothing_beside_it(dispatch: Dispatch, command: str, action: str) -> None:
    rules = hw.PermissionRules(allow=["Shell(cargo build:*)"])
    outcome = dispatch(chain_of(rules), "pre_tool_execution", tool_name="shell", tool_arguments={"command": command})
    assert (outcome.action or "allow") == action
    assert rules.decide("shell", {"command": command}).action == action


@given(st.permutations(["allow", "ask", "deny"]), st.permutations(["builtin", "user", "project", "session"]))
def test_deny_beats_ask_and_ask_beats_allow_in_any_order_and_level(lists: Any, levels: Any) -> None:
    rule = {"allow": "Shell(x y:*)", "ask": "Shell(x:*)", "deny": "Shell(x y z)"}
    at = {level: {name: [rule[name]]} for name, level in zip(lists, levels, strict=False)}
    rules = hw.PermissionRules(levels=at)
    assert [shell(rules, command) for command in ("x y z", "x y a", "x", "y")] == ["deny", "ask", "ask", "ask"]


def test_links_and_dots_do_not_escape_path_rules(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "out").symlink_to(tmp_path)
    rules = hw.PermissionRules(allow=["Write(path:src/**)"], deny=["Write(path:secret/**)"])

    def write(path: str) -> str:
        return rules.decide("write_file", {"path": path, "content": ""}, cwd=tmp_path).action

    assert [write(path) for path in ("src/a", str(tmp_path / "src/a"))] == ["allow", "allow"]
    assert [write(path) for path in ("src/../a", "src/out/a", "/etc/passwd", "~/a", "src/out/src/a/../../x")] == [
        "ask"
    ] * 5
    assert [write(path) for path in ("secret/a", "src/../secret/a", "src/out/secret/a")] == ["deny"] * 3


def test_domains_are_those_of_the_url_that_is_fetched() -> None:
    rules = hw.PermissionRules(allow=["Fetch(domain:example.org)"])

    def fetch(url: str) -> str:
        return rules.decide("WebFetch", {"url": url, "prompt": "what is there?"}).action

    assert fetch("https://example.org/a") == fetch("https://EXAMPLE.org.:443") == "allow"
    for url in (
        "https://example.org@evil.net/",
        "https://example.org:443@evil.net",
        "https://user@example.org/",
        "https://example.org.evil.net/",
        "https://evil.net/example.org",
        "https://example.org\\@evil.net",
        "https://www.example.org",
        "file:///etc/passwd",
        "",
    ):
        assert fetch(url) == "ask", url


def test_malformed_rules_are_errors_that_name_each() -> None:
    with pytest.raises(hw.ConfigError) as caught:
        hw.PermissionRules(
            allow=["Shell(ok)", "Shell(git push"], deny=["Write(src)"], levels={"user": {"ask": ["x y"]}}
        )
    assert isinstance(caught.value, ValueError)
    assert [str(problem) for problem in caught.value.problems] == [
        'allow[1]: "Shell(git push": the closing bracket at the end is missing',
        'deny[0]: "Write(src)": Write takes a path; write Write(path:src)',
        "user: ask[0]: \"x y\": ' ' is in no name; write Name or Name(specifier)",
    ]
    assert "3 rules cannot be read" in str(caught.value)
    with pytest.raises(TypeError, match="put the rule into brackets"):
        hw.PermissionRules(allow="Shell")
    with pytest.raises(TypeError, match="a rule is text"):
        hw.PermissionRules(deny=[3])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="unknown level"):
        hw.PermissionRules(levels={"team": {}})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="has allow, ask and deny"):
        hw.PermissionRules(levels={"user": {"alow": []}})  # type: ignore[typeddict-unknown-key]
    with pytest.raises(ValueError, match="default must be"):
        hw.PermissionRules(default="no")  # type: ignore[arg-type]


def test_what_no_rule_matches_asks_unless_it_only_looks() -> None:
    for default in ("ask", "deny", "allow"):
        rules = hw.PermissionRules(default=default)  # type: ignore[arg-type]
        assert rules.decide("read_file", {"path": "/etc/passwd"}).allowed
        for tool in ("write_file", "mcp__fs__read", "Task", "python"):
            assert rules.decide(tool, {"path": "a"}).action == default, tool
        assert rules.decide("shell", {}).action == "deny"


class Asked:
    """An approver that gives these answers, one after the other, and remembers what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.requests: list[hw.ApprovalRequest] = []

    def __call__(self, request: hw.ApprovalRequest) -> Any:
        self.requests.append(request)
        return self.answers.pop(0)


def write(path: str) -> hw.ToolCall:
    return hw.ToolCall("write_file", {"path": path, "content": "x"})


@pytest.mark.parametrize("rule", [{"ask": ["Write"]}, {}])
def test_always_allows_one_write_for_that_path_alone(run: Run, tmp_path: Path, rule: dict[str, Any]) -> None:
    rules = hw.PermissionRules(**rule)
    hooks = chain_of(rules)
    decided: list[tuple[str, str, str | None]] = []
    asked: list[str | None] = []

    @hooks.on("permission_decided", role="observer")
    def note(event: hw.PermissionDecided) -> None:
        decided.append((event.decision, event.by, event.rule))

    @hooks.on("permission_request", role="observer")
    def note_rule(event: hw.PermissionRequest) -> None:
        asked.append(event.suggested_rule)

    tools = Tools(write_file=None)
    approver = Asked("always", False, (False, "not that one"))
    session = hw.Session(cwd=tmp_path)
    paths = ["a.txt", "a.txt", "sub/../a.txt", "b.txt", "a.txt/c"]
    agent = tools.agent(*map(write, paths), hooks=hooks, approver=approver, session=session, max_repeated_calls=None)
    result = run(agent, "go")
    assert [call.cause for call in result.tool_calls] == [None, None, None, "denied", "denied"]
    assert "not that one" in result.tool_calls[4].result
    suggested = f"Write(path:{tmp_path.resolve()}/a.txt)"
    assert [request.suggested_rule for request in approver.requests] == asked
    assert asked[0] == suggested
    assert decided == [("allow", "approver", suggested), ("deny", "approver", None), ("deny", "approver", None)]
    assert rules.remembered(session.id) == [suggested]
    assert rules.remembered() == []
    # Another session has not been asked.
    other = tools.agent(write("a.txt"), hooks=hooks, session=hw.Session(cwd=tmp_path))
    assert run(other, "go").tool_calls[0].cause == "denied"


def test_a_plain_yes_is_for_once_and_always_needs_a_rule(run: Run) -> None:
    rules = hw.PermissionRules()
    tools = Tools(Task=None, write_file=None)
    approver = Asked(True, False, "always", False)
    task = hw.ToolCall("Task", {"content": "x"})
    agent = tools.agent(write("a"), write("a"), task, task, hooks=chain_of(rules), approver=approver)
    result = run(agent, "go")
    assert [call.cause for call in result.tool_calls] == [None, "denied", None, "denied"]
    assert approver.requests[2].suggested_rule is None
    assert rules.remembered(agent.session.id) == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "nobody is there to give it"),
        ({"approver": lambda request: request.over.wait(60), "approval_timeout": 0.05}, "nobody answered"),
        ({"approver": lambda request: 1 / 0}, "the approver failed"),
        ({"approver": lambda request: None}, "a person refused"),
        ({"approver": lambda request: "sure"}, "neither True nor False"),
    ],
)
def test_without_a_clear_yes_in_time_the_call_is_denied(run: Run, options: dict[str, Any], says: str) -> None:
    tools = Tools(write_file=None)
    result = run(tools.agent(write("a"), hooks=chain_of(hw.PermissionRules()), **options), "go")
    assert (result.tool_calls[0].cause, tools.entered) == ("denied", [])
    assert says in result.tool_calls[0].result


def test_rewritten_arguments_are_judged_again_and_get_no_rule_of_the_old_ones(run: Run) -> None:
    rules = hw.PermissionRules(deny=["Write(path:/etc/**)"], ask=["Write"], allow=["Read"])
    hooks = chain_of(rules)

    @hooks.on("permission_request")
    def rewrites(event: hw.PermissionRequest) -> dict[str, Any]:
        return {"tool_arguments": {"path": "/etc/passwd", "content": "x"}}

    tools = Tools(write_file=None)
    agent = tools.agent(write("a"), hooks=hooks, approver=Asked("always"))
    result = run(agent, "go")
    assert (result.tool_calls[0].cause, tools.entered) == ("denied", [])
    assert "`Write(path:/etc/**)` forbids it" in result.tool_calls[0].result
    assert rules.remembered(agent.session.id) == []


def test_a_denial_of_another_gate_stands_over_an_allowed_call() -> None:
    hooks = chain_of(hw.PermissionRules(allow=["Write"]), hw.ReviewGate())
    outcome = hooks.run("pre_tool_execution", tool_name="Write", tool_arguments={"path": "a"})
    assert (outcome.action, outcome.halted_by) == ("skip", "review_gate")


def test_paths_are_those_of_the_tool_that_has_a_root(run: Run, tmp_path: Path) -> None:
    (tmp_path / "inner" / "src").mkdir(parents=True)
    rules = hw.PermissionRules(allow=["Write(path:src/**)"], default="deny")
    agent = hw.Agent(
        hw.Scripted([write("src/a"), "done"]),
        tools=hw.workspace_tools(tmp_path / "inner"),
        hooks=chain_of(rules),
        cwd=tmp_path,
    )
    assert run(agent, "go").tool_calls[0].cause == "denied"
    agent = hw.Agent(
        hw.Scripted([write("src/a"), "done"]),
        tools=hw.workspace_tools(tmp_path / "inner"),
        hooks=chain_of(rules),
        cwd=tmp_path / "inner",
    )
    assert run(agent, "go").tool_calls[0].cause is None


def test_decisions_are_recorded_with_rule_reason_and_time(tmp_path: Path) -> None:
    hooks = chain_of(hw.PermissionRules(allow=["Write(path:src/**)"], ask=["Dispatch"], deny=["Shell(rm:*)"]))
    calls = [("Write", {"path": "src/a"}), ("Task", {"prompt": "x"}), ("shell", {"command": "rm x"}), ("Read", {})]
    with hooks.record(tmp_path / "record.jsonl"):
        for tool, arguments in calls:
            hooks.run("pre_tool_execution", tool_name=tool, tool_arguments=arguments, cwd=str(tmp_path))
    outcomes = [json.loads(line)["outcome"] for line in (tmp_path / "record.jsonl").read_text().splitlines()]
    assert [outcome["runs"][0].get("notes") for outcome in outcomes] == [
        ["allowed by Write(path:src/**)"],
        ["by the rule Dispatch"],
        ["by the rule Shell(rm:*)"],
        ["allowed"],
    ]
    assert [outcome.get("rule") for outcome in outcomes] == [None, "Dispatch", "Shell(rm:*)", None]
    assert all(outcome["runs"][0]["ms"] >= 0 for outcome in outcomes)
    assert "says that a person decides" in outcomes[1]["reason"]


def test_a_gate_of_ones_own_can_name_rules_as_well() -> None:
    hooks = hw.HookChain()

    @hooks.on("pre_tool_execution", role="gate")
    def mine(event: hw.PreToolExecution) -> dict[str, Any]:
        return {"action": "ask", "reason": "hm", "rule": "mine", "suggested_rule": "Write(path:a)"}

    outcome = hooks.run("pre_tool_execution", tool_name="x", tool_arguments={}).to_dict()
    assert (outcome["action"], outcome["rule"], outcome["suggested_rule"]) == ("ask", "mine", "Write(path:a)")
    result = hw.HookResult(action="ask", reason="hm", rule="mine")
    assert (result.rule, result.suggested_rule) == ("mine", None)
    with pytest.raises(ValueError, match="rule without an action"):
        hw.HookResult(rule="mine")


def test_a_table_of_ones_own_makes_programs_known() -> None:
    table = hw.shell.CommandTable().extend("[[program]]\nnames = ['ledger']\noptions.flags = '--sorted'\n")
    for gate in (hw.PermissionRules(table=table), hw.ReviewGate(table=table), hw.PlanGate(table=table)):
        assert gate.decide("shell", {"command": "ledger --sorted"}).allowed
        assert not type(gate)().decide("shell", {"command": "ledger --sorted"}).allowed
