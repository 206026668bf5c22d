"""The approver that asks on the terminal, at one that a test holds the other end of."""

from __future__ import annotations

import codecs
import os
import pty
import select
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from calls import Tools, chain_of

import hookwright as hw
from hookwright._terminal import visible

#: Seconds that no test needs; where one takes that long, something hangs.
LONG = 30.0


class Terminal:
    """A terminal and whoever sits at it."""

    def __init__(self) -> None:
        self.ours, theirs = pty.openpty()
        self.path = os.ttyname(theirs)
        self._theirs = theirs
        #: What was written and not looked at yet.
        self.screen = ""
        self._decode = codecs.getincrementaldecoder("utf-8")().decode

    def see(self, text: str) -> str:
        """Waits until a text is on the screen; returns what was written since the last time, up to the end of it."""
        end = time.monotonic() + LONG
        while text not in self.screen:
            ready, _, _ = select.select([self.ours], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"{text!r} was not seen in {self.screen!r}"
            self.screen += self._decode(os.read(self.ours, 65536)).replace("\r\n", "\n")
        shown, _, self.screen = self.screen.partition(text)
        return shown + text

    def type(self, text: str) -> None:
        os.write(self.ours, text.encode())

    def close(self) -> None:
        for descriptor in (self.ours, self._theirs):
            with suppress(OSError):
                os.close(descriptor)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    terminal = Terminal()
    yield terminal
    terminal.close()


def request(**changes: Any) -> hw.ApprovalRequest:
    fields: dict[str, Any] = {
        "tool_name": "shell",
        "arguments": {"command": "make install"},
        "reason": "no rule allows `make install`",
        "call_id": "c1",
        "agent": "main",
        "suggested_rule": "Shell(make install)",
        "timeout": LONG,
    }
    return hw.ApprovalRequest(**{**fields, **changes})


class Answering:
    """An approver that is being asked on another thread."""

    def __init__(self, approver: hw.TerminalApprover, asked: hw.ApprovalRequest) -> None:
        self.answer: Any = None
        self._thread = threading.Thread(target=self._ask, args=(approver, asked), daemon=True)
        self._thread.start()

    def _ask(self, approver: hw.TerminalApprover, asked: hw.ApprovalRequest) -> None:
        self.answer = approver(asked)

    def end(self) -> Any:
        self._thread.join(LONG)
        assert not self._thread.is_alive()
        return self.answer


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("y\n", True),
        ("YES\n", True),
        ("a\n", "always"),
        ("n\n", False),
        ("n use sudo\n", (False, "use sudo")),
        ("no, use sudo\n", (False, "use sudo")),
        ("perhaps\ny\n", True),
        ("\ny\n", True),
        ("y but careful\nn\n", False),
        ("\x04", (False, "the terminal was closed")),
    ],
)
def test_an_answer_is_read(terminal: Terminal, typed: str, answer: Any) -> None:
    asking = Answering(hw.TerminalApprover(terminal=terminal.path), request())
    shown = terminal.see("[n] no (a reason may follow): ")
    assert shown == (
        "\nmain wants to call shell\n  command: make install\nwhy: no rule allows `make install`\n"
        "rule for always: Shell(make install)\n[y] once  [a] always  [n] no (a reason may follow): "
    )
    terminal.type(typed)
    assert asking.end() == answer


def test_always_is_not_offered_without_a_rule(terminal: Terminal) -> None:
    asking = Answering(hw.TerminalApprover(terminal=terminal.path), request(suggested_rule=None))
    assert "always" not in terminal.see("(a reason may follow): ")
    terminal.type("a\n")
    assert "please answer y, n" in terminal.see("please answer y, n")
    terminal.type("n\n")
    assert asking.end() is False


def test_what_was_typed_before_the_question_does_not_answer_it(terminal: Terminal) -> None:
    terminal.type("y\n")
    asking = Answering(hw.TerminalApprover(terminal=terminal.path), request())
    terminal.see("(a reason may follow): ")
    terminal.type("n\n")
    assert asking.end() is False


def test_what_a_model_sent_cannot_change_what_is_seen(terminal: Terminal) -> None:
    hostile = "ls\x1b[2J\r\u202e\nwhy: all is fine\n[y] once"
    asking = Answering(hw.TerminalApprover(terminal=terminal.path), request(arguments={"command": hostile}))
    shown = terminal.see("(a reason may follow): ")
    assert "  command: ls\\x1b[2J\\r\\u202e\n    | why: all is fine\n    | [y] once\n" in shown
    assert "\x1b" not in shown
    terminal.type("n\n")
    assert asking.end() is False
    assert visible("ж 漢 é\n") == "ж 漢 é\n    | "


def test_a_time_that_is_up_is_a_no(terminal: Terminal) -> None:
    assert hw.TerminalApprover(terminal=terminal.path, timeout=0.05)(request()) == (False, "nobody answered in time")
    assert hw.TerminalApprover(terminal=terminal.path)(request(timeout=0.05)) == (False, "nobody answered in time")
    assert "no answer in time: denied" in terminal.see("denied")


def test_nobody_is_asked_where_there_is_no_terminal(terminal: Terminal) -> None:
    refusal = (False, "there is no terminal to ask on")
    assert hw.TerminalApprover(terminal="/nowhere/tty")(request()) == refusal
    assert hw.TerminalApprover(terminal=os.devnull)(request()) == refusal
    with pytest.raises(ValueError, match="unknown language"):
        hw.TerminalApprover(language="fr")
    with pytest.raises(ValueError, match="number of seconds"):
        hw.TerminalApprover(timeout=-1)


def test_a_terminal_that_goes_away_is_a_no(terminal: Terminal) -> None:
    asking = Answering(hw.TerminalApprover(terminal=terminal.path), request())
    terminal.see("(a reason may follow): ")
    terminal.close()
    answer = asking.end()
    assert answer[0] is False
    assert answer[1] in ("the terminal went away", "the terminal was closed")


def test_an_approver_that_nobody_waits_for_stops_asking_and_lets_the_next_one_ask(terminal: Terminal) -> None:
    approver = hw.TerminalApprover(terminal=terminal.path, language="zh")
    first = request()
    asking = Answering(approver, first)
    terminal.see("想要调用 shell")
    second = Answering(approver, request(tool_name="other"))
    first.over.set()
    assert asking.end()[0] is False
    terminal.see("想要调用 other")
    terminal.see("[n] 拒绝")
    terminal.type("y\n")
    assert second.end() is True


def test_always_at_the_terminal_is_remembered_for_the_session(terminal: Terminal) -> None:
    rules = hw.PermissionRules()
    tools = Tools(shell="execute")
    make = hw.ToolCall("shell", {"command": "make install"})
    agent = tools.agent(
        make, make, hw.ToolCall("shell", {"command": "make remove"}),
        hooks=chain_of(rules), approver=hw.TerminalApprover(terminal=terminal.path),
    )  # fmt: skip
    results: list[hw.RunResult] = []
    running = threading.Thread(target=lambda: results.append(agent.run_sync("go")), daemon=True)
    running.start()
    terminal.see("(a reason may follow): ")
    terminal.type("a\n")
    terminal.see("rule for always: Shell(make remove)")
    terminal.see("(a reason may follow): ")
    terminal.type("n do not\n")
    running.join(LONG)
    assert [call.cause for call in results[0].tool_calls] == [None, None, "denied"]
    assert "do not" in results[0].tool_calls[2].result
    assert rules.remembered(agent.session.id) == ["Shell(make install)"]
