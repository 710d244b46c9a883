"""The command that runs the best tiling of an exploration once more, to copy and paste."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from ascendtile.reports.console import PAGE_WIDTH
from ascendtile.reports.words import clean

SETTINGS = {"dtype": "--dtype", "cube_math_type": "--cube-math-type"}
USUAL = {"cube_math_type": "KEEP_DTYPE"}


def repeating(op: str, point: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    """`ascendtile run OP ...` in lines that a shell joins.

    point: knobs, and settings where they are axes. asked: what else the sweep was started with, by name of its option
    (case, size, dtype, product, overrides, cube_math_type, option).
    """
    words = ["ascendtile", "run", op]
    settings = {n: point.get(n, asked.get(n)) for n in SETTINGS}
    knobs = {n: x for n, x in point.items() if n not in SETTINGS and x is not None}
    for flag, value in (("--case", asked.get("case")), ("--product", asked.get("product"))):
        words += [flag, str(value)] if value else []
    for n, flag in SETTINGS.items():
        words += [flag, str(settings[n])] if settings[n] not in (None, USUAL.get(n)) else []
    tables = (
        ("--size", asked.get("size")),
        ("--set", asked.get("overrides")),
        ("--option", asked.get("option")),
    )
    for flag, values in (*tables, ("--tiling", knobs)):
        words += [flag, *(f"{n}={x}" for n, x in values.items())] if values else []
    return _in_lines([shlex.quote(clean(w, 200)) for w in words])


def _in_lines(words: list[str]) -> str:
    """Words in lines that fit the page, each but the last ending in a backslash."""
    lines = [words[0]]
    for word in words[1:]:
        if len(lines[-1]) + len(word) + 3 > PAGE_WIDTH:
            lines.append("   ")
        lines[-1] += f" {word}"
    return " \\\n".join(lines)
