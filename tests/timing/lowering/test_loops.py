"""Iterations of a loop interpreted all at once give the records of those interpreted one by one, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
from ascendtile.kernels import run_op
from ascendtile.kernels.tutorials import (
    attention,
    matmul,
    softmax,
)
from ascendtile.simulator.observers import watch
from ascendtile.simulator.timing import estimate
from ascendtile.simulator.timing.engine.engine import ProgramGroup
from ascendtile.simulator.timing.lowering.loops import LoopLowering

from ...support import loop_kernels as kernels
from . import trace_records
from .trace_records import Records, assert_same_launch


class Seen:
    """Traces, launches and how many loops were interpreted with all iterations at once."""

    def __init__(self) -> None:
        self.groups: list[ProgramGroup] = []
        self.lines: list[list[Any]] = []  # of each launch: what each line number of its traces stands for
        self.launches: list[sim.Launch] = []
        self.loops = 0
        self.error = ""


def observe(work: Callable[[], Any], together: bool) -> Seen:
    seen = Seen()
    simulate, take, finish = estimate.simulate, LoopLowering._take, estimate._finish
    lower = estimate._estimate

    def simulated(machine: Any, groups: Any, *how: Any, **more: Any) -> Any:
        seen.groups += groups
        return simulate(machine, groups, *how, **more)

    def finished(call: Any, plan: Any, *args: Any) -> Any:
        seen.lines.append(list(plan.lines))
        return finish(call, plan, *args)

    def taken(*args: Any) -> None:
        seen.loops += 1
        take(*args)

    with (
        mock.patch.object(
            estimate, "_estimate", lambda call, at_once, leaves: lower(call, at_once and together, leaves)
        ),
        mock.patch.object(estimate, "simulate", simulated),
        mock.patch.object(estimate, "_finish", finished),
        mock.patch.object(LoopLowering, "_take", taken),
        mock.patch("ascendtile.simulator.launch.recall", return_value=None),
        watch(lambda run: seen.launches.extend(run.launches)),
    ):
        try:
            seen.launches += getattr(work(), "launches", ())
        except sim.RunError as e:
            seen.error = str(e)
    return seen


def assert_same(a: Seen, b: Seen) -> None:
    assert a.error == b.error
    assert len(a.groups) == len(b.groups)
    assert a.groups or a.error
    for g, h in zip(a.groups, b.groups, strict=True):
        assert np.array_equal(g.programs, h.programs)
        assert np.array_equal(g.trace.flags, h.trace.flags)
        trace_records.assert_same(Records(g), Records(h))
    assert lines(a) == lines(b)
    for x, y in zip(a.launches, b.launches, strict=True):
        assert_same_launch(x, y)


def lines(seen: Seen) -> list[Any]:
    """Of each record that a program does: source line, grade and name. Their numbers are given as they come."""
    if len(seen.lines) != 1:
        return []  # of more launches: those of the timeline, see below
    return [[seen.lines[0][k] for k in ks] for g in seen.groups for ks in Records(g).lines()]


def check(work: Callable[[], Any]) -> int:
    """How many loops were interpreted with all iterations at once."""
    one_by_one, together = observe(work, False), observe(work, True)
    assert not one_by_one.loops
    assert_same(one_by_one, together)
    return together.loops


def shapes(*sizes: Any, dtype: str = "float16") -> list[Any]:
    return [sim.shape(n, dtype) for n in sizes]


choices = st.fixed_dictionaries(
    {
        "MASK": st.sampled_from(["none", "end", "band"]),
        "STORE": st.sampled_from(["no", "store", "atomic", "scalar"]),
        "MOVE": st.sampled_from(
            ["plain", "pointer", "product", "stride", "wide", "discrete", "odd", "own_start"]
        ),
        "BRANCH": st.sampled_from(["no", "iteration", "program", "all"]),
        "BLOCK": st.sampled_from([32, 100, 1024]),
    }
)


@given(
    choices,
    st.integers(1, 7),
    st.integers(0, 60),
    st.sampled_from([0, 1, 256, 1000]),
    st.integers(1, 70_000),
    st.integers(1, 5),
)
def test_a_loop_of_any_kind(
    flags: dict[str, Any], programs: int, count: int, stride: int, n: int, copies: int
) -> None:
    """Also where it turns out that iterations differ, so that what was recorded of all at once is thrown away."""

    def work() -> None:
        with sim.device("ascend910b3", values=False, multibuffer=copies):
            kernels.one_loop[(programs,)](
                *shapes(1 << 20), *shapes(1 << 20, dtype="float32"), n, count, stride, **flags
            )

    check(work)


@given(
    st.integers(1, 6),
    st.integers(0, 25),
    st.integers(0, 25),
    st.booleans(),
    st.integers(1, 700),
    st.integers(1, 9000),
)
def test_loops_in_loops(programs: int, rows: int, count: int, even: bool, m: int, n: int) -> None:
    def work() -> None:
        with sim.device("ascend910b3", values=False):
            kernels.rows_and_columns[(programs,)](
                *shapes(40 * 16 * 9000, 40 * 16), m, n, rows, count, EVEN=even, BM=16, BN=32
            )

    check(work)


@given(
    st.integers(1, 24),
    st.booleans(),
    st.booleans(),
    st.integers(1, 300),
    st.integers(1, 300),
    st.integers(1, 900),
)
def test_products(cores: int, even: bool, bias: bool, m: int, n: int, k: int) -> None:
    if even:
        m, n, k = (-(-x // 32) * 32 for x in (m, n, k))

    def work() -> None:
        with sim.device("ascend910b3", values=False):
            kernels.product[(cores,)](
                *shapes((m, k), (k, n), (m, n)), m, n, k, EVEN=even, BIAS=bias, BM=32, BN=32, BK=32
            )

    check(work)


@pytest.mark.parametrize("back", [False, True])
def test_iterations_that_go_backwards(back: bool) -> None:
    def work() -> None:
        with sim.device("ascend910b3", values=False):
            kernels.in_place[(3,)](*shapes(1 << 16), 50, BLOCK=256, BACK=back)

    assert check(work) == 1


@pytest.mark.exhaustive
@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("name", "case", "tiling"),
    [
        ("matmul", {"m": 512, "n": 768, "k": 2048}, {"block_m": 64, "block_n": 128, "block_k": 64}),
        ("matmul", {"m": 500, "n": 700, "k": 1030}, {"schedule": "per_tile", "block_k": 32}),
        (
            "matmul",
            {"m": 2048, "n": 2048, "k": 256},
            {"cores": 1, "block_m": 128, "block_n": 128, "block_k": 16},
        ),
        ("rms_norm_grad", "llama3-8b", {}),
        ("bce_with_logits_backward", "yolo", {}),
    ],
)
def test_operators(name: str, case: Any, tiling: dict[str, Any]) -> None:
    assert check(lambda: run_op(name, case, tiling=tiling, values=False)) > 0


TUTORIALS = {
    "attention": lambda: attention.attention(*(np.zeros((2, 1100, 64), np.float16),) * 3, causal=False),
    "causal attention": lambda: attention.attention(*(np.zeros((2, 1100, 64), np.float16),) * 3, causal=True),
    "matmul": lambda: matmul.matmul(np.zeros((500, 2000), np.float16), np.zeros((2000, 300), np.float16)),
    "softmax": lambda: softmax.softmax(np.zeros((1000, 700), np.float16)),
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", TUTORIALS)
def test_tutorials(name: str) -> None:
    def work() -> None:
        with sim.device("ascend910b3", values=False):
            TUTORIALS[name]()

    check(work)
