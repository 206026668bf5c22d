"""Check the labels of tests/data/gate/own_commands.jsonl by running the harmless commands.

Every command labelled `read_only` runs in a fresh copy of a small repository, in the environment
that the project promises for reading (hardened git, no terminal, closed input). The tree is
compared before and after by content hash and mode, the home and temporary folders included. With
`--trace` a tracer also reports files opened for writing, changed or removed, and connections, also
where no trace of them is left. Dangerous commands and tests are never run. Commands whose program
is not installed are skipped and counted.

    python3 scripts/check_command_labels.py [--trace] [--mark] [--verbose] [FILE]
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

DEFAULT_FILE = Path(__file__).parent.parent / "tests/data/gate/own_commands.jsonl"
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
TIMEOUT_SECONDS = 20
MARK = "by running it in a scratch copy and comparing the tree"
MARK_TRACED = MARK + ", traced"

GIT_OVERRIDES = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "gpg.program": "/bin/false",
    "log.showSignature": "false",
    "diff.autoRefreshIndex": "false",
    "safe.bareRepository": "explicit",
    "core.attributesFile": "/dev/null",
    "protocol.allow": "never",
    "credential.helper": "",
    "core.sshCommand": "/bin/false",
}

FILES = {
    "README.md": "# shop\n\nA small shop.\n\n## Install\n\nRun it in the shop.\n\nprice: 12\n",
    "CHANGELOG.md": "# Changes\n\n## [1.1.0]\n- SHOP-12 discount\n\n## [1.0.0]\n- SHOP-1 cart\n",
    "Cargo.toml": '[package]\nname = "shop"\nversion = "1.1.0"\nlicense = "MIT"\n',
    "Cargo.lock": '[[package]]\nname = "serde"\nversion = "1.0.0"\n',
    "VERSION": "1.1.0\n",
    "package.json": '{"name": "shop", "scripts": {"test": "vitest"}, "dependencies": {"a": "1"}}\n',
    "pyproject.toml": '[project]\nname = "shop"\nversion = "1.1.0"\n',
    "Makefile": "test:\n\tpytest -q\n\ncheck: test\n",
    ".gitignore": "# built\ntarget/\ndist/\n\n*.pyc\n",
    "docker-compose.yml": "services:\n  web:\n    image: shop\n",
    ".github/workflows/ci.yml": "jobs:\n  test:\n    steps:\n      - run: pytest -q\n",
    "src/main.rs": 'fn main() {\n\t// TODO: arguments\n    println!("shop");\n}\n',
    "src/lib.rs": "pub mod cart;\n\npub fn total(a: u32, b: u32) -> u32 {\n    a + b\n}\n" * 3,
    "src/cart/mod.rs": "pub mod price;\n\npub struct Cart {\n    items: u32,\n}\n",
    "src/cart/price.rs": "".join(f"// line {n} of the price table\n" for n in range(1, 31)),
    "python/shop/__init__.py": "",
    "python/shop/cart.py": "import os\n\n\nclass Cart:\n    def total(self):\n        return 1\n",
    "python/shop/models.py": "from shop import cart\n\n\nclass Item(BaseModel):\n    x = cart\n",
    "web/package.json": '{"name": "web", "version": "0.1.0", "scripts": {"test": "vitest"}}\n',
    "web/src/api.ts": "/** Fetches. */\nexport const get = () => 1;\n",
    "web/src/cart.test.ts": "test('adds an item', () => {});\n",
    "tests/test_cart.py": "import pytest\n\n\ndef test_total():\n    assert True\n",
    "tests/conftest.py": "DATABASE_URL = 1\n",
    "scripts/run.sh": "#!/bin/sh\necho $(date)\n",
    "docs/guide.md": "# Guide\n\nThe shop has a cart and a discount.\n",
    "docs/架构.md": "# 架构\n\n用户 → 订单 → 折扣\n",
    "data/orders.csv": "id,item,qty,price\n1,apple,12,3\n2,pear,2,40\n3,apple,30,1\n",
    "data/users.json": '[{"id": 1, "name": "Ann", "roles": ["admin", "dev"]}]\n',
    "data/events.jsonl": '{"kind": "view"}\n{"kind": "buy"}\n{"kind": "view"}\n',
    "data/hosts.tsv": "1\thttps://one.example.org/x\n2\thttp://two.example.org\n",
    "logs/app.log": "start\n10:00 INFO shop took 12ms\n10:01 ERROR no price\nstop\n",
    "migrations/0001_init.sql": "create table t (a int);\n",
    "order.txt": "src\ndocs\npython\nVersion 1.1.0\n",
    "notes.txt": "a;b x y\nnote-write & more\n2K\n1K\nBEGIN\na > b\nEND\n",
    "release notes.txt": "two\none\ntwo\n",
}


def git(tree: Path, *arguments: str) -> None:
    """Run git in `tree` with a fixed identity."""
    identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=tree, check=True, capture_output=True, text=True)


def write_files(tree: Path) -> None:
    """Write the files of the scratch repository, archives included."""
    for name, text in FILES.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (tree / "scripts/run.sh").chmod(0o755)
    (tree / "bin.dat").write_bytes(bytes(range(64)) + b"shop binary data" + bytes(64))
    (tree / "link.md").symlink_to("README.md")
    digest = hashlib.sha256((tree / "VERSION").read_bytes()).hexdigest()
    (tree / "checksums.txt").write_text(f"{digest}  VERSION\n", encoding="utf-8")
    (tree / "logs/old.log.gz").write_bytes(gzip.compress(b"old ERROR\nold INFO\n"))
    (tree / "dist").mkdir()
    with tarfile.open(tree / "dist/shop.tar.gz", "w:gz") as archive:
        archive.add(tree / "README.md", "shop/README.md")
    with zipfile.ZipFile(tree / "dist/shop.zip", "w") as bundle:
        bundle.write(tree / "README.md", "README.md")


def make_repository(tree: Path) -> None:
    """Make a repository with history, tags, a branch, a stash, a note and a dirty tree."""
    git(tree, "init", "-q", "-b", "main")
    git(tree, "config", "user.email", "ann@example.org")
    for number in range(1, 5):
        write = tree / "src/cart/price.rs"
        write.write_text(write.read_text(encoding="utf-8") + f"// {number}\n", encoding="utf-8")
        git(tree, "add", "-A")
        git(tree, "commit", "-q", "-m", f"change {number}: discount, 修复")
        if number in (2, 3):
            git(tree, "tag", "-a", "-m", "release", f"v1.{number - 2}.0")
    git(tree, "notes", "add", "-m", "a note", "HEAD~1")
    git(tree, "checkout", "-q", "-b", "feature/discount")
    (tree / "README.md").write_text(FILES["README.md"] + "discount\n", encoding="utf-8")
    git(tree, "commit", "-q", "-a", "-m", "fix the discount")
    git(tree, "checkout", "-q", "main")
    git(tree, "merge", "-q", "--no-ff", "-m", "merge", "feature/discount")
    remote = tree.parent / "home/remote.git"
    git(tree, "clone", "-q", "--bare", str(tree), str(remote))
    git(tree, "remote", "add", "origin", str(remote))
    git(tree, "fetch", "-q")
    git(tree, "branch", "-q", "-u", "origin/main")
    (tree / "Makefile").write_text("test:\n\tpytest\n", encoding="utf-8")
    git(tree, "stash")
    (tree / "src/main.rs").write_text(FILES["src/main.rs"] + "// new\n", encoding="utf-8")
    (tree / "untracked.txt").write_text("new\n", encoding="utf-8")
    patch = subprocess.run(["git", "diff", "HEAD~1"], cwd=tree, capture_output=True, check=True)
    (tree / "fix.patch").write_bytes(patch.stdout)


def make_template(root: Path) -> None:
    """Make the folders that every command gets a copy of: tree, home, tmp."""
    for name in ("tree", "home", "tmp"):
        (root / name).mkdir(parents=True)
    write_files(root / "tree")
    make_repository(root / "tree")


def environment(root: Path) -> dict[str, str]:
    """The reading environment: an allow-list and the git overrides."""
    values = {
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "HOME": str(root / "home"),
        "TMPDIR": str(root / "tmp"),
        "LANG": "C.UTF-8",
        "SHELL": "/bin/bash",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_PAGER": "cat",
        "PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ATTR_SOURCE": EMPTY_TREE,
        "GIT_CONFIG_COUNT": str(len(GIT_OVERRIDES)),
    }
    for index, (key, value) in enumerate(GIT_OVERRIDES.items()):
        values[f"GIT_CONFIG_KEY_{index}"] = key
        values[f"GIT_CONFIG_VALUE_{index}"] = value
    return values


def snapshot(root: Path) -> dict[str, tuple[str, int]]:
    """Content hash and mode of everything under `root`."""
    result = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        if path.is_symlink():
            content = "link " + str(path.readlink())
        elif path.is_file():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            content = "folder"
        result[str(path.relative_to(root))] = (content, status.st_mode)
    return result


CHANGING_CALL = re.compile(
    r"\b(?:mkdir|rmdir|unlink|rename|link|symlink|chmod|fchmod|chown|fchown|lchown|truncate"
    r"|mknod|utimens|setxattr)(?:at2?|)\(|\bconnect\(\d+, \{sa_family=AF_INET"
)
OPENED_TO_WRITE = re.compile(r"\b(?:open|openat|creat)\(.*(?:O_WRONLY|O_RDWR|O_CREAT|O_TRUNC)")
HARMLESS_TARGET = re.compile(r'"/dev/(?:null|tty|stdout|stderr|fd/\d)"|"/proc/self/fd/\d"')


def traced_changes(log: Path, temporary: Path) -> list[str]:
    """Calls in a trace that change a file or connect; files in `temporary` are compared later."""
    found = []
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        failed = re.search(r"= -1 E(?!INPROGRESS)", line)
        changes = CHANGING_CALL.search(line) or OPENED_TO_WRITE.search(line)
        harmless = HARMLESS_TARGET.search(line) or f'"{temporary}/' in line
        if changes and not failed and not harmless:
            found.append(line.split(" ", 1)[-1][:160])
    return found


def run(command: str, template: Path, trace: bool) -> tuple[list[str], str, int]:
    """Run one command in a fresh copy: what changed, its error output, its exit code."""
    with tempfile.TemporaryDirectory(prefix="labels-") as folder:
        root = Path(folder) / "root"
        shutil.copytree(template, root, symlinks=True)
        log = Path(folder) / "trace"
        words = ["bash", "--noprofile", "--norc", "-p", "-c", command]
        if trace:
            calls = "trace=%file,%network,fchmod,fchown"
            words = ["strace", "-f", "-qq", "-s", "200", "-e", calls, "-o", str(log), *words]
        before = snapshot(root)
        try:
            done = subprocess.run(
                words,
                cwd=root / "tree",
                env=environment(root),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=TIMEOUT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return ["no end within the time limit"], "", -1
        after = snapshot(root)
        names = sorted(before.keys() | after.keys())
        changes = [name for name in names if before.get(name) != after.get(name)]
        if trace:
            changes += traced_changes(log, root / "tmp")
        return changes, done.stderr.decode(errors="replace"), done.returncode


def check(rows: list[dict[str, Any]], trace: bool, verbose: bool) -> Counter[str]:
    """Run the harmless rows, print every difference, note what passed in `checked`."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="template-") as folder:
        template = Path(folder) / "root"
        make_template(template)
        for number, row in enumerate(rows, 1):
            if row["label"] != "read_only":
                continue
            changes, error, code = run(row["command"], template, trace)
            missing = re.search(r"command not found|No such file or directory: '?\w+'?$", error)
            if changes:
                counts["changed something"] += 1
                print(f"line {number}: {row['command']!r} changed: {changes[:5]}")
            elif missing:
                counts["program missing"] += 1
                row.pop("checked", None)
            else:
                counts["unchanged"] += 1
                row["checked"] = MARK_TRACED if trace else MARK
            if verbose and (error or code):
                print(f"line {number}: exit {code} {row['command']!r} {error[:150]!r}")
    return counts


def as_line(row: dict[str, Any]) -> str:
    """One row as JSON: text stays readable, what cannot be seen is escaped."""
    text = json.dumps(row, ensure_ascii=False)
    return "".join(mark if mark.isprintable() else f"\\u{ord(mark):04x}" for mark in text)


def main() -> int:
    """Check a file; the exit code says whether any command changed something."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("file", nargs="?", type=Path, default=DEFAULT_FILE)
    parser.add_argument("--trace", action="store_true", help="also look at system calls (strace)")
    parser.add_argument("--mark", action="store_true", help="write the field `checked`")
    parser.add_argument("--verbose", action="store_true", help="show error output and exit codes")
    options = parser.parse_args()
    lines = options.file.read_text(encoding="utf-8").split("\n")
    rows = [json.loads(line) for line in lines if line]
    counts = check(rows, options.trace, options.verbose)
    print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    if options.mark:
        text = "".join(as_line(row) + "\n" for row in rows)
        options.file.write_text(text, encoding="utf-8")
    return 1 if counts["changed something"] else 0


if __name__ == "__main__":
    sys.exit(main())
