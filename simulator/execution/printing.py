"""`tl.device_print`: the lines that programs print."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..ir.program import Op, Value
from ..precision.dtypes import DType

MOST_PRINTED = 1000  # lines of one print in one launch, and elements of a line
SMALL = 1e-3  # what is below has an exponent


def print_values(
    op: Op, tiles: list[np.ndarray], active: np.ndarray, grid: tuple[int, int, int], printed: dict[int, int]
) -> None:
    """Print each value for each active program, until the launch has printed enough at this place.

    tiles: (P or 1, *shape) each. printed: lines so far by operation; kept from chunk to chunk.
    """
    for line in _lines(op, tiles, active, grid):
        done = printed.get(op.id, 0)
        if done >= MOST_PRINTED:
            if done == MOST_PRINTED:
                place = f"{op.loc.file}:{op.loc.line}"
                print(f"... {place}: more than {MOST_PRINTED} lines; this print says no more in this launch")
            printed[op.id] = done + 1
            return
        printed[op.id] = done + 1
        print(line)


def _lines(op: Op, tiles: list[np.ndarray], active: np.ndarray, grid: tuple[int, int, int]) -> Iterator[str]:
    """One for each row of each tile of each program."""
    for k, number in enumerate(active):
        head = f"pid {_pid(int(number), grid)}"
        if not tiles:
            yield f"{head} {op.attrs['prefix']}"
        for which, (v, tile) in enumerate(zip(op.args, tiles, strict=True)):
            assert v is not None
            what = op.attrs["prefix"] + (f" (operand {which})" if len(tiles) > 1 else "")
            x = tile[k if tile.shape[0] > 1 else 0]
            for outer in np.ndindex(x.shape[:-1]):
                place = f" idx ({', '.join(map(str, outer))}, :)" if outer else ""
                yield f"{head}{place} {what}: {_row(x[outer], v, op.attrs['hex'])}"


def _pid(number: int, grid: tuple[int, int, int]) -> str:
    gx, gy, _ = grid
    return f"({number % gx}, {number // gx % gy}, {number // (gx * gy)})"


def _row(x: np.ndarray, v: Value, hexadecimal: bool) -> str:
    """The elements of a row in brackets, or a scalar."""
    shown = [_text(element, v, hexadecimal) for element in np.atleast_1d(x)[:MOST_PRINTED]]
    if not x.ndim:
        return shown[0]
    left = x.size - len(shown)
    return f"[{','.join(shown)}{f',... {left} more' if left else ''}]"


def _text(x: Any, v: Value, hexadecimal: bool) -> str:
    """An element as the device prints it (AscendNPU-IR, lib/Template/lib/Debug), but for digits that it would lose."""
    if not isinstance(v.dtype, DType):
        return str(x)
    if v.dtype.is_bool():
        return "T" if x else "F"
    if v.dtype.is_floating():
        return f"{float(x):.6e}" if 0 < abs(x) < SMALL else f"{float(x):.6f}"
    bits = v.dtype.bits
    return f"0x{int(x) & ((1 << bits) - 1):0{bits // 4}x}" if hexadecimal else str(x)
