"""Loads and stores with a stride between their elements, as the vendor's compiler makes them (triton-ascend issue 1673).

With a constant stride each element is a transfer of its own; with a stride of the launch the scalar unit works out each
address first. A 910B2 took 1056.92 and 5760.75 us.
"""

from __future__ import annotations

from typing import Any

import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl

P = sim.load_product("ascend910b2")
ADDRESS = P.number("scalar.strided_address_cycles_per_element")
INTERVAL = P.number("path.gm_to_ub.issue_interval_cycles")
N = 4096


@sim.jit
def by_launch(x, out, step, left, SHIFT: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i * left, tl.load(x + i * step) * 1.001 + SHIFT)


@sim.jit
def by_constant(x, out, step: tl.constexpr, left: tl.constexpr, SHIFT: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i * left, tl.load(x + i * step) * 1.001 + SHIFT)


@sim.jit
def strided_copy(x, out, rows, cols, row_stride, step: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    at = (tl.program_id(0) * BM, tl.program_id(1) * BN)
    source = tl.make_block_ptr(x, (rows, cols), (row_stride, step), at, (BM, BN), (1, 0))
    target = tl.make_block_ptr(out, (rows, cols), (cols, 1), at, (BM, BN), (1, 0))
    tl.store(target, tl.load(source) * 1.001 + 0.125)


@sim.jit
def strided_copy_by_launch(x, out, rows, cols, row_stride, step, BM: tl.constexpr, BN: tl.constexpr):
    at = (tl.program_id(0) * BM, tl.program_id(1) * BN)
    source = tl.make_block_ptr(x, (rows, cols), (row_stride, step), at, (BM, BN), (1, 0))
    target = tl.make_block_ptr(out, (rows, cols), (cols, 1), at, (BM, BN), (1, 0))
    tl.store(target, tl.load(source) * 1.001 + 0.125)


def launch(kernel: Any, step: int = 1, left: int = 1, **options: Any) -> Any:
    s = sim.shape(N * 32, "float32")
    with sim.device("ascend910b2", **options):
        return kernel.time((1,), s, s, step=step, left=left, SHIFT=0.125, B=N).launches[0]


@pytest.mark.parametrize(
    ("kernel", "measured_us"), [(strided_copy, 1056.92), (strided_copy_by_launch, 5760.75)]
)
def test_a_board_took_so_long(kernel: Any, measured_us: float) -> None:
    x, out = sim.shape(4096 * 1024 * 32, "float32"), sim.shape((4096, 1024), "float32")
    with sim.device("ascend910b2"):
        run = kernel.time((128, 8), x, out, 4096, 1024, 1024 * 32, step=32, BM=32, BN=128)
    assert run.time_us == pytest.approx(measured_us, rel=0.05)


@pytest.mark.parametrize("step", [3, 4, 32])
def test_each_element_of_a_constant_stride_is_a_transfer(step: int) -> None:
    run = launch(by_constant, step)
    assert run.pipes["AIV.MTE2"].busy_cycles >= N * INTERVAL
    assert run.pipes["AIV.S"].busy_cycles < N


@pytest.mark.parametrize(("step", "left", "many"), [(2, 1, 1), (1, 2, 1), (3, 5, 2)])
def test_addresses_of_a_stride_of_the_launch_are_scalar_work_and_named(
    step: int, left: int, many: int
) -> None:
    run, constant = launch(by_launch, step, left), launch(by_constant, step, left)
    more = run.pipes["AIV.S"].busy_cycles - constant.pipes["AIV.S"].busy_cycles
    assert more == pytest.approx(many * N * ADDRESS, rel=0.01)
    assert sum("stride that is known at run time only" in w for w in run.warnings) == many
    assert not any("known at run time" in w for w in constant.warnings)


def test_a_stride_of_one_is_contiguous_whoever_says_it() -> None:
    assert launch(by_launch).cycles == pytest.approx(launch(by_constant).cycles, abs=20)
    assert launch(by_launch).pipes["AIV.S"].busy_cycles < N


def test_an_author_of_ascend_c_moves_rows_of_a_stride_at_their_own_rate() -> None:
    """One instruction with a stride, which takes any number of the launch."""
    run = launch(by_launch, 2, compiler="ascendc")
    assert run.pipes["AIV.MTE2"].busy_cycles < N * INTERVAL
    assert run.pipes["AIV.S"].busy_cycles < N
    assert not any("known at run time" in w for w in run.warnings)


@sim.jit
def product(a, b, out, step, T: tl.constexpr):
    i, j = tl.arange(0, T)[:, None], tl.arange(0, T)[None, :]
    x = tl.load(a + i * 2 * T + (tl.arange(0, T) * step)[None, :])
    tl.store(out + i * T + j, tl.dot(x, tl.load(b + i * T + j)))


def test_operands_of_products_take_addresses_of_the_scalar_unit_as_tiles_of_ub_do() -> None:
    runs = [product.time((1,), *(sim.shape(2 * 64 * 64, "float16"),) * 3, step, T=64) for step in (1, 2)]
    more = runs[1].pipes["AIC.S"].busy_cycles - runs[0].pipes["AIC.S"].busy_cycles
    assert more == pytest.approx(64 * 64 * ADDRESS, rel=0.01)
    assert [sum("known at run time only" in w for w in run.warnings) for run in runs] == [0, 1]
