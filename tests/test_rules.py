"""Rules of the code base. Each asserts that it looked at something: a rule that reads nothing passes always."""

from __future__ import annotations

import inspect
import re
import subprocess
from pathlib import Path

import hookwright

ROOT = Path(__file__).resolve().parent.parent

TEXT = {".rs", ".py", ".pyi", ".toml", ".md", ".yml", ".yaml", ".json", ".sh", ".ipynb", ".txt", ""}
LONGEST = 800

# Which rooms of the core a room may import from. `suggest` and `runtime` are open to all.
OPEN = {"suggest", "runtime"}
IMPORTS = {
    "message": set(),
    "process": set(),
    "hook": {"message", "process"},
    "gate": {"message", "process", "hook"},
    "tool": {"message", "process", "hook"},
    "model": {"message", "hook"},
    "context": {"message", "hook", "model"},
    "evolution": {"message", "hook"},
    "agent": {"message", "process", "hook", "gate", "tool", "model", "context"},
    "team": {"message", "process", "hook", "gate", "tool", "model", "context", "agent"},
}

# Where packages come from is for the machine that installs them to know. Cargo.lock names the standard index.
HOSTS = re.compile(
    r"index-url|find-links|trusted-host|replace-with|registry\s*=\s*['\"](sparse|http)|"
    r"pypi\.org|pythonhosted|crates\.io|npmjs|proxy\.golang|artifactory|nexus\.|/simple/",
    re.IGNORECASE,
)


def files() -> list[Path]:
    """Every tracked or new file that is not ignored; in an unpacked archive every file of the source folders."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode == 0:
        found = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        folders = ("src", "python", "tests", "scripts", "docs", "examples", "benches")
        found = [path for folder in folders for path in (ROOT / folder).rglob("*")]
        found += list(ROOT.glob("*"))
    return sorted(path for path in found if path.is_file() and path.suffix in TEXT)


def below(folder: str, *suffixes: str) -> list[Path]:
    return [path for path in files() if path.is_relative_to(ROOT / folder) and path.suffix in suffixes]


def core() -> list[Path]:
    """The Rust files of the core and of its tests: all but the bindings."""
    rust = below("src", ".rs") + below("tests/rust", ".rs") + below("benches", ".rs")
    return [path for path in rust if not path.is_relative_to(ROOT / "src/python")]


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_only_the_bindings_name_pyo3() -> None:
    looked_at = core()
    assert len(looked_at) > 20, "the core has moved: this rule looks in the wrong place"
    naming = [
        f"{name(path)}:{number}: {line.strip()}"
        for path in looked_at
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r"\b(pyo3|pythonize)", line) and not (path == ROOT / "src/lib.rs" and "cfg" in line)
    ]
    assert naming == []


def test_nothing_is_unsafe() -> None:
    assert re.search(r'^unsafe_code = "forbid"$', (ROOT / "Cargo.toml").read_text(encoding="utf-8"), re.MULTILINE)
    looked_at = core() + below("src/python", ".rs")
    assert len(looked_at) > 20
    pattern = re.compile(r"\bunsafe\s*(\{|fn\b|impl\b|trait\b|extern\b)")
    assert [name(path) for path in looked_at if pattern.search(path.read_text(encoding="utf-8"))] == []


def test_rooms_import_only_from_those_below_them() -> None:
    looked_at = 0
    wrong = []
    for path in below("src", ".rs"):
        room = path.relative_to(ROOT / "src").parts[0].removesuffix(".rs")
        if room not in IMPORTS:
            continue
        looked_at += 1
        used = set(re.findall(r"\bcrate::([a-z_]+)", path.read_text(encoding="utf-8"))) & {*IMPORTS, "python"}
        wrong += [f"{name(path)} uses crate::{other}" for other in sorted(used - IMPORTS[room] - OPEN - {room})]
    assert looked_at > 20
    assert wrong == []


def test_no_file_says_where_packages_come_from() -> None:
    looked_at = [path for path in files() if path.name not in ("Cargo.lock", Path(__file__).name)]
    assert len(looked_at) > 20
    # Tables of programs name options; an option is no place.
    option = re.compile(r"--(extra-)?index-url\b(?!=)")
    naming = [
        f"{name(path)}:{number}: {line.strip()[:120]}"
        for path in looked_at
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if HOSTS.search(option.sub("", line) if name(path).startswith("src/gate/commands/") else line)
    ]
    assert naming == []
    sources = set(re.findall(r'^source = "(.*)"$', (ROOT / "Cargo.lock").read_text(encoding="utf-8"), re.MULTILINE))
    assert sources == {"registry+https://github.com/rust-lang/crates.io-index"}


def test_no_file_is_too_long_to_be_about_one_thing() -> None:
    looked_at = [path for path in files() if path.suffix in (".rs", ".py", ".sh")]
    assert len(looked_at) > 20
    lengths = {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in looked_at}
    assert {path: lines for path, lines in lengths.items() if lines > LONGEST} == {}


def test_public_names_are_sorted_documented_and_say_where_to_import_them_from() -> None:
    names = hookwright.__all__
    assert len(names) > 10
    assert list(names) == sorted(set(names))
    undocumented, misplaced = [], []
    for public in names:
        value = getattr(hookwright, public)
        if inspect.ismodule(value) or (isinstance(value, str) and not isinstance(value, type)):
            continue
        if not (vars(value).get("__doc__") if inspect.isclass(value) else inspect.getdoc(value)):
            undocumented.append(public)
        if inspect.isclass(value) and value.__module__ != "hookwright":
            misplaced.append(f"{public} says it is from {value.__module__}")
    assert undocumented == []
    assert misplaced == []


def test_python_files_are_documented_modules() -> None:
    looked_at = below("python", ".py")
    assert len(looked_at) > 10
    undocumented = [name(path) for path in looked_at if not path.read_text(encoding="utf-8").lstrip().startswith('"""')]
    assert undocumented == []
