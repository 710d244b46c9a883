"""Speed of runs without values; run with `pytest tests/bench --benchmark-enable --benchmark-only -s`.

CPU time of a process that has run each before once: figures wanted are under 10 ms, under 1.5 s and 200 tilings a second.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from ascendtile.kernels import run_op
from ascendtile.tiling.evaluate import OperatorProblem

TILES = {"block_m": 128, "block_n": 256, "block_k": 64}


def cpu_seconds(work: Callable[[], Any]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


@pytest.mark.parametrize(("case", "cores", "rounds"), [("1024", 1, 15), ("8192", 20, 5)])
def test_one_matmul(benchmark: BenchmarkFixture, case: str, cores: int, rounds: int) -> None:
    """1024 cubed on one core; 8192 cubed, 2048 tiles of 128 steps, on all of them."""

    def run() -> Any:
        return run_op("matmul", case=case, dtype="float16", tiling={**TILES, "cores": cores}, values=False)

    seconds: list[float] = []
    benchmark.pedantic(lambda: seconds.append(cpu_seconds(run)), rounds=rounds, warmup_rounds=2)
    print(f"\n{case} cubed on {cores} cores: {statistics.median(seconds) * 1e3:.1f} ms of CPU")


def test_tilings_in_a_second(benchmark: BenchmarkFixture) -> None:
    """Another tiling each time, as `ascendtile explore` takes them: compiled, placed, lowered and simulated."""
    problem = OperatorProblem("matmul", "1024", "ascend910b3", {}, {}, {"dtype": "float16", "cores": 1})
    sizes = ((m, n, k) for m in (64, 128, 256) for n in (128, 256) for k in (64, 128) if m * n <= 128 * 256)
    points = [
        {"block_m": m, "block_n": n, "block_k": k, "group": g} for m, n, k in sizes for g in range(1, 9)
    ]
    problem.evaluate({**points[0], "group": 9})

    def run() -> None:
        for point in points:
            assert problem.evaluate(point).time_us

    seconds: list[float] = []
    benchmark.pedantic(lambda: seconds.append(cpu_seconds(run)), rounds=1)
    print(f"\n{len(points) / seconds[0]:.0f} tilings a second of CPU")
