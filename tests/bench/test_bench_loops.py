"""Speed and memory of timing loops, without values.

    pytest tests/bench/test_bench_loops.py --benchmark-enable --benchmark-only -s

Targets in seconds are of a machine with nothing else to do, and are printed beside what was measured.
"""

from __future__ import annotations

import itertools
import resource
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.kernels import run_op

TILE = {"block_m": 128, "block_n": 256, "block_k": 64}
CORES, BLOCK = 40, 16


@sim.jit
def copy_iterations(x_ptr, out_ptr, iterations, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """A load, an instruction and a store in each iteration."""
    for iteration in range(0, iterations):
        at = (tl.program_id(0) * iterations + iteration) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + at, tl.load(x_ptr + at) * 2.0)


def product(case: str, **tiling: Any) -> None:
    run_op("matmul", case, "float16", tiling={**TILE, **tiling}, values=False)


def show(benchmark: BenchmarkFixture, target: float, count: int = 1) -> None:
    best = benchmark.stats.stats.min / count
    benchmark.extra_info["target in seconds"] = target
    print(f"\n{best:.4f} s, target {target} s")


def test_a_product_on_one_core(benchmark: BenchmarkFixture) -> None:
    """1024^3, 32 tiles of 16 steps: below 10 ms."""
    benchmark.pedantic(product, ("1024",), {"cores": 1}, rounds=9, warmup_rounds=2)
    show(benchmark, 0.01)


@pytest.mark.parametrize("schedule", ["per_tile", "persistent"])
def test_a_large_product(benchmark: BenchmarkFixture, schedule: str) -> None:
    """8192^3, 2048 tiles of 128 steps on all cores: below 1.5 s."""
    benchmark.pedantic(product, ("8192",), {"schedule": schedule}, rounds=3, warmup_rounds=1)
    show(benchmark, 1.5)


def test_many_tilings(benchmark: BenchmarkFixture) -> None:
    """Each for the first time, so compilation and placement count: 200 a second."""
    edges = itertools.product((64, 128, 256), (64, 128, 256), (32, 48, 64, 96, 112, 128), (2, 3, 4))
    fitting = [
        {"block_m": m, "block_n": n, "block_k": k, "group": g}
        for m, n, k, g in edges
        if m * n * 4 <= 1 << 17 and (m + n) * k * 4 <= 500_000
    ]
    product("1024", cores=1)

    def sweep() -> None:
        for tiling in fitting:
            product("1024", cores=1, **tiling)

    benchmark.pedantic(sweep, rounds=1)
    show(benchmark, 0.005, len(fitting))


def test_a_long_run(benchmark: BenchmarkFixture) -> None:
    """10^7 instructions of 10^5 iterations on 40 cores; what a process has needed at most is printed, too."""
    iterations = 10**7 // (3 * CORES)

    def run() -> int:
        with sim.device("ascend910b3", values=False):
            shape = sim.shape(iterations * CORES * BLOCK, "float16")
            return (
                copy_iterations.time((CORES,), shape, shape, iterations, BLOCK=BLOCK).launches[0].instructions
            )

    assert benchmark.pedantic(run, rounds=1) >= 3 * iterations * CORES
    show(benchmark, 2.0)
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB")


@sim.jit
def chain_of_iterations(x_ptr, out_ptr, iterations, BLOCK: tl.constexpr, STEPS: tl.constexpr):  # type: ignore[no-untyped-def]
    """A load, a chain of multiplications and additions, and a store in each iteration."""
    for iteration in range(0, iterations):
        at = iteration * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at).to(tl.float32)
        for _ in tl.static_range(STEPS):
            x = x * 1.5 + 1.0
        tl.store(out_ptr + at, x)


def test_a_hundred_million_instructions_on_one_core(benchmark: BenchmarkFixture) -> None:
    """One program: nothing is shared between cores, so each record would have to lie in memory. 2 GiB are enough."""
    iterations = 980_000

    def run() -> int:
        with sim.device("ascend910b3", values=False):
            shape = sim.shape(iterations * BLOCK, "float16")
            launch = chain_of_iterations.time((1,), shape, shape, iterations, BLOCK=BLOCK, STEPS=50).launches[
                0
            ]
            assert any(words.startswith("timeline: the first 20,000 of ") for words in launch.notes)
            return launch.instructions

    assert benchmark.pedantic(run, rounds=1) >= 10**8
    show(benchmark, 60.0)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{most} MiB")
    assert most < 2048
