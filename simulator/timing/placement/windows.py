"""Windows of an image in L1 on their way to L0 (LoadData3D), and what their shape costs.

A fractal is 16 positions of 32 bytes. Cycles of one, for positions that lie s apart and are of n rows (DOC LoadData3D, Cube
theoretical performance of the 2201 page: 512 bytes over these are the rates given there):

    to L0A  2 s, with n > 1  2 s + n      s = 1, 2, 4, 8; at most 16 for s = 1, and 16 for any other s
    to L0B  two more

The products' figures are those of s = 1 and n = 1, so that a window takes as many times longer.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from ...ir.program import Op
from .layouts import FRACTAL

EVEN_STRIDES = (1, 2, 4, 8)
MOST_CYCLES = 16  # of a fractal to L0A
MORE_TO_L0B = 2


class Window(NamedTuple):
    """rows of positions, each of `row` ones that lie `stride` apart in the image."""

    rows: int
    row: int
    stride: int

    def slowdown(self, more: int) -> float:
        """Times that a fractal takes of one whose positions lie side by side. more: MORE_TO_L0B, or 0 to L0A."""
        return _mean_cycles(self.rows * self.row, self.row, self.stride, more) / (2 + more)


SIDE_BY_SIDE = Window(1, 1, 1)


@cache
def _mean_cycles(positions: int, row: int, stride: int, more: int) -> float:
    """Of all fractals of a window."""
    starts = range(0, positions, FRACTAL)
    met = ((min(k + FRACTAL, positions) - 1) // row - k // row + 1 for k in starts)
    return sum(fractal_cycles(stride, n) for n in met) / len(starts) + more


def fractal_cycles(stride: int, rows: int) -> int:
    """Cycles to L0A of 16 positions that lie `stride` apart and are of so many rows."""
    if stride not in EVEN_STRIDES:
        return MOST_CYCLES
    cycles = 2 * stride + (rows if rows > 1 else 0)
    return min(cycles, MOST_CYCLES) if stride == 1 else cycles


def window_of(op: Op) -> Window | None:
    """How the positions of a slice or of `img2col` lie in L1; None if they lie side by side, as a part of the tile."""
    if op.kind == "img2col":
        _, down, across, _ = op.attrs["sizes"]
        return Window(op.attrs["sizes"][0] * down, across, op.attrs["steps"][1])
    if op.kind != "extract_slice" or not _is_gathered(op):
        return None
    sizes, row = op.attrs["sizes"], op.attrs["sizes"][-2]
    rows = 1
    for n in sizes[:-2]:
        rows *= n
    return Window(rows, row, max(1, op.attrs["strides"][-2]))


def _is_gathered(op: Op) -> bool:
    """Whether the rows of a slice lie apart in L1, so that it takes LoadData3D; else it is a part of the tile."""
    full, sizes = op.args[0], op.attrs["sizes"]
    assert full is not None
    inner = next((k for k, n in enumerate(sizes) if n > 1), len(sizes))
    even = op.attrs["strides"][inner : inner + 1] in ((), (1,), [1])
    return not even or tuple(sizes[inner + 1 :]) != tuple(full.shape[inner + 1 :])
