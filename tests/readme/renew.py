"""Writes what README files show anew: `python -m tests.readme.renew README.md README.zh-CN.md` at the root; read the diff.

Outputs of commands that are shown, and checked tables. A line `...` stays where it is: the lines shown around it are found
again by their words, and one that is not printed any more is named, for a person to choose another.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from pathlib import Path

import pytest

from .markdown import Block, cells, commands, read
from .running import Runner, first_difference
from .tables import CHECKS

FIGURE = re.compile(r"[\d.,]*\d")


def renew(path: Path) -> None:
    lines = path.read_text().splitlines()
    runner = Runner(Path.cwd(), long=True)
    changes = [(block, _anew(block, runner)) for block in read(path)]
    for block, shown in reversed(changes):  # from the end: the lines before keep their numbers
        lines[block.line - 1 : block.line - 1 + len(block.lines)] = shown
    path.write_text("\n".join(lines) + "\n")


def _anew(block: Block, runner: Runner) -> list[str]:
    """The lines of a block as they are today. A block that others need is run, too."""
    if "checked" in block.marks:
        rows = CHECKS[block.marks["checked"]](cells(block))
        return [
            *block.lines[:2],
            *("|" + "|".join(f" {c} " if c else " " for c in row) + "|" for row in rows),
        ]
    if block.kind == "console" and not {"skip", "needs"} & block.marks.keys():
        return _session(block, runner)
    with contextlib.suppress(pytest.skip.Exception):
        if block.kind != "table":
            runner.run(block)
    return list(block.lines)


def _session(block: Block, runner: Runner) -> list[str]:
    shown = []
    for command, before in commands(block):
        printed = [line.rstrip() for line in runner.outcome(command, block).splitlines()]
        same = runner.difference(before or [], printed, block) is None
        shown += [f"$ {command}", *((before or []) if same else renewed(before or [], printed))]
    return shown


def renewed(shown: list[str], printed: list[str]) -> list[str]:
    """`printed`, cut as `shown` is. `ValueError` names a shown line whose words are not printed any more."""
    if "..." not in shown:
        return printed
    found, at = [], 0
    for line in shown:
        if line != "...":
            rest = range(at, len(printed))
            place = next((n for n in rest if _words(printed[n]) == _words(line)), None)
            if place is None:
                raise ValueError(f"no longer printed, choose another line: {line}")
            line, at = printed[place], place + 1
        found.append(line)
    if difference := first_difference(found, printed):
        raise ValueError(f"lines came or went where the page has no `...`:\n{difference}")
    return found


def _words(line: str) -> str:
    """A line without its figures and the width of its columns."""
    return " ".join(FIGURE.sub("0", line).split())


def main(names: list[str]) -> None:
    paths = [Path(name).resolve() for name in names]
    for path in paths:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"  # no sweep of an earlier day answers
            renew(path)


if __name__ == "__main__":
    main(sys.argv[1:])
