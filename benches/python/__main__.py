"""Measures everything, prints one table, and writes ``benches/README.md``."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path

from . import dispatch, long, many, payload, shell, team, turn
from .table import Section

README = Path(__file__).resolve().parents[1] / "README.md"
PARTS = {
    "dispatch": dispatch,
    "payload": payload,
    "shell": shell,
    "turn": turn,
    "long": long,
    "many": many,
    "team": team,
}
PEERS = ("pluggy", "agent-framework-core", "autogen-core", "pydantic-ai-slim", "openai-agents")


def surroundings() -> list[str]:
    """On what it was measured."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return [
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, load {load} at the start; "
        f"CPython {platform.python_version()}; extension built with `--profile dev-release`.",
        "Peers: " + ", ".join(f"{name} {version(name)}" for name in PEERS) + ".",
    ]


def document(around: list[str], sections: list[Section]) -> str:
    """The README with these measurements in it."""
    text = README.read_text(encoding="utf-8") if README.exists() else "# Benchmarks\n"
    head = text.split("<!-- measurements -->")[0].rstrip()
    parts = [head, "<!-- measurements -->", "\n\n".join(around), *(section.as_markdown() for section in sections)]
    return "\n\n".join(parts) + "\n"


def main() -> int:
    """Runs the parts that were asked for; only a run of all parts is written down."""
    parser = argparse.ArgumentParser(prog="python -m benches.python", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--rounds", type=int, default=15, help="turns per contender (default: %(default)s)")
    parser.add_argument("--stretch", type=float, default=0.02, help="seconds per turn (default: %(default)s)")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    around = surroundings()
    print("\n".join(around))
    sections: list[Section] = []
    for name in options.parts or PARTS:
        for section in PARTS[name].sections(rounds=options.rounds, stretch=options.stretch):
            print("\n" + section.as_text(), flush=True)
            sections.append(section)
    if not options.parts:
        README.write_text(document(around, sections), encoding="utf-8")
        print(f"\nwritten to {README.relative_to(Path.cwd()) if README.is_relative_to(Path.cwd()) else README}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
