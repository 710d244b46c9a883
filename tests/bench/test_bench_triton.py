"""The harness of side_by_side: both engines on small cases, and (only when asked) the measurement itself.

pytest tests/bench/test_bench_triton.py --benchmark-enable --benchmark-only -s
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from .side_by_side.cases import FULL, SMALL
from .side_by_side.compare import Kept, Row, Worker, compare, means, table, triton_python
from .side_by_side.worker import Bench

GOAL = 100


@pytest.fixture(scope="module")
def python() -> str:
    """A Python that has triton."""
    found = triton_python()
    if found is None:
        pytest.skip("triton is not installed; ASCENDTILE_TRITON_PYTHON can name a Python that has it")
    return found


@pytest.mark.exhaustive
def test_our_engine_on_every_kernel() -> None:
    """Each kernel of the comparison on a ragged shape, against float64: `run_case` raises if an output is off."""
    worker = Worker("ascendtile")
    assert [worker.run_case(case)["good"] for case in SMALL] == [True] * len(SMALL)
    worker.close()


def test_both_engines_on_the_same_kernels(python: str, tmp_path: Path) -> None:
    """In turn; what is kept in a file is not measured again."""
    path = tmp_path / "kept.json"
    rows = compare(SMALL[:2], 1, python, Kept(path))
    again = compare(SMALL[:1], 1, None, Kept(path))
    assert [r.case for r in rows] == SMALL[:2]
    assert again[0].theirs == rows[0].theirs > 0


def test_other_data_are_other_arrays_and_an_identical_launch_has_the_same_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the three figures of ours rest on: an address that comes back would be a time that is remembered."""
    monkeypatch.setitem(sys.modules, "engine", None)  # what the worker puts there goes with the test
    bench = Bench("ascendtile")
    case = SMALL[0]
    sets = [bench.prepare(case, again) for again in (False, False, True, False)]
    assert sets[1] is sets[2]
    places = [{x.ctypes.data for x in arrays.values()} for arrays in (sets[0], sets[1], sets[3])]
    assert len(set.union(*places)) == 3 * len(sets[0])
    assert not np.array_equal(sets[0]["x_ptr"], sets[1]["x_ptr"])


def test_table_names_each_case_and_the_geometric_means() -> None:
    rows = [
        Row(FULL[0], 8.0, 8.0, 4.0, 1.0),
        Row(FULL[5], 2.0, 2.0, 2.0, 0.5),
        Row(FULL[7], 9.0, 9.0, 3.0, 1.0),
    ]
    assert means(rows[:2]) == pytest.approx((1, 2**0.5, 32**0.5))
    text = table(rows)
    assert all(r.case.name in text for r in rows)
    assert "of 2 cases that the goal names: 1x, 1x, 6x" in text
    assert "of 1 cases besides: 1x, 3x, 9x" in text


def test_factor(benchmark: BenchmarkFixture, python: str) -> None:
    """Every case of the goal: 100 times less CPU time than the interpreter in geometric mean, exact numerics and timing.

    With other data than before, so that the kernel is compiled and nothing else is remembered.
    """
    rows = benchmark.pedantic(compare, (FULL, 2, python, Kept(None)), rounds=1)
    print("\n" + table(rows))
    _, found, _ = means([r for r in rows if r.case.named])
    benchmark.extra_info["geometric mean of the factors"] = round(found)
    assert math.isfinite(found)
    assert found >= GOAL
