"""What variables hold, judged by bash: texts that set them in every way and then give them to a program to which one value
is an option that writes. None that the gate calls read-only may write.

``GATE_SEED=7`` makes up other texts, ``GATE_TEXTS=100000`` more of them.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hookwright import shell

TEXTS = int(os.environ.get("GATE_TEXTS", "8000"))
SEED = int(os.environ.get("GATE_SEED", "1"))
FILES = {"a": "x\ny\n", "b": "z\n"}

VALUES = [
    "-oout", "a", "''", "b", "-r", "'a b'", "5", "$y", '"$y"', "$((1-2))", "$(wc -l < a)", "$(wc -l < nofile)", "${y:-a}",
    "${y-a}", "$(echo -oout)", "~", "*", "{a,-oout}", "$'-oout'", "$!", "$#", "$?",
]  # fmt: skip
#: `N` stands for a name, `V` for a value.
STATEMENTS = [
    "N=V", "N=V", "N=V", "declare N=V", "local N=V", "export N=V", "readonly N=V", "unset N", "unset -v N", "unset -f N",
    "read N < a", "read N <<< V", "printf -v N %s V", "(( N=1 ))", "(( N++ ))", "let N=3", ": $(( N=2 ))", ": ${N:=V}",
    "eval 'N=a'", 'eval "N=b"', "N+=V", "N=(a -oout)", "N[1]=a", "false", "true", "ls a", ": $((1/0))", "break", "continue",
    "return", "f", "g", "set -- V V", "shift", "cd .", "trap 'N=a' EXIT", "trap 'ls a' ERR", "IFS=a", "N=a ls a",
    "env N=a ls a", "LANG=V", "LANG=V eval :", "getopts a: N", "declare -i N=1", "declare -u N", "declare -n N=y",
    "mapfile N < a", "[[ -n $N ]]", '[ -n "$N" ]', "test $N", "env unset N", "/bin/unset N", "RANDOM=V", "readonly N",
]  # fmt: skip
USES = [
    'sort "$N" a', "sort $N a", 'sort "${N:-a}" a', 'sort "${N-a}" a', 'sort "$N-oout" a', "sort ${N}-oout a",
    'sort "${N:+a}" a', 'sort "$LANG" a', 'sort "${#N}-oout" a', 'sort "$1" a', 'sort "${N}out" a', 'sort "$RANDOM" a',
]  # fmt: skip
#: `B` stands for a list of statements, `S` for one.
CONSTRUCTS = [
    "if B; then B; fi", "if B; then B; else B; fi", "for N in V V; do B; done", "for i in 1 2; do B; done",
    "while B; do B; break; done", "until B; do B; break; done", "{ B; }", "( B )", "{ B; } < nofile", "{ B; } < a",
    "S && S", "S || S", "S | S", "! S", "f() { B; }", "g() { B; }", "case $N in a) B;; *) B;; esac",
    "case $N in a) B;& *) B;; esac", "x=$(B)", "for ((i=0;i<2;i++)); do B; done", "select N in a b; do B; break; done <<< 1",
]  # fmt: skip


class Writer:
    """Makes texts up."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def fill(self, pattern: str, depth: int) -> str:
        parts: dict[str, Callable[[], str]] = {
            "N": lambda: self.random.choice("xxxyz"),
            "V": lambda: self.random.choice(VALUES),
            "S": lambda: self.statement(depth - 1),
            "B": lambda: "; ".join(self.statement(depth - 1) for _ in range(self.random.randint(1, 3))),
        }
        words, text = set("NVSB"), ""
        for index, letter in enumerate(pattern):
            around = pattern[index - 1 : index] + pattern[index + 1 : index + 2]
            text += letter if letter not in words or any(c.isalpha() for c in around) else parts[letter]()
        return text

    def statement(self, depth: int) -> str:
        chance = self.random.random()
        if depth <= 0 or chance < 0.55:
            return self.fill(self.random.choice(STATEMENTS), 0)
        if chance < 0.65:
            return self.fill(self.random.choice(USES), 0)
        return self.fill(self.random.choice(CONSTRUCTS), depth)

    def text(self) -> str:
        parts = [self.statement(2) for _ in range(self.random.randint(1, 5))]
        return "".join(part + self.random.choice(["; ", "\n"]) for part in parts) + self.fill(
            self.random.choice(USES), 0
        )


def run(text: str, folder: Path) -> dict[str, str]:
    """The files that are there after bash has run the text."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in FILES.items():
        (folder / name).write_text(content)
    quiet = subprocess.DEVNULL
    try:
        subprocess.run(["bash", "-c", text], cwd=folder, stdin=quiet, stdout=quiet, stderr=quiet, timeout=20)
    except subprocess.TimeoutExpired:
        return FILES
    return {path.name: path.read_text(errors="replace") for path in folder.iterdir() if path.is_file()}


@pytest.mark.timeout(0 if "GATE_TEXTS" in os.environ else 120)
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is the judge")
def test_no_value_is_taken_for_another(tmp_path: Path) -> None:
    writer, holes, ran = Writer(SEED), [], 0
    for _ in range(TEXTS):
        text = writer.text()
        if "-oout" not in text or shell.analyze(text).effect != "read_only":
            continue
        ran += 1
        if run(text, tmp_path / "scratch") != FILES:
            holes.append(json.dumps(text))
    assert ran >= TEXTS / 100, "hardly any of the texts is let through: they no longer try anything"
    assert not holes, f"{len(holes)} of {ran} wrote a file:\n" + "\n".join(holes[:20])


def test_the_judge_sees_what_is_written(tmp_path: Path) -> None:
    assert run('x=-oout; sort "$x" a', tmp_path / "scratch") != FILES
    assert run('x=a; sort "$x" a', tmp_path / "scratch") == FILES
