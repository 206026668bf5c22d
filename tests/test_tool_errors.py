"""What counts as a failed call, and how failures read to a model."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

import hookwright as hw
from hookwright._failures import describe, fields_of


class Result(BaseModel):
    """What client libraries of the Model Context Protocol hand back."""

    isError: bool
    content: Any = ()


@dataclasses.dataclass
class Answer:
    error: str | None
    rows: tuple[int, ...] = ()


def part(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


#: A value, whether the tool declares JSON, and whether it is a failure.
SHAPES: list[tuple[Any, bool, bool]] = [
    # Exceptions, raised or returned.
    (hw.ToolError("gone", code="not_found"), False, True),
    (hw.ToolError(), False, True),
    (ValueError("no"), False, True),
    (KeyboardInterrupt(), False, True),
    # An error that says something.
    ({"error": "no such table"}, False, True),
    ({"error": "no such table", "rows": []}, False, True),
    ({"error": {"message": "no such table"}}, False, True),
    ({"error": {"code": 404}}, False, True),
    ({"error": {"error": {"error": "deep down"}}}, False, True),
    ({"error": True, "message": "no"}, False, True),
    (Answer("no such table"), False, True),
    # One that says nothing.
    ({"error": False}, False, False),
    ({"error": 0}, False, False),
    ({"error": 0.0}, False, False),
    ({"error": None}, False, False),
    ({"error": ""}, False, False),
    ({"error": " \n\t"}, False, False),
    ({"error": {}}, False, False),
    ({"error": {"error": None}}, False, False),
    ({"error": {"message": "  ", "code": 0}}, False, False),
    ({"error": []}, False, False),
    ({"error": 0.25}, False, False),
    (Answer(None, (1, 2)), False, False),
    # The Model Context Protocol.
    ({"isError": True, "content": "no"}, False, True),
    ({"isError": True, "content": [part("no")]}, False, True),
    ({"isError": True, "content": [part("no"), {"type": "image", "data": "aGk="}]}, False, True),
    ({"isError": True, "content": []}, False, True),
    ({"isError": True}, False, True),
    (Result(isError=True, content=[part("no")]), False, True),
    ({"isError": False, "content": [part("error: no")]}, False, False),
    ({"isError": None, "content": [part('{"error": "no"}')]}, False, False),
    ({"isError": "true"}, False, False),
    (Result(isError=False, content=[part("yes")]), False, False),
    ([part("error")], False, False),
    # JSON text, of a tool that declares JSON and of one that does not.
    ('{"error": "no"}', True, True),
    (' \n{"error": {"message": "no"}}\n', True, True),
    ('{"isError": true, "content": "no"}', True, True),
    ('{"error": "no"}', False, False),
    ('{"error": false}', True, False),
    ('{"error": null, "rows": [1]}', True, False),
    ('the log says {"error": "no"}', True, False),
    ('{"error": "no"} and more', True, False),
    ('{"error": "cut o', True, False),
    ('"{\\"error\\": \\"text in text\\"}"', True, False),
    ('[{"error": "one of many"}]', True, False),
    # Results of programs are results.
    ({"exit_code": 1, "stderr": "error: no such file", "stdout": ""}, False, False),
    ({"returncode": 127}, False, False),
    ("Error: no such file", False, False),
    ("Traceback (most recent call last):", False, False),
    # An error somewhere inside, or something like one, is data.
    ({"rows": [{"error": "no"}]}, False, False),
    ([{"error": "no"}], False, False),
    ({"errors": ["no"]}, False, False),
    ({"Error": "no"}, False, False),
    ({"error_count": 3}, False, False),
    # Plain values.
    (None, False, False),
    ("", False, False),
    (0, False, False),
    (False, False, False),
    ([], False, False),
    ({}, False, False),
    (float("nan"), False, False),
    ({1, 2}, False, False),
    (b"text", False, False),
    # A model cannot be told of these.
    (object(), False, True),
    (b"\xff\xfe", False, True),
]


def label(row: tuple[Any, bool, bool]) -> str:
    return re.sub(r" at 0x\w+", "", f"{row[0]!r}{' as JSON' if row[1] else ''}")[:60]


def agent_for(value: Any, *, raises: bool = False, declares_json: bool = False) -> tuple[hw.Agent, list[Any]]:
    """An agent with one tool that returns or raises ``value``, and the events that its hooks hear."""
    heard: list[Any] = []
    hooks = hw.HookChain()
    for event in ("post_tool_execution", "post_tool_execution_failure"):
        hooks.add(heard.append, event, role="observer", name=event)

    def give() -> Any:
        """Gives it."""
        if raises:
            raise value
        return value

    made = hw.tool(give, inline=True, returns="json" if declares_json else None)
    return hw.Agent(hw.Scripted([hw.ToolCall("give", {}), "done"]), tools=[made], hooks=hooks), heard


def test_the_table_is_long_enough() -> None:
    assert len(SHAPES) >= 40


@pytest.mark.parametrize("row", SHAPES, ids=label)
def test_a_shape_is_a_failure_or_it_is_not(row: tuple[Any, bool, bool]) -> None:
    value, declares_json, failure = row
    assert hw.is_failure(value, declares_json=declares_json) is failure


@pytest.mark.parametrize("row", SHAPES, ids=label)
def test_an_agent_judges_as_is_failure_does(row: tuple[Any, bool, bool]) -> None:
    value, declares_json, failure = row
    agent, heard = agent_for(value, declares_json=declares_json)
    (made,) = agent.run_sync("go").tool_calls
    assert (made.is_error, made.ran) == (failure, True)
    assert [event.event for event in heard][-1] == "post_tool_execution" + ("_failure" if failure else "")
    assert made.result.startswith("Error (") == failure
    (told,) = [message for message in agent.history if message.role == "tool"]
    assert told.is_error is failure


def test_hooks_see_an_error_value_first_as_a_result_and_then_as_a_failure() -> None:
    agent, heard = agent_for({"error": {"message": "no table", "code": "not_found"}, "retry_after": 1.5})
    (made,) = agent.run_sync("go").tool_calls
    result, failure = heard
    assert result.tool_result == {"error": {"message": "no table", "code": "not_found"}, "retry_after": 1.5}
    assert failure.cause == made.cause == "error_result"
    assert failure.tool_error == {"code": "not_found", "detail": "no table", "retryable": True, "retry_after": 1.5}
    assert made.result == "Error (not_found): no table\nThe same call may succeed after 2 s."


def test_what_a_hook_takes_out_of_an_error_value_is_not_told_by_way_of_the_failure() -> None:
    agent, heard = agent_for({"error": "no user with the key s3cr3t"})
    assert agent.hooks is not None
    agent.hooks.add(lambda event: {"tool_result": {"error": "no such user"}}, "post_tool_execution", name="redact")
    (made,) = agent.run_sync("go").tool_calls
    assert made.result == "Error (exception): no such user"
    assert heard[-1].tool_error["detail"] == "no such user"


def test_a_hook_that_repairs_an_error_value_makes_it_a_success() -> None:
    agent, heard = agent_for({"error": "busy"})
    assert agent.hooks is not None
    agent.hooks.add(lambda event: {"tool_result": "from the cache"}, "post_tool_execution", name="cache")
    (made,) = agent.run_sync("go").tool_calls
    assert (made.is_error, made.cause, made.result) == (False, None, "from the cache")
    assert [event.event for event in heard] == ["post_tool_execution"]


@pytest.mark.parametrize("raises", [True, False])
def test_a_tool_error_says_the_same_raised_or_returned(raises: bool) -> None:
    error = hw.ToolError("no such file: a", code="not_found", field="path", hint="List the folder.", retry_after=0.2)
    agent, heard = agent_for(error, raises=raises)
    (made,) = agent.run_sync("go").tool_calls
    assert made.result == error.render()
    assert made.result == (
        "Error (not_found), argument `path`: no such file: a\nList the folder.\nThe same call may succeed after 1 s."
    )
    assert [event.event for event in heard] == ["post_tool_execution_failure"]
    assert (made.is_error, made.cause) == (True, "exception")


def test_a_code_that_does_not_exist_is_refused_with_the_near_one() -> None:
    with pytest.raises(ValueError, match="did you mean 'not_found'"):
        hw.ToolError("x", code="notfound")
    with pytest.raises(ValueError, match="there are required, type"):
        hw.ToolError("x", code="zzz")
    with pytest.raises(ValueError, match="retry_after is a number of seconds"):
        hw.ToolError("x", retry_after=-1)
    with pytest.raises(ValueError, match="returns is 'json'"):
        hw.tool(lambda: None, name="x", returns="xml")  # type: ignore[call-overload]


class Opaque:
    """Has no text of its own."""


class Loud(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text today")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no such thing"), "ValueError: no such thing"),
        (ValueError(), "the tool raised ValueError without saying why"),
        (ValueError("  "), "the tool raised ValueError without saying why"),
        (ValueError("a", 2, None), "ValueError: a, 2, null"),
        (ValueError(Opaque()), "ValueError: a Opaque"),
        (ValueError({"sizes": (1, 2), "name": "é<&>"}), 'ValueError: {"sizes":[1,2],"name":"é<&>"}'),
        (ValueError(f"bad {Opaque()!r} here"), "ValueError: bad a Opaque here"),
        (ValueError(TypeError("inner")), "ValueError: TypeError: inner"),
        (KeyError("name"), "KeyError: there is no name"),
        (KeyError(), "the tool raised KeyError without saying why"),
        (FileNotFoundError(2, "No such file or directory", "a.txt"), "FileNotFoundError: [Errno 2] No such file or directory: 'a.txt'"),
        (Loud(), "the tool raised Loud without saying why"),
        (RuntimeError("failed\nTraceback (most recent call last):\n  File \"x\", line 1\n    y()\nValueError: z"), "RuntimeError: failed\nValueError: z"),
        (ValueError("\ud800"), "ValueError: \ufffd"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)  # fmt: skip
def test_an_exception_reads_without_what_only_python_shows(error: BaseException, text: str) -> None:
    assert describe(error) == text
    agent, _ = agent_for(error, raises=True)
    (made,) = agent.run_sync("go").tool_calls
    assert made.result == f"Error (exception): {text}"


def test_a_validation_error_of_pydantic_reads_as_its_problems() -> None:
    with pytest.raises(ValueError) as caught:
        Result.model_validate({"isError": "perhaps"})
    text = describe(caught.value)
    assert text.startswith("ValidationError: isError: Input should be a valid boolean")
    assert "input_value" not in text and "http" not in text


#: What only a display of Python or Rust contains. Names in the values below cannot bring it in.
DUMP = re.compile(
    r" at 0x|Traceback|<class |<function|Some\(|String\(|Object \{|&(?:lt|gt|amp|#)|\\u00[2-7]|\bNone\b|b'"
)

words = st.text(st.characters(exclude_characters="\\'&", exclude_categories=()), max_size=8).filter(
    lambda text: not DUMP.search(text)
)
leaves = (
    st.none() | st.booleans() | st.integers() | st.floats() | words | st.sampled_from(["<b>", "é", "中文", "a & b"])
    | st.binary(max_size=4) | st.sets(st.integers(), max_size=3)
    | st.builds(Opaque) | st.builds(Answer, words | st.none()) | st.builds(Result, isError=st.booleans())
)  # fmt: skip
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["error", "isError", "content", "message", "x"]) | words, inner, max_size=3)
    ),
    max_leaves=8,
)
exceptions = st.builds(
    lambda kind, args: kind(*args),
    st.sampled_from([ValueError, KeyError, RuntimeError, Exception, LookupError, Loud]),
    st.lists(values, max_size=3),
)


@settings(deadline=None)
@given(values | exceptions)
def test_no_rendering_shows_a_debug_dump(value: Any) -> None:
    agent, _ = agent_for(value, raises=isinstance(value, BaseException))
    (made,) = agent.run_sync("go").tool_calls
    made.result.encode()
    assert made.is_error is hw.is_failure(value)
    assert not DUMP.search(made.result), made.result
    if made.is_error:
        assert made.result.partition(": ")[2].strip()
    elif not isinstance(value, (str, bytes, type(None))):
        # Compact JSON: as it comes out of the reader it goes in again.
        data = json.loads(made.result)
        assert json.dumps(data, ensure_ascii=False, separators=(",", ":")).count(" ") == made.result.count(" ")


@given(exceptions)
def test_an_exception_always_has_words(error: BaseException) -> None:
    fields = fields_of(error)
    assert fields["detail"].strip()
    assert not DUMP.search(fields["detail"]), fields
