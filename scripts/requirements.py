"""Prints the packages that development needs, one a line, as pyproject.toml lists them.

`requirements.py GROUP...` prints the run-time dependencies and the named dependency groups. pip reads groups itself
only from version 25.1 on; the one that comes with Python 3.11 does not.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10 has no reader of its own, but pip carries one
    from pip._vendor import tomli as tomllib  # type: ignore[no-redef]


def group(pyproject: dict[str, Any], name: str) -> list[str]:
    """The requirements of one dependency group, with the groups it includes."""
    groups = pyproject.get("dependency-groups", {})
    if name not in groups:
        sys.exit(f"error: pyproject.toml has no dependency group {name!r}; there are: {', '.join(sorted(groups))}")
    requirements: list[str] = []
    for entry in groups[name]:
        requirements += group(pyproject, entry["include-group"]) if isinstance(entry, dict) else [entry]
    return requirements


def main() -> None:
    """Prints the run-time dependencies, then each named group."""
    text = (Path(__file__).resolve().parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    pyproject = tomllib.loads(text)
    lines = list(pyproject["project"]["dependencies"])
    for name in sys.argv[1:]:
        lines += group(pyproject, name)
    print("\n".join(dict.fromkeys(lines)))


if __name__ == "__main__":
    main()
