# mypy: disable-error-code="no-untyped-def"
"""The launch that copies between a strided tensor and a contiguous one, whatever the strides.

The host side of the device makes inputs contiguous with a kernel each before the operator's own kernel runs
(hicann/opbase, `Contiguous`), and copies results into strided outputs (`ViewCopy`); here these are launches like any other,
so that a strided call costs what it costs.

A tile lies along the axis that is contiguous in the source and the axis that is contiguous in the output. Where these are
two, the Vector unit transposes it in between. Tiles are halved until what they take in UB is there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import simulator as sim
from ...simulator import language as tl
from ...simulator.products import Product
from ..operator.layout import Axes, contiguous_strides, merge_axes, unravel, up
from ..operator.plan import Step
from ..operator.tensors import Tensor, dtype_of

BLOCK_BYTES = 32  # to which a row of a tile is padded in UB; an element that is loaded alone takes one, too
LINE_BYTES = 512  # of L2: bursts that start with one are the fastest
LEAST_BYTES = 8192  # of a tile: below it a transfer costs more than it moves, so no more cores are woken
MARGIN_BYTES = 1024
COPIES = 2  # of a tile in UB: the next one is loaded while this one is stored
LANES = 16  # rows of a fractal of the transposition
INTERLEAVED_BYTES = 64  # the longest period of interleaved channels that is loaded as it lies


@sim.jit
def copy_strided(
    source_ptr, out_ptr, items,
    LENGTHS: tl.constexpr, FROM: tl.constexpr, TO: tl.constexpr, TILE: tl.constexpr, LOADED: tl.constexpr,
    TRANSPOSED: tl.constexpr,
):  # fmt: skip
    """out = source in tiles of TILE along the last three axes: LENGTHS of the axes, strides FROM and TO.

    LOADED: TILE, but 1 along axes that the source repeats. TRANSPOSED: the last two axes change places before the store.
    """
    wide = (LENGTHS[-1] + TILE[2] - 1) // TILE[2]
    high = (LENGTHS[-2] + TILE[1] - 1) // TILE[1]
    deep = (LENGTHS[-3] + TILE[0] - 1) // TILE[0]
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        outer = item // wide // high // deep
        z, y = item // wide // high % deep * TILE[0], item // wide % high * TILE[1]
        x = item % wide * TILE[2]
        planes = tl.arange(0, LOADED[0])[:, None, None]
        rows, cols = tl.arange(0, LOADED[1])[None, :, None], tl.arange(0, LOADED[2])[None, None, :]
        at = unravel(outer, LENGTHS[:-3], FROM[:-3]) + z * FROM[-3] + y * FROM[-2] + x * FROM[-1]
        inside = (planes < LENGTHS[-3] - z) & (rows < LENGTHS[-2] - y) & (cols < LENGTHS[-1] - x)
        tile = tl.load(source_ptr + at + planes * FROM[-3] + rows * FROM[-2] + cols * FROM[-1], mask=inside)
        planes, rows, cols = tl.arange(0, TILE[0]), tl.arange(0, TILE[1]), tl.arange(0, TILE[2])
        planes = planes[:, None, None]
        if TRANSPOSED:
            tile = tl.permute(tile, (0, 2, 1))
            rows, cols = rows[None, None, :], cols[None, :, None]
            tile = tl.broadcast_to(tile, (TILE[0], TILE[2], TILE[1]))
        else:
            rows, cols = rows[None, :, None], cols[None, None, :]
            tile = tl.broadcast_to(tile, (TILE[0], TILE[1], TILE[2]))
        at = unravel(outer, LENGTHS[:-3], TO[:-3]) + z * TO[-3] + y * TO[-2] + x * TO[-1]
        inside = (planes < LENGTHS[-3] - z) & (rows < LENGTHS[-2] - y) & (cols < LENGTHS[-1] - x)
        tl.store(out_ptr + at + planes * TO[-3] + rows * TO[-2] + cols * TO[-1], tile, mask=inside)


@sim.jit
def copy_apart(
    source_ptr, out_ptr, items,
    LENGTHS: tl.constexpr, FROM: tl.constexpr, TO: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Interleaved channels to planes: the last two axes of LENGTHS are pixels, FROM[-2] elements apart, and their channels.

    A tile of 16 * TILE pixels is loaded as it lies in memory. Two transpositions of whole fractals take it apart: 16 spans
    of pixels become the last axis, then what is behind a channel becomes its row.
    """
    PERIOD: tl.constexpr = FROM[-2]
    PIXELS: tl.constexpr = 16 * TILE
    wide = (LENGTHS[-2] + PIXELS - 1) // PIXELS
    pixel, channel = tl.arange(0, PIXELS)[None, :], tl.arange(0, LENGTHS[-1])[:, None]
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        first = item % wide * PIXELS
        at = unravel(item // wide, LENGTHS[:-2], FROM[:-2]) + first * PERIOD
        inside = tl.arange(0, PIXELS * PERIOD) < (LENGTHS[-2] - first - 1) * PERIOD + LENGTHS[-1]
        flat = tl.load(source_ptr + at + tl.arange(0, PIXELS * PERIOD), mask=inside)
        spans = tl.permute(tl.reshape(flat, (16, TILE * PERIOD)), (1, 0))
        spans = tl.reshape(spans, (TILE, PERIOD, 16))
        if LENGTHS[-1] != PERIOD:
            spans = tl.extra.cann.extension.extract_slice(
                spans, (0, 0, 0), (TILE, LENGTHS[-1], 16), (1, 1, 1)
            )
        planes = tl.reshape(tl.permute(spans, (1, 2, 0)), (LENGTHS[-1], PIXELS))
        at = unravel(item // wide, LENGTHS[:-2], TO[:-2]) + first
        tl.store(out_ptr + at + channel * TO[-1] + pixel, planes, mask=pixel < LENGTHS[-2] - first)


@sim.jit
def copy_together(
    source_ptr, out_ptr, items,
    LENGTHS: tl.constexpr, FROM: tl.constexpr, TO: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Planes to interleaved channels, the way back of `copy_apart`: TO[-2] is the number of channels."""
    CHANNELS: tl.constexpr = LENGTHS[-1]
    PIXELS: tl.constexpr = 16 * TILE
    wide = (LENGTHS[-2] + PIXELS - 1) // PIXELS
    pixel, channel = tl.arange(0, PIXELS)[None, :], tl.arange(0, CHANNELS)[:, None]
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        first = item % wide * PIXELS
        at = unravel(item // wide, LENGTHS[:-2], FROM[:-2]) + first
        planes = tl.load(source_ptr + at + channel * FROM[-1] + pixel, mask=pixel < LENGTHS[-2] - first)
        spans = tl.permute(tl.reshape(planes, (CHANNELS, 16, TILE)), (2, 0, 1))
        spans = tl.permute(tl.reshape(spans, (TILE * CHANNELS, 16)), (1, 0))
        flat = tl.reshape(spans, (PIXELS * CHANNELS,))
        at = unravel(item // wide, LENGTHS[:-2], TO[:-2]) + first * CHANNELS
        inside = tl.arange(0, PIXELS * CHANNELS) < (LENGTHS[-2] - first) * CHANNELS
        tl.store(out_ptr + at + tl.arange(0, PIXELS * CHANNELS), flat, mask=inside)


def copy_step(source: np.ndarray, out: Tensor, product: Product) -> Step:
    """Launch that copies a strided array into a contiguous tensor of the same shape."""
    return _copy(source, element_strides(source), out, contiguous_strides(source.shape), product)


def view_copy_step(source: Tensor, out: np.ndarray, product: Product) -> Step:
    """Launch that copies a contiguous tensor into a strided array of the same shape."""
    return _copy(source, contiguous_strides(source.shape), out, element_strides(out), product)


def permuted_copy_step(source: Tensor, order: Sequence[int], out: Tensor, product: Product) -> Step:
    """Launch that copies a contiguous tensor with its axes in another order: axis k of `out` is order[k] of `source`."""
    strides = contiguous_strides(source.shape)
    return _copy(source, [strides[k] for k in order], out, contiguous_strides(out.shape), product)


def element_strides(a: np.ndarray) -> tuple[int, ...]:
    """Strides in elements."""
    return tuple(s // a.itemsize for s in a.strides)


def _copy(source: Tensor, of: Sequence[int], out: Tensor, to: Sequence[int], product: Product) -> Step:
    axes = merge_axes(out.shape, [of, to])
    itemsize = dtype_of(source).itemsize
    tiling = _interleaved(axes, itemsize, product) or _tiled(axes, itemsize, product)
    pointers = {"source_ptr": source, "out_ptr": out, "multibuffer": COPIES}
    return Step(tiling.kernel, min(product.vector_cores, tiling.items), {**pointers, **tiling.arguments})


@dataclass(frozen=True)
class CopyTiling:
    """A kernel, its tiles in all, and its arguments but for the tensors."""

    kernel: Any
    items: int
    axes: Axes
    choice: dict[str, Any]

    @property
    def arguments(self) -> dict[str, Any]:
        sides = dict(zip(("FROM", "TO"), self.axes.strides, strict=True))
        return {"items": self.items, "LENGTHS": self.axes.lengths, **sides, **self.choice}


# -- tiles along two axes --------------------------------------------------------------------------------------------


def _tiled(axes: Axes, itemsize: int, product: Product) -> CopyTiling:
    """The last axis is contiguous in the source, and in the output the last one or (TRANSPOSED) the one before it."""
    axes, transposed = _in_order(axes)
    lengths, (of, to) = axes.lengths, axes.strides

    def need(tile: Sequence[int]) -> int:
        return footprint_bytes(tile, of[-3:], to[-3:], transposed, itemsize)

    def items(tile: Sequence[int]) -> int:
        return math.prod(lengths[:-3]) * math.prod(
            -(-n // k) for n, k in zip(lengths[-3:], tile, strict=True)
        )

    def idle(tile: Sequence[int]) -> bool:
        return items(tile) < product.vector_cores and math.prod(tile) * itemsize > LEAST_BYTES

    tile = _halved(lengths[-3:], transposed, itemsize, lambda t: need(t) > product.ub_bytes)
    tile = _halved(tile, transposed, itemsize, idle)
    choice = {"TILE": tile, "LOADED": _loaded(tile, of[-3:]), "TRANSPOSED": transposed}
    return CopyTiling(copy_strided, items(tile), axes, choice)


def _in_order(axes: Axes) -> tuple[Axes, bool]:
    """The axes with those of a tile behind the others, three at least; whether the last two change places on the way.

    The last one is contiguous in the source. Where none is, or the output has none, elements move one by one anyway, and
    both sides go along the same axis.
    """
    number = range(len(axes.lengths))
    of, to = axes.strides
    loaded = min(number, key=lambda k: (abs(of[k]) != 1, -k), default=None)
    stored = min(number, key=lambda k: (abs(to[k]), -k), default=None)
    if loaded is None or stored is None:
        return _ordered(axes, ()), False
    if abs(of[loaded]) != 1:
        loaded = stored
    elif abs(to[stored]) != 1:
        stored = loaded
    transposed = loaded != stored
    last = [stored, loaded] if transposed else [loaded]
    rest = sorted((k for k in number if k not in last), key=lambda k: (axes.lengths[k], k))
    return _ordered(axes, [*rest, *last]), transposed


def _ordered(axes: Axes, order: Sequence[int]) -> Axes:
    missing = max(0, 3 - len(order))
    lengths = (1,) * missing + tuple(axes.lengths[k] for k in order)
    return Axes(lengths, tuple((0,) * missing + tuple(s[k] for k in order) for s in axes.strides))


def _loaded(tile: Sequence[int], of: Sequence[int]) -> tuple[int, ...]:
    """What is loaded of a tile: one element along an axis that the source repeats."""
    return tuple(1 if s == 0 else n for n, s in zip(tile, of, strict=True))


def footprint_bytes(
    tile: Sequence[int], of: Sequence[int], to: Sequence[int], transposed: bool, itemsize: int
) -> int:
    """UB bytes of a tile of `copy_strided`, at most (a test holds it against the placement).

    Rows are padded to blocks; elements that are not neighbours take a block each, as they land and as they leave. What is
    transposed or repeated needs a second place.
    """
    loaded = _loaded(tile, of)
    stored = (tile[0], tile[2], tile[1]) if transposed else tuple(tile)
    reach = (to[0], to[2], to[1]) if transposed else tuple(to)
    total = _tile_bytes(loaded, of, itemsize)
    if transposed or loaded != tuple(tile):
        total += _rows_bytes(stored, itemsize)
    if _alone(stored, reach):
        total += math.prod(stored) * BLOCK_BYTES
    return total * COPIES + MARGIN_BYTES


def _tile_bytes(tile: Sequence[int], strides: Sequence[int], itemsize: int) -> int:
    return math.prod(tile) * BLOCK_BYTES if _alone(tile, strides) else _rows_bytes(tile, itemsize)


def _rows_bytes(tile: Sequence[int], itemsize: int) -> int:
    return math.prod(tile[:-1]) * up(tile[-1] * itemsize, BLOCK_BYTES)


def _alone(tile: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the elements of a tile's rows are not neighbours in memory."""
    inner = [s for n, s in zip(tile, strides, strict=True) if n > 1]
    return bool(inner) and abs(inner[-1]) > 1


def _halved(
    tile: Sequence[int], transposed: bool, itemsize: int, too_large: Callable[[Sequence[int]], bool]
) -> tuple[int, ...]:
    """The tile halved until it is not too large, or one element: planes, then rows, or the longer side if TRANSPOSED."""
    tile = list(tile)
    while too_large(tile) and max(tile) > 1:
        axis = next(k for k, n in enumerate(tile) if n > 1)
        if transposed and axis > 0:
            axis = max((2, 1), key=lambda k: tile[k])
        tile[axis] = _half(tile[axis], itemsize)
    return tuple(tile)


def _half(n: int, itemsize: int) -> int:
    """Half of a length, up to whole lines of L2 if there are some, else to whole blocks."""
    half = -(-n // 2)
    for grain in (LINE_BYTES // itemsize, BLOCK_BYTES // itemsize):
        if half > grain and up(half, grain) < n:
            return up(half, grain)
    return half


# -- interleaved channels --------------------------------------------------------------------------------------------


def _interleaved(axes: Axes, itemsize: int, product: Product) -> CopyTiling | None:
    """Channels that mix on one side, fewer than fill a block, and lie apart on the other; None if it is not so."""
    of, to = axes.strides
    for kernel, mixed, plain in ((copy_apart, of, to), (copy_together, to, of)):
        found = _channels(axes, mixed, plain)
        if found is None:
            continue
        pixels, channel, period = found
        count = 1 if channel is None else axes.lengths[channel]
        short = period * itemsize < BLOCK_BYTES or (count < period and period * itemsize <= INTERLEAVED_BYTES)
        if not short or (kernel is copy_together and count != period):
            continue
        order = [k for k in range(len(axes.lengths)) if k not in (pixels, channel)]
        ordered = _with_channels(axes, order, pixels, channel)
        tiling = _of_channels(kernel, ordered, period, itemsize, product)
        if tiling is not None:
            return tiling
    return None


def _channels(axes: Axes, mixed: Sequence[int], plain: Sequence[int]) -> tuple[int, int | None, int] | None:
    """(axis of the pixels, of the channels or None for one of them, elements from pixel to pixel) where channels mix."""
    pixels = next((k for k, s in enumerate(plain) if s == 1), None)
    if pixels is None or mixed[pixels] < 2:
        return None
    channel = next((k for k, s in enumerate(mixed) if s == 1), None)
    if channel is not None and axes.lengths[channel] > mixed[pixels]:
        return None
    return pixels, channel, mixed[pixels]


def _with_channels(axes: Axes, order: Sequence[int], pixels: int, channel: int | None) -> Axes:
    if channel is not None:
        order = [*order, pixels, channel]
        return Axes(
            tuple(axes.lengths[k] for k in order), tuple(tuple(s[k] for k in order) for s in axes.strides)
        )
    order = [*order, pixels]
    lengths = (*(axes.lengths[k] for k in order), 1)
    return Axes(lengths, tuple((*(s[k] for k in order), 0) for s in axes.strides))


def _of_channels(kernel: Any, axes: Axes, period: int, itemsize: int, product: Product) -> CopyTiling | None:
    """TILE: pixels of each of 16 spans, whole fractals; None if there are fewer pixels than one tile of them has."""
    count, pixels = axes.lengths[-1], axes.lengths[-2]
    each = LANES * LANES * itemsize * COPIES * (2 * period + (2 * count if count < period else count))
    most = (product.ub_bytes - MARGIN_BYTES) // each
    share = -(-pixels * math.prod(axes.lengths[:-2]) // product.vector_cores)
    wanted = max(share, LEAST_BYTES // (count * itemsize))
    steps = min(most, -(-pixels // LANES**2), -(-wanted // LANES**2))
    if steps < 1 or pixels < LANES**2:
        return None
    items = math.prod(axes.lengths[:-2]) * -(-pixels // (steps * LANES**2))
    return CopyTiling(kernel, items, axes, {"TILE": steps * LANES})
