"""Rounding 10 million float32 values to a grid, beside numpy's float32 -> float16 -> float32 round trip.

    pytest tests/bench --benchmark-only --benchmark-columns=median

Compare medians of one run only. test_ratio takes turns, so that a busy machine slows both sides alike.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ascendtile.simulator.precision.formats import FORMATS
from ascendtile.simulator.precision.metrics import compare
from ascendtile.simulator.precision.rounding import decode, encode, round_to

N = 10_000_000


@pytest.fixture(scope="module")
def x() -> NDArray[np.float32]:
    return np.random.default_rng(0).standard_normal(N).astype(np.float32)


@pytest.fixture(scope="module")
def out(x: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.zeros_like(x)


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


@pytest.mark.parametrize("fmt", ["fp16", "bf16", "hf32"])
@pytest.mark.parametrize("rule", ["default", "saturate flush", "ODD"])
def test_ratio(benchmark: Any, x: NDArray[np.float32], out: NDArray[np.float32], fmt: str, rule: str) -> None:
    """`extra_info` of the saved JSON has the median ratio to numpy; the target of the default is 0.25."""
    options = {"default": {}, "saturate flush": {"overflow": "saturate", "subnormals": "flush"}}
    keywords = options.get(rule, {"mode": rule})

    def ours() -> object:
        return round_to(x, fmt, out=out, **keywords)

    ratios = [seconds(ours) / seconds(lambda: x.astype(np.float16).astype(np.float32)) for _ in range(7)]
    benchmark.extra_info["ratio to numpy"] = round(statistics.median(ratios), 3)
    print(f"\n{fmt} {rule}: {statistics.median(ratios):.3f} of numpy's round trip")
    benchmark(ours)


@pytest.mark.parametrize("fmt", ["fp16", "bf16"])
def test_encode(benchmark: Any, x: NDArray[np.float32], fmt: str) -> None:
    benchmark(encode, x, fmt)


@pytest.mark.parametrize("fmt", ["fp16", "bf16"])
def test_decode(benchmark: Any, x: NDArray[np.float32], fmt: str) -> None:
    benchmark(decode, encode(x, fmt))


def test_numpy_round_trip(benchmark: Any, x: NDArray[np.float32]) -> None:
    benchmark(lambda: x.astype(np.float16).astype(np.float32))


@pytest.mark.parametrize("stored", [np.float32, np.float16], ids=["float32", "float16"])
def test_compare(benchmark: Any, x: NDArray[np.float32], stored: Any) -> None:
    """8.4 million elements against a float64 golden; the target is 0.25 s."""
    golden = x[:8_400_000].astype(np.float64)
    benchmark(compare, golden.astype(stored), golden, "fp16")


def formats_of_float32() -> list[str]:
    return [f.name for f in FORMATS.values() if not f.is_integer and f.name != "fp64"]


@pytest.mark.parametrize("fmt", formats_of_float32())
@pytest.mark.parametrize("mode", ["RINT", "ROUND", "ODD", "STOCHASTIC"])
def test_every_format(benchmark: Any, fmt: str, mode: str) -> None:
    """Float32 in L2 to float32 by one thread; the targets are 1 G elements a second, and 300 M for stochastic."""
    some = np.random.default_rng(0).standard_normal(1 << 16).astype(np.float32)
    out, seed = np.empty_like(some), 7 if mode == "STOCHASTIC" else None
    benchmark(round_to, some, fmt, mode, out=out, seed=seed)
    benchmark.extra_info["M elements/s"] = round(some.size / benchmark.stats.stats.min / 1e6)
