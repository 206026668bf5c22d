"""Counts and times of a chain's hooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import overload


@dataclass(frozen=True)
class HookStats:
    """What one hook did so far.

    Attributes:
        name: the hook.
        runs: how often it ran.
        changes: how often it changed something.
        halts: how often it stopped, skipped or asked.
        failures: how often it failed.
        timeouts: how often it did not answer in time.
        would_halt: how often it would have halted if it were not in shadow mode.
        would_change: how often it would have changed something if it were not in shadow mode.
        filtered: how often its filter did not match.
        passed_over: how often it had no turn: switched off, after a halt, or with no time left.
        p50_ms: the median time of a run in milliseconds.
        p95_ms: the 95th percentile.
        p99_ms: the 99th percentile.
    """

    __module__ = "hookwright"

    name: str
    runs: int
    changes: int
    halts: int
    failures: int
    timeouts: int
    would_halt: int
    would_change: int
    filtered: int
    passed_over: int
    p50_ms: float
    p95_ms: float
    p99_ms: float

    @property
    def never_matched(self) -> bool:
        """Whether its filter let it run on no event, or none of its events came."""
        return self.runs == 0 and self.passed_over == 0

    @property
    def why_never(self) -> str:
        """Which of the two, in words; empty if it did match."""
        if not self.never_matched:
            return ""
        times = "once" if self.filtered == 1 else f"{self.filtered} times"
        return f"its filter did not match {times}" if self.filtered else "none of its events came"


class ChainStats(Sequence[HookStats]):
    """Counts and times of every hook, in the order in which they run; also by name: ``stats["audit"].runs``."""

    __module__ = "hookwright"

    def __init__(self, hooks: Iterable[HookStats]) -> None:
        self._hooks = tuple(hooks)

    @property
    def never_matched(self) -> list[str]:
        """The names of the hooks that never matched: a wrong matcher or event, perhaps."""
        return [hook.name for hook in self._hooks if hook.never_matched]

    @overload
    def __getitem__(self, index: int | str) -> HookStats: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[HookStats]: ...
    def __getitem__(self, index: int | str | slice) -> HookStats | Sequence[HookStats]:
        if not isinstance(index, str):
            return self._hooks[index]
        for hook in self._hooks:
            if hook.name == index:
                return hook
        raise KeyError(index)

    def __len__(self) -> int:
        return len(self._hooks)

    def __repr__(self) -> str:
        lines = [f"<ChainStats of {len(self)} hook{'s' * (len(self) != 1)}>"]
        width = max((len(hook.name) for hook in self._hooks), default=0)
        for hook in self._hooks:
            if hook.never_matched:
                lines.append(f"  {hook.name:{width}}  never matched: {hook.why_never}")
                continue
            counts = ", ".join(
                f"{value} {name}"
                for name, value in (
                    ("changes", hook.changes), ("halts", hook.halts), ("failures", hook.failures),
                    ("timeouts", hook.timeouts), ("would halt", hook.would_halt),
                    ("would change", hook.would_change), ("filtered", hook.filtered), ("passed over", hook.passed_over),
                )
                if value
            )  # fmt: skip
            times = f"p50 {hook.p50_ms:.3f} ms, p95 {hook.p95_ms:.3f} ms, p99 {hook.p99_ms:.3f} ms"
            lines.append(f"  {hook.name:{width}}  {hook.runs} runs{', ' + counts if counts else ''}; {times}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from ._display import stats_html

        return stats_html([{**asdict(hook), "why_never": hook.why_never} for hook in self._hooks])
