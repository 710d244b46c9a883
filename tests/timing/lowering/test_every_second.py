"""Loads of every second element: the vendor's compiler loads whole rows, and the Vector unit takes a half of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl

CONSTANT, OF_LAUNCH = "constant", "launch"


@sim.jit
def halves(
    x_ptr, y_ptr, rows, step, N: tl.constexpr, ODD: tl.constexpr, STEP: tl.constexpr, ROWS: tl.constexpr
):
    """y (rows, N): columns ODD, ODD + STEP ... of x (rows, STEP * N)."""
    row, column = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, N)
    inside = (row < rows)[:, None]
    if STEP == 0:
        x = tl.load(x_ptr + row[:, None] * (step * N) + column[None, :] * step + ODD, mask=inside)
    else:
        x = tl.load(x_ptr + row[:, None] * (STEP * N) + column[None, :] * STEP + ODD, mask=inside)
    tl.store(y_ptr + row[:, None] * N + column[None, :], x + 1.0, mask=inside)


@sim.jit
def masked_row(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at * 2, mask=at < n), mask=at < n)


def timed(step, how=CONSTANT, rows=64, n=256, odd=0, compiler="triton-ascend"):
    x, y = sim.shape((rows, step * n), "float32"), sim.shape((rows, n), "float32")
    with sim.device("ascend910b3", compiler=compiler):
        run = halves.time((8,), x, y, rows, step, N=n, ODD=odd, STEP=step if how == CONSTANT else 0, ROWS=8)
    return run.launches[0]


def test_a_constant_step_of_two_takes_a_load_without_gaps_and_a_vector_instruction():
    dense, two, three = timed(1), timed(2), timed(3)
    assert two.time_us < 1.5 * dense.time_us
    assert three.time_us > 3 * two.time_us, "any other step is a block of 32 bytes for each element"
    assert two.pipes["AIV.V"].busy_cycles > dense.pipes["AIV.V"].busy_cycles
    assert not any("strided" in w for w in two.warnings)
    assert two.buffers["UB"].peak_bytes > dense.buffers["UB"].peak_bytes


@settings(max_examples=8)
@given(st.sampled_from([2, 64, 250]), st.sampled_from([0, 1]), st.integers(1, 40))
def test_both_halves_of_any_rows_cost_the_same_and_stay_inside_of_their_tensor(n, odd, rows):
    x = np.arange(rows * 2 * n, dtype=np.float32).reshape(rows, 2 * n)
    y = np.zeros((rows, n), np.float32)
    grid = (-(-rows // 8),)
    with sim.device("ascend910b3"):
        run = halves[grid](x, y, rows, 2, N=n, ODD=odd, STEP=2, ROWS=8)
        other = halves.time(grid, x, y, rows, 2, N=n, ODD=1 - odd, STEP=2, ROWS=8)
    assert (y == x[:, odd::2] + 1).all()
    assert run.time_us == pytest.approx(other.time_us, rel=0.02)


def test_a_step_of_the_launch_and_code_by_hand_move_element_by_element():
    assert timed(2, OF_LAUNCH).pipes["AIV.S"].busy_cycles > 8 * 256 * 10
    assert timed(2, compiler="ascendc").time_us > 2 * timed(2).time_us


def test_a_mask_along_the_row_keeps_the_gaps():
    with sim.device("ascend910b3"):
        run = masked_row.time((4,), sim.shape(2048, "float32"), sim.shape(1024, "float32"), 1000, BLOCK=256)
    assert any("is strided: 256 elements move as 256 blocks" in w for w in run.warnings)
