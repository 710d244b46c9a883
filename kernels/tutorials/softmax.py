# mypy: disable-error-code="no-untyped-def"
"""Softmax of rows in one kernel: read once, written once.

Five operations on a whole array would carry it through memory five times; here a row stays in UB from load to
store. The row is padded with minus infinity, which is no maximum and whose exponential is zero. There are as
many programs as vector cores, and each takes every n-th row: while it computes one, the next is on its way (the
simulator gives a tile that is loaded in a loop two buffers).
"""

from __future__ import annotations

import numpy as np

from ... import simulator as sim
from ...simulator import language as tl
from ...simulator.record.run import Run
from .showing import drawn, show


@sim.jit
def softmax_kernel(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    inside = column < columns
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * columns + column, mask=inside, other=-float("inf")).to(tl.float32)
        e = tl.exp(x - tl.max(x, axis=0))
        y = e / tl.sum(e, axis=0)
        tl.store(out_ptr + row * columns + column, y.to(out_ptr.dtype.element_ty), mask=inside)


def softmax(x: np.ndarray, programs: int = 40) -> tuple[np.ndarray, Run]:
    """Of each row of x (rows, columns); a row must fit in UB."""
    rows, columns = x.shape
    out = np.empty_like(x)
    block = 1 << (columns - 1).bit_length()
    return out, softmax_kernel[(min(rows, programs),)](x, out, rows, columns, BLOCK=block)


def reference(x: np.ndarray) -> np.ndarray:
    """In float64."""
    wide = x.astype(np.float64)
    e = np.exp(wide - wide.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def main() -> None:
    x = drawn(1, 1823, 781)
    out, run = softmax(x)
    show("softmax", out, reference(x), run)


if __name__ == "__main__":
    main()
