"""`@tool`: schema, validation, binding and the errors a tool author reads."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import enum
import functools
import pickle
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import jsonschema
import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from hookwright._tools import Context, Tool, tool
from hookwright.exceptions import ToolError


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    """A place."""

    x: int
    y: int = 0


class Tree(BaseModel):
    label: str
    children: list[Tree] = []


@dataclasses.dataclass
class Span:
    start: int
    end: int = 10


class Options(TypedDict, total=False):
    title: str
    deep: bool


@tool(effect="read", timeout=2)
def everything(
    pattern: str,
    color: Color,
    where: Point,
    span: Span,
    options: Options,
    mode: Literal["fast", "slow"] = "fast",
    limit: Annotated[int, Field(ge=1, le=100, description="how many")] = 10,
    names: Optional[list[str]] = None,  # noqa: UP045 - the old spelling is one of the cases
    weights: dict[str, float] | None = None,
    *,
    folder: Path = Path(),
) -> dict[str, Any]:
    """Find things.

    More about it that the model need not read.

    Args:
        pattern: what to look for,
            on two lines.
        limit: not used, the annotation wins.
        where: the place.
    """
    return dict(locals())


def test_the_schema_has_types_defaults_and_texts() -> None:
    schema = everything.schema
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["pattern", "color", "where", "span", "options"]
    properties = schema["properties"]
    assert properties["pattern"] == {"type": "string", "description": "what to look for, on two lines."}
    assert properties["color"] == {"enum": ["red", "blue"], "type": "string"}
    assert properties["where"] == {
        "type": "object",
        "description": "the place.",
        "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
        "required": ["x"],
    }
    assert properties["span"]["properties"]["end"] == {"type": "integer", "default": 10}
    assert properties["options"]["properties"]["title"] == {"type": "string"}
    assert properties["mode"] == {"type": "string", "enum": ["fast", "slow"], "default": "fast"}
    assert properties["limit"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 100,
        "default": 10,
        "description": "how many",
    }
    assert properties["names"]["anyOf"] == [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]
    assert properties["folder"]["default"] == "."
    assert "$defs" not in schema


def test_name_description_and_flags_come_from_the_function() -> None:
    assert everything.name == "everything"
    assert everything.description == "Find things."
    assert (everything.effect, everything.timeout, everything.parallel) == ("read", 2.0, True)
    assert (everything.inline, everything.is_async) == (False, False)
    assert everything.__module__ == __name__


def test_arguments_are_converted_to_the_declared_types() -> None:
    result = everything.invoke(
        {
            "pattern": "x",
            "color": "blue",
            "where": {"x": "3"},
            "span": {"start": 1},
            "options": {"deep": True},
            "folder": "/tmp",
            "limit": 5,
        }
    )
    assert result == {
        "pattern": "x",
        "color": Color.BLUE,
        "where": Point(x=3),
        "span": Span(1),
        "options": {"deep": True},
        "mode": "fast",
        "limit": 5,
        "names": None,
        "weights": None,
        "folder": Path("/tmp"),
    }


def test_every_wrong_argument_is_named_at_once() -> None:
    with pytest.raises(ToolError) as caught:
        everything.invoke({"patern": "x", "color": "green", "where": {"x": "no"}, "span": {"start": 1}, "limit": 0})
    error = caught.value
    assert error.code == "required"
    assert [field for field, _ in error.problems] == ["pattern", "color", "where.x", "options", "limit", "patern"]
    assert error.field == "pattern"
    assert "pattern: is required" in error.detail
    assert "patern: there is no such argument; did you mean 'pattern'?" in error.detail
    assert error.hint is not None
    assert "pattern (string, required)" in error.hint
    assert "color (one of red, blue, required)" in error.hint


@pytest.mark.parametrize(
    ("arguments", "kind"), [(None, "null"), ([1], "an array"), ("{}", "a string"), (3, "a number")]
)
def test_arguments_that_are_no_object_are_refused(arguments: Any, kind: str) -> None:
    with pytest.raises(ToolError, match=f"must be a JSON object, not {kind}"):
        everything.invoke(arguments)


def test_a_recursive_type_keeps_a_valid_definition() -> None:
    @tool
    def plant(tree: Tree) -> str:
        return tree.children[0].label

    jsonschema.Draft202012Validator.check_schema(plant.schema)
    jsonschema.validate({"tree": {"label": "a", "children": [{"label": "b"}]}}, plant.schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"tree": {"label": "a", "children": [{"label": 1}]}}, plant.schema)
    assert list(plant.schema["$defs"]) == ["Tree"]
    assert plant.invoke({"tree": {"label": "a", "children": [{"label": "b"}]}}) == "b"


def test_a_discriminated_union_refers_to_nothing_that_is_missing() -> None:
    class Cat(BaseModel):
        kind: Literal["cat"]
        lives: int

    class Dog(BaseModel):
        kind: Literal["dog"]
        tricks: int

    @tool
    def adopt(pet: Annotated[Cat | Dog, Field(discriminator="kind")]) -> str:
        return pet.kind

    assert "$defs" not in str(adopt.schema)
    assert adopt.invoke({"pet": {"kind": "dog", "tricks": 1}}) == "dog"


def test_parameters_may_have_any_name() -> None:
    @tool
    def odd(model_config: str, schema: int, json: bool, title: str, _private: str, self_: int, properties: int) -> Any:
        return (model_config, schema, json, title, _private, self_, properties)

    arguments = {
        "model_config": "a",
        "schema": 1,
        "json": True,
        "title": "t",
        "_private": "p",
        "self_": 2,
        "properties": 3,
    }
    assert list(odd.schema["properties"]) == list(arguments)
    assert odd.invoke(arguments) == ("a", 1, True, "t", "p", 2, 3)


def test_types_local_to_the_function_that_decorates_are_found() -> None:
    class Local(BaseModel):
        value: int

    @tool
    def use(local: Local, more: list[Local] | None = None) -> int:
        return local.value

    assert use.invoke({"local": {"value": 4}}) == 4


@tool
def uses_later(later: Later) -> int:
    return later.value


def test_a_type_defined_further_down_is_found_when_needed() -> None:
    assert uses_later.schema["properties"]["later"]["properties"] == {"value": {"type": "integer"}}
    assert uses_later.invoke({"later": {"value": 7}}) == 7


class Later(BaseModel):
    value: int


def test_a_name_that_never_exists_is_an_error_that_names_it() -> None:
    @tool
    def broken(value: Nowhere) -> None:  # type: ignore[name-defined]  # noqa: F821
        pass

    assert "a type hint is not defined yet" in broken._repr_html_()
    with pytest.raises(NameError, match="Nowhere"):
        broken.schema  # noqa: B018


def test_a_missing_hint_accepts_anything_and_is_noted() -> None:
    with pytest.warns(UserWarning, match="parameter 'value' of tool 'loose' has no type hint") as caught:

        @tool
        def loose(value) -> Any:  # type: ignore[no-untyped-def]
            return value

    assert caught[0].filename == __file__
    assert loose.schema["properties"] == {"value": {}}
    assert loose.invoke({"value": [1, {"a": None}]}) == [1, {"a": None}]
    assert len(loose.notes) == 1


def test_the_context_is_injected_and_left_out_of_the_schema() -> None:
    @tool
    def where_am_i(what: str, context: Context) -> str:
        return f"{what} {context.agent} {context.call_id}"

    @tool
    def maybe(context: Context | None = None) -> Any:
        return context

    assert list(where_am_i.schema["properties"]) == ["what"]
    assert where_am_i.invoke({"what": "x"}, Context(agent="main", call_id="c1")) == "x main c1"
    assert where_am_i.invoke({"what": "x"}) == "x None None"
    with pytest.raises(ToolError, match="context: there is no such argument"):
        where_am_i.invoke({"what": "x", "context": {"agent": "forged"}})
    assert maybe.schema == {"type": "object", "properties": {}, "additionalProperties": False}
    assert maybe.invoke({}, Context(agent="a")) == Context(agent="a")


def test_the_functions_own_defaults_are_used_untouched() -> None:
    sentinel = object()

    @tool
    def with_sentinel(value: Any = sentinel, count: int = Field(3, ge=1), items: list[int] = Field([1])) -> Any:  # noqa: B008
        return value, count, items

    assert with_sentinel.invoke({}) == (sentinel, 3, [1])
    assert with_sentinel.schema["properties"]["count"] == {"type": "integer", "default": 3, "minimum": 1}
    with pytest.raises(ToolError, match="count"):
        with_sentinel.invoke({"count": 0})


def test_an_async_function_returns_an_awaitable_after_validation() -> None:
    @tool
    async def double(value: int) -> int:
        await asyncio.sleep(0)
        return value * 2

    assert double.is_async
    assert asyncio.run(double.invoke({"value": 4})) == 8
    with pytest.raises(ToolError):
        double.invoke({})


class Store:
    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    @tool(effect="read")
    def get(self, key: str) -> str:
        """Get a value."""
        return self.prefix + key

    @tool
    @staticmethod
    def fixed(key: str) -> str:
        return key

    @tool
    @classmethod
    def made(cls, key: str) -> str:
        return cls.__name__ + key

    @tool
    def uses_nested(self, value: Inner) -> int:
        return value["size"]

    class Inner(TypedDict):
        size: int


def test_methods_are_bound_to_their_instance() -> None:
    one, two = Store("1"), Store("2")
    assert one.get.invoke({"key": "k"}) == "1k"
    assert two.get.invoke({"key": "k"}) == "2k"
    assert one.get("direct") == "1direct"
    assert one.get.name == "get"
    assert list(Store.get.schema["properties"]) == ["key"]
    with pytest.raises(TypeError, match="use it through an instance"):
        Store.get.invoke({"key": "k"})
    assert Store.fixed.invoke({"key": "k"}) == "k"
    assert Store("1").fixed("k") == "k"
    assert Store.made.invoke({"key": "k"}) == "Storek"
    assert tool(one.get.function.__get__(one)).invoke({"key": "z"}) == "1z"


def test_callable_objects_and_partials_work_with_a_name() -> None:
    class Adder:
        """Adds."""

        def __call__(self, left: int, right: int = 1) -> int:
            return left + right

    def power(base: int, exponent: int) -> int:
        return base**exponent

    assert tool(Adder(), name="add").invoke({"left": 2}) == 3
    square = tool(functools.partial(power, exponent=2), name="square")
    assert square.invoke({"base": 3}) == 9
    with pytest.raises(ValueError, match="give one"):
        tool(Adder())
    with pytest.raises(ValueError, match="servers accept"):
        tool(lambda: None)


def positional_only(a: int, /) -> None: ...
def star(*items: int) -> None: ...
def double_star(**options: int) -> None: ...
def stream() -> Any:
    yield 1


def unfillable(callback: threading_lock) -> None: ...


class threading_lock:
    pass


@pytest.mark.parametrize(
    ("function", "advice"),
    [
        (positional_only, "remove the '/'"),
        (star, r"takes \*items; declare one parameter of type list"),
        (double_star, r"takes \*\*options; declare one parameter of type dict"),
        (stream, "collect what it yields and return a list"),
        (unfillable, "parameter 'callback' of tool 'unfillable' has the type threading_lock"),
        (3, "made of a function"),
    ],
)
def test_a_function_that_a_model_cannot_call_is_refused_with_advice(function: Any, advice: str) -> None:
    with pytest.raises(TypeError, match=advice):
        tool(function)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"effect": "reads"}, "'reads' is no effect; there are read, write"),
        ({"timeout": 0}, "more than 0"),
        ({"timeout": True}, "more than 0"),
        ({"name": "has space"}, "servers accept"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tool(**settings)(positional_ok)


def positional_ok(a: int) -> int:
    return a


def test_an_effect_may_depend_on_the_arguments() -> None:
    odd = tool(positional_ok, effect=lambda arguments: "write" if arguments["a"] else "read")
    assert odd.effect_of({"a": 1}) == "write"
    assert odd.effect_of({"a": 0}) == "read"
    assert odd.parallel is False
    assert tool(positional_ok).effect_of({"a": 1}) is None
    with pytest.raises(ValueError, match="returned by its effect function"):
        tool(positional_ok, effect=lambda arguments: "often").effect_of({"a": 1})


def google(a: int) -> None:
    """Does it
    on two lines.

    Args:
        a: the number
    """


def numpy_style(a: int) -> None:
    """Does it on two lines.

    Parameters
    ----------
    a : int
        the number
    """


def rest(a: int) -> None:
    """Does it on two lines.

    :param a: the number
    """


@pytest.mark.parametrize("function", [google, numpy_style, rest])
def test_docstring_styles(function: Any) -> None:
    made = tool(function)
    assert made.description == "Does it on two lines."
    assert made.schema["properties"]["a"]["description"] == "the number"


def test_a_tool_does_not_change() -> None:
    with pytest.raises(AttributeError, match="does not change"):
        everything.name = "other"
    with pytest.raises(TypeError, match="is a tool already"):
        tool(everything)
    assert copy.deepcopy(everything) is everything
    assert pickle.loads(pickle.dumps(everything)) is everything
    assert pickle.loads(pickle.dumps(Store("9").get)).invoke({"key": "k"}) == "9k"


def test_repr_and_html_are_readable_and_escaped() -> None:
    assert repr(tool(positional_ok)) == "<Tool positional_ok(a) effect=undeclared>"
    assert repr(everything).endswith("folder) effect=read timeout=2s parallel>")
    html = tool(positional_ok, description="<script>alert(1)</script>")._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert isinstance(everything, Tool)
