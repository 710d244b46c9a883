"""Gathers and scatters between memory and UB, against numpy, with their costs by element and by row."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import CompileError, OutOfBoundsError
from ascendtile.simulator.language.extra.cann import extension as al

FLOAT = st.sampled_from([np.float32, np.float16, ml_dtypes.bfloat16])


@sim.jit
def selected(
    out, src, at, n1, BEGIN: tl.constexpr, N0: tl.constexpr, N2: tl.constexpr, R0: tl.constexpr, R2: tl.constexpr,
    COUNT: tl.constexpr,
):  # fmt: skip
    index = tl.load(at + tl.program_id(0) * COUNT + tl.arange(0, COUNT))
    v = al.index_select_simd(
        src, dim=1, index=index, src_shape=[N0, n1, N2], src_offset=[-1, -1, BEGIN], read_shape=[R0, -1, R2]
    )
    tl.static_assert(v.shape == (R0, COUNT, R2))
    tl.store(out + tl.program_id(0) * R0 * COUNT * R2 + tl.arange(0, R0 * COUNT * R2), tl.ravel(v))


@given(st.data(), FLOAT)
def test_slabs_at_indices_are_cut_off_at_the_end_of_the_tensor(data: Any, dtype: Any) -> None:
    n0, n1, n2, count = (data.draw(st.integers(1, 9)) for _ in range(4))
    begin, r0, r2 = (
        data.draw(st.integers(low, high)) for low, high in ((0, n2 - 1), (1, n0 + 2), (1, n2 + 2))
    )
    at = np.array(
        data.draw(st.lists(st.integers(0, n1 - 1), min_size=2 * count, max_size=2 * count)), np.int32
    )
    src = np.arange(n0 * n1 * n2).reshape(n0, n1, n2).astype(dtype)
    out = np.full((2, r0, count, r2), -1).astype(dtype)
    selected[(2,)](out, src, at, n1, BEGIN=begin, N0=n0, N2=n2, R0=r0, R2=r2, COUNT=count)
    padded = np.zeros((n0 + 3, n1, n2 + begin + 3), dtype)
    padded[:n0, :, :n2] = src
    for p in range(2):
        np.testing.assert_array_equal(out[p], padded[:r0, at.reshape(2, count)[p], begin : begin + r2])


def test_slabs_are_charged_by_row_and_an_index_outside_is_refused() -> None:
    src = np.arange(4 * 16 * 64, dtype=np.float32).reshape(4, 16, 64)
    at = np.array([3, 1, 15, 2], np.int32)
    out = np.zeros((4, 4, 64), np.float32)
    sizes = {"BEGIN": 0, "N0": 4, "N2": 64, "R0": 4, "R2": 64, "COUNT": 4}
    run = selected[(1,)](out, src, at, 16, **sizes)
    assert [w.split(": ", 1)[1] for w in run.warnings] == [
        "discrete load: 16 rows of 64 elements, one transfer of 256 bytes each"
    ], "what the access itself computes is nothing that the user could write otherwise"
    at[2] = 1000
    with pytest.raises(OutOfBoundsError, match="src"):
        selected[(1,)](out, src, at, 16, **sizes)


@sim.jit
def gathered(
    out, src, at, R: tl.constexpr, C: tl.constexpr, DIM: tl.constexpr, BOUND: tl.constexpr, STRIDE: tl.constexpr,
    START: tl.constexpr, END: tl.constexpr, OTHER: tl.constexpr,
):  # fmt: skip
    i = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    v = al.gather_out_to_ub(src, tl.load(at + i), BOUND, DIM, STRIDE, END, START, other=OTHER)
    tl.store(out + i, v)


@sim.jit
def scattered(
    out, value, at, R: tl.constexpr, C: tl.constexpr, DIM: tl.constexpr, BOUND: tl.constexpr, STRIDE: tl.constexpr,
    START: tl.constexpr, END: tl.constexpr,
):  # fmt: skip
    i = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    al.scatter_ub_to_out(out, tl.load(value + i), tl.load(at + i), BOUND, DIM, STRIDE, END, START)


@given(st.integers(1, 6), st.integers(1, 9), st.integers(0, 1), FLOAT, st.integers(0, 2**32 - 1))
def test_elements_at_indices(rows: int, columns: int, dim: int, dtype: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    start, bound = (1, 2), 7
    at = rng.permuted(np.tile(np.arange(12), (12, 12))[:rows, :columns], axis=dim).astype(np.int32)
    end = (start[0] + rng.integers(0, rows + 2), start[1] + rng.integers(0, columns + 2))
    tensor = rng.integers(-9, 9, (20, 24)).astype(dtype)
    places = list(np.indices((rows, columns)) + np.array(start)[:, None, None])
    inside = (places[0] < end[0]) & (places[1] < end[1]) & (at < bound)
    places[dim] = at + start[dim]
    sizes = {"R": rows, "C": columns, "DIM": dim, "BOUND": bound, "STRIDE": (24, 1), "START": start}
    sizes["END"] = tuple(int(e) for e in end)
    out = np.zeros((rows, columns), dtype)
    gathered[(1,)](out, tensor, at, **sizes, OTHER=5.0)
    np.testing.assert_array_equal(out, np.where(inside, tensor[tuple(places)], np.array(5, dtype)))

    value = rng.integers(10, 90, (rows, columns)).astype(dtype)
    changed = tensor.copy()
    scattered[(1,)](changed, value, at, **sizes)
    wanted: dict[Any, set[float]] = {}
    for where in zip(*np.nonzero(inside), strict=True):
        wanted.setdefault((places[0][where], places[1][where]), set()).add(float(value[where]))
    for place, x in np.ndenumerate(changed):
        assert float(x) in wanted.get(place, {float(tensor[place])})


@sim.jit
def put(
    out,
    value,
    at,
    DIM: tl.constexpr,
    SHAPE: tl.constexpr,
    STRIDE: tl.constexpr,
    START: tl.constexpr,
    END: tl.constexpr,
):
    N: tl.constexpr = SHAPE[0] * SHAPE[1] * SHAPE[2]
    v = tl.load(value + tl.arange(0, N)).reshape(SHAPE)
    index = tl.load(at + tl.arange(0, SHAPE[DIM]))
    al.index_put(out, index, v, DIM, 6, END, START, STRIDE)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_slabs_are_put_where_their_index_says(dim: int, dtype: Any) -> None:
    rng = np.random.default_rng(2)
    shape = (3, 3, 8)
    value = rng.integers(1, 99, shape).astype(dtype)
    out = np.zeros((8, 9, 12), dtype)
    at = np.array([4, 6, 0], np.int32)  # 6 reaches the boundary: its slab is not written
    start, end = [1, 2, 3], [4, 5, 10]  # the last of 8 columns lies behind the end
    run = put[(1,)](
        out, value, at, DIM=dim, SHAPE=shape, STRIDE=(108, 12, 1), START=tuple(start), END=tuple(end)
    )
    expected = np.zeros_like(out)
    for k, place in ((0, 4), (2, 0)):
        if dim == 0:
            expected[place, 2:5, 3:10] = value[k, :, :7]
        else:
            expected[1:4, place, 3:10] = value[:, k, :7]
    np.testing.assert_array_equal(out, expected)
    assert any("9 rows of 8 elements" in w for w in run.warnings)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"DIM": 2}, "dim must be a compile-time integer from 0 to 1"),
        ({"STRIDE": (1, 2, 3)}, "the stride must have one integer for each of 2 axes"),
        ({"BOUND": 1.5}, "index_boundary must be a compile-time integer"),
    ],
)
def test_what_an_indexed_access_does_not_take(change: dict[str, Any], words: str) -> None:
    x = np.zeros((4, 4), np.float32)
    sizes = {"R": 4, "C": 4, "DIM": 0, "BOUND": 4, "STRIDE": (4, 1), "START": (0, 0), "END": (4, 4)}
    with pytest.raises(CompileError, match=words):
        gathered[(1,)](x, x, np.zeros((4, 4), np.int32), **{**sizes, **change}, OTHER=None)
