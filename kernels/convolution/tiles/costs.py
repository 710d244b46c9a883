"""Cycles of the tiles of both gradients by a rough count, for the choice of a tiling: which of three pipes is the longest.

For each step: loads from L2 (bytes, rows, and cores that read the same address one after the other), loads to L0, products.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product as combinations
from math import prod
from typing import Any

import numpy as np

from ....simulator.products import Product
from ....simulator.timing.costs.cube import CubeCosts
from ...operator.layout import even_part, up
from ..geometry import Geometry, Merging, Phase

NOT_HIDDEN = 0.05  # part of shorter pipes that the longest does not hide
ITEM_CYCLES = 400  # of starting a tile
CONGESTION = 1.5  # cores that start apart come together in part: what that adds to reads of the same address
RELOADED = 1.15  # what short steps and a launch apart from grad_weight add where taps are loaded one by one
DRAIN_RATE = 100  # bytes per cycle from L0C into memory
MOST_POSITIONS = 512  # of a step of grad_weight
Tile = tuple[int, int, int]  # images, rows, columns


@dataclass(frozen=True)
class Rates:
    """What a product does in a cycle, and the type that its Cube multiplies."""

    product: Product
    operand: str
    itemsize: int
    cores: int
    known: dict[tuple[int, int, int], tuple[float, float, float, bool]] = field(default_factory=dict)

    @cached_property
    def same_address(self) -> float:
        return self.product.number("l2.same_address_bytes_per_cycle")

    @cached_property
    def cube(self) -> CubeCosts:
        return CubeCosts(self.product)

    @cached_property
    def load(self) -> float:
        path = "path.gm_to_l1_nd2nz"
        fast = f"{path}.l2_hit_bytes_per_cycle"
        return self.product.number(fast if self.product.has(fast) else f"{path}.bytes_per_cycle")

    @cached_property
    def row(self) -> float:
        key = "path.gm_to_l1_nd2nz.row_cycles"
        return self.product.number(key) if self.product.has(key) else 0.0

    @cached_property
    def c0(self) -> int:
        return 32 // self.itemsize

    def products(self, m: int, n: int, k: int, times: int = 1, kept: bool = False) -> tuple[float, float]:
        """(cycles of M, of MTE1) for `times` products of one left and as many right operands."""
        multiply, rows, columns, single = self._product(m, n, k)
        return times * multiply, times * columns + (1 if kept and single else times) * rows

    def _product(self, m: int, n: int, k: int) -> tuple[float, float, float, bool]:
        """(cycles of M, of loads of either operand, whether one L0 tile holds it) of one product."""
        found = self.known.get((m, n, k))
        if found is None:
            cube, size = self.cube, self.itemsize
            tile = cube.l0_tile(m, n, k, self.operand)
            parts = -(-m // tile.m) * -(-n // tile.n) * -(-k // tile.k)
            m1, n1, k1 = min(m, tile.m), min(n, tile.n), min(k, tile.k) * size
            each = cube.startup + cube.switch + cube.barrier_cycles(m1, n1)
            multiply = cube.mmad_cycles(m, n, k, self.operand) + parts * each
            rows, columns = (
                cube.load_cycles(path, x, k1, False) * parts
                for path, x in ((cube.to_l0a, m1), (cube.to_l0b, n1))
            )
            found = self.known[m, n, k] = multiply, rows, columns, parts == 1
        return found

    def loads(self, shares: Sequence[tuple[float, float]], bursts: float) -> float:
        """Cycles of MTE2 for (bytes, cores that read them at the same time) and rows."""
        congested = sum(CONGESTION * size * cores / self.same_address for size, cores in shares if cores > 1)
        return max(sum(size for size, _ in shares) / self.load, bursts * self.row, congested)


def overlapped(*pipes: float) -> float:
    """Time of pipes that work at the same time."""
    longest = max(pipes)
    return longest + NOT_HIDDEN * (sum(pipes) - longest)


@dataclass(frozen=True)
class Image:
    """What grad_input is cut from: channels and the length of their sums, positions of a phase, phases."""

    geometry: Geometry
    channels: int
    depth: int
    groups: int
    rows: bool = False

    @classmethod
    def of(cls, g: Geometry, m: Merging, rows: bool = False) -> Image:
        """rows: it is stored as rows of channels first, whatever its phases are."""
        channels, depth = (m.narrow, m.wide) if g.transposed else (m.wide, m.narrow)
        return cls(g, channels, depth, m.count, rows)

    @property
    def channels_last(self) -> bool:
        """Whether grad_input is stored as rows of channels first: its phases lie apart in memory, or it has a bias."""
        return self.geometry.strided_gather or self.rows

    @cached_property
    def phases(self) -> tuple[tuple[Phase, ...], ...]:
        """Of D, H and W."""
        return self.geometry.phases

    @cached_property
    def counts(self) -> tuple[int, ...]:
        g = self.geometry
        sizes = g.narrow_sizes if g.transposed else g.wide_sizes
        steps = (1, 1, 1) if g.transposed else tuple(a.stride for a in g.axes)
        return tuple(-(-n // step) for n, step in zip(sizes, steps, strict=True))

    @cached_property
    def steps(self) -> tuple[int, ...]:
        return tuple(a.stride if self.geometry.transposed else 1 for a in self.geometry.axes)

    @cached_property
    def planes(self) -> list[tuple[int, int, int, int, int]]:
        """(times, taps down, across, their distances) of the phases, alike ones together."""
        down, across = ([(p.taps, p.distance) for p in axis] for axis in self.phases[1:])
        deep = sum(p.taps for p in self.phases[0])
        return [(deep, h[0], w[0], h[1], w[1]) for h, w in combinations(down, across)]

    def tiles(self, rows: int, tile: Tile) -> int:
        """Tiles of grad_input, each of all phases."""
        n, h, w = tile
        blocks = -(-self.geometry.batch // n) * self.counts[0]
        return (
            self.groups
            * -(-self.channels // rows)
            * blocks
            * -(-self.counts[1] // h)
            * -(-self.counts[2] // w)
        )

    def seen(self, tile: Tile, down: int, across: int, apart_h: int, apart_w: int) -> tuple[int, int]:
        """(positions, rows) of the other image that a tile of one phase meets."""
        h = (tile[1] - 1) * self.steps[1] + (down - 1) * apart_h + 1
        w = (tile[2] - 1) * self.steps[2] + (across - 1) * apart_w + 1
        return tile[0] * h * w, tile[0] * h

    def elements(self, tile: Tile, rows: int, taps: str) -> int:
        """Elements of L1 for each channel of a step of the largest phase."""
        if taps == "reload":
            return rows + up(prod(tile), 16)
        return max(
            rows * h * w + up(self.seen(tile, h, w, x, y)[0], 16) for _, h, w, x, y in self.planes if h * w
        )

    def _sharers(self, rates: Rates, rows: int, tile: Tile, steps: int) -> tuple[float, float]:
        """Cores that read the same weights, and the same image; cores begin at different steps."""
        busy, across = min(rates.cores, self.tiles(rows, tile)), -(-self.channels // rows)
        return busy / across / steps, min(busy, across) / steps

    def window_cycles(self, rates: Rates, rows: int, tile: Tile, deep: int) -> float:
        """One tile of all phases, taps as windows."""
        steps, size, total = -(-self.depth // deep), deep * rates.itemsize, 0.0
        for times, h, w, x, y in self.planes:
            seen, lines = self.seen(tile, h, w, x, y)
            many = self._sharers(rates, rows, tile, max(1, times * steps))
            shares = (h * w * rows * size, many[0]), (seen * size, many[1])
            loads = rates.loads(shares, deep // rates.c0 * (h * w + lines))
            total += times * steps * overlapped(loads, *self._products(rates, rows, tile, deep, h * w))
        return total

    def reload_cycles(self, rates: Rates, rows: int, tile: Tile, deep: int) -> float:
        """One tile of all phases, taps loaded one by one."""
        taps = prod(sum(p.taps for p in axis) for axis in self.phases)
        steps, size = max(1, taps * -(-self.depth // deep)), deep * rates.itemsize
        many = self._sharers(rates, rows, tile, max(1, steps // len(self.planes)))
        shares = (rows * size, many[0]), (prod(tile) * size, many[1])
        loads = rates.loads(shares, deep // rates.c0 * (1 + tile[0] * tile[1]))
        return steps * overlapped(loads, *self._products(rates, rows, tile, deep, 1))

    def _products(self, rates: Rates, rows: int, tile: Tile, deep: int, times: int) -> tuple[float, float]:
        """Positions are rows of the product where they are rows of what is stored."""
        sides = (prod(tile), rows) if self.channels_last else (rows, prod(tile))
        return rates.products(*sides, deep, times)

    def cycles(self, rates: Rates, taps: str, rows: int, tile: Tile, deep: int) -> float:
        """One tile."""
        cycles = self.reload_cycles if taps == "reload" else self.window_cycles
        drain = 0.0 if rows * up(prod(tile), 16) * 8 <= rates.product.l0c_bytes else 500.0
        spread = RELOADED if taps == "reload" else 1.0
        return cycles(rates, rows, tile, deep) * spread + drain + ITEM_CYCLES


@dataclass(frozen=True)
class Weights:
    """What grad_weight is cut from: a tile is taps of a row of (rows, columns) channels, summed over chunks of positions.

    windows: taps of a tile, which are windows of what is loaded of the wide image; 0: one tap, and nothing is loaded between
    its positions.
    """

    geometry: Geometry
    merging: Merging
    windows: int

    @property
    def taps(self) -> int:
        """Taps of a tile, each with a sum of its own."""
        return max(1, self.windows)

    @property
    def tap_blocks(self) -> int:
        """Tiles of a row of taps."""
        return -(-self.geometry.axes[2].taps // self.taps)

    def tiles(self, rows: int, columns: int) -> int:
        g, m = self.geometry, self.merging
        planes = m.count * g.axes[0].taps * g.axes[1].taps * self.tap_blocks
        return planes * -(-m.narrow // rows) * -(-m.wide // columns)

    def chunks(self, tile: Tile) -> int:
        d, h, w = self.geometry.narrow_sizes
        return -(-self.geometry.batch // tile[0]) * d * -(-h // tile[1]) * -(-w // tile[2])

    def seen(self, tile: Tile) -> int:
        w = self.geometry.axes[2]
        across = (tile[2] - 1) * w.stride + (self.taps - 1) * w.dilation + 1 if self.windows else tile[2]
        return up(tile[0] * tile[1] * across, 16)

    def chunk_cycles(self, rates: Rates, rows: int, columns: int, tile: Tile) -> float:
        """One chunk of one tile."""
        taps, size, c0 = self.taps, rates.itemsize, rates.c0
        positions, seen = up(prod(tile), 16), self.seen(tile)
        lines = tile[0] * tile[1]
        whole = tile[2] == self.geometry.narrow_sizes[2]
        apart = self.geometry.axes[2].stride > 1 and not self.windows
        bursts = rows / c0 * (tile[0] if whole else lines) + columns / c0 * (prod(tile) if apart else lines)
        loads = rates.loads([((positions * rows + seen * columns) * size, 1)], bursts)
        return overlapped(loads, *rates.products(rows, columns, positions, taps, kept=True))

    def drain_cycles(self, rows: int, columns: int) -> float:
        """Of the sums of one tile."""
        return self.taps * rows * columns * 4 / DRAIN_RATE + ITEM_CYCLES

    def room(self, tile: Tile, rows: int, columns: int) -> int:
        """Elements of one copy of both images in L1."""
        return up(prod(tile), 16) * rows + self.seen(tile) * columns


def dealt(cores: Any, items: Any, start: Any = 0) -> np.ndarray:
    """Items of each core where they are dealt out one after the other from core `start` on: a new last axis of cores."""
    cores, items, start = (np.asarray(x)[..., None] for x in (cores, items, start))
    core = np.arange(cores.max())
    found = -(-np.maximum(0, items - (core - start) % cores) // cores)
    return np.where(core < cores, found, 0)


def makespan(cores: Any, first: Any, first_cycles: Any, second: Any, second_cycles: Any) -> np.ndarray:
    """Cycles until all cores are done with items of two kinds, dealt out one after the other; numbers or columns of them."""
    cycles = [np.asarray(x)[..., None] for x in (first_cycles, second_cycles)]
    counts = dealt(cores, first), dealt(cores, second, first)
    return np.asarray((counts[0] * cycles[0] + counts[1] * cycles[1]).max(axis=-1))


def position_tiles(batch: int, height: int, width: int, lengths: Iterable[int]) -> Iterator[Tile]:
    """Tiles of at most so many positions, each once: whole rows first, then whole images, or rows of several images."""
    found: set[Tile] = set()
    for positions in lengths:
        even = (k for k in range(1, height) if height % k == 0 and k * width <= positions)
        several = [(min(batch, positions // (k * width)), k, width) for k in even]
        candidates = [position_tile(batch, height, width, positions), *several]
        for tile in candidates:
            if tile not in found:
                found.add(tile)
                yield tile


def position_tile(batch: int, height: int, width: int, positions: int) -> Tile:
    """(images, rows, columns) of a tile of at most `positions`: whole rows first, then whole images."""
    w = even_part(width, positions)
    h = even_part(height, max(1, positions // w)) if w == width else 1
    n = even_part(batch, max(1, positions // (w * h))) if h == height else 1
    return n, h, w
