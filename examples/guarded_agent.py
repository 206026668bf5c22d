"""A guarded agent in one file: a gate, a redaction, an observer, and a person who is asked.

Run it with: python examples/guarded_agent.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import hookwright as hw

hooks = hw.HookChain()


@hooks.on("pre_tool_execution", tool_name="shell", role="gate")
def no_deletes(event: hw.PreToolExecution) -> hw.HookResult | None:
    """Refuses to delete; the model reads why."""
    if "rm " in event.tool_arguments.get("command", ""):
        return hw.skip("deleting is not allowed here; move it to trash/ instead")
    return None


@hooks.on("pre_tool_execution", tool_matcher="write_*", role="gate")
def ask_before_writing(event: hw.PreToolExecution) -> hw.HookResult:
    """Lets a person decide about every write."""
    return hw.ask(f"may I write {event.tool_arguments['path']}?")


@hooks.on("post_tool_execution")
async def redact(event: hw.PostToolExecution) -> dict[str, str] | None:
    """Takes a password out of results before the model, the transcript or anybody else sees them."""
    text = str(event.tool_result)
    return {"tool_result": text.replace("hunter2", "[redacted]")} if "hunter2" in text else None


def approve(request: hw.ApprovalRequest) -> bool:
    """Stands in for a person: yes to everything below notes/."""
    return str(request.arguments["path"]).startswith("notes/")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "login.txt").write_text("user: ada\npassword: hunter2\n", encoding="utf-8")
        model = hw.Scripted(
            [
                [hw.ToolCall("read_file", {"path": "login.txt"}), hw.ToolCall("shell", {"command": "rm login.txt"})],
                [
                    hw.ToolCall("write_file", {"path": "notes/found.md", "content": "There is a login.\n"}),
                    hw.ToolCall("write_file", {"path": "login.txt", "content": ""}),
                ],
                "I wrote a note. I may neither delete nor overwrite login.txt.",
            ]
        )
        agent = hw.Agent(model, tools=hw.workspace_tools(folder), hooks=hooks, approver=approve)
        result = agent.run_sync("tidy up")
        for call in result.tool_calls:
            print(f"{call.name:10} {call.cause or 'ok':8} {' '.join(call.result.split())}")
        print(result.text)
        assert [call.cause for call in result.tool_calls] == [None, "denied", None, "denied"]
        assert "hunter2" not in repr(result.messages)


if __name__ == "__main__":
    main()
