"""Servers and connections that fail, and what is tried again."""

from __future__ import annotations

from typing import Any

import cases_anthropic as messages
import cases_openai as chat
from misbehaving import HANG, RESET, Attempt, Case, chunked, event, http, stream_head

GOOD = {
    "openai": {False: http(chat.reply({"content": "hi"})), True: stream_head() + event(chat.HI) + event(chat.STOP)},
    "anthropic": {
        False: http({"content": [messages.TEXT], "stop_reason": "end_turn"}),
        True: stream_head() + b"".join([messages.HEAD, *messages.HI, messages.end(), messages.STOP]),
    },
}
PARTS = {"openai": event(chat.HI), "anthropic": messages.HEAD + b"".join(messages.HI)}


def everywhere(name: str, *first: Any, **expected: Any) -> list[Case]:
    """One case for each API, streamed and not: what is sent first, and then a good reply."""
    cases = []
    for provider in ("openai", "anthropic"):
        for streamed in (False, True):
            attempts = [Attempt(steps if isinstance(steps, list) else [steps]) for steps in first]
            if "fails" not in expected:
                attempts.append(Attempt([GOOD[provider][streamed]]))
            label = f"{provider} {'streamed' if streamed else 'whole'} {name}"
            cases.append(Case(label, attempts, provider=provider, streamed=streamed, **{"text": "hi", **expected}))
    return cases


def error(status: int, message: str = "it broke", **headers: str) -> bytes:
    return http({"error": {"message": message}}, status, **headers)


TRIED_AGAIN = [
    *everywhere("429 with seconds", error(429, retry_after="0")),
    *everywhere("429 with fractions", error(429, retry_after="0.01")),
    *everywhere("429 with milliseconds", error(429, retry_after_ms="10")),
    *everywhere("429 with a date", error(429, retry_after="Wed, 21 Oct 2015 07:28:00 GMT")),
    *everywhere("429 with nonsense", error(429, retry_after="soon")),
    *everywhere("429 twice", error(429), error(429)),
    *[case for status in (500, 502, 503, 504, 529) for case in everywhere(f"{status}", error(status))],
    *everywhere("502 with a page", http("<html><title>Bad Gateway</title>", 502, kind="text/html")),
    *everywhere("reset before the head", [RESET]),
    *everywhere("reset inside the head", [b"HTTP/1.1 200", RESET]),
    *everywhere("closed without a word", []),
    *everywhere("hang before the head", [HANG]),
    *everywhere("body shorter than its length", http('{"choices": [', length=500)),
    *everywhere("body cut off", http('{"choices": [{"message": {"content": "h')),
]

GIVEN_UP = [
    *everywhere("400", error(400, "no such model"), fails="invalid_request", status=400, says="no such model"),
    *everywhere("401", error(401, "wrong key"), fails="authentication", status=401, says="wrong key"),
    *everywhere("403", error(403), fails="authentication", status=403),
    *everywhere("404", error(404), fails="invalid_request", status=404),
    *everywhere("500 again and again", error(500), fails="server", status=500, says="it broke"),
    *everywhere("429 again and again", error(429), fails="rate_limited", status=429),
    *everywhere("no money left", error(429, "insufficient_quota"), fails="rate_limited", status=429),
    *everywhere(
        "503 with a page",
        http("<html><title>Down</title>", 503, kind="text/html"),
        fails="overloaded",
        status=503,
        says="Down",
    ),
    *everywhere("empty body", http(""), fails="invalid_reply"),
]

#: What was shown cannot be taken back, so nothing is tried again.
SHOWN = [
    case
    for provider in ("openai", "anthropic")
    for case in (
        Case(
            f"{provider} reset inside a stream",
            [Attempt([stream_head(), PARTS[provider], RESET])],
            provider=provider,
            streamed=True,
            fails="invalid_reply",
            partial="hi",
        ),
        Case(
            f"{provider} hang inside a stream",
            [Attempt([stream_head(), PARTS[provider], HANG])],
            provider=provider,
            streamed=True,
            fails="timeout",
            says="nothing more came in",
            partial="hi",
        ),
        Case(
            f"{provider} truncated chunks",
            [Attempt([chunked(PARTS[provider], end=False)])],
            provider=provider,
            streamed=True,
            fails="invalid_reply",
            partial="hi",
        ),
        Case(
            f"{provider} reset behind the end",
            [Attempt([GOOD[provider][True], RESET])],
            provider=provider,
            streamed=True,
            text="hi",
        ),
        Case(
            f"{provider} slow drip",
            [Attempt([bytes([byte]) for byte in GOOD[provider][False]])],
            provider=provider,
            text="hi",
        ),
    )
]

CASES = [*TRIED_AGAIN, *GIVEN_UP, *SHOWN]
