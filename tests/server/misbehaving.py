"""A small real HTTP server that misbehaves on purpose: each case says what it sends, byte by byte, and what has to come of
it."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

#: The connection is reset.
RESET = object()
#: Nothing more is sent, and the connection stays open until the server is closed.
HANG = object()


@dataclass(frozen=True)
class Attempt:
    """What one connection gets: steps of bytes, `RESET` or `HANG`; it is closed behind them."""

    steps: Sequence[Any]


@dataclass(frozen=True)
class Case:
    """What a server sends, and what has to come of it."""

    name: str
    attempts: Sequence[Attempt]
    provider: str = "openai"
    streamed: bool = False
    text: str = ""
    calls: Sequence[tuple[str, dict[str, Any]]] = ()
    reasoning: str | None = None
    usage: tuple[int, int] | None = None
    #: The kind of failure, if it has to fail.
    fails: str | None = None
    status: int | None = None
    #: What the error says.
    says: str = ""
    #: What had come in of a reply that ended early.
    partial: str | None = None
    #: Fields of the stored message.
    extra: dict[str, Any] = field(default_factory=dict)


def http(
    body: bytes | str | dict[str, Any] | list[Any],
    status: int = 200,
    kind: str = "application/json",
    length: int | None = None,
    **headers: str,
) -> bytes:
    """A whole response with a length."""
    raw = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
    lines = [
        f"HTTP/1.1 {status} X",
        f"content-type: {kind}",
        f"content-length: {len(raw) if length is None else length}",
    ]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "connection: close", "", ""]).encode() + raw


def stream_head(kind: str = "text/event-stream") -> bytes:
    """The head of a response that ends where the connection is closed."""
    return f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n".encode()


def chunked(*pieces: bytes, end: bool = True) -> bytes:
    """A streamed response in chunks of HTTP; without its end it is truncated."""
    head = (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
    )
    body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return head + body + (b"0\r\n\r\n" if end else b"")


def event(data: Any, name: str | None = None, end: str = "\n") -> bytes:
    """One server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data)
    head = f"event: {name}{end}" if name else ""
    return f"{head}data: {text}{end}{end}".encode()


class Server:
    """Plays cases: the URL of one is ``server.url(case)``."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self._cases = {case.name: case for case in cases}
        assert len(self._cases) == len(cases), "two cases have the same name"
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=512)
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self.requests: dict[str, list[dict[str, Any]]] = {}
        self.heads: dict[str, list[str]] = {}
        threading.Thread(target=self._serve, daemon=True).start()

    def url(self, case: Case) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/{case.name.replace(' ', '~')}/v1"

    def close(self) -> None:
        self._socket.close()
        with self._lock:
            for one in self._open:
                one.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with self._lock:
                self._open.append(connection)
            threading.Thread(target=self._play, args=(connection,), daemon=True).start()

    def _play(self, connection: socket.socket) -> None:
        try:
            head, body = _read_request(connection)
            name = head.split(" ")[1].split("/")[1].replace("~", " ")
            with self._lock:
                seen = self.requests.setdefault(name, [])
                seen.append(json.loads(body))
                self.heads.setdefault(name, []).append(head)
                attempts = self._cases[name].attempts
                attempt = attempts[min(len(seen), len(attempts)) - 1]
            for step in attempt.steps:
                if step is RESET:
                    # Closing with unsent data thrown away is a reset.
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    break
                if step is HANG:
                    connection.recv(1)  # Until the client or the server closes.
                    break
                connection.sendall(step)
            else:
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1)
        except OSError:
            pass
        finally:
            connection.close()


def _read_request(connection: socket.socket) -> tuple[str, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536) or b"\r\n\r\n"
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    length = next((int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length")), 0)
    while len(body) < length:
        body += connection.recv(65536)
    return head.decode(), body
