"""Where errors are, against numpy's own grouping and sorting of the same pairs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.simulator.precision.formats import FORMATS
from ascendtile.simulator.precision.metrics import ErrorReport, compare
from ascendtile.simulator.precision.places import LOWEST, WORST


def drawn(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of many magnitudes with errors, exact ones, zeros and what is not finite."""
    rng = np.random.default_rng(seed)
    golden = rng.standard_normal(n) * 2.0 ** rng.integers(-30, 20, n)
    actual = (golden * (1 + rng.standard_normal(n) * 2.0 ** -rng.integers(3, 30, n))).astype(np.float32)
    golden[::7], actual[::7] = 0.0, rng.choice([0.0, 1e-6], len(actual[::7]))
    actual[::11] = golden[::11] = 1.5
    actual[::13] = np.nan
    golden[::17] = np.inf
    return actual, golden


@given(st.integers(0, 2**31), st.integers(1, 400))
def test_octaves_and_worst_elements_are_those_of_numpy(seed: int, n: int) -> None:
    actual, golden = drawn(seed, n)
    places = compare(actual, golden, "fp16", where=True).places
    assert places is not None
    ok = np.isfinite(actual) & np.isfinite(golden)
    error = np.abs(actual.astype(np.float64) - golden)
    ulps = np.where(ok, error / FORMATS["fp16"].ulp(np.where(ok, golden, 1.0)), -1.0)
    octave = np.full(n, LOWEST)
    sized = ok & (golden != 0)
    octave[sized] = np.floor(np.log2(np.abs(golden[sized])))
    assert [o.exponent for o in places.octaves] == sorted(set(octave[ok]))
    for o in places.octaves:
        mine = ok & (octave == o.exponent)
        assert o.count == mine.sum()
        assert o.mean_ulp == pytest.approx(ulps[mine].mean(), rel=1e-12)
        assert o.max_ulp == ulps[mine].max()
        assert o.mean_abs == pytest.approx(error[mine].mean(), rel=1e-12)
    order = [k for k in np.argsort(-ulps, kind="stable") if ulps[k] > 0][:WORST]
    assert [e.index for e in places.worst] == [(k,) for k in order]
    assert [(e.actual, e.golden, e.ulp) for e in places.worst] == [
        (actual[k], golden[k], ulps[k]) for k in order
    ]


def test_indices_are_those_of_the_shape() -> None:
    golden = np.ones((3, 4, 5))
    actual = golden.copy()
    actual[2, 1, 3], actual[0, 3, 4] = 3.0, 2.0
    places = compare(actual, golden, "fp32", where=True).places
    assert places is not None
    assert [e.index for e in places.worst] == [(2, 1, 3), (0, 3, 4)]
    assert places.worst[0].ulp == compare(actual, golden, "fp32").max_ulp


def test_they_are_looked_for_only_when_asked() -> None:
    report = compare([1.0], [2.0], "fp32")
    assert report.places is None
    assert "places" not in report.to_dict()


def test_json_both_ways() -> None:
    report = compare(*drawn(3, 100), "bf16", where=True)
    assert ErrorReport.from_dict(json.loads(json.dumps(report.to_dict(), allow_nan=False))) == report
