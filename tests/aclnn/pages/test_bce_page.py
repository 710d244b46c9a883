"""The page of aclnnBinaryCrossEntropyWithLogitsBackward: checks, promotion, broadcasting, reductions, the worked examples.

Infinities, labels out of range, overflow of float16 and the sizes of tiles are in
tests/kernels/test_bce_with_logits_backward.py.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ascendtile.kernels import aclnn, bce_with_logits_backward

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

PHASE_ONE = aclnn.aclnnBinaryCrossEntropyWithLogitsBackwardGetWorkspaceSize
PHASES = (PHASE_ONE, aclnn.aclnnBinaryCrossEntropyWithLogitsBackward)
INPUTS = ("gradOutput", "self", "target", "weightOptional", "posWeightOptional")
REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}
TYPES = {TRAINING: (F32, F16), INFERENCE: (F32, F16), **dict.fromkeys((*A2, A3), (F32, F16, BF16))}
# The float part of the table of promotion.
PROMOTED = {
    (F32, F32): F32,
    (F32, F16): F32,
    (F32, BF16): F32,
    (F16, F16): F16,
    (F16, BF16): F32,
    (BF16, BF16): BF16,
}


def good(**changes):
    given = {
        "gradOutput": blank((1,), F32),
        "self": blank((4, 6)),
        "target": blank((4, 6), BF16),
        "weightOptional": blank((6,)),
        "posWeightOptional": blank((4, 1), F32),
        "reduction": 1,
        "out": blank((4, 6), BF16),
    }
    return {**given, **changes}


NHWC, NC1HWC0 = FORMATS["NHWC"], FORMATS["NC1HWC0"]
ON = "on ascend910b3 it must be float16, bfloat16 or float32"
BROADCAST = "which does not broadcast to that of self, (4, 6): aligned right, every axis must be equal or 1"
ROWS = (
    *(Row("1", {n: None}, 161001, f"{n} is null; it is required") for n in ("gradOutput", "self", "target", "out")),
    Row("2", {"out": blank((1,) * 9, BF16)}, 161002, "out has rank 9; it must be from 0 to 8"),
    Row("3", {"gradOutput": blank((1,), I32)}, 161002, f"gradOutput is int32; {ON}"),
    Row("3", {"self": blank((4, 6), F64)}, 161002, f"self is fp64; {ON}"),
    Row("3", {"target": blank((4, 6), I32)}, 161002, f"target is int32; {ON}"),
    Row("3", {"weightOptional": blank((6,), I32)}, 161002, f"weightOptional is int32; {ON}"),
    Row("3", {"posWeightOptional": blank((6,), F64)}, 161002, f"posWeightOptional is fp64; {ON}"),
    Row("3", {"out": blank((4, 6), I32)}, 161002, f"out is int32; {ON}"),
    Row("3", {"out": blank((4, 6), F16)}, 161002, "out is float16, target is bfloat16; they must be of one type"),
    Row("4", {"target": blank((4, 6), BF16, NHWC)}, 161002, "self has format ACL_FORMAT_ND, target has ACL_FORMAT_NHWC"),
    Row("4", {"out": blank((4, 6), BF16, NHWC)}, 161002, "self has format ACL_FORMAT_ND, out has ACL_FORMAT_NHWC"),
    Row("4", {"gradOutput": blank((1,), F32, NC1HWC0)}, 161002, "gradOutput has format ACL_FORMAT_NC1HWC0, which"),
    Row("4", {"weightOptional": blank((6,), F16, NC1HWC0)}, 161002, "weightOptional has format ACL_FORMAT_NC1HWC0"),
    Row("5a", {"target": blank((4, 5), BF16)}, 161002, "target has shape (4, 5), self has (4, 6); they must be equal"),
    Row("5b", {"out": blank((6, 4), BF16)}, 161002, "out has shape (6, 4); it must be (4, 6), the shape of self"),
    Row("5c", {"gradOutput": blank((1, 1, 1, 1))}, 161002, f"gradOutput has shape (1, 1, 1, 1), {BROADCAST}"),
    Row("5c", {"weightOptional": blank((4,))}, 161002, f"weightOptional has shape (4,), {BROADCAST}"),
    Row("5c", {"posWeightOptional": blank((5,))}, 161002, f"posWeightOptional has shape (5,), {BROADCAST}"),
    Row("6", {"reduction": 3}, 161002, "reduction is 3; it must be 0 (none), 1 (mean) or 2 (sum)"),
    Row("6", {"reduction": -1}, 161002, "reduction is -1; it must be 0 (none), 1 (mean) or 2 (sum)"),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=row_names(ROWS))
def test_row_of_checks(row):
    check_row(PHASE_ONE, good(), row)


def test_order_of_checks():
    check_order(PHASE_ONE, good(), ROWS)


def test_rank_9_of_every_tensor_is_told_by_out():
    nine = {n: blank((1,) * 9, BF16) for n in ("self", "target", "out")}
    check_row(PHASE_ONE, good(**nine), Row("2", {}, 161002, "out has rank 9"))


def test_empty_logits_skip_the_shapes_and_not_the_reduction():
    """Rows 5 to 7: shapes are not looked at, reduction is, then there is nothing to do."""
    nothing = good(self=blank((0, 6)), weightOptional=blank((5,)), out=blank((3,), BF16))
    assert PHASE_ONE(*nothing.values())[:2] == (0, 0)
    check_row(PHASE_ONE, nothing, Row("6", {"reduction": 7}, 161002, "reduction is 7"))
    check_row(PHASE_ONE, nothing, Row("3", {"out": blank((3,), F16)}, 161002, "they must be of one type"))


def test_an_inner_step_that_fails(timed):
    with aclnn.tiling(bce_with_logits_backward={"block": 1 << 20}):
        wide = {n: blank((1 << 20,), F32) for n in ("self", "target", "out")}
        given = good(**wide, weightOptional=None, posWeightOptional=None)
        check_row(PHASE_ONE, given, Row("9", {}, 561103, "ub overflow"))


# -- support table -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("product", PRODUCTS)
def test_types_by_product(product, dtype):
    status, message = status_on(product, PHASE_ONE, typed(good(), dtype))
    if product == OTHER:
        assert (status, f"is not available on {product}" in message) == (161002, True)
    elif dtype in TYPES[product]:
        assert status == 0
    else:
        assert (status, f"gradOutput is {dtype}; on {product} it must be float16 or float32" in message) == (
            161002,
            True,
        )


SHAPES = {
    "gradOutput": (1,),
    "self": (4, 6),
    "target": (4, 6),
    "weightOptional": (6,),
    "posWeightOptional": (4, 1),
}
OF_TYPE = {(n, k): blank(s, k) for n, s in (*SHAPES.items(), ("out", (4, 6))) for k in FLOATS}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("product", [TRAINING, INFERENCE, "ascend910b3"])
def test_every_tensor_has_a_type_of_its_own(product):
    """All mixtures of five inputs: those that differ from the common type are cast to it, out back to that of target."""
    for kinds in itertools.product(TYPES[product], repeat=5):
        given = {n: OF_TYPE[n, k] for n, k in zip(INPUTS, kinds, strict=True)} | {
            "out": OF_TYPE["out", kinds[2]]
        }
        assert status_on(product, PHASE_ONE, good(**given)) == (0, "")


@pytest.mark.parametrize("pair", PROMOTED, ids=" with ".join)
def test_promotion(pair):
    """Casts are kernels of their own: of the input that is not in the common type, and of out if that is not target's."""
    for x, target in (pair, pair[::-1]):
        given = {n: OF_TYPE[n, x] for n in INPUTS} | {
            "target": OF_TYPE["target", target],
            "out": OF_TYPE["out", target],
        }
        executor = PHASE_ONE(*good(**given).values())[2]
        cast = [k.parameter for k in executor.kernels if k.role == "cast"]
        common = PROMOTED[pair]
        kinds = dict.fromkeys(INPUTS, x) | {"target": target, "out": target}
        assert cast == [n for n in (*INPUTS, "out") if kinds[n] != common]


@pytest.mark.parametrize("fmt", ["ND", "NCHW", "NHWC", "HWCN"])
def test_public_formats_that_agree_are_taken(fmt):
    given = {
        n: blank(t.shape, F16, FORMATS[fmt]) for n, t in good().items() if n in ("self", "target", "out")
    }
    assert status_on("ascend910b3", PHASE_ONE, good(**given)) == (0, "")


@pytest.mark.parametrize("fmt", PRIVATE)
def test_no_private_format_is_taken(fmt):
    given = {
        n: blank(t.shape, F16, FORMATS[fmt]) for n, t in good().items() if n in ("self", "target", "out")
    }
    assert status_on("ascend910b3", PHASE_ONE, good(**given))[0] == 161002


# -- values ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def stream():
    return aclnn.aclrtCreateStream()[1]


def by_formula(go, x, t, w, p, reduction):
    go, x, t, w, p = (None if a is None else np.array(a, np.float64) for a in (go, x, t, w, p))
    s = 0.5 * (1 + np.tanh(0.5 * x))
    b = s - t if p is None else (p * t + 1 - t) * s - p * t
    grad = b * go * (1 if w is None else w)
    return grad / x.size if reduction == "mean" else grad


def numbers(shapes, seed=3):
    g = np.random.default_rng(seed)
    draws = (g.standard_normal, g.standard_normal, g.random, g.random, lambda s: 1 + g.random(s))
    return [
        None if s is None else np.asarray(d(s)).astype(np.float32) for d, s in zip(draws, shapes, strict=True)
    ]


def check_values(stream, make, values, reduction):
    out = make(np.zeros(values[1].shape), F32)
    executor = run(
        *PHASES, stream, *(None if v is None else make(v) for v in values), REDUCTIONS[reduction], out
    )
    expected = by_formula(*values, reduction)
    go, _, _, w, p = values
    size = np.abs(go) * (1 if w is None else np.abs(w)) * (1 if p is None else max(1, p.max()))
    scale = 1 / max(1, values[1].size) if reduction == "mean" else 1
    assert (
        np.abs(out.array() - expected) <= 2.0**-22 * size * scale
    ).all()  # the tolerance that the page suggests
    return executor


# gradOutput, weight, posWeight for self of that shape: None is absent.
BROADCASTS = {
    (): [((), None, None), ((), (), ())],
    (6,): [((1,), (6,), (1,)), ((6,), None, (6,)), ((), (1,), ())],
    (4, 6): [((1,), (6,), (4, 1)), ((4, 6), (4, 6), (4, 6)), ((4, 1), (1, 6), None), ((), (1, 1), (6,))],
    (2, 3, 4, 5): [
        ((1,), (4, 5), (3, 1, 1)),
        ((2, 3, 4, 5), (2, 1, 1, 5), (1, 1, 4, 1)),
        ((2, 1, 4, 1), None, (5,)),
    ],
}


@pytest.mark.drawn(4)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(
    ("shape", "others"), [(s, o) for s, rows in BROADCASTS.items() for o in rows], ids=str
)
def test_broadcasting_to_self(stream, shape, others, reduction):
    go, w, p = others
    check_values(stream, tensor, numbers((go, shape, shape, w, p)), reduction)


@pytest.mark.parametrize("rank", range(9))
def test_ranks_0_to_8(stream, rank):
    shape = (2, 1, 2, 3, 1, 2, 1, 3)[8 - rank :]
    check_values(stream, tensor, numbers((shape, shape, shape, shape[-1:], shape)), "mean")


@pytest.mark.parametrize("name", INPUTS[:1] + INPUTS[3:])
@pytest.mark.parametrize("shape", [(4,), (5, 1), (4, 5), (4, 6, 1), (1, 4, 6), (2, 4, 6), (2,)], ids=str)
def test_what_does_not_broadcast_to_self_exactly(name, shape):
    """One-sided: what would make self larger is refused, axes of one in front too."""
    change = {name: blank(shape)}
    check_row(
        PHASE_ONE, good(), Row("5c", change, 161002, f"{name} has shape {shape}, which does not broadcast")
    )


@pytest.mark.drawn(4)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(("w", "p"), list(itertools.product((None, (6,)), repeat=2)), ids=str)
def test_optional_weights(stream, w, p, reduction):
    """Absent is the same as ones, to the bit."""
    values = numbers(((1,), (4, 6), (4, 6), w, p))
    check_values(stream, tensor, values, reduction)
    ones = [np.ones(6, np.float32) if v is None else v for v in values]
    found = []
    for given in (values, ones):
        out = blank((4, 6), F32)
        run(*PHASES, stream, *(None if v is None else tensor(v) for v in given), REDUCTIONS[reduction], out)
        found.append(out.array().copy())
    np.testing.assert_array_equal(*found)


@pytest.mark.drawn(6)
@pytest.mark.parametrize("tiling", [{}, {"stable": 1}, {"strategy": "vendor"}], ids=str)
@pytest.mark.parametrize("absent", ["weight", "pos_weight"])
@pytest.mark.parametrize("product", [TRAINING, INFERENCE, "ascend910b3"])
def test_an_absent_weight_is_a_tensor_of_ones_to_the_bit(product, absent, tiling):
    """A scalar, a row and a full tensor of ones; with the other weight given and absent."""
    go, x, t, w, p = numbers(((1,), (40, 60), (40, 60), (60,), (60,)))
    other = {"weight": w} if absent == "pos_weight" else {"pos_weight": p}
    for others in ({}, other):
        common = {"reduction": "mean", "product": product, "tiling": tiling, "time": False, "errors": False}
        null = bce_with_logits_backward(go, x, t, **others, **common).outputs["out"]
        for shape in ((), (60,), (40, 60)):
            ones = {absent: np.ones(shape, np.float32)}
            found = bce_with_logits_backward(go, x, t, **others, **ones, **common).outputs["out"]
            np.testing.assert_array_equal(found, null)


@layouts
def test_inputs_and_outputs_of_any_strides(stream, make):
    check_values(stream, make, numbers(((3, 4, 6), (3, 4, 6), (3, 4, 6), (4, 6), (6,))), "sum")


def test_broadcast_views_are_inputs_and_no_outputs(stream):
    values = numbers(((1,), (4, 6), (4, 6), None, None))
    one = stretched((4, 6), F32)
    one.array()[...] = 1
    out = blank((4, 6), F32)
    run(*PHASES, stream, one, *(tensor(v) for v in values[1:3]), one, None, 2, out)
    np.testing.assert_allclose(out.array(), by_formula(1, *values[1:], "sum"), atol=1e-6)
    check_row(
        PHASE_ONE,
        good(),
        Row("-", {"out": stretched((4, 6), BF16)}, 161002, "a stride of 0 is for inputs only"),
    )


@pytest.mark.parametrize("shape", [(0,), (0, 80), (3, 0, 4)], ids=str)
def test_empty_logits_need_no_kernel(stream, shape):
    executor = run(
        *PHASES, stream, blank((1,)), *(blank(shape) for _ in range(2)), None, None, 1, blank(shape)
    )
    assert (executor.kernels, executor.workspace_size) == ((), 0)


# x of label 1 -> FP32 result of the plain sigmoid, exact value.
CANCELLED = {
    10: (-4.5419e-5, -4.5398e-5),
    15: (-3.576e-7, -3.059e-7),
    17: (0.0, -4.14e-8),
    30: (0.0, -9.3576e-14),
}


@pytest.mark.parametrize("x", CANCELLED)
def test_the_plain_sigmoid_cancels(stream, x):
    plain, exact = CANCELLED[x]
    for stable, wanted in ((0, plain), (1, exact)):
        out = blank((1,), F32)
        with aclnn.tiling(bce_with_logits_backward={"stable": stable}):
            given = [tensor(np.float32([v])) for v in (1, x, 1)]
            run(*PHASES, stream, *given, None, None, 2, out)
        np.testing.assert_allclose(out.array(), [wanted], rtol=2e-3, atol=0)


@pytest.mark.parametrize(("x", "s"), [(100, 1), (-100, 0), (np.inf, 1), (-np.inf, 0), (np.nan, np.nan)])
def test_far_logits(stream, x, s):
    out = blank((1,), F32)
    run(*PHASES, stream, *(tensor(np.float32([v])) for v in (2, x, 0.25)), None, None, 2, out)
    np.testing.assert_allclose(out.array(), [2 * (s - 0.25)], rtol=1e-6)


@pytest.mark.parametrize(
    ("x", "target", "seen"), [(F16, F32, 2.0**-20), (F32, F16, 2.0**-11), (F16, BF16, 2.0**-8)]
)
def test_out_is_rounded_once_to_the_type_of_target(stream, x, target, seen):
    """float32 with float16 logits is as good as FP32; into float16 or bfloat16 there is one rounding."""
    kinds = (x, x, target, x, target)
    values = [v.astype(STORAGE.get(k, k)) for v, k in zip(numbers(((64,),) * 5), kinds, strict=True)]
    out = blank((64,), target)
    run(*PHASES, stream, *(tensor(v) for v in values), 0, out)
    expected = by_formula(*values, "none")
    got = out.array().astype(np.float64)
    assert (np.abs(got - expected) <= seen * np.abs(expected) + 2.0**-20).all()


def test_official_sample(stream):
    x = np.float32([[0, 1], [2, 3]])
    expected = {0: [[0, 0.631059], [3.075507, 7.587801]], 1: [[0, 0.157765], [0.768877, 1.896950]]}
    for reduction, wanted in (*expected.items(), (2, expected[0])):
        out = blank((2, 2), F32)
        run(*PHASES, stream, tensor(x), tensor(x), tensor(np.full((2, 2), 0.1, np.float32)), tensor(x), tensor(x),
            reduction, out)  # fmt: skip
        np.testing.assert_allclose(out.array(), wanted, atol=1e-6)


SECOND = [
    (False, False, "none", [0.094852, -1.244919, 0, 0.624353, -0.238406, -0.000012]),
    (True, False, "none", [0.094852, -2.489837, 0, 0.624353, -0.476812, -0.000006]),
    (False, True, "none", [0.094852, -3.734756, -1, 0.733809, -0.119203, -0.000006]),
    (True, True, "none", [0.094852, -7.469512, -0.5, 0.733809, -0.238406, -0.000003]),
    (True, True, "mean", [0.015809, -1.244919, -0.083333, 0.122301, -0.039734, -0.000001]),
]


@pytest.mark.parametrize(("w", "p", "reduction", "expected"), SECOND)
def test_second_example(stream, w, p, reduction, expected):
    x, t = np.float32([[-3, -0.5, 0], [0.25, 2, 12]]), np.float32([[0, 1, 0.5], [0.25, 1, 1]])
    weight = tensor(np.float32([1, 2, 0.5])) if w else None
    pos_weight = tensor(np.float32([[3], [0.5]])) if p else None
    out = blank((2, 3), F32)
    run(
        *PHASES,
        stream,
        tensor(np.float32([2])),
        tensor(x),
        tensor(t),
        weight,
        pos_weight,
        REDUCTIONS[reduction],
        out,
    )
    np.testing.assert_allclose(out.array().reshape(-1), expected, atol=1e-6)


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_it_is_deterministic_at_every_level(level):
    aclnn.aclrtCtxSetSysParamOpt(aclnn.ACL_OPT_DETERMINISTIC, level)
    try:
        tiling = PHASE_ONE(*good().values())[2].tiling
    finally:
        aclnn.aclrtCtxSetSysParamOpt(aclnn.ACL_OPT_DETERMINISTIC, 0)
    assert tiling == PHASE_ONE(*good().values())[2].tiling
