"""Models behind servers, and cassettes of what they said."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from . import _native

#: A key: itself, a function that is asked for it at each attempt, False for none, None for the usual variable.
Key = str | Callable[[], str] | Literal[False] | None


@dataclass(frozen=True)
class RetryPolicy:
    """When a failed request is made again. Each rule is how often, and the longest wait in seconds before the first
    time; the wait doubles from time to time, up to ``longest_wait``. Where the server says when to come back, none is
    made before.

    Args:
        connection: no connection, no answer in time, a reply that broke off.
        rate_limited: status 429.
        server: statuses 500 and 502.
        overloaded: statuses 503, 504 and 529, and servers that say so in words.
        longest_wait: of one's own accord, in seconds.
        jitter: whether each wait is a random part of what it would be.
        deadline: seconds for a request with all its attempts and waits; None for no limit.

    Example:
        >>> import hookwright as hw
        >>> hw.RetryPolicy(rate_limited=(10, 5.0)).rate_limited
        (10, 5.0)
        >>> hw.RetryPolicy.never().connection
        (0, 0.0)
    """

    __module__ = "hookwright"

    connection: tuple[int, float] = (5, 1.0)
    rate_limited: tuple[int, float] = (3, 5.0)
    server: tuple[int, float] = (3, 2.0)
    overloaded: tuple[int, float] = (4, 2.0)
    longest_wait: float = 60.0
    jitter: bool = True
    deadline: float | None = 1800.0

    def __post_init__(self) -> None:
        for name in ("connection", "rate_limited", "server", "overloaded"):
            rule = getattr(self, name)
            if not (isinstance(rule, tuple) and len(rule) == 2 and isinstance(rule[0], int) and rule[0] >= 0):
                raise ValueError(f"{name} is how often and how many seconds, such as (3, 5.0), not {rule!r}")

    @classmethod
    def never(cls) -> RetryPolicy:
        """Each request is made once."""
        return cls(connection=(0, 0.0), rate_limited=(0, 0.0), server=(0, 0.0), overloaded=(0, 0.0))


class ServerModel:
    """What the models have in common that answer from hookwright's own runtime."""

    __module__ = "hookwright"

    native: _native.ServerModel
    #: What the repr tells besides the name.
    _shown = ""

    @property
    def name(self) -> str:
        """The model's name in events and for the server."""
        return self.native.name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}{self._shown}>"


def _described(
    model: str,
    *,
    base_url: str | None,
    headers: Mapping[str, str] | None,
    timeout: float,
    connect_timeout: float,
    idle_timeout: float,
    verify: bool | str | os.PathLike[str],
    retry: RetryPolicy | None,
    profile: str | None,
    stream: bool,
    temperature: float | None,
    max_tokens: int | None,
    settings: Mapping[str, Any] | None,
) -> dict[str, Any]:
    own = {"temperature": temperature, "max_tokens": max_tokens}
    return {
        "model": model,
        "base_url": base_url,
        "headers": [[str(name), str(value)] for name, value in (headers or {}).items()],
        "timeout": float(timeout),
        "connect_timeout": float(connect_timeout),
        "idle_timeout": float(idle_timeout),
        "verify": verify is not False,
        "ca_file": None if isinstance(verify, bool) else os.fspath(verify),
        "profile": profile,
        "stream": bool(stream),
        "settings": {**{name: value for name, value in own.items() if value is not None}, **(settings or {})},
        "retry": asdict(retry or RetryPolicy()),
    }


def _without_secrets(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


class _HttpModel(ServerModel):
    _open: Callable[[dict[str, Any], Key], _native.ServerModel]

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: Key = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 600.0,
        connect_timeout: float = 10.0,
        idle_timeout: float = 120.0,
        verify: bool | str | os.PathLike[str] = True,
        retry: RetryPolicy | None = None,
        profile: str | None = None,
        stream: bool = False,
        temperature: float | None = None,
        max_tokens: int | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.native = self._open(
            _described(
                model,
                base_url=base_url,
                headers=headers,
                timeout=timeout,
                connect_timeout=connect_timeout,
                idle_timeout=idle_timeout,
                verify=verify,
                retry=retry,
                profile=profile,
                stream=stream,
                temperature=temperature,
                max_tokens=max_tokens,
                settings=settings,
            ),
            api_key,
        )
        self._shown = "" if base_url is None else f" at {_without_secrets(base_url)}"


class OpenAI(_HttpModel):
    """A model behind the chat completions API: OpenAI's own, and all that copy it (vLLM, llama.cpp, Ollama, DeepSeek,
    Qwen, Kimi, OpenRouter, LiteLLM, Azure, …).

    Args:
        model: its name, as the server knows it.
        base_url: where the API begins, such as ``"http://localhost:8080/v1"``. Default: ``OPENAI_BASE_URL``, else
            OpenAI.
        api_key: the key; a function that is asked for it at each attempt; False for none. Default: the environment
            variable that is usual for the server, such as ``OPENAI_API_KEY``. It never stands in a repr, log, error,
            transcript or cassette.
        headers: more headers; they win over those that are made here.
        timeout: seconds until the reply begins, or until it is there if it is not streamed.
        connect_timeout: seconds for connecting.
        idle_timeout: seconds in which nothing at all comes in of a reply that has begun.
        verify: whether certificates are checked, or a file with more that are trusted.
        retry: when failed requests are made again.
        profile: the name of what differs from server to server; by the host by default.
        stream: whether replies come in pieces also where nobody watches, as some servers want it for long ones.
        temperature: passed on, unless the server refuses it for this model.
        max_tokens: the most tokens of a reply.
        settings: more of what the server takes, passed on as it is.

    Raises:
        ValueError: for what cannot be used, naming it.

    Example:
        >>> import hookwright as hw
        >>> hw.OpenAI("qwen3", base_url="http://localhost:8080/v1", api_key=False)
        <OpenAI 'qwen3' at http://localhost:8080/v1>
    """

    __module__ = "hookwright"

    _open = staticmethod(_native.ServerModel.openai)


class Anthropic(_HttpModel):
    """A model behind the Messages API, with marks for its prompt cache.

    Args:
        model: its name, as the server knows it.
        base_url: where the API begins. Default: ``ANTHROPIC_BASE_URL``, else Anthropic.
        api_key: as for `OpenAI`; the usual variable is ``ANTHROPIC_API_KEY``.

    All other arguments are those of `OpenAI`.

    Example:
        >>> import hookwright as hw
        >>> hw.Anthropic("claude-sonnet", base_url="http://localhost:8080", api_key=lambda: "from a vault")
        <Anthropic 'claude-sonnet' at http://localhost:8080>
    """

    __module__ = "hookwright"

    _open = staticmethod(_native.ServerModel.anthropic)


class Recorder(ServerModel):
    """Asks another model and writes what it is asked and answers to a cassette, without secrets, for `Replay`.

    Args:
        model: an `OpenAI`, `Anthropic` or other model of this package that asks a server.
        path: the file, in JSON Lines; it is made anew.
        redact: patterns (regular expressions) of your own secrets.
    """

    __module__ = "hookwright"

    def __init__(self, model: ServerModel, path: str | os.PathLike[str], *, redact: Iterable[str] = ()) -> None:
        if not isinstance(model, ServerModel):
            raise TypeError(f"Recorder takes a model that asks a server, such as hw.OpenAI(...), not {model!r}")
        self.native = model.native.recorded(Path(path), list(redact))
        self._shown = f" into {os.fspath(path)}"


class Replay(ServerModel):
    """Answers from a cassette of `Recorder`, in order. Strict: a request that is not the recorded one fails and says
    what differs.

    Args:
        path: the file.
    """

    __module__ = "hookwright"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.native = _native.ServerModel.replay(Path(path))
        self._shown = f" from {os.fspath(path)}"

    @property
    def remaining(self) -> int:
        """How many exchanges are left."""
        return self.native.remaining or 0
