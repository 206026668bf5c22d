"""Timing of contenders side by side.

All contenders of a table take turns, a short stretch each, for many rounds: what else the machine does then falls on
all of them alike. A ratio is the median of the ratios within a round, not the ratio of two medians.

What only computes is measured in CPU time of the whole process, all threads counted, since the machine may be busy with
other things; what waits (for a process, say) is measured on the wall clock.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import process_time

#: The clock for what only computes.
clock = process_time

#: Does a piece of work ``number`` times and returns how long that took, in seconds.
Timed = Callable[[int], float]


@dataclass(frozen=True)
class Series:
    """The seconds per piece of work that each contender took, a value per round."""

    seconds: Mapping[str, list[float]]

    def median(self, name: str) -> float:
        """The median seconds of a contender."""
        return statistics.median(self.seconds[name])

    def ratio(self, name: str, base: str) -> float:
        """The median over the rounds of what `name` cost as a multiple of what `base` cost in the same round."""
        pairs = zip(self.seconds[name], self.seconds[base], strict=True)
        return statistics.median(one / other for one, other in pairs)


def side_by_side(contenders: Mapping[str, Timed], *, rounds: int = 15, stretch: float = 0.02) -> Series:
    """Measures the contenders in turns.

    Args:
        contenders: what to measure, by name.
        rounds: how often each has its turn; the order is turned round every other time.
        stretch: how long a turn is to last, in seconds.
    """
    numbers = {name: _calibrate(timed, stretch) for name, timed in contenders.items()}
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for index in range(rounds):
        names = list(contenders) if index % 2 == 0 else list(contenders)[::-1]
        for name in names:
            # The garbage of one turn is not collected at the cost of the next. The collector itself stays on.
            gc.collect()
            seconds[name].append(contenders[name](numbers[name]) / numbers[name])
    return Series(seconds)


def _calibrate(timed: Timed, stretch: float) -> int:
    """How often the work fits into a stretch; also warms the contender up."""
    number = 1
    while True:
        took = timed(number)
        if took >= stretch / 4:
            return max(1, round(number * stretch / took))
        number = max(number * 2, round(number * stretch / 2 / max(took, 1e-9))) if took > 0 else number * 2
