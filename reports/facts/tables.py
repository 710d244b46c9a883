"""Rows by column name as the text of a table: CSV with every figure, LaTeX and Markdown for a paper or a page."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

Rows = Sequence[Mapping[str, Any]]
_ESCAPED = {c: f"\\{c}" for c in "&%$#_{}"} | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_ESCAPED |= {"\\": r"\textbackslash{}", "|": r"\textbar{}", "<": r"\textless{}", ">": r"\textgreater{}"}


def as_csv(rows: Rows, columns: Sequence[str]) -> str:
    """All digits; nothing for None."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(["" if r.get(n) is None else str(r[n]) for n in columns] for r in rows)
    return out.getvalue()


def as_markdown(rows: Rows, columns: Sequence[str]) -> str:
    """A table of pipes, columns of numbers flushed right."""
    right = numeric(rows, columns)
    cells = [[re.sub(r"([|\\])", r"\\\1", shown(r.get(n))) for n in columns] for r in rows]
    lines = [columns, ["---:" if n in right else "---" for n in columns], *cells]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def as_latex(rows: Rows, columns: Sequence[str]) -> str:
    """A tabular with the rules of booktabs."""
    right = numeric(rows, columns)
    form = "".join("r" if n in right else "l" for n in columns)
    lines = [[latex(n) for n in columns], *([latex(shown(r.get(n))) for n in columns] for r in rows)]
    head, *body = [" & ".join(line) + " \\\\\n" for line in lines]
    parts = (f"\\begin{{tabular}}{{{form}}}\n\\toprule\n", head, "\\midrule\n", *body)
    return "".join((*parts, "\\bottomrule\n\\end{tabular}\n"))


def numeric(rows: Rows, columns: Sequence[str]) -> set[str]:
    """Columns that hold numbers, and nothing else."""
    held = {n: [r[n] for r in rows if r.get(n) is not None] for n in columns}
    kinds = int | float
    return {n for n, xs in held.items() if xs and all(isinstance(x, kinds) and x is not True for x in xs)}


def shown(x: Any) -> str:
    """A cell: figures with four digits, yes and no, a dash for nothing."""
    if x is None or x == "":
        return "-"
    if isinstance(x, bool):
        return "yes" if x else "no"
    return f"{x:.4g}" if isinstance(x, float) else str(x)


def latex(text: str) -> str:
    """What LaTeX prints as this text."""
    return "".join(_ESCAPED.get(c, c) for c in text)
