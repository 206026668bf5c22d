"""What can be known of a callable without calling it."""

from __future__ import annotations

import functools
import inspect
from typing import Any


def is_coroutine_function(function: Any) -> bool:
    """Whether calling it gives a coroutine: an async function or method, or an object with an async ``__call__``."""
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def source_of(function: Any) -> tuple[str, str]:
    """A readable default name and ``module:qualified name``."""
    target = function
    while isinstance(target, functools.partial):
        target = target.func
    if not hasattr(target, "__qualname__"):
        target = type(target)
    module = getattr(target, "__module__", None) or "?"
    qualified = target.__qualname__
    name = getattr(target, "__name__", qualified)
    return ("lambda" if name == "<lambda>" else name), f"{module}:{qualified}"


def same_function(first: Any, second: Any) -> bool:
    """Whether registering `second` re-registers `first`, as when a notebook cell is run again.

    A function at the top level of a module or cell is itself again under its qualified name. Functions made inside
    others (a factory of gates), methods, callable objects and partial functions share a qualified name without being
    the same; they count as the same only if everything that they close over or are bound to is equal.
    """
    if first is second:
        return True
    source = source_of(second)[1]
    if source_of(first)[1] != source:
        return False
    if isinstance(first, functools.partial) or isinstance(second, functools.partial):
        return (
            isinstance(first, functools.partial)
            and isinstance(second, functools.partial)
            and same_function(first.func, second.func)
            and bool((first.args, first.keywords) == (second.args, second.keywords))
        )
    if inspect.ismethod(first) and inspect.ismethod(second):
        return same_function(first.__func__, second.__func__) and _same_state(first.__self__, second.__self__)
    one, two = getattr(first, "__code__", None), getattr(second, "__code__", None)
    if one is None or two is None:
        return _same_state(first, second)
    if "<" not in source:
        return True
    try:
        return (
            one == two
            and [cell.cell_contents for cell in first.__closure__ or ()]
            == [cell.cell_contents for cell in second.__closure__ or ()]
            and first.__defaults__ == second.__defaults__
            and first.__kwdefaults__ == second.__kwdefaults__
        )
    except ValueError:  # A variable that is closed over and not set yet.
        return False


def _same_state(first: Any, second: Any) -> bool:
    """Whether two objects are as good as the same: equal, or of one class by name and with equal attributes."""
    if first is second or first == second:
        return True
    state = getattr(first, "__dict__", None)
    return (
        state is not None
        and type(first).__qualname__ == type(second).__qualname__
        and state == getattr(second, "__dict__", None)
    )
