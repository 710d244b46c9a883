# mypy: disable-error-code="no-untyped-def"
"""Matrix products with the tiling that the row states: how the cores share the result, and the tiles in L1 and L0."""

from __future__ import annotations

from math import prod
from typing import Any

from ... import simulator as sim
from ...simulator import language as tl
from ...simulator.record.run import Run
from .registry import Prediction, predicts
from .settings import (
    BYTES,
    Settings,
    dtypes_of,
    fastest,
    measured_time,
    note_of,
    overhead_us,
    roofline_us,
    shape_of,
    tensor,
)
from .table import Row


@sim.jit
def load_operand(ptr, row, column, bottom, right, pitch, pitch_transposed, TRANSPOSED: tl.constexpr):
    """Rows up to `bottom` and columns up to `right` of a matrix with `pitch` columns, or of a transposed one."""
    if TRANSPOSED:
        across = (column < right)[:, None] & (row < bottom)[None, :]
        return tl.trans(tl.load(ptr + column[:, None] * pitch_transposed + row[None, :], mask=across))
    mask = (row < bottom)[:, None] & (column < right)[None, :]
    return tl.load(ptr + row[:, None] * pitch + column[None, :], mask=mask)


@sim.jit
def one_tile(
    a_ptr, b_ptr, c_ptr, M, N, K, top, bottom, left, right,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, AT: tl.constexpr, BT: tl.constexpr, QUANT: tl.constexpr,
):  # fmt: skip
    """The tile at row `top` and column `left`, as far as it belongs to this core (up to `bottom` and `right`)."""
    row, column = top + tl.arange(0, BM), left + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.int32 if QUANT else tl.float32)
    for k in range(0, K, BK):
        deep = k + tl.arange(0, BK)
        a = load_operand(a_ptr, row, deep, bottom, K, K, M, AT)
        acc = tl.dot(a, load_operand(b_ptr, deep, column, K, right, N, K, BT), acc)
    mask = (row < bottom)[:, None] & (column < right)[None, :]
    tl.store(c_ptr + row[:, None] * N + column[None, :], acc.to(c_ptr.dtype.element_ty), mask=mask)


@sim.jit
def shared_out(
    a_ptr, b_ptr, c_ptr, M, N, K, SM, SN, ACROSS,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, AT: tl.constexpr, BT: tl.constexpr, QUANT: tl.constexpr,
):  # fmt: skip
    """Each core has one part of SM x SN of the result, ACROSS of them side by side, and goes through it row of tiles by row.

    Where the parts do not reach the last row, all cores go on to the rows below together.
    """
    pid, down = tl.program_id(0), tl.num_programs(0) // ACROSS * SM
    start = pid % ACROSS * SN
    right = min(start + SN, N)
    for below in range(0, M, down):
        first = below + pid // ACROSS * SM
        bottom = min(first + SM, M)
        for top in range(first, bottom, BM):
            for left in range(start, right, BN):
                one_tile(a_ptr, b_ptr, c_ptr, M, N, K, top, bottom, left, right, BM, BN, BK, AT, BT, QUANT)


@sim.jit
def dealt_out(
    a_ptr, b_ptr, c_ptr, M, N, K, SM, SN, ACROSS,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, AT: tl.constexpr, BT: tl.constexpr, QUANT: tl.constexpr,
):  # fmt: skip
    """Tiles are dealt to the cores in turn, in groups of ACROSS tile rows, column by column. SM, SN: not used."""
    down, wide = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for t in range(tl.program_id(0), down * wide, tl.num_programs(0)):
        first = t // (ACROSS * wide) * ACROSS
        height = min(down - first, ACROSS)
        top, left = (first + t % (ACROSS * wide) % height) * BM, t % (ACROSS * wide) // height * BN
        one_tile(a_ptr, b_ptr, c_ptr, M, N, K, top, M, left, N, BM, BN, BK, AT, BT, QUANT)


@sim.jit
def many_products(
    a_ptr, b_ptr, c_ptr, M, N, K, GROUPS: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """GROUPS products with weights of their own (K x N each), of M rows each; tiles are dealt to the cores in turn."""
    down, wide = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for t in range(tl.program_id(0), GROUPS * down * wide, tl.num_programs(0)):
        group, tile = t // (down * wide), t % (down * wide)
        rows = group * M
        a, b, c = a_ptr + rows * K, b_ptr + group * K * N, c_ptr + rows * N
        one_tile(a, b, c, M, N, K, tile // wide * BM, M, tile % wide * BN, N, BM, BN, BK, False, False, False)


Tiling = dict[str, Any]
# Tried where none is published: tiles in L1 as the vendor's libraries have them (rows, columns, depth).
USUAL = ((128, 256, 256), (256, 128, 256), (128, 128, 256), (64, 256, 256), (32, 256, 512), (16, 256, 512))
LARGE = 5e11  # multiplications


def _run(
    row: Row, s: Settings, sizes: tuple[int, int, int], tile: tuple[int, int, int], later: bool = False
) -> Run:
    """later: of a part after the first, which finds in L2 what all parts read."""
    m, n, k = sizes
    inputs, outputs = dtypes_of(row)
    at, bt, part = "T" in s.text("a"), "T" in s.text("b"), s.number("part", 1)
    a, b, c = (
        tensor(inputs[0], m * k),
        tensor(inputs[-1], n * k),
        tensor("int32" if inputs[0] == "int8" else outputs[0], m * n),
    )
    across = s.numbers("split", 2)[1] if s.text("split") else s.number("group", 3)
    single = s.numbers("single", 2) if s.text("single") else (1, 1)
    flags = {"AT": at, "BT": bt, "QUANT": inputs[0] == "int8"}
    kernel = shared_out if s.text("split") else dealt_out
    names = dict(zip(("BM", "BN", "BK"), tile, strict=True))
    options = s.device_options() | ({"l2": {"b": "warm", "*": "cold"}} if later else {})
    with sim.device(**options):
        run: Run = kernel.time(
            (s.number("cores"),), a, b, c, m // part, n, k, *single, across, **names, **flags
        )
    return run


@predicts("matmul", "quant_matmul")
def _matmul(row: Row) -> Prediction:
    """shapes: M x N x K. tiling: cores, l1=BMxBNxBK; split=CMxCN with single=SMxSN, or group; a=T, b=T; part: see below.

    part: only the first of that many equal parts of the rows is simulated (they follow each other on one core).
    """
    s, (m, n, k) = Settings(row), shape_of(row)
    inputs, outputs = dtypes_of(row)
    part, note = s.number("part", 1), ""
    if s.text("l1"):
        run = _run(row, s, (m, n, k), s.numbers("l1", 3))  # type: ignore[arg-type]
    else:
        run, note = _best(row, s, (m, n, k))
    time = measured_time(row, run)
    if part > 1:
        again = _run(row, s, (m, n, k), s.numbers("l1", 3), later=True)  # type: ignore[arg-type]
        time += (again.time_us - overhead_us(again)) * (part - 1)
    if inputs[0] == "int8":
        note = "the Cube's part, with int32 results; scaling them on the Vector cores is left out"
    if part > 1:
        note = f"1/{part} of the rows simulated, once as the first and once as one of the rest, with B in L2"
    moved = BYTES[inputs[0]] * (m * k) + BYTES[inputs[-1]] * n * k + BYTES[outputs[0]] * m * n
    return Prediction(time, _bound(row, s, moved, float(m) * n * k, inputs[0]), note)


def _bound(row: Row, s: Settings, moved: int, multiplications: float, operand: str) -> float:
    """The trivial bound, with the peak of the cores that the row uses."""
    cores = sim.load_product(row.product).cube_cores
    operand = "hf32" if operand == "fp32" and s.text("hf32") else operand
    return roofline_us(row, moved, multiplications * cores / min(cores, s.number("cores")), operand)


def _best(row: Row, s: Settings, sizes: tuple[int, int, int]) -> tuple[Run, str]:
    """With the usual tile that comes out fastest; of large products only those that load least are tried."""
    usual = USUAL[:2] if prod(sizes) > LARGE else USUAL

    def work(tile: tuple[int, int, int]) -> Run:
        m, n, k = tile
        return _run(row, s, sizes, (m, n, k * 2 // max(2, BYTES[dtypes_of(row)[0][0]])))

    run, tile, count = fastest(row, usual, work)
    return run, note_of(count, f"{'x'.join(map(str, tile))} in L1 (depth for 2 bytes)")


@predicts("grouped_matmul")
def _grouped(row: Row) -> Prediction:
    """shapes: rows in all x N x K. tiling: cores, groups (of equal rows)."""
    s, (m, n, k), (kind, *_) = Settings(row), shape_of(row), dtypes_of(row)[0]
    groups, cores = s.number("groups"), s.number("cores")
    arguments = tensor(kind, m * k), tensor(kind, groups * k * n), tensor(kind, m * n), m // groups, n, k

    def work(tile: tuple[int, int, int]) -> Run:
        names = dict(zip(("BM", "BN", "BK"), tile, strict=True))
        return many_products.time((cores,), *arguments, GROUPS=groups, **names)  # type: ignore[no-any-return]

    run, tile, count = fastest(row, USUAL, work)
    moved = BYTES[kind] * (m * k + groups * k * n + m * n)
    note = f"{note_of(count, 'x'.join(map(str, tile)))} in L1; groups taken to be equal"
    return Prediction(measured_time(row, run), _bound(row, s, moved, float(m) * n * k, kind), note)
