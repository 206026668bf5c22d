"""The demonstration: a scripted agent at work on a copy of a real repository, watched over by four hooks.

It checks what it shows. The model is a script; the repository, the tools, the hooks and the processes are real.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hookwright as hw

from ._timeline import event_lines

#: What a repository is made of where there is none to copy.
_PACKAGED = {
    "README.md": "# Greeter\n\nSays hello to whoever asks.\n",
    "greeter.py": 'def greet(name: str) -> str:\n    return f"Hello, {name}!"\n',
}
_SETTINGS = "demo-settings.env"
_ADDED = "\nChecked by the hookwright demo.\n"


def run_demo(repo: Path | None = None) -> int:
    """Runs the demonstration and prints what happens.

    Args:
        repo: the git repository to work on a copy of. Default: the one around the current folder, else a packaged one.

    Returns:
        0 if everything that was shown is true, else 1.
    """
    if shutil.which("git") is None:
        print("the demo needs git, which is not on the PATH; install it and run the demo again")
        return 1
    place = Path(tempfile.mkdtemp(prefix="hookwright-demo-"))
    work = place / "repository"
    source = _copy(repo, work)
    print(f"hookwright demo on a copy of {source}\n  the copy: {work}\n")
    secret = f"sk-demo-{secrets.token_hex(12)}"
    (work / _SETTINGS).write_text(f"API_KEY={secret}\nREGION=north\n", encoding="utf-8")
    document = _document(work)
    demo = _Demo(work, place / "session", document, secret)
    result = asyncio.run(demo.run())
    print("\nwhat changed in the repository (git diff):\n")
    print(_git(work, "diff", "--", document))
    print(f"the transcript: {place / 'session' / 'transcript.jsonl'}\n")
    return demo.check(result)


class _Demo:
    """One run and what has to be true of it."""

    def __init__(self, work: Path, session: Path, document: str, secret: str) -> None:
        self.work, self.session_path, self.document, self.secret = work, session, document, secret
        self.counted = 0
        with open(work / document, encoding="utf-8", newline="") as file:  # noqa: PTH123 (Path.read_text has no newline=)
            self.text = file.read()
        self.branch = _git(work, "rev-parse", "--abbrev-ref", "HEAD").strip()

    def hooks(self) -> hw.HookChain:
        hooks = hw.HookChain()

        @hooks.on("pre_tool_execution", tool_name="shell", role="gate")
        def no_rm(event: Any) -> Any:
            if re.search(r"\brm\b", event.tool_arguments.get("command", "")):
                return hw.skip("deleting is not allowed here; move it to trash/ instead")
            return None

        @hooks.on("post_tool_execution")
        def redact(event: Any) -> Any:
            text = re.sub(r"\bsk-demo-[0-9a-f]{24}\b", "[redacted]", str(event.tool_result))
            return {"tool_result": text} if text != event.tool_result else None

        @hooks.on("post_tool_execution", "post_tool_execution_failure", role="observer")
        async def count(event: Any) -> None:
            await asyncio.sleep(0)
            self.counted += 1

        command = 'printf \'{"additional_context": "The branch is %s."}\' "$(git rev-parse --abbrev-ref HEAD)"'
        hooks.add(hw.ShellHook("pre_send_message", command, name="tell_branch"))
        return hooks

    def script(self) -> hw.Scripted:
        word = re.findall(r"\w{4,}", self.text)
        return hw.Scripted(
            [
                hw.ToolCall("grep", {"pattern": word[0] if word else ".", "path": self.document}),
                [
                    hw.ToolCall("read_file", {"path": self.document}),
                    hw.ToolCall("read_file", {"path": _SETTINGS}),
                ],
                hw.ToolCall("shell", {"command": "rm -rf .git"}),
                hw.ToolCall("write_file", {"path": self.document, "content": self.text.rstrip("\n") + "\n" + _ADDED}),
                hw.ToolCall("shell", {"command": "git status --short && git diff --stat"}),
                f"I added a line to {self.document}. I was not allowed to delete anything, and I did not.",
            ]
        )

    async def run(self) -> hw.RunResult:
        session = hw.Session(self.session_path, cwd=str(self.work))
        agent = hw.Agent(
            self.script(),
            tools=hw.workspace_tools(self.work),
            hooks=self.hooks(),
            system="You look after this repository.",
            session=session,
        )
        async with agent:
            stream = agent.stream("Find out what this repository is, clean it up, and note that you were here.")
            async for event in stream:
                for line in event_lines(event):
                    print(line)
        assert stream.result is not None
        return stream.result

    def check(self, result: hw.RunResult) -> int:
        stored = self.session_path.joinpath("transcript.jsonl").read_bytes()
        with hw.Session(self.session_path) as session:
            reopened = session.messages
        refused = [call for call in result.tool_calls if call.cause == "denied"]
        # The outcome of the call that read the settings: its id ties the two together.
        settings = next(call.id for call in result.tool_calls if call.arguments.get("path") == _SETTINGS)
        changed = [
            (change.hook, change.field)
            for outcome in result.trace
            if outcome.event == "post_tool_execution" and outcome.tool_call_id == settings
            for change in outcome.changes
        ]
        seen = "\n".join(message.text for message in result.messages)
        answered = [message.tool_call_id for message in result.messages if message.role == "tool"]
        asked = [call.id for message in result.messages for call in message.tool_calls]
        added = [
            line[1:]
            for line in _git(self.work, "diff", "--", self.document).splitlines()
            if re.match(r"\+(?!\+\+)", line)
        ]
        checks: dict[str, Callable[[], bool]] = {
            "the run ended with success": lambda: result.status == "success",
            "the gate refused rm, the tool was never entered, and .git is still there": lambda: (
                [(call.name, call.ran) for call in refused] == [("shell", False)] and (self.work / ".git").is_dir()
            ),
            "the secret was read from the file, and the redacting hook changed that result": lambda: (
                self.secret in (self.work / _SETTINGS).read_text(encoding="utf-8")
                and changed == [("redact", "tool_result")]
            ),
            "the secret is in no message, no record of the run and not in the transcript": lambda: (
                self.secret not in seen
                and "[redacted]" in seen
                and self.secret not in str(result.to_dict())
                and self.secret.encode() not in stored
            ),
            "the shell hook's context stands in the message that the model saw": lambda: (
                f"The branch is {self.branch}." in result.messages[0].text
            ),
            "the observer counted every call": lambda: self.counted == len(result.tool_calls) > 0,
            "every call has exactly one result": lambda: asked == answered,
            "the edit is in the repository": lambda: _ADDED.strip() in added,
            "the transcript, opened again, holds the same messages": lambda: reopened == result.messages,
        }
        failed = 0
        print("checked:")
        for text, holds in checks.items():
            true = holds()
            failed += not true
            print(f"  {'yes' if true else 'NO '}  {text}")
        print(f"\n{len(checks) - failed} of {len(checks)} hold; {result.rounds} rounds, {result.ms:.1f} ms")
        return 1 if failed else 0


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), "--no-pager", "-c", "color.ui=never", *words],
        capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    return done.stdout


def _copy(repo: Path | None, work: Path) -> str:
    """Makes the copy; returns what it is a copy of."""
    if repo is None:
        inside = _git(Path.cwd(), "rev-parse", "--show-toplevel").strip()
        source = Path(inside) if inside else None
    else:
        source = repo
    if source is not None:
        done = subprocess.run(
            ["git", "clone", "--quiet", "--no-hardlinks", str(source), str(work)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode == 0 and _git(work, "rev-parse", "HEAD").strip() and _document(work, must=False):
            return str(source)
        if repo is not None:
            raise hw.HookwrightError(
                f"{repo} cannot be copied with git clone: {done.stderr.strip() or 'it has no commits or no text file'}",
                hint="name a folder that is a git repository with at least one commit",
            )
        shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    for name, text in _PACKAGED.items():
        (work / name).write_text(text, encoding="utf-8")
    identity = ("-c", "user.name=demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgsign=false")
    for words in (("init", "--quiet"), ("add", "."), (*identity, "commit", "--quiet", "-m", "Begin")):
        _git(work, *words)
    return "a small packaged repository (there is none around this folder)"


def _document(work: Path, must: bool = True) -> str:
    """A text file that the agent can add a line to: the readme, if there is one."""
    names = [name for name in _git(work, "ls-files", "-z").split("\0") if name]
    for name in sorted(names, key=lambda name: (not name.lower().startswith("readme"), name.count("/"), name)):
        path = work / name
        if path.is_file() and not path.is_symlink() and path.stat().st_size < 100_000:
            try:
                if path.read_text(encoding="utf-8").strip():
                    return name
            except UnicodeDecodeError:
                continue
    if must:
        raise hw.HookwrightError("the repository has no text file that the demo could add a line to")
    return ""
