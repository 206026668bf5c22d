"""Printing: tables for a terminal, tab-separated lines for everything else."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import click


def printable(text: object) -> str:
    """The text without control characters: a hook's name from a file must not steer the terminal."""
    return "".join(
        character if character.isprintable() or character in "\n\t" else f"\\x{ord(character):02x}"
        for character in str(text)
    )


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table on a terminal; without one a line a row, cells separated by tabs, the header first."""
    cells = [[printable(cell).replace("\t", " ").replace("\n", " ") for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for row in [list(header), *cells]:
            click.echo("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in header:
        table.add_column(title, overflow="fold")
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))  # Text: brackets in a name are no markup
    Console().print(table)
