"""Fixtures of the tests of the gates."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# The ways into an agent and into a chain are shared with their own tests.
sys.path.append(str(Path(__file__).parents[1] / "agent"))
sys.path.append(str(Path(__file__).parents[1] / "hooks"))

from runs import ENTRANCES as AGENT_ENTRANCES
from runs import Run
from support import ENTRANCES as CHAIN_ENTRANCES
from support import Dispatch


@pytest.fixture(params=AGENT_ENTRANCES)
def run(request: pytest.FixtureRequest) -> Run:
    """Each way into an agent in turn."""
    return AGENT_ENTRANCES[request.param]


@pytest.fixture(params=CHAIN_ENTRANCES)
def dispatch(request: pytest.FixtureRequest) -> Dispatch:
    """Each way into a chain in turn."""
    return CHAIN_ENTRANCES[request.param]
