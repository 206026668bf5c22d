"""Which projects' hooks may run here.

The hooks of a project run commands that somebody else wrote. They are loaded only when the project is trusted as it is:
the configuration, everything in the hook folders, and the files of the project that commands name or callables are
defined in. One changed byte, and it must be trusted again. What such a script reads or imports is not covered.

The store is `trust.json` in `$XDG_STATE_HOME/hookwright/`, else `~/.local/state/hookwright/`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from . import _native
from .exceptions import TrustError

__all__ = ["TrustedProject", "forget", "is_trusted", "trust", "trusted"]


@dataclass(frozen=True)
class TrustedProject:
    """A project that was trusted.

    Attributes:
        project: its folder.
        hash: the hash of what was trusted.
        trusted_at: when, in UTC (RFC 3339).
        files: how many files that covered.
    """

    project: Path
    hash: str
    trusted_at: str
    files: int


def trust(project: str | os.PathLike[str] = ".") -> list[str]:
    """Trusts the hooks of a project as they are now.

    Args:
        project: its folder, or one below it.

    Returns:
        The files that this covers, relative to the project.

    Raises:
        TrustError: when there are no hooks to trust, or the trust cannot be remembered.
        OSError: when there is no such folder.
    """
    return _native.trust_project(_root(project))


def is_trusted(project: str | os.PathLike[str] = ".") -> bool:
    """Whether the hooks of a project may run as they are now. A project without hooks may.

    Raises:
        TrustError: when the store is damaged, or a file cannot be read.
        OSError: when there is no such folder.
    """
    root = _native.find_project(Path(project))
    if root is None:
        return True
    state, files = _native.trust_state(root)
    return state == "trusted" or (state == "unknown" and not files)


def forget(project: str | os.PathLike[str] = ".") -> bool:
    """Takes the trust back. Returns whether there was any. The folder need not exist any more.

    Raises:
        TrustError: when the store is damaged or cannot be written.
    """
    try:
        root = _native.find_project(Path(project))
    except OSError:
        root = None
    return _native.forget_project(root or Path(project))


def trusted() -> list[TrustedProject]:
    """All projects that were trusted, by path; some may have changed since.

    Raises:
        TrustError: when the store is damaged.
    """
    return [TrustedProject(*known) for known in _native.trusted_projects()]


def _root(project: str | os.PathLike[str]) -> Path:
    root = _native.find_project(Path(project))
    if root is None:
        raise TrustError(
            f"there are no hooks to trust: neither {Path(project).absolute()} nor a folder above it has .hookwright/",
            hint="a project's hooks stand in .hookwright/hooks.yaml, or in .hookwright/hooks/<name>/HOOK.yaml",
        )
    return root
