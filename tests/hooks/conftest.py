"""Fixtures of the tests of the hook chain."""

from __future__ import annotations

import pytest
from support import ENTRANCES, Dispatch

import hookwright as hw


@pytest.fixture
def chain() -> hw.HookChain:
    """An empty chain."""
    return hw.HookChain()


@pytest.fixture(params=ENTRANCES)
def dispatch(request: pytest.FixtureRequest) -> Dispatch:
    """Each way into a chain in turn: ``dispatch(chain, event, **fields)`` returns the outcome."""
    return ENTRANCES[request.param]
