"""Every example runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parent.parent / "examples"
#: What the displays of each notebook hold, and what it prints.
SHOWN = {"tour.ipynb": ["no_deletes", "not allowed here"], "team.ipynb": ["writer", "waiting", "in_progress", ">done<"]}
SAID = {"tour.ipynb": ["turn_started"], "team.ipynb": ["tool_finished", "2 notes"]}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_an_example_runs(path: Path) -> None:
    is_test = "def test_" in path.read_text(encoding="utf-8")
    words = [sys.executable, "-m", "pytest", "-q", str(path)] if is_test else [sys.executable, str(path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.name)
def test_a_notebook_runs_and_shows_its_objects(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=100, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"] == []
    shown = "".join(output.get("data", {}).get("text/html", "") for output in outputs)
    text = "".join(output.get("text", "") for output in outputs)
    for word in SHOWN[path.name]:
        assert word in shown
    for word in SAID[path.name]:
        assert word in text
