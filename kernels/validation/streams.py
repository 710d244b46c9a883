# mypy: disable-error-code="no-untyped-def"
"""Kernels that stream tensors through UB: element-wise operations, casts, copies, fills and sums of everything.

A core has one range of neighbouring elements and goes through it in blocks. Arithmetic in bf16 is done in fp32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import simulator as sim
from ...simulator import language as tl
from ...simulator.jit_function import JitFunction
from ...simulator.products import load_product
from ...simulator.record.run import Run
from .registry import Prediction, predicts
from .settings import (
    BYTES,
    Settings,
    dtypes_of,
    fastest,
    halves,
    measured_time,
    note_of,
    overhead_us,
    roofline_us,
    shape_of,
    tensor,
    volume,
)
from .table import Row


@sim.jit
def fetched(ptr, offsets, mask, PAST: tl.constexpr):
    """A block, in fp32 if it is bf16; PAST: it is not kept in L2."""
    x = tl.load(ptr + offsets, mask=mask, cache_modifier=".cv" if PAST else "")
    return x.to(tl.float32) if ptr.dtype.element_ty == tl.bfloat16 else x


@sim.jit
def one_in(x_ptr, y_ptr, n, per_core, OP: tl.constexpr, PAST: tl.constexpr, BLOCK: tl.constexpr):
    start = tl.program_id(0) * per_core
    end = min(start + per_core, n)
    nothing = tl.zeros((BLOCK,), y_ptr.dtype.element_ty)
    for s in range(start, end, BLOCK):
        offsets = s + tl.arange(0, BLOCK)
        mask = offsets < end
        if OP == "copy":
            y = tl.load(x_ptr + offsets, mask=mask)
        elif OP == "fill":
            y = nothing
        elif OP == "relu":
            y = tl.maximum(fetched(x_ptr, offsets, mask, PAST), 0.0)
        elif OP == "muls":
            y = fetched(x_ptr, offsets, mask, PAST) * 0.5
        elif OP == "log":
            y = tl.log(fetched(x_ptr, offsets, mask, PAST))
        else:
            y = fetched(x_ptr, offsets, mask, PAST)
        tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=mask)


@sim.jit
def two_in(x_ptr, y_ptr, z_ptr, n, per_core, OP: tl.constexpr, PAST: tl.constexpr, BLOCK: tl.constexpr):
    start = tl.program_id(0) * per_core
    end = min(start + per_core, n)
    for s in range(start, end, BLOCK):
        offsets = s + tl.arange(0, BLOCK)
        mask = offsets < end
        x, y = fetched(x_ptr, offsets, mask, PAST), fetched(y_ptr, offsets, mask, PAST)
        if OP == "add" or OP == "add_to":
            z = x + y
        elif OP == "sub":
            z = x - y
        elif OP == "mul":
            z = x * y
        elif OP == "div":
            z = x / y
        else:
            z = tl.where(y > 0.0, x, 0.0)
        if OP == "add_to":
            tl.store(x_ptr + offsets, z.to(x_ptr.dtype.element_ty), mask=mask)
        else:
            tl.store(z_ptr + offsets, z.to(z_ptr.dtype.element_ty), mask=mask)


@sim.jit
def rows_by_scalar(x_ptr, s_ptr, y_ptr, rows, n, DIVIDE: tl.constexpr, BLOCK: tl.constexpr):
    """Each row has one number that is taken from it, or by which it is divided."""
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        number = tl.load(s_ptr + row)
        for s in range(0, n, BLOCK):
            offsets = s + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * n + offsets, mask=offsets < n)
            tl.store(y_ptr + row * n + offsets, x / number if DIVIDE else x - number, mask=offsets < n)


@sim.jit
def summed(x_ptr, out_ptr, n, per_core, SQUARES: tl.constexpr, BLOCK: tl.constexpr):
    """A norm or a mean: sums of squares or of elements, one partial sum for each core."""
    start = tl.program_id(0) * per_core
    end = min(start + per_core, n)
    total = tl.zeros((BLOCK,), tl.float32)
    for s in range(start, end, BLOCK):
        offsets = s + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < end)
        total += x * x if SQUARES else x
    tl.store(out_ptr + tl.program_id(0), tl.sum(total))


@sim.jit
def row_maximum(x_ptr, out_ptr, rows, n, BLOCK: tl.constexpr):
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        most = tl.full((BLOCK,), float("-inf"), tl.float32)
        for s in range(0, n, BLOCK):
            offsets = s + tl.arange(0, BLOCK)
            most = tl.maximum(most, tl.load(x_ptr + row * n + offsets, mask=offsets < n))
        tl.store(out_ptr + row, tl.max(most))


@sim.jit
def channel_sums(x_ptr, out_ptr, images, channels, n, BLOCK: tl.constexpr):
    """Sums over images and places: a core has channels of its own."""
    for channel in range(tl.program_id(0), channels, tl.num_programs(0)):
        total = tl.zeros((BLOCK,), tl.float32)
        for image in range(0, images):
            for s in range(0, n, BLOCK):
                place = s + tl.arange(0, BLOCK)
                at = (image * channels + channel) * n + place
                total += tl.load(x_ptr + at, mask=place < n)
        tl.store(out_ptr + channel, tl.sum(total))


@sim.jit
def momentum(w_ptr, m_ptr, g_ptr, n, per_core, BLOCK: tl.constexpr):
    """One step: weights and their momentum are read and written, the gradient is read."""
    start = tl.program_id(0) * per_core
    end = min(start + per_core, n)
    for s in range(start, end, BLOCK):
        o = s + tl.arange(0, BLOCK)
        mask = o < end
        m = tl.load(m_ptr + o, mask=mask) * 0.9 + tl.load(g_ptr + o, mask=mask)
        tl.store(m_ptr + o, m, mask=mask)
        tl.store(w_ptr + o, tl.load(w_ptr + o, mask=mask) - m * 0.001, mask=mask)


@sim.jit
def adamw(w_ptr, m_ptr, v_ptr, g_ptr, n, per_core, BLOCK: tl.constexpr):
    """One step: weights and both moments are read and written, the gradient is read."""
    start = tl.program_id(0) * per_core
    end = min(start + per_core, n)
    for s in range(start, end, BLOCK):
        o = s + tl.arange(0, BLOCK)
        mask = o < end
        g = tl.load(g_ptr + o, mask=mask)
        m = tl.load(m_ptr + o, mask=mask) * 0.9 + g * 0.1
        v = tl.load(v_ptr + o, mask=mask) * 0.95 + g * g * 0.05
        w = tl.load(w_ptr + o, mask=mask) * 0.999 - m / (tl.sqrt(v) + 1e-8) * 0.001
        tl.store(m_ptr + o, m, mask=mask)
        tl.store(v_ptr + o, v, mask=mask)
        tl.store(w_ptr + o, w, mask=mask)


ONE = {"memcpy": "copy", "cast": "cast", "relu": "relu", "muls": "muls", "log": "log", "memset": "fill"}
TWO = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "div": "div",
    "relu_grad": "relu_grad",
    "foreach_add": "add_to",
}
LARGEST = 16384  # elements of a block
# Kernel, tensors, bytes moved for each element.
STEPS = {"adamw": (adamw, 4, 28), "momentum": (momentum, 3, 20)}


def _tried(row: Row, bytes_of_one: int, work: Callable[[int], Run]) -> tuple[Run, str]:
    """The run with the block that the row states, or else the fastest of three: as much as fills UB with two copies of every
    tile and what is computed, half of it, and a quarter.
    """
    s = Settings(row)
    given, room = s.number("block", 0), load_product(row.product).ub_bytes
    full = min(LARGEST, room // (bytes_of_one * s.number("buffers", 2) * 2))
    run, block, count = fastest(row, [given] if given else halves(full, 256), work)
    return run, "" if given else note_of(count, f"blocks of {block}")


def _streamed(
    row: Row,
    bytes_of_one: int,
    moved: int,
    kernel: JitFunction,
    *arguments: Any,
    left_out: str = "",
    **how: Any,
) -> Prediction:
    """A kernel that takes a block beside these arguments, on the row's cores.

    bytes_of_one: what an element needs in UB; moved: bytes of all tensors.
    """
    grid, widest = (Settings(row).number("cores"),), how.pop("widest", None)
    run, note = _tried(
        row,
        bytes_of_one,
        lambda block: kernel.time(grid, *arguments, **how, BLOCK=min(block, widest or block)),
    )
    note = "; ".join(x for x in (note, left_out) if x)
    return Prediction(measured_time(row, run), roofline_us(row, moved), note)


@predicts(*ONE)
def _one(row: Row) -> Prediction:
    n, share = _elements(row)
    (source, *_), (target, *_) = dtypes_of(row)
    moved = (0 if row.op == "memset" else BYTES[source]) + BYTES[target]
    tensors = tensor(source, n), tensor(target, n)
    return _streamed(row, moved, n * moved, one_in, *tensors, n, share, OP=ONE[row.op], PAST=False)


@predicts(*TWO)
def _two(row: Row) -> Prediction:
    """stretch: elements of a core, where the example splits whole rows; l2=past: the inputs are not kept in L2.

    grid=blocks: one program for each block, however many cores there are.
    """
    s, n = Settings(row), volume(shape_of(row))
    (a, b), (c, *_) = dtypes_of(row)
    moved, part = BYTES[a] + BYTES[b] + BYTES[c], s.number("part", 1)

    def work(block: int) -> Run:
        blocks = s.text("grid") == "blocks"
        cores = -(-n // block) if blocks else s.number("cores")
        per_core = block if blocks else s.number("stretch", -(-n // cores))
        return two_in.time(  # type: ignore[no-any-return]
            (cores,), tensor(a, n), tensor(b, n), tensor(c, n), n, per_core // part,
            OP=TWO[row.op], PAST=s.text("l2") == "past", BLOCK=block,
        )  # fmt: skip

    run, note = _tried(row, moved, work)
    time = measured_time(row, run) + (part - 1) * (run.time_us - overhead_us(run))
    note = f"1/{part} of the elements simulated" if part > 1 else note
    return Prediction(time, roofline_us(row, n * moved), note)


@predicts("sub row", "div row")
def _rows(row: Row) -> Prediction:
    rows, n = shape_of(row)
    tensors = tensor("fp32", rows * n), tensor("fp32", rows), tensor("fp32", rows * n)
    return _streamed(row, 8, rows * n * 8, rows_by_scalar, *tensors, rows, n, DIVIDE=row.op == "div row")


@predicts("argmax row")
def _row_maximum(row: Row) -> Prediction:
    rows, n = shape_of(row)
    tensors = tensor("fp32", rows * n), tensor("fp32", rows)
    left_out = "the index is left out"
    return _streamed(row, 8, rows * n * 4, row_maximum, *tensors, rows, n, left_out=left_out)


@predicts("reduce_lpnorm", "reduce_mean", "reduce_sum")
def _whole(row: Row) -> Prediction:
    """A number from all elements: one partial sum for each core; adding those up is left out."""
    (n, share), cores = _elements(row), Settings(row).number("cores")
    tensors, squares = (tensor("fp32", n), tensor("fp32", cores)), row.op == "reduce_lpnorm"
    left_out = "adding up the parts of the cores is left out" if cores > 1 else ""
    return _streamed(row, 8, n * 4, summed, *tensors, n, share, left_out=left_out, SQUARES=squares)


@predicts("reduce_sum images")
def _channels(row: Row) -> Prediction:
    """shapes: images x channels x places; what is left has one number for each channel."""
    images, channels, n = shape_of(row)
    size = images * channels * n
    tensors, widest = (tensor("fp32", size), tensor("fp32", channels)), -(-n // 8) * 8
    return _streamed(row, 8, size * 4, channel_sums, *tensors, images, channels, n, widest=widest)


@predicts(*STEPS)
def _step(row: Row) -> Prediction:
    """One step of an optimiser over a tensor."""
    n, share = _elements(row)
    kernel, count, moved = STEPS[row.op]
    tensors = [tensor("fp32", n) for _ in range(count)]
    return _streamed(row, moved + 8, n * moved, kernel, *tensors, n, share)


def _elements(row: Row) -> tuple[int, int]:
    """Elements in all, and of a core."""
    n = volume(shape_of(row))
    return n, -(-n // Settings(row).number("cores"))
