"""How an access to global memory becomes transfers: bursts, bytes, and whether L2 already holds them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..execution.copy import Region
from ..execution.memory import Tensor
from ..execution.values import Affine, Box
from ._touch import touch
from .geometry import BLOCK_BYTES

Count = Any  # int, or int64 array over the active programs


def element_counts(affine: Affine, mask: Any) -> tuple[Count, ...]:
    """Selected indices per axis."""
    if isinstance(mask, Box):
        return mask.counts()
    if mask is None or mask is True:
        return affine.shape
    return (
        (np.asarray(mask).astype(np.int64), *affine.shape[1:])
        if affine.shape
        else (np.asarray(mask).astype(np.int64),)
    )


def burst_elements(affine: Affine, counts: tuple[Count, ...]) -> Count:
    """Length of the contiguous runs: axes from the innermost outward while each continues where the last one ends.

    A program whose rows are cut short moves them one by one, whatever the other programs do.
    """
    run: Count = 1
    width = 1
    whole: Any = True  # whether all axes so far are complete, per program
    for stride, n, count in reversed(list(zip(affine.strides, affine.shape, counts, strict=False))):
        if n == 1:
            continue
        if not isinstance(stride, int) or abs(stride) != width:
            break
        run = run * count if whole is True else np.where(whole, run * count, run)
        whole = whole & (count == n)
        if not np.any(whole):
            break
        whole = True if np.all(whole) else whole
        width *= n
    return run


def transfer_bytes(affine: Affine, mask: Any, itemsize: int) -> tuple[Count, Count, Count]:
    """(bytes moved, bursts, elements): each burst is rounded up to a 32-byte block."""
    counts = element_counts(affine, mask)
    total: Count = 1
    for c in counts:
        total = total * c
    run = burst_elements(affine, counts)
    if isinstance(total, int) and isinstance(run, int):
        bursts: Count = total // run if run else 0
        return bursts * -(-run * itemsize // BLOCK_BYTES) * BLOCK_BYTES, bursts, total
    run = np.maximum(np.asarray(run), 1)
    bursts = np.asarray(total) // run
    return bursts * (-(-run * itemsize // BLOCK_BYTES)) * BLOCK_BYTES, bursts, np.asarray(total)


LINE_SHIFT = 9  # L2 lines of 512 bytes (CAM cache_line)
MAX_LINES = 1 << 26


MEMO = 1 << 14  # tiles of one form that are known to have been touched


class FirstTouch:
    """Which bytes of a load are read for the first time: those come from HBM, what was read before from L2.

    Kept per tensor as a map of its 512-byte lines (coarser for tensors above 32 GiB). The order of the program, and of
    programs within one instruction, stands in for the order in time; L2 forgets nothing.
    """

    def __init__(self) -> None:
        self.seen: dict[int, tuple[np.ndarray, int]] = {}
        self.touched: dict[Any, tuple[np.ndarray, np.ndarray]] = {}

    def share(self, tensor: Tensor, region: Region) -> np.ndarray:
        """Per program (or one for all alike) the part of its bytes, 0 to 1, that comes from HBM.

        A line that two neighbours share counts for neither of them: parts that differ from 0 or 1 by less than two
        lines are taken as 0 or 1.
        """
        once = np.zeros(1, np.int32)
        return self.shares([(tensor, region)], once, once.astype(np.int64), len(region.starts))[0]

    def shares(
        self, loads: list[tuple[Tensor, Region]], order: np.ndarray, rows: np.ndarray, programs: int
    ) -> list[np.ndarray]:
        """`share` of each load, for loads that are met more than once: the k-th to be met is row `rows[k]` of `programs`
        tiles of load `order[k]`. Gives one number for each tile of a load.
        """
        accesses = [self._access(tensor, region) for tensor, region in loads]
        touch(accesses, order, rows, programs)
        return [_part(new, total) for *_, new, total, _ in accesses]

    def _access(self, tensor: Tensor, region: Region) -> tuple[Any, ...]:
        """As `_touch.touch` wants it."""
        seen, shift = self._map(tensor)
        size, count = tensor.dtype.itemsize, len(region.starts)
        box = (region.strides, region.lows, region.highs)
        memo = None
        if all(len(x) == 1 for x in box):
            key = (id(tensor.whole), size, *(x.tobytes() for x in box))
            memo = self.touched.get(key)
            if memo is None:
                memo = self.touched[key] = (np.full(MEMO, -1, np.int64), np.zeros(MEMO, np.int64))
        zeros = (np.zeros(count, np.int64), np.zeros(count, np.int64))
        return (seen, shift, size, region.starts, *box, *zeros, memo)

    def _map(self, tensor: Tensor) -> tuple[np.ndarray, int]:
        tensor = tensor.whole
        found = self.seen.get(id(tensor))
        if found is None:
            size, shift = tensor.elements * tensor.dtype.itemsize, LINE_SHIFT
            while size >> shift >= MAX_LINES:
                shift += 1
            found = self.seen[id(tensor)] = (np.zeros((size >> shift) + 2, np.uint8), shift)
        return found


def _part(new: np.ndarray, total: np.ndarray) -> np.ndarray:
    part: np.ndarray = new / np.maximum(total, 1)
    part[new >= total - 2] = 1.0
    part[new <= np.minimum(2, total // 4)] = 0.0
    part[(new == 0) | (total == 0)] = 0.0
    return part
