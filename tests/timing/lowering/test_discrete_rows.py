"""Rows at addresses that are data: the vendor's compiler loops over them and moves the elements of each at once."""

from hypothesis import given, settings
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl

P = sim.load_product("ascend910b3")
EACH = P.number("scalar.discrete_element_cycles")


@sim.jit
def picked(
    x_ptr, i_ptr, y_ptr, rows, D: tl.constexpr, STEP: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr
):
    row, column = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDE)
    index = tl.load(i_ptr + row, mask=row < rows, other=0)
    inside = (row < rows)[:, None] & (column < D)[None, :]
    x = tl.load(x_ptr + index[:, None] * D + column[None, :] * STEP, mask=inside, other=0.0)
    tl.store(y_ptr + row[:, None] * D + column[None, :], x, mask=inside)


@sim.jit
def spread(x_ptr, i_ptr, y_ptr, D: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr):
    row, column = tl.arange(0, ROWS), tl.arange(0, WIDE)
    x = tl.load(x_ptr + row[:, None] * D + column[None, :])
    tl.store(y_ptr + tl.load(i_ptr + row)[:, None] * D + column[None, :], x)


@sim.jit
def turned(x_ptr, i_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr, ROWS: tl.constexpr):
    """Neighbours lie along the first axis: behind the one without a pattern there is nothing to move at once."""
    row, column = tl.arange(0, ROWS), tl.arange(0, N)
    x = tl.load(x_ptr + row[:, None] + tl.load(i_ptr + column)[None, :] * M)
    tl.store(y_ptr + row[:, None] * N + column[None, :], x)


def scalar_cycles(kernel, kind, *arguments, compiler="triton-ascend", **sizes):
    x, i = sim.shape(1 << 20, kind), sim.shape(1 << 10, "int32")
    with sim.device("ascend910b3", compiler=compiler):
        launch = kernel.time((1,), x, i, x, *arguments, **sizes).launches[0]
    return launch.pipes["AIV.S"].busy_cycles, launch


@settings(max_examples=12)
@given(
    st.sampled_from([1, 4, 32]),
    st.sampled_from([8, 64, 256]),
    st.sampled_from(["float16", "float32", "int8"]),
)
def test_a_row_of_whole_blocks_costs_the_scalar_unit_one_address_and_any_other_one_for_each_element(
    rows, wide, kind
):
    sizes = {"D": wide, "ROWS": rows, "WIDE": wide}
    _, launch = scalar_cycles(picked, kind, rows, **sizes, STEP=1)
    item = {"float16": 2, "float32": 4, "int8": 1}[kind]
    whole = wide * item % 32 == 0
    words = f"{rows} rows of {wide} elements, row by row" if whole else f"{rows * wide} elements, one by one"
    assert any(f"discrete load: {words} on the scalar unit" in w for w in launch.warnings)


def test_scattered_rows_are_stored_row_by_row():
    one, launch = scalar_cycles(spread, "float32", D=64, ROWS=4, WIDE=64)
    two, _ = scalar_cycles(spread, "float32", D=64, ROWS=8, WIDE=64)
    assert two - one == 4 * EACH
    assert any("discrete store: 4 rows of 64 elements" in w for w in launch.warnings)


def test_elements_of_a_row_that_are_no_neighbours_move_one_by_one():
    for name, launch in (
        ("a step", scalar_cycles(picked, "float32", 4, D=64, STEP=2, ROWS=4, WIDE=64)[1]),
        ("columns", scalar_cycles(turned, "float32", M=4, N=64, ROWS=4)[1]),
    ):
        assert any("discrete load: 256 elements, one by one" in w for w in launch.warnings), name


@settings(max_examples=8)
@given(st.integers(0, 32))
def test_what_a_box_masks_out_is_not_visited(rows):
    sizes = {"D": 64, "STEP": 1, "ROWS": 32, "WIDE": 64}
    some, _ = scalar_cycles(picked, "float32", rows, **sizes)
    all_of_it, _ = scalar_cycles(picked, "float32", 32, **sizes)
    assert all_of_it - some == (32 - rows) * EACH


def test_a_gather_of_rows_takes_little_more_than_a_copy_of_them():
    """As many bytes as 16 384 rows of 3 KiB need 0.1 ms, not the 2 ms of an element each."""
    n, d = 4096, 1024
    table, ids, out = sim.shape((8192, d), "float32"), sim.shape(n, "int32"), sim.shape((n, d), "float32")
    with sim.device("ascend910b3"):
        run = picked.time((n // 8,), table, ids, out, n, D=d, STEP=1, ROWS=8, WIDE=d)
    assert run.bounds["HBM"] < run.time_us < 3 * run.bounds["HBM"]
