"""One table on the terminal, and the same in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Section:
    """A table: a row per contender or case, cells as text, and what has to be said about it."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def as_text(self) -> str:
        """For a terminal: columns lined up, numbers to the right."""
        lines = [self.columns, *self.rows]
        widths = [max(len(row[index]) for row in lines) for index in range(len(self.columns))]

        def line(row: Sequence[str]) -> str:
            first, *rest = (
                cell.ljust(width) if index == 0 else cell.rjust(width)
                for index, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            return "  ".join([first, *rest]).rstrip()

        body = [line(self.columns), "  ".join("-" * width for width in widths), *map(line, self.rows)]
        return "\n".join([self.title, "", *body, *(f"  {note}" for note in self.notes)])

    def as_markdown(self) -> str:
        """For ``benches/README.md``."""
        ruler = ["---", *["---:"] * (len(self.columns) - 1)]
        rows = ["| " + " | ".join(row) + " |" for row in (self.columns, ruler, *self.rows)]
        return "\n".join([f"## {self.title}", "", *rows, "", *self.notes]).rstrip()


def duration(seconds: float) -> str:
    """Three significant digits with a unit: ``"431 ns"``, ``"2.31 us"``."""
    for unit, scale in (("ns", 1e9), ("us", 1e6), ("ms", 1e3)):
        value = seconds * scale
        if value < 999.5:
            return f"{value:.3g} {unit}"
    return f"{seconds:.3g} s"


def multiple(ratio: float) -> str:
    """A ratio: ``"2.4x"``."""
    return f"{ratio:.2f}x" if ratio < 10 else f"{ratio:.0f}x"


def verdict(value: float, bar: float) -> str:
    """Whether a value reaches its bar."""
    return "reached" if value <= bar else "MISSED"
