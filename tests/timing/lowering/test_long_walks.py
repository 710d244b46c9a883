"""A trace is the same launch however its records become code: as they come, in small parts, or all at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import fields
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.kernels import run_op
from ascendtile.simulator.timing import estimate
from ascendtile.simulator.timing.engine.trace import Trace
from ascendtile.simulator.timing.lowering import loops
from ascendtile.simulator.timing.trace import builder, repeats

from .test_loops import TUTORIALS, choices, kernels, shapes
from .trace_records import assert_same_launch

PRODUCT = "ascend910b3"


def launches_of(work: Callable[[], Any], small: Mapping[tuple[Any, str], int]) -> list[Any]:
    """Launches, with limits changed to what `small` says."""
    found: list[Any] = []
    finish = estimate._finish

    def finished(*args: Any) -> Any:
        found.append(finish(*args))
        return found[-1]

    with ExitStack() as changed:
        for (module, name), value in small.items():
            changed.enter_context(mock.patch.object(module, name, value))
        changed.enter_context(mock.patch.object(estimate, "_finish", finished))
        changed.enter_context(mock.patch("ascendtile.simulator.launch.recall", return_value=None))
        work()
    return found


def limits(chunk: int, lanes: int, period: int) -> dict[tuple[Any, str], int]:
    """Records after which accesses are touched; lanes that are lowered at once; iterations that are compared."""
    return {
        (builder, "CHUNK"): chunk,
        (loops, "LANES"): lanes,
        (repeats, "PERIOD"): period,
    }


WHOLE = limits(1 << 40, 1 << 17, 12)
some_limits = st.builds(
    limits, st.sampled_from([1, 20, 100]), st.sampled_from([1, 16, 200, 1 << 17]), st.sampled_from([0, 1, 3])
)


def check(work: Callable[[], Any], small: Mapping[tuple[Any, str], int]) -> list[Any]:
    """The launches, which are the same with all limits large."""
    whole, pieces = launches_of(work, WHOLE), launches_of(work, small)
    assert len(whole) == len(pieces) > 0
    for a, b in zip(whole, pieces, strict=True):
        assert_same_launch(a, b)
    return pieces


@given(choices, st.integers(1, 5), st.integers(0, 60), st.integers(1, 70_000), some_limits)
def test_a_loop_of_any_kind(flags: dict[str, Any], programs: int, count: int, n: int, small: Any) -> None:
    def work() -> None:
        with sim.device(PRODUCT, values=False):
            tensors = (*shapes(1 << 20), *shapes(1 << 20, dtype="float32"))
            kernels.one_loop[(programs,)](*tensors, n, count, 256, **flags)

    check(work, small)


@given(st.integers(1, 6), st.integers(0, 25), st.integers(0, 25), st.booleans(), some_limits)
def test_loops_in_loops(programs: int, rows: int, count: int, even: bool, small: Any) -> None:
    def work() -> None:
        with sim.device(PRODUCT, values=False):
            tensors = shapes(40 * 16 * 9000, 40 * 16)
            kernels.rows_and_columns[(programs,)](*tensors, 300, 2000, rows, count, EVEN=even, BM=16, BN=32)

    check(work, small)


@pytest.mark.parametrize("chunk", [1, 300])
def test_a_product(chunk: int) -> None:
    tiling = {"block_m": 64, "block_n": 128, "block_k": 64}

    def work() -> None:
        run_op("matmul", {"m": 512, "n": 768, "k": 1024}, tiling=tiling, values=False)

    check(work, limits(chunk, 64, 2))


@pytest.mark.exhaustive
def test_attention_and_what_holds_it_up() -> None:
    """Also with one limit lifted at a time: those runs take the same trace."""

    def work() -> None:
        with sim.device(PRODUCT, values=False, explain=True):
            TUTORIALS["causal attention"]()

    check(work, limits(200, 100, 2))


@sim.jit
def doubled(x_ptr, out_ptr, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    one = tl.load(x_ptr + tl.arange(0, BLOCK))
    for i in range(0, count):
        at = i * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + at, tl.load(x_ptr + at) * 2.0 + one)
    tl.store(out_ptr + tl.arange(0, BLOCK), one)


@sim.jit
def halved(n_ptr, x_ptr, out_ptr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """As many iterations as the data says, each with a tile of its own."""
    left = tl.load(n_ptr)
    while left > 0:
        at = (left % 64) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + at, tl.load(x_ptr + at) * 0.5)
        left -= 1


def over_a_range(count: int, block: int = 256) -> Any:
    with sim.device(PRODUCT, values=False):
        shape = sim.shape(count * block, "float16")
        return doubled.time((1,), shape, shape, count, BLOCK=block)


def over_data(count: int) -> Any:
    x = np.zeros(64 * 16, np.float16)
    with sim.device(PRODUCT):
        return halved[(1,)](np.array([count], np.int32), x, x.copy(), BLOCK=16)


def trace_of(work: Callable[[], Any]) -> Trace:
    """The trace of a launch whose loops are lowered 1000 iterations at a time."""
    seen: list[Trace] = []
    trace = builder.TraceBuilder.trace

    def traced(*args: Any) -> Trace:
        seen.append(trace(*args))
        return seen[-1]

    with (
        mock.patch.object(builder, "CHUNK", 4096),
        mock.patch.object(loops, "LANES", 1000),
        mock.patch.object(builder.TraceBuilder, "trace", traced),
        mock.patch("ascendtile.simulator.launch.recall", return_value=None),
    ):
        work()
    (found,) = seen
    return found


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("work", "counts"), [(over_a_range, (10_000, 20_000)), (over_data, (600, 1_200))], ids=["range", "data"]
)
def test_a_long_loop_is_kept_once(work: Callable[[int], Any], counts: tuple[int, int]) -> None:
    """Twice as many iterations: the same instructions and loops, but for trip counts, and numbers of the first thousand."""
    sizes = []
    for count in counts:
        found = trace_of(lambda count=count: work(count))  # type: ignore[misc]
        assert found.records > 3 * count
        sizes.append({f.name: np.size(getattr(found, f.name)) for f in fields(found)})
    assert sizes[0] == sizes[1]
    assert max(sizes[0].values()) <= 2 * 1000


def test_of_iterations_that_differ_only_the_numbers_are_kept() -> None:
    """Tiles of 32 bytes: every 16th load brings a line of L2. A load has two records, each with its occupancy and bytes."""
    sizes = []
    for count in (10_000, 20_000):
        found = trace_of(lambda count=count: over_a_range(count, 16))  # type: ignore[misc]
        sizes.append(sum(np.asarray(getattr(found, f.name)).nbytes for f in fields(found)))
    assert sizes[1] - sizes[0] < 10_000 * 4.5 * 8
