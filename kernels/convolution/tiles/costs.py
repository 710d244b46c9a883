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
from ....simulator.timing.placement.windows import Window
from ...operator.layout import even_part, up
from ..geometry import Geometry, Merging, Phase
from .sizes import window_shape

NOT_HIDDEN = 0.05  # part of shorter pipes that the longest does not hide
ITEM_CYCLES = 400  # of starting a tile
COPIES = 2  # of what is loaded, as usual
CONGESTION = 1.5  # cores that start apart come together in part: what that adds to reads of the same address
RELOADED = 1.15  # what short steps and a launch apart from grad_weight add where taps are loaded one by one
DRAIN_RATE = 100  # bytes per cycle from L0C into memory
MOST_POSITIONS = 512  # of a step of grad_weight
Tile = tuple[int, int, int]  # images, rows, columns
Plane = tuple[int, int, int, int, int]  # times, taps down and across, their distances


@dataclass(frozen=True)
class Rates:
    """What a product does in a cycle, and the type that its Cube multiplies."""

    product: Product
    operand: str
    itemsize: int
    cores: int
    known: dict[tuple[Any, ...], tuple[float, float, float]] = field(default_factory=dict)

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
    def row_out(self) -> float:
        """Cycles of a row that leaves L0C; 0 where sums come by UB."""
        key = "path.l0c_to_gm.row_cycles"
        return self.product.number(key) if self.product.has(key) else 0.0

    @cached_property
    def latency(self) -> float:
        path = "path.gm_to_l1_nd2nz"
        late = f"{path}.latency_cycles"
        return self.product.number(late if self.product.has(late) else f"{path}.fixed_cycles")

    @cached_property
    def c0(self) -> int:
        return 32 // self.itemsize

    def step(self, loads: float, products: tuple[float, float]) -> float:
        """Cycles of one step: the pipes side by side, or what a copy takes to be filled and read, if copies are too few."""
        return max(overlapped(loads, *products), (self.latency + loads + products[1]) / COPIES)

    def products(self, m: int, n: int, k: int, *windows: Window | None) -> tuple[float, float]:
        """(cycles of M, of MTE1) of one product. windows: how the left and the right operand lie in L1."""
        multiply, rows, columns = self._product(m, n, k, windows)
        return multiply, columns + rows

    def _product(
        self, m: int, n: int, k: int, windows: tuple[Window | None, ...]
    ) -> tuple[float, float, float]:
        """(cycles of M, of loads of either operand)."""
        found = self.known.get((m, n, k, windows))
        if found is None:
            cube, size = self.cube, self.itemsize
            tile = cube.l0_tile(m, n, k, self.operand)
            parts = -(-m // tile.m) * -(-n // tile.n) * -(-k // tile.k)
            m1, n1, k1 = min(m, tile.m), min(n, tile.n), min(k, tile.k) * size
            each = cube.startup + cube.switch + cube.barrier_cycles(m1, n1)
            multiply = cube.mmad_cycles(m, n, k, self.operand) + parts * each
            rows, columns = (
                cube.load_cycles(path, x, k1, window) * parts
                for path, x, window in ((cube.to_l0a, m1, windows[0]), (cube.to_l0b, n1, windows[1]))
            )
            found = self.known[m, n, k, windows] = multiply, rows, columns
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
    """What grad_input is cut from: channels and the length of their sums, positions of a phase, phases.

    matrices: its weights are no blocks, so that taps are multiplied one by one.
    """

    geometry: Geometry
    channels: int
    depth: int
    groups: int
    rows: bool = False
    matrices: bool = False

    @classmethod
    def of(cls, g: Geometry, m: Merging, rows: bool = False, matrices: bool = False) -> Image:
        """rows: it is stored as rows of channels first, whatever its phases are."""
        channels, depth = (m.narrow, m.wide) if g.transposed else (m.wide, m.narrow)
        return cls(g, channels, depth, m.count, rows, matrices)

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
    def planes(self) -> list[Plane]:
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

    def keeps(self, rows: int, deep: int) -> bool:
        """Whether all tiles share their weights and one step holds them: they are loaded once."""
        one = prod(len(axis) for axis in self.phases) == 1 and self.planes[0][0] == 1 and self.groups == 1
        return one and not self.matrices and self.channels <= rows and self.depth <= deep

    def room(self, tile: Tile, rows: int, taps: str, deep: int, copies: int) -> int:
        """Elements of L1 for a step of the largest phase with so many copies of what is loaded."""
        if taps == "reload":
            return deep * (rows + up(prod(tile), 16)) * copies
        weights = 1 if self.keeps(rows, deep) else copies
        return deep * max(
            rows * h * w * weights + up(self.seen(tile, h, w, x, y)[0], 16) * copies
            for _, h, w, x, y in self.planes
            if h * w
        )

    def _sharers(self, rates: Rates, rows: int, tile: Tile, steps: int) -> tuple[float, float]:
        """Cores that read the same weights, and the same image; cores begin at different steps."""
        busy, across = min(rates.cores, self.tiles(rows, tile)), -(-self.channels // rows)
        return busy / across / steps, min(busy, across) / steps

    def window_cycles(self, rates: Rates, rows: int, tile: Tile, deep: int) -> float:
        """One tile of all phases, taps as windows."""
        steps, total = -(-self.depth // deep), 0.0
        for plane in self.planes:
            loads = self._window_loads(rates, rows, tile, deep, plane)
            products = self._windows(rates, rows, tile, deep, plane[1] * plane[2])
            total += plane[0] * steps * rates.step(loads, products)
        return total

    def _window_loads(
        self, rates: Rates, rows: int, tile: Tile, deep: int, plane: Plane, first: bool = False
    ) -> float:
        """Of one step of a plane; the first one has the weights that are kept, too."""
        (times, h, w, x, y), size = plane, deep * rates.itemsize
        seen, lines = self.seen(tile, h, w, x, y)
        many = self._sharers(rates, rows, tile, max(1, times * -(-self.depth // deep)))
        weights = h * w if first or not self.keeps(rows, deep) else 0
        shares = (weights * rows * size, many[0]), (seen * size, many[1])
        return rates.loads(shares, deep // rates.c0 * (weights + lines))

    def reload_cycles(self, rates: Rates, rows: int, tile: Tile, deep: int) -> float:
        """One tile of all phases, taps loaded one by one."""
        loads, products = self._reloads(rates, rows, tile, deep), self._products(rates, rows, tile, deep, 0)
        return self._reload_steps(deep) * rates.step(loads, products)

    def _reload_steps(self, deep: int) -> int:
        taps = prod(sum(p.taps for p in axis) for axis in self.phases)
        return max(1, taps * -(-self.depth // deep))

    def _reloads(self, rates: Rates, rows: int, tile: Tile, deep: int) -> float:
        """Loads of one step of one tap."""
        size = deep * rates.itemsize
        many = self._sharers(rates, rows, tile, max(1, self._reload_steps(deep) // len(self.planes)))
        shares = (rows * size, many[0]), (prod(tile) * size, many[1])
        lines = tile[0] * tile[1] if self.steps[2] == 1 else prod(tile)  # positions with gaps come one by one
        return rates.loads(shares, deep // rates.c0 * (1 + lines))

    def fill_cycles(self, rates: Rates, taps: str, rows: int, tile: Tile, deep: int) -> float:
        """The first loads of a core, which nothing hides."""
        if taps == "reload":
            return rates.latency + self._reloads(rates, rows, tile, deep)
        return rates.latency + self._window_loads(rates, rows, tile, deep, self.planes[0], True)

    def _windows(self, rates: Rates, rows: int, tile: Tile, deep: int, taps: int) -> tuple[float, float]:
        """All taps of a plane: side by side in one product, or one by one."""
        if not self.matrices:
            return self._products(rates, rows, tile, deep * taps, taps)
        multiply, load = self._products(rates, rows, tile, deep, taps)
        return taps * multiply, taps * load

    def _products(self, rates: Rates, rows: int, tile: Tile, deep: int, taps: int) -> tuple[float, float]:
        """Positions are rows of the product where they are rows of what is stored."""
        sides = (prod(tile), rows) if self.channels_last else (rows, prod(tile))
        return rates.products(*sides, deep, *self.windows(tile, taps))

    def windows(self, tile: Tile, taps: int) -> tuple[Window | None, Window | None]:
        """How both operands lie in L1 where so many taps of a plane are met: positions as windows, weights as they are."""
        stride = self.steps[2] if taps else 1
        window = Window(tile[0] * tile[1], tile[2], stride) if taps > 1 or stride > 1 else None
        return (window, None) if self.channels_last else (None, window)

    def rows_out(self, rows: int, tile: Tile) -> int:
        """Rows in memory that the sums of all phases of a tile are stored as, which the fixpipe takes one by one.

        A row of channels for each position; else a row of positions for each channel, of which each image is one of its own,
        and each line of it where the tile has a part of the lines' columns.
        """
        if self.channels_last:
            return prod(tile) * prod(len(axis) for axis in self.phases)
        return rows * tile[0] * (1 if tile[2] == self.counts[2] else tile[1])

    def cycles(self, rates: Rates, taps: str, rows: int, tile: Tile, deep: int) -> float:
        """One tile: the sums of one leave L0C while those of the next are made, unless that takes longer."""
        cycles = self.reload_cycles if taps == "reload" else self.window_cycles
        drain = 0.0 if rows * up(prod(tile), 16) * 8 <= rates.product.l0c_bytes else 500.0
        spread = RELOADED if taps == "reload" else 1.0
        made = cycles(rates, rows, tile, deep) * spread
        return max(made, self.rows_out(rows, tile) * rates.row_out) + drain + ITEM_CYCLES


@dataclass(frozen=True)
class Weights:
    """What grad_weight is cut from: a tile is taps of (rows, columns) channels, summed over chunks of positions.

    windows: taps of a tile (see `window_shape`), which are windows of what is loaded of the wide image; 0: one tap, and
    nothing is loaded between its positions.
    """

    geometry: Geometry
    merging: Merging
    windows: int

    @property
    def taps(self) -> int:
        """Taps of a tile, each with columns of its own."""
        return self.down * self.across

    @property
    def down(self) -> int:
        """Rows of taps of a tile."""
        return window_shape(self.windows, *(a.taps for a in self.geometry.axes[1:]))[0]

    @property
    def across(self) -> int:
        """Taps of a row of a tile."""
        return window_shape(self.windows, *(a.taps for a in self.geometry.axes[1:]))[1]

    @property
    def tap_blocks(self) -> int:
        """Tiles of a plane of taps."""
        _, h, w = self.geometry.axes
        return -(-h.taps // self.down) * -(-w.taps // self.across)

    def tiles(self, rows: int, columns: int) -> int:
        g, m = self.geometry, self.merging
        planes = m.count * g.axes[0].taps * self.tap_blocks
        return planes * -(-m.narrow // rows) * -(-m.wide // columns)

    def chunks(self, tile: Tile) -> int:
        d, h, w = self.geometry.narrow_sizes
        return -(-self.geometry.batch // tile[0]) * d * -(-h // tile[1]) * -(-w // tile[2])

    def lines(self, tile: Tile) -> int:
        """Rows of the wide image that a chunk loads."""
        h = self.geometry.axes[1]
        down = (tile[1] - 1) * h.stride + (self.down - 1) * h.dilation + 1 if self.down > 1 else tile[1]
        return tile[0] * down

    def seen(self, tile: Tile) -> int:
        w = self.geometry.axes[2]
        across = (tile[2] - 1) * w.stride + (self.across - 1) * w.dilation + 1 if self.windows else tile[2]
        return up(self.lines(tile) * across, 16)

    def chunk_cycles(self, rates: Rates, rows: int, columns: int, tile: Tile) -> float:
        """One chunk of one tile."""
        size, c0 = rates.itemsize, rates.c0
        positions, seen = up(prod(tile), 16), self.seen(tile)
        lines = self.lines(tile)
        whole = tile[2] == self.geometry.narrow_sizes[2]
        apart = self.geometry.axes[2].stride > 1 and not self.windows
        bursts = rows / c0 * (tile[0] if whole else prod(tile[:2]))
        bursts += columns / c0 * (prod(tile) if apart else lines)
        loads = rates.loads([((positions * rows + seen * columns) * size, 1)], bursts)
        wide = columns * self.taps
        return overlapped(loads, *rates.products(rows, wide, positions, None, self.window(tile)))

    def window(self, tile: Tile) -> Window | None:
        """How the positions of a chunk of the wide image lie in L1, if windows are made of them."""
        stride = self.geometry.axes[2].stride
        made = self.taps > 1 or (self.windows and stride > 1)
        return Window(tile[0] * tile[1], tile[2], stride) if made else None

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
