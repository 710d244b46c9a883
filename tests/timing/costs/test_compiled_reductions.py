"""Reductions along the last axis in code of the vendor's compiler: AscendNPU-IR, Template, Vector/Reduction."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.timing.costs.compiled_reductions import rows_reduced
from ascendtile.simulator.timing.costs.model import Cost, CostModel

MODEL = CostModel(sim.load_product("ascend910b3"))
SCALAR = MODEL.scalar_loop(1).occupancy
LANES = {"fp32": 64, "fp16": 128, "int32": 64}
FLOATS = st.sampled_from(("fp32", "fp16"))


def cost(name: str, dtype: str, rows: int, columns: int) -> Cost:
    """Without conflicts between banks."""
    unit: Any = SimpleNamespace(model=MODEL, banks=None)
    tile: Any = SimpleNamespace(shape=(rows, columns), numel=rows * columns)
    return rows_reduced(unit, name, tile, dtype)


@given(FLOATS, st.integers(1, 300), st.integers(1, 128))
def test_a_row_that_fits_one_repeat_is_one_repeat_of_the_reducing_instruction(
    dtype: str, rows: int, columns: int
) -> None:
    lanes = LANES[dtype]
    one = MODEL.vector("reduce_repeat_sum", dtype, rows * lanes, 8 * 256 // lanes)
    assert cost("sum", dtype, rows, min(columns, lanes)) == one


@given(FLOATS, st.integers(1, 200), st.integers(1, 5))
def test_twice_as_many_columns_are_one_elementwise_step_more(dtype: str, rows: int, doublings: int) -> None:
    columns = LANES[dtype] << doublings
    longer, shorter = (cost("max", dtype, rows, columns >> k) for k in (0, 1))
    row = MODEL.graded_row("max", dtype)
    repeats = rows * columns // 2 // LANES[dtype]
    least = max(repeats * row.per_repeat, min(rows, repeats // rows) * MODEL.minimum)
    assert longer.occupancy - shorter.occupancy == pytest.approx(least + row.fixed)


@given(st.sampled_from(("sum", "max", "mul", "and")), st.integers(1, 64), st.integers(1, 600))
def test_of_integers_the_scalar_unit_moves_a_block_of_each_row(name: str, rows: int, columns: int) -> None:
    moved = 8 * rows * SCALAR  # 4, 2 and 1 elements of a row, and the result
    found = cost(name, "int32", rows, columns)
    assert found.instructions > 8 * rows
    assert moved < found.occupancy < moved + (columns // 64 + 10) * (rows * MODEL.minimum + 60)


@given(st.integers(2, 64), st.integers(65, 600))
def test_exclusive_or_takes_four_instructions_where_others_take_one(rows: int, columns: int) -> None:
    assume(rows > -(-columns // 64))  # else others go row by row, which are fewer
    xor, either = (cost(name, "int32", rows, columns) for name in ("xor", "or"))
    filled = 1
    steps = either.instructions - 8 * rows - filled
    assert xor.instructions - 8 * rows - filled == 4 * steps


@sim.jit
def largest(x: Any, out: Any, R: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, R)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + tl.arange(0, R), tl.max(tl.load(x + at), 1))


def test_who_makes_the_code_decides_how_rows_are_reduced() -> None:
    """By hand: an instruction over all repeats, then again; the compiler folds first, and gains where rows are long."""
    x, out = sim.shape((16, 1024), "float32"), sim.shape(16, "float32")
    cycles = {}
    for who in ("triton-ascend", "ascendc"):
        with sim.device("ascend910b3", compiler=who):
            run = largest.time((1,), x, out, R=16, N=1024)
        cycles[who] = run.pipes["AIV.V"].busy_cycles
    by_hand = 16 * 16 * MODEL.row("reduce_repeat_max", "fp32")[0]
    assert cycles["ascendc"] >= by_hand > cycles["triton-ascend"] > 16 * 7
