"""Loading configuration files: levels, mistakes, functions, and what a second load replaces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hookwright as hw


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def shell(name: str, command: str = "true", **more: Any) -> dict[str, Any]:
    return {"name": name, "events": ["pre_tool_execution"], "type": "shell", "command": command, **more}


def python(name: str, callable: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "events": ["pre_tool_execution"], "type": "python", "callable": callable, **more}


def configure(folder: Path, *hooks: dict[str, Any], **top: Any) -> Path:
    """Writes a `hooks.json`, in which each hook stands on a line of its own."""
    lines = ",\n".join(json.dumps(hook) for hook in hooks)
    more = "".join(f',\n"{key}": {json.dumps(value)}' for key, value in top.items())
    return write(folder / "hooks.json", f'{{"version": 1, "hooks": [\n{lines}\n]{more}}}\n')


def call(hooks: hw.HookChain, **fields: Any) -> hw.Outcome:
    return hooks.run("pre_tool_execution", tool_name="shell", tool_arguments={"command": "ls"}, **fields)


def names(hooks: hw.HookChain) -> list[str]:
    return [hook.name for hook in hooks.hooks]


FIVE_MISTAKES = """\
version: 1
hooks:
  - name: guard
    events: [pre_tool_exection]
    type: shell
    command: ./guard.sh
  - name: style
    events: [stop]
    type: shell
    comand: ./style.sh
  - name: quick
    events: [stop]
    type: shell
    command: "true"
    timeout: 0
  - name: matcher
    events: [pre_tool_execution]
    type: shell
    command: "true"
    filter: {tool_matcher: "shell|[a"}
  - name: missing
    events: [stop]
    type: python
    callable: gates:no_deletes
"""


def test_five_kinds_of_mistake_in_one_file_are_reported_at_once(project: Path) -> None:
    file = write(project / ".hookwright/hooks.yaml", FIVE_MISTAKES)
    hooks = hw.HookChain()
    with pytest.raises(hw.ConfigError) as caught:
        hooks.load(user=False, trust=True)
    assert str(caught.value) == "\n".join(
        [
            "6 problems in the hook configuration",
            f'  {file}:4:14: unknown event "pre_tool_exection"; did you mean "pre_tool_execution"?',
            f'  {file}:7:5: missing key "command"; a hook of type shell needs it',
            f'  {file}:10:5: unknown key "comand"; did you mean "command"?',
            f'  {file}:15:14: "timeout" must be a number of seconds above 0, not the number 0',
            f'  {file}:20:28: bad pattern in tool_matcher: "shell|[a": "[" is never closed at character 7',
            f"  {file}:24:15: there is no module 'gates'; it is looked for in {project} or on Python's path",
        ]
    )
    first = caught.value.problems[0]
    assert (first.file, first.line, first.column) == (str(file), 4, 14)
    assert first.suggestion == 'did you mean "pre_tool_execution"?'
    assert names(hooks) == []


def test_without_strict_the_good_hooks_are_loaded_and_the_problems_returned(project: Path) -> None:
    configure(project / ".hookwright", shell("good"), shell("bad", timeout=0))
    hooks = hw.HookChain()
    report = hooks.load(trust=True, strict=False)
    assert [(problem.line, problem.message) for problem in report] == [
        (3, '"timeout" must be a number of seconds above 0, not the number 0')
    ]
    assert report.hooks == ("good",)
    assert names(hooks) == ["good"]
    assert repr(report).startswith("<LoadReport: 1 hook from 1 file>\n  problem: ")


@pytest.mark.parametrize("form", ["hooks.yaml", "hooks.json", "folder"])
def test_yaml_json_and_folder_form_mean_the_same(project: Path, form: str) -> None:
    folder = project / ".hookwright"
    if form == "hooks.yaml":
        text = "version: 1\nhooks:\n- name: one\n  events: pre_tool_execution\n  type: shell\n  command: exit 2\n"
        file, line = write(folder / form, text), 3
    elif form == "hooks.json":
        file, line = configure(folder, shell("one", "exit 2")), 2
    else:
        text = "events: pre_tool_execution\ntype: bash\ncommand: no.sh\n"
        file, line = write(folder / "hooks/one/HOOK.yaml", text), 1
        write(folder / "hooks/one/no.sh", "#!/bin/sh\nexit 2\n").chmod(0o755)
    hooks = hw.HookChain()
    hooks.load(user=False, trust=True)
    (info,) = hooks.hooks
    assert (info.name, info.kind, info.level, info.source) == ("one", "shell", "project", f"{file}:{line}")
    outcome = call(hooks)
    assert (outcome.action, outcome.reason) == ("skip", "blocked by one")


def test_explicit_values_are_taken_as_written(project: Path) -> None:
    more = {"role": "observer", "order": -3, "timeout": 10, "retry": 0, "filter": {"tool_name": "grep"}, "shadow": True}
    configure(project / ".hookwright", shell("one", **more), shell("off", enabled=False), budget=7)
    hooks = hw.HookChain()
    hooks.load(user=False, trust=True)
    one = next(hook for hook in hooks.hooks if hook.name == "one")
    assert (one.role, one.order, one.timeout, one.retry, one.shadow) == ("observer", -3, 10.0, 0, True)
    assert one.filter == {"tool_name": "grep"}
    assert hooks.budget == 7.0
    assert {run.name: run.status for run in call(hooks).runs} == {"one": "filtered", "off": "disabled"}


def test_levels_add_up_and_run_in_their_order(project: Path, user: Path) -> None:
    configure(user, shell("of user"))
    configure(project / ".hookwright", shell("of project"))
    hooks = hw.HookChain()
    hooks.on("pre_tool_execution", name="of program", order=-9)(lambda event: None)
    report = hooks.load(trust=True)
    assert [(hook.name, hook.level) for hook in hooks.hooks] == [
        ("of user", "user"),
        ("of project", "project"),
        ("of program", "session"),
    ]
    assert report.project == str(project)
    for level, left in (("user", ["of user"]), ("project", ["of project"])):
        hooks.load(user=level == "user", trust=level == "project")
        assert names(hooks) == [*left, "of program"]


def test_a_project_is_found_from_a_folder_below_it(project: Path) -> None:
    configure(project / ".hookwright", shell("one"))
    below = project / "a" / "b"
    below.mkdir(parents=True)
    hooks = hw.HookChain()
    assert hooks.load(below, user=False, trust=True).hooks == ("one",)


def test_a_folder_that_is_not_there_is_an_error_and_one_without_hooks_is_not(project: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        hw.HookChain().load("nowhere")
    with pytest.raises(NotADirectoryError):
        hw.HookChain().load(write(project / "file", ""))
    assert hw.HookChain().load().files == ()


def test_one_name_on_two_levels_is_a_mistake_of_the_later_one(project: Path, user: Path) -> None:
    of_user = configure(user, shell("guard", "exit 2", role="gate"))
    of_project = configure(project / ".hookwright", shell("other"), shell("guard"))
    hooks = hw.HookChain()
    with pytest.raises(hw.ConfigError) as caught:
        hooks.load(trust=True)
    assert [str(problem) for problem in caught.value.problems] == [
        f'{of_project}:3:10: hook name "guard" is taken (first in {of_user}:2); give each hook a name of its own'
    ]
    hooks.load(trust=True, strict=False)
    assert call(hooks).halted_by == "guard", "the one of the user stays"


def test_a_name_that_the_program_uses_is_a_mistake(project: Path) -> None:
    configure(project / ".hookwright", shell("guard"))
    hooks = hw.HookChain()
    hooks.on("pre_tool_execution", name="guard")(names)
    with pytest.raises(hw.ConfigError, match=r'name "guard" is taken \(the program registered it: .*:names\)'):
        hooks.load(trust=True)


def test_disabled_hooks_are_passed_over_at_every_level(project: Path, user: Path) -> None:
    configure(user, shell("noisy"), shell("kept"))
    configure(project / ".hookwright", shell("own"), disabled_hooks=["noisy", "own", "of program"])
    hooks = hw.HookChain()
    hooks.on("pre_tool_execution", name="of program")(lambda event: None)
    hooks.load(trust=True)
    status = {run.name: run.status for run in call(hooks).runs}
    assert status == {"noisy": "disabled", "own": "disabled", "of program": "disabled", "kept": "ok"}

    hooks.load(trust=False)
    status = {run.name: run.status for run in call(hooks).runs}
    assert status == {"noisy": "ok", "kept": "ok", "of program": "ok"}, "what nobody disables any more is back"


def test_a_hook_that_the_program_switched_off_itself_stays_off(project: Path) -> None:
    file = configure(project / ".hookwright", disabled_hooks=["one"])
    hooks = hw.HookChain()
    hooks.on("pre_tool_execution", name="one", enabled=False)(lambda event: None)
    hooks.load(trust=True)
    file.unlink()
    hooks.load(trust=True)
    assert [hook.enabled for hook in hooks.hooks] == [False]


def test_a_project_that_disables_an_unknown_hook_is_wrong_and_a_user_may(project: Path, user: Path) -> None:
    of_user = configure(user, shell("guard"), disabled_hooks=["of another project"])
    hooks = hw.HookChain()
    assert [str(note) for note in hooks.load().notes] == [
        f'{of_user}:4:20: no hook is named "of another project"; take it out, or register the hook before loading'
    ]
    of_project = configure(project / ".hookwright", disabled_hooks=["gaurd"])
    with pytest.raises(hw.ConfigError) as caught:
        hooks.load(trust=True)
    assert [str(problem) for problem in caught.value.problems] == [
        f'{of_project}:4:20: no hook is named "gaurd"; did you mean "guard"?'
    ]


def test_a_second_load_replaces_what_the_first_one_loaded(project: Path) -> None:
    configure(project / ".hookwright", shell("one"), shell("two"), budget=5)
    hooks = hw.HookChain(budget=20)
    hooks.load(trust=True)
    hooks.load(trust=True)
    assert names(hooks) == ["one", "two"]
    configure(project / ".hookwright", shell("two"), shell("three"))
    hooks.load(trust=True)
    assert names(hooks) == ["two", "three"]
    assert hooks.budget == 20.0, "the budget of the files went with them"


def test_a_load_that_fails_leaves_the_chain_as_it_was(project: Path) -> None:
    configure(project / ".hookwright", shell("one", "exit 2"))
    hooks = hw.HookChain()
    hooks.load(trust=True)
    for wrong in (shell("bad", timeout=0), shell("bad", role="observer", on_error="deny")):
        configure(project / ".hookwright", shell("new"), wrong)
        with pytest.raises(hw.ConfigError):
            hooks.load(trust=True)
        assert names(hooks) == ["one"]
        assert call(hooks).action == "skip"


def test_what_only_the_chain_refuses_is_a_problem_with_a_line(project: Path) -> None:
    file = configure(project / ".hookwright", shell("good"), shell("bad", role="observer", on_error="deny"))
    problems = hw.HookChain().load(trust=True, strict=False).problems
    assert [(problem.file, problem.line) for problem in problems] == [(str(file), 3)]
    assert 'on_error can only be "skip"' in problems[0].message


GATES = """\
import asyncio


def refuse(event):
    return False


async def refuse_later(event):
    await asyncio.sleep(0)
    return False


class Gates:
    @staticmethod
    def refuse(event):
        return False


NUMBER = 3
"""


@pytest.mark.parametrize("function", ["refuse", "refuse_later", "Gates.refuse"])
@pytest.mark.parametrize("folder", ["", "src", "python"])
def test_functions_of_a_trusted_project_are_imported(project: Path, function: str, folder: str) -> None:
    module = f"gates_{folder or 'root'}"
    write(project / folder / f"{module}.py", GATES)
    configure(project / ".hookwright", python("closed", f"{module}:{function}", role="gate"))
    hooks = hw.HookChain()
    hooks.load(trust=True)
    assert call(hooks).halted_by == "closed"
    assert hooks.hooks[0].kind == "python"


def test_a_function_on_a_thread_of_its_own(project: Path) -> None:
    text = "def where(event):\n    return {'tool_arguments': {'thread': threading.current_thread().name}}\n"
    write(project / "threads.py", f"import threading\n\n{text}")
    configure(project / ".hookwright", python("where", "threads:where", isolate="thread"))
    hooks = hw.HookChain()
    hooks.load(trust=True)
    assert call(hooks).tool_arguments["thread"] != "MainThread"


def test_a_function_that_cannot_be_had_is_a_problem_at_its_line(project: Path) -> None:
    write(project / "my_gates.py", GATES)
    write(project / "broken.py", "import nothing_of_the_kind\n")
    write(project / "raising.py", "raise ValueError('not today')\n")
    file = configure(
        project / ".hookwright",
        python("a", "nowhere.at_all:x"),
        python("b", "my_gates:refuze"),
        python("c", "my_gates:NUMBER"),
        python("d", "broken:x"),
        python("e", "raising:x"),
        python("f", "my_gates:refuse_later", isolate="thread"),
    )
    with pytest.raises(hw.ConfigError) as caught:
        hw.HookChain().load(trust=True)
    assert [str(problem).removeprefix(f"{file}:") for problem in caught.value.problems] == [
        f"2:79: there is no module 'nowhere'; it is looked for in {project} or on Python's path",
        "3:79: my_gates has no 'refuze'; did you mean 'refuse'?",
        "4:79: my_gates:NUMBER is no function, but int",
        "5:79: importing broken failed: No module named 'nothing_of_the_kind'; install what it needs",
        "6:79: importing raising failed: ValueError: not today",
        '7:79: the function is async, so "isolate: thread" has nothing to isolate; leave out isolate',
    ]


def test_a_shell_hook_runs_in_the_project_unless_the_session_is_elsewhere(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(project / ".hookwright", shell("where", "pwd >&2; exit 2"))
    hooks = hw.HookChain()
    hooks.load(project, trust=True)
    monkeypatch.chdir(tmp_path)
    assert call(hooks).reason == str(project)
    assert call(hooks, cwd=str(tmp_path)).reason == str(tmp_path)


def test_loaded_hooks_can_be_removed_copied_and_overridden(project: Path) -> None:
    write(project / "one_gate.py", GATES)
    configure(project / ".hookwright", python("closed", "one_gate:refuse"), shell("two"))
    hooks = hw.HookChain()
    hooks.load(trust=True)
    twin = hooks.copy()
    from one_gate import refuse  # type: ignore[import-not-found]

    hooks.remove(refuse)
    assert names(hooks) == ["two"]
    with twin.override(disable=[refuse]):
        assert call(twin).action is None
    twin.load(trust=True)
    assert names(twin) == ["closed", "two"]


def test_explain_warns_of_a_matcher_that_fits_no_tool(project: Path) -> None:
    configure(project / ".hookwright", shell("guard", filter={"tool_matcher": "shel|web_*"}))
    hooks = hw.HookChain()
    hooks.load(trust=True)
    explanation = hooks.explain("pre_tool_execution", tools=["shell", "grep"], tool_name="shell")
    warning = 'tool_matcher "shel|web_*" fits none of the 2 registered tools; did you mean "shell"?'
    assert explanation.warnings == [f"guard: {warning}"]
    assert explanation.lines == [
        'no    guard: tool_matcher "shel|web_*" does not match tool_name "shell"',
        f"      warning: {warning}",
    ]
    assert "did you mean &quot;shell&quot;?" in explanation._repr_html_()
    assert hooks.explain("pre_tool_execution", tools=["web_search"]).warnings == []
