"""An empty project with a user who has no configuration and trusts nothing yet."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """The folder of the user's configuration; not there yet."""
    return tmp_path / "config" / "hookwright"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project without hooks, as the working directory. Modules that it brings in are forgotten afterwards."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = tmp_path / "project"
    (root / ".hookwright").mkdir(parents=True)
    monkeypatch.chdir(root)
    path, modules = list(sys.path), set(sys.modules)
    yield root
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
