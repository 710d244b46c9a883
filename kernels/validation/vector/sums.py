# mypy: disable-error-code="no-untyped-def"
"""Sums, norms, means and maxima: of everything, of rows, of columns, of a middle axis, of images and places.

Where there are more cores than results, several cores share one: each writes its part to a workspace, all wait for each
other, and the parts are joined. A vendor's kernel of this kind chooses one of many schedules when it runs: see
`starts.SLOW_START`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.jit_function import JitFunction
from ....simulator.language.extra.cann import extension as al
from ....simulator.products import load_product
from ....simulator.record.run import Run
from ..registry import Prediction, predicts
from ..settings import (
    BYTES,
    Settings,
    dtypes_of,
    fastest,
    halves,
    matrices_of,
    measured_time,
    note_of,
    roofline_us,
    shape_of,
    sizes_of,
    tensor,
    volume,
)
from ..table import Row
from .starts import LANES, slow_start_us
from .tiles import tile_elements

LINE_BYTES = 512  # of L2


@sim.jit
def added(x, axis: tl.constexpr):
    return tl.sum(x, axis)


@sim.jit
def greatest(x, axis: tl.constexpr):
    return tl.max(x, axis)


@sim.jit
def least(x, axis: tl.constexpr):
    return tl.min(x, axis)


@sim.jit
def both_added(x, y):
    return x + y


@sim.jit
def greater(x, y):
    return tl.maximum(x, y)


@sim.jit
def less(x, y):
    return tl.minimum(x, y)


@sim.jit
def summed(
    x_ptr, part_ptr, out_ptr, n, per_core,
    SQUARES: tl.constexpr, BLOCK: tl.constexpr, CORES: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """A norm or a mean: sums of squares or of elements; with two stages the first core adds the parts of the cores.

    A norm has the barrier on one core, too. STAGES 0: each core adds its part to the result in memory.
    """
    core = tl.program_id(0)
    start = core * per_core
    end = min(start + per_core, n)
    total = tl.zeros((BLOCK,), tl.float32)
    for s in range(start, end, BLOCK):
        offsets = s + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < end).to(tl.float32)
        total += x * x if SQUARES else x
    if STAGES == 0:
        tl.atomic_add(out_ptr, tl.sum(total))
    elif STAGES == 1:
        tl.store(out_ptr, tl.sum(total).to(out_ptr.dtype.element_ty))
    else:
        tl.store(part_ptr + core * 8, tl.sum(total))
        if SQUARES or CORES > 1:
            al.sync_block_all("all_vector", 0)
        if core == 0:
            parts = tl.load(part_ptr + tl.arange(0, CORES * 8))
            tl.store(out_ptr, tl.sum(parts).to(out_ptr.dtype.element_ty))


@sim.jit
def channel_sums(
    x_ptr, out_ptr, images, channels, n, each, IMAGES: tl.constexpr, WIDE: tl.constexpr
):  # fmt: skip
    """Sums over images and places: a core has `each` channels that follow each other."""
    start = tl.program_id(0) * each
    for channel in range(start, min(start + each, channels)):
        total = tl.zeros((IMAGES,), tl.float32)
        for first in range(0, images, IMAGES):
            for s in range(0, n, WIDE):
                image, place = first + tl.arange(0, IMAGES), s + tl.arange(0, WIDE)
                at = (image[:, None] * channels + channel) * n + place[None, :]
                mask = (image < images)[:, None] & (place < n)[None, :]
                total += tl.sum(tl.load(x_ptr + at, mask=mask).to(tl.float32), axis=1)
        tl.store(out_ptr + channel, tl.sum(total).to(out_ptr.dtype.element_ty))


@sim.jit
def rows_reduced(
    x_ptr, y_ptr, rows, n, JOIN: tl.constexpr, REDUCE: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr
):  # fmt: skip
    """Each row to one number; a core has one range of rows."""
    each = tl.cdiv(rows, tl.num_programs(0))
    start = tl.program_id(0) * each
    end = min(start + each, rows)
    for s in range(start, end, ROWS):
        row = s + tl.arange(0, ROWS)
        kept = tl.zeros((ROWS, WIDE), tl.float32)
        for left in range(0, n, WIDE):
            column = left + tl.arange(0, WIDE)
            mask = (row < end)[:, None] & (column < n)[None, :]
            kept = JOIN(kept, tl.load(x_ptr + row[:, None] * n + column[None, :], mask=mask).to(tl.float32))
        tl.store(y_ptr + row, REDUCE(kept, 1).to(y_ptr.dtype.element_ty), mask=row < end)


@sim.jit
def middle_reduced(
    x_ptr, part_ptr, y_ptr, A, B, C, per_part,
    JOIN: tl.constexpr, REDUCE: tl.constexpr, PARTS: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """The middle one of three axes: columns of a slab in strips of WIDE, each strip in PARTS parts of `per_part` rows."""
    strips = tl.cdiv(C, WIDE)
    for unit in range(tl.program_id(0), A * strips * PARTS, tl.num_programs(0)):
        slab, part = unit // (strips * PARTS), unit % PARTS
        column = unit // PARTS % strips * WIDE + tl.arange(0, WIDE)
        end = min(part * per_part + per_part, B)
        kept = tl.zeros((WIDE,), tl.float32)
        for s in range(part * per_part, end, ROWS):
            row = s + tl.arange(0, ROWS)
            mask = (row < end)[:, None] & (column < C)[None, :]
            x = tl.load(x_ptr + (slab * B + row[:, None]) * C + column[None, :], mask=mask)
            kept = JOIN(kept, REDUCE(x.to(tl.float32), 0))
        if PARTS == 1:
            tl.store(y_ptr + slab * C + column, kept.to(y_ptr.dtype.element_ty), mask=column < C)
        else:
            tl.store(part_ptr + (part * A + slab) * C + column, kept, mask=column < C)
    if PARTS > 1:
        al.sync_block_all("all_vector", 0)
        for unit in range(tl.program_id(0), A * strips, tl.num_programs(0)):
            slab, column = unit // strips, unit % strips * WIDE + tl.arange(0, WIDE)
            part = tl.arange(0, PARTS)
            at = (part[:, None] * A + slab) * C + column[None, :]
            x = tl.load(part_ptr + at, mask=(column < C)[None, :])
            tl.store(y_ptr + slab * C + column, REDUCE(x, 0).to(y_ptr.dtype.element_ty), mask=column < C)


JOINED: dict[str, tuple[JitFunction, JitFunction]] = {
    "sum": (both_added, added),
    "mean": (both_added, added),
    "max": (greater, greatest),
    "min": (less, least),
}


def _predicted(row: Row, run: Run, read: float, *notes: str) -> Prediction:
    """With the start of a kernel that chooses its schedule when it runs."""
    time = measured_time(row, run) + slow_start_us(row)
    return Prediction(time, roofline_us(row, (read, 0)), "; ".join(x for x in notes if x))


def _room(row: Row, bytes_of_one: int) -> int:
    """Elements of a tile of which two copies, and what is computed, fill UB."""
    return tile_elements(row, 4 * bytes_of_one)


def _can_wait(row: Row) -> bool:
    """Whether the cores of the row's product can wait for each other inside of a kernel."""
    return load_product(row.product).core_model == "split"


def _kinds(row: Row) -> tuple[str, str]:
    """Element types of the input and of the result."""
    (kind, *_), (result, *_) = dtypes_of(row)
    return kind, result


@predicts("reduce_lpnorm", "reduce_mean", "reduce_sum")
def _whole(row: Row) -> Prediction:
    """A number from all elements: one part for each core, and a last stage that adds them up.

    A norm has that stage on one core, too: its profile says MIX_AIV, as of all kernels that synchronise their cores. It
    starts as fast as an element-wise kernel: 40 cores read 8.4 MB within 15 us (msi-qwen-reduce_lpnorm-6).
    """
    s, n, (kind, result) = Settings(row), volume(shape_of(row)), _kinds(row)
    cores, given = s.number("cores"), s.number("block", 0)
    tensors = tensor(kind, n), tensor("fp32", cores * LANES), tensor(result, 1)
    full = tile_elements(row, 16 * s.number("buffers", 2))
    norm = row.op == "reduce_lpnorm"
    stages = 1 if cores == 1 and not norm else 2
    if not _can_wait(row):  # for each other: each core adds to one number of fp32
        stages, tensors = min(stages, 1) if cores == 1 else 0, (*tensors[:2], tensor("fp32", 1))
    how = {"SQUARES": norm, "CORES": cores, "STAGES": stages}
    run, block, count = fastest(
        row,
        [given] if given else halves(full, 256),
        lambda block: summed.time((cores,), *tensors, n, -(-n // cores), **how, BLOCK=block),
    )
    note = "" if given else note_of(count, f"blocks of {block}")
    if norm or n == 1:  # the sum of one element is a copy
        return Prediction(measured_time(row, run), roofline_us(row, (n * BYTES[kind], 0)), note)
    return _predicted(row, run, n * BYTES[kind], note)


@predicts("reduce_sum images")
def _images(row: Row) -> Prediction:
    """shapes: images x channels x places; what is left has one number for each channel.

    One buffer, if the row does not say: of three profiles the shares of Vector unit, scalar unit and MTE2 add up to the
    cores' time (msi-alexnet-reduce_sum-5, -7, -8), and the number of cores is that of channels over channels of a core.
    """
    if not Settings(row).text("buffers"):
        row = replace(row, tiling=f"{row.tiling} buffers=1")
    images, channels, n = sizes_of(row, "images x channels x places")
    cores, (kind, result) = Settings(row).number("cores"), _kinds(row)
    room, tensors = _room(row, 4), (tensor(kind, images * channels * n), tensor(result, channels))

    def work(most: int) -> Run:
        wide = min(n, most)
        tile = {"IMAGES": max(1, min(images, most // wide)), "WIDE": wide}
        return channel_sums.time((cores,), *tensors, images, channels, n, -(-channels // cores), **tile)  # type: ignore[no-any-return]

    run, most, count = fastest(row, halves(room, 256), work)
    return _predicted(row, run, images * channels * n * BYTES[kind], note_of(count, f"tiles of {most}"))


@predicts(*(f"reduce_{how} rows" for how in JOINED))
def _rows(row: Row) -> Prediction:
    """shapes: rows x columns; one number for each row."""
    (rows, n), (kind, result), join = sizes_of(row, "rows x columns"), _kinds(row), _join(row)
    cores, tensors = Settings(row).number("cores"), (tensor(kind, rows * n), tensor(result, rows))

    def work(most: int) -> Run:
        wide = min(n, most)
        tile = {"ROWS": max(1, min(-(-rows // cores), most // wide)), "WIDE": wide}
        return rows_reduced.time((cores,), *tensors, rows, n, **join, **tile)  # type: ignore[no-any-return]

    run, most, count = fastest(row, halves(_room(row, 6), 64), work)
    return _predicted(row, run, rows * n * BYTES[kind], note_of(count, f"tiles of {most}"))


@predicts(*(f"reduce_{how} {axis}" for how in JOINED for axis in ("columns", "middle")))
def _middle(row: Row) -> Prediction:
    """shapes: a x b x c, of which b goes; columns: b x c. Cores have strips of columns, in whole blocks of 32 bytes.

    Where strips leave more than half of the cores without work, several share one. A strip is a core's share of the columns,
    or wide enough for whole lines of L2, which cost less to read and more to join: the faster one.
    """
    (a, b, c), (kind, result), join = matrices_of(row), _kinds(row), _join(row)
    cores, room = Settings(row).number("cores"), _room(row, 6)
    shapes = tensor(kind, a * b * c), tensor(result, a * c)

    def sharing(strip: int) -> int:
        return max(1, min(cores // (a * -(-c // strip)), b)) if _can_wait(row) else 1

    def work(choice: tuple[int, int]) -> Run:
        strip, most = choice
        parts = sharing(strip)
        per_part = -(-b // parts)
        tile = {"ROWS": max(1, min(per_part, most // strip)), "WIDE": strip, "PARTS": parts}
        workspace = tensor("fp32", parts * a * c)
        arguments = shapes[0], workspace, shapes[1], a, b, c, per_part
        return middle_reduced.time((cores,), *arguments, **join, **tile)  # type: ignore[no-any-return]

    block, line = 32 // BYTES[kind], LINE_BYTES // BYTES[kind]
    share = min(-(-a * c // cores), c)
    strips = {min(-(-x // block) * block, room) for x in (share, min(line, c), min(4 * line, c))}
    choices = [(strip, most) for strip in sorted(strips) for most in halves(room, 64)]
    run, (strip, most), count = fastest(row, choices, work)
    note = (
        f"strips of {strip} columns, {sharing(strip)} cores to a strip; {note_of(count, f'tiles of {most}')}"
    )
    return _predicted(row, run, a * b * c * BYTES[kind], note)


def _join(row: Row) -> dict[str, Any]:
    """How two numbers are joined, and how a tile is reduced: by the op's name."""
    join, reduce = JOINED[row.op.split()[0].removeprefix("reduce_")]
    return {"JOIN": join, "REDUCE": reduce}
