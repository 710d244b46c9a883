"""How long a matrix product loads at least: rows that are started one by one, bytes through a port, readers of one address.

The least cycles of a load that is partly new to L2 are right on average over the programs, not for each of them
(`Lowering._transfer` of the simulator); so there are two sums, one for any program and one for the average.

Tiles go to cores in turn, in bands of `group` tile rows, as `tiles.py` hands them out; a round is as many tiles in a
row as there are cores. The part of L2 that holds an address serves one core after the other, so that a load of what several
cores read at the same moment takes as many times longer (`LoweringPlan.least_cycles` of the simulator).
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...simulator.products import Product
from ...simulator.timing.costs.transfers import LINE_BYTES, REQUEST_BYTES
from ..bounds.vector import LINE, last_part
from .distinct import each_once
from .strips import Strips

BLOCK = 32  # bytes to which bursts are rounded up
# Of a product whose rounds are looked at; a load of one with more is bounded as if not shared.
MOST_TILES = 1 << 14
MOST_KEYS = 1 << 20  # that are counted without being sorted
Array = Any


class Tiles(NamedTuple):
    """A product (m, n, k) of elements of `size` bytes, and columns of its tilings.

    bm, bn, bk: edges of a tile; group, split, cores: as the knobs; written: bytes of an element of the result. slices_a,
    slices_b: tiles of a and of b that a step of the sum loads.
    """

    m: int
    n: int
    k: int
    size: int
    bm: Array
    bn: Array
    bk: Array
    group: Array
    split: Array
    cores: Array
    written: Array
    slices_a: int = 1
    slices_b: int = 1

    @property
    def down(self) -> Array:
        return -(-self.m // self.bm)

    @property
    def across(self) -> Array:
        return -(-self.n // self.bn)

    @property
    def count(self) -> Array:
        return self.down * self.across * self.split

    @property
    def rows(self) -> Array:
        """Of the lowest tile."""
        return last_part(self.m, self.bm)

    @property
    def columns(self) -> Array:
        """Of the narrowest tile."""
        return last_part(self.n, self.bn)

    @property
    def depth(self) -> Array:
        """The shortest part of the sum: the last one where it does not divide; 0 if nothing is left for it."""
        part = -(-self.k // self.split)
        return np.maximum(0, np.minimum(part, self.k - (self.split - 1) * part))

    @property
    def iterations(self) -> Array:
        """Loads of a for a tile."""
        return -(-self.depth // self.bk)


class Loads:
    """Least cycles of the loads of every point. rate: bytes per cycle of the port."""

    def __init__(self, tiles: Tiles, product: Product, rate: float) -> None:
        self.t, self.product, self.rate = tiles, product, rate
        self.row = row_cycles(product)
        # Bytes of a row of a and of b, of a whole tile and of the last one.
        deep = np.minimum(last_part(tiles.depth, tiles.bk), tiles.depth)
        self.deep = deep
        self.row_a, self.last_a = (_moved(x, tiles.k, tiles.size) for x in (tiles.bk, deep))
        self.row_b, self.last_b = (_moved(x, tiles.n, tiles.size) for x in (tiles.bn, tiles.columns))
        self.rowwise_a, self.rowwise_b = tiles.bk < tiles.k, tiles.bn < tiles.n

    @cached_property
    def one(self) -> tuple[Array, Array]:
        """Of one load of a and of b, on average over the programs."""
        least = self.product.number("path.gm_to_l1_nd2nz.issue_interval_cycles")
        started = (
            np.where(self.rowwise_a, self.t.rows * self.row, least),
            np.where(self.rowwise_b, self.deep * self.row, least),
        )
        a, b = (np.maximum(np.maximum(least, s), p) for s, p in zip(started, self._port, strict=True))
        return a, b

    @cached_property
    def any_one(self) -> tuple[Array, Array]:
        """Of one load of a and of b, for any program."""
        a, b = (np.where(self._whole, x, p) for x, p in zip(self.one, self._port, strict=True))
        return a, b

    @cached_property
    def mean(self) -> Array:
        """Of all loads of a tile, on average over the tiles."""
        t = self.t
        cut = t.m % t.bm > 0, t.n % t.bn > 0
        many = sharing(t.down, t.across, t.group, t.split, t.cores, cut)
        one_a, one_b = self.one
        least = t.iterations * (t.slices_a * one_a + t.slices_b * one_b)
        return np.maximum(sum(self._all_of(*many)), least)

    def mean_in_strips(self, keep_a: Array, cut: Strips) -> tuple[Array, Array]:
        """On average of all loads of what stays for a strip, and of the other operand for a tile."""
        t = self.t
        last = (
            np.where(keep_a, t.n % t.bn > 0, t.m % t.bm > 0),
            np.where(keep_a, t.m % t.bm > 0, t.n % t.bn > 0),
        )
        of_strip, of_tile = strip_sharing(cut, t.split, t.cores, last)
        a, b = self._all_of(np.where(keep_a, of_strip, of_tile), np.where(keep_a, of_tile, of_strip))
        a, b = (np.maximum(x, t.iterations * one) for x, one in zip((a, b), self.one, strict=True))
        return np.where(keep_a, a, b), np.where(keep_a, b, a)

    def _all_of(self, *readers: Array) -> list[Array]:
        """Of all loads of a, and of b, for a tile, which so many cores read at the same moment."""
        t, found = self.t, []
        slices = t.slices_a, t.slices_b
        rows = np.where(self.rowwise_a, t.iterations, 0) * t.m / t.down, np.where(self.rowwise_b, t.depth, 0)
        for many, started, moved, times in zip(readers, rows, self._slice_bytes, slices, strict=True):
            served = many * self._served(started, moved)
            found.append(times * np.maximum(np.maximum(started * self.row, moved / self.rate), served))
        return found

    @cached_property
    def any(self) -> Array:
        """Of all loads of a tile, for any program."""
        t = self.t
        moved = t.slices_a * t.rows * self._row_bytes_a + t.slices_b * t.depth * self.last_b
        even = (t.m % t.bm == 0) & (t.n % t.bn == 0)
        one_a, one_b = self.any_one
        least = t.iterations * (t.slices_a * one_a + t.slices_b * one_b)
        return np.where(self._whole & even, self.mean, np.maximum(moved / self.rate, least))

    def moved(self, of_a: Array, of_b: Array) -> Array:
        """Bytes of all loads of the launch, of which so many are of a whole tile of a, and of b."""
        a, b = self._slice_bytes
        return of_a * self.t.slices_a * a + of_b * self.t.slices_b * b

    @property
    def _row_bytes_a(self) -> Array:
        """Of a row of a through all iterations."""
        return (self.t.iterations - 1) * self.row_a + self.last_a

    @cached_property
    def _slice_bytes(self) -> tuple[Array, Array]:
        """Bytes of all loads of a slice of a and of b for a tile, on average."""
        t = self.t
        return t.m / t.down * self._row_bytes_a, t.depth * (
            (t.across - 1) * self.row_b + self.last_b
        ) / t.across

    @property
    def _port(self) -> tuple[Array, Array]:
        """Cycles of the smallest load of a and of b through the port."""
        return self.t.rows * self.last_a / self.rate, self.deep * self.last_b / self.rate

    def _served(self, rows: Array, moved: Array) -> Array:
        """Cycles for which what one core reads takes the part of L2 where it lies; no more than it takes alone."""
        name, product = "l2.same_address", self.product
        row, rate = product.number(f"{name}_row_cycles"), product.number(f"{name}_bytes_per_cycle")
        return rows * min(row, self.row) + moved / max(rate, self.rate)

    @cached_property
    def _whole(self) -> Array:
        """Whether every load is new to L2, or in it, as a whole: rows of tiles are whole lines, and none leaves L2 again."""
        t = self.t
        loaded = (t.m * t.slices_a + t.n * t.slices_b) * t.k * t.size
        fits_l2 = loaded + t.m * t.n * t.split * t.written <= self.product.integer("l2.size")
        runs = (t.bk, t.k, -(-t.k // t.split), t.bn, t.n)
        return fits_l2 & np.logical_and.reduce([r * t.size % LINE == 0 for r in np.broadcast_arrays(*runs)])


def row_cycles(product: Product) -> float:
    """From the start of one row of a tile to that of the next."""
    name = "path.gm_to_l1_nd2nz.row_cycles"
    return product.number(name) if product.has(name) else 0.0


def _moved(elements: Array, length: int, size: int) -> Array:
    """Bytes of one row of a tile as they weigh on the way (`line_weight`), from rows of `length` elements."""
    row = elements * size
    grain = (length * size | LINE_BYTES) & -(length * size | LINE_BYTES)
    cut = (1.0 + (row - grain) / LINE_BYTES) / np.maximum(1.0, row / LINE_BYTES)
    weight = 1.0 if grain >= REQUEST_BYTES else np.maximum(1.0, cut)
    return np.where(elements < length, -(-row // BLOCK) * BLOCK * weight, np.minimum(elements, length) * size)


def sharing(
    down: Array, across: Array, group: Array, split: Array, cores: Array, cut: tuple[Array, Array]
) -> tuple[Array, Array]:
    """For each point: how many cores read the same tile of a, and of b, at least on average.

    down, across: tiles along M and N; split: parts of the sum; cut: whether the last tile along M, and along N, is smaller.
    The average is over all tiles, over all rounds, or over the tiles that are not cut, whichever is least.
    """
    return _both(*each_once(_sharing, down, across, group, split, cores, *cut))


def _both(found: list[tuple[float, float]], place: np.ndarray) -> tuple[Array, Array]:
    of_each = np.array(found).reshape(-1, 2)[place]
    return of_each[:, 0], of_each[:, 1]


@lru_cache(maxsize=1 << 14)
def _sharing(
    down: int, across: int, group: int, split: int, cores: int, cut_m: int, cut_n: int
) -> tuple[float, float]:
    tiles = down * across
    if tiles * split > MOST_TILES:
        return 1.0, 1.0
    item = np.arange(tiles * split)
    part, tile = item // tiles, item % tiles
    first = tile // (group * across) * group
    height = np.minimum(down - first, group)
    inside = tile % (group * across)
    row, column = first + inside % height, inside // height
    wave = item // cores
    each = wave * split + part
    return (
        _mean(each * down + row, wave, row < down - cut_m),
        _mean(each * across + column, wave, column < across - cut_n),
    )


def strip_sharing(cut: Strips, split: Array, cores: Array, last: tuple[Array, Array]) -> tuple[Array, Array]:
    """For each point: how many cores read the same tile of what stays, and of the other operand, at least on average.

    last: whether the last tile along a strip, and the last line, is smaller.
    """
    how = (cut.lines, cut.along, cut.stretches, cut.wide, split, cores)
    return _both(*each_once(_strip_sharing, *how, *last))


@lru_cache(maxsize=1 << 14)
def _strip_sharing(
    lines: int, along: int, stretches: int, wide: int, split: int, cores: int, cut_tile: int, cut_line: int
) -> tuple[float, float]:
    strips = lines * stretches
    if strips * wide * split > MOST_TILES:
        return 1.0, 1.0
    item = np.arange(strips * split)
    part, line, first = item // strips, item % lines, item // lines % stretches * wide
    wave, tiles = item // cores, np.minimum(wide, along - first)
    held = _mean((wave * split + part) * lines + line, wave, line < lines - cut_line)
    i, at = np.divmod(np.arange(wide * len(item)), len(item))
    i, at = i[i < tiles[at]], at[i < tiles[at]]
    tile, moment = first[at] + (i + line[at]) % tiles[at], wave[at] * wide + i
    return held, _mean((moment * split + part[at]) * along + tile, moment, tile < along - cut_tile)


def _mean(read: np.ndarray, wave: np.ndarray, whole: np.ndarray) -> float:
    """Of how many equal numbers each is one: the least of the averages over all, over waves, and over the whole ones."""
    if read[-1] < MOST_KEYS:
        many = np.bincount(read)[read]
    else:
        _, place, counts = np.unique(read, return_inverse=True, return_counts=True)
        many = counts[place]
    counted = np.bincount(wave)
    of_waves = np.bincount(wave, many)[counted > 0] / counted[counted > 0]
    averages = [many.mean(), of_waves.mean()]
    if whole.any():
        averages.append(many[whole].mean())
    return float(min(averages))
