"""`tl.device_print`: the lines that programs print."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..ir.program import Op, Value
from ..precision.dtypes import DType

MOST_PRINTED = 1000  # lines of one print in one launch


def print_values(
    op: Op, tiles: list[np.ndarray], active: np.ndarray, grid: tuple[int, int, int], printed: dict[int, int]
) -> None:
    """Print each element of each value for each active program, until the launch has printed enough at this place.

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
    prefix = op.attrs["prefix"]
    for k, number in enumerate(active):
        pid = _pid(int(number), grid)
        if not tiles:
            yield f"pid {pid} {prefix}"
        for which, (v, tile) in enumerate(zip(op.args, tiles, strict=True)):
            assert v is not None
            operand = f" (operand {which})" if len(tiles) > 1 else ""
            for index, x in np.ndenumerate(tile[k if tile.shape[0] > 1 else 0]):
                yield f"pid {pid} idx {_index(index)} {prefix}{operand}: {_text(x, v, op.attrs['hex'])}"


def _pid(number: int, grid: tuple[int, int, int]) -> str:
    gx, gy, _ = grid
    return f"({number % gx}, {number // gx % gy}, {number // (gx * gy)})"


def _index(index: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, index))})"


def _text(x: Any, v: Value, hexadecimal: bool) -> str:
    assert isinstance(v.dtype, DType) or v.is_pointer
    if not isinstance(v.dtype, DType) or v.dtype.is_floating() or v.dtype.is_bool():
        return str(x)
    bits = v.dtype.bits
    return f"0x{int(x) & ((1 << bits) - 1):0{bits // 4}x}" if hexadecimal else str(x)
