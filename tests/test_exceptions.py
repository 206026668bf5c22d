"""The hierarchy of errors: what they are besides ours, what they say, and that they survive a pickle."""

from __future__ import annotations

import pickle

import pytest

import hookwright
from hookwright import exceptions
from hookwright.exceptions import ConfigError, ConfigProblem, HookwrightError, ToolError, TrustError


@pytest.mark.parametrize(
    ("name", "bases"),
    [
        ("ConfigError", [ValueError]),
        ("HookError", []),
        ("HookTimeout", [exceptions.HookError, TimeoutError]),
        ("ModelError", []),
        ("SessionBusy", [exceptions.SessionError, RuntimeError]),
        ("SessionError", []),
        ("ToolError", []),
        ("TrustError", [PermissionError]),
        ("UnknownEventError", [exceptions.HookError, ValueError]),
    ],
)
def test_every_error_is_ours_and_what_python_has_for_it(name: str, bases: list[type]) -> None:
    error = getattr(exceptions, name)
    assert issubclass(error, HookwrightError)
    assert all(issubclass(error, base) for base in bases)
    assert error.__module__ == "hookwright"
    assert getattr(hookwright, name) is error


def test_errors_keep_their_attributes_through_a_pickle() -> None:
    error = pickle.loads(pickle.dumps(ToolError("gone", code="not_found", field="path", hint="look", retry_after=2.0)))
    assert (error.detail, error.code, error.field, error.hint, error.retry_after) == (
        "gone",
        "not_found",
        "path",
        "look",
        2.0,
    )
    trust = pickle.loads(pickle.dumps(TrustError("not trusted", project="/p")))
    assert (str(trust), trust.project) == ("not trusted", "/p")


def test_a_config_error_shows_every_problem_with_its_place() -> None:
    error = ConfigError(
        problems=[
            ConfigProblem("hooks.yaml", 3, 5, "unknown key 'comand'", "did you mean 'command'?"),
            ConfigProblem("hooks.yaml", None, None, "no version"),
        ]
    )
    assert str(error) == (
        "2 problems in the hook configuration\n"
        "  hooks.yaml:3:5: unknown key 'comand'; did you mean 'command'?\n"
        "  hooks.yaml: no version"
    )


def test_a_failure_without_words_has_a_default_text() -> None:
    assert str(ToolError()) == "the tool failed without saying why"
    assert str(ToolError("no", hint="try yes")) == "no\n  hint: try yes"
