"""An approver that asks on the terminal."""

from __future__ import annotations

import os
import select
import threading
import time
import unicodedata
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._approval import ApprovalRequest

__all__ = ["TerminalApprover"]

#: How often an approver that waits looks whether anybody still wants the answer, in seconds.
_TICK = 0.1
#: The longest argument that is shown whole, in characters.
_SHOWN = 2000

_TEXTS = {
    "en": {
        "wants": "{agent} wants to call {tool}",
        "why": "why: {reason}",
        "rule": "rule for always: {rule}",
        "ask": "[y] once  [a] always  [n] no (a reason may follow): ",
        "ask_once": "[y] once  [n] no (a reason may follow): ",
        "again": "please answer {choices}",
        "over": "no answer in time: denied",
    },
    "zh": {
        "wants": "{agent} 想要调用 {tool}",
        "why": "原因：{reason}",
        "rule": "“总是允许”的规则：{rule}",
        "ask": "[y] 一次  [a] 总是  [n] 拒绝（后面可写理由）：",
        "ask_once": "[y] 一次  [n] 拒绝（后面可写理由）：",
        "again": "请回答 {choices}",
        "over": "没有及时回答：已拒绝",
    },
}


class TerminalApprover:
    """Asks the person at the terminal: shows the tool, its arguments, why it is asked, and the rule for "always".

    ``y`` allows this call, ``a`` allows such calls from now on in this session (by the suggested rule, if there is
    one), ``n`` refuses; what follows the ``n`` is the reason that the model is told. Where there is no terminal, at the
    end of input and when the time is up, the call is denied. Control characters in what a model sent are shown as
    escapes, so they cannot change what is seen.

    Args:
        timeout: seconds to wait for an answer; the agent's ``approval_timeout`` by default.
        language: ``"en"`` or ``"zh"``.
        terminal: the path of the terminal; by default the one of this process.

    Example:
        >>> import hookwright as hw
        >>> hooks = hw.HookChain()
        >>> hooks.add(hw.PermissionRules(ask=["Write"]))
        PermissionRules(ask=['Write'], default='ask', language='en')
        >>> agent = hw.Agent(hw.Scripted(["done"]), hooks=hooks, approver=hw.TerminalApprover())
    """

    __module__ = "hookwright"

    #: One question at a time, whoever asks.
    _turn = threading.Lock()

    def __init__(self, *, timeout: float | None = None, language: str = "en", terminal: str = "/dev/tty") -> None:
        if language not in _TEXTS:
            raise ValueError(f"unknown language {language!r}; there are 'en' and 'zh'")
        if timeout is not None and not 0 <= timeout < float("inf"):
            raise ValueError(f"timeout must be a number of seconds, not {timeout!r}")
        self._timeout = timeout
        self._texts = _TEXTS[language]
        self._terminal = terminal

    def __call__(self, request: ApprovalRequest) -> Any:
        limits = [seconds for seconds in (self._timeout, request.timeout) if seconds is not None]
        end = time.monotonic() + min(limits) if limits else None
        while not self._turn.acquire(timeout=_TICK):
            if self._is_over(request, end):
                return False, "nobody answered in time"
        try:
            return self._ask(request, end)
        finally:
            self._turn.release()

    def _ask(self, request: ApprovalRequest, end: float | None) -> Any:
        try:
            descriptor = os.open(self._terminal, os.O_RDWR | os.O_NOCTTY)
        except OSError:
            return False, "there is no terminal to ask on"
        try:
            if not os.isatty(descriptor) or _is_in_background(descriptor):
                return False, "there is no terminal to ask on"
            _forget_typed_ahead(descriptor)
            self._write(descriptor, self._question(request))
            return self._read_answer(descriptor, request, end)
        except OSError:
            return False, "the terminal went away"
        finally:
            os.close(descriptor)

    def _question(self, request: ApprovalRequest) -> str:
        texts = self._texts
        lines = ["", texts["wants"].format(agent=visible(request.agent), tool=visible(request.tool_name))]
        for name, value in request.arguments.items():
            shown = value if isinstance(value, str) else repr(value)
            if len(shown) > _SHOWN:
                shown = f"{shown[:_SHOWN]}… ({len(shown)} characters)"
            lines.append(f"  {visible(name)}: {visible(shown)}")
        if request.reason:
            lines.append(texts["why"].format(reason=visible(request.reason)))
        if request.suggested_rule is not None:
            lines.append(texts["rule"].format(rule=visible(request.suggested_rule)))
        return "\n".join(lines) + "\n" + texts["ask" if request.suggested_rule is not None else "ask_once"]

    def _read_answer(self, descriptor: int, request: ApprovalRequest, end: float | None) -> Any:
        choices = "y, a, n" if request.suggested_rule is not None else "y, n"
        typed = b""
        while True:
            while b"\n" not in typed:
                if self._is_over(request, end):
                    self._write(descriptor, f"\n{self._texts['over']}\n")
                    return False, "nobody answered in time"
                ready, _, _ = select.select([descriptor], [], [], _TICK)
                if ready:
                    more = os.read(descriptor, 4096)
                    if not more:
                        return False, "the terminal was closed"
                    typed += more
            line, _, typed = typed.partition(b"\n")
            answer = self._answer(line.decode(errors="replace").strip(), request)
            if answer is not None:
                return answer
            self._write(descriptor, f"{self._texts['again'].format(choices=choices)}: ")

    @staticmethod
    def _answer(line: str, request: ApprovalRequest) -> Any:
        word, _, reason = line.partition(" ")
        word = word.lower().rstrip(",:")
        if word in ("y", "yes") and not reason:
            return True
        if word in ("a", "always") and not reason and request.suggested_rule is not None:
            return "always"
        if word in ("n", "no"):
            return (False, reason.strip()) if reason.strip() else False
        return None

    @staticmethod
    def _is_over(request: ApprovalRequest, end: float | None) -> bool:
        return request.over.is_set() or (end is not None and time.monotonic() >= end)

    @staticmethod
    def _write(descriptor: int, text: str) -> None:
        data = text.encode(errors="replace")
        while data:
            data = data[os.write(descriptor, data) :]

    def __repr__(self) -> str:
        return f"TerminalApprover(timeout={self._timeout!r})"


def _is_in_background(descriptor: int) -> bool:
    """Whether reading from this terminal would stop the process. Of another terminal than its own that is not known."""
    try:
        return os.tcgetpgrp(descriptor) != os.getpgrp()
    except OSError:
        return False


def _forget_typed_ahead(descriptor: int) -> None:
    """An answer counts only if it was typed after the question was seen."""
    with suppress(ImportError, OSError):
        import termios

        with suppress(termios.error):
            termios.tcflush(descriptor, termios.TCIFLUSH)


def visible(text: str) -> str:
    """The text with everything that a terminal acts on, or that is not seen, written as an escape. Lines are kept, but
    none begins where it could be taken for a line of ours."""
    shown = "".join(character if _is_plain(character) else ascii(character)[1:-1] for character in text)
    return shown.replace("\n", "\n    | ")


def _is_plain(character: str) -> bool:
    return character == "\n" or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
