"""The wheel in an empty environment: what somebody who only has pip sees."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def _run(*words: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.mark.timeout(900)
def test_the_wheel_installs_into_an_empty_environment_and_its_demo_holds(tmp_path: Path) -> None:
    built = _run(sys.executable, "-m", "maturin", "build", "--profile", "dev", "--out", tmp_path, cwd=ROOT)
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("hookwright-*-cp310-abi3-*.whl")
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    installed = _run(python, "-m", "pip", "install", wheel, cwd=tmp_path)
    assert installed.returncode == 0, installed.stdout + installed.stderr
    # Outside any repository, so that the packaged one is used.
    command = tmp_path / "venv" / "bin" / "hookwright"
    shown = _run(command, "demo", cwd=tmp_path, GIT_CEILING_DIRECTORIES=str(tmp_path))
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "9 of 9 hold" in shown.stdout
    assert "a small packaged repository" in shown.stdout
    version = _run(command, "--version", cwd=tmp_path)
    assert version.stdout.split() == ["hookwright", wheel.name.split("-")[1]]
    again = _run(python, "-m", "hookwright", "demo", "--repo", ROOT, cwd=tmp_path)
    assert "9 of 9 hold" in again.stdout, again.stdout + again.stderr
