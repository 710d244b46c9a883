"""Moving index arithmetic out of loops changes what is computed where, never what is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.ir.passes import hoist
from ascendtile.simulator.ir.program import walk
from ascendtile.simulator.ir.types import PointerType
from ascendtile.simulator.precision.dtypes import float32, int32

from .values import output


@sim.jit
def loops(out, n, m, B: tl.constexpr, DEPTH: tl.constexpr):
    i = tl.arange(0, B)
    acc = tl.zeros((B,), tl.float32)
    k = n
    while k > m - 3:
        for j in range(m):
            at = i + n * 2
            mask = (i < m) & (at < n * 4)
            scale = n * m + 1
            if DEPTH > 1:
                for t in range(j):
                    wide = tl.arange(0, B) * (m + 1)
                    acc += tl.where(wide > t * n, 1.0, 0.5)
            acc += tl.where(mask, at + j, scale)
            if m > 2 and n // (m - 2) > j:
                acc += 1.0
        k -= 1
    tl.store(out + i, acc)


def program(fn: Any, depth: int) -> Any:
    types = {"out": PointerType(float32), "n": int32, "m": int32}
    return fn.program(types, {"B": 8, "DEPTH": depth})


@given(st.integers(-3, 9), st.integers(0, 6), st.sampled_from([1, 2]))
def test_results_are_the_same_without_hoisting(n: int, m: int, depth: int) -> None:
    if m == 2:
        m = 3  # n // (m - 2) divides by zero, hoisted or not
    with_hoist = output(sim.jit(loops.fn), 8, n, m, B=8, DEPTH=depth)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hoist, "hoist", lambda program: None)
        without = output(sim.jit(loops.fn), 8, n, m, B=8, DEPTH=depth)
    np.testing.assert_array_equal(with_hoist, without)


def test_what_does_not_change_leaves_the_loop_and_what_may_fail_stays() -> None:
    body = program(loops, 2).body
    inside = [op for loop in body.ops if loop.kind == "while" for r in loop.regions for op in walk(r)]
    outside = [op for op in body.ops if op.kind != "while"]
    assert "arange" not in {op.kind for op in inside}
    assert any(op.name == "floordiv" for op in inside)
    assert any(op.kind == "compare" for op in outside)
    assert not any(op.name == "floordiv" for op in outside)


@sim.jit
def never_entered(out, n):
    for _ in range(n):
        tl.store(out, 5 // n + 7 % n)
    while n > 5:
        tl.store(out, 5 // (n - n))
    tl.store(out + 1, 1.0)


def test_a_loop_that_is_not_entered_divides_nothing() -> None:
    assert output(never_entered, 2, 0).tolist() == [-7, 1]
