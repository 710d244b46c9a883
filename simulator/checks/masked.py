"""Masked-out lanes whose addresses lie outside of the memory of their argument: legal in Triton, a risk on Ascend.

What the device does, as far as it is known:

- A mask that is no plain range: the compiler for Ascend loads all lanes and selects; a store becomes load, select, store.
- A plain range: rows are copied as far as the mask goes, so the ordinary tail of a block is not touched. But masked-out
  lanes in front of a tensor were seen to be read (triton-ascend issue 2332: a fault of the memory unit).

So a range is told of where lanes lie in front of the memory, or a block or more behind it. The memory of an argument is the
whole array (or torch storage) that it is a view of: that is mapped. What lies behind it, another argument perhaps, is up to
the allocator.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..interpreter.faults import place
from ..interpreter.regions import AccessRegion, ElementAddresses
from ..interpreter.tensors import Tensor, past_torch_modes
from ..interpreter.values import Affine, Box
from ..messages import Message, note
from .access import Access, Watcher

EVERY_LANE = (
    "the compiler for Ascend reads all lanes where a mask is no plain range, and such an address can stop the core; keep "
    "masked-out offsets inside, e.g. tl.where(mask, offsets, 0)"
)
SEEN = (
    "the compiler for Ascend was seen to read masked-out lanes (triton-ascend issue 2332), and an address that is not "
    "mapped stops the core; choose block and strides so that the tile stays near the tensor, or take "
    "tl.where(mask, offsets, 0), which costs a discrete access"
)


class MaskedLanes(Watcher):
    """Looks at the masked loads and stores of a launch; has a sentence for each operation with such lanes."""

    def __init__(self) -> None:
        self.told: dict[int, Message] = {}

    def access(self, a: Access) -> None:
        if a.mask is None or a.op.id in self.told:
            return
        if a.where is not None:
            if a.what in ("load", "store") and isinstance(a.mask, np.ndarray):
                self._elements(a, a.where)
        elif a.region is not None and a.what == "load" and isinstance(a.mask, Box):
            self._box(a, a.region, a.mask)

    def found(self) -> tuple[Message, ...]:
        return tuple(self.told.values())

    def _box(self, a: Access, region: AccessRegion, mask: Box) -> None:
        """A load of a regular tile under a range."""
        tensor = a.tensor
        if region.full or not region.rank:
            return
        if len(region.strides) == 1 and _near(region, tensor.elements):
            return
        reach = region.strides * (region.shape - 1)
        first = region.starts + np.minimum(reach, 0).sum(axis=1)
        last = region.starts + np.maximum(reach, 0).sum(axis=1)
        low, high = mapped(tensor)
        far = np.flatnonzero((first < low) | (last >= high + _block(region, high - low)))
        if len(far):
            affine = a.offsets if isinstance(a.offsets, Affine) else Affine(a.offsets, (), ())
            p = far[:1]
            at = (affine if region.programs == 1 else affine.take(p)).elements()[0] + tensor.origin
            chosen = _of_program(mask, p).dense()[0]
            name = a.site.program(a.programs[p[0]])
            self._tell(a, at[~chosen], (low, high), f"a load in {name}", SEEN)

    def _elements(self, a: Access, where: ElementAddresses) -> None:
        """A load or a store under a mask of elements."""
        first = where.masked_far(a.tensor)
        if first < 0:
            return
        rows = max(1, where.shape[0])
        p = first // (len(where.at) // rows)
        out = where.at[where.chosen == 0]
        program = a.site.program(a.programs[p if rows > 1 else 0])
        self._tell(a, out, mapped(a.tensor), f"a {a.what} ({program} is the first)", EVERY_LANE)

    def _tell(self, a: Access, at: np.ndarray, bounds: tuple[int, int], what: str, why: str) -> None:
        op, tensor, (low, high) = a.op, a.tensor, bounds
        outside = at[(at < low) | (at >= high)]
        if not len(outside):
            return
        before, behind = low - int(outside.min()), int(outside.max()) - high + 1
        far = [f"{before} elements before its start"] if before > 0 else []
        far += [f"{behind} elements beyond its end"] if behind > 0 else []
        self.told[op.id] = note(
            f"{len(outside)} masked-out lanes of {what} point outside of {tensor.name!r} "
            f"(element {int(outside[0]) - tensor.origin}), up to {' and '.join(far)}: legal here, but {why}",
            place(op),
        )


def _near(region: AccessRegion, elements: int) -> bool:
    """Whether no tile lies in front of the window or a block behind it; for strides that all programs share, fast."""
    first, last, block = int(region.starts.min()), int(region.starts.max()), 1
    for s, n in zip(region.strides[0].tolist(), region.shape.tolist(), strict=True):
        first += min(s, 0) * (n - 1)
        last += max(s, 0) * (n - 1)
        block += abs(s) * (n - 1) if abs(s) <= elements else 0
    return first >= 0 and last < elements + block


def _block(region: AccessRegion, elements: int) -> np.ndarray:
    """Elements from the first to the last of the tile, without axes whose step leads to no other row of the memory."""
    steps = np.abs(region.strides)
    return np.asarray((np.where(steps <= elements, steps, 0) * (region.shape - 1)).sum(axis=1) + 1)


def _of_program(mask: Box, p: np.ndarray) -> Box:
    """The mask of one program."""

    def one(ends: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(e[p] if isinstance(e, np.ndarray) and len(e) > 1 else e for e in ends)

    return Box(one(mask.lows), one(mask.highs), mask.shape)


def mapped(tensor: Tensor) -> tuple[int, int]:
    """First and behind-last element of the memory that the tensor is a view of, counted as its window's elements."""
    low = high = tensor.address
    high += tensor.elements * tensor.dtype.itemsize
    owner: Any = tensor.window
    while owner is not None:
        if isinstance(owner, np.ndarray):
            start, size = owner.ctypes.data, owner.nbytes if owner.flags.forc else 0
        elif hasattr(owner, "untyped_storage"):  # a torch tensor
            with past_torch_modes():
                storage = owner.untyped_storage()
                start, size = storage.data_ptr(), storage.nbytes()
        else:
            start, size = low, 0
        if size:
            low, high = min(low, start), max(high, start + size)
        owner = getattr(owner, "base", None)
    itemsize = tensor.dtype.itemsize
    return -((tensor.address - low) // itemsize), (high - tensor.address) // itemsize
