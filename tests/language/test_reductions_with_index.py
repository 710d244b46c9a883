"""Reductions of a value and its index: an instruction that counts places itself, as the compiler for Ascend makes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl


@sim.jit
def smallest(a, i, b, j):
    this = (a < b) | ((a == b) & (i < j))
    return tl.where(this, a, b), tl.where(this, i, j)


@sim.jit
def last_largest(a, i, b, j):
    this = a > b
    this |= (a == b) & (i > j)
    return tl.where(this, a, b), tl.where(this, i, j)


@sim.jit
def index_of_the_other(a, i, b, j):
    this = a < b
    return tl.where(this, a, b), tl.where(this, j, i)


@sim.jit
def kernel(out, at, x, index, combine: tl.constexpr, AXIS: tl.constexpr, R: tl.constexpr, C: tl.constexpr):
    tile = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    value, where = tl.reduce((tl.load(x + tile), tl.load(index + tile)), AXIS, combine)
    i = tl.arange(0, C if AXIS == 0 else R)
    tl.store(out + i, value)
    tl.store(at + i, where)


def _run(combine: Any, x: np.ndarray, index: np.ndarray, axis: int) -> tuple[Any, ...]:
    n = x.shape[1 - axis]
    out, at = np.zeros(n, x.dtype), np.zeros(n, np.int32)
    run = kernel[(1,)](out, at, x, index, combine=combine, AXIS=axis, R=x.shape[0], C=x.shape[1])
    return out, at, " ".join(str(m) for m in run.warnings)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.float16])
def test_the_index_is_the_place_along_the_axis_whatever_the_tile_of_indices_holds(
    axis: int, dtype: Any
) -> None:
    x = np.random.default_rng(axis).integers(0, 4, (7, 12)).astype(dtype)
    for index in (np.zeros(x.shape, np.int32), np.arange(84, dtype=np.int32).reshape(x.shape)):
        out, at, told = _run(smallest, x, index, axis)
        assert (out == x.min(axis)).all()
        assert (at == x.argmin(axis)).all()
        assert "does not read the tile of indices" in told
        out, at, _ = _run(last_largest, x, index, axis)
        back = np.flip(x, axis).argmax(axis)
        assert (out == x.max(axis)).all()
        assert (at == x.shape[axis] - 1 - back).all()


def test_a_function_that_selects_otherwise_reads_the_tile_of_indices() -> None:
    x = np.array([[3, 1], [2, 5]], np.float32)
    out, at, told = _run(index_of_the_other, x, np.array([[10, 20], [30, 40]], np.int32), 1)
    assert out.tolist() == [1, 2]
    assert at.tolist() == [10, 40]
    assert "tile of indices" not in told


@sim.jit
def counted(at, x, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.arange(0, R)[:, None], tl.arange(0, C)[None, :]
    v = tl.load(x + r * C + c)
    tl.store(at + tl.arange(0, R), tl.reduce((v, tl.broadcast_to(c, (R, C))), 1, smallest)[1])
    tl.store(at + R + tl.arange(0, C), tl.reduce((v, tl.broadcast_to(c, (R, C))), 0, smallest)[1])


def test_a_tile_that_counts_along_the_axis_is_no_matter_to_tell() -> None:
    x, at = np.ones((4, 8), np.float32), np.zeros(12, np.int32)
    run = counted[(1,)](at, x, R=4, C=8)
    assert at.tolist() == [0] * 12
    line = counted.fn.__code__.co_firstlineno + 5
    assert [m.place for m in run.warnings if "tile of indices" in str(m)] == [f"{__file__}:{line}"]
