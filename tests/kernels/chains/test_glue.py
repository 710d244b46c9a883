"""Laws of the operators between the others: values against float64, whatever the shape, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.kernels import run_op
from ascendtile.kernels.chains.glue import GLUE
from ascendtile.simulator.errors import UsageError

DTYPES = ("float32", "float16")
ULPS = 4  # of the type, relative to the largest input: exponentials and divisions of FP32 are within a few


def noise(*shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).standard_normal(shape, np.float32).astype(dtype)


def run(name, inputs, **options):
    op = GLUE[name]
    found = run_op(
        op, inputs=inputs, options=options, product="ascend910b3", time=False, errors=False
    ).outputs
    return found, op.reference(inputs, **options)


@given(
    st.sampled_from(["relu", "gelu", "swiglu", "relu_backward", "scaled_add"]),
    st.sampled_from(DTYPES),
    st.integers(1, 3000),
)
def test_elementwise_operators_are_float64_rounded_once_or_nearly(name, dtype, n):
    inputs = {x: noise(n, dtype=dtype, seed=k) for k, x in enumerate(GLUE[name].required)}
    found, exact = run(name, inputs)
    eps = np.finfo(dtype).eps
    size = 1.0 + sum(np.abs(x.astype(np.float64)) for x in inputs.values())
    assert (np.abs(found["out"].astype(np.float64) - exact["out"]) <= ULPS * eps * size**2).all()


@given(st.integers(1, 70), st.integers(1, 200), st.sampled_from(DTYPES))
def test_the_softmax_loss_and_its_gradient_are_those_of_float64(rows, classes, dtype):
    labels = np.eye(classes, dtype=dtype)[np.arange(rows) % classes]
    found, exact = run("softmax_loss", {"scores": noise(rows, classes, dtype=dtype), "labels": labels})
    for n in ("loss", "dscores"):
        assert np.allclose(
            found[n].astype(np.float64),
            exact[n],
            rtol=4 * np.finfo(dtype).eps,
            atol=4e-4 * np.finfo(dtype).eps * 100,
        )


@given(st.permutations(range(3)), st.tuples(*[st.integers(1, 40)] * 3))
def test_permute_moves_every_element_to_its_place(order, shape):
    x = noise(*shape)
    found, exact = run("permute", {"x": x}, axes=tuple(order))
    assert np.array_equal(found["out"], np.transpose(x, order))
    assert np.array_equal(exact["out"], np.transpose(x, order))


@pytest.mark.parametrize(
    ("name", "inputs", "options", "words"),
    [
        ("swiglu", {"gate": noise(3), "up": noise(4)}, {}, "up has shape \\(4,\\), gate \\(3,\\)"),
        ("swiglu", {"gate": noise(3), "up": noise(3, dtype="float16")}, {}, "they must be of one type"),
        ("relu", {"x": noise(0)}, {}, "needs at least one element"),
        ("permute", {"x": noise(3, 4)}, {"axes": (0, 2)}, "every axis of x once"),
        ("permute", {"x": noise(3)}, {}, "2 at least"),
        ("softmax_loss", {"scores": noise(3), "labels": noise(3)}, {}, "it must have 2 axes"),
        ("softmax_loss", {"scores": noise(1, 9000), "labels": noise(1, 9000)}, {}, "holds at most"),
    ],
)
def test_what_an_operator_does_not_take_is_refused(name, inputs, options, words):
    with pytest.raises(UsageError, match=words):
        run(name, inputs, **options)


def test_an_operator_of_chains_has_no_cases():
    with pytest.raises(UsageError, match="has no cases"):
        run_op(GLUE["relu"], {})
