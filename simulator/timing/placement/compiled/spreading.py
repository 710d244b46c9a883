"""How the padding of strided elements spreads over the operations of UB (9.3, 9.4).

AscendNPU-IR, lib/Dialect/HIVM/Transforms/AlignBuffer/{MarkStrideAlign,EnableStrideAlign}.cpp: all operands of an operation
take the union of their paddings, forwards and backwards, through element-wise operations, broadcasts and reductions. It
passes no load, no store and no product.
"""

from __future__ import annotations

from itertools import permutations

from ..memory_spaces import UB
from .tiles import SCRATCH, BufferStep, PlannedTile

TRANSFERS = ("load", "store", "atomic", "dot", "move", "from_l1", "alloc")
MIXING = (
    "reshape",
    "gather",
    "sort",
    "permute",
    "cat",
    "slice",
    "custom",
    "histogram",
)  # axes do not stay what they are


def spread(steps: list[BufferStep]) -> None:
    """Marks the axes of all tiles that lie in blocks because others do, and tiles whose axes stay apart (9.2, 9.3)."""
    mixed = [[t for t in (*s.reads, *s.writes) if _padded(t)] for s in steps if _passes(s)]
    chains = [tiles for tiles in mixed if len(tiles) > 1]
    changed = any(t.spread for tiles in chains for t in tiles)
    while changed:
        changed = any([_joined(a, b) for tiles in chains for a, b in permutations(tiles, 2)])
    wide = [[t for t in tiles if sum(n > 1 for n in t.shape) > 1] for tiles in chains]
    while any([_masked(tiles) for tiles in wide]):
        pass


def _masked(tiles: list[PlannedTile]) -> bool:
    """What is worked on with a tile whose rows are moved with a mask keeps its axes apart, too; whether that is news."""
    news = any(t.masked for t in tiles) and not all(t.masked for t in tiles)
    for t in tiles if news else ():
        t.masked = True
    return news


def _passes(s: BufferStep) -> bool:
    return s.op.kind not in TRANSFERS and s.op.kind not in MIXING


def _padded(t: PlannedTile) -> bool:
    return t.space == UB and t.why != SCRATCH


def _joined(a: PlannedTile, b: PlannedTile) -> bool:
    """Gives b the paddings of a; whether that is news."""
    axes = same_axes(a.shape, b.shape)
    more = {axes[k] for k in a.spread if k in axes} - b.spread
    b.spread |= more
    return bool(more)


def same_axes(one: tuple[int, ...], other: tuple[int, ...]) -> dict[int, int]:
    """Which axis of the other tile each axis of one is: by place where the ranks are equal, else by length, in order."""
    if len(one) == len(other):
        return {k: k for k, (m, n) in enumerate(zip(one, other, strict=True)) if m == n > 1}
    if len(one) > len(other):
        return {b: a for a, b in same_axes(other, one).items()}
    found: dict[int, int] = {}
    at = 0
    for k, n in enumerate(one):
        while at < len(other) and (n == 1 or other[at] != n):
            at += 1
        if at < len(other):
            found[k] = at
            at += 1
    return found
