"""Trust: nothing of a project runs before somebody said so, and not after it changed."""

from __future__ import annotations

from pathlib import Path

import pytest

import hookwright as hw


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


HOOKS = """\
version: 1
hooks:
  - {name: one, events: turn_start, type: shell, command: ./mark.sh}
  - {name: two, events: turn_start, type: python, callable: "marking:mark"}
"""


@pytest.fixture
def marked(project: Path) -> Path:
    """A project whose hooks and modules leave a file behind when anything of them runs."""
    marker = project / "marker"
    write(project / ".hookwright/hooks.yaml", HOOKS)
    write(project / "mark.sh", f"#!/bin/sh\necho shell >> {marker}\n").chmod(0o755)
    write(
        project / "marking.py",
        f"def note(what):\n    with open({str(marker)!r}, 'a') as file:\n        print(what, file=file)\n\n"
        "note('import')\n\ndef mark(event):\n    note('call')\n",
    )
    return project


def test_nothing_of_an_untrusted_project_runs(marked: Path) -> None:
    hooks = hw.HookChain()
    for strict in (True, False):
        with pytest.raises(hw.TrustError) as caught:
            hooks.load(strict=strict)
    hooks.run("turn_start", user_input="hi")
    assert not (marked / "marker").exists()
    assert len(hooks) == 0
    assert str(caught.value) == (
        f"the hooks of {marked} are not trusted: .hookwright/hooks.yaml (new), mark.sh (new), marking.py (new)\n"
        f"  hint: they run commands on your machine: read them, then run: hookwright trust {marked}"
    )
    assert caught.value.project == str(marked)
    assert isinstance(caught.value, PermissionError)


def test_a_trusted_project_runs_and_one_changed_byte_asks_again(marked: Path) -> None:
    assert hw.trust.is_trusted() is False
    assert hw.trust.trust() == [".hookwright/hooks.yaml", "mark.sh", "marking.py"]
    assert hw.trust.is_trusted(marked) is True
    hooks = hw.HookChain()
    hooks.load()
    hooks.run("turn_start", user_input="hi")
    assert (marked / "marker").read_text().split() == ["import", "shell", "call"]

    for path in ("mark.sh", "marking.py", ".hookwright/hooks.yaml"):
        original = (marked / path).read_text()
        write(marked / path, original + "#")
        with pytest.raises(hw.TrustError) as caught:
            hw.HookChain().load()
        assert caught.value.message == f"the hooks of {marked} changed since they were trusted: {path} (changed)"
        write(marked / path, original)
    hw.HookChain().load()


def test_trust_for_this_time_only_is_not_remembered(marked: Path) -> None:
    hooks = hw.HookChain()
    hooks.load(trust=True)
    assert [hook.name for hook in hooks.hooks] == ["one", "two"]
    assert hw.trust.trusted() == []
    with pytest.raises(hw.TrustError):
        hooks.load()
    assert [hook.name for hook in hooks.hooks] == ["one", "two"]


def test_a_project_can_be_left_out(marked: Path, user: Path) -> None:
    write(user / "hooks.yaml", "version: 1\nhooks:\n- {name: mine, events: stop, type: shell, command: x}\n")
    hooks = hw.HookChain()
    report = hooks.load(trust=False)
    assert (report.hooks, report.project) == (("mine",), None)


def test_mistakes_come_before_trust(marked: Path) -> None:
    write(marked / ".hookwright/hooks.yaml", HOOKS.replace("turn_start", "turn_strat"))
    with pytest.raises(hw.ConfigError) as caught:
        hw.HookChain().load()
    assert [problem.line for problem in caught.value.problems] == [3, 4]
    assert not (marked / "marker").exists()


def test_what_is_trusted_is_listed_and_can_be_forgotten(marked: Path) -> None:
    hw.trust.trust(marked / ".hookwright")
    (known,) = hw.trust.trusted()
    assert (known.project, known.files) == (marked.resolve(), 3)
    assert known.trusted_at.endswith("Z")
    assert hw.trust.forget(marked) is True
    assert hw.trust.forget(marked) is False
    assert hw.trust.trusted() == []


def test_a_project_without_hooks_needs_no_trust_and_cannot_be_trusted(project: Path, tmp_path: Path) -> None:
    assert hw.trust.is_trusted() is True
    hw.HookChain().load()
    with pytest.raises(hw.TrustError, match="there are no hooks to trust"):
        hw.trust.trust(tmp_path)
    assert hw.trust.is_trusted(tmp_path) is True


def test_a_damaged_store_is_never_taken_for_trust(marked: Path, tmp_path: Path) -> None:
    hw.trust.trust()
    write(tmp_path / "state/hookwright/trust.json", "{")
    with pytest.raises(hw.TrustError, match=r"trust\.json is damaged"):
        hw.HookChain().load()


def test_many_files_are_counted_and_not_all_named(project: Path) -> None:
    for number in range(30):
        write(project / f".hookwright/hooks/h{number:02}/HOOK.yaml", "events: stop\ntype: shell\ncommand: x\n")
    with pytest.raises(hw.TrustError) as caught:
        hw.HookChain().load()
    assert caught.value.message.endswith("hooks/h09/HOOK.yaml (new) and 20 more")
