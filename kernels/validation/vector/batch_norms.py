# mypy: disable-error-code="no-untyped-def"
"""Batch norms in the four kernels of a training step, and group norms.

What a channel's numbers are made of is summed over images and places, and what they give is a pass over all rows; a row is
the places of a channel in an image. Nobody published times of these kernels with their sizes: nothing here is fitted.
"""

from __future__ import annotations

from typing import Any

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.jit_function import JitFunction
from ....simulator.record.run import Run
from ..registry import Prediction, predicts
from ..settings import (
    BYTES,
    Settings,
    dtypes_of,
    fitting,
    measured_time,
    note_of,
    roofline_us,
    sizes_of,
    tensor,
)
from ..table import Row
from .rowwise import tiled
from .softmaxes import layer_norm
from .starts import larger_code_us
from .tiles import own_rows, tile_elements

ROUNDS = 4  # of cores through channels, at least, where there are images to share


@sim.jit
def channel_moments(
    x_ptr, g_ptr, out_ptr, images, channels, n, each,
    TWO: tl.constexpr, SHARED: tl.constexpr, IMAGES: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Of each channel of x (images, channels, n) the sum and that of squares; TWO: those of g and of g x.

    Cores take channels in turn, or SHARED: `each` images of a channel, whose sums they add in memory.
    """
    parts = tl.cdiv(images, each)
    for unit in range(tl.program_id(0), channels * parts, tl.num_programs(0)):
        channel, start = unit // parts, unit % parts * each
        end = min(start + each, images)
        total, along = tl.zeros((IMAGES, WIDE), tl.float32), tl.zeros((IMAGES, WIDE), tl.float32)
        for first in range(start, end, IMAGES):
            for s in range(0, n, WIDE):
                image, place = first + tl.arange(0, IMAGES), s + tl.arange(0, WIDE)
                at = (image[:, None] * channels + channel) * n + place[None, :]
                mask = (image < end)[:, None] & (place < n)[None, :]
                x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
                g = tl.load(g_ptr + at, mask=mask, other=0.0).to(tl.float32) if TWO else x
                total += g
                along += g * x
        if SHARED:
            tl.atomic_add(out_ptr + channel, tl.sum(total))
            tl.atomic_add(out_ptr + channels + channel, tl.sum(along))
        else:
            tl.store(out_ptr + channel, tl.sum(total))
            tl.store(out_ptr + channels + channel, tl.sum(along))


@sim.jit
def channels_scaled(
    x_ptr, g_ptr, a_ptr, b_ptr, y_ptr, rows, n, channels,
    TWO: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """y = x a + b with a and b of each row's channel; TWO: g a + x b."""
    start, end = own_rows(rows)
    for s in range(start, end, ROWS):
        row = s + tl.arange(0, ROWS)
        a = tl.load(a_ptr + row % channels, mask=row < end)[:, None]
        b = tl.load(b_ptr + row % channels, mask=row < end)[:, None]
        for left in range(0, n, WIDE):
            column = left + tl.arange(0, WIDE)
            mask = (row < end)[:, None] & (column < n)[None, :]
            at = row[:, None] * n + column[None, :]
            x = tl.load(x_ptr + at, mask=mask).to(tl.float32)
            if TWO:
                y = tl.load(g_ptr + at, mask=mask).to(tl.float32) * a + x * b
            if not TWO:
                y = x * a + b
            tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=mask)


@predicts("batchnorm_reduce", "batchnorm_update_grad")
def _moments(row: Row) -> Prediction:
    """shapes: images x channels x places. reduce: sum and squares of x; update_grad: sums of dy, and of dy x."""
    images, channels, n = sizes_of(row, "images x channels x places")
    (kind, *_), cores = dtypes_of(row)[0], Settings(row).number("cores")
    two, size = row.op.endswith("grad"), images * channels * n
    tensors = tensor(kind, size), tensor(kind, size if two else 1), tensor("fp32", 2 * channels)
    room = tile_elements(row, 32)
    parts = 1 if channels >= ROUNDS * cores else min(images, -(-ROUNDS * cores // channels))
    each = -(-images // parts)

    def work(most: int) -> Run:
        wide = min(n, most)
        tile = {"TWO": two, "SHARED": parts > 1, "IMAGES": max(1, min(each, most // wide)), "WIDE": wide}
        return channel_moments.time((cores,), *tensors, images, channels, n, each, **tile)  # type: ignore[no-any-return]

    run, most, count = fitting(row, room, 64, work)
    moved = ((1 + two) * size * BYTES[kind], 8 * channels)
    time = measured_time(row, run) + larger_code_us(row)
    return Prediction(time, roofline_us(row, moved), note_of(count, f"tiles of {most}"))


@predicts("batchnorm_update", "batchnorm_reduce_grad")
def _scaled(row: Row) -> Prediction:
    """shapes: images x channels x places. update: x a + b; reduce_grad: dy a + x b; a and b of each channel."""
    images, channels, n = sizes_of(row, "images x channels x places")
    (kind, *_), (result, *_) = dtypes_of(row)
    two, size, numbers = row.op.endswith("grad"), images * channels * n, tensor("fp32", channels)
    tensors: tuple[Any, ...] = tensor(kind, size), tensor(kind, size if two else 1), numbers, numbers
    moved = ((1 + two) * size * BYTES[kind], size * BYTES[result])
    kernel: JitFunction = channels_scaled
    return tiled(
        row, moved, 24 + 12 * two, (images * channels, n), kernel, *tensors, tensor(result, size),
        channels=channels, TWO=two,
    )  # fmt: skip


@predicts("groupnorm")
def _group_norm(row: Row) -> Prediction:
    """shapes: groups of all images x elements of a group; with gamma and beta."""
    (rows, n), (kind, *_) = sizes_of(row, "groups x elements"), dtypes_of(row)[0]
    tensors = tensor(kind, rows * n), tensor(kind, n), tensor(kind, n), tensor(kind, rows * n)
    return tiled(row, (rows * n * BYTES[kind],) * 2, 32, (rows, n), layer_norm, *tensors)
