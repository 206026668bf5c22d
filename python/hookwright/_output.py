"""Answers that have a type: what the model is told, and how its answer is read."""

from __future__ import annotations

import json
import re
from typing import Any

from pydantic import PydanticSchemaGenerationError, TypeAdapter, ValidationError

#: How many problems of an answer a model is told at once.
_MOST_PROBLEMS = 10
_FENCE = re.compile(r"```[A-Za-z0-9]*[ \t]*\n(.*?)\n?```", re.DOTALL)


class OutputType:
    """A type that the answer of an agent has: a pydantic model, a dataclass, or any type that pydantic understands."""

    def __init__(self, type_: Any) -> None:
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(type_)
            self.schema = self._adapter.json_schema()
        except PydanticSchemaGenerationError as error:
            raise TypeError(f"output_type={type_!r} has no JSON Schema: {error}") from None
        self.name = getattr(type_, "__name__", str(type_))

    @property
    def instruction(self) -> str:
        """What stands at the end of the system prompt."""
        return "When you have finished, answer with JSON that fits this schema, and with nothing else:\n" + json.dumps(
            self.schema, ensure_ascii=False
        )

    def read(self, text: str) -> tuple[Any, str | None]:
        """The value of an answer, or what is wrong with it, in words for the model."""
        problem = None
        for candidate in _candidates(text):
            try:
                return self._adapter.validate_json(candidate), None
            except ValidationError as error:
                # What is said first of the answer as a whole says most.
                problem = problem or _said(error)
        return None, problem or "it is empty; JSON is wanted"

    def __repr__(self) -> str:
        return self.name


def _candidates(text: str) -> list[str]:
    """The answer as a whole, or what stands in a fence or in prose: models put JSON there."""
    whole = text.strip()
    if not whole:
        return []
    found = [whole, *(match.strip() for match in _FENCE.findall(whole))]
    for opening, closing in ("{}", "[]"):
        start, end = whole.find(opening), whole.rfind(closing)
        if 0 <= start < end:
            found.append(whole[start : end + 1])
    fenced = [one for one in found if one[:1] in "{["]
    return sorted(dict.fromkeys(found), key=lambda one: one not in fenced)


def _said(error: ValidationError) -> str:
    said = []
    for problem in error.errors(include_url=False, include_context=False)[:_MOST_PROBLEMS]:
        place = ".".join(str(part) for part in problem["loc"])
        said.append(f"{place}: {problem['msg']}" if place else str(problem["msg"]))
    return "; ".join(said)
