"""What a matrix product multiplies: tiles cut into products in L0, as far as they are there at the edges."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ...simulator.products import Product
from ...simulator.timing.costs.cube import CubeCosts, depth_bytes, item_bytes
from ...simulator.timing.engine.machine import wire
from ...simulator.timing.placement.layouts import align
from ..operator.tensors import Columns
from .distinct import each_once
from .loads import Tiles

Array = Any
Figures = Mapping[str, np.ndarray]
Sizes = tuple[int, int, int]


@dataclass(frozen=True)
class Parts:
    """Cycles of one iteration of the sum in L0: sums over its parts, and those of the first and last part.

    reads: from the first load into L0 to the end of the last one, which waits for the product before it in its half.
    two: loads of the first two parts (of one that is alone twice), which L0 holds side by side; count: of parts.
    """

    mmad: float
    mte1: float
    first_a: float
    first_b: float
    last_mmad: float
    reads: float
    first_mmad: float
    two: float
    count: int


class MultipliedCycles:
    """What is multiplied of the tiles of every point, as far as they are there.

    whole, least: figures of `Parts` of the smallest tile's first and last step. mmad, mte1: cycles of all steps of that
    tile. all_mmads: of all tiles of the launch.
    """

    def __init__(self, product: Product, operand: str, points: Columns, t: Tiles) -> None:
        self.product, self.operand, self.points, self.t = product, operand, points, t
        self.cross = wire(product, True, False).machine.cross_pipe_cycles
        self.deep = np.where(t.iterations > 0, t.depth - (t.iterations - 1) * t.bk, t.bk)
        self.whole, self.least = self._step(t.rows, t.columns)
        self.mmad, self.mte1 = (self._steps(self.whole[x], self.least[x]) for x in ("mmad", "mte1"))
        self.all_mmads = self.of_all(self._mmads)

    def turns(self, tiles: Sequence[Array], stored: Callable[[Array, Array], Array]) -> Array:
        """Of so many tiles (see `of`), none of which begins before the one before it is stored. stored: cycles of that."""
        multiplied = np.maximum(self.of(self._mmads, tiles), self.of(self._turn_of, tiles))
        return multiplied + self.of(stored, tiles) + 2 * self.cross * sum(tiles)

    def turn(self, steps: Array, whole: Figures, last: Figures) -> Array:
        """Of a tile of so many steps, from its first product to its last one, where none of its products begins before: the
        third load into L0 waits for the first product, and the last product for all loads."""
        mmad, count = ((steps - 1) * whole[x] + last[x] for x in ("mmad", "count"))
        rest = (steps - 1) * whole["mte1"] + last["mte1"] - whole["two"]
        waits = whole["first_mmad"] + rest + 2 * self.cross + last["last_mmad"]
        return np.maximum(mmad, np.where(count > 2, waits, 0.0))

    def _steps(self, whole: Array, last: Array) -> Array:
        return np.where(self.t.iterations > 0, (self.t.iterations - 1) * whole + last, 0.0)

    def of_all(self, figure: Callable[[Array, Array], Array]) -> Array:
        """The sum of what is told for so many rows and columns, over all tiles."""
        t = self.t
        down, across = (t.down - 1, 1), (t.across - 1, 1)
        return self.of(figure, [t.split * i * j for i in down for j in across])

    def of(self, figure: Callable[[Array, Array], Array], tiles: Sequence[Array]) -> Array:
        """Over so many tiles that are whole along M and N, along M, along N, and those that are the last along both."""
        t = self.t
        sizes = [(rows, columns) for rows in (t.bm, t.rows) for columns in (t.bn, t.columns)]
        return sum(count * figure(*size) for count, size in zip(tiles, sizes, strict=True))

    def _mmads(self, rows: Array, columns: Array) -> Array:
        return self._steps(*(x["mmad"] for x in self._step(rows, columns)))

    def _turn_of(self, rows: Array, columns: Array) -> Array:
        """As `turn` of a program as all are on average: a tile with fewer parts ends where others have more to do."""
        whole, last = self._step(rows, columns)
        most = self._steps(*(x["count"] for x in self._step(self.t.bm, self.t.bn)))
        count = self._steps(whole["count"], last["count"])
        rest = self._steps(whole["mte1"], last["mte1"]) - whole["two"]
        waits = whole["first_mmad"] + np.where(count > 2, np.maximum(0.0, rest), 0.0) + 2 * self.cross
        return np.where(most > 2, waits + np.where(count == most, last["last_mmad"], 0.0), 0.0)

    def _step(self, rows: Array, columns: Array) -> tuple[Figures, Figures]:
        """Of the first and of the last step of a tile."""
        deep = np.where(self.t.iterations > 1, self.t.bk, self.deep)
        return self.parts(rows, columns, deep), self.parts(rows, columns, self.deep)

    def parts(self, *there: Array) -> dict[str, np.ndarray]:
        """Figures of `Parts` of one step of every point, of which so many rows, columns and depth are there."""
        return _parts_of(self.product, self.operand, self.points, there)


def _parts_of(
    product: Product, operand: str, points: Columns, there: tuple[Array, Array, Array]
) -> dict[str, np.ndarray]:
    """Figures of `Parts` for every point, each different block computed once. there: what is there of it."""
    names = ("block_m", "block_n", "block_k")
    bases = [points.get(n, 0) for n in ("base_m", "base_n", "base_k")]
    found, place = each_once(
        lambda m, n, k, i, j, q, *base: _parts(product, operand, (m, n, k), (i, j, q), *base),
        *(points[n] for n in names),
        *there,
        *bases,
    )
    out = {f: np.array([getattr(p, f) for p in found])[place] for f in Parts.__dataclass_fields__}
    out["rest"] = out["mte1"] - out["first_a"] - out["first_b"]
    return out


@lru_cache(maxsize=4096)
def _parts(product: Product, operand: str, block: Sizes, there: Sizes, *base: int) -> Parts:
    """One iteration of the sum, cut into L0 tiles as the plan of a launch cuts it."""
    cube, size = CubeCosts(product), item_bytes(operand)
    cut = l0_tiles(cube, block, operand, base, there)
    a = [cube.to_l0a[0] + align(i, 16) * depth_bytes(q, size) / cube.to_l0a[1] for i, _, q in cut]
    b = [cube.to_l0b[0] + align(j, 16) * depth_bytes(q, size) / cube.to_l0b[1] for _, j, q in cut]
    m = mmad_cycles(cube, cut, operand)
    cross = wire(product, True, False).machine.cross_pipe_cycles
    waits = a[0] + b[0] + cross + sum(m[:-2]) + cross + a[-1] + b[-1] if len(cut) > 2 else 0.0
    mte1, two = sum(a) + sum(b), a[0] + b[0] + a[1 % len(a)] + b[1 % len(b)]
    return Parts(sum(m), mte1, a[0], b[0], m[-1], max(mte1, waits), m[0], two, len(cut))


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
