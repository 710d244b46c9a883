"""A walk that packs its records as it goes gives the same launch as one that keeps them all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.kernels import run_op
from ascendtile.simulator.record.run import Buffer
from ascendtile.simulator.timing import estimate
from ascendtile.simulator.timing.lowering import loops as turns
from ascendtile.simulator.timing.trace import packing
from ascendtile.simulator.timing.trace.recorder import Recorder

from .test_loops import TUTORIALS, choices, kernels, shapes

PRODUCT = "ascend910b3"


def launches_of(
    work: Callable[[], Any], chunk: int, near: int = 64, least: int = 32
) -> tuple[list[Any], int]:
    """Launches, and the records of traces that were packed."""
    found: list[Any] = []
    packed = 0
    finish = estimate._finish

    def finished(call: Any, plan: Any, groups: Any, *rest: Any) -> Any:
        nonlocal packed
        packed += sum(g.trace.records for g in groups if g.trace.runs is not None)
        found.append(finish(call, plan, groups, *rest))
        return found[-1]

    with (
        mock.patch.object(Recorder, "chunk", chunk),
        mock.patch.object(turns, "RECORDS", chunk),
        mock.patch.object(packing, "NEAR", near),
        mock.patch.object(packing, "LEAST", least),
        mock.patch.object(estimate, "_finish", finished),
        mock.patch("ascendtile.simulator.launch.recall", return_value=None),
    ):
        work()
    return found, packed


def assert_same(a: sim.Launch, b: sim.Launch) -> None:
    """All of it; bounds and conflicts are sums over records, which are added up in another order."""
    for f in fields(a):
        x, y = getattr(a, f.name), getattr(b, f.name)
        if f.name in ("bounds", "lifted"):
            assert x == pytest.approx(y, rel=1e-12), f.name
        elif f.name == "timeline":
            assert (x is None) == (y is None)
            for one in fields(x) if x else ():
                assert np.array_equal(getattr(x, one.name), getattr(y, one.name)), one.name
        elif f.name == "pipes":
            assert {n: replace(p, core_conflicts={}) for n, p in x.items()} == {
                n: replace(p, core_conflicts={}) for n, p in y.items()
            }
            for n, pipe in x.items():
                for kind, cycles in pipe.core_conflicts.items():
                    assert y[n].core_conflicts[kind] == pytest.approx(cycles, rel=1e-12), (n, kind)
        elif f.name == "buffers":
            assert_same_buffers(x, y)
        else:
            assert x == y, f.name


def assert_same_buffers(whole: dict[str, Buffer], packed: dict[str, Buffer]) -> None:
    """But for what they hold over time: of packed records it is known only which slots the first ones use."""
    assert whole.keys() == packed.keys()
    for name, one in whole.items():
        assert replace(one, held=()) == replace(packed[name], held=()), name


def check(work: Callable[[], Any], chunk: int) -> int:
    """How many records were packed."""
    whole, none = launches_of(work, 1 << 40)
    pieces, packed = launches_of(work, chunk)
    assert none == 0
    assert len(whole) == len(pieces) > 0
    for a, b in zip(whole, pieces, strict=True):
        assert_same(a, b)
    return packed


@given(choices, st.integers(1, 5), st.integers(0, 60), st.integers(1, 70_000), st.sampled_from([1, 20, 100]))
def test_a_loop_of_any_kind(flags: dict[str, Any], programs: int, count: int, n: int, chunk: int) -> None:
    def work() -> None:
        with sim.device(PRODUCT, values=False):
            tensors = (*shapes(1 << 20), *shapes(1 << 20, dtype="float32"))
            kernels.one_loop[(programs,)](*tensors, n, count, 256, **flags)

    check(work, chunk)


@given(
    st.integers(1, 6), st.integers(0, 25), st.integers(0, 25), st.booleans(), st.sampled_from([1, 50, 300])
)
def test_loops_in_loops(programs: int, rows: int, count: int, even: bool, chunk: int) -> None:
    def work() -> None:
        with sim.device(PRODUCT, values=False):
            tensors = shapes(40 * 16 * 9000, 40 * 16)
            kernels.rows_and_columns[(programs,)](*tensors, 300, 2000, rows, count, EVEN=even, BM=16, BN=32)

    check(work, chunk)


@pytest.mark.parametrize("chunk", [1, 300])
def test_a_product(chunk: int) -> None:
    tiling = {"block_m": 64, "block_n": 128, "block_k": 64}
    packed = check(
        lambda: run_op("matmul", {"m": 512, "n": 768, "k": 1024}, tiling=tiling, values=False), chunk
    )
    assert packed > 300


def test_attention_and_what_holds_it_up() -> None:
    """Also with one limit lifted at a time: those runs take the packed records, too."""

    def work() -> None:
        with sim.device(PRODUCT, values=False, explain=True):
            TUTORIALS["causal attention"]()

    assert check(work, 200) > 1000


@sim.jit
def doubled(x_ptr, out_ptr, turns, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    one = tl.load(x_ptr + tl.arange(0, BLOCK))
    for turn in range(0, turns):
        at = turn * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + at, tl.load(x_ptr + at) * 2.0 + one)
    tl.store(out_ptr + tl.arange(0, BLOCK), one)


def test_a_long_loop_is_kept_once() -> None:
    """Ten thousand turns or twenty thousand: the same kinds and the same order, but for how long a run is."""
    sizes = []
    for count in (10_000, 20_000):
        seen: list[Any] = []
        trace = Recorder.trace

        def traced(*args: Any, seen: list[Any] = seen, trace: Any = trace) -> Any:
            seen.append(trace(*args))
            return seen[-1]

        with (
            sim.device(PRODUCT, values=False),
            mock.patch.object(Recorder, "chunk", 4096),
            mock.patch.object(turns, "RECORDS", 4096),
            mock.patch.object(Recorder, "trace", traced),
        ):
            shape = sim.shape(count * 16, "float16")
            launch = doubled.time((1,), shape, shape, count, BLOCK=16).launches[0]
        (found,) = seen
        assert launch.instructions > 3 * count
        assert found.records > 3 * count
        sizes.append((len(found.pipe), len(found.dep), len(found.runs.order), len(found.runs.start)))
    assert sizes[0] == sizes[1]
    assert max(sizes[0]) < 12_000
