"""The command that runs the best tiling of an exploration once more, to copy and paste."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from ..facts.repeat_command import USUAL, flag_arguments
from ..facts.texts import clean
from ..terminal.console import PAGE_WIDTH

SETTINGS = {"dtype": "--dtype", "cube_math_type": "--cube-math-type"}


def repeating(op: str, point: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    """`ascendtile run OP ...` in lines that a shell joins.

    point: knobs, and settings where they are axes. asked: what else the sweep was started with, by name of its option
    (case, size, dtype, product, overrides, cube_math_type, options).
    """
    arguments = ["ascendtile", "run", op]
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
        arguments += flag_arguments(flag, value)
    return _in_lines([shlex.quote(clean(w, 200)) for w in arguments])


def _in_lines(arguments: list[str]) -> str:
    """Arguments in lines that fit the page, each but the last ending in a backslash."""
    lines = [arguments[0]]
    for argument in arguments[1:]:
        if len(lines[-1]) + len(argument) + 3 > PAGE_WIDTH:
            lines.append("   ")
        lines[-1] += f" {argument}"
    return " \\\n".join(lines)
