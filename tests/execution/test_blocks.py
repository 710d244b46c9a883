"""Block pointers and tensor descriptors reach exactly the elements that shape, strides, offsets and block say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl

from .runs import launch


@sim.jit
def copy_block(x, out, o0, o1, n0, n1, s0, s1, B0: tl.constexpr, B1: tl.constexpr, PAD: tl.constexpr):
    p = tl.make_block_ptr(x, (n0, n1), (s0, s1), (o0, o1), (B0, B1), order=(1, 0))
    q = tl.make_block_ptr(out, (B0, B1), (B1, 1), (0, 0), (B0, B1), order=(1, 0))
    tl.store(q, tl.load(p, boundary_check=(0, 1), padding_option=PAD))


def window(x: np.ndarray, at: tuple[int, ...], block: tuple[int, ...], fill: float) -> np.ndarray:
    """The block of `x` at `at`, `fill` outside."""
    out = np.full(block, fill, x.dtype)
    for i in np.ndindex(*block):
        j = tuple(a + k for a, k in zip(at, i, strict=True))
        if all(0 <= k < n for k, n in zip(j, x.shape, strict=True)):
            out[i] = x[j]
    return out


@given(
    st.tuples(st.integers(1, 7), st.integers(1, 7)),
    st.tuples(st.integers(-9, 9), st.integers(-9, 9)),
    st.tuples(st.integers(1, 6), st.integers(1, 6)),
    st.booleans(),
    st.sampled_from(["zero", "nan", ""]),
)
def test_a_checked_block_is_the_window_with_its_padding(
    shape: tuple[int, int], at: tuple[int, int], block: tuple[int, int], turned: bool, pad: str
) -> None:
    x = np.arange(1.0, shape[0] * shape[1] + 1, dtype=np.float32).reshape(shape)
    x = np.asfortranarray(x) if turned else x
    strides = [s // 4 for s in x.strides]
    out = np.empty(block, np.float32)
    launch(copy_block, (1,), x, out, *at, *shape, *strides, B0=block[0], B1=block[1], PAD=pad)
    assert np.array_equal(out, window(x, at, block, np.nan if pad == "nan" else 0), equal_nan=True)


@sim.jit
def step(p, k, B: tl.constexpr):
    return tl.advance(p, (k * 0, B))


@sim.jit
def blocks_in_order(x, out, rows, columns, stop, B: tl.constexpr):
    pid = tl.program_id(0)
    p = tl.make_block_ptr(
        x, shape=[rows, columns], strides=[columns, 1], offsets=[pid, 0], block_shape=[1, B], order=[1, 0]
    )
    q = p
    total = tl.zeros((1, B), tl.float32)
    k = 0
    while k < stop:
        if k % 2 == 0:
            total += tl.load(p, boundary_check=(1,))
            p = step(p, k, B)
        else:
            p = p.advance((0, B))
        k += 1
    total += tl.load(q)
    tl.store(tl.make_block_ptr(out, (rows, B), (B, 1), (pid, 0), (1, B), (1, 0)), total)


def test_a_block_pointer_goes_through_loops_branches_and_helpers() -> None:
    x = np.arange(3 * 22, dtype=np.float32).reshape(3, 22)
    out = np.empty((3, 4), np.float32)
    launch(blocks_in_order, (3,), x, out, 3, 22, 7, B=4)
    wide = np.pad(x, ((0, 0), (0, 16)))
    want = wide[:, 0:4] * 2 + wide[:, 8:12] + wide[:, 16:20] + wide[:, 24:28]
    assert np.array_equal(out, want)


@sim.jit
def five(x, out, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, D: tl.constexpr, E: tl.constexpr):
    p = tl.make_block_ptr(
        x,
        (A, B, C, D, E),
        (B * C * D * E, C * D * E, D * E, E, 1),
        (0, 0, 0, 0, 1),
        (A, B, C, D, E),
        (4, 3, 2, 1, 0),
    )
    q = tl.make_block_ptr(out, (A, B, C, D, E), (1, A, A * B, A * B * C, A * B * C * D), (0, 0, 0, 0, 0),
                          (A, B, C, D, E), (0, 1, 2, 3, 4))  # fmt: skip
    tl.store(q, tl.load(p, boundary_check=(4,)))


def test_five_axes() -> None:
    x = np.random.default_rng(5).standard_normal((2, 3, 2, 3, 4)).astype(np.float16)
    out = np.empty((4, 3, 2, 3, 2), np.float16)
    run = five[(1,)](x, out, *x.shape)
    want = np.concatenate([x[..., 1:], np.zeros((2, 3, 2, 3, 1), np.float16)], axis=-1)
    assert np.array_equal(out, want.transpose())
    assert run.time_us > 0


@sim.jit
def through_descriptors(x, out, n0, n1, B0: tl.constexpr, B1: tl.constexpr):
    d = tl.make_tensor_descriptor(x, shape=[n0, n1], strides=[n1, 1], block_shape=[B0, B1])
    o = tl.make_tensor_descriptor(out, shape=[n0, n1], strides=[n1, 1], block_shape=[B0, B1])
    for j in range(0, n1, B1):
        at = [tl.program_id(0) * B0, j]
        o.store(at, d.load(at) + tl.load_tensor_descriptor(d, at))
        o.atomic_add(at, tl.full((B0, B1), 1, tl.float32))


def test_descriptors_load_store_and_add_within_the_tensor() -> None:
    x = np.random.default_rng(6).standard_normal((7, 10)).astype(np.float32)
    out = np.zeros_like(x)
    launch(through_descriptors, (4,), x, out, 7, 10, B0=2, B1=4)
    assert np.array_equal(out, x + x + 1)


@sim.jit
def rows_of(x, out, rows, n0, n1, B: tl.constexpr, W: tl.constexpr):
    d = tl.make_tensor_descriptor(x, [n0, n1], [n1, 1], [1, W])
    o = tl.make_tensor_descriptor(out, [n0, n1], [n1, 1], [1, W])
    r = tl.load(rows + tl.arange(0, B))
    o.scatter(d.gather(r, 1), r, 0)


def test_gather_and_scatter_of_rows() -> None:
    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    out, rows = np.full_like(x, -1), np.array([4, 0, 9], np.int32)
    launch(rows_of, (1,), x, out, rows, 6, 4, B=3, W=4)
    want = np.full_like(x, -1)
    for r in (4, 0):
        want[r] = [*x[r, 1:], 0]
    assert np.array_equal(out, want)


@sim.jit
def strided_sum(x, out, step, HOW: tl.constexpr, B: tl.constexpr):
    p = tl.make_block_ptr(x, (256,), (1,), (0,), (B,), (0,))
    total = tl.zeros((B,), tl.float32)
    for i in range(3):
        total += tl.load(p)
        if HOW == "nested":
            for _ in range(2):
                p = tl.advance(p, (step,))
        elif HOW == "branch":
            if i != 1:
                p = p.advance((step,))
        else:
            p = tl.advance(p, (step * tl.num_programs(0),))
    tl.store(out + tl.arange(0, B), total)


@pytest.mark.parametrize(
    ("how", "starts"), [("plain", (0, 8, 16)), ("nested", (0, 16, 32)), ("branch", (0, 8, 8))]
)
def test_a_step_known_at_launch_moves_a_block_that_begins_at_a_number(
    how: str, starts: tuple[int, ...]
) -> None:
    x, out = np.arange(256, dtype=np.float32), np.empty(16, np.float32)
    launch(strided_sum, (1,), x, out, 8, HOW=how, B=16)
    assert np.array_equal(out, sum(x[at : at + 16] for at in starts))


@sim.jit
def regular(x, out, n0, n1, B: tl.constexpr):
    p = tl.make_block_ptr(x, (n0, n1), (n1, 1), (0, 0), (B, B), (1, 0))
    q = tl.make_block_ptr(out, (n0, n1), (n1, 1), (0, 0), (B, B), (1, 0))
    for _ in range(0, n1, B):
        tl.store(q, tl.load(p, boundary_check=(0, 1)), boundary_check=(0, 1))
        p, q = tl.advance(p, (0, B)), tl.advance(q, (0, B))


def test_a_block_is_a_regular_transfer() -> None:
    half = sim.shape((60, 100), "float16")
    assert regular.time((1,), half, half, 60, 100, B=32).warnings == ()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("tl.load(tl.make_block_ptr(p, (n,), (1,), (0,), (4,), (0,)), mask=True)", "instead of `mask` and `other`"),
        ("tl.load(p, boundary_check=(0,))", "belong to block pointers"),
        ("tl.make_block_ptr(p, (n, m), (1,), (0,), (4,), (0,))", "shape 2, strides 1"),
        ("tl.make_block_ptr(p, (n,), (1,), (0,), (4,), (1,))", "every axis from 0 to 0"),
        ("tl.make_block_ptr(p, (n,), (1,), (0,), (n,), (0,))", "compile-time integers"),
        ("tl.load(tl.make_block_ptr(p, (n,), (1,), (0,), (4,), (0,)), boundary_check=(1,))", "axes are 0 to 0"),
        ("tl.load(tl.make_block_ptr(k, (n,), (1,), (0,), (4,), (0,)), boundary_check=(0,), padding_option='nan')",
         "needs a floating type"),
        ("tl.advance(p, (4,))", "needs a block pointer"),
        ("tl.load(p, other=1.0)", "needs a `mask`"),
    ],
)  # fmt: skip
def test_misuse_is_an_error_in_words(body: str, words: str, tmp_path: Any) -> None:
    from ..frontend.sources import compile_body

    with pytest.raises(sim.UsageError, match=words.replace("(", r"\(")):
        compile_body(tmp_path, body)
