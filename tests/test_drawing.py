"""What the usual run draws and what is left for `-m exhaustive` are all cases together."""

from dataclasses import dataclass
from itertools import product
from types import SimpleNamespace

import pytest

from .conftest import not_drawn


@dataclass(frozen=True)
class Case:
    a: int
    b: int

    @property
    def nodeid(self):
        return f"test_x[{self.a}-{self.b}]"

    @property
    def callspec(self):
        return SimpleNamespace(indices={"a": self.a, "b": self.b})


CASES = [Case(*x) for x in product(range(3), range(8))]


@pytest.mark.parametrize("count", [1, 8, 23, 24, 99])
def test_drawn_cases_are_as_many_as_asked_and_always_the_same(count):
    left = not_drawn(CASES, count)
    assert len(left) == len(set(left)) == max(0, len(CASES) - count)
    assert left == not_drawn(CASES[::-1], count)


def test_every_value_of_every_parameter_is_drawn_when_there_is_room():
    drawn = set(CASES) - set(not_drawn(CASES, 8))
    assert {c.a for c in drawn} == set(range(3))
    assert {c.b for c in drawn} == set(range(8))
