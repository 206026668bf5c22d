"""A server that refuses: teammates on one key back off together."""

from __future__ import annotations

import http.server
import json
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

import hookwright as hw

MATES = 20
REFUSALS = MATES + 3

REPLY = json.dumps(
    {
        "id": "x", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "done"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11},
    }
).encode()  # fmt: skip


class Busy(http.server.BaseHTTPRequestHandler):
    """Refuses the first requests with the key ``busy``: all that come at once, and three of those after."""

    protocol_version = "HTTP/1.1"
    seen: ClassVar[Counter[str]] = Counter()
    lock = threading.Lock()
    together = threading.Barrier(MATES)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        key = self.headers["authorization"].split()[-1]
        with self.lock:
            self.seen[key] += 1
            number = self.seen[key]
        refused = key == "busy" and number <= REFUSALS
        if refused and number <= MATES:
            self.together.wait(20)  # None is answered before all have asked.
        body = b"" if refused else REPLY
        self.send_response(429 if refused else 200)
        if refused:
            self.send_header("retry-after-ms", "20")
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def address() -> Iterator[str]:
    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 100

    server = Server(("127.0.0.1", 0), Busy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def test_twenty_teammates_on_one_key_back_off_together(address: str) -> None:
    Busy.seen.clear()
    policy = hw.RetryPolicy(rate_limited=(6, 0.01), jitter=False)

    def model(key: str) -> hw.OpenAI:
        return hw.OpenAI("m", base_url=address, api_key=key, retry=policy)

    # Different model objects with the same key share as well.
    models = [model("busy"), model("busy")]
    with hw.Team() as team:
        mates = [team.spawn(f"m{number}", prompt="go", model=models[number % 2]) for number in range(MATES)]
        calm = team.spawn("calm", prompt="go", model=model("other"))
        team.join_sync(timeout=60)
        assert {mate.result.text for mate in [*mates, calm]} == {"done"}
    print(f"{MATES} teammates: {Busy.seen['busy']} requests, {REFUSALS} of them refused")
    # All at once, then one after another until one is answered, then the others, each once. Each for itself would
    # have made up to 20 x 4.
    assert Busy.seen["busy"] == REFUSALS + MATES
    assert Busy.seen["other"] == 1


def test_the_budget_is_shared(address: str) -> None:
    Busy.seen.clear()
    Busy.together.reset()
    policy = hw.RetryPolicy(rate_limited=(2, 0.01), jitter=False)
    model = hw.OpenAI("m", base_url=address, api_key="busy", retry=policy)
    with hw.Team(model) as team:
        mates = [team.spawn(f"m{number}", prompt="go") for number in range(MATES)]
        team.join_sync(timeout=60)
        assert {mate.outcome for mate in mates} == {"error"}
    assert Busy.seen["busy"] == MATES + 2, "two more attempts for all together, not for each"
