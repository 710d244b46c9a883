"""No verdict on any of the kernels of `cases.py` is wrong, and values say the same."""

from __future__ import annotations

import itertools

import pytest

from ascendtile.simulator.orders.comparing import compare
from ascendtile.simulator.orders.drawing import KINDS, draw
from ascendtile.simulator.orders.launches import values_of
from ascendtile.simulator.orders.verdict import DIFFERS as FOUND_DIFFERENT
from ascendtile.simulator.orders.verdict import NOT_PROVEN
from ascendtile.simulator.orders.verdict import SAME as FOUND_SAME
from ascendtile.simulator.orders.witness import differ

from .cases import CASES, DIFFERS, OPEN, SAME, ZEROS

EXPECTED = {SAME: FOUND_SAME, ZEROS: FOUND_SAME, DIFFERS: FOUND_DIFFERENT, OPEN: NOT_PROVEN}
every_case = pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.truth}-{c.name}")


def test_there_are_64_kernels():
    assert len(CASES) >= 64
    assert len({c.kernel.__name__ for c in CASES}) > 50


def different(case, kinds, signed_zeros):
    """Whether values of some configurations differ for inputs of these kinds."""
    subject = case.subject()
    for turn in kinds:
        inputs = draw(subject.inputs, frozenset(n for n in subject.inputs if n == "index"), turn, finite=True)
        made = [values_of(c.launches(inputs)) for c in subject.configurations]
        for a, b in itertools.combinations(made, 2):
            if differ(a["out"], b["out"], signed_zeros).any():
                return True
    return False


@pytest.mark.drawn(4)
@every_case
def test_verdicts_are_right(case):
    verdict = compare(case.subject())
    assert verdict.kind == EXPECTED[case.truth], case.why
    assert verdict.zero_signs == (case.truth == ZEROS) or case.truth in (DIFFERS, OPEN)


@pytest.mark.drawn(2)
@every_case
def test_values_are_as_the_verdict_says(case):
    """Drawn apart from those that the comparison draws."""
    kinds = range(len(KINDS) * 7, len(KINDS) * (11 if case.truth == DIFFERS else 9))
    assert different(case, kinds, signed_zeros=case.truth == SAME) == (case.truth == DIFFERS), case.why


@pytest.mark.drawn(2)
@pytest.mark.parametrize("case", [c for c in CASES if c.truth == DIFFERS], ids=lambda c: c.name)
def test_a_counterexample_is_one(case):
    """Its two configurations give other bits for its inputs, and its orders are two."""
    found = compare(case.subject()).counterexample
    assert found is not None
    a, b = found.orders
    assert a.bits != b.bits
    assert a.configuration != b.configuration
    assert found.inputs
