"""Reductions, scans and sorts of tiles against numpy, for any length, axis and type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import CompileError

from .values import output


@sim.jit
def joined(a, b):
    """Associative but not commutative: digits written behind each other."""
    return a * 10 + b


@sim.jit
def affine(a0, a1, b0, b1):
    """Composition of x -> a0 x + a1, first a, then b."""
    return b0 * a0, b0 * a1 + b1


@sim.jit
def plus(a, b):
    return a + b


@sim.jit
def times(a, b):
    return a * b


@sim.jit
def larger(a, b):
    return tl.maximum(a, b)


@sim.jit
def best(v0, i0, v1, i1):
    """Largest value with its first index, as kernels write it."""
    first = (v0 > v1) | ((v0 == v1) & (i0 < i1))
    return tl.where(first, v0, v1), tl.where(first, i0, i1)


@sim.jit
def tile(x, R: tl.constexpr, C: tl.constexpr):
    return tl.load(x + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :])


@sim.jit
def with_indices(out, x, R: tl.constexpr, C: tl.constexpr):
    v = tile(x, R, C)
    value, index = tl.max(v, 1, return_indices=True)
    r, c = tl.arange(0, R), tl.arange(0, C)
    tl.static_assert(index.dtype == tl.int32 and value.shape == (R,))
    tl.store(out + r, value)
    tl.store(out + R + r, index)
    low, at = tl.min(v, axis=0, return_indices=True, return_indices_tie_break_left=False)
    tl.store(out + 2 * R + c, low)
    tl.store(out + 2 * R + C + c, at)
    rest = out + 2 * R + 2 * C
    tl.store(rest + r[:, None], tl.argmax(v, 1, keep_dims=True))
    tl.store(rest + R + c, v.argmin(0))
    tl.store(rest + R + C, tl.argmax(v, axis=None))
    flat = tl.reduce((v, tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]), None, best)
    tl.store(rest + R + C + 1, flat[0])
    tl.store(rest + R + C + 2, flat[1])


@given(st.integers(1, 9), st.integers(1, 70), st.integers(0, 2**32 - 1))
def test_maxima_and_where_they_are(rows: int, columns: int, seed: int) -> None:
    """Few distinct values, so that ties are common; the first of equal ones, or the last where asked."""
    x = np.random.default_rng(seed).integers(-3, 4, (rows, columns)).astype(np.float32)
    got = output(with_indices, 3 * rows + 3 * columns + 3, x, R=rows, C=columns)
    last = rows - 1 - np.argmin(x[::-1], 0)
    expected = [
        x.max(1),
        x.argmax(1),
        x.min(0),
        last,
        x.argmax(1),
        x.argmin(0),
        [x.argmax(), x.max(), x.argmax()],
    ]
    np.testing.assert_array_equal(got, np.concatenate(expected))


@sim.jit
def nans(out, x, B: tl.constexpr):
    v = tl.load(x + tl.arange(0, B))
    value, index = tl.max(v, 0, return_indices=True)
    tl.store(out, value)
    tl.store(out + 1, index)
    tl.store(out + 2, tl.argmin(v, 0))


def test_indices_skip_nan() -> None:
    nan = np.nan
    assert output(nans, 3, np.array([nan, 2, 7, nan, 7], np.float32), B=5).tolist() == [7, 2, 1]
    all_nan = output(nans, 3, np.full(4, nan, np.float32), B=4)
    assert np.isnan(all_nan[0])
    assert all_nan[1:].tolist() == [0, 0]


@sim.jit
def by_function(out, x, R: tl.constexpr, C: tl.constexpr):
    v = tile(x, R, C)
    r, c = tl.arange(0, R), tl.arange(0, C)
    tl.store(out + r, tl.reduce(v, 1, joined))
    tl.store(out + R + c[None, :], tl.reduce(v, 0, joined, keep_dims=True))
    a, b = tl.reduce((v, v + 1), 1, affine)
    tl.store(out + R + C + r, a)
    tl.store(out + 2 * R + C + r, b)
    tl.store(out + 3 * R + C, tl.reduce(v, None, joined))


@given(st.integers(1, 5), st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_reductions_by_a_function_keep_the_order(rows: int, columns: int, seed: int) -> None:
    """int64 wraps, so both functions are associative exactly, and neither commutes."""
    x = np.random.default_rng(seed).integers(-9, 10, (rows, columns))
    got = output(by_function, 3 * rows + columns + 1, x, dtype=np.int64, R=rows, C=columns)

    def digits(row: Any) -> int:
        """a (+) b = 10 a + b is not associative for blocks, so the tree is followed: pairs, an odd one waits."""
        values = [int(v) for v in row]
        while len(values) > 1:
            pairs = [values[k] * 10 + values[k + 1] for k in range(0, len(values) - 1, 2)]
            values = pairs + values[len(pairs) * 2 :]
        return values[0]

    def composed(row: Any) -> tuple[int, int]:
        a, b = int(row[0]), int(row[0]) + 1
        for v in row[1:]:
            a, b = int(v) * a, int(v) * b + int(v) + 1
        return a, b

    wrap = lambda values: np.array([v % 2**64 for v in values], np.uint64).view(np.int64)  # noqa: E731
    pairs = [composed(row) for row in x]
    expected = np.concatenate(
        [
            wrap([digits(row) for row in x]),
            wrap([digits(column) for column in x.T]),
            wrap([a for a, _ in pairs]),
            wrap([b for _, b in pairs]),
            wrap([digits(x.reshape(-1))]),
        ]
    )
    np.testing.assert_array_equal(got, expected)


@sim.jit
def built_in(out, x, R: tl.constexpr, C: tl.constexpr):
    v = tile(x, R, C)
    tl.store(out + tl.arange(0, R), tl.reduce(v, 1, plus) - tl.sum(v, 1))
    tl.store(out + R, tl.reduce(v, None, larger) - tl.max(v))
    tl.store(out + R + 1, tl.reduce(v, None, times))


def test_a_known_function_is_the_units_own_reduction() -> None:
    """The sum has the bits of tl.sum, whose order differs from that of neighbours; the program has no combine steps."""
    x = np.random.default_rng(0).standard_normal((3, 1000)).astype(np.float32)
    got = output(built_in, 5, x, R=3, C=1000)
    assert got[:4].tolist() == [0, 0, 0, 0]
    small = np.array([[1.5, -2, 3]], np.float32)
    assert output(built_in, 3, small, R=1, C=3)[2] == -9


@sim.jit
def integers(out, x, R: tl.constexpr, C: tl.constexpr):
    v = tile(x, R, C)
    tl.store(out + tl.arange(0, R), tl.xor_sum(v, 1))
    tl.store(out + R + tl.arange(0, C), v.xor_sum(0))
    tl.store(out + R + C, tl.xor_sum(v))
    tl.store(out + R + C + 1, tl.reduce_or(v, None))
    tl.store(out + R + C + 2, tl.reduce_or(v > 7, None))


def test_bitwise_reductions() -> None:
    x = np.random.default_rng(5).integers(-100, 100, (6, 11)).astype(np.int32)
    got = output(integers, 20, x, dtype=np.int32, R=6, C=11)
    xor, either = np.bitwise_xor.reduce, np.bitwise_or.reduce
    expected = [*xor(x, 1), *xor(x, 0), xor(x, None), either(x, None), bool((x > 7).any())]
    assert got.tolist() == [int(v) for v in expected]


@sim.jit
def ones(out, x, N: tl.constexpr):
    some = tl.load(x + tl.arange(0, N)) > 0
    tl.store(out, tl.sum(some, dtype=tl.int1).to(tl.int32))
    tl.store(out + 1, tl.reduce(some, 0, plus).to(tl.int32))  # a sum of two booleans is or
    tl.store(out + 2, tl.sum(some))


@pytest.mark.parametrize("count", [0, 1, 8, 9])
def test_sums_of_booleans_in_one_bit_are_modulo_2(count: int) -> None:
    x = (np.arange(16) < count).astype(np.int32)
    assert output(ones, 3, x, dtype=np.int32, N=16).tolist() == [count % 2, count > 0, count]


# -- scans -----------------------------------------------------------------------------------------------------------


@sim.jit
def running(out, x, R: tl.constexpr, C: tl.constexpr, BACK: tl.constexpr):
    v = tile(x, R, C)
    at = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    N: tl.constexpr = R * C
    tl.store(out + at, tl.cumsum(v, 1, BACK))
    tl.store(out + N + at, v.cumsum(axis=0, reverse=BACK))
    tl.store(out + 2 * N + at, tl.cumprod(v, 1, BACK))
    a, b = tl.associative_scan((v, v + 1), 1, affine, reverse=BACK)
    tl.store(out + 3 * N + at, a)
    tl.store(out + 4 * N + at, b)
    tl.store(out + 5 * N + at, tl.associative_scan(v, 0, larger, BACK))


@given(st.integers(1, 6), st.integers(1, 33), st.booleans(), st.integers(0, 2**32 - 1))
def test_scans(rows: int, columns: int, back: bool, seed: int) -> None:
    """int64, where every order of an associative function gives the same result."""
    x = np.random.default_rng(seed).integers(-4, 5, (rows, columns))
    got = output(running, 6 * x.size, x, dtype=np.int64, R=rows, C=columns, BACK=back).reshape(
        6, rows, columns
    )
    iteration = (lambda v, axis: np.flip(v, axis)) if back else (lambda v, axis: v)
    np.testing.assert_array_equal(got[0], iteration(np.cumsum(iteration(x, 1), 1), 1))
    np.testing.assert_array_equal(got[1], iteration(np.cumsum(iteration(x, 0), 0), 0))
    np.testing.assert_array_equal(got[2], iteration(np.cumprod(iteration(x, 1), 1), 1))
    np.testing.assert_array_equal(got[5], iteration(np.maximum.accumulate(iteration(x, 0), 0), 0))
    a, b = _composed(iteration(x, 1))
    np.testing.assert_array_equal(got[3], iteration(a, 1))
    np.testing.assert_array_equal(got[4], iteration(b, 1))


def _composed(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    a, b = np.array(x), x + 1
    for k in range(1, x.shape[1]):
        a[:, k], b[:, k] = x[:, k] * a[:, k - 1], x[:, k] * b[:, k - 1] + x[:, k] + 1
    return a, b


@sim.jit
def half_sums(out, x, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    tl.static_assert(tl.cumsum(v, 0).dtype == tl.float16)
    tl.static_assert(tl.cumsum(v.to(tl.bfloat16), 0).dtype == tl.float32)
    tl.static_assert(tl.cumsum(i.to(tl.int8), 0).dtype == tl.int32)
    tl.static_assert(tl.cumsum(i.to(tl.uint8), 0).dtype == tl.uint32)
    tl.static_assert(tl.cumprod(i.to(tl.int8), 0).dtype == tl.int8)
    tl.static_assert(tl.cumsum(v, 0, dtype=tl.float32).dtype == tl.float32)
    tl.store(out + i, tl.cumsum(v, 0))


def test_a_running_sum_of_halves_is_one_in_fp32_that_is_rounded_once() -> None:
    x = np.random.default_rng(2).uniform(0, 3, 200).astype(np.float16)
    expected = x.astype(np.float32).cumsum().astype(np.float16)
    assert output(half_sums, 200, x, B=200).tolist() == expected.astype(np.float32).tolist()


@sim.jit
def sorted_rows(out, x, R: tl.constexpr, C: tl.constexpr, K: tl.constexpr):
    v = tile(x, R, C)
    at = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    tl.store(out + at, tl.sort(v))
    tl.store(out + R * C + at, v.sort(1, descending=True))
    short = tl.arange(0, R)[:, None] * K + tl.arange(0, K)[None, :]
    tl.store(out + 2 * R * C + short, tl.topk(v, K))


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.int32])
def test_sorts(kind: Any) -> None:
    x = np.random.default_rng(9).integers(-50, 50, (5, 37)).astype(kind)
    got = output(sorted_rows, 2 * x.size + 15, x, dtype=kind, R=5, C=37, K=3)
    np.testing.assert_array_equal(got[:185].reshape(5, 37), np.sort(x, 1))
    np.testing.assert_array_equal(got[185:370].reshape(5, 37), np.sort(x, 1)[:, ::-1])
    np.testing.assert_array_equal(got[370:].reshape(5, 3), np.sort(x, 1)[:, :-4:-1])


@sim.jit
def counted(out, x, n, B: tl.constexpr, BINS: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0)
    where = tl.program_id(0) * 2 * BINS + tl.arange(0, BINS)
    tl.store(out + where, tl.histogram(v, BINS))
    tl.store(out + BINS + where, v.histogram(BINS, mask=i < n))


def test_histograms_count_what_is_in_range_and_not_masked() -> None:
    x = np.random.default_rng(4).integers(-2, 12, 100).astype(np.int32)
    got = output(counted, 4 * 10, x, 100, programs=2, dtype=np.int32, B=64, BINS=10).reshape(2, 2, 10)
    for p in range(2):
        part = x[64 * p : 64 * (p + 1)]
        count = np.bincount(part[(part >= 0) & (part < 10)], minlength=10)
        np.testing.assert_array_equal(got[p, 1], count)
        count[0] += 64 - len(part)
        np.testing.assert_array_equal(got[p, 0], count)


@sim.jit
def wrong_result(out, x, B: tl.constexpr, WHAT: tl.constexpr):
    v = tl.load(x + tl.arange(0, B))
    if WHAT == "type":
        tl.store(out, tl.reduce(v, 0, to_half))
    elif WHAT == "count":
        tl.store(out, tl.reduce(v, 0, twice))
    elif WHAT == "function":
        tl.store(out, tl.reduce(v, 0, tl.maximum))
    elif WHAT == "shapes":
        tl.store(out, tl.reduce((v, v[:, None]), 0, affine)[0])
    elif WHAT == "axis":
        tl.store(out, tl.reduce(v, 1, plus))
    elif WHAT == "scalar":
        tl.store(out, tl.cumsum(1.0))
    elif WHAT == "k":
        tl.store(out, tl.sum(tl.topk(v, 99)))
    elif WHAT == "sorted axis":
        tl.store(out, tl.sum(tl.sort(v[:, None], 0)))
    elif WHAT == "bins":
        tl.store(out, tl.sum(tl.histogram(v, 3)))
    else:
        tl.store(out, tl.xor_sum(v))


@sim.jit
def to_half(a, b):
    return (a + b).to(tl.float16)


@sim.jit
def twice(a, b):
    return a, b


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("type", "to_half must return the types of its operands: fp32"),
        ("count", "twice must return 1 values"),
        ("function", "must be a @jit function"),
        ("shapes", "all inputs must have one shape"),
        ("axis", "axis 1 is out of range for rank 1"),
        ("scalar", "needs a tile"),
        ("k", "k must be a compile-time integer from 1 to 8, got int 99"),
        ("sorted axis", "only the last axis can be sorted"),
        ("bins", "histogram takes integers"),
        ("xor", "xor_sum takes integers"),
    ],
)
def test_what_is_refused(what: str, text: str) -> None:
    with pytest.raises(CompileError, match=text):
        output(wrong_result, 1, np.zeros(8, np.float32), B=8, WHAT=what)


def test_running_sums_follow_the_rules_of_the_unit() -> None:
    """Saturating: what passes the largest number stays there. Flushing: a subnormal sum is zero from then on."""
    from ascendtile.simulator.precision import dtypes as ty
    from ascendtile.simulator.units import scans, vector

    large = np.array([[3e38, 3e38, -3e38]], np.float32)
    kept = scans.scan("sum", large, 0, False, ty.float32, vector.Numerics(overflow="saturate"))
    top = np.finfo(np.float32).max
    np.testing.assert_array_equal(kept, [[np.float32(3e38), top, np.float32(top) - np.float32(3e38)]])
    small = np.array([[2e-38, -1.5e-38, 1.5e-38]], np.float32)
    flushed = scans.scan("sum", small, 0, False, ty.float32, vector.Numerics(fp32_subnormals="flush"))
    np.testing.assert_array_equal(flushed, [[np.float32(2e-38), 0, np.float32(1.5e-38)]])


@sim.jit
def nan_too(out, x, R: tl.constexpr, C: tl.constexpr):
    v = tile(x, R, C)
    tl.store(out + tl.arange(0, R), tl.max(v, 1, propagate_nan=True))
    tl.store(out + R + tl.arange(0, C), tl.min(v, 0, propagate_nan=tl.PropagateNan.ALL))
    tl.store(out + R + C, tl.max(v, propagate_nan=True))


def test_nan_propagates_where_asked() -> None:
    x = np.array([[1, np.nan, 3], [4, 5, 6]], np.float32)
    got = output(nan_too, 6, x, R=2, C=3)
    np.testing.assert_array_equal(got, [np.nan, 6, 1, np.nan, 3, np.nan])
