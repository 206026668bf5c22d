"""The parts of the build that a user meets first: choosing an interpreter, the list of targets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def find_python(path: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", str(ROOT / "scripts/find_python.sh")],
        env={"PATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def command(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def test_an_interpreter_that_does_not_start_or_is_too_old_is_passed_over(tmp_path: Path) -> None:
    command(tmp_path / "bin", "python3.11", "echo 'version not installed' >&2; exit 127")
    command(tmp_path / "bin", "python3", "exit 1")
    good = command(tmp_path / "bin", "python3.12", f'exec "{sys.executable}" "$@"')
    found = find_python(str(tmp_path / "bin"))
    assert (found.returncode, found.stdout, found.stderr) == (0, f"{good}\n", "")


def test_without_a_usable_interpreter_it_says_what_is_needed(tmp_path: Path) -> None:
    found = find_python(str(tmp_path))
    assert found.returncode == 1
    assert found.stdout == ""
    assert found.stderr.startswith("error: no usable Python: 3.10 or newer")
    assert "hint: install Python 3.11" in found.stderr


def test_a_named_interpreter_is_the_only_candidate(tmp_path: Path) -> None:
    bad = command(tmp_path / "bin", "mine", "exit 1")
    found = find_python(os.environ["PATH"], PYTHON=str(bad))
    assert found.returncode == 1
    assert f"tried: {bad}" in found.stderr
    assert find_python(os.environ["PATH"], PYTHON=sys.executable).stdout == f"{sys.executable}\n"


def test_make_lists_its_targets() -> None:
    listed = subprocess.run(["make", "-s", "-C", str(ROOT), "help"], capture_output=True, text=True, check=True).stdout
    targets = [line.split()[1] for line in listed.splitlines() if line.startswith("  make ")]
    assert targets == ["help", "demo", "test", "soundness", "e2e", "lint", "bench", "wheel", "clean"]
