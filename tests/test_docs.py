"""The snippets of the documentation run: those of one page in order, in one namespace, in an empty folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SNIPPET = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_there_are_pages_with_snippets() -> None:
    assert len([page for page in PAGES if SNIPPET.search(page.read_text(encoding="utf-8"))]) >= 6


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_snippets_of_a_page_run_in_order(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("hookwright._native", reason="the extension is not built")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    text = page.read_text(encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": f"snippets_of_{page.stem.replace('-', '_')}"}
    for snippet in SNIPPET.finditer(text):
        line = text.count("\n", 0, snippet.start(1))
        # Empty lines before it make a traceback name the line of the page.
        exec(compile("\n" * line + snippet.group(1), str(page), "exec"), namespace)


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md"], ids=lambda page: page.name
)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
