"""Every strategy of every operator on every named case: is the automatic choice within 5 % of the best? Half an hour.

pytest tests/bench/test_bench_strategies.py --benchmark-enable --benchmark-only -s -k "rms_norm_grad and float16"
"""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from ascendtile.kernels import get_operator

from ..kernels.test_strategies import ALTERNATIVES, WITHIN, times_of

ALL = [(op, case) for op in ALTERNATIVES for case in get_operator(op).cases]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize(("op", "case"), ALL)
def test_the_choice(benchmark: BenchmarkFixture, op: str, case: str, dtype: str) -> None:
    """Prints the time of the choice and of each alternative."""
    chosen, found = benchmark.pedantic(times_of, (op, case, dtype), rounds=1)
    words = ", ".join(f"{n} {x:.1f}" for n, x in found.items())
    print(f"\n{op} {case} {dtype}: {chosen:.1f} us; {words}")
    assert chosen <= WITHIN * min(found.values())
