"""The golden file: figures of some 600 launches do not change but on purpose (`python -m tests.golden write`)."""

from __future__ import annotations

import pytest

from .cases import all_cases
from .golden import differences, observe, read

CASES = all_cases()
USUAL = sorted(CASES)[::40]


@pytest.mark.parametrize("name", USUAL)
def test_figures_are_those_of_the_golden_file(name: str) -> None:
    assert list(differences(read()[name], observe(CASES[name]))) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", sorted(set(CASES) - set(USUAL)))
def test_every_figure_is_that_of_the_golden_file(name: str) -> None:
    assert list(differences(read()[name], observe(CASES[name]))) == []


def test_the_file_and_the_cases_name_the_same_launches() -> None:
    assert set(read()) == set(CASES)
    assert sum(len(x.get("launches", ())) for x in read().values()) >= 600


def test_a_difference_is_found_and_named() -> None:
    was = {"launches": [{"cycles": 1.0, "peaks": {"UB": 32}}]}
    assert list(differences(was, {"launches": [{"cycles": 1.0 + 1e-12, "peaks": {"UB": 32}}]})) == []
    assert list(differences(was, {"launches": [{"cycles": 1.0001, "peaks": {"UB": 33}}]})) == [
        "/launches/0/cycles 1.0 is 1.0001",
        "/launches/0/peaks/UB 32 is 33",
    ]
