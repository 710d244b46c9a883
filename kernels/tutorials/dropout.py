# mypy: disable-error-code="no-untyped-def"
"""Dropout that needs no mask in memory: the random numbers come from a seed and an index.

`tl.rand(seed, offsets)` is a function, not a stream: the same seed and index give the same number in every
program, in any order, on every machine. The backward pass calls it again in place of reading what the forward
pass kept. What is kept of x is divided by the probability to keep it, so that the mean stays.
"""

from __future__ import annotations

import numpy as np

from ... import simulator as sim
from ...simulator import language as tl
from ...simulator.record.run import Run
from .showing import drawn, show


@sim.jit
def dropout_kernel(x_ptr, out_ptr, n, drop, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    keep = tl.rand(seed, at) > drop
    y = tl.where(keep, x / (1 - drop), 0.0)
    tl.store(out_ptr + at, y.to(out_ptr.dtype.element_ty), mask=inside)


def dropout(x: np.ndarray, drop: float, seed: int, block: int = 2048) -> tuple[np.ndarray, Run]:
    """x (n,) with every element dropped by probability `drop`; also the gradient of x from that of the result."""
    out = np.empty_like(x)
    return out, dropout_kernel[(-(-x.size // block),)](x, out, x.size, drop, seed, BLOCK=block)


def main() -> None:
    x = drawn(1, 100_000)
    out, run = dropout(x, 0.25, seed=7)
    print(f"dropped {np.mean(out == 0):.4f} of the elements, 0.25 asked for")
    show("what is left", out, np.where(out == 0, 0, x.astype(np.float64) / 0.75), run)


if __name__ == "__main__":
    main()
