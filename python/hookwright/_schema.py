"""From the signature of a Python function to a JSON Schema and a validator for its arguments."""

from __future__ import annotations

import difflib
import inspect
import typing
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import docstring_parser
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticUndefined, SchemaError

from .exceptions import ToolError

_EMPTY = inspect.Parameter.empty


@dataclass(frozen=True)
class Parameters:
    """The arguments of one tool: how they look to the model and how they are checked.

    Attributes:
        schema: the JSON Schema of the arguments object.
        notes: what the author of the tool should know, such as a parameter without a type hint.
        context: the name of the parameter that receives the `Context`, if the function declares one.
    """

    model: type[BaseModel]
    aliases: Mapping[str, str]
    schema: dict[str, Any]
    notes: tuple[str, ...]
    context: str | None
    python_defaults: frozenset[str]

    def validate(self, tool_name: str, arguments: Any) -> dict[str, Any]:
        """Checks and converts the arguments of one call.

        Returns:
            Keyword arguments for the function. A parameter that was left out and has a default is left out here too.

        Raises:
            ToolError: naming every argument that is wrong.
        """
        if not isinstance(arguments, Mapping):
            raise ToolError(
                f"the arguments of {tool_name} must be a JSON object, not {_json_type(arguments)}",
                code="type",
                hint=self.usage(),
            )
        try:
            checked = self.model.model_validate(dict(arguments))
        except ValidationError as error:
            raise self._problems(tool_name, error) from None
        given = checked.model_fields_set
        return {
            name: getattr(checked, key)
            for key, name in self.aliases.items()
            if key in given or name not in self.python_defaults
        }

    def usage(self) -> str:
        """One line that lists the parameters, for error messages."""
        properties: dict[str, Any] = self.schema["properties"]
        if not properties:
            return "it takes no arguments: send {}"
        required = self.schema.get("required", ())
        parts = [
            f"{name} ({type_of(schema)}{', required' if name in required else ''})"
            for name, schema in properties.items()
        ]
        return "it takes " + ", ".join(parts)

    def _problems(self, tool_name: str, error: ValidationError) -> ToolError:
        known = list(self.schema["properties"])
        problems: list[tuple[str, str]] = []
        for detail in error.errors(include_url=False, include_context=False, include_input=False):
            field = _path(detail["loc"])
            message = detail["msg"]
            if detail["type"] == "extra_forbidden" and len(detail["loc"]) == 1:
                near = difflib.get_close_matches(field, known, n=1)
                message = "there is no such argument" + (f"; did you mean {near[0]!r}?" if near else "")
            elif detail["type"] == "missing":
                message = "is required"
            problems.append((field, message))
        text = "; ".join(f"{field}: {message}" for field, message in problems)
        return ToolError(
            f"invalid arguments for {tool_name}: {text}",
            code=_code_of(error.errors()[0]["type"]),
            field=problems[0][0],
            hint=self.usage(),
            problems=problems,
        )


def _code_of(kind: str) -> str:
    """The code of a `ToolError` for pydantic's name of a problem."""
    if kind == "missing":
        return "required"
    return "type" if kind.endswith(("_type", "_parsing", "_from_float")) else "invalid"


class _Schema(GenerateJsonSchema):
    # A default that has no JSON form (a sentinel object) is simply not shown.
    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - declared like this upstream


def parameters_of(
    function: Callable[..., Any],
    *,
    name: str,
    skip_first: bool,
    namespaces: tuple[Mapping[str, Any], Mapping[str, Any]],
    context_class: type,
    texts: Mapping[str, str],
) -> Parameters:
    """Reads the signature of `function`.

    Args:
        function: what the tool calls.
        name: the name of the tool, for messages.
        skip_first: whether the first parameter is the instance or class that a method is bound to.
        namespaces: globals and locals in which type hints are looked up besides the function's own.
        context_class: parameters of this type are injected and left out of the schema.
        texts: the description of each parameter, from the docstring.

    Raises:
        TypeError: for a signature that a JSON object cannot fill; the message says what to do.
        NameError: for a type hint that names something unknown yet.
    """
    hints = _hints(function, namespaces)
    fields: dict[str, Any] = {}
    aliases: dict[str, str] = {}
    notes: list[str] = []
    python_defaults: set[str] = set()
    context: str | None = None
    for index, parameter in enumerate(inspect.signature(function).parameters.values()):
        if skip_first and index == 0:
            continue
        hint = hints.get(parameter.name, _EMPTY)
        if _is_context(hint, context_class):
            context = parameter.name
            continue
        _refuse_unfillable(name, parameter)
        if hint is _EMPTY:
            hint = Any
            notes.append(
                f"parameter {parameter.name!r} of tool {name!r} has no type hint: "
                "the model is told nothing about it and any JSON value is accepted"
            )
        key = f"p{len(fields)}"
        aliases[key] = parameter.name
        fields[key] = _field(hint, parameter)
        if parameter.default is not _EMPTY and not isinstance(parameter.default, FieldInfo):
            python_defaults.add(parameter.name)
    model, schema = _build(name, fields, aliases)
    properties: dict[str, Any] = schema.setdefault("properties", {})
    for parameter_name, text in texts.items():
        if parameter_name in properties:
            properties[parameter_name].setdefault("description", text)
    return Parameters(model, aliases, _tidy(schema), tuple(notes), context, frozenset(python_defaults))


def docstring_of(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """The first paragraph of the docstring on one line, and the text of each parameter.

    Google, NumPy and reST style are understood. A docstring in no known style is only a description.
    """
    doc = inspect.getdoc(function) or ""
    if not doc.strip():
        return "", {}
    try:
        parsed = docstring_parser.parse(doc)
    except docstring_parser.ParseError:
        return " ".join(doc.split("\n\n")[0].split()), {}
    summary = doc.split("\n\n")[0] if parsed.short_description is None else parsed.short_description
    if not parsed.blank_after_short_description and parsed.long_description:
        # A summary of several lines: the first paragraph goes on until an empty line.
        summary += "\n" + parsed.long_description.split("\n\n")[0]
    texts = {
        parameter.arg_name.lstrip("*"): " ".join(parameter.description.split())
        for parameter in parsed.params
        if parameter.description
    }
    return " ".join(summary.split()), texts


def _hints(function: Callable[..., Any], namespaces: tuple[Mapping[str, Any], Mapping[str, Any]]) -> dict[str, Any]:
    while isinstance(function, partial):
        function = function.func
    if not (inspect.isfunction(function) or inspect.ismethod(function) or inspect.isbuiltin(function)):
        function = type(function).__call__
    plain = inspect.unwrap(function)
    written_in: Mapping[str, Any] = getattr(plain, "__globals__", {})
    decorated_in, local = namespaces
    if "<locals>" not in getattr(plain, "__qualname__", ""):
        # Not a nested function: local names of the place that decorates it only fill gaps, they hide nothing.
        local = {key: value for key, value in local.items() if key not in written_in}
    return typing.get_type_hints(
        function, {**decorated_in, **written_in}, {**local, **_closure(plain)}, include_extras=True
    )


def _closure(function: Callable[..., Any]) -> dict[str, Any]:
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    found: dict[str, Any] = {}
    for name, cell in zip(names, getattr(function, "__closure__", None) or (), strict=False):
        with suppress(ValueError):  # an empty cell: the name is assigned later, as that of the tool itself is
            found[name] = cell.cell_contents
    return found


def _is_context(hint: Any, context_class: type) -> bool:
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) in (Union, UnionType):
        return any(_is_context(option, context_class) for option in get_args(hint))
    return hint is context_class


def _refuse_unfillable(name: str, parameter: inspect.Parameter) -> None:
    advice: dict[Any, str] = {
        inspect.Parameter.VAR_POSITIONAL: f"takes *{parameter.name}; declare one parameter of type list instead",
        inspect.Parameter.VAR_KEYWORD: f"takes **{parameter.name}; declare one parameter of type dict instead",
        inspect.Parameter.POSITIONAL_ONLY: f"has the positional-only parameter {parameter.name!r}; "
        "arguments come by name, so remove the '/' from its signature",
    }
    if parameter.kind in advice:
        raise TypeError(f"tool {name!r} {advice[parameter.kind]}")


def _field(hint: Any, parameter: inspect.Parameter) -> tuple[Any, Any]:
    default = parameter.default
    if default is _EMPTY:
        return hint, Field(alias=parameter.name)
    if not isinstance(default, FieldInfo):
        return hint, Field(default=default, alias=parameter.name)
    # `x: int = Field(3, ge=1)`: its constraints join the type, its default stays a default.
    hint = Annotated[hint, default]
    if default.default_factory is not None:
        return hint, Field(default_factory=default.default_factory, alias=parameter.name)
    if default.default is PydanticUndefined:
        return hint, Field(alias=parameter.name)
    return hint, Field(default=default.default, alias=parameter.name)


def _build(name: str, fields: dict[str, Any], aliases: Mapping[str, str]) -> tuple[type[BaseModel], dict[str, Any]]:
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=False)
    try:
        model = create_model(name, __config__=config, **fields)
        return model, model.model_json_schema(by_alias=True, schema_generator=_Schema)
    except (PydanticUserError, SchemaError) as error:
        if getattr(error, "code", None) == "class-not-fully-defined":
            raise NameError(str(error).splitlines()[0]) from error
        for key, (hint, info) in fields.items():
            try:
                create_model(name, __config__=config, value=(hint, info)).model_json_schema(schema_generator=_Schema)
            except (PydanticUserError, SchemaError):
                shown = getattr(hint, "__qualname__", None) or str(hint)
                raise TypeError(
                    f"parameter {aliases[key]!r} of tool {name!r} has the type {shown}, which a model cannot fill from "
                    "JSON; use str, int, float, bool, list, dict, Literal, Enum, a dataclass, a TypedDict or a "
                    f"pydantic model ({str(error).splitlines()[0]})"
                ) from error
        raise TypeError(f"the signature of tool {name!r} has no JSON Schema: {error}") from error


def _tidy(schema: dict[str, Any]) -> dict[str, Any]:
    """Inlines what `$defs` holds, except recursive types, and drops generated titles: fewer tokens, and some servers
    do not follow references."""
    definitions: dict[str, Any] = schema.pop("$defs", {})
    recursive = {name for name in definitions if name in _reachable(definitions[name], definitions)}
    kept: dict[str, Any] = {}

    def clean(node: Any) -> Any:
        if isinstance(node, list):
            return [clean(item) for item in node]
        if not isinstance(node, dict):
            return node
        name = _referenced(node)
        siblings = {key: value for key, value in node.items() if key != "$ref"}
        if name in recursive:
            if name not in kept:
                kept[name] = None  # entered before it is cleaned: it refers to itself
                kept[name] = clean(definitions[name])
            return {"$ref": f"#/$defs/{name}", **clean(siblings)}
        if name in definitions:
            return clean({**definitions[name], **siblings})
        return {key: clean_keyword(key, value) for key, value in node.items() if not _is_noise(key, value)}

    def clean_keyword(key: str, value: Any) -> Any:
        if key in ("properties", "patternProperties", "$defs"):
            return {name: clean(item) for name, item in value.items()}
        return value if key in ("default", "enum", "const", "examples", "required") else clean(value)

    result: dict[str, Any] = clean(schema)
    result.pop("description", None)
    ordered = {"type": "object", "properties": result.pop("properties", {}), **result}
    return {**ordered, "$defs": kept} if kept else ordered


def _is_noise(key: str, value: Any) -> bool:
    # The mapping of a discriminator points into `$defs`; the tags themselves stand in the options as constants.
    return (key == "title" and isinstance(value, str)) or key == "discriminator"


def _referenced(node: Mapping[str, Any]) -> str:
    reference = node.get("$ref")
    return reference.removeprefix("#/$defs/") if isinstance(reference, str) else ""


def _reachable(node: Any, definitions: Mapping[str, Any]) -> set[str]:
    found: set[str] = set()
    pending = [node]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            name = _referenced(item)
            if name in definitions and name not in found:
                found.add(name)
                pending.append(definitions[name])
            pending += item.values()
        elif isinstance(item, list):
            pending += item
    return found


def _path(location: tuple[int | str, ...]) -> str:
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def type_of(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(str(value) for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(type_of(option) for option in schema["anyOf"])
    return str(schema.get("type", "any value" if "$ref" not in schema else "object"))


def _json_type(value: Any) -> str:
    names = {type(None): "null", bool: "a boolean", str: "a string", int: "a number", float: "a number"}
    return names.get(type(value), "an array" if isinstance(value, (list, tuple)) else type(value).__name__)
