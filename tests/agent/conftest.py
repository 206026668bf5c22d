"""Fixtures of the tests of the agent."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# The ways in which a hook can fail, and the look at the process table, are shared with the tests of the chain.
sys.path.append(str(Path(__file__).parents[1] / "hooks"))

from goals import WAYS, Pursue
from runs import ENTRANCES, Probe, Run


@pytest.fixture(params=ENTRANCES)
def run(request: pytest.FixtureRequest) -> Run:
    """Each way into an agent in turn: ``run(agent, text, **options)`` returns the result."""
    return ENTRANCES[request.param]


@pytest.fixture
def probe() -> Probe:
    """A tool named ``probe`` that tells how often it was entered."""
    return Probe()


@pytest.fixture(params=WAYS)
def pursue(request: pytest.FixtureRequest) -> Pursue:
    """Each way to pursue a goal in turn."""
    return WAYS[request.param]
