"""What lies between a model and its server: certificates and proxies."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from misbehaving import _read_request, http
from waiting import REPLY

import hookwright as hw

#: A certificate for localhost and the authority that signed it, made for these tests, valid for a hundred years.
DATA = Path(__file__).parent / "data"


class Listener:
    """A server that answers every request alike and keeps the heads."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.heads: list[str] = []
        self._context = context
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                plain, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(plain,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        try:
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
            head, _ = _read_request(connection)
            self.heads.append(head)
            connection.sendall(http(REPLY))
        except OSError:
            pass
        finally:
            connection.close()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def secure() -> Iterator[Listener]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(DATA / "server.pem", DATA / "server.key")
    listener = Listener(context)
    yield listener
    listener.close()


def ask(**options: object) -> str:
    model = hw.OpenAI("fake", api_key="sk-a-secret", retry=hw.RetryPolicy.never(), **options)  # type: ignore[arg-type]
    return hw.Agent(model).run_sync("hi").text


def test_a_certificate_of_an_authority_that_is_named_is_trusted(secure: Listener) -> None:
    url = f"https://localhost:{secure.port}/v1"
    assert ask(base_url=url, verify=DATA / "authority.pem") == "done"
    assert "authorization: Bearer sk-a-secret" in secure.heads[0]


def test_any_other_is_not_and_the_key_is_not_sent(secure: Listener) -> None:
    url = f"https://localhost:{secure.port}/v1"
    with pytest.raises(hw.ModelError, match=r"certificate is not trusted.*verify=") as caught:
        ask(base_url=url)
    assert caught.value.kind == "connection"
    assert secure.heads == []
    assert "sk-a-secret" not in str(caught.value)


def test_checking_can_be_switched_off(secure: Listener) -> None:
    assert ask(base_url=f"https://localhost:{secure.port}/v1", verify=False) == "done"


def test_a_file_with_no_certificate_is_an_error_that_names_it(tmp_path: Path) -> None:
    for content in ("not a certificate", ""):
        file = tmp_path / "ca.pem"
        file.write_text(content)
        with pytest.raises((ValueError, hw.ModelError), match=r"ca\.pem"):
            ask(base_url="https://localhost:1/v1", verify=file)
    with pytest.raises((ValueError, hw.ModelError, OSError), match=r"missing\.pem"):
        ask(base_url="https://localhost:1/v1", verify=tmp_path / "missing.pem")


SCRIPT = """
import json, sys
import hookwright as hw
model = hw.OpenAI("fake", base_url=sys.argv[1], api_key="sk-a-secret", retry=hw.RetryPolicy.never())
try:
    print(json.dumps(hw.Agent(model).run_sync("hi").text))
except hw.ModelError as error:
    print(json.dumps(str(error)))
"""


def in_environment(url: str, **variables: str) -> str:
    """What a process of its own gets: what the environment says of proxies is read once in a process."""
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    child = subprocess.run(
        [sys.executable, "-c", SCRIPT, url], env={**kept, **variables}, capture_output=True, text=True, check=True
    )
    return str(json.loads(child.stdout))


def test_the_proxy_of_the_environment_is_used_and_its_exceptions_are() -> None:
    proxy, server = Listener(), Listener()
    try:
        via = f"http://127.0.0.1:{proxy.port}"
        assert in_environment("http://models.invalid/v1", HTTP_PROXY=via, http_proxy=via) == "done"
        assert proxy.heads[0].startswith("POST http://models.invalid/v1/chat/completions HTTP/1.1")
        url = f"http://127.0.0.1:{server.port}/v1"
        assert in_environment(url, HTTP_PROXY=via, http_proxy=via, NO_PROXY="127.0.0.1", no_proxy="127.0.0.1") == "done"
        assert (len(proxy.heads), len(server.heads)) == (1, 1)
    finally:
        proxy.close()
        server.close()


def test_a_proxy_that_is_not_there_is_named_without_its_password() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    via = f"http://me:hunter2@127.0.0.1:{port}"
    said = in_environment("http://models.invalid/v1", HTTP_PROXY=via, http_proxy=via)
    assert "hunter2" not in said and "sk-a-secret" not in said
    assert said.startswith("the model's server could not be reached")
