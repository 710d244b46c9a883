"""Equal numbers of expressions are equal values: trees of operations are drawn, and made by the unit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.simulator.orders.arithmetic import Arithmetic
from ascendtile.simulator.orders.elementwise import fold
from ascendtile.simulator.orders.expressions import (
    FINITE,
    ZERO,
    ExpressionKind,
    ExpressionTable,
    VectorRounding,
)

ROUNDINGS = [
    VectorRounding("fp32", saturates, flushes, reads)
    for saturates in (False, True)
    for flushes, reads in ((False, False), (True, True), (True, False), (False, True))
] + [
    VectorRounding("fp16", False, False),
    VectorRounding("fp16", True, False),
    VectorRounding("fp16", True, True, True),
]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0**-14, 2.0**-24, 3.0, 65504.0, -65504.0, 0.1]
WIDE = [*SPECIAL, 2.0**-126, 2.0**-149, -(2.0**-140), 3.4e38, -3.4e38]
leaves = st.one_of(st.sampled_from(["x0", "x1", "x2"]), st.sampled_from([0.0, -0.0, 1.0]))
trees = st.recursive(
    leaves,
    lambda t: st.one_of(st.tuples(st.sampled_from(["add", "sub", "mul", "max", "fma"]), t, t, t)),
    max_leaves=9,
)


def made(arithmetic, r, tree):
    """The number of a tree."""
    if isinstance(tree, float):
        return arithmetic.of.constant(tree)
    if isinstance(tree, str):
        return arithmetic.of.input("x", (int(tree[1]),), VectorRounding(r.dtype, False, False))
    name, *operands = tree
    a, b, c = (made(arithmetic, r, x) for x in operands)
    if name == "max":
        return arithmetic.extreme("max", r, (a, b))
    return arithmetic.fma(r, a, b, c) if name == "fma" else getattr(arithmetic, name)(r, a, b)


def value(r, tree, x):
    """What the unit makes of it."""
    if isinstance(tree, float):
        return tree
    if isinstance(tree, str):
        return x[int(tree[1])]
    name, *operands = tree
    a, b, c = (value(r, t, x) for t in operands)
    if name == "max":
        flat = [fold_of_operand(r, y) for y in (a, b)]
        return fold(r._replace(reads_zeros=False), "settle", (float(np.fmax(*map(np.float32, flat))),))
    return fold(r, name, (a, b, c) if name == "fma" else (a, b))


def fold_of_operand(r, x):
    return fold(VectorRounding(r.dtype, False, r.reads_zeros), "settle", (x,)) if r.reads_zeros else x


def bits(x):
    return "nan" if np.isnan(x) else (x, np.signbit(x))


@given(st.sampled_from(ROUNDINGS), trees, trees, st.data())
def test_equal_numbers_are_equal_values(r, first, second, data):
    """Where trees have one number they have one value, its sign of zero included; without signs all but that."""
    arithmetic = Arithmetic(ExpressionTable(), fold)
    a, b = made(arithmetic, r, first), made(arithmetic, r, second)
    alike, nearly = a == b, arithmetic.unsigned(a) == arithmetic.unsigned(b)
    numbers = SPECIAL if r.dtype == "fp16" else WIDE
    x = data.draw(st.lists(st.sampled_from(numbers), min_size=3, max_size=3))
    x = [fold(VectorRounding(r.dtype, False, False), "settle", (v,)) for v in x]
    left, right = value(r, first, x), value(r, second, x)
    if alike:
        assert bits(left) == bits(right)
    assert not nearly or left == right or (np.isnan(left) and np.isnan(right))


def shaken(tree, flips):
    """The same tree with some operands exchanged, and zeros added."""
    if not isinstance(tree, tuple):
        return tree
    name, a, b, c = tree
    a, b, c = (shaken(t, flips) for t in (a, b, c))
    flip = next(flips, 0)
    if name in ("add", "mul") and flip & 1:
        a, b = b, a
    out = (name, a, b, c)
    if flip & 2:
        out = ("add", out, 0.0 if flip & 4 else -0.0, out)
    return ("mul", out, 1.0, out) if flip & 8 else out


@given(st.sampled_from(ROUNDINGS), trees, st.lists(st.integers(0, 15), max_size=12), st.data())
def test_trees_that_are_shaken_are_compared_rightly(r, tree, flips, data):
    """As above, for trees that are often equal."""
    other = shaken(tree, iter(flips))
    arithmetic = Arithmetic(ExpressionTable(), fold)
    a, b = made(arithmetic, r, tree), made(arithmetic, r, other)
    numbers = SPECIAL if r.dtype == "fp16" else WIDE
    x = data.draw(st.lists(st.sampled_from(numbers), min_size=3, max_size=3))
    x = [fold(VectorRounding(r.dtype, False, False), "settle", (v,)) for v in x]
    left, right = value(r, tree, x), value(r, other, x)
    if a == b:
        assert bits(left) == bits(right)
    if arithmetic.unsigned(a) == arithmetic.unsigned(b):
        assert left == right or (np.isnan(left) and np.isnan(right))


def test_zeros_of_both_signs_are_two_constants_and_integers_are_numbers():
    table = ExpressionTable()
    assert table.constant(0) == table.constant(0.0) == table.constant(False) == ZERO
    assert table.constant(-0.0) != ZERO
    assert table.constant(3) == table.constant(3.0)
    assert table.constant(float("nan")) == table.constant(-float("nan"))
    assert table.constants(np.array([0.0, -0.0, 0.0], np.float32)).tolist() == [0, table.constant(-0.0), 0]


@pytest.mark.parametrize("name", ["max", "min", "and", "or", "xor"])
@given(st.lists(st.integers(-128, 127), min_size=1, max_size=6), st.randoms())
def test_integers_combine_in_any_order(name, values, random):
    """Constants among them are combined; what is left does not know an order."""
    arithmetic = Arithmetic(ExpressionTable(), fold)
    terms = [arithmetic.of.constant(v) for v in values[:3]] + [
        arithmetic.of.input("x", (k,)) for k in values[3:]
    ]
    whole = arithmetic.whole.combined(name, 8, True, tuple(terms))
    random.shuffle(terms)
    part = arithmetic.whole.combined(name, 8, True, tuple(terms[:2]))
    assert arithmetic.whole.combined(name, 8, True, (part, *terms[2:])) == whole


@given(st.lists(st.integers(-128, 127), min_size=1, max_size=6), st.integers(1, 5))
def test_sums_of_integers_wrap(values, cut):
    arithmetic = Arithmetic(ExpressionTable(), fold)
    terms = tuple(arithmetic.of.constant(v) for v in values)
    whole = arithmetic.whole.sum(8, True, terms)
    assert arithmetic.of.value(whole) == np.array(values).astype(np.int8).sum(dtype=np.int8)
    first = arithmetic.whole.sum(8, True, terms[:cut])
    assert arithmetic.whole.sum(8, True, (first, *terms[cut:])) == whole


def test_a_tree_of_a_thousand_additions_is_no_recursion():
    """Chains are as deep as loops are long."""
    arithmetic = Arithmetic(ExpressionTable(), fold)
    r = VectorRounding("fp32", False, True, True)
    total = ZERO
    for k in range(5000):
        total = arithmetic.add(r, total, arithmetic.of.input("x", (k,)))
    assert arithmetic.unsigned(total) == arithmetic.unsigned(total)
    assert len(arithmetic.of) > 5000


def test_parts_of_what_is_not_followed_depend_on_all_of_it():
    table = ExpressionTable()
    x, y = (np.array([table.input("x", (k, n)) for k in range(2)]) for n in (0, 1))
    whole = table.parts(ExpressionKind("custom"), x, (3,))
    assert len(set(whole.tolist())) == 3
    assert not set(whole.tolist()) & set(
        table.parts(ExpressionKind("custom"), np.array([x[0], y[1]]), (3,)).tolist()
    )
    assert table.has(int(x[0]), FINITE)
