"""The page of aclnnBatchNormReduceBackward: checks, types by product, views, masks, empty tensors, the worked examples.

Values of every strategy and of the vendor's chain are in tests/kernels/norm/test_batch_norm_reduce_backward.py.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ascendtile.kernels import aclnn, get_operator, run_op

from ..calls import STORAGE, blank, run, tensor
from .rows import (
    A2,
    A3,
    BF16,
    F16,
    F32,
    F64,
    FLOATS,
    FORMATS,
    I32,
    INFERENCE,
    OTHER,
    PRIVATE,
    PRODUCTS,
    TRAINING,
    Row,
    check_order,
    check_row,
    layouts,
    row_names,
    status_on,
    stretched,
    typed,
)

PHASE_ONE = aclnn.aclnnBatchNormReduceBackwardGetWorkspaceSize
PHASES = (PHASE_ONE, aclnn.aclnnBatchNormReduceBackward)
OUTPUTS = ("sumDy", "sumDyXmu", "gradWeight", "gradBias")
FLAG_OF = {"sumDy": "inputG", "sumDyXmu": "inputG", "gradWeight": "weightG", "gradBias": "biasG"}
# Product -> types of its set D; on the others the operator is refused.
TYPES = {TRAINING: (F32, F16), **dict.fromkeys((*A2, A3), (F32, F16, BF16))}


def good(**changes):
    c = (3,)
    given = {
        "gradOut": blank((2, 3, 4)),
        "input": blank((2, 3, 4)),
        "mean": blank(c, F32),
        "invstd": blank(c, F32),
        "weight": None,
        "inputG": True,
        "weightG": True,
        "biasG": True,
        "sumDy": blank(c),
        "sumDyXmu": blank(c),
        "gradWeight": blank(c),
        "gradBias": blank(c),
    }
    return {**given, **changes}


def both(shape, dtype=F16, fmt="ND"):
    return {n: blank(shape, dtype, FORMATS[fmt]) for n in ("gradOut", "input")}


ND, NHWC, NC1HWC0 = FORMATS["ND"], FORMATS["NHWC"], FORMATS["NC1HWC0"]
ON = "on ascend910b3 it must be float16, bfloat16 or float32"
ROWS = (
    *(Row("1", {n: None}, 161001, f"{n} is null; it is required") for n in ("gradOut", "input", "mean", "invstd")),
    *(Row("2", {n: None}, 161001, f"{n} is null; {FLAG_OF[n]} asks for it") for n in OUTPUTS),
    Row("3", {"gradOut": blank((2, 3, 4), F64)}, 161002, f"gradOut is fp64; {ON}"),
    Row("3", {"input": blank((2, 3, 4), I32)}, 161002, f"input is int32; {ON}"),
    Row("3", {"mean": blank((3,), I32)}, 161002, f"mean is int32; {ON}"),
    Row("3", {"invstd": blank((3,), F64)}, 161002, f"invstd is fp64; {ON}"),
    Row("3", {"gradOut": blank((2, 3, 4), F32)}, 161002, "gradOut is float32, input is float16; they must be of one type"),
    Row("3", {"weight": blank((3,), F64)}, 161002, f"weight is fp64; {ON}"),
    Row("3", {"weight": blank((3,), I32)}, 161002, f"weight is int32; {ON}"),
    *(Row("3", {n: blank((3,), k)}, 161002, f"{n} is {w}, input is float16; they must be of one type")
      for n in OUTPUTS for k, w in ((F64, "fp64"), (I32, "int32"), (F32, F32), (BF16, BF16))),
    Row("4", {"gradOut": blank((2, 3, 4), F16, NHWC)}, 161002,
        "gradOut has format ACL_FORMAT_NHWC, input has ACL_FORMAT_ND; they must be equal"),
    Row("4", both((2, 3, 4), fmt="NC1HWC0"), 161002, "gradOut has format ACL_FORMAT_NC1HWC0, which is private"),
    Row("4", {"mean": blank((3,), F32, NC1HWC0)}, 161002, "mean has format ACL_FORMAT_NC1HWC0, which is private"),
    Row("4", {"invstd": blank((3,), F32, NC1HWC0)}, 161002, "invstd has format ACL_FORMAT_NC1HWC0, which is private"),
    Row("4", {"weight": blank((3,), F32, NC1HWC0)}, 161002, "weight has format ACL_FORMAT_NC1HWC0, which is private"),
    *(Row("4", {n: blank((3,), F16, NC1HWC0)}, 161002, f"{n} has format ACL_FORMAT_NC1HWC0, which is private")
      for n in OUTPUTS),
    Row("5", both((3,)), 161002, "gradOut has rank 1; it must be from 2 to 8"),
    Row("5", {"gradOut": blank((1,) * 9)}, 161002, "gradOut has rank 9; it must be from 2 to 8"),
    Row("5", {"input": blank((1,) * 9)}, 161002, "input has rank 9; it must be from 2 to 8"),
    Row("5", both((2, 0, 4)), 161002, "input has shape (2, 0, 4); axis 1, the channels, is 0 and must be at least 1"),
    Row("5", {"gradOut": blank((2, 3, 1))}, 161002, "gradOut has shape (2, 3, 1), input has (2, 3, 4); they must be equal"),
    Row("5", {"mean": blank((4,), F32)}, 161002, "mean has shape (4,); it must be (3,), one element for each channel"),
    Row("5", {"invstd": blank((1, 3), F32)}, 161002, "invstd has shape (1, 3); it must be (3,)"),
    Row("5", {"weight": blank((7,), F16)}, 161002, "weight has shape (7,); it must be (3,), one element for each channel"),
    *(Row("5", {n: blank((1, 3), F16)}, 161002, f"{n} has shape (1, 3); it must be (3,), one element for each channel")
      for n in OUTPUTS),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=row_names(ROWS))
def test_row_of_checks(row):
    check_row(PHASE_ONE, good(), row)


def test_order_of_checks():
    check_order(PHASE_ONE, good(), ROWS)


def test_an_inner_step_that_fails(timed):
    """Last row: a tiling that does not fit is what an inner step can fail at."""
    wide = {**both((1, 4, 60000)), **{n: blank((4,), F16) for n in ("mean", "invstd", *OUTPUTS)}}
    with aclnn.tiling(batch_norm_reduce_backward={"strategy": "channel_split", "cols": 60000, "rows": 1}):
        check_row(PHASE_ONE, good(**wide), Row("-", {}, 561103, "ub overflow"))


# -- support table -----------------------------------------------------------------------------------------------------


@pytest.mark.drawn(8)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("product", PRODUCTS)
def test_types_by_product(product, dtype):
    status, message = status_on(product, PHASE_ONE, typed(good(), dtype))
    if product not in TYPES:
        assert product in (INFERENCE, OTHER)
        assert (status, f"is not available on {product}" in message) == (161002, True)
    elif dtype in TYPES[product]:
        assert status == 0
    else:
        assert (status, f"gradOut is {dtype}; on {product} it must be float16 or float32" in message) == (
            161002,
            True,
        )


@pytest.mark.drawn(1)
@pytest.mark.parametrize("product", [TRAINING, "ascend910b3"])
def test_every_vector_of_the_input_is_free_in_the_set_and_outputs_are_as_the_input(product):
    """mean, invstd and weight each have any type of the set, with every type of gradOut and input."""
    kinds = TYPES[product]
    for wide, *vectors in itertools.product(kinds, repeat=4):
        given = dict(zip(("mean", "invstd", "weight"), vectors, strict=True)) | dict.fromkeys(OUTPUTS, wide)
        changes = {**both((2, 3, 4), wide), **{n: blank((3,), k) for n, k in given.items()}}
        assert status_on(product, PHASE_ONE, good(**changes)) == (0, "")


@pytest.mark.parametrize("weight", [None, *(blank((3,), k) for k in FLOATS)], ids=["null", *FLOATS])
def test_weight_may_be_null_and_changes_nothing(stream, weight):
    """No kernel reads it: the bits are those without it."""
    found = []
    for given in (weight, None):
        outputs, arguments = call_with(tensor, numbers((4, 3, 5)))
        executor = run(*PHASES, stream, *arguments[:4], given, *arguments[5:])
        assert all(k.parameter != "weight" for k in executor.kernels)
        found.append([t.array().tobytes() for t in outputs.values()])
    assert found[0] == found[1]


@pytest.mark.parametrize("dtype", FLOATS)
def test_bfloat16_is_beyond_the_document_and_said_so(dtype):
    """The document has FLOAT and FLOAT16; what the newer one added stays, with a note."""
    notes = PHASE_ONE(*typed(good(), dtype).values())[2].notes
    said = [n for n in notes if "its document does not have it" in n]
    assert len(said) == (dtype == BF16)
    assert not said or said[0].startswith(
        "gradOut, input, mean, invstd, sumDy, sumDyXmu, gradWeight and gradBias of "
    )


@pytest.mark.parametrize("fmt", ["ND", "NCHW", "NHWC", "HWCN"])
def test_public_formats_are_taken(fmt):
    assert status_on("ascend910b3", PHASE_ONE, good(**both((2, 3, 4, 1), fmt=fmt))) == (0, "")


@pytest.mark.parametrize("fmt", PRIVATE)
def test_no_private_format_is_taken(fmt):
    assert status_on("ascend910b3", PHASE_ONE, good(**both((2, 3, 4, 1), fmt=fmt)))[0] == 161002


# -- values ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def stream():
    return aclnn.aclrtCreateStream()[1]


def numbers(shape, seed=3):
    g = np.random.default_rng(seed)
    x, dy = (g.integers(-4, 5, shape).astype(np.float32) for _ in range(2))
    mean = g.integers(-2, 3, shape[1]).astype(np.float32)
    return dy, x, mean, np.float32(2.0) ** g.integers(-2, 3, shape[1]).astype(np.float32)


def by_formula(dy, x, mean, invstd):
    axes = (0, *range(2, x.ndim))
    wide = (-1, *(1,) * (x.ndim - 2))
    sums = dy.sum(axes, dtype=np.float64)
    xmu = (np.float64(dy) * (x - mean.reshape(wide))).sum(axes)
    return dict(zip(OUTPUTS, (sums, xmu, xmu * invstd, sums), strict=True))


def call_with(make, values, wanted=(True, True, True), fill=0.0, dtype=None):
    """Outputs of the type of input if no other is given."""
    inputs = [make(v) for v in values]
    dtype = dtype or values[1].dtype.name
    outputs = {n: make(np.full(values[1].shape[1], fill), dtype) for n in OUTPUTS}
    return outputs, [*inputs, None, *wanted, *outputs.values()]


SHAPES = (
    (2, 3),
    (4, 3, 5),
    (2, 3, 5, 3),
    (2, 3, 2, 3, 2),
    (2, 3, 1, 2, 3, 2),
    (2, 3, 1, 1, 2, 1, 2),
    (2, 3, 1, 2, 1, 2, 1, 2),
)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: f"rank {len(s)}")
def test_ranks_2_to_8(stream, shape):
    values = numbers(shape)
    outputs, arguments = call_with(tensor, values)
    run(*PHASES, stream, *arguments)
    for n, expected in by_formula(*values).items():
        np.testing.assert_array_equal(outputs[n].array(), expected)


@layouts
def test_inputs_and_outputs_of_any_strides(stream, make):
    values = numbers((4, 6, 5, 3))
    outputs, arguments = call_with(make, values)
    run(*PHASES, stream, *arguments)
    for n, expected in by_formula(*values).items():
        np.testing.assert_array_equal(outputs[n].array(), expected)


def test_broadcast_views_are_inputs_and_no_outputs(stream):
    values = numbers((4, 6, 5))
    ones = np.ones((4, 6, 5), np.float32)
    outputs, arguments = call_with(tensor, (ones, *values[1:]))
    one = stretched((4, 6, 5), F32)
    one.array()[...] = 1
    run(*PHASES, stream, one, *arguments[1:])
    for n, expected in by_formula(ones, *values[1:]).items():
        np.testing.assert_array_equal(outputs[n].array(), expected)
    for n in OUTPUTS:
        check_row(
            PHASE_ONE, good(), Row("-", {n: stretched((3,))}, 161002, "a stride of 0 is for inputs only")
        )


@pytest.mark.drawn(3)
@pytest.mark.parametrize("flags", list(itertools.product((False, True), repeat=3)), ids=str)
def test_masks(stream, flags):
    """What no flag asks for may be null, is not checked and is left alone; all three false compute nothing."""
    values = numbers((4, 6, 5))
    asked = dict(zip(("inputG", "weightG", "biasG"), flags, strict=True))
    outputs, arguments = call_with(tensor, values, flags, fill=9.0)
    executor = run(*PHASES, stream, *arguments)
    for n, expected in by_formula(*values).items():
        np.testing.assert_array_equal(outputs[n].array(), expected if asked[FLAG_OF[n]] else 9.0)
    assert bool(executor.kernels) == any(flags)
    nulls = {n: None for n in OUTPUTS if not asked[FLAG_OF[n]]}
    odd = {n: blank((5,), I32, NC1HWC0) for n in nulls}
    for change in (nulls, odd):
        assert status_on("ascend910b3", PHASE_ONE, good(**asked, **change)) == (0, "")


@pytest.mark.parametrize("shape", [(0, 3), (0, 3, 4), (2, 3, 0), (2, 3, 4, 0), (0, 3, 0)], ids=str)
def test_empty_tensors_leave_the_outputs_and_say_so(stream, shape):
    outputs, arguments = call_with(
        tensor, [np.zeros(s, np.float32) for s in (shape, shape, (3,), (3,))], fill=9.0
    )
    executor = run(*PHASES, stream, *arguments)
    assert (executor.kernels, executor.workspace_size) == ((), 0)
    assert all((t.array() == 9).all() for t in outputs.values())
    assert "the outputs keep what they hold" in executor.notes[0]
    zeros = run_op("batch_norm_reduce_backward", inputs={
        "grad_out": np.zeros(shape, np.float32), "x": np.zeros(shape, np.float32),
        "mean": np.zeros(3, np.float32), "invstd": np.ones(3, np.float32),
    }, time=False)  # fmt: skip
    assert all((x == 0).all() and x.shape == (3,) for x in zeros.outputs.values())
    assert "leaves its outputs as they were" in zeros.warnings[0]


EXAMPLES = {
    "official sample": (
        np.arange(8).reshape(4, 2), np.array([1, 1, 1, 2, 2, 2, 3, 3]).reshape(4, 2), [1, 1], [1, 1],
        ([7, 8], [21, 30], [21, 30], [7, 8]), 0.0,
    ),
    "second example": (
        (7 * np.arange(24) % 11 - 5).reshape(2, 3, 2, 2), ((5 * np.arange(24) % 13 - 6) / 2).reshape(2, 3, 2, 2),
        [0.75, -0.125, -1], [0.302371, 0.345870, 0.312347],
        ([-4, 4.5, 0], [10.5, 0.0625, 27], [3.174900, 0.021617, 8.433379], [-4, 4.5, 0]), 2e-5,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
def test_worked_examples(stream, name):
    x, dy, mean, invstd, expected, allowed = EXAMPLES[name]
    outputs, arguments = call_with(tensor, [np.float32(v) for v in (dy, x, mean, invstd)])
    run(*PHASES, stream, *arguments)
    for t, want in zip(outputs.values(), expected, strict=True):
        np.testing.assert_allclose(t.array(), want, rtol=0, atol=allowed)


@pytest.mark.parametrize("kinds", [(F16, F32), (BF16, F16), (F32, BF16)], ids=str)
def test_each_output_has_the_type_of_the_input(stream, kinds):
    values = numbers((4, 6, 5))
    wide, vector = kinds
    out = wide
    typed_values = [
        v.astype(STORAGE.get(k, k)) for v, k in zip(values, (wide, wide, vector, vector), strict=True)
    ]
    outputs, arguments = call_with(tensor, typed_values, dtype=out)
    run(*PHASES, stream, *arguments)
    for n, expected in by_formula(*values).items():
        np.testing.assert_array_equal(outputs[n].array(), expected.astype(STORAGE.get(out, out)))


# -- precision ---------------------------------------------------------------------------------------------------------

# |mean| / sigma -> error of (the shipped, the centred) form relative to the largest |sumDyXmu|, as the page emulates it.
CANCELLATION = {0: (2.4e-7, 2.1e-7), 1: (1.9e-7, 2.0e-7), 10: (1.0e-6, 1.2e-7), 100: (1.4e-5, 1.1e-7),
                1000: (2.0e-4, 1.6e-7), 10000: (1.6e-3, 2.5e-7)}  # fmt: skip


@pytest.mark.drawn(2)
@pytest.mark.parametrize("ratio", CANCELLATION)
def test_cancellation_of_both_forms(ratio):
    """32 x 56 x 56 elements per channel; of the order of the page's figures, which are of other numbers."""
    g = np.random.default_rng(7)
    x = (g.standard_normal((32, 4, 56 * 56)) + ratio).astype(np.float32)
    dy = g.standard_normal(x.shape).astype(np.float32)
    mean, invstd = np.float32(x.mean((0, 2), dtype=np.float64)), np.ones(4, np.float32)
    inputs = {"grad_out": dy, "x": x, "mean": mean, "invstd": invstd}
    golden = get_operator("batch_norm_reduce_backward").reference(inputs)["sum_dy_xmu"]
    found = []
    for tiling in ({"strategy": "vendor"}, {"form": "centred"}):
        got = run_op(
            "batch_norm_reduce_backward", inputs=inputs, tiling=tiling, time=False, errors=False
        ).outputs
        found.append(np.abs(got["sum_dy_xmu"] - golden).max() / np.abs(golden).max())
    shipped, centred = CANCELLATION[ratio]
    assert found[1] <= 4 * centred
    assert found[0] <= 4 * shipped
    if ratio >= 100:
        assert found[0] >= shipped / 8
