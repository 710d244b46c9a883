"""The harness of side_by_side: both engines on small cases, and (only when asked) the measurement itself.

pytest tests/bench/test_bench_triton.py --benchmark-enable --benchmark-only -s
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from .side_by_side.cases import FULL, SMALL
from .side_by_side.compare import Kept, Row, Worker, compare, mean, table, triton_python

GOAL = 100


@pytest.fixture(scope="module")
def python() -> str:
    """A Python that has triton."""
    found = triton_python()
    if found is None:
        pytest.skip("triton is not installed; ASCENDTILE_TRITON_PYTHON can name a Python that has it")
    return found


def test_our_engine_on_every_kernel() -> None:
    """Each kernel of the comparison on a ragged shape, against float64: `turn` raises if an output is off."""
    worker = Worker("ascendtile")
    assert [worker.turn(case)["good"] for case in SMALL] == [True] * len(SMALL)
    worker.close()


def test_both_engines_on_the_same_kernels(python: str, tmp_path: Path) -> None:
    """Turn by turn; what is kept in a file is not measured again."""
    path = tmp_path / "kept.json"
    rows = compare(SMALL[:2], 1, python, Kept(path))
    again = compare(SMALL[:1], 1, None, Kept(path))
    assert [r.case for r in rows] == SMALL[:2]
    assert again[0].theirs == rows[0].theirs > 0


def test_table_names_each_case_and_the_geometric_mean() -> None:
    rows = [Row(FULL[0], 8.0, 1.0, 2.0), Row(FULL[7], 2.0, 1.0, 1.0)]
    assert mean(rows) == pytest.approx(4)
    text = table(rows)
    assert all(r.case.name in text for r in rows)
    assert "of all: 4x" in text
    assert "goal names: 8x" in text


def test_factor(benchmark: BenchmarkFixture, python: str) -> None:
    """Every case of the goal: 100 times less CPU time than the interpreter in geometric mean, exact numerics and timing."""
    rows = benchmark.pedantic(compare, (FULL, 2, python, Kept(None)), rounds=1)
    print("\n" + table(rows))
    found = mean([r for r in rows if r.case.named])
    benchmark.extra_info["geometric mean of the factors"] = round(found)
    assert math.isfinite(found)
    assert found >= GOAL
