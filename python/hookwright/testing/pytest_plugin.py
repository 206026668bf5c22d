"""Fixtures for pytest, there as soon as hookwright is installed.

This module is imported in every pytest run of an environment, so it loads nothing but pytest until a fixture is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from hookwright import HookChain


@pytest.fixture
def hook_chain() -> HookChain:
    """An empty chain, which no other test shares."""
    from hookwright import HookChain

    return HookChain()
