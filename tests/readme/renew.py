"""Writes the checked tables of README files anew: `python -m tests.readme.renew README.md` at the root; read the diff."""

from __future__ import annotations

import sys
from pathlib import Path

from .markdown import cells, read
from .tables import CHECKS


def renew(path: Path) -> None:
    lines = path.read_text().splitlines()
    for block in read(path):
        if "checked" in block.marks:
            rows = CHECKS[block.marks["checked"]](cells(block))
            below = block.line + 1  # the heading and the line under it stay
            lines[below : below + len(rows)] = [
                "|" + "|".join(f" {cell} " if cell else " " for cell in row) + "|" for row in rows
            ]
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        renew(Path(name))
