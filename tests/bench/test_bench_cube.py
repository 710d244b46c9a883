"""mmad at 1024 x 1024 x 1024: GMAC/s of the Cube's order per format, and numpy's order beside numpy's matmul.

    pytest tests/bench/test_bench_cube.py --benchmark-only --benchmark-columns=median -s

Processor time, least of several: one thread computes the exact order, and a busy machine must not count.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ascendtile.simulator.precision.rounding import round_to
from ascendtile.simulator.units._cube import PATHS
from ascendtile.simulator.units.cube import exact_product, mmad
from ascendtile.simulator.units.cube_rules import CubeRules

N = 1024
FORMATS = ("fp16", "bf16", "hf32", "fp32")


@pytest.fixture(scope="module")
def tiles() -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    return random.standard_normal((N, N)).astype(np.float32), random.standard_normal((N, N)).astype(
        np.float32
    )


def least_seconds(call: Callable[[], object], times: int = 5) -> float:
    found = []
    for _ in range(times):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found)


def report(benchmark: Any, name: str, value: float, unit: str) -> None:
    benchmark.extra_info[unit] = round(value, 3)
    print(f"\n{name}: {value:.2f} {unit}")


@pytest.mark.parametrize("operand", FORMATS)
def test_exact_order(benchmark: Any, tiles: tuple[Any, Any], operand: str) -> None:
    """The target is 1 GMAC/s in every format."""
    seconds = least_seconds(lambda: mmad(*tiles, operand=operand))
    report(benchmark, operand, N**3 / seconds / 1e9, "GMAC/s")
    benchmark.pedantic(lambda: mmad(*tiles, operand=operand), rounds=1)


def test_fp16_accumulator(benchmark: Any, tiles: tuple[Any, Any]) -> None:
    rules = CubeRules("fp16", accumulator="fp16", overflow="saturate")
    report(
        benchmark,
        "fp16 accumulator",
        N**3 / least_seconds(lambda: mmad(*tiles, rules=rules), 3) / 1e9,
        "GMAC/s",
    )
    benchmark.pedantic(lambda: mmad(*tiles, rules=rules), rounds=1)


def test_int8(benchmark: Any) -> None:
    a, b = (np.random.default_rng(s).integers(-128, 128, (N, N)).astype(np.int8) for s in (0, 1))
    report(benchmark, "int8", N**3 / least_seconds(lambda: mmad(a, b, operand="int8")) / 1e9, "GMAC/s")
    benchmark.pedantic(lambda: mmad(a, b, operand="int8"), rounds=1)


@pytest.mark.parametrize("path", range(1, len(PATHS)), ids=PATHS[1:])
@pytest.mark.parametrize("operand", ["fp16", "fp32"])
def test_vector_width(benchmark: Any, tiles: tuple[Any, Any], operand: str, path: int) -> None:
    a, b = (round_to(x, operand) for x in tiles)
    rules, out = CubeRules(operand), np.zeros((N, N), np.float32)
    seconds = least_seconds(lambda: exact_product(a, b, out, rules, path), 3)
    report(benchmark, f"{operand} {PATHS[path]}", N**3 / seconds / 1e9, "GMAC/s")
    benchmark.pedantic(lambda: exact_product(a, b, out, rules, path), rounds=1)


@pytest.mark.parametrize("operand", FORMATS)
def test_blas_ratio(benchmark: Any, tiles: tuple[Any, Any], operand: str) -> None:
    """The target is at most 1.3 times numpy's matmul of operands that are rounded already."""
    a, b = (round_to(x, operand) for x in tiles)
    ours, numpys = [], []
    for _ in range(15):  # in turn: a busy machine slows both
        ours.append(least_seconds(lambda: mmad(a, b, operand=operand, accumulate="blas"), 1))
        numpys.append(least_seconds(lambda: np.matmul(a, b), 1))
    report(benchmark, operand, statistics.median(ours) / statistics.median(numpys), "of numpy's matmul")
    benchmark.pedantic(lambda: mmad(a, b, operand=operand, accumulate="blas"), rounds=1)
