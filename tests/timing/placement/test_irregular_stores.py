"""A product stored under a mask of elements, or to scattered addresses, leaves by way of UB: the fixpipe stores boxes."""

from __future__ import annotations

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl

N = 16


@sim.jit
def product(x, at, out, step, WHAT: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    o = i * step + j
    v = tl.load(x + i * N + j)
    if WHAT == "mask":
        tl.store(out + o, tl.dot(v, v), mask=o < N * N)
    elif WHAT == "scattered":
        tl.store(out + tl.load(at + tl.arange(0, N))[:, None] + j, tl.dot(v, v))
    else:
        tl.store(out + o, tl.dot(v, v))


@pytest.mark.parametrize("what", ["box", "mask", "scattered"])
def test_only_a_box_leaves_from_l0c(what: str) -> None:
    x = np.arange(N * N, dtype=np.float32).reshape(N, N) % 7
    out = np.zeros_like(x)
    run = product[(1,)](x, np.arange(N, dtype=np.int32) * N, out, N, WHAT=what, N=N)
    assert (out == x @ x).all()
    ub = run.launches[0].buffers.get("UB")
    half = N * N * 4 // 2  # each Vector core may have half of the rows
    assert (ub is not None and ub.used_bytes >= half) == (what != "box")
