"""Speed of operators and of a kernel with many programs, beside numpy.

    pytest tests/bench/test_bench_kernels.py --benchmark-enable --benchmark-only -s

Ratios take turns, so that a busy machine slows both sides alike, and are asserted; targets in seconds are of a machine
with nothing else to do, and are printed beside what was measured.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.kernels import get_operator, run_op

N = 1 << 24
BLOCK = 1024
Inputs = dict[str, np.ndarray]


@sim.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask), mask=mask)


def in_numpy(inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
    """The formula of RmsNormGrad on whole arrays in float32."""
    dy, x, gamma = (inputs[n].astype(np.float32) for n in ("dy", "x", "gamma"))
    rstd = inputs["rstd"][:, None]
    xh = x * rstd
    t = dy * gamma
    c = (t * xh).mean(axis=1, keepdims=True)
    return ((t - xh * c) * rstd).astype(np.float16), (dy * xh).sum(axis=0)


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def ratio(benchmark: BenchmarkFixture, ours: Callable[[], object], theirs: Callable[[], object]) -> float:
    """Median over rounds of our time over theirs; warmed up once."""
    ours()
    ratios = [seconds(ours) / seconds(theirs) for _ in range(5)]
    found = statistics.median(ratios)
    benchmark.extra_info["ratio to numpy"] = round(found, 3)
    print(f"\n{found:.2f} of numpy's time")
    benchmark.pedantic(ours, rounds=3)
    return found


def show(benchmark: BenchmarkFixture, target: float) -> None:
    benchmark.extra_info["target in seconds"] = target
    print(f"\n{benchmark.stats.stats.min:.3f} s, target {target} s")


def test_rms_norm_grad_values(benchmark: BenchmarkFixture) -> None:
    """Inputs, tiling and values of 8.4 million elements; at most 3 times numpy's arithmetic alone."""
    inputs = get_operator("rms_norm_grad").inputs("llama3-8b", "float16")
    run = lambda: run_op("rms_norm_grad", "llama3-8b", "float16", time=False, errors=False)  # noqa: E731
    assert ratio(benchmark, run, lambda: in_numpy(inputs)) <= 3


def test_rms_norm_grad_values_of_given_inputs(benchmark: BenchmarkFixture) -> None:
    """The kernel's arithmetic alone, beside numpy's."""
    inputs = get_operator("rms_norm_grad").inputs("llama3-8b", "float16")
    run = lambda: run_op("rms_norm_grad", inputs=inputs, time=False, errors=False)  # noqa: E731
    assert ratio(benchmark, run, lambda: in_numpy(inputs)) <= 3


def test_rms_norm_grad_time(benchmark: BenchmarkFixture) -> None:
    """What a sweep pays for one tiling: below 50 ms."""
    benchmark.pedantic(
        run_op, ("rms_norm_grad", "llama3-8b", "float16"), {"values": False}, rounds=9, warmup_rounds=1
    )
    show(benchmark, 0.05)


def test_bce_reference(benchmark: BenchmarkFixture) -> None:
    """34 million elements in float64: below 2.5 s."""
    op = get_operator("bce_with_logits_backward")
    inputs = op.inputs("yolo", "float16")
    benchmark.pedantic(op.reference, (inputs,), {"reduction": "mean"}, rounds=2)
    show(benchmark, 2.5)


@pytest.mark.parametrize("timed", [False, True], ids=["values", "time"])
def test_vector_add_in_16384_programs(benchmark: BenchmarkFixture, timed: bool) -> None:
    """2**24 float16 in blocks of 1024: below 0.5 s for the values, and for the time."""
    x, y = (np.random.default_rng(k).random(N, np.float32).astype(np.float16) for k in (0, 1))
    out = np.empty_like(x)

    def launch() -> None:
        with sim.device(values=not timed, time=timed):
            add[(N // BLOCK,)](x, y, out, N, BLOCK=BLOCK)

    benchmark.pedantic(launch, rounds=3, warmup_rounds=1)
    assert timed or np.array_equal(out, x + y)
    show(benchmark, 0.5)
