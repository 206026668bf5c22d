"""A git worktree and branch of its own for a teammate. What holds work is never removed."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .exceptions import TeamError

#: How long one call of git may take, in seconds.
_PATIENCE = 60.0
#: Nothing of the repository's own runs unasked, nothing asks, nothing is in another language.
_SETTINGS = (
    "-c", "core.hooksPath=/dev/null", "-c", "commit.gpgsign=false", "-c", "core.quotePath=false",
    "-c", "core.fsmonitor=false", "-c", "core.editor=true",
)  # fmt: skip
_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX")


@dataclass(frozen=True)
class Work:
    """What a worktree holds that is nowhere else.

    Attributes:
        uncommitted: files that are changed, staged or new.
        unmerged: how many commits no other branch has.
    """

    __module__ = "hookwright"

    uncommitted: list[str]
    unmerged: int

    def __bool__(self) -> bool:
        return bool(self.uncommitted or self.unmerged)


@dataclass(frozen=True)
class Merge:
    """What came of a merge.

    Attributes:
        ok: whether it was merged.
        commit: the commit that the repository is at afterwards.
        conflicts: the files that did not merge; then the repository is as it was before.
    """

    __module__ = "hookwright"

    ok: bool
    commit: str
    conflicts: list[str]


@dataclass(frozen=True)
class Worktree:
    """A worktree and branch of a repository; made by ``Team(worktree=True)`` or ``spawn(worktree=True)``.

    Attributes:
        root: the top of the worktree.
        path: the folder in it that stands for the one that was given.
        branch: its branch.
        base: the commit that it began at.
        repo: the top of the repository.
    """

    __module__ = "hookwright"

    root: Path
    path: Path
    branch: str
    base: str
    repo: Path

    @classmethod
    def create(cls, repo: Path, name: str, folder: Path) -> Worktree:
        """A new one, on a new branch ``team/<name>`` from the repository's present commit.

        Args:
            repo: a folder of a git repository.
            name: whose it is; made fit for a branch, and numbered where that is taken.
            folder: where worktrees are kept.

        Raises:
            TeamError: outside of a repository, or in one without a commit.
        """
        try:
            top = Path(_git(repo, "rev-parse", "--show-toplevel").strip())
        except TeamError as error:
            raise TeamError(
                f"a teammate with a worktree needs a git repository, and {str(repo)!r} is in none",
                hint="give cwd= a folder of one, or run git init there and commit",
            ) from error
        try:
            base = _git(top, "rev-parse", "--verify", "HEAD^{commit}").strip()
        except TeamError as error:
            raise TeamError(
                f"the repository {str(top)!r} has no commit yet to begin a worktree at", hint="commit something first"
            ) from error
        fit, number = _fit(name), 1
        folder.mkdir(parents=True, exist_ok=True)
        while True:
            suffix = fit if number == 1 else f"{fit}-{number}"
            branch, root = f"team/{suffix}", folder / suffix
            taken = _run(top, "show-ref", "--verify", "--quiet", f"refs/heads/{branch}").returncode == 0
            if not taken and not root.exists():
                break
            number += 1
        _git(top, "worktree", "add", "--quiet", "-b", branch, str(root), base)
        root = root.resolve()
        return cls(root, root / repo.resolve().relative_to(top.resolve()), branch, base, top)

    def _check(self) -> None:
        if not self.root.is_dir():
            raise TeamError(
                f"the worktree {str(self.root)!r} of branch {self.branch!r} is gone",
                hint=f"its commits are on the branch; git worktree add {str(self.root)!r} {self.branch} brings it back",
            )

    def work(self) -> Work:
        """What it holds that is nowhere else. Ignored files, such as what a build makes, do not count.

        Raises:
            TeamError: when it is gone.
        """
        self._check()
        status = _git(self.root, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
        uncommitted = [entry[3:] for entry in status.split("\0") if entry]
        others = [f"^{ref}" for ref in self._others()]
        unmerged = int(_git(self.root, "rev-list", "--count", "HEAD", *others).strip())
        return Work(uncommitted, unmerged)

    def _others(self) -> list[str]:
        """Where else commits may be: every branch, tag and remote branch, and what the repository has checked out."""
        refs = _git(self.repo, "for-each-ref", "--format=%(refname)").split()
        head = _git(self.repo, "rev-parse", "HEAD").strip()
        return [ref for ref in refs if ref != f"refs/heads/{self.branch}"] + [head]

    def finish(self) -> bool:
        """Removes worktree and branch if they hold no work; whether they are gone. Ignored files go with them."""
        if not self.root.is_dir() or self.work():
            return False
        # Without --force git refuses where a file has appeared since, and for a locked one.
        if _run(self.repo, "worktree", "remove", str(self.root)).returncode != 0:
            return False
        tip = _git(self.repo, "rev-parse", f"refs/heads/{self.branch}").strip()
        others = [f"^{ref}" for ref in self._others()]
        if _git(self.repo, "rev-list", "--count", tip, *others).strip() == "0":
            # Only if the branch is still where that was found.
            _git(self.repo, "update-ref", "-d", f"refs/heads/{self.branch}", tip)
        return True

    def merge(self, message: str | None = None) -> Merge:
        """Merges the branch into what the repository has checked out.

        Args:
            message: of the merge commit.

        Returns:
            Whether it merged; with conflicts the repository is as before.

        Raises:
            TeamError: when the worktree has changes that are not committed, the repository is in the middle of a merge
                or rebase, or has changes of its own in files that the merge touches.
        """
        held = self.work()
        if held.uncommitted:
            raise TeamError(
                f"the worktree of {self.branch!r} has changes not committed: {', '.join(held.uncommitted[:10])}",
                hint="commit them there first",
            )
        git_dir = Path(_git(self.repo, "rev-parse", "--absolute-git-dir").strip())
        under_way = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")
        if any((git_dir / name).exists() for name in under_way):
            raise TeamError(f"{str(self.repo)!r} is in the middle of a merge or rebase", hint="finish that first")
        changed = _git(self.repo, "diff", "--name-only", "-z", f"HEAD...{self.branch}")
        touched = {name for name in changed.split("\0") if name}
        status = _git(self.repo, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
        own = {entry[3:] for entry in status.split("\0") if entry}
        staged = any(entry[0] not in " ?" for entry in status.split("\0") if entry)
        if staged or touched & own:
            names = sorted(touched & own) or sorted(own)
            raise TeamError(
                f"{str(self.repo)!r} has changes of its own that a merge would meet: {', '.join(names[:10])}",
                hint="commit or stash them first",
            )
        text = message or f"Merge {self.branch}"
        merged = _run(self.repo, "merge", "--no-ff", "--no-edit", "--no-autostash", "-m", text, self.branch)
        if merged.returncode == 0:
            return Merge(True, _git(self.repo, "rev-parse", "HEAD").strip(), [])
        unmerged = _git(self.repo, "diff", "--name-only", "-z", "--diff-filter=U")
        conflicts = sorted({name for name in unmerged.split("\0") if name})
        if (git_dir / "MERGE_HEAD").exists():
            _git(self.repo, "merge", "--abort")
        if not conflicts:
            raise TeamError(f"git merge of {self.branch!r} failed: {(merged.stderr or merged.stdout).strip()}")
        return Merge(False, _git(self.repo, "rev-parse", "HEAD").strip(), conflicts)

    def _as_dict(self) -> dict[str, Any]:
        return {name: str(value) for name, value in self.__dict__.items()}

    @classmethod
    def _from_dict(cls, kept: dict[str, Any]) -> Worktree:
        tree = cls(Path(kept["root"]), Path(kept["path"]), kept["branch"], kept["base"], Path(kept["repo"]))
        tree._check()
        return tree


def _fit(name: str) -> str:
    """A name as a part of a branch: letters and digits of any script, and dashes."""
    fit = re.sub(r"[^\w]+", "-", name, flags=re.UNICODE).strip("-_") or "teammate"
    return f"{fit}-" if fit.endswith(".lock") else fit


def _environment() -> dict[str, str]:
    environment = {key: value for key, value in os.environ.items() if key not in _ELSEWHERE}
    environment.update(LC_ALL="C", GIT_TERMINAL_PROMPT="0", GIT_OPTIONAL_LOCKS="0")
    for role in ("AUTHOR", "COMMITTER"):
        environment.setdefault(f"GIT_{role}_NAME", "hookwright team")
        environment.setdefault(f"GIT_{role}_EMAIL", "team@localhost")
    return environment


def _run(where: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["git", *_SETTINGS, "-C", str(where), *arguments]
    try:
        return subprocess.run(
            command, env=_environment(), capture_output=True, text=True, errors="surrogateescape",
            stdin=subprocess.DEVNULL, timeout=_PATIENCE, check=False,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise TeamError("git is not installed, or the folder is not there", hint=f"looked in {str(where)!r}") from error
    except subprocess.TimeoutExpired as error:
        raise TeamError(f"git {arguments[0]} took longer than {_PATIENCE:.0f} s in {str(where)!r}") from error


def _git(where: Path, *arguments: str) -> str:
    done = _run(where, *arguments)
    if done.returncode != 0:
        raise TeamError(f"git {' '.join(arguments[:2])} failed in {str(where)!r}: {done.stderr.strip()}")
    return done.stdout
