"""What hookwright offers to the tests of its users: hostile cases for hooks.

Example:
    >>> from hookwright.testing import check_hook
    >>> def no_deletes(event):
    ...     return "rm " not in event.tool_arguments["command"]
    >>> report = check_hook(no_deletes, "pre_tool_execution", role="gate")
    >>> "without tool_arguments" in [problem.case for problem in report.problems]
    True
"""

from __future__ import annotations

from ._cases import HostileCase, hostile_cases
from ._check import HookReport, Problem, check_hook

__all__ = ["HookReport", "HostileCase", "Problem", "check_hook", "hostile_cases"]
