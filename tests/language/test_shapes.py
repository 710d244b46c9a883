"""Words that rearrange tiles, against numpy, for lengths that are no powers of two too."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import CompileError, RunError

from .values import output


@sim.jit
def put(out, at: tl.constexpr, v):
    """The elements of `v` in row-major order from `at` on."""
    tl.store(out + at + tl.arange(0, v.numel), tl.ravel(v))


@sim.jit
def rearranged(out, x, R: tl.constexpr, C: tl.constexpr):
    N: tl.constexpr = R * C
    v = tl.load(x + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :])
    w = v * 2
    put(out, 0, tl.flip(v))
    put(out, N, v.flip(0))
    put(out, 2 * N, tl.cat(v, w))
    put(out, 4 * N, tl.cat(v, w, can_reorder=True, dim=1))
    both = tl.join(v, w)
    tl.static_assert(both.shape == (R, C, 2))
    put(out, 6 * N, both)
    first, second = tl.split(both)
    put(out, 8 * N, first - second)
    put(out, 9 * N, tl.interleave(v, w))
    put(out, 11 * N, tl.trans(both, 2, 0, 1))
    put(out, 13 * N, tl.unsqueeze(v, 1).squeeze(1) + tl.expand_dims(v, (0, -1)).reshape(R, C))
    put(out, 14 * N, both.trans().view([C * 2 * R], can_reorder=True))


@given(st.integers(1, 6), st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_moving_elements(rows: int, columns: int, seed: int) -> None:
    x = np.random.default_rng(seed).standard_normal((rows, columns)).astype(np.float32)
    got = output(rearranged, 16 * x.size, x, R=rows, C=columns).reshape(16, x.size)
    both = np.stack([x, 2 * x], -1)
    expected = [
        x[:, ::-1],
        x[::-1],
        np.concatenate([x, 2 * x]),
        np.concatenate([x, 2 * x], 1),
        both,
        x - 2 * x,
        both.reshape(rows, 2 * columns),
        both.transpose(2, 0, 1),
        2 * x,
        both.transpose(0, 2, 1),
    ]
    np.testing.assert_array_equal(got.reshape(-1), np.concatenate([e.reshape(-1) for e in expected]))


@sim.jit
def gathered(out, x, index, R: tl.constexpr, C: tl.constexpr, N: tl.constexpr):
    p = tl.program_id(0)
    v = tl.load(x + (p * R + tl.arange(0, R)[:, None]) * C + tl.arange(0, C)[None, :])
    at = tl.load(index + tl.arange(0, R)[:, None] * N + tl.arange(0, N)[None, :])
    put(out + p * (R * N + C), 0, tl.gather(v, at, 1))
    row = tl.max(at, 1, keep_dims=True) * 0
    picked = v.gather(tl.broadcast_to(tl.max(row, 0, keep_dims=True), (1, C)), 0)
    put(out + p * (R * N + C), R * N, picked)


def test_gathers_along_both_axes() -> None:
    rng = np.random.default_rng(6)
    x, index = rng.standard_normal((2, 5, 13)).astype(np.float32), rng.integers(0, 13, (5, 4))
    got = output(gathered, 66, x, index, programs=2, R=5, C=13, N=4).reshape(2, 33)
    for p in range(2):
        np.testing.assert_array_equal(got[p, :20].reshape(5, 4), np.take_along_axis(x[p], index, 1))
        np.testing.assert_array_equal(got[p, 20:], x[p, 0])


@sim.jit
def outside(out, x, B: tl.constexpr):
    v = tl.load(x + tl.arange(0, B))
    tl.store(out + tl.arange(0, B), tl.gather(v, tl.arange(0, B) + tl.program_id(0), 0))


def test_an_index_outside_names_element_program_and_line() -> None:
    with pytest.raises(
        RunError, match=r"index 8 at element \[7\] in program 1 is outside of axis 0, which has 8"
    ):
        output(outside, 8, np.zeros(8, np.float32), programs=2, B=8)


@sim.jit
def swizzled(out, rows, columns, G: tl.constexpr):
    i, j = tl.program_id(0) // columns, tl.program_id(0) % columns
    a, b = tl.swizzle2d(i, j, rows, columns, G)
    tl.store(out + a * columns + b, tl.program_id(0))


def test_swizzling_visits_groups_of_rows_column_by_column() -> None:
    """Every place once; the last group is shorter."""
    got = output(swizzled, 20, 5, 4, programs=20, dtype=np.int32, G=2).reshape(5, 4)
    expected = [[0, 2, 4, 6], [1, 3, 5, 7], [8, 10, 12, 14], [9, 11, 13, 15], [16, 17, 18, 19]]
    assert got.tolist() == expected


@sim.jit
def scalars(out, x):
    a, b = tl.load(x), tl.load(x + 1)
    both = tl.join(a, b)
    c, d = tl.split(both)
    tl.store(out, c * 10 + d)
    tl.store(out + 1, tl.sum(both) + both.reshape(1, 2).trans().reshape(2).max(0))
    u, w = tl.broadcast(a, tl.zeros((2, 3), tl.float32))
    tl.static_assert(u.shape == (2, 3))
    tl.store(out + 2, tl.sum(u + w) + tl.max(both, 0, keep_dims=True).item())


def test_scalars_become_tiles_and_back() -> None:
    assert output(scalars, 3, np.array([2, 5], np.float32)).tolist() == [25, 12, 17]


@sim.jit
def double_plus(a, b):
    return 2 * a + b, a > b


@sim.jit
def mapped(out, x, B: tl.constexpr):
    v = tl.load(x + tl.arange(0, B))
    total, over = tl.map_elementwise(double_plus, v, 3.0)
    tl.store(out + tl.arange(0, B), tl.where(over, total, 0.0))


def test_a_function_of_elements() -> None:
    x = np.array([1, 2, 3, 4, 5], np.float32)
    assert output(mapped, 5, x, B=5).tolist() == [0, 0, 0, 11, 13]


@sim.jit
def refused(out, x, WHAT: tl.constexpr):
    v = tl.load(x + tl.arange(0, 8))
    if WHAT == "split":
        tl.split(v)
    elif WHAT == "cat":
        tl.cat(v, v.to(tl.float16))
    elif WHAT == "rank":
        tl.cat(v, v[:, None])
    elif WHAT == "gather":
        tl.gather(v, v, 0)
    elif WHAT == "shape":
        tl.gather(v, tl.zeros((2, 2), tl.int32), 0)
    elif WHAT == "squeeze":
        tl.squeeze(v, 0)
    elif WHAT == "item":
        v.item()
    else:
        tl.flip(1.0)


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("split", "split needs a last axis of size 2"),
        ("cat", "do not fit together"),
        ("rank", "different ranks"),
        ("gather", "index must be made of integers"),
        ("shape", "must agree in all other axes"),
        ("squeeze", "has size 8, not 1"),
        ("item", "a tile of one element"),
        ("flip", "flip needs a tile"),
    ],
)
def test_what_is_refused(what: str, text: str) -> None:
    with pytest.raises(CompileError, match=text):
        output(refused, 1, np.zeros(8, np.float32), WHAT=what)


@sim.jit
def of_a_scalar(out, x, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.sum(tl.load(x + i[:, None] * N + i[None, :]), keep_dims=True)
    tl.store(out[None, None, :], total)


def test_a_scalar_with_new_axes_takes_a_colon_as_in_triton() -> None:
    x = np.arange(16, dtype=np.float32)
    assert output(of_a_scalar, 1, x, N=4).tolist() == [x.sum()]
