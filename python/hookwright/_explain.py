"""What `HookChain.explain` says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import overload


@dataclass(frozen=True)
class HookExplanation:
    """Whether one hook would run, why or why not, and a warning if its matcher fits no tool."""

    __module__ = "hookwright"

    name: str
    matches: bool
    why: str
    warning: str | None = None


class Explanation(Sequence[HookExplanation]):
    """What `HookChain.explain` says, a hook a line."""

    __module__ = "hookwright"

    def __init__(self, event: str, hooks: Sequence[HookExplanation]) -> None:
        self.event = event
        self._hooks = tuple(hooks)

    @property
    def warnings(self) -> list[str]:
        """The warnings, each with the name of its hook."""
        return [f"{hook.name}: {hook.warning}" for hook in self._hooks if hook.warning]

    @property
    def lines(self) -> list[str]:
        """One readable line per hook."""
        lines = []
        for hook in self._hooks:
            lines.append(f"{'runs' if hook.matches else 'no  '}  {hook.name}: {hook.why}")
            if hook.warning:
                lines.append(f"      warning: {hook.warning}")
        return lines

    @overload
    def __getitem__(self, index: int) -> HookExplanation: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[HookExplanation]: ...
    def __getitem__(self, index: int | slice) -> HookExplanation | Sequence[HookExplanation]:
        return self._hooks[index]

    def __len__(self) -> int:
        return len(self._hooks)

    def __repr__(self) -> str:
        return "\n".join([f"<Explanation of {self.event}>", *(f"  {line}" for line in self.lines)])

    def _repr_html_(self) -> str:
        from ._display import explanation_html

        return explanation_html(self.event, [asdict(hook) for hook in self._hooks])
