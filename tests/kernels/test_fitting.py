"""An operator's own choice of the tiling fits, whatever the sizes that its document allows; times only."""

from __future__ import annotations

import math
from typing import Any

import hypothesis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ascendtile.simulator as sim
from ascendtile import kernels as K
from ascendtile.simulator.errors import BufferOverflowError

A2, A3, TRAINING, INFERENCE = "ascend910b3", "ascend910c", "ascend910a", "ascend310p"
LENGTHS = st.sampled_from(
    [1, 2, 3, 7, 8, 13, 16, 17, 31, 49, 64, 100, 196, 256, 777, 1000, 1024, 3000, 4096, 5000, 7919, 8000]
)
LONG = LENGTHS | st.sampled_from([16384, 30000, 65536, 100000, 200000])
FLAGS = st.tuples(*[st.booleans()] * 3).filter(any)
ELEMENTS = 2_000_000


def types_on(product: str) -> tuple[str, ...]:
    return ("float16", "float32", "bfloat16") if product in (A2, A3) else ("float16", "float32")


def drawn(draw: st.DrawFn, *products: str) -> tuple[str, str]:
    """A product and a data type that it has."""
    product = draw(st.sampled_from(products))
    return product, draw(st.sampled_from(types_on(product)))


def cut(n: int, *others: int) -> int:
    """`n`, so that the whole has ELEMENTS at most."""
    return max(1, min(n, ELEMENTS // math.prod(others)))


@st.composite
def group_norms(draw: st.DrawFn) -> tuple[Any, ...]:
    product, dtype = drawn(draw, A2, A3, TRAINING)
    group = draw(st.sampled_from([1, 2, 3, 8, 32]))
    depth = min(draw(LENGTHS), 240_000 // group)  # the most channels on A2 and A3
    n = cut(draw(st.sampled_from([1, 2, 8, 64])), group, depth)
    space = cut(draw(LONG), group, depth, n)
    return product, dtype, (n, group * depth, space), group, draw(FLAGS), draw(st.booleans())


def group_norm(product, dtype, shape, group, mask, has_gamma, **more):
    x, of_group = sim.shape(shape, dtype), sim.shape((shape[0], group), dtype)
    gamma = sim.shape((shape[1],), dtype) if has_gamma else None
    return K.group_norm_backward(
        x, x, of_group, of_group, gamma, group=group, output_mask=mask, values=False, product=product, **more
    )


@st.composite
def batch_norms(draw: st.DrawFn) -> tuple[Any, ...]:
    product, dtype = drawn(draw, A2, A3, TRAINING)
    c, n = draw(LONG), draw(LENGTHS)
    n = cut(n, c)
    return product, dtype, (n, c, cut(draw(LONG), n, c)), draw(FLAGS)


def batch_norm(product, dtype, shape, flags):
    x, of_channel = sim.shape(shape, dtype), sim.shape((shape[1],), "float32")
    return K.batch_norm_reduce_backward(
        x, x, of_channel, of_channel, of_channel, *flags, values=False, product=product
    )


@st.composite
def rms_norms(draw: st.DrawFn) -> tuple[Any, ...]:
    product, dtype = drawn(draw, A2, A3, INFERENCE)
    cols = max(draw(LONG), 16 if product == INFERENCE else 1)  # there a row has 32 bytes at least
    return product, dtype, (cut(draw(LONG), cols), cols)


def rms_norm(product, dtype, shape):
    x, gamma = sim.shape(shape, dtype), sim.shape(shape[1:], dtype)
    return K.rms_norm_grad(x, x, sim.shape(shape[:1], "float32"), gamma, values=False, product=product)


@st.composite
def losses(draw: st.DrawFn) -> tuple[Any, ...]:
    product, dtype = drawn(draw, A2, A3, TRAINING, INFERENCE)
    shape: tuple[int, ...] = ()
    for _ in range(draw(st.integers(1, 4))):
        shape = (*shape, cut(draw(LONG), *shape))
    weights = [draw(st.none() | st.lists(st.booleans(), max_size=len(shape))) for _ in range(2)]
    stretched = [
        w and tuple(n if k else 1 for n, k in zip(shape[-len(w) :], w, strict=True)) for w in weights
    ]
    return product, dtype, shape, stretched, draw(st.sampled_from(["none", "mean", "sum"]))


def loss(product, dtype, shape, weights, reduction):
    x = sim.shape(shape, dtype)
    weight, pos_weight = (None if w is None else sim.shape(tuple(w), dtype) for w in weights)
    grad = x if reduction == "none" else sim.shape((), dtype)
    return K.bce_with_logits_backward(
        grad, x, x, weight, pos_weight, reduction=reduction, values=False, product=product
    )


OPERATORS = {
    "group_norm": (group_norms(), group_norm),
    "batch_norm": (batch_norms(), batch_norm),
    "rms_norm": (rms_norms(), rms_norm),
    "bce": (losses(), loss),
}


def check_own_choice(name: str, examples: int, part: int = 0) -> None:
    cases, launch = OPERATORS[name]

    @hypothesis.seed(part)
    @settings(max_examples=examples)
    @given(cases)
    def fits(case):
        assert launch(*case).time_us > 0

    fits()


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", OPERATORS)
def test_the_own_choice_of_drawn_sizes_fits(name):
    check_own_choice(name, 10)


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("name", OPERATORS)
def test_the_own_choice_of_many_drawn_sizes_fits(name, part):
    check_own_choice(name, 125, part + 1)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("product", "depth"), [(A2, 4000), (A2, 8000), (A3, 8000)])
@pytest.mark.parametrize("space", [1, 16])
def test_groups_of_up_to_8000_channels_fit(depth, space, product):
    """DOC aclnnGroupNormBackward: C / group is not beyond 8000 on A2 and A3."""
    for dtype in types_on(product):
        for mask in ((True, True, True), (True, False, False), (False, True, True)):
            assert group_norm(product, dtype, (2, depth, space), 1, mask, dtype != "float32").time_us > 0


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("n", "c", "group"), [(8, 4096, 1), (4, 8192, 2)])
def test_layer_norm_over_channels_fits(n, c, group):
    for dtype in types_on(A2):
        assert group_norm(A2, dtype, (n, c, 49), group, (True, True, True), True).time_us < 50


@pytest.mark.drawn(3)
@pytest.mark.parametrize("strategy", ["streamed", "shared", "cube", "vendor"])
@pytest.mark.parametrize("space", [1, 16])
def test_strategies_that_cut_groups_take_8000_channels(strategy, space):
    mask, tiling = (True, True, True), {"strategy": strategy}
    assert group_norm(A2, "float16", (2, 8000, space), 1, mask, True, tiling=tiling).time_us > 0


def test_a_given_knob_is_kept_even_if_it_does_not_fit():
    with pytest.raises(BufferOverflowError, match="ub overflow"):
        group_norm(
            A2, "float16", (2, 64, 20000), 1, (True, True, True), True, tiling={"strategy": "resident"}
        )
