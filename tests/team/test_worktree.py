"""Worktrees of teammates: what holds work stays."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

import hookwright as hw
from hookwright._worktree import Worktree


def git(where: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    done = subprocess.run(["git", *identity, "-C", str(where), *arguments], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    path = tmp_path / "repo"
    (path / "src").mkdir(parents=True)
    git(path.parent, "init", "-q", "-b", "main", str(path))
    (path / "a.txt").write_text("one\n")
    (path / "src" / "b.txt").write_text("two\n")
    (path / ".gitignore").write_text("build/\n")
    git(path, "add", ".")
    git(path, "commit", "-qm", "first")
    return path


def commit(tree: Worktree, name: str, text: str) -> None:
    (tree.root / name).write_text(text)
    git(tree.root, "add", name)
    git(tree.root, "commit", "-qm", name)


def snapshot(where: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(where)): path.read_bytes()
        for path in where.rglob("*")
        if path.is_file() and ".git" not in path.parts
    }


def test_one_that_holds_nothing_goes(repo: Path, tmp_path: Path) -> None:
    tree = Worktree.create(repo, "ada", tmp_path / "trees")
    assert (tree.branch, tree.root.name, tree.path) == ("team/ada", "ada", tree.root)
    (tree.root / "build").mkdir()
    (tree.root / "build" / "out").write_text("made")
    assert not tree.work()
    assert tree.finish() and not tree.root.exists() and "team/ada" not in git(repo, "branch")


@pytest.mark.parametrize("how", ["new", "changed", "staged", "deleted", "committed"])
def test_one_that_holds_work_stays(repo: Path, tmp_path: Path, how: str) -> None:
    tree = Worktree.create(repo, "ada", tmp_path / "trees")
    if how == "new":
        (tree.root / "new.txt").write_text("mine")
    elif how == "deleted":
        (tree.root / "a.txt").unlink()
    elif how == "committed":
        commit(tree, "new.txt", "mine")
    else:
        (tree.root / "a.txt").write_text("mine")
        if how == "staged":
            git(tree.root, "add", "a.txt")
    work = tree.work()
    assert work and bool(work.uncommitted) == (how != "committed") and work.unmerged == (how == "committed")
    assert not tree.finish()
    assert tree.root.exists() and "team/ada" in git(repo, "branch")


def test_a_file_that_appears_at_the_last_moment_stays(repo: Path, tmp_path: Path, monkeypatch: Any) -> None:
    tree = Worktree.create(repo, "ada", tmp_path / "trees")
    real = Worktree.work

    def work(self: Worktree) -> Any:
        held = real(self)
        (self.root / "late.txt").write_text("just now")
        return held

    monkeypatch.setattr(Worktree, "work", work)
    assert not tree.finish()
    assert (tree.root / "late.txt").read_text() == "just now"


def test_merge_then_gone(repo: Path, tmp_path: Path) -> None:
    tree = Worktree.create(repo, "ada", tmp_path / "trees")
    commit(tree, "new.txt", "mine\n")
    (repo / "other.txt").write_text("dirty elsewhere\n")
    merged = tree.merge("ada's work")
    assert merged.ok and merged.commit == git(repo, "rev-parse", "HEAD").strip() and merged.conflicts == []
    assert (repo / "new.txt").read_text() == "mine\n" and (repo / "other.txt").exists()
    assert not tree.work() and tree.finish()


def test_a_conflict_leaves_the_repository_as_it_was(repo: Path, tmp_path: Path) -> None:
    tree = Worktree.create(repo, "ada", tmp_path / "trees")
    commit(tree, "a.txt", "hers\n")
    (repo / "a.txt").write_text("mine\n")
    git(repo, "commit", "-qam", "mine")
    before = snapshot(repo), git(repo, "rev-parse", "HEAD"), git(repo, "status", "--porcelain")
    merged = tree.merge()
    assert (merged.ok, merged.conflicts) == (False, ["a.txt"])
    assert (snapshot(repo), git(repo, "rev-parse", "HEAD"), git(repo, "status", "--porcelain")) == before
    assert not tree.finish()


def test_what_a_merge_would_meet_is_refused(repo: Path, tmp_path: Path) -> None:
    tree = Worktree.create(repo, "ada", tmp_path / "trees")
    commit(tree, "a.txt", "hers\n")
    (repo / "a.txt").write_text("not committed\n")
    with pytest.raises(hw.TeamError, match=r"changes of its own that a merge would meet: a\.txt"):
        tree.merge()
    git(repo, "checkout", "-q", "a.txt")
    (tree.root / "b.txt").write_text("not committed\n")
    with pytest.raises(hw.TeamError, match=r"changes not committed: b\.txt"):
        tree.merge()


def test_names_and_subfolders_and_what_is_no_repository(repo: Path, tmp_path: Path) -> None:
    names = ["张三", "ada lovelace", "..", "x.lock", "ada", "ada"]
    trees = [Worktree.create(repo / "src", name, tmp_path / "trees") for name in names]
    branches = [tree.branch for tree in trees]
    assert branches == ["team/张三", "team/ada-lovelace", "team/teammate", "team/x-lock", "team/ada", "team/ada-2"]
    assert all((tree.path / "b.txt").read_text() == "two\n" for tree in trees)
    (tmp_path / "empty").mkdir()
    with pytest.raises(hw.TeamError, match="is in none"):
        Worktree.create(tmp_path / "empty", "ada", tmp_path / "trees")
    git(tmp_path, "init", "-q", str(tmp_path / "fresh"))
    with pytest.raises(hw.TeamError, match="no commit yet"):
        Worktree.create(tmp_path / "fresh", "ada", tmp_path / "trees")


def test_a_teammate_in_a_worktree(repo: Path, tmp_path: Path) -> None:
    write = hw.ToolCall("write_file", {"path": "made.txt", "content": "by ada"})
    where = hw.ToolCall("shell", {"command": "pwd"})
    tools = hw.workspace_tools(repo)
    team = hw.Team(hw.Scripted([write, where, "ok"]), tools=tools, cwd=repo, session=tmp_path / "s", worktree=True)
    with team:
        ada = team.spawn("ada", prompt="write a file")
        team.join_sync(timeout=30)
        assert ada.worktree is not None
        assert (ada.worktree.root / "made.txt").read_text() == "by ada" and not (repo / "made.txt").exists()
        assert str(ada.worktree.root) in ada.history[4].text
        assert ada.cwd == ada.worktree.path
    assert ada.worktree.root.exists(), "it holds a file that is not committed"
    with hw.Team.resume(tmp_path / "s", hw.Scripted([]), tools=tools, cwd=repo) as team:
        assert team["ada"].worktree == ada.worktree and team["ada"].cwd == ada.worktree.path


def test_a_worktree_that_cannot_be_leaves_no_teammate(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with hw.Team(hw.Scripted(["ok"]), session=tmp_path / "s") as team:
        with pytest.raises(hw.TeamError, match="is in none"):
            team.spawn("ada", worktree=True, cwd=tmp_path / "empty")
        assert len(team) == 0
        ada = team.spawn("ada", worktree=True, cwd=repo)
        with pytest.raises(hw.TeamError, match="already"):
            team.spawn("ada", worktree=True, cwd=repo)
        assert ada.worktree is not None and git(repo, "branch", "--list", "team/*").split() == ["+", "team/ada"]


def test_one_without_work_is_gone_after_the_team(repo: Path, tmp_path: Path) -> None:
    with hw.Team(hw.Scripted(["ok"]), cwd=repo, session=tmp_path / "s") as team:
        ada = team.spawn("ada", prompt="go", worktree=True)
        team.join_sync(timeout=30)
        assert ada.worktree is not None and ada.worktree.root.exists()
        ada.cancel()
        team.join_sync(until="ended", timeout=30)
        assert ada.finish_worktree() and not ada.worktree.root.exists()
