"""Least work of the tiles of both gradients: cycles on the Cube and of its loads into L0, bytes that are read within images.

A tile is multiplied as a whole, whatever lies outside of the image; what is loaded are the positions within it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product as combinations
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...simulator.products import Product
from ...simulator.timing.costs.cube import CubeCosts, IntoL0
from ...simulator.timing.placement.layouts import align
from ...simulator.timing.placement.windows import SIDE_BY_SIDE, Window
from ..matmul.multiplied import l0_tiles, mmad_cycles
from ..operator.layout import up
from .geometry import Axis, Phase
from .tiles.costs import Image, Rates, Tile, Weights


class L0Product(NamedTuple):
    """One product of a tile: cycles on the Cube, of the loads into L0A and L0B, of the first load and of the last Mmad."""

    m: float
    a: float
    b: float
    first: float
    last: float


@dataclass(frozen=True)
class GradientWork:
    """What a tiling makes of the products of one gradient.

    tiles: of positions and channels, of grad_weight of one part of the sums; items: what is dealt out to cores, which is a
    tile, or one phase of it where taps are loaded one by one. mmad, mte1: cycles of the cheapest item (of one chunk),
    all_mmad, all_mte1: of all items; first: of the first load into L0; last: of the last Mmad; moved: bytes that all items
    load; rows: of channels that they start one by one, where images are no blocks. iterations: loads of the cheapest item
    (of a chunk) into the same copy: phases are unrolled and have copies of their own, so that only those of one phase count;
    laps: cycles of the loads from L1 that follow them. guess: cycles of a tile (of a chunk) by the rough count that chooses
    `weight_parts`; chunks, step, drain: of grad_weight, as `best_parts` takes them. reload: whether taps are loaded one by
    one. l0c: bytes of the sums of a tile; l1: of what is loaded at once.
    """

    tiles: int
    items: int
    mmad: float
    mte1: float
    all_mmad: float
    all_mte1: float
    first: float
    last: float
    moved: float
    rows: float
    laps: float
    iterations: int
    guess: float
    chunks: int = 0
    step: int = 0
    drain: float = 0.0
    reload: bool = False
    l0c: int = 0
    l1: int = 0


class Products:
    """Cycles of single products on the Cube. base: (baseM, baseN, baseK), with a 0 the Cube's own."""

    def __init__(self, product: Product, operand: str, size: int, base: Sequence[int]) -> None:
        self.cube, self.operand, self.size, self.base = CubeCosts(product), operand, size, base
        self.known: dict[tuple[Any, ...], L0Product] = {}

    def of(self, m: int, n: int, k: int, *windows: Window | None) -> L0Product:
        """(m, k) by (k, n), cut as the plan of a launch cuts it. windows: how the two lie in L1, if that is known."""
        if (m, n, k, windows) not in self.known:
            self.known[m, n, k, windows] = self._cut(m, n, k, windows or (None, None))
        return self.known[m, n, k, windows]

    def _cut(self, m: int, n: int, k: int, windows: tuple[Window | None, ...]) -> L0Product:
        cube = self.cube
        cut = l0_tiles(cube, (m, n, k), self.operand, self.base)
        mmad = mmad_cycles(cube, cut, self.operand)
        a, b = (
            [self._load(path, p[axis], p[2], windows[axis]) for p in cut]
            for path, axis in ((cube.to_l0a, 0), (cube.to_l0b, 1))
        )
        return L0Product(sum(mmad), sum(a), sum(b), min(a[0], b[0]), mmad[-1])

    def _load(self, path: IntoL0, rows: int, deep: int, window: Window | None) -> float:
        """One load to L0; without a window as a part of the tile or as windows side by side, whichever is faster."""
        size = align(deep * self.size, 32)
        forms = (window,) if window else (None, SIDE_BY_SIDE)
        return min(self.cube.load_cycles(path, rows, size, form) for form in forms)


def image_work(
    image: Image, knobs: dict[str, Any], tile: Tile, guess: float, products: Products, size: int
) -> GradientWork:
    """Of grad_input. knobs: as chosen; tile: its positions."""
    rows, deep, reload = knobs["block_m"], knobs["block_k"], knobs["taps"] == "reload"
    sides = (prod(tile), rows) if image.channels_last else (rows, prod(tile))
    steps, apart = -(-image.depth // deep), reload or image.matrices
    # Of each phase: how often, and the product that it takes so often.
    works = [
        (n * steps, products.of(*sides, deep * wide, *image.windows(tile, 0 if apart else wide)))
        for n, wide in (_products_of(ps, apart) for ps in combinations(*image.phases))
    ]
    mmad, mte1 = [n * one.m for n, one in works], [n * (one.a + one.b) for n, one in works]
    least: Callable[[list[float]], float] = min if reload else sum
    tiles, (weights, met) = image.tiles(rows, tile), _loaded(image, rows, tile, reload)
    if not reload and image.keeps(rows, deep):
        weights *= min(1.0, knobs["cores"] / tiles)
    iterations, laps = _image_iterations(image, reload, mte1)
    return GradientWork(
        tiles=tiles,
        items=tiles * (len(works) if reload else 1),
        mmad=least(mmad),
        mte1=least(mte1),
        all_mmad=tiles * sum(mmad),
        all_mte1=tiles * sum(mte1),
        first=min(x.first for _, x in works),
        last=min(x.last for _, x in works),
        moved=image.depth * (weights + met) * size,
        rows=met * steps if deep < image.depth * image.groups else 0.0,
        laps=laps,
        iterations=iterations * steps,
        guess=guess,
        reload=reload,
        l0c=up(rows, 16) * up(prod(tile), 16) * 4,
        l1=image.room(tile, rows, "reload" if reload else "window", deep, 1) * size,
    )


def _products_of(phases: Sequence[Phase], apart: bool) -> tuple[int, int]:
    """(products, taps of each) of one phase: of all taps, or of all planes."""
    taps = prod(p.taps for p in phases)
    return (taps, 1) if apart else (phases[0].taps if taps else 0, phases[1].taps * phases[2].taps)


def _image_iterations(image: Image, reload: bool, mte1: list[float]) -> tuple[int, float]:
    """(iterations but for the steps of the depth, cycles of the loads to L0) of the sums of the cheapest tile in one phase.

    Taps that are loaded one by one take an iteration each, and any phase may be the cheapest item's. Windows take one for
    each tap of the first axis; of the phases of a tile that with most iterations bounds best.
    """
    taps = [prod(p.taps for p in ps) for ps in combinations(*image.phases)]
    if reload:
        return min(taps), min(mte1)
    planes = [ps[0].taps if n else 0 for n, ps in zip(taps, combinations(*image.phases), strict=True)]
    return max(zip(planes, mte1, strict=True))


def _loaded(image: Image, rows: int, tile: Tile, reload: bool) -> tuple[float, float]:
    """(channels of weights, positions of the other image) that all tiles of grad_input load, for each unit of depth."""
    g, blocks = image.geometry, -(-image.channels // rows)
    taps = sum(prod(p.taps for p in ps) for ps in combinations(*image.phases))
    sizes = g.wide_sizes if g.transposed else g.narrow_sizes
    met = [
        sum(_met(p, sizes[k], image.counts[k], t, image.steps[k], reload or k == 0) for p in image.phases[k])
        for k, t in enumerate((1, *tile[1:]))
    ]
    weights = image.tiles(rows, tile) / blocks * taps * image.channels
    return weights, float(g.batch * prod(met) * blocks * image.groups)


def _met(p: Phase, length: int, count: int, tile: int, step: int, each: bool) -> int:
    """Positions of one axis of the other image that all tiles meet in one phase. each: tap by tap, not as one window."""
    if not p.taps:
        return 0
    starts = np.arange(0, count, tile) * step + p.first
    if each:
        at = np.arange(tile)[:, None] * step + np.arange(p.taps)[None, :] * p.distance
    else:
        at = np.arange((tile - 1) * step + (p.taps - 1) * p.distance + 1)
    found = starts[:, None] + at.ravel()[None, :]
    return int(((found >= 0) & (found < length)).sum())


def weight_work(
    weights: Weights, knobs: dict[str, Any], tile: Tile, rates: Rates, products: Products
) -> GradientWork:
    """Of grad_weight, one part of its sums. knobs: as chosen; tile: positions of a chunk."""
    rows, cols = knobs["weight_m"], knobs["weight_n"]
    one = products.of(rows, cols * weights.taps, prod(tile), None, weights.window(tile))
    chunks, tiles = weights.chunks(tile), weights.tiles(rows, cols)
    m, (narrow, wide) = weights.merging, _met_by_weights(weights, rows, cols, tile)
    mte1 = one.a + one.b
    return GradientWork(
        tiles=tiles,
        items=tiles,
        mmad=one.m,
        mte1=mte1,
        all_mmad=tiles * chunks * one.m,
        all_mte1=tiles * chunks * mte1,
        first=one.first,
        last=one.last,
        moved=(narrow * m.narrow + wide * m.wide) * rates.itemsize,
        rows=narrow * -(-m.narrow // rows) * (rows < m.narrow_pitch)
        + wide * -(-m.wide // cols) * (cols < m.wide_pitch),
        laps=mte1,
        iterations=1,
        guess=weights.chunk_cycles(rates, rows, cols, tile),
        chunks=chunks,
        step=prod(tile),
        drain=weights.drain_cycles(rows, cols),
        l0c=up(rows, 16) * up(cols * weights.taps, 16) * 4,
        l1=weights.room(tile, rows, cols) * rates.itemsize,
    )


def _met_by_weights(weights: Weights, rows: int, cols: int, tile: Tile) -> tuple[float, float]:
    """Positions of both images that tiles of grad_weight load, for all blocks of the other image's channels."""
    g, m = weights.geometry, weights.merging
    down, across = -(-m.narrow // rows), -(-m.wide // cols)
    narrow = g.axes[0].taps * weights.tap_blocks * prod(g.narrow_sizes)
    met = [
        _under(g.axes[0], 1, 0),
        _under(g.axes[1], tile[1], weights.down if weights.down > 1 else 0),
        _under(g.axes[2], tile[2], weights.across if weights.windows else 0),
    ]
    images = float(g.batch * m.count)
    return images * narrow * across, images * prod(met) * down


def _under(axis: Axis, tile: int, windows: int) -> int:
    """Positions of one axis of the wide image that chunks meet; windows: taps that are loaded at once, 0 for tap by tap."""
    starts = np.arange(0, axis.narrow, tile) * axis.stride - axis.before
    if windows:
        span = np.arange((tile - 1) * axis.stride + (windows - 1) * axis.dilation + 1)
        firsts = np.arange(0, axis.taps, windows)
    else:
        span, firsts = np.arange(tile) * axis.stride, np.arange(axis.taps)
    at = (span[:, None] + firsts[None, :] * axis.dilation).ravel()
    found = starts[:, None] + at[None, :]
    return int(((found >= 0) & (found < axis.wide)).sum())
