"""References of the whole named cases against torch, without cutting them; minutes, run with

pytest tests/bench/test_bench_references.py --benchmark-enable --benchmark-only
"""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from ascendtile.kernels import get_operator

from ..kernels.test_named_cases import CASES, check_reference


@pytest.mark.extra("torch")
@pytest.mark.parametrize(("op", "case"), CASES)
def test_the_reference_of_a_whole_case(benchmark: BenchmarkFixture, op: str, case: str) -> None:
    """Float64 takes eight bytes for every element a few times over: some GB for the largest."""
    found = get_operator(op).cases[case]
    inputs = get_operator(op).inputs(found, "float32")
    benchmark.pedantic(check_reference, (op, inputs, dict(found.options)), rounds=1)
