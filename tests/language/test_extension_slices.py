"""Slices with a place on each axis, against numpy's own slicing, in values, time and buffers."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import CompileError, RunError
from ascendtile.simulator.language.extra.cann import extension as al


@sim.jit
def cut_and_put(
    out, part, x, at, OFFSETS: tl.constexpr, SHAPE: tl.constexpr, SIZES: tl.constexpr, STRIDES: tl.constexpr
):
    """Each program moves its slice by its own number on every axis; the slice, negated, goes back into the tile."""
    pid = tl.program_id(0)
    N: tl.constexpr = SHAPE[0] * SHAPE[1] * SHAPE[2]
    M: tl.constexpr = SIZES[0] * SIZES[1] * SIZES[2]
    i = tl.load(at + pid * 3)
    j = tl.load(at + pid * 3 + 1) if OFFSETS[1] is None else OFFSETS[1]
    k = tl.load(at + pid * 3 + 2) if OFFSETS[2] is None else OFFSETS[2]
    v = tl.load(x + tl.arange(0, N)).reshape(SHAPE)
    sub = al.extract_slice(v, (i, j, k), SIZES, STRIDES)
    tl.store(part + pid * M + tl.arange(0, M), sub.reshape((M,)))
    put = v.insert_slice(-sub, offsets=(i, j, k), sizes=SIZES, strides=STRIDES)
    tl.store(out + pid * N + tl.arange(0, N), put.reshape((N,)))


@st.composite
def regions(draw: Any) -> Any:
    """Shape, sizes, strides, and the offsets of three programs, all inside."""
    shape, sizes, strides, offsets = [], [], [], []
    for _ in range(3):
        size, step, room = draw(st.integers(1, 5)), draw(st.integers(1, 3)), draw(st.integers(0, 4))
        shape.append((size - 1) * step + 1 + room)
        sizes.append(size)
        strides.append(step)
        offsets.append([draw(st.integers(0, room)) for _ in range(3)])
    moving = [True, draw(st.booleans()), draw(st.booleans())]
    return tuple(shape), tuple(sizes), tuple(strides), np.array(offsets).T, moving


@given(regions(), st.sampled_from([np.float32, np.float16, ml_dtypes.bfloat16, np.int8, np.int64]))
def test_each_program_cuts_and_puts_where_numpy_does(region: Any, dtype: Any) -> None:
    shape, sizes, strides, offsets, moving = region
    offsets = np.array([[row[k] if moving[k] else offsets[0][k] for k in range(3)] for row in offsets])
    x = (np.arange(np.prod(shape)) % 100).astype(dtype)
    out = np.zeros((3, *shape), dtype)
    part = np.zeros((3, *sizes), dtype)
    constant = tuple(None if m else int(o) for m, o in zip(moving, offsets[0], strict=True))
    run = cut_and_put[(3,)](
        out,
        part,
        x,
        offsets.astype(np.int32).copy(),
        OFFSETS=constant,
        SHAPE=shape,
        SIZES=sizes,
        STRIDES=strides,
    )
    assert run.cycles > 0
    for p in range(3):
        expected = x.reshape(shape).copy()
        where = tuple(
            slice(o, o + (n - 1) * s + 1, s) for o, n, s in zip(offsets[p], sizes, strides, strict=True)
        )
        np.testing.assert_array_equal(part[p], expected[where])
        expected[where] = -expected[where]
        np.testing.assert_array_equal(out[p], expected)


@sim.jit
def elements(out, x, at, R: tl.constexpr, C: tl.constexpr):
    pid = tl.program_id(0)
    v = tl.load(x + tl.arange(0, R)[:, None] * C + tl.arange(0, C))
    column = tl.load(at + pid)
    tl.store(out + pid, al.get_element(v, (pid, column)) + v.get_element((0, C - 1)))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.int64])
def test_one_element_of_each_program(dtype: Any) -> None:
    x = np.arange(5 * 7).reshape(5, 7).astype(dtype)
    at = np.array([3, 0, 6, 6, 1], np.int32)
    out = np.zeros(5, dtype)
    run = elements[(5,)](out, x, at, R=5, C=7)
    np.testing.assert_array_equal(out, x[np.arange(5), at] + x[0, 6])
    line = next(c for c in run.lines if "get_element" in c.source)
    assert set(line.busy) >= {"AIV.S"}, "the scalar unit reads a single element"


@sim.jit
def one_slice(out, x, n, OFFSET: tl.constexpr, SIZE: tl.constexpr, STRIDE: tl.constexpr):
    v = tl.load(x + tl.arange(0, 64))
    at = n if OFFSET is None else OFFSET
    sub = al.extract_slice(v, (at,), (SIZE,), (STRIDE,))
    tl.store(out + tl.arange(0, SIZE), sub)


@pytest.mark.parametrize(
    ("offset", "size", "stride", "words"),
    [
        (60, 8, 1, r"axis 0 has 64 elements, but offset 60, size 8 and stride 1 reach from 60 to 67"),
        (-1, 8, 1, r"reach from -1 to 6"),
        (None, 33, 2, r"stride 2 reach from 0 to 64"),
        (0, 8, -1, r"size 8 and stride -1; both must be at least 1"),
        (0.5, 8, 1, r"an offset must be an integer scalar, got float 0.5"),
    ],
)
def test_a_slice_that_leaves_its_tile_is_refused_before_it_runs(offset, size, stride, words) -> None:
    x = np.zeros(64, np.float32)
    with pytest.raises(CompileError, match=re.escape(words) if "\\" not in words else words):
        one_slice[(1,)](x, x, 0, OFFSET=offset, SIZE=size, STRIDE=stride)


@pytest.mark.parametrize("n", [57, -1])
def test_a_slice_that_leaves_its_tile_while_it_runs_names_program_and_line(n: int) -> None:
    x = np.zeros(64, np.float32)
    with pytest.raises(
        RunError, match=rf"test_extension_slices.py:\d+:\d+: extract_slice.*offset {n}, .*in program 0"
    ):
        one_slice[(1,)](x.copy(), x, n, OFFSET=None, SIZE=8, STRIDE=1)


@sim.jit
def rows_of_a_table(out, x, R: tl.constexpr, C: tl.constexpr, WIDE: tl.constexpr):
    """Fills a tile row by row, as kernels do that gather by hand."""
    table = tl.zeros((R, C), tl.float32)
    for i in range(R):
        row = tl.load(x + (R - 1 - i) * C + tl.arange(0, C))
        table = al.insert_slice(table, row[None, :], (i, 0), (1, C), (1, 1))
        table = al.insert_slice(table, row[None, :] * 2, (i, 0), (1, C), (1, 1))
        if WIDE:
            table = table + 0
    tl.store(out + tl.arange(0, R)[:, None] * C + tl.arange(0, C), table)


def test_a_tile_that_a_loop_fills_stays_in_one_buffer() -> None:
    x = np.random.default_rng(0).standard_normal((128, 256)).astype(np.float32)
    out = np.zeros_like(x)
    run = rows_of_a_table[(1,)](out, x, R=128, C=256, WIDE=False)
    np.testing.assert_array_equal(out, 2 * x[::-1])
    tile, row = 128 * 256 * 4, 256 * 4
    assert tile < run.buffers["UB"].peak_bytes <= tile + 4 * row
    line = next(c for c in run.lines if "* 2" in c.source)
    assert line.cycles / 128 < 128 * 256 / 64, "an insertion in place must not copy the whole tile"


@sim.jit
def tile_kept(out, x, KEPT: tl.constexpr):
    i = tl.arange(0, 4096)
    v = tl.load(x + i)
    put = al.insert_slice(v, tl.zeros((64,), tl.float32), (128,), (64,), (1,))
    tl.store(out + i, put)
    if KEPT:
        tl.store(out + i, v)


def test_a_tile_that_is_read_again_is_copied_first() -> None:
    x = np.ones(4096, np.float32)
    runs = [tile_kept[(1,)](np.zeros_like(x), x, KEPT=kept) for kept in (False, True)]
    peaks = [r.buffers["UB"].peak_bytes for r in runs]
    assert peaks[1] - peaks[0] >= 4096 * 4 - 64
    cost = [next(c.busy["AIV.V"] for c in r.lines if "insert_slice" in c.source) for r in runs]
    assert cost[1] > cost[0] + 4096 / 64 / 2


@sim.jit
def off_the_blocks(out, x, AT: tl.constexpr):
    v = tl.load(x + tl.arange(0, 1024))
    tl.store(out + tl.arange(0, 512), al.extract_slice(v, (AT,), (512,), (1,)))


def test_a_slice_off_the_blocks_is_a_gather_and_says_so() -> None:
    x = np.arange(1024, dtype=np.float32)
    on, off = (off_the_blocks[(1,)](np.zeros(512, np.float32), x, AT=at) for at in (8, 9))
    busy = [r.pipes["AIV.V"].busy_cycles for r in (on, off)]
    assert busy[1] > busy[0]
    assert any("extract_slice" in n and "assumed" in n for n in off.notes)
    assert not any("extract_slice" in n for n in on.notes)


@sim.jit
def part_of_an_index(out, x, B: tl.constexpr):
    i = tl.program_id(0) * 2 * B + tl.arange(0, 2 * B)
    for half in range(2):
        j = al.extract_slice(i, (half * B,), (B,), (1,))
        tl.store(out + j, tl.load(x + j) + 1)


def test_a_slice_of_an_index_tile_is_still_a_plain_access() -> None:
    x = np.arange(256, dtype=np.float32)
    out = np.zeros_like(x)
    run = part_of_an_index[(2,)](out, x, B=64)
    np.testing.assert_array_equal(out, x + 1)
    assert not any("discrete" in w for w in run.warnings)


@sim.jit
def rows_by_hand(out, x, at, COUNT: tl.constexpr, C: tl.constexpr):
    """Reads the places from a tile one by one, loads a row for each and puts it into a tile."""
    first = tl.program_id(0) * COUNT
    places = tl.load(at + first + tl.arange(0, COUNT))
    rows = tl.zeros((COUNT, C), x.dtype.element_ty)
    for i in range(0, COUNT):
        row = tl.load(x + al.get_element(places, (i,)) * C + tl.arange(0, C))
        rows = al.insert_slice(rows, row[None, :], offsets=(i, 0), sizes=(1, C), strides=(1, 1))
    tl.store(out + (first + tl.arange(0, COUNT))[:, None] * C + tl.arange(0, C)[None, :], rows)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_elements_that_become_addresses(dtype: Any) -> None:
    rng = np.random.default_rng(4)
    x, at = rng.standard_normal((50, 24)).astype(dtype), rng.integers(0, 50, 24)
    out = np.zeros((24, 24), dtype)
    run = rows_by_hand[(3,)](out, x, at, COUNT=8, C=24)
    np.testing.assert_array_equal(out, x[at])
    assert run.buffers["UB"].peak_bytes < 2 * 8 * 32 * np.dtype(dtype).itemsize + 1024


@sim.jit
def slices_of_masks(
    out, part, one, x, at, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, LOADED: tl.constexpr
):
    """A mask (loaded, computed from a tile, or of indices) is put beside itself and cut again."""
    pid = tl.program_id(0)
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    v = tl.load(x + i * N + j)
    if LOADED == "loaded":
        mask = v
    elif LOADED == "computed":
        mask = v.to(tl.float32) > 0.5
    else:
        mask = (i < M) & (j < N // 2)
    both = tl.full((M, 2 * N), 0, tl.int1)
    both = al.insert_slice(both, mask, [0, 0], [M, N], [1, 1])
    first = tl.load(at + pid)
    both = al.insert_slice(both, mask, (0, first), (M, N), (1, 1))
    tl.store(out + pid * 2 * M * N + i * 2 * N + tl.arange(0, 2 * N)[None, :], both)
    cut = al.extract_slice(both, [0, first], [M, K], [1, 2])
    tl.store(part + pid * M * K + i * K + tl.arange(0, K)[None, :], cut)
    tl.store(one + pid, al.get_element(both, (0, first)))


@pytest.mark.parametrize("kind", ["loaded", "computed", "indices"])
def test_slices_of_booleans(kind: str) -> None:
    m, n, k = 3, 16, 5
    x = np.random.default_rng(0).integers(0, 2, (m, n)).astype(bool)
    at = np.array([0, 7, 16], np.int32)
    out, part, one = np.zeros((3, m, 2 * n), bool), np.zeros((3, m, k), bool), np.zeros(3, bool)
    run = slices_of_masks[(3,)](out, part, one, x, at, M=m, N=n, K=k, LOADED=kind)
    mask = x if kind != "indices" else np.broadcast_to(np.arange(n) < n // 2, (m, n))
    for p, first in enumerate(at):
        want = np.zeros((m, 2 * n), bool)
        want[:, :n] = mask
        want[:, first : first + n] = mask
        np.testing.assert_array_equal(out[p], want)
        np.testing.assert_array_equal(part[p], want[:, first : first + 2 * k : 2])
        assert one[p] == want[0, first]
    halves = 2 * m * n * (2 + 1 + 2)  # both tiles and the result as halves, beside the offsets of the gather
    scratch = [v.bytes for v in run.launches[0].buffers["UB"].peak if "insert_slice" in v.name]
    assert any(b >= halves for b in scratch)


@sim.jit
def half_of_a_mask(out, x, N: tl.constexpr, MASK: tl.constexpr):
    o, h = tl.arange(0, N), tl.arange(0, N // 2)
    v = tl.load(x + o)
    if MASK:
        tl.store(out + h, al.extract_slice(v > 0.0, [N // 2], [N // 2], [1]))
    else:
        tl.store(out + o, v > 0.0)
        al.extract_slice(v, [N // 2], [N // 2], [1])


def test_a_mask_is_widened_sliced_and_compared() -> None:
    """Beside the slice of a half tile: a selection over the whole tile and a comparison of the part."""
    n = 4096
    x, out = np.ones(n, np.float16), np.zeros(n, bool)
    mask, plain = (half_of_a_mask[(1,)](out, x, N=n, MASK=m).launches[0] for m in (True, False))
    assert mask.pipes["AIV.V"].busy_cycles > plain.pipes["AIV.V"].busy_cycles + 2 * n / 128
