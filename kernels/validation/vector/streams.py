# mypy: disable-error-code="no-untyped-def"
"""Kernels that stream tensors through UB: element-wise operations, casts, copies, fills.

A core has one range of neighbouring elements and goes through it in blocks. Arithmetic in bf16 is done in fp32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.errors import UsageError
from ....simulator.jit_function import JitFunction
from ....simulator.record.run import Run
from ..registry import Prediction, predicts
from ..remarks import remark
from ..settings import (
    BYTES,
    Settings,
    dtypes_of,
    fastest,
    fitting,
    measured_time,
    note_of,
    overhead_us,
    roofline_us,
    shape_of,
    tensor,
    volume,
)
from ..table import Row
from .expressions import BINARY, TERNARY, UNARY
from .starts import larger_code_us
from .tiles import tile_elements


@sim.jit
def fetched(ptr, offsets, mask, PAST: tl.constexpr):
    """A block, in fp32 if it is bf16; PAST: it is not kept in L2."""
    x = tl.load(ptr + offsets, mask=mask, cache_modifier=".cv" if PAST else "")
    return x.to(tl.float32) if ptr.dtype.element_ty == tl.bfloat16 else x


@sim.jit
def own_elements(n, per_core):
    """The first element of a core, and the one behind its last; in int64, as there may be more than 2**31 of them."""
    start = tl.program_id(0).to(tl.int64) * per_core
    return start, min(start + per_core, n)


@sim.jit
def one_in(x_ptr, y_ptr, n, per_core, FN: tl.constexpr, WIDEN: tl.constexpr, BLOCK: tl.constexpr):
    """WIDEN: of bf16 to fp32, for arithmetic; a copy moves what is there."""
    start, end = own_elements(n, per_core)
    for s in range(start, end, BLOCK):
        offsets = s + tl.arange(0, BLOCK)
        x = (
            fetched(x_ptr, offsets, offsets < end, False)
            if WIDEN
            else tl.load(x_ptr + offsets, mask=offsets < end)
        )
        tl.store(y_ptr + offsets, FN(x).to(y_ptr.dtype.element_ty), mask=offsets < end)


@sim.jit
def none_in(y_ptr, n, per_core, NUMBERED: tl.constexpr, BLOCK: tl.constexpr):
    """One number everywhere, or NUMBERED: the numbers of a range."""
    start, end = own_elements(n, per_core)
    y = tl.zeros((BLOCK,), y_ptr.dtype.element_ty)
    step = tl.arange(0, BLOCK).to(y_ptr.dtype.element_ty) if NUMBERED else y
    for s in range(start, end, BLOCK):
        offsets = s + tl.arange(0, BLOCK)
        tl.store(y_ptr + offsets, step + s if NUMBERED else y, mask=offsets < end)


@sim.jit
def two_in(
    x_ptr, y_ptr, z_ptr, n, per_core,
    FN: tl.constexpr, PAST: tl.constexpr, IN_PLACE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """IN_PLACE: the result goes to where the first operand was."""
    start, end = own_elements(n, per_core)
    for s in range(start, end, BLOCK):
        offsets = s + tl.arange(0, BLOCK)
        mask = offsets < end
        x, y = fetched(x_ptr, offsets, mask, PAST), fetched(y_ptr, offsets, mask, PAST)
        to = x_ptr if IN_PLACE else z_ptr
        tl.store(to + offsets, FN(x, y).to(to.dtype.element_ty), mask=mask)


@sim.jit
def three_in(w_ptr, x_ptr, y_ptr, z_ptr, n, per_core, FN: tl.constexpr, BLOCK: tl.constexpr):
    start, end = own_elements(n, per_core)
    for s in range(start, end, BLOCK):
        o = s + tl.arange(0, BLOCK)
        mask = o < end
        w, x = fetched(w_ptr, o, mask, False), fetched(x_ptr, o, mask, False)
        z = FN(w, x, fetched(y_ptr, o, mask, False))
        tl.store(z_ptr + o, z.to(z_ptr.dtype.element_ty), mask=mask)


COVERED = 0.9  # of the elements, at least, where a row says how many a core has
OWN_TILING = ("range", "dropout")  # and with it more code
WITHOUT_INPUT = ("memset", "fill", "broadcast", "range")  # broadcast: of one number


def tried(row: Row, bytes_of_one: int, work: Callable[[int], Run]) -> tuple[Run, str]:
    """The run with the block that the row states, or else the fastest of three: as much as fills UB with two copies of every
    tile and what is computed, half of it, and a quarter; less where an expression needs more than that for itself.
    """
    s = Settings(row)
    given = s.number("block", 0)
    if s.text("block") and not given:
        remark("block=0: taken as not given")
    full = tile_elements(row, bytes_of_one * s.number("buffers", 2) * 2)
    if given:
        return fastest(row, [given], work)[0], ""
    run, block, count = fitting(row, full, 256, work)
    return run, note_of(count, f"blocks of {block}")


def streamed(
    row: Row,
    bytes_of_one: int,
    moved: tuple[int, int],
    kernel: JitFunction,
    *arguments: Any,
    left_out: str = "",
    **how: Any,
) -> Prediction:
    """A kernel that takes a block beside these arguments, on the row's cores.

    bytes_of_one: what an element needs in UB; moved: bytes that are read and written.
    """
    grid = (Settings(row).number("cores"),)
    run, note = tried(row, bytes_of_one, lambda block: kernel.time(grid, *arguments, **how, BLOCK=block))
    note = "; ".join(x for x in (note, left_out) if x)
    own = larger_code_us(row) if row.op in OWN_TILING else 0.0
    time = measured_time(row, run) + own
    return Prediction(time, roofline_us(row, moved), note)


@predicts(*UNARY)
def _one(row: Row) -> Prediction:
    """dropout: a kernel with more code, for the bits of its mask."""
    n, share = elements(row)
    (source, *_), (target, *_) = dtypes_of(row)
    size, moved = BYTES[source] + BYTES[target], (n * BYTES[source], n * BYTES[target])
    tensors, fn, wide = (tensor(source, n), tensor(target, n)), UNARY[row.op], row.op != "memcpy"
    left_out = "the bits of the mask are left out" if row.op == "dropout" else ""
    return streamed(row, size, moved, one_in, *tensors, n, share, left_out=left_out, FN=fn, WIDEN=wide)


@predicts(*WITHOUT_INPUT)
def _none(row: Row) -> Prediction:
    """One number everywhere; range: start + k * step, by a kernel with more code."""
    (n, share), (target, *_) = elements(row), dtypes_of(row)[1]
    numbered, size = row.op == "range", BYTES[target]
    y = tensor(target, n)
    return streamed(row, size, (0, n * size), none_in, y, n, share, NUMBERED=numbered)


@predicts(*BINARY)
def _two(row: Row) -> Prediction:
    """stretch: elements of a core, where the example splits whole rows; l2=past: the inputs are not kept in L2.

    grid=blocks: one program for each block, however many cores there are.
    """
    s, n = Settings(row), volume(shape_of(row))
    inputs, (c, *_) = dtypes_of(row)
    a, b = inputs[0], inputs[-1]
    read, written, part = BYTES[a] + BYTES[b], BYTES[c], s.number("part", 1)
    how = {"FN": BINARY[row.op], "PAST": s.text("l2") == "past", "IN_PLACE": row.op == "foreach_add"}

    def work(block: int) -> Run:
        blocks = s.word("grid", "", "blocks") == "blocks"
        cores = -(-n // block) if blocks else s.number("cores")
        per_core = block if blocks else s.number("stretch", -(-n // cores))
        _check_stretch(row, n, cores, per_core, part)
        tensors = tensor(a, n), tensor(b, n), tensor(c, n)
        return two_in.time((cores,), *tensors, n, per_core // part, **how, BLOCK=block)  # type: ignore[no-any-return]

    run, note = tried(row, read + written, work)
    time = measured_time(row, run) + (part - 1) * (run.time_us - overhead_us(run))
    note = f"1/{part} of the elements simulated" if part > 1 else note
    return Prediction(time, roofline_us(row, (n * read, n * written)), note)


def _check_stretch(row: Row, n: int, cores: int, per_core: int, part: int) -> None:
    """Cores that leave more than a tenth of the elements out, or have none for a part, do not add two tensors."""
    if per_core * cores < COVERED * n:
        raise UsageError(
            f"{row.id}: stretch={per_core}: {cores} cores have {per_core * cores} of {n} elements; leave it out, or give "
            f"{-(-n // cores)} or more"
        )
    if part > per_core:
        raise UsageError(
            f"{row.id}: part={part}: a core has only {per_core} elements; give no more than that"
        )


@predicts(*TERNARY)
def _three(row: Row) -> Prediction:
    (n, share), (inputs, (target, *_)) = elements(row), dtypes_of(row)
    kinds = (*inputs, *inputs[-1:] * (3 - len(inputs)), target)
    *read, written = (BYTES[k] for k in kinds)
    tensors, moved = (tensor(k, n) for k in kinds), (n * sum(read), n * written)
    return streamed(row, sum(read) + written, moved, three_in, *tensors, n, share, FN=TERNARY[row.op])


def elements(row: Row) -> tuple[int, int]:
    """Elements in all, and of a core."""
    n = volume(shape_of(row))
    return n, -(-n // Settings(row).number("cores"))
