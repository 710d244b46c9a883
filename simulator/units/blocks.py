"""New tiles, on memory that comes back when they are gone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ._blocks import MemoryBlock

LEAST_BYTES = 1 << 16  # below this the allocator of numpy keeps memory itself


def new_tile(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array of any content, C-contiguous; as `np.empty`, but quicker for tiles that come and go."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    return (
        np.empty(shape, dtype)
        if size < LEAST_BYTES
        else np.ndarray(shape, dtype, memoryview(MemoryBlock(size)))
    )
