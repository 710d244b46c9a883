"""The command that runs the best tiling of an exploration once more, to copy and paste."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from ..facts.repeat_command import USUAL, flag_words
from ..facts.words import clean
from ..terminal.console import PAGE_WIDTH

SETTINGS = {"dtype": "--dtype", "cube_math_type": "--cube-math-type"}


def repeating(op: str, point: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    """`ascendtile run OP ...` in lines that a shell joins.

    point: knobs, and settings where they are axes. asked: what else the sweep was started with, by name of its option
    (case, size, dtype, product, overrides, cube_math_type, options).
    """
    words = ["ascendtile", "run", op]
    settings = {n: point.get(n, asked.get(n)) for n in SETTINGS}
    knobs = {n: x for n, x in point.items() if n not in SETTINGS and x is not None}
    found = {
        "--case": asked.get("case"),
        "--product": asked.get("product"),
        **{flag: settings[n] for n, flag in SETTINGS.items() if settings[n] != USUAL.get(n)},
        "--size": asked.get("size"),
        "--set": asked.get("overrides"),
        "--option": asked.get("options"),
        "--tiling": knobs,
    }
    for flag, value in found.items():
        words += flag_words(flag, value)
    return _in_lines([shlex.quote(clean(w, 200)) for w in words])


def _in_lines(words: list[str]) -> str:
    """Words in lines that fit the page, each but the last ending in a backslash."""
    lines = [words[0]]
    for word in words[1:]:
        if len(lines[-1]) + len(word) + 3 > PAGE_WIDTH:
            lines.append("   ")
        lines[-1] += f" {word}"
    return " \\\n".join(lines)
