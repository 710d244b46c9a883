"""What computes tiles that nobody reads takes no time and no room; what is there for more than its result stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import OutOfBoundsError, RunError

N = 64


@sim.jit
def unread(x, out, n, CODE: tl.constexpr, STEPS: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    for t in range(n):
        v = tl.load(x + t * N + i)
        w = v
        for k in tl.static_range(STEPS):
            what = CODE // 6**k % 6
            if what == 0:
                w = tl.exp(w) + v
            elif what == 1:
                w = tl.where(w > 0.5, w, v)
            elif what == 2:
                w = w - tl.sum(w, axis=0)
            elif what == 3:
                w = w.to(tl.float16).to(tl.float32)
            elif what == 4:
                w = tl.sort(w)
            else:
                w = tl.flip(w) * tl.zeros((N,), tl.float32)
        tl.store(out + t * N + i, v)


def figures(run: sim.Run) -> tuple[Any, ...]:
    return run.cycles, {n: (b.peak_bytes, b.placed_bytes) for n, b in run.buffers.items()}, len(run.lines)


@given(st.integers(0, 6**4 - 1), st.sampled_from(["triton-ascend", "ascendc"]))
def test_what_nobody_reads_takes_no_time_and_no_room(code: int, compiler: str) -> None:
    device = sim.device(compiler=compiler)
    with device:
        x = sim.shape((3, N), "float32")
        took = [figures(unread.time((1,), x, x, 3, CODE=code, STEPS=k, N=N)) for k in (0, 4)]
    assert took[0][:2] == took[1][:2]


@sim.jit
def wide(x, out, M: tl.constexpr, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    v + tl.full((M, N), 1, tl.int32)
    tl.store(out + tl.arange(0, N), v)


def test_a_tile_that_nobody_reads_may_be_larger_than_ub() -> None:
    x = np.arange(512, dtype=np.int32)
    out = np.zeros_like(x)
    wide[(1,)](x, out, 256, 512)
    assert (out == x).all()


@sim.jit
def astray(x, i, N: tl.constexpr):
    tl.load(x + N * i + tl.arange(0, N))


def test_an_access_that_can_go_wrong_stays() -> None:
    with pytest.raises(OutOfBoundsError):
        astray[(1,)](np.zeros(N, np.int32), 1, N=N)


@sim.jit
def divided(x, out, i, STORED: tl.constexpr, N: tl.constexpr):
    quotient = (tl.arange(0, N) + tl.load(x)) // i
    if STORED:
        tl.store(out + tl.arange(0, N), quotient)


def test_a_division_by_zero_is_an_error_where_something_reads_it_and_none_where_nothing_does() -> None:
    x, out = np.zeros(N, np.int32), np.zeros(N, np.int32)
    divided[(1,)](x, out, 0, STORED=False, N=N)
    with pytest.raises(RunError):
        divided[(1,)](x, out, 0, STORED=True, N=N)


@sim.jit
def carried(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    acc = tl.zeros((N,), tl.float32)
    for t in range(n):
        v = tl.load(x + t * N + i)
        if t > 1:
            acc = acc + tl.exp(v)
        v * 2.0
    tl.store(out + i, acc)


def test_what_loops_and_branches_hand_back_stays() -> None:
    x = np.zeros((4, N), np.float32)
    out = np.zeros(N, np.float32)
    carried[(1,)](x, out, 4, N=N)
    assert (out == 2).all()
