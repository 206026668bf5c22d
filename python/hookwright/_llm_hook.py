"""Asking a model on behalf of a hook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import _native
from .exceptions import AnswerError, HookError

#: The models that a configuration file can name by the API behind which they are.
_APIS = ("openai", "anthropic")


class Asking:
    """What an `LlmHook` runs: asks, and asks once more if the answer is none."""

    def __init__(self, name: str, prompt: str, events: Sequence[str], role: str, model: Any) -> None:
        self.name = name
        self.model = model
        try:
            self._prompt = _native.LlmPrompt(prompt, list(events), role)
        except ValueError as error:
            raise HookError(f"LLM hook {name!r}: {error}") from None
        self._asker("")  # What is no model is said now, not when it is first asked.

    def _asker(self, system: str) -> Any:
        from ._agent import Agent

        return Agent(self.model, name=f"hook {self.name}", system=system, max_rounds=2)

    async def __call__(self, event: Any) -> Any:
        system, question = self._prompt.ask(event)
        asker = self._asker(system)
        found, complaint = self._prompt.read(event, (await asker.run(question)).text)
        if complaint is not None:
            again = await asker.run(self._prompt.repair(event, complaint))
            found, complaint = self._prompt.read(event, again.text)
        if complaint is not None:
            raise AnswerError(f"the model {asker.model.name} gave no usable answer twice; the last time {complaint}")
        return found

    def __repr__(self) -> str:
        return f"<LLM hook {self.name!r} asking {self.model!r}>"


def model_named(name: str, base_url: str | None, key_variable: str | None, models: Mapping[str, Any]) -> Any:
    """The model that a configuration file names.

    Raises:
        LookupError: with what is wrong, and what to write instead.
    """
    import os

    if name in models and base_url is None and key_variable is None:
        return models[name]
    api, _, own = name.partition(":")
    if api not in _APIS or not own:
        known = f"; given here: {', '.join(sorted(models))}" if models else ""
        raise LookupError(
            f"there is no model {name!r}{known}",
            f'write "openai:{own or name}" or "anthropic:{own or name}", or give it: load(models={{{name!r}: ...}})',
        )
    key: Any = None
    if key_variable is not None:
        key = os.environ.get(key_variable)
        if not key:
            raise LookupError(f"the environment variable {key_variable} is not set", "it holds the key of the model")
    elif base_url is not None:
        key = False  # A key goes where it belongs, not to whatever address a file names.
    from ._servers import Anthropic, OpenAI

    try:
        return (OpenAI if api == "openai" else Anthropic)(own, base_url=base_url, api_key=key)
    except ValueError as error:
        raise LookupError(str(error), None) from None
