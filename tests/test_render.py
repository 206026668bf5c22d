"""What a model sees of a tool's return value."""

from __future__ import annotations

import dataclasses
import datetime
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from hookwright._render import render_result, well_formed
from hookwright.exceptions import ToolError


@dataclasses.dataclass
class Hit:
    path: str
    lines: list[int]


class Page(BaseModel):
    title: str
    hits: list[Hit] = []


@pytest.mark.parametrize(
    ("value", "text", "data"),
    [
        (None, "", None),
        ("", "", None),
        ('{"already": "text"}', '{"already": "text"}', None),
        (b"caf\xc3\xa9", "café", None),
        (True, "true", True),
        (1.5, "1.5", 1.5),
        ({"a": "<b>&é"}, '{"a":"<b>&é"}', {"a": "<b>&é"}),
        (Page(title="t", hits=[Hit("a", [1])]), '{"title":"t","hits":[{"path":"a","lines":[1]}]}', ...),
        ([Hit("a", [])], '[{"path":"a","lines":[]}]', [{"path": "a", "lines": []}]),
        (datetime.date(2024, 2, 3), '"2024-02-03"', "2024-02-03"),
        ([float("nan"), {"x": float("-inf")}], '["NaN",{"x":"-Infinity"}]', ["NaN", {"x": "-Infinity"}]),
        ("\ud800x", "\ufffdx", None),
        ({"k": "\ud83d\ude00\udc00"}, '{"k":"😀\ufffd"}', {"k": "😀\ufffd"}),
    ],
)
def test_values_become_text_and_data(value: Any, text: str, data: Any) -> None:
    rendered, structured = render_result(value)
    assert rendered == text
    assert structured == (json.loads(text) if data is ... else data)


def test_values_without_a_json_form_say_what_to_do() -> None:
    circular: list[Any] = []
    circular.append(circular)
    for value, message in [
        (object(), "holds a object, which has no JSON form"),
        ({"deep": [Hit("a", [object()])]}, "holds a object"),  # type: ignore[list-item]
        (circular, "Circular reference"),
        (b"\xff\x00", "2 bytes that are not UTF-8"),
        ({"b": b"\xff"}, "has no JSON form"),
    ]:
        with pytest.raises(ToolError, match=message) as caught:
            render_result(value)
        assert caught.value.code == "exception"
        assert caught.value.hint
        assert " at 0x" not in str(caught.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_any_json_value_renders_to_text_that_servers_accept(value: Any) -> None:
    text, data = render_result(value)
    text.encode()
    if data is not None:
        assert json.loads(text) == data


@given(st.text(st.characters(exclude_categories=())))
def test_well_formed_changes_only_lone_surrogates(text: str) -> None:
    clean = well_formed(text)
    clean.encode()
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert clean is text
