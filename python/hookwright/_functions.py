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
    others (a factory of gates) and lambdas share a qualified name without being the same; they count as the same only
    if their code and everything that they close over are equal.
    """
    source = source_of(second)[1]
    if source_of(first)[1] != source:
        return False
    if "<" not in source:
        return True
    one, two = getattr(first, "__code__", None), getattr(second, "__code__", None)
    if one is None or one != two:
        return first is second
    try:
        return [cell.cell_contents for cell in first.__closure__ or ()] == [
            cell.cell_contents for cell in second.__closure__ or ()
        ] and first.__defaults__ == second.__defaults__
    except ValueError:
        return False
