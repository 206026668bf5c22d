"""The workspace's tools, called by an agent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field
from runs import Run, call, check_history, told

import hookwright as hw


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small project."""
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "main.py").write_text("print('hello')\nprint('world')\n")
    (root / "notes.md").write_text("# Notes\nhello again\n")
    (tmp_path / "outside.txt").write_text("secret")
    (root / "link").symlink_to(tmp_path / "outside.txt")
    return root


def told_of(run: Run, tools: Any, *calls: hw.ToolCall, **options: Any) -> tuple[hw.RunResult, list[str]]:
    agent = hw.Agent(hw.Scripted([list(calls), "done"]), tools=tools, **options)
    result = run(agent, "go")
    assert (result.status, result.text) == ("success", "done")
    check_history(agent.history)
    return result, told(agent)


def test_reading_searching_writing_and_running(run: Run, root: Path) -> None:
    _, (read, found, listed, written, ran) = told_of(
        run,
        hw.workspace_tools(root),
        call("read_file", path="src/main.py"),
        call("grep", pattern="hello"),
        call("glob", pattern="**/*.py"),
        call("write_file", path="src/new.py", content="x = 1\n"),
        call("shell", command="cat src/new.py; echo to stderr >&2; exit 3"),
    )
    assert "print('hello')" in read
    assert "notes.md" in found
    assert "src/main.py" in found
    assert "src/main.py" in listed
    assert "notes.md" not in listed
    assert (root / "src" / "new.py").read_text() == "x = 1\n"
    assert "new.py" in written
    assert "x = 1" in ran
    assert "to stderr" in ran
    assert "3" in ran


@pytest.mark.parametrize("path", ["../outside.txt", "link", "/etc/passwd", "src/../../outside.txt"])
@pytest.mark.parametrize("tool", ["read_file", "write_file"])
def test_nothing_outside_the_root_is_touched(run: Run, root: Path, tool: str, path: str) -> None:
    arguments = {"path": path} if tool == "read_file" else {"path": path, "content": "overwritten"}
    result, (text,) = told_of(run, hw.workspace_tools(root), hw.ToolCall(tool, arguments))
    assert result.tool_calls[0].is_error
    assert "secret" not in text
    assert "root:" not in text
    assert (root.parent / "outside.txt").read_text() == "secret"


def test_mistakes_are_the_models_to_read(run: Run, root: Path) -> None:
    result, texts = told_of(
        run,
        hw.workspace_tools(root),
        call("read_file", path="no/such/file"),
        call("grep", pattern="("),
        call("read_file", path=3),
        call("shell"),
    )
    assert [made.is_error for made in result.tool_calls] == [True] * 4
    assert "no/such/file" in texts[0]
    assert [made.cause for made in result.tool_calls] == [
        "exception",
        "exception",
        "invalid_arguments",
        "invalid_arguments",
    ]


def test_listing_and_editing(run: Run, root: Path) -> None:
    _, (listed, edited, refused) = told_of(
        run,
        hw.workspace_tools(root),
        call("list_dir"),
        call("edit_file", path="src/main.py", old_text="print('hello')", new_text="print('bye')"),
        call("edit_file", path="src/main.py", old_text="print(", new_text="log("),
    )
    assert listed.splitlines()[-2:] == ["notes.md (20 bytes)", "src/"]
    assert edited == "Replaced 1 place in src/main.py, in line 1."
    assert "2 times" in refused
    assert "lines 1, 2" in refused
    assert (root / "src" / "main.py").read_text() == "print('bye')\nprint('world')\n"


def test_reading_only_leaves_the_others_out(root: Path) -> None:
    names = {tool.name for tool in hw.workspace_tools(root, write=False, shell=False)}
    assert names == {"read_file", "list_dir", "grep", "glob"}


def test_commands_run_in_the_root_whatever_folder_the_agent_is_in(run: Run, root: Path) -> None:
    _, (text,) = told_of(run, hw.workspace_tools(root), call("shell", command="pwd"), cwd=root / "src")
    assert text.splitlines()[-1] == str(root)


def test_a_big_result_is_cut_in_the_middle_and_says_so(run: Run, root: Path) -> None:
    _, (text,) = told_of(
        run,
        hw.workspace_tools(root),
        call("shell", command="echo first; head -c 3000000 /dev/zero | tr '\\0' é; echo last"),
    )
    assert len(text) < 300_000
    assert "first" in text
    assert "last" in text


class Point(BaseModel):
    x: int
    y: int = 0


@hw.tool(inline=True)
def plot(point: Point, colour: Annotated[str, Field(pattern="^[a-z]+$")] = "red", *, times: int = 1) -> Point:
    """Plots."""
    assert isinstance(point, Point)
    return Point(x=point.x * times, y=point.y)


def test_arguments_are_checked_and_converted_by_their_types(run: Run) -> None:
    result, (fine, wrong) = told_of(
        run, [plot], call("plot", point={"x": 2}, times=3), call("plot", point={"x": "two"}, colour="RED", times="many")
    )
    assert fine == '{"x":6,"y":0}'
    assert result.tool_calls[1].cause == "invalid_arguments"
    for part in ("x", "colour", "times"):
        assert part in wrong


def test_a_plain_function_is_a_tool_and_two_of_a_name_are_refused() -> None:
    def work() -> str:
        """Works."""
        return "done"

    assert hw.Agent(hw.Scripted([call("work"), "ok"]), tools=[work]).run_sync("go").tool_calls[0].result == "done"
    with pytest.raises(ValueError, match="work"):
        hw.Agent(hw.Scripted([]), tools=[work, work])
