# mypy: disable-error-code="no-untyped-def"
"""The sum of two vectors: what every kernel has.

A launch starts a *grid* of programs that all run the same text. `tl.program_id(0)` tells a program which one it
is; it makes the indices of its block from that, loads, computes, and stores. The last block is cut short: its
*mask* is False past the end, so that nothing outside of the vectors is touched.
"""

from __future__ import annotations

import numpy as np

from ... import simulator as sim
from ...simulator import language as tl
from ...simulator.record.run import Run
from .showing import drawn, show


@sim.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside)
    y = tl.load(y_ptr + at, mask=inside)
    tl.store(out_ptr + at, x + y, mask=inside)


def add(x: np.ndarray, y: np.ndarray, block: int = 8192) -> tuple[np.ndarray, Run]:
    """x + y, both of shape (n,) and one type."""
    out = np.empty_like(x)
    return out, add_kernel[(-(-x.size // block),)](x, y, out, x.size, BLOCK=block)


def main() -> None:
    x, y = drawn(1, 1_000_000), drawn(2, 1_000_000)
    out, run = add(x, y)
    show("x + y", out, x.astype(np.float64) + y, run)


if __name__ == "__main__":
    main()
