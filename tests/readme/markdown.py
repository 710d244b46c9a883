"""What a README asks of its reader, in order: commands, sessions, Python and tables, each with the marks before it.

    ```sh        commands, one a line; each has to succeed
    ```console   `$ command`, and under it what it prints: `...` on a line of its own stands for any lines
    ```python    a block; names of earlier blocks are there
    ```csv       a table that a later command reads; it has the mark `file`
    ```json      likewise, what a later command or another program reads

A mark is an HTML comment on the lines before, which a reader of the page does not see: `<!-- needs: torch -->`. MARKS says
which there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

KINDS = ("sh", "console", "python", "csv", "json")
MARKS = {
    "needs": None,  # modules that an extra brings: runs where they are installed
    "file": None,  # the block is kept as this file and not run; a later command does
    "status": ("1", "2"),  # the exit status of each command, where it is not 0
    "checked": None,  # a table: the function of tables.py that gives its rows anew
    "exhaustive": None,  # why it takes long: runs with the exhaustive tests only
    "varies": ("host time",),  # figures that are different on every machine
    "skip": ("set-up", "runs the tests", "a server", "a board's profile"),  # why no test can run it
}
FENCE = re.compile(r"^( *)```(\w*)\s*$")
MARK = re.compile(r"^ *<!-- *([\w-]+): *(.*?) *-->$")


@dataclass(frozen=True)
class Block:
    """One thing to check. kind: one of KINDS, or "table"; line: of its first line in the file, from 1."""

    kind: str
    lines: tuple[str, ...]
    line: int
    marks: dict[str, str]

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    @property
    def name(self) -> str:
        return f"line {self.line}: {self.lines[0].strip()[:60] if self.lines else self.kind}"


def read(path: Path) -> list[Block]:
    """All blocks of a file. `ValueError` names the line of a fence or of a mark that is not known."""
    return list(_blocks(path.read_text().splitlines()))


def _blocks(lines: list[str]) -> Iterator[Block]:
    marks: dict[str, str] = {}
    at = 0
    while at < len(lines):
        first = at + 1
        if found := MARK.match(lines[at]):
            marks |= {_mark(*found.groups(), first): found[2]}
        elif fence := FENCE.match(lines[at]):
            at = _end(lines, first)
            yield _fenced(fence, lines[first:at], first + 1, marks)
            marks = {}
        elif lines[at].startswith("|"):
            while at + 1 < len(lines) and lines[at + 1].startswith("|"):
                at += 1
            yield Block("table", tuple(lines[first - 1 : at + 1]), first, marks)
            marks = {}
        elif lines[at].strip() and marks:
            raise ValueError(f"line {first}: the marks {marks} stand before no block")
        at += 1


def _mark(name: str, value: str, line: int) -> str:
    if name not in MARKS or (MARKS[name] and value not in (MARKS[name] or ())):
        raise ValueError(f"line {line}: mark {name}: {value} is none of {MARKS}")
    return name


def _end(lines: list[str], first: int) -> int:
    for at in range(first, len(lines)):
        if lines[at].strip() == "```":
            return at
    raise ValueError(f"line {first}: the block has no end")


def _fenced(fence: re.Match[str], inside: list[str], line: int, marks: dict[str, str]) -> Block:
    if fence[2] not in KINDS:
        raise ValueError(f"line {line - 1}: a block is one of {KINDS}, got {fence[2]!r}")
    if fence[2] in ("csv", "json") and "file" not in marks:
        raise ValueError(f"line {line - 1}: {fence[2]} is kept as a file: give it the mark file")
    return Block(fence[2], tuple(text.removeprefix(fence[1]) for text in inside), line, marks)


def commands(block: Block) -> Iterator[tuple[str, list[str] | None]]:
    """Each command of a sh or console block, with the lines that it is to print (None: not said)."""
    if block.kind == "sh":
        joined = block.text.replace("\\\n", " ").splitlines()
        yield from ((line, None) for line in joined if line.strip() and not line.startswith("#"))
        return
    printed: list[str] = []
    command = ""
    for line in (*block.lines, "$ "):
        if line.startswith("$ "):
            if command:
                yield command, printed
            command, printed = line[2:], []
        else:
            printed.append(line)


def cells(block: Block) -> list[list[str]]:
    """The rows of a table below its heading."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in block.lines[2:]]
