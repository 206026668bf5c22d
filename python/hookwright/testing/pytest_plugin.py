"""Fixtures for pytest, there as soon as hookwright is installed.

This module is imported in every pytest run of an environment, so it loads nothing but pytest until a fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from hookwright import HookChain
    from hookwright.testing import HookReport


@pytest.fixture
def hook_chain() -> HookChain:
    """An empty chain, which no other test shares."""
    from hookwright import HookChain

    return HookChain()


@pytest.fixture
def check_hook() -> Callable[..., HookReport]:
    """`hookwright.testing.check_hook`, which here fails the test when it finds a problem."""
    from hookwright import testing

    def check(*arguments: Any, **options: Any) -> HookReport:
        report = testing.check_hook(*arguments, **options)
        if not report.ok:
            pytest.fail(repr(report), pytrace=False)
        return report

    return check
