"""`python -m hookwright` as a process: exit codes, and no traceback whatever a user does wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HOOKS = """\
version: 1
hooks:
  - {name: closed, events: pre_tool_execution, type: python, callable: "gates:refuse", role: gate}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".hookwright").mkdir(parents=True)
    (root / ".hookwright/hooks.yaml").write_text(HOOKS)
    (root / "gates.py").write_text("def refuse(event):\n    return False\n")
    return root


def hookwright(project: Path, *arguments: str) -> tuple[int, str, str]:
    environment = {**os.environ, "XDG_CONFIG_HOME": str(project / "none"), "XDG_STATE_HOME": str(project / "state")}
    done = subprocess.run(
        [sys.executable, "-m", "hookwright", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=project,
        env=environment,
        stdin=subprocess.DEVNULL,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def test_check_trust_list_run_record_and_replay_from_the_shell(project: Path) -> None:
    assert hookwright(project, "hooks", "list")[0] == 3
    assert hookwright(project, "trust")[:2] == (0, f"trusted: {project}\n  .hookwright/hooks.yaml\n  gates.py\n")
    assert hookwright(project, "hooks", "check") == (0, "no mistakes in 1 hook\n", "")
    code, out, _ = hookwright(project, "hooks", "run", "pre_tool_execution", "--field", "tool_name=shell")
    assert (code, out.split(";")[0]) == (1, '<Outcome pre_tool_execution skip by closed: "refused by closed"')
    (project / "gates.py").write_text("def refuse(event):\n    return True\n")
    code, out, err = hookwright(project, "hooks", "list")
    assert (code, out) == (3, "")
    assert "gates.py (changed)" in err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], 2),
        (["nonsense"], 2),
        (["hooks", "nonsense"], 2),
        (["hooks", "list", "--project", "nowhere"], 2),
        (["hooks", "run", "pre_tool", "--trust"], 2),
        (["hooks", "run", "stop", "--trust", "--field", "oops=1"], 2),
        (["hooks", "run", "stop", "--trust", "--input", "gates.py"], 2),
        (["hooks", "replay", "nowhere.jsonl", "--trust"], 2),
        (["hooks", "replay", "gates.py", "--trust"], 2),
        (["trust", "/"], 3),
        (["hooks", "explain", "stop"], 3),
    ],
)
def test_mistakes_end_in_a_message_and_an_exit_code(project: Path, arguments: list[str], code: int) -> None:
    returned, _, err = hookwright(project, *arguments)
    assert returned == code
    assert err or code == 0


def test_a_module_that_cannot_be_imported_is_a_line_and_no_traceback(project: Path) -> None:
    (project / "gates.py").write_text("def refuse(event:\n")
    code, out, err = hookwright(project, "hooks", "check", "--trust")
    assert (code, err) == (1, "1 mistake\n")
    assert out.startswith(f"{project}/.hookwright/hooks.yaml:3:72: importing gates failed: SyntaxError: ")


def test_a_closed_pipe_is_no_error_of_ours(project: Path) -> None:
    command = f"{sys.executable} -m hookwright hooks list --trust --no-user | true"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, cwd=project)
    assert (done.returncode, done.stderr) == (0, "")
