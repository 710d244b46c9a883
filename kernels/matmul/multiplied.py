"""What a matrix product multiplies: tiles cut into products in L0, as far as they are there at the edges."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ...simulator.products import Product
from ...simulator.timing.costs.cube import ITEM_BYTES, CubeCosts
from ...simulator.timing.engine.machine import wire
from ...simulator.timing.placement.layouts import align
from ..operator.tensors import Columns
from .loads import Tiles

Array = Any
Sizes = tuple[int, int, int]


@dataclass(frozen=True)
class Parts:
    """Cycles of one iteration of the sum in L0: sums over its parts, and those of the first and last part.

    reads: from the first load into L0 to the end of the last one, which waits for the product before it in its half.
    """

    mmad: float
    mte1: float
    first_a: float
    first_b: float
    last_mmad: float
    reads: float


class MultipliedCycles:
    """What is multiplied of the tiles of every point, as far as they are there.

    least: figures of `Parts` of the smallest tile's last step. mmad, mte1: cycles of all steps of that tile. all_mmads: of
    all tiles of the launch.
    """

    def __init__(self, product: Product, operand: str, points: Columns, t: Tiles) -> None:
        self.product, self.operand, self.points, self.t = product, operand, points, t
        last = np.where(t.iterations > 0, t.depth - (t.iterations - 1) * t.bk, t.bk)
        self.least = self._parts(t.rows, t.columns, last)
        whole = self._parts(t.rows, t.columns, np.minimum(t.bk, np.maximum(t.depth, 1)))
        self.mmad, self.mte1 = (self._steps(whole[x], self.least[x]) for x in ("mmad", "mte1"))
        self.all_mmads = self._all(last)

    def _steps(self, whole: Array, last: Array) -> Array:
        return np.where(self.t.iterations > 0, (self.t.iterations - 1) * whole + last, 0.0)

    def _all(self, last: Array) -> Array:
        """Tiles that are whole along M and N, along one of them, and the last one."""
        t, total = self.t, 0.0
        for rows, down in ((t.bm, t.down - 1), (t.rows, 1)):
            for columns, across in ((t.bn, t.across - 1), (t.columns, 1)):
                whole, least = (self._parts(rows, columns, k)["mmad"] for k in (t.bk, last))
                total = total + down * across * self._steps(whole, least)
        return t.split * total

    def _parts(self, *there: Array) -> dict[str, np.ndarray]:
        return _parts_of(self.product, self.operand, self.points, there)


def _parts_of(
    product: Product, operand: str, points: Columns, there: tuple[Array, Array, Array]
) -> dict[str, np.ndarray]:
    """Figures of `Parts` for every point, each different block computed once. there: what is there of it."""
    names = ("block_m", "block_n", "block_k")
    blocks = np.stack([points[n] for n in names], axis=1)
    none = np.zeros(len(blocks), np.int64)
    bases = [points.get(n, none) for n in ("base_m", "base_n", "base_k")]
    blocks = np.column_stack([blocks, *np.broadcast_arrays(*there, none)[:3], *bases])
    different, place = np.unique(blocks, axis=0, return_inverse=True)
    rows = ([int(x) for x in row] for row in different)
    found = [_parts(product, operand, (m, n, k), (i, j, q), *base) for m, n, k, i, j, q, *base in rows]
    out = {f: np.array([getattr(p, f) for p in found])[place.ravel()] for f in Parts.__dataclass_fields__}
    out["rest"] = out["mte1"] - out["first_a"] - out["first_b"]
    return out


@lru_cache(maxsize=4096)
def _parts(product: Product, operand: str, block: Sizes, there: Sizes, *base: int) -> Parts:
    """One iteration of the sum, cut into L0 tiles as the plan of a launch cuts it."""
    cube, size = CubeCosts(product), ITEM_BYTES[operand]
    cut = l0_tiles(cube, block, operand, base, there)
    a = [cube.to_l0a[0] + align(i, 16) * align(q * size, 32) / cube.to_l0a[1] for i, _, q in cut]
    b = [cube.to_l0b[0] + align(j, 16) * align(q * size, 32) / cube.to_l0b[1] for _, j, q in cut]
    m = mmad_cycles(cube, cut, operand)
    cross = wire(product, True, False).machine.cross_pipe_cycles
    waits = a[0] + b[0] + cross + sum(m[:-2]) + cross + a[-1] + b[-1] if len(cut) > 2 else 0.0
    mte1 = sum(a) + sum(b)
    return Parts(sum(m), mte1, a[0], b[0], m[-1], max(mte1, waits))


def l0_tiles(
    cube: CubeCosts, block: Sizes, operand: str, base: Sequence[int], there: Sizes | None = None
) -> list[Sizes]:
    """(m, n, k) of the products in L0 that a block is cut into; base: of a tile in L0, with a 0 in it the cube's own.

    there: rows, columns and depth that are there of the block, all of it without it.
    """
    tile = cube.l0_tile(*block, operand, (base[0], base[1], base[2]) if all(base) else None)
    edges = (tile.m, tile.n, tile.k)
    ends = (min(x, y) for x, y in zip(block, there or block, strict=True))
    parts = ([min(e, n - i) for i in range(0, n, e)] for n, e in zip(ends, edges, strict=True))
    return list(itertools.product(*parts))  # type: ignore[arg-type]


def mmad_cycles(cube: CubeCosts, cut: Iterable[tuple[int, int, int]], operand: str) -> list[float]:
    """Cycles of the Cube for each of them."""
    start = cube.startup + cube.switch
    return [start + cube.mmad_cycles(*p, operand) + cube.barrier_cycles(p[0], p[1]) for p in cut]
