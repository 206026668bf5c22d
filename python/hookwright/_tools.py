"""Python functions as tools: `@tool`, `Tool` and the `Context` that a tool may ask for."""

from __future__ import annotations

import inspect
import re
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import WRAPPER_ASSIGNMENTS
from pathlib import Path
from types import FrameType
from typing import Any, Generic, Literal, ParamSpec, TypeAlias, TypeVar, cast, get_args, overload

from ._schema import Parameters, docstring_of, parameters_of, type_of

__all__ = ["Context", "Effect", "Tool", "tool"]

P = ParamSpec("P")
R = TypeVar("R")

Effect: TypeAlias = Literal["read", "write", "execute", "network", "dispatch", "ask_user"]
"""What a tool does to the world, as permission rules see it."""

_EFFECTS: tuple[str, ...] = get_args(Effect)
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True)
class Context:
    """Where a tool call comes from. A parameter of this type is filled in and never shown to the model.

    Attributes:
        agent: the name of the agent that calls.
        session_id: its session.
        turn_id: the turn of that session.
        call_id: this call; unique within the turn. Where the model gives none, unique within the session.
        cwd: the working directory of the session.
        reading: whether gates let the call through because it only reads: commands are to be run in the environment
            of `hookwright.shell.read_only_environment`.
    """

    __module__ = "hookwright"

    agent: str | None = None
    session_id: str | None = None
    turn_id: str | None = None
    call_id: str | None = None
    cwd: Path | None = None
    reading: bool = False
    #: The turn that the call is part of, for agents as tools.
    _work: Any = field(default=None, repr=False, compare=False)


class Tool(Generic[P, R]):
    """A Python function that a model can call. Made by `tool`; it does not change afterwards.

    Calling it calls the function, unchecked, so code that used the function goes on working.

    Attributes:
        function: the function itself.
        name: what the model calls it by.
        description: what the model reads about it.
        effect: what it does to the world; a function of the arguments if that depends on them; None if undeclared.
        timeout: seconds after which a call is given up; None for no limit of its own.
        parallel: whether calls may run beside others of the same reply.
        inline: whether a synchronous function runs on the caller's thread instead of a worker thread.
        returns: ``"json"`` if the text that it returns is JSON, in which a failure may be told; else None.
        is_async: whether the function is a coroutine function.
    """

    __module__ = "hookwright"

    function: Callable[P, R]
    name: str
    description: str
    effect: Effect | Callable[[dict[str, Any]], str] | None
    timeout: float | None
    parallel: bool
    inline: bool
    returns: Literal["json"] | None
    is_async: bool
    __name__: str
    __qualname__: str
    _binding: Any
    _instance: Any
    _skips_first: bool
    _unread: Any
    _parameters: Parameters | None

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        description: str | None = None,
        effect: Effect | Callable[[dict[str, Any]], str] | None = None,
        timeout: float | None = None,
        parallel: bool | None = None,
        inline: bool = False,
        returns: Literal["json"] | None = None,
        _frame: FrameType | None = None,
    ) -> None:
        binding: Any = type(function) if isinstance(function, (classmethod, staticmethod)) else None
        plain: Callable[..., Any] = function.__func__ if isinstance(function, (classmethod, staticmethod)) else function
        name = _checked_name(plain, name)
        summary, texts = docstring_of(plain)
        namespaces = (_frame.f_globals, dict(_frame.f_locals)) if _frame else ({}, {})
        put = object.__setattr__
        put(self, "function", plain)
        put(self, "name", name)
        put(self, "description", summary if description is None else description)
        put(self, "effect", _checked_effect(name, effect))
        put(self, "timeout", _checked_timeout(name, timeout))
        put(self, "parallel", effect == "read" if parallel is None else parallel)
        put(self, "inline", inline)
        put(self, "returns", _checked_returns(name, returns))
        put(self, "is_async", _is_async(name, plain))
        put(self, "_binding", binding)
        put(self, "_instance", None)
        put(self, "_skips_first", binding is classmethod or (binding is None and _is_method(plain)))
        put(self, "_unread", (namespaces, texts))
        put(self, "_parameters", None)
        for attribute in WRAPPER_ASSIGNMENTS:
            if hasattr(plain, attribute) and attribute != "__annotations__":
                put(self, attribute, getattr(plain, attribute))
        put(self, "__wrapped__", plain)
        with suppress(NameError):  # a type hint names something defined further down: read when first needed
            self._read_signature()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._instance is not None:
            return cast(Callable[..., R], self.function)(self._instance, *args, **kwargs)
        return self.function(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Tool[..., R]:
        target = owner if self._binding is classmethod else None if self._binding is staticmethod else instance
        if target is None or not self._skips_first:
            return self
        bound: Tool[..., R] = object.__new__(type(self))
        bound.__dict__.update(self.__dict__)
        bound.__dict__["_instance"] = target
        return bound

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Tool does not change; make another one: tool({self.name}.function, {name}=...)")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a Tool does not change")

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments object.

        Raises:
            NameError: if a type hint names something that is still not defined.
        """
        return self._read_signature().schema

    @property
    def notes(self) -> tuple[str, ...]:
        """What the tool's author should know, such as a parameter without a type hint."""
        return self._read_signature().notes

    def effect_of(self, arguments: dict[str, Any]) -> str | None:
        """The effect of a call with these arguments; None if undeclared.

        Raises:
            ValueError: if the tool's own effect function returns something that is no effect.
        """
        if self.effect is None or isinstance(self.effect, str):
            return self.effect
        found = self.effect(arguments)
        _checked_effect(self.name, found, "returned by its effect function")
        return found

    def validate(self, arguments: Any) -> dict[str, Any]:
        """Checks and converts the arguments of a call, without calling.

        Raises:
            ToolError: (code `required`, `type` or `invalid`) naming every argument that is wrong, in `problems`.
        """
        return self._read_signature().validate(self.name, arguments)

    def invoke(self, arguments: Any, context: Context | None = None) -> Any:
        """Checks the arguments and calls the function, as an agent does.

        Args:
            arguments: the decoded JSON object that the model sent.
            context: given to the function if it declares a `Context` parameter.

        Returns:
            What the function returns; for an async function an awaitable.

        Raises:
            ToolError: before the function is entered. What the function itself raises passes through.
        """
        parameters = self._read_signature()
        keywords = parameters.validate(self.name, arguments)
        if parameters.context is not None:
            keywords[parameters.context] = context if context is not None else Context()
        if self._skips_first:
            if self._instance is None:
                raise TypeError(f"tool {self.name!r} is a method: use it through an instance, as in obj.{self.name}")
            return cast(Callable[..., Any], self.function)(self._instance, **keywords)
        return cast(Callable[..., Any], self.function)(**keywords)

    @property
    def _takes_context(self) -> bool:
        """Whether the function asks where its calls come from."""
        return self._read_signature().context is not None

    def _read_signature(self) -> Parameters:
        parameters: Parameters | None = self._parameters
        if parameters is None:
            namespaces, texts = self._unread
            parameters = parameters_of(
                self.function,
                name=self.name,
                skip_first=self._skips_first,
                namespaces=namespaces,
                context_class=Context,
                texts=texts,
            )
            self.__dict__["_parameters"] = parameters
            self.__dict__["_unread"] = None  # the local names of the decorating frame need not live on
            for note in parameters.notes:
                warnings.warn(note, UserWarning, stacklevel=_outside())
        return parameters

    def __repr__(self) -> str:
        return f"<Tool {self.name}({', '.join(self._parameter_rows())}) {self._flags()}>"

    def _flags(self) -> str:
        effect = self.effect if self.effect is None or isinstance(self.effect, str) else "by its arguments"
        words = [f"effect={effect or 'undeclared'}"]
        words += [f"timeout={self.timeout:g}s"] if self.timeout is not None else []
        words += [word for word in ("parallel", "inline") if getattr(self, word)]
        return " ".join(words + (["async"] if self.is_async else []))

    def _parameter_rows(self) -> dict[str, tuple[str, str, str]]:
        """Per parameter: its type, "required" or its default, and its description."""
        try:
            schema = self.schema
        except NameError:
            return {"...": ("a type hint is not defined yet", "", "")}
        required = schema.get("required", ())
        return {
            name: (
                type_of(part),
                "required" if name in required else repr(part["default"]) if "default" in part else "optional",
                part.get("description", ""),
            )
            for name, part in schema["properties"].items()
        }

    def _repr_html_(self) -> str:
        from ._display import tool_html

        return tool_html(
            {
                "name": self.name,
                "description": self.description,
                "flags": self._flags(),
                "parameters": self._parameter_rows(),
            }
        )

    def __reduce__(self) -> Any:
        # Pickled by name, like the function it stands for.
        return (getattr, (self._instance, self.__name__)) if self._instance is not None else self.__qualname__


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...


@overload
def tool(
    function: Callable[P, R],
    /,
    *,
    name: str | None = ...,
    description: str | None = ...,
    effect: Effect | Callable[[dict[str, Any]], str] | None = ...,
    timeout: float | None = ...,
    parallel: bool | None = ...,
    inline: bool = ...,
    returns: Literal["json"] | None = ...,
) -> Tool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = ...,
    description: str | None = ...,
    effect: Effect | Callable[[dict[str, Any]], str] | None = ...,
    timeout: float | None = ...,
    parallel: bool | None = ...,
    inline: bool = ...,
    returns: Literal["json"] | None = ...,
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    effect: Effect | Callable[[dict[str, Any]], str] | None = None,
    timeout: float | None = None,
    parallel: bool | None = None,
    inline: bool = False,
    returns: Literal["json"] | None = None,
) -> Any:
    """Makes a `Tool` of a sync or async function or method, bare or with arguments.

    Name, description and JSON Schema come from the function: its name, the first paragraph of its docstring, its type
    hints, and the parameter texts of the docstring (Google, NumPy or reST style).

    Args:
        function: the function; left out when the decorator has arguments.
        name: what the model calls it by; 1 to 64 letters, digits, `_` or `-`. Default: the function's name.
        description: what the model reads about it. Default: the first paragraph of the docstring.
        effect: `read`, `write`, `execute`, `network`, `dispatch` or `ask_user`, or a function that says which from the
            arguments. Default: undeclared; permission rules then ask.
        timeout: seconds after which a call is given up. Default: no limit of its own.
        parallel: whether calls may run beside others of the same reply. Default: only if the effect is `read`.
        inline: run a synchronous function on the caller's thread; for functions that return at once. Default: in a
            worker thread, so that it never blocks the loop.
        returns: ``"json"`` says that the text it returns is JSON, so that ``{"error": "…"}`` as text is a failed call,
            as it always is as a dict. Default: text is text.

    Raises:
        TypeError: if a model cannot call the function: `*args`, `**kwargs`, positional-only parameters, generators,
            types without a JSON form. The message says what to do.
        ValueError: for a bad name, effect, timeout or `returns`.

    Example:
        >>> @tool(effect="read")
        ... def count_words(text: str, minimum: int = 1) -> int:
        ...     '''Counts the words of a text.
        ...
        ...     Args:
        ...         text: the text.
        ...         minimum: letters that a word must have.
        ...     '''
        ...     return sum(len(word) >= minimum for word in text.split())
        >>> count_words.invoke({"text": "to be or not", "minimum": 3})
        1
        >>> count_words.schema["properties"]["minimum"]
        {'default': 1, 'type': 'integer', 'description': 'letters that a word must have.'}
    """
    frame = sys._getframe(1)

    def decorate(decorated: Callable[..., Any]) -> Tool[..., Any]:
        if isinstance(decorated, Tool):
            raise TypeError(f"{decorated.name!r} is a tool already; pass its function: tool({decorated.name}.function)")
        return Tool(
            decorated,
            name=name,
            description=description,
            effect=effect,
            timeout=timeout,
            parallel=parallel,
            inline=inline,
            returns=returns,
            _frame=frame,
        )

    return decorate if function is None else decorate(function)


def _checked_name(function: Callable[..., Any], name: str | None) -> str:
    if not callable(function):
        raise TypeError(f"a tool is made of a function, not of {function!r}")
    found = name if name is not None else getattr(function, "__name__", None)
    if found is None:
        raise ValueError(f"{function!r} has no name of its own; give one: tool(..., name='...')")
    if not _NAME.fullmatch(found):
        raise ValueError(
            f"tool name {found!r}: servers accept 1 to 64 letters, digits, '_' and '-'; give another: tool(name='...')"
        )
    return str(found)


def _checked_effect(name: str, effect: Any, origin: str = "") -> Any:
    if effect is None or (isinstance(effect, str) and effect in _EFFECTS) or (not origin and callable(effect)):
        return effect
    raise ValueError(
        f"tool {name!r}: {effect!r}{' ' + origin if origin else ''} is no effect; there are {', '.join(_EFFECTS)}"
    )


def _checked_timeout(name: str, timeout: Any) -> float | None:
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout < float("inf"):
        raise ValueError(f"tool {name!r}: timeout is in seconds and more than 0, not {timeout!r}")
    return float(timeout)


def _checked_returns(name: str, returns: Any) -> Any:
    if returns not in (None, "json"):
        raise ValueError(f"tool {name!r}: returns is 'json' or left out, not {returns!r}")
    return returns


def _is_async(name: str, function: Callable[..., Any]) -> bool:
    call = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
    for candidate in (function, call):
        if inspect.isgeneratorfunction(candidate) or inspect.isasyncgenfunction(candidate):
            raise TypeError(f"tool {name!r} is a generator; collect what it yields and return a list")
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _is_method(function: Callable[..., Any]) -> bool:
    """Whether this is a plain function of a class body, whose first parameter is the instance."""
    if not inspect.isfunction(function):
        return False
    scope, _, _ = function.__qualname__.rpartition(".")
    first = next(iter(inspect.signature(function).parameters), "")
    return bool(scope) and not scope.endswith("<locals>") and first in ("self", "cls")


def _outside() -> int:
    """The stack level of the first caller outside this package's tool modules, for warnings."""
    level = 2
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__") in (__name__, "hookwright._schema"):
        frame, level = frame.f_back, level + 1
    return level
