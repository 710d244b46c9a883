"""Knobs of convolution backward, and their choice from the product's buffers and the number of its cores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, prod
from typing import Any

from ...simulator.errors import UsageError
from ...simulator.products import Product
from ..layout import even_part, up
from ..parameter import choice, integer
from .geometry import FRACTAL, Geometry, Merging

PARAMETERS = (
    choice(
        "taps",
        "auto",
        ("auto", "window", "reload", "patch"),
        "taps of grad_input as windows of an image in L1, loaded one by one, or as channels of whole patches",
    ),
    integer("block_m", None, 1, None, "channels of a tile of grad_input"),
    integer("block_p", None, 1, None, "positions of a tile of grad_input"),
    integer("block_k", None, 1, None, "channels of a step of its sums"),
    integer("weight_m", None, 1, None, "channels of grad_output in a tile of grad_weight"),
    integer("weight_n", None, 1, None, "channels of input in a tile of grad_weight"),
    integer("weight_p", None, 1, None, "positions of a step of its sums"),
    integer("weight_parts", None, 1, None, "parts of the sums of grad_weight"),
    choice(
        "combine",
        "atomic",
        ("atomic", "two_phase"),
        "parts by atomic add, or by a second kernel (same bits each run)",
    ),
    integer("merged_groups", None, 1, None, "groups merged into one product"),
    integer("base_m", 0, 0, None, "rows of a tile in L0A; 0 is the largest that fits twice"),
    integer("base_n", 0, 0, None, "columns of a tile in L0B; 0 as above"),
    integer("base_k", 0, 0, None, "depth of a tile in L0A; 0 as above"),
    integer("cores", None, 1, None, "Cube cores that share the tiles; all of the product if left out"),
    integer("buffers", 2, 1, 16, "copies of a tile in L1"),
    choice(
        "accumulate", "auto", ("auto", "exact", "blas"), "order of additions: the Cube's, or numpy's (faster)"
    ),
)
EXACT_PRODUCTS = 2**33  # multiplications up to which auto is exact: a few seconds in the Cube's order
L1_KEPT = 4096
MOST_UNROLLED = 128  # taps of all phases in one kernel
LOAD_RATE = 110  # bytes per cycle that a core loads, for the choice of a tile only
NOT_HIDDEN = 0.1  # part of shorter pipes that the longest does not hide, likewise
L0_FIXED = 40  # cycles of a tile of L0 beside its bytes, likewise
ITEM_CYCLES = 1000  # of starting a tile
STEP_ELEMENTS = 65536  # of both images in a step of grad_weight
MIN_PART = 1024  # least positions of a part of the sums of grad_weight


def choose(
    g: Geometry, m: Merging, knobs: Mapping[str, Any], product: Product, itemsize: int
) -> dict[str, Any]:
    """Every knob: as given, or by the rules here, cut to what the shapes allow."""
    base = tuple(knobs[f"base_{axis}"] for axis in "mnk")
    if any(base) and not all(base):
        raise UsageError(f"convolution_backward: give base_m, base_n and base_k together or none; got {base}")
    out = {**knobs, "cores": cube_cores(knobs["cores"], product), "merged_groups": m.extent}
    if out["accumulate"] == "auto":
        out["accumulate"] = "exact" if 2 * g.products() <= EXACT_PRODUCTS else "blas"
    if out["taps"] in ("auto", "patch") or (out["taps"] == "window" and not has_windows(g)):
        out["taps"] = "window" if has_windows(g) else "reload"
    out["block_m"], out["block_p"] = image_tile(g, m, out, product, itemsize)
    depth = m.wide if g.transposed else m.narrow
    per_channel = channel_elements(g, out)
    room = (product.l1_bytes - L1_KEPT) // (knobs["buffers"] * itemsize * per_channel)
    unit = l0_depth(max(out["block_m"], out["block_p"]), product, itemsize)
    out["block_k"] = min(knobs["block_k"] or depth_of(depth, room, unit), up(depth, FRACTAL))
    out["weight_m"], out["weight_n"] = weight_tile(g, m, knobs, product, itemsize)
    out["weight_p"] = knobs["weight_p"] or weight_positions(g, out, product, itemsize)
    out["weight_parts"] = knobs["weight_parts"] or parts_of(g, m, out)
    return out


def has_windows(g: Geometry) -> bool:
    """Whether all phases meet some tap of each plane, and are not too many to be unrolled."""
    phases = [a.phases(not g.transposed) for a in g.axes]
    unrolled = prod(sum(p.taps for p in axis) for axis in phases)
    return unrolled <= MOST_UNROLLED and all(p.taps for axis in phases[1:] for p in axis)


def l0_depth(longest: int, product: Product, itemsize: int) -> int:
    """Channels of a tile of which two fit in L0A and L0B."""
    return max(FRACTAL, product.l0b_bytes // 2 // (up(longest, FRACTAL) * itemsize) // FRACTAL * FRACTAL)


def depth_of(channels: int, room: int, unit: int) -> int:
    """Channels of a step: whole tiles of L0, as many as fit and no more than 256."""
    most = max(FRACTAL, min(256, room // FRACTAL * FRACTAL))
    even = up(even_part(channels, min(unit, most)), FRACTAL)
    return even * max(1, min(most // even, -(-channels // even)))


@dataclass(frozen=True)
class Image:
    """What grad_input is cut from: channels and the length of their sums, positions of a phase, taps of a plane."""

    channels: int
    depth: int
    counts: tuple[int, ...]
    taps: tuple[float, ...]
    steps: tuple[int, ...]
    distances: tuple[int, ...]

    @classmethod
    def of(cls, g: Geometry, m: Merging) -> Image:
        gather = not g.transposed
        phases = [a.phases(gather) for a in g.axes]
        sizes = g.wide_sizes if gather else g.narrow_sizes
        return cls(
            channels=m.wide if gather else m.narrow,
            depth=m.narrow if gather else m.wide,
            counts=tuple(-(-n // len(p)) for n, p in zip(sizes, phases, strict=True)),
            taps=tuple(a.taps / len(p) for a, p in zip(g.axes, phases, strict=True)),
            steps=tuple(1 if gather else a.stride for a in g.axes),
            distances=tuple(p[0].distance for p in phases),
        )

    def seen(self, tile: tuple[int, int, int]) -> int:
        """Positions of the other image that a tile of (images, rows, columns) meets."""
        spans = [
            (x - 1) * self.steps[k] + (ceil(self.taps[k]) - 1) * self.distances[k] + 1
            for k, x in ((1, tile[1]), (2, tile[2]))
        ]
        return up(tile[0] * spans[0] * spans[1], FRACTAL)


def channel_elements(g: Geometry, chosen: Mapping[str, Any]) -> int:
    """Elements in L1 for each channel of a step of grad_input: weights of all taps, and the image with its borders."""
    if chosen["taps"] == "reload":
        return int(chosen["block_m"] + chosen["block_p"])
    image = Image.of(g, Merging(1, 1, 1, 1))
    tile = position_tile(g.batch, image.counts[1], image.counts[2], chosen["block_p"])
    return int(chosen["block_m"]) * ceil(image.taps[1]) * ceil(image.taps[2]) + image.seen(tile)


def image_tile(
    g: Geometry, m: Merging, chosen: Mapping[str, Any], product: Product, itemsize: int
) -> tuple[int, int]:
    """(channels, positions) of a tile of grad_input: least time of all rounds by a rough count of cycles.

    A tile that leaves no room in L0C for the next one's sums waits for the fixpipe.
    """
    image, cores, macs = Image.of(g, m), chosen["cores"], FRACTAL**3 * 2 // itemsize
    plane, taps = image.taps[1] * image.taps[2], prod(image.taps)
    windows = chosen["taps"] == "window"

    def cost(pair: tuple[int, int]) -> tuple[float, int]:
        rows, wanted = pair
        n, h, w = tile = position_tile(g.batch, image.counts[1], image.counts[2], wanted)
        positions = up(n * h * w, FRACTAL)
        tiles = (
            -(-image.channels // rows)
            * -(-g.batch // n)
            * -(-image.counts[1] // h)
            * -(-image.counts[2] // w)
        )
        rounds = -(-tiles * image.counts[0] * m.count // cores)
        loaded = rows + image.seen(tile) / max(1.0, plane) if windows else rows + positions
        to_l0 = (rows / 256 + (1.1 if windows else 1.0) * positions / 128) * itemsize
        low, middle, high = sorted((rows * positions / macs, to_l0, loaded * itemsize / LOAD_RATE))
        deep = -(-image.depth // l0_depth(max(rows, positions), product, itemsize))
        turn = taps * (image.depth * (high + NOT_HIDDEN * (middle + low)) + deep * L0_FIXED)
        drain = rows * positions * 4 / 120 + 1500 if rows * positions * 8 > product.l0c_bytes else 0
        return rounds * (turn + drain + ITEM_CYCLES), -rows * positions

    rows = [chosen["block_m"]] if chosen["block_m"] else _edges(image.channels)
    lengths = (
        [chosen["block_p"]] if chosen["block_p"] else [*range(FRACTAL, 513, FRACTAL), 768, 1024, 1536, 2048]
    )
    pairs = [(r, p) for r in rows for p in lengths if up(r, 16) * up(p, 16) * 4 <= product.l0c_bytes]
    best = min(pairs, key=cost) if pairs else (min(rows), min(lengths))
    return min(best[0], up(image.channels, FRACTAL)), best[1]


def cube_cores(wanted: int | None, product: Product) -> int:
    if wanted is not None and wanted > product.cube_cores:
        raise UsageError(
            f"tiling parameter 'cores' is {wanted}, {product.name} has {product.cube_cores} cube cores"
        )
    return wanted or product.cube_cores


def parts_of(g: Geometry, m: Merging, chosen: Mapping[str, Any]) -> int:
    """Parts of the sums of grad_weight: as many as fill all cores evenly, each of at least MIN_PART positions."""
    tiles = weight_tiles_of(g, m, chosen)
    positions = g.batch * prod(g.narrow_sizes)
    most = max(1, positions // MIN_PART)
    cores: int = chosen["cores"]
    return min(range(1, most + 1), key=lambda n: (-(-tiles * n // cores) / n, n)) if most <= 512 else cores


def weight_tiles_of(g: Geometry, m: Merging, chosen: Mapping[str, Any]) -> int:
    """Tiles of grad_weight over all rows of taps and merged groups."""
    down, across = -(-m.narrow // int(chosen["weight_m"])), -(-m.wide // int(chosen["weight_n"]))
    return m.count * g.axes[0].taps * g.axes[1].taps * down * across


def weight_tile(
    g: Geometry, m: Merging, knobs: Mapping[str, Any], product: Product, itemsize: int
) -> tuple[int, int]:
    """(rows, columns) of a tile: sums of a row of taps in L0C, least time for each position by a rough count of cycles."""
    taps, halo = g.axes[2].taps, 1 + (g.axes[2].taps - 1) / 28
    macs = FRACTAL**3 * 2 // itemsize

    def cost(tile: tuple[int, int]) -> tuple[float, int]:
        a, b = tile
        tiles = -(-m.narrow // a) * -(-m.wide // b)
        multiply = taps * a * b / macs
        to_l0 = taps * (a / 256 + 1.1 * b / 128) * itemsize
        load = (a + b * halo * g.axes[2].stride) * itemsize / LOAD_RATE
        low, middle, high = sorted((multiply, to_l0, load))
        return tiles * (high + NOT_HIDDEN * (middle + low)), -a * b

    rows = [knobs["weight_m"]] if knobs["weight_m"] else _edges(m.narrow)
    cols = [knobs["weight_n"]] if knobs["weight_n"] else _edges(m.wide)
    fits = [(a, b) for a in rows for b in cols if taps * up(a, 16) * up(b, 16) * 4 <= product.l0c_bytes]
    a, b = min(fits, key=cost) if fits else (min(rows), min(cols))
    return min(a, up(m.narrow, FRACTAL)), min(b, up(m.wide, FRACTAL))


def _edges(channels: int) -> list[int]:
    return sorted({min(n, up(channels, FRACTAL)) for n in range(32, 257, 32)} | {min(FRACTAL, channels)})


def weight_positions(g: Geometry, chosen: Mapping[str, Any], product: Product, itemsize: int) -> int:
    """Positions of a step: as many as L1 holds with the borders of the wide image, no more than pays."""
    room = (product.l1_bytes - L1_KEPT) // (chosen["buffers"] * itemsize)
    w = g.axes[2]
    most = min(
        1024, max(256, STEP_ELEMENTS // (chosen["weight_m"] + chosen["weight_n"]) // FRACTAL * FRACTAL)
    )
    for positions in range(most, FRACTAL, -FRACTAL):
        bn, bh, bw = position_tile(g.batch, g.narrow_sizes[1], g.narrow_sizes[2], positions)
        span = (bw - 1) * w.stride + (w.taps - 1) * w.dilation + 1
        seen = up(bn * bh * span, FRACTAL) * chosen["weight_n"]
        if up(bn * bh * bw, FRACTAL) * chosen["weight_m"] + seen <= room:
            return positions
    return FRACTAL


def position_tile(batch: int, height: int, width: int, positions: int) -> tuple[int, int, int]:
    """(images, rows, columns) of a tile of at most `positions`: whole rows first, then whole images."""
    w = even_part(width, positions)
    h = even_part(height, max(1, positions // w)) if w == width else 1
    n = even_part(batch, max(1, positions // (w * h))) if h == height else 1
    return n, h, w
