"""Runs a kernel over values only and hands its output back."""

from __future__ import annotations

from typing import Any

import numpy as np

import ascendtile.simulator as sim


def output(kernel: Any, size: int, *args: Any, programs: int = 1, dtype: Any = np.float32, **kw: Any) -> Any:
    """What `kernel(out, *args)` leaves in an output of `size` elements that was full of -7."""
    out = np.full(size, -7, dtype)
    with sim.device(time=False):
        kernel[(programs,)](out, *args, **kw)
    return out
