# mypy: disable-error-code="no-untyped-def"
"""Micro-benchmarks of one 910B3 board (calibration files of vTriton): units of a core one at a time, without a launch.

Rows: op, shapes and dtypes as the functions below say. Single instructions and copies are rows of `instructions` and
`transfers`.
"""

from __future__ import annotations

from ... import simulator as sim
from ...simulator import language as tl
from ...simulator.language.extra import cann
from ...simulator.timing.costs.model import CostModel
from ...simulator.timing.lowering.context import PathRates
from .microbench import cube_core, cycles_each, in_unit, number, product, types
from .registry import Prediction, predicts
from .settings import Settings, measured_time, sizes_of, tensor
from .table import Row

SHORT, LONG = 1000, 2000  # iterations; what both have in common falls out
FRACTAL_ROWS = 16


@sim.jit
def chained(x_ptr, out_ptr, n):
    value = tl.load(x_ptr)
    for _ in range(n):
        value = value * 1.5 + 2.5
    tl.store(out_ptr, value)


@sim.jit
def copied(x_ptr, out_ptr, n, EACH: tl.constexpr, BLOCK: tl.constexpr):
    """A program copies a contiguous piece of its own."""
    begin = tl.program_id(0) * EACH
    for s in range(0, EACH, BLOCK):
        place = begin + s + tl.arange(0, BLOCK)
        tl.store(out_ptr + place, tl.load(x_ptr + place, mask=place < n), mask=place < n)


@sim.jit
def handed_over(a_ptr, b_ptr, c_ptr, x_ptr, K, M: tl.constexpr, N: tl.constexpr, DEEP: tl.constexpr):
    """Tiles of a product one by one, a barrier, then a sum of 256 elements on the Vector core."""
    m, n, k, place = tl.arange(0, M), tl.arange(0, N), tl.arange(0, DEEP), tl.arange(0, 256)
    for s in range(0, K, DEEP):
        a = tl.load(a_ptr + m[:, None] * K + s + k[None, :])
        b = tl.load(b_ptr + (s + k)[:, None] * N + n[None, :])
        tl.store(c_ptr + m[:, None] * N + n[None, :], tl.dot(a, b))
    cann.extension.sync_block_all("all", 0)
    tl.store(x_ptr + place, tl.load(x_ptr + place) + tl.load(x_ptr + 256 + place))


@predicts("scalar chain")
def _scalars(row: Row) -> Prediction:
    """Cycles of an iteration of two operations of the scalar unit, each on the result of the one before."""
    one = tensor(types(row, 1)[0], 1)
    with sim.device(**Settings(row).device_options()):
        short, long = (chained.time((1,), one, one, n).cycles for n in (SHORT, LONG))
    return Prediction(in_unit(row, {"cycles": float}, (long - short) / (LONG - SHORT)))


@predicts("copy loop")
def _copy(row: Row) -> Prediction:
    """Cycles of an iteration of a copy, as triton-ascend makes it; programs beyond the cores come in a second round."""
    s, block = Settings(row), number(row, "elements")
    programs, each = s.number("cores"), s.number("each")
    x = tensor(types(row, 1)[0], programs * each)
    with sim.device(**s.device_options() | {"compiler": "triton-ascend"}):
        run = copied.time((programs,), x, x, programs * each, EACH=each, BLOCK=block)
    rounds = -(-programs // product(row.product).vector_cores)
    return Prediction(in_unit(row, {"cycles": float}, run.cycles / (rounds * each / block)))


@predicts("vector chain")
def _chain(row: Row) -> Prediction:
    """Cycles of instructions of the Vector unit (tiling: their names), each on the result of the one before."""
    model = CostModel(product(row.product))
    elements = number(row, "repeat") * model.repeat_bytes // 2
    costs = [model.vector(name, types(row, 1)[0], elements, 16) for name in row.tiling.split()]
    return Prediction(in_unit(row, {"cycles": float}, sum(c.occupancy + c.latency for c in costs)))


@predicts("load to L0")
def _to_l0(row: Row) -> Prediction:
    """Cycles of MTE1 for both operands of a product, 16 rows at a time, by plain loads."""
    m, n, k = (number(row, name) for name in "mnk")
    figures, cycles = product(row.product), 0.0
    for path, rows in (("l1_to_l0a", m), ("l1_to_l0b", n)):
        fixed, rate = (figures.number(f"path.{path}.{name}") for name in ("fixed_cycles", "bytes_per_cycle"))
        cycles += rows // FRACTAL_ROWS * (fixed + FRACTAL_ROWS * 2 * k / rate)
    return Prediction(in_unit(row, {"cycles": float}, cycles))


@predicts("load to L1")
def _to_l1(row: Row) -> Prediction:
    """Cycles of MTE2 for both operands of a product out of L2, turned into fractals, one after the other."""
    wiring, m, n, k = cube_core(row.product), *(number(row, name) for name in "mnk")
    rates = PathRates.of(product(row.product), "gm_to_l1_nd2nz")
    late = product(row.product).number("path.gm_to_l1_nd2nz.latency_cycles")
    cycles = [
        cycles_each(
            wiring, wiring.cube_mte2, False, channel=wiring.cube_read[1], amount=2 * rows * columns,
            occupancy=max(rates.interval, rows * rates.row),
        )
        for rows, columns in ((m, k), (k, n))
    ]  # fmt: skip
    return Prediction(in_unit(row, {"cycles": float}, sum(cycles) + late))


@predicts("cube to vector")
def _hand_over(row: Row) -> Prediction:
    """Time of a task on one Cube and one Vector core: m x n x k in tiles that are as deep as they are high."""
    m, n, k = sizes_of(row, "m x n x k")
    name, s = row.dtypes, Settings(row)
    tensors = tensor(name, m * k), tensor(name, k * n), tensor("fp32", m * n), tensor(name, 512)
    with sim.device(**s.device_options() | {"multibuffer": 1, "bind_sub_block": False}):
        run = handed_over.time((1,), *tensors, k, M=m, N=n, DEEP=m)
    return Prediction(measured_time(row, run))


@predicts("store of L0C")
def _out(row: Row) -> Prediction:
    """Cycles of the fixpipe for a product of fp32 that it turns into rows, back to back; or their rate."""
    wiring, m, n = cube_core(row.product), number(row, "m"), number(row, "n")
    rates = PathRates.of(product(row.product), "l0c_to_gm")
    cycles = cycles_each(
        wiring, wiring.fixp, False, channel=wiring.cube_write[1], amount=4 * m * n, occupancy=m * rates.row
    )
    per_us = product(row.product).us_to_cycles(1.0)
    units = {"cycles": float, "GB/s": lambda c: 4 * m * n / c * per_us / 1e3}
    return Prediction(in_unit(row, units, cycles))
