"""Steps of the Cube that are not added exactly, and their order, against rational arithmetic of one element."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.simulator import UsageError
from ascendtile.simulator.precision.rounding import round_to
from ascendtile.simulator.units.cube import mmad
from ascendtile.simulator.units.cube_rules import CubeRules

MODES = ("RINT", "ROUND", "RNZ", "TRUNC", "FLOOR", "CEIL", "ODD")
small = st.integers(-(2**11) + 1, 2**11 - 1)
values = st.builds(
    lambda n, e: float(n) * 2.0**e, small, st.integers(-12, 0)
)  # of 11 bits: their sums fit in doubles
rows = st.lists(values, min_size=1, max_size=24)


def rounded(x, mode):
    """A sum that a double holds, as FP32."""
    assert Fraction(float(x)) == x
    return Fraction(float(round_to(np.float64(x), "fp32", mode)))


def exponent(x):
    """floor(log2 |x|)."""
    return int(np.frexp(float(abs(x)))[1]) - 1


def cut(x, place):
    """Toward zero, to multiples of 2^place."""
    unit = Fraction(2) ** place
    return (abs(x) // unit) * unit * (1 if x >= 0 else -1)


def step_sum(terms, acc, how, mode):
    if how == "exact":
        return acc + sum(terms)
    if how == "tree":
        while len(terms) > 1:
            pairs = [terms[i : i + 2] for i in range(0, len(terms), 2)]
            terms = [rounded(sum(p), mode) if len(p) == 2 else p[0] for p in pairs]
        return acc + terms[0]
    everything = [acc, *terms]
    if not any(everything):
        return Fraction(0)
    place = max(exponent(t) for t in everything if t) - 23 - int(how.partition("=")[2])
    return sum(cut(t, place) for t in everything)


def element(a, b, acc, kb, how, mode, order):
    """One element of a product, from the definition."""
    products = [Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True)]
    steps = [products[k : k + kb] for k in range(0, len(products), kb)]
    total = Fraction(acc)
    for terms in steps if order == "ascending" else reversed(steps):
        total = rounded(step_sum(terms, total, how, mode), mode)
    return float(total)


@given(
    rows,
    st.data(),
    st.integers(1, 30),
    st.sampled_from(["exact", "tree", "aligned=0", "aligned=1", "aligned=3", "aligned=16"]),
    st.sampled_from(MODES),
    st.sampled_from(["ascending", "descending"]),
)
def test_an_element_is_its_steps_in_order(a, data, kb, how, mode, order):
    b = data.draw(st.lists(values, min_size=len(a), max_size=len(a)))
    acc = data.draw(values)
    rules = CubeRules("fp32", block_k=kb, block_sum=how, block_round=mode, k_order=order)
    found = mmad(
        *np.array([[a]], np.float32), np.array(b, np.float32)[:, None], np.float32([[acc]]), rules=rules
    )
    assert found[0, 0] == np.float32(element(a, b, acc, kb, how, mode, order))


@pytest.mark.parametrize("how", ["exact", "tree", "aligned=2"])
@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_programs_and_columns_are_products_of_their_own(how, order):
    rules = CubeRules("fp32", block_k=3, block_sum=how, k_order=order)
    random = np.random.default_rng(5)
    a, b = (random.standard_normal(s).astype(np.float32) for s in ((3, 5, 17), (3, 17, 7)))
    together = mmad(a, b, rules=rules)
    for p in range(3):
        for j in range(7):
            assert np.array_equal(together[p, :, j], mmad(a[p], b[p, :, j : j + 1], rules=rules)[:, 0])


def test_infinities_and_nan_in_aligned_steps_are_those_of_ieee():
    rules = CubeRules("fp32", block_sum="aligned=1")
    a = np.float32([[np.inf, 1], [np.inf, -np.inf], [np.nan, 0], [3e38, 3e38]])
    with np.errstate(all="ignore"):
        found = mmad(a, np.ones((2, 1), np.float32), rules=rules)[:, 0]
    assert np.array_equal(found, np.float32([np.inf, np.nan, np.nan, np.inf]), equal_nan=True)
    held = mmad(a, np.ones((2, 1), np.float32), rules=rules, overflow="saturate")[:, 0]
    assert list(held) == [np.finfo(np.float32).max, 0, 0, np.finfo(np.float32).max]


def test_block_sizes_of_one_format_leave_the_others():
    rules = CubeRules("fp16", block_k_of=(("fp16", 8), ("fp32", 2)))
    assert [rules.with_switches({"operand": o}).products_per_step for o in ("fp16", "fp32", "bf16")] == [
        8,
        2,
        16,
    ]


@pytest.mark.parametrize("text", ["aligned=17", "aligned=", "aligned", "sum", "tree=2"])
def test_unknown_sums_of_steps_are_refused(text):
    with pytest.raises(UsageError, match=r"known are exact, tree, and aligned=N with N up to 16"):
        CubeRules(block_sum=text)


@pytest.mark.parametrize(
    ("rule", "operand", "result"),
    [
        ("flush", 0, 0),
        ("keep", 2.0**-127, 2.0**-130),
        ("flush_operands", 0, 2.0**-130),
        ("flush_results", 2.0**-127, 0),
    ],
)
def test_operands_and_results_are_flushed_apart(rule, operand, result):
    rules = CubeRules("fp32", fp32_subnormals=rule)
    one = np.float32([[2.0**20]])
    assert mmad(np.float32([[2.0**-127]]), one, rules=rules)[0, 0] == operand * 2.0**20
    assert mmad(np.float32([[2.0**-65]]), np.float32([[2.0**-65]]), rules=rules)[0, 0] == result
