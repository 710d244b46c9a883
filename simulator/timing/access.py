"""How an access to global memory becomes transfers: bursts, bytes, and whether L2 already holds them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..execution.memory import Tensor
from ..execution.values import Affine, Box
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
    """Length of the contiguous runs: axes from the innermost outward while each continues where the last one ends."""
    run: Count = 1
    width = 1
    for stride, n, count in reversed(list(zip(affine.strides, affine.shape, counts, strict=False))):
        if n == 1:
            continue
        if not isinstance(stride, int) or abs(stride) != width:
            break
        run = run * count
        if not (isinstance(count, int) and count == n):
            break
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


class FirstTouch:
    """Which programs are the first to read an address: they read from HBM, the others from L2.

    Addresses are told apart by where an access starts; the order of programs stands in for the order in time. A
    kernel whose tensors are larger than L2 keeps only what it reads again at the very same place.
    """

    def __init__(self) -> None:
        self.seen: dict[int, set[int]] = {}
        self.seen_rows: set[tuple[int, bytes]] = set()

    def first(self, tensor: Tensor, base: Any, programs: int) -> np.ndarray | bool:
        """True: all read from HBM; False: all from L2; else one truth value per program."""
        seen = self.seen.setdefault(id(tensor), set())
        if not isinstance(base, np.ndarray):
            new = int(base) not in seen
            seen.add(int(base))
            if not new or programs == 1:
                return new
            out = np.zeros(programs, bool)
            out[0] = True
            return out
        key = (id(tensor), base.tobytes())
        if key in self.seen_rows:
            return False
        self.seen_rows.add(key)
        return self._rows(seen, base)

    def _rows(self, seen: set[int], base: np.ndarray) -> np.ndarray | bool:
        places = base.tolist()
        fresh_set = set(places)
        if len(fresh_set) == len(places) and fresh_set.isdisjoint(seen):
            seen |= fresh_set
            return True
        values, first = np.unique(base, return_index=True)
        out = np.zeros(len(base), bool)
        fresh = [i for v, i in zip(values.tolist(), first.tolist(), strict=True) if v not in seen]
        out[fresh] = True
        seen.update(values.tolist())
        return True if out.all() else out if out.any() else False
