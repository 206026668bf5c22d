"""Notebook pages: what they show, what they must not show, and that nothing in them is taken for markup."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookwright._display import outcome_html, timeline_html, tool_html

HOSTILE = "<script>alert('x')</script>\"'&"

OUTCOME: dict[str, Any] = {
    "event": "pre_tool_execution",
    "action": "skip",
    "reason": "deleting is not allowed here",
    "halted_by": "no_deletes",
    "ms": 1.25,
    "runs": [
        {"name": "shorten", "kind": "python", "role": "hook", "status": "changed", "ms": 0.0123, "attempts": 1},
        {"name": "no_deletes", "kind": "python", "role": "gate", "status": "halted", "ms": 12.34, "attempts": 2},
        {"name": "noisy", "kind": "shell", "role": "observer", "status": "failed", "ms": None, "error": "exit 127"},
    ],
    "changes": [
        {
            "hook": "shorten",
            "field": "tool_arguments",
            "before": {"command": "rm -rf build"},
            "after": {"command": "rm build"},
        },
        {"hook": "shorten", "field": "tool_result", "before": "key sk-123", "after": "key [redacted]"},
    ],
    "system_messages": [["noisy", "look out"]],
}


class Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text += data


def fill(value: Any, text: str) -> Any:
    """The same structure with every string replaced."""
    if isinstance(value, str):
        return text
    if isinstance(value, list):
        return [fill(item, text) for item in value]
    if isinstance(value, dict):
        return {key: fill(item, text) for key, item in value.items()}
    return value


def step(outcome: dict[str, Any]) -> dict[str, Any]:
    return {**outcome, "offset_ms": 3.5, "summary": "shell rm -rf build"}


def test_an_outcome_shows_each_run_with_status_time_and_change() -> None:
    shown = Tags(outcome_html(OUTCOME))
    assert shown.open == []
    assert "pre_tool_execution skip by no_deletes — deleting is not allowed here 1.250 ms" in shown.text
    assert "shortenpythonhookchanged0.012" in shown.text
    assert "no_deletespythongatehalted12.32 attempts" in shown.text
    assert "noisyshellobserverfailedexit 127" in shown.text
    assert "message (noisy): look out" in shown.text


def test_plain_arguments_are_shown_as_a_diff() -> None:
    html = outcome_html(OUTCOME)
    assert "rm <del>-rf </del>build" in html


def test_a_value_replaced_in_a_result_is_shown_only_by_length_and_hash() -> None:
    html = outcome_html(OUTCOME)
    assert "sk-123" not in html
    assert "[redacted]" not in html
    assert "tool_result</code>: 10 characters, #" in html
    digest = {"hook": "shorten", "field": "tool_result", "before": {"length": 9, "hash": "abcdef0123"}, "after": None}
    assert "9 characters, #abcdef01 → nothing" in outcome_html({**OUTCOME, "changes": [digest]})


def test_a_timeline_shows_status_steps_and_text() -> None:
    run = {
        "status": "success",
        "duration_ms": 42.0,
        "usage": {"input_tokens": 10, "output_tokens": 3},
        "text": "done",
        "trace": [
            step(OUTCOME),
            {"event": "turn_end", "runs": [{"name": "x", "status": "filtered"}]},
        ],
    }
    shown = Tags(timeline_html(run))
    assert shown.open == []
    assert shown.text.startswith("success 42.0 ms 10 tokens in, 3 out")
    assert "3.500 ms pre_tool_execution shell rm -rf build skip by no_deletes" in shown.text
    assert shown.tags.count("details") == 1
    assert shown.text.endswith("turn_enddone")


@pytest.mark.parametrize("page", [outcome_html, timeline_html, tool_html])
def test_an_empty_page_is_still_a_page(page: Any) -> None:
    assert Tags(page({})).open == []


def pages(text: str) -> list[str]:
    outcome = fill(OUTCOME, text)
    return [
        outcome_html(outcome),
        timeline_html({"status": text, "text": text, "trace": [step(outcome)], "usage": {"input_tokens": text}}),
        tool_html({"name": text, "description": text, "flags": text, "parameters": {text: (text, text, text)}}),
    ]


ALLOWED = {
    "div", "style", "table", "thead", "tbody", "tr", "th", "td", "span", "b", "code", "pre", "br", "del", "ins",
    "details", "summary",
}  # fmt: skip


def test_hostile_text_stays_text() -> None:
    for html in pages(HOSTILE):
        assert "<script" not in html
        assert "&lt;script&gt;" in html


@given(st.text(st.characters(exclude_categories=())))
def test_no_text_whatever_becomes_markup(text: str) -> None:
    for html in pages(text):
        html.encode()
        shown = Tags(html)
        assert shown.open == []
        assert set(shown.tags) <= ALLOWED
        assert {name for name, _ in shown.attributes} <= {"class", "open"}


def test_nothing_is_loaded_from_outside() -> None:
    for html in pages("x"):
        assert "http" not in html
        assert "url(" not in html
        assert "src=" not in html
