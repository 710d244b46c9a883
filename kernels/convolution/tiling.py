"""Knobs of convolution backward, and their choice from the product's buffers and the number of its cores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ...simulator.errors import UsageError
from ...simulator.products import Product
from ..operator.declared import read_parameters
from ..operator.layout import up
from ..operator.plan import cores_of
from ..operator.tensors import Knobs
from .geometry import FRACTAL, Geometry, Merging
from .tiles.costs import MOST_POSITIONS, Image, Rates, Tile, Weights, makespan, position_tiles

PARAMETERS = read_parameters(__file__, "convolution_backward")
EXACT_PRODUCTS = 2**33  # multiplications up to which auto is exact: a few seconds in the Cube's order
L1_KEPT = 4096
MOST_UNROLLED = 128  # phases, or taps of all of them, in one kernel
DENSE_STRIDE = 4  # up to which what lies between positions is loaded with them
MOST_WEIGHT_TAPS = 32  # taps of a part of a row in a tile of grad_weight
MOST_COLUMNS = 512  # of a tile of grad_weight with several rows of taps
MIN_PART = 256  # least positions of a part of the sums of grad_weight
MOST_PARTS = 64
# Positions of a tile that are tried.
LENGTHS = (*range(FRACTAL, 321, FRACTAL), 384, 448, 512, 768, 1024, 1536, 2048)
DEPTHS = (16, 32, 64, 128, 256)


@dataclass(frozen=True)
class ChosenTiles:
    """Every knob as used, and the (images, rows, columns) of a tile of grad_input and of a step of grad_weight."""

    knobs: dict[str, Any]
    image: Tile
    weight: Tile


def choose(
    g: Geometry,
    m: Merging,
    knobs: Knobs,
    product: Product,
    operand: str,
    itemsize: int,
    seen: Geometry | None = None,
    rows: bool = False,
) -> ChosenTiles:
    """Every knob: as given, or by the rules here, cut to what the shapes allow.

    operand: what the Cube multiplies. seen: the geometry of grad_input if it is not that of grad_weight. rows: grad_input is
    stored as rows of channels first.
    """
    base = tuple(knobs[f"base_{axis}"] for axis in "mnk")
    if any(base) and not all(base):
        raise UsageError(f"convolution_backward: give base_m, base_n and base_k together or none; got {base}")
    out = {**knobs, "cores": cores_of(product, "cube", knobs["cores"]), "merged_groups": m.extent}
    if out["accumulate"] == "auto":
        out["accumulate"] = "exact" if 2 * g.products() <= EXACT_PRODUCTS else "blas"
    rates = Rates(product, operand, itemsize, out["cores"])
    image = Image.of(seen or g, m, rows, in_matrices(m, knobs))
    cycles, tile = choose_image(image, out, rates)
    step = choose_weight(g, m, out, rates)
    items = image.tiles(out["block_m"], tile) if out["launches"] != "apart" else 0
    weights = Weights(g, m, out["weight_taps"])
    out["weight_parts"] = knobs["weight_parts"] or _parts(weights, out, rates, step, items, cycles)
    return ChosenTiles(out, tile, step)


def one_tap_each(image: Image) -> bool:
    """Whether each of several phases meets one tap of a plane: a window keeps nothing, and phases apart share cores."""
    return len(image.planes) > 1 and all(h * w <= 1 for _, h, w, _, _ in image.planes)


def in_matrices(m: Merging, knobs: Mapping[str, Any]) -> bool:
    """Whether weights are multiplied as matrices, not in blocks of C0 channels."""
    return m.extent > 1 or (knobs["filter_layout"] == "ND" and knobs["strategy"] != "vendor")


def has_windows(g: Geometry, matrices: bool) -> bool:
    """Whether phases, and by weights in matrices the taps of all of them, are not too many to be unrolled."""
    each = (sum(p.taps for p in axis) if matrices else len(axis) for axis in g.phases)
    return prod(each) <= MOST_UNROLLED


def choose_image(image: Image, out: dict[str, Any], rates: Rates) -> tuple[float, Tile]:
    """The least time of all rounds; puts taps, block_m, block_p and block_k into `out`. Gives the cycles of a tile."""
    choices = ("window", "reload") if has_windows(image.geometry, image.matrices) else ("reload",)
    if out["taps"] in choices:
        choices = (out["taps"],)
    elif out["launches"] == "apart" and one_tap_each(image):
        choices = ("reload",)
    best: tuple[bool, float, float, Any] | None = None
    for rows, tile in _image_tiles(image, out, rates):
        rounds = -(-image.tiles(rows, tile) // rates.cores)
        for taps in choices:
            room = (rates.product.l1_bytes - L1_KEPT) // rates.itemsize
            depths = _depths(image, out, rates)
            for deep in depths:
                if image.room(tile, rows, taps, deep, out["buffers"]) > room and deep > depths[0]:
                    break
                cycles = image.cycles(rates, taps, rows, tile, deep)
                over = image.room(tile, rows, taps, deep, 1) > room
                if best is not None and (over, rounds * cycles) >= best[:2]:
                    continue  # whatever its first loads take
                fill = image.fill_cycles(rates, taps, rows, tile, deep)
                found = over, rounds * cycles + fill  # one copy has to fit
                if best is None or found < best[:2]:
                    best = *found, cycles, (taps, rows, tile, deep)
    assert best is not None
    out["taps"], out["block_m"], tile, out["block_k"] = best[3]
    out["block_p"] = out["block_p"] or prod(tile)
    return best[2], tile


def _image_tiles(image: Image, out: Mapping[str, Any], rates: Rates) -> Iterator[tuple[int, Tile]]:
    """Tiles whose sums fit L0C, and UB where they leave through it; the smallest if none does."""
    rows = [min(out["block_m"], up(image.channels, FRACTAL))] if out["block_m"] else _edges(image.channels)
    lengths = [out["block_p"]] if out["block_p"] else LENGTHS
    tiles = list(position_tiles(image.geometry.batch, image.counts[1], image.counts[2], lengths))
    pairs = [(r, t) for r in rows for t in tiles]
    most = sums_that_leave(rates.product, rates.itemsize)
    fits = [(r, t) for r, t in pairs if up(r, FRACTAL) * up(prod(t), FRACTAL) <= most]
    return iter(fits or [min(pairs, key=lambda x: x[0] * prod(x[1]))])


def sums_that_leave(product: Product, itemsize: int) -> int:
    """Numbers of a tile of sums: those that L0C holds; on coupled cores also UB, in float32 and twice as they are stored."""
    room = product.l0c_bytes // 4
    if product.core_model == "split":
        return room
    return min(room, product.ub_bytes // (4 + 2 * itemsize))


def _depths(image: Image, out: Mapping[str, Any], rates: Rates) -> list[int]:
    """Channels of a step: what is given, or those tried."""
    whole = up(image.depth, rates.c0)
    if out["block_k"]:
        return [min(up(out["block_k"], max(FRACTAL, rates.c0)), whole)]
    return sorted({min(max(d, rates.c0), whole) for d in DEPTHS})


def choose_weight(g: Geometry, m: Merging, out: dict[str, Any], rates: Rates) -> Tile:
    """The least cycles for each position; puts weight_m, weight_n, weight_p and weight_taps into `out`."""
    least, whole = (rates.c0, rates.c0) if rates.c0 > FRACTAL else (FRACTAL, 1)  # blocks are loaded whole
    rows, cols = (
        [min(up(given, whole), up(channels, FRACTAL))] if given else _edges(channels, least)
        for given, channels in ((out["weight_m"], m.narrow), (out["weight_n"], m.wide))
    )
    lengths = [out["weight_p"]] if out["weight_p"] else [n for n in LENGTHS if n <= MOST_POSITIONS]
    tiles = list(position_tiles(g.batch, g.narrow_sizes[1], g.narrow_sizes[2], lengths))
    room = (rates.product.l1_bytes - L1_KEPT) // rates.itemsize
    best: tuple[bool, float, Any] | None = None
    for windows in _weight_windows(g, out["weight_taps"]):
        fewer = windows < g.axes[2].taps and (windows or g.axes[2].stride <= DENSE_STRIDE)
        if best and not best[0] and fewer:
            continue  # more taps fit
        weights = Weights(g, m, windows)
        most = sums_that_leave(rates.product, 0)  # as they are: what follows casts them
        fits = [(a, b) for a in rows for b in cols if up(a, FRACTAL) * up(b * weights.taps, FRACTAL) <= most]
        for a, b in fits or [(min(rows), min(cols))]:
            for tile in tiles:
                loaded = weights.room(tile, a, b)
                if loaded * out["buffers"] > room and tile != tiles[0]:
                    continue
                over = not fits or loaded > room
                cycles = weights.chunks(tile) * weights.tiles(a, b) * weights.chunk_cycles(rates, a, b, tile)
                if best is None or (over, cycles) < best[:2]:
                    best = over, cycles, (a, b, windows, tile)
    assert best is not None
    out["weight_m"], out["weight_n"], out["weight_taps"], step = best[2]
    out["weight_p"] = out["weight_p"] or prod(step)
    return step  # type: ignore[no-any-return]


def _weight_windows(g: Geometry, asked: int | None) -> list[int]:
    """Taps of a tile of grad_weight that are tried: rows of the kernel, parts of one, and one tap by itself.

    Several rows are for few channels: as columns of one product they fill it, and the image is read fewer times.
    """
    down, taps = g.axes[1].taps, g.axes[2].taps
    if asked is not None:
        return [min(asked, taps) if asked < 2 * taps else min(asked // taps, down) * taps]
    found, most = [], min(taps, MOST_WEIGHT_TAPS)
    if up(g.wide_channels, FRACTAL // 2) * taps * 2 <= MOST_COLUMNS:
        found = sorted({-(-down // n) * taps for n in range(1, down)}, reverse=True)
        found = [n for n in found if n > taps]
    while most:
        found.append(-(-taps // -(-taps // most)))
        most //= 2
    return [*found, 0]


def _parts(
    weights: Weights, out: Mapping[str, Any], rates: Rates, step: Tile, items: int, cycles: float
) -> int:
    """Parts of the sums of grad_weight; `items` tiles of grad_input come before."""
    a, b = out["weight_m"], out["weight_n"]
    chunk, drain = weights.chunk_cycles(rates, a, b, step), weights.drain_cycles(a, b)
    figures = weights.tiles(a, b), weights.chunks(step), prod(step), chunk, drain
    return int(best_parts(rates.cores, items, cycles, *(np.array(x) for x in figures)))


def best_parts(
    cores: Any,
    items: Any,
    cycles: Any,
    tiles: np.ndarray,
    chunks: np.ndarray,
    step: np.ndarray,
    chunk: np.ndarray,
    drain: np.ndarray,
) -> np.ndarray:
    """Parts of the sums of grad_weight, so that all cores end at the same time; numbers, or columns of tilings.

    items, cycles: tiles of grad_input, and how long one takes; tiles of grad_weight, chunks of a sum, positions of a chunk,
    cycles of a chunk and of what follows the last one.
    """
    most = np.minimum(np.minimum(MOST_PARTS, chunks), np.maximum(1, chunks * step // MIN_PART))
    best, least = np.ones_like(most), np.full(np.shape(most), np.inf)
    for parts in range(1, int(most.max()) + 1):
        times = makespan(cores, items, cycles, tiles * parts, -(-chunks // parts) * chunk + drain)
        better = (times < least) & (parts <= most)
        best, least = np.where(better, parts, best), np.where(better, times, least)
    return np.asarray(best)


def _edges(channels: int, least: int = FRACTAL) -> list[int]:
    return sorted({min(n, up(channels, FRACTAL)) for n in range(32, 257, 32)} | {min(least, channels)})
