"""The gradient of binary cross-entropy on logits: worked examples, complex-step derivatives, edge values, broadcasts."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
from ascendtile.kernels import bce_with_logits_backward, get_operator, run_op
from ascendtile.kernels.loss.vendor import vendor_cores, vendor_tile
from ascendtile.kernels.operator.plan import PlanContext
from ascendtile.simulator.precision.dtypes import from_name
from ascendtile.simulator.products import load_product

OP = get_operator("bce_with_logits_backward")
TYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32}
ROUNDING = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 0.0}
F16, BF16, F32 = "float16", "bfloat16", "float32"
REDUCTIONS = ("none", "mean", "sum")
WEIGHTS = ("weight", "pos_weight")

X = np.array([[-3, -0.5, 0], [0.25, 2, 12]], np.float32)
T = np.array([[0, 1, 0.5], [0.25, 1, 1]], np.float32)
G, W, P = np.array([2], np.float32), np.array([1, 2, 0.5], np.float32), np.array([[3], [0.5]], np.float32)
# (weight, pos_weight, reduction) -> result
EXAMPLES = [
    (None, None, "none", [0.094852, -1.244919, 0.000000, 0.624353, -0.238406, -0.000012]),
    (W, None, "none", [0.094852, -2.489837, 0.000000, 0.624353, -0.476812, -0.000006]),
    (None, P, "none", [0.094852, -3.734756, -1.000000, 0.733809, -0.119203, -0.000006]),
    (W, P, "none", [0.094852, -7.469512, -0.500000, 0.733809, -0.238406, -0.000003]),
    (W, P, "mean", [0.015809, -1.244919, -0.083333, 0.122301, -0.039734, -0.000001]),
]


def complex_step(inputs, reduction):
    """d(sum(grad_output * loss)) / dx from the loss itself, by the complex step."""
    g, w, p = (np.array(inputs.get(n, 1.0), np.float64) for n in ("grad_output", *WEIGHTS))
    x, t = np.float64(inputs["x"]), np.float64(inputs["target"])
    z = x + 1e-30j
    loss = w * ((1 - t) * z + (1 + (p - 1) * t) * np.log(1 + np.exp(-z)))
    return (g * loss).imag / 1e-30 / (x.size if reduction == "mean" else 1)


def assert_close(out, inputs, reduction):
    """Absolute limit of the page, 2**-22 * |g w| * max(1, p) * scale, and the rounding to the type of the output."""
    golden = OP.reference(inputs, reduction=reduction)["out"]
    dtype = str(out.dtype)
    g, w, p = (np.abs(np.array(inputs.get(n, 1.0), np.float64)) for n in ("grad_output", *WEIGHTS))
    scale = 1 / max(1, golden.size) if reduction == "mean" else 1
    allowed = 2.0**-22 * g * w * np.maximum(1, p) * scale + ROUNDING[dtype] * np.abs(golden)
    allowed = allowed + (2.0**-25 if dtype == "float16" else 1e-38)
    error = np.abs(np.array(out, np.float64) - golden)
    assert (error <= allowed).all(), np.max(error / allowed)


# -- worked examples -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_official_sample(reduction):
    a = np.array([[0, 1], [2, 3]], np.float32)
    t = np.full((2, 2), 0.1, np.float32)
    out = bce_with_logits_backward(a, a, t, a, a, reduction, time=False).outputs["out"]
    expected = np.array([[0.000000, 0.631059], [3.075507, 7.587801]])
    np.testing.assert_allclose(out, expected / 4 if reduction == "mean" else expected, atol=6e-7)


@pytest.mark.parametrize("stable", [0, 1])
@pytest.mark.parametrize(("w", "p", "reduction", "expected"), EXAMPLES)
def test_second_example(w, p, reduction, expected, stable):
    result = bce_with_logits_backward(G, X, T, w, p, reduction, time=False, tiling={"stable": stable})
    np.testing.assert_allclose(result.outputs["out"].reshape(-1), expected, atol=1.1e-6)


# -- the reference ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(("w", "p"), list(itertools.product((None, W), (None, P))))
def test_reference_is_the_derivative_of_the_loss(w, p, reduction):
    inputs = {"grad_output": G, "x": X, "target": T} | {
        n: a for n, a in zip(WEIGHTS, (w, p), strict=True) if a is not None
    }
    golden = OP.reference(inputs, reduction=reduction)["out"]
    np.testing.assert_allclose(golden, complex_step(inputs, reduction), rtol=1e-9, atol=1e-14)


def test_reference_keeps_its_digits_where_the_sigmoid_is_near_one():
    x = np.array([17.0, 40.0, 300.0], np.float32)
    golden = OP.reference(
        {"grad_output": np.ones(1), "x": x, "target": np.ones(3, np.float32)}, reduction="sum"
    )
    np.testing.assert_allclose(golden["out"], -1 / (1 + np.exp(np.float64(x))), rtol=1e-14)


@pytest.mark.extra("torch")
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_reference_against_torch(reduction):
    import torch

    sizes = {"shape": (6, 5), "weight": 5, "pos_weight": (6, 1)}
    inputs = OP.inputs({**sizes, "grad_output": (6, 5)} if reduction == "none" else sizes, "float32")
    t = {n: torch.tensor(np.float64(a), requires_grad=n == "x") for n, a in inputs.items()}
    loss = torch.nn.functional.binary_cross_entropy_with_logits(
        t["x"], t["target"], t["weight"], pos_weight=t["pos_weight"], reduction=reduction
    )
    loss.backward(t["grad_output"].reshape(loss.shape))
    np.testing.assert_allclose(
        OP.reference(inputs, reduction=reduction)["out"], t["x"].grad, rtol=1e-12, atol=1e-13
    )


# -- types, shapes, broadcasts ---------------------------------------------------------------------------------------


@pytest.mark.drawn(3)
@pytest.mark.parametrize("types", list(itertools.product(TYPES, repeat=3)))
def test_every_tensor_may_have_its_own_type(types):
    g, x, t = types
    inputs = OP.inputs({"shape": (5, 33), "grad_output": (5, 33), "weight": 33}, "float32")
    for n, name in zip(("grad_output", "x", "target"), (g, x, t), strict=True):
        inputs[n] = inputs[n].astype(TYPES[name])
    out = bce_with_logits_backward(**inputs, reduction="sum", time=False).outputs["out"]
    assert out.dtype == TYPES[t]
    assert_close(out, inputs, "sum")


SHAPES = st.lists(st.integers(1, 5), min_size=0, max_size=4).map(tuple)


@st.composite
def problems(draw):
    """A shape, and for each input that may broadcast a shape that does (or None)."""
    shape = draw(SHAPES)

    def stretched():
        kept = [n if draw(st.booleans()) else 1 for n in shape]
        return tuple(kept[draw(st.integers(0, len(kept))) :])

    sizes = {"shape": shape, "grad_output": stretched()}
    return sizes | {n: stretched() for n in WEIGHTS if draw(st.booleans())}


@given(
    sizes=problems(),
    reduction=st.sampled_from(REDUCTIONS),
    dtype=st.sampled_from(list(TYPES)),
    block=st.integers(8, 200),
    cores=st.integers(1, 40),
    stable=st.integers(0, 1),
)
def test_any_broadcast(sizes, reduction, dtype, block, cores, stable):
    inputs = OP.inputs(sizes, dtype)
    if inputs["grad_output"].size == 1:
        inputs["grad_output"] = np.full_like(inputs["grad_output"], 3)
    knobs = {"block": block, "cores": cores, "stable": stable}
    result = bce_with_logits_backward(**inputs, reduction=reduction, tiling=knobs, time=False, errors=False)
    assert result.outputs["out"].shape == sizes["shape"]
    assert_close(result.outputs["out"], inputs, reduction)


@given(rows=st.integers(1, 70), cols=st.integers(1, 300))
def test_any_size(rows, cols):
    inputs = OP.inputs({"shape": (rows, cols)}, "float16")
    assert_close(run_op(OP, inputs=inputs, time=False, errors=False).outputs["out"], inputs, "mean")


@pytest.mark.parametrize(
    ("sizes", "kernel"),
    [
        ({"shape": (6, 5, 4)}, "bce_flat"),
        ({"shape": (6, 5, 4), "weight": (6, 5, 4), "pos_weight": 1}, "bce_flat"),
        ({"shape": (6, 5, 4), "weight": (1, 5, 4), "pos_weight": 4}, "bce_stretched"),
        ({"shape": (6, 1, 4), "weight": (6, 1, 4)}, "bce_flat"),
        ({"shape": (6, 5, 4), "grad_output": (6, 1, 1)}, "bce_stretched"),
    ],
)
def test_only_real_broadcasts_need_common_axes(sizes, kernel):
    """No weight is written out in the shape of x: there is one launch."""
    assert [launch.kernel for launch in run_op(OP, sizes, values=False).launches] == [kernel]


def test_a_weight_per_channel_is_read_once_per_tile():
    """(19, 1, 1) against (2, 19, 40, 40): memory gives x and target, and little more; out stays in L2."""
    sizes = {"shape": (2, 19, 40, 40), "pos_weight": (19, 1, 1)}
    with sim.device(l2="cold"):
        result = run_op(OP, sizes, "float32", values=False)
    plain = 2 * 4 * 2 * 19 * 40 * 40
    assert plain <= result.launches[0].resources["HBM"] <= 1.03 * plain


def test_empty_logits_need_no_launch():
    x = np.zeros((0, 80), np.float16)
    result = bce_with_logits_backward(np.ones(1, np.float16), x, x, reduction="mean")
    assert result.outputs["out"].shape == (0, 80)
    assert (result.launches, result.errors, result.time_us) == ((), {}, 0)


# -- edge values -----------------------------------------------------------------------------------------------------


def of(x, t, **options):
    x, t = (np.atleast_1d(np.float32(a)) for a in (x, t))
    tiling = {"stable": options.pop("stable", 0)}
    result = bce_with_logits_backward(
        np.ones(1, np.float32), x, t, reduction="sum", tiling=tiling, time=False, **options
    )
    return result.outputs["out"]


@pytest.mark.parametrize("stable", [0, 1])
def test_far_logits_and_infinities(stable):
    x = [-np.inf, -100, 100, np.inf]
    np.testing.assert_array_equal(of(x, np.zeros(4), stable=stable), [0, 0, 1, 1])
    far = of(x, np.ones(4), stable=stable)
    np.testing.assert_array_equal(far[:2], [-1, -1])
    np.testing.assert_allclose(far[2:], [0, 0], atol=1e-40)


def test_nan_stays_nan_and_stays_where_it_is():
    out = of([1, np.nan, 3], [0, 0, np.nan])
    np.testing.assert_array_equal(np.isnan(out), [False, True, True])


def test_plain_sigmoid_cancels_and_the_stable_form_does_not():
    """Figures of the page for t = 1: FP32 result of the plain form, and the exact one."""
    x = np.array([10, 15, 17], np.float32)
    plain, stable = of(x, np.ones(3)), of(x, np.ones(3), stable=1)
    np.testing.assert_allclose(plain, [-4.5419e-5, -3.576e-7, 0.0], rtol=1e-4)
    np.testing.assert_allclose(stable, -1 / (1 + np.exp(np.float64(x))), rtol=1e-6)


def test_labels_outside_of_their_range_are_taken_as_they_are():
    np.testing.assert_allclose(of([0.5, 0.5], [-1, 2]), 1 / (1 + np.exp(-0.5)) - np.array([-1, 2]), rtol=1e-6)


def test_large_positive_weight_overflows_in_float16():
    ones = np.ones(4, np.float16)
    g, p = np.full(1, 100, np.float16), np.full(1, 1e4, np.float16)
    out = bce_with_logits_backward(g, -ones, ones, None, p, "sum", time=False).outputs["out"]
    assert np.isneginf(out).all()


def test_the_mean_over_millions_is_zero_in_float16_without_a_loss_scale():
    """2**22 elements and sigmoid(0.25) - 0.5 = 0.06: the gradient is below half of the smallest float16, 3e-8."""
    x, t = (np.full(1 << 22, a, np.float16) for a in (0.25, 0.5))
    for scale, zero in ((1, True), (2.0**15, False)):
        inputs = {"grad_output": np.full(1, scale, np.float16), "x": x, "target": t}
        result = run_op(OP, inputs=inputs, time=False, errors=False)
        assert (result.outputs["out"] == 0).all() == zero


# -- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"target": ((4, 8), F16)}, r"target has shape \(4, 8\), x has \(8, 8\); they must be equal"),
        (
            {"weight": ((4,), F16)},
            r"weight has shape \(4,\), which does not broadcast to that of x, \(8, 8\): aligned right",
        ),
        (
            {"grad_output": ((1, 1, 1, 1), F16)},
            r"grad_output has shape \(1, 1, 1, 1\), which does not broadcast",
        ),
        ({"pos_weight": ((16, 8), F16)}, r"pos_weight has shape \(16, 8\), which does not broadcast"),
        (
            {"weight": ((8,), "int32")},
            "weight is int32; on ascend910b3 it must be float16, bfloat16 or float32",
        ),
    ],
)
def test_wrong_shapes_and_types_are_named(changed, text):
    shapes = {"grad_output": ((1,), F16), "x": ((8, 8), F16), "target": ((8, 8), F16), **changed}
    with pytest.raises(sim.UsageError, match=text):
        bce_with_logits_backward(**{n: sim.shape(*s) for n, s in shapes.items()}, values=False)


@pytest.mark.parametrize("reduction", ["sums", 3, -1])
def test_unknown_reduction(reduction):
    with pytest.raises(sim.UsageError, match="option 'reduction' must be one of none, mean or sum, got"):
        bce_with_logits_backward(G, X, T, reduction=reduction, time=False)


def test_products_and_types():
    with pytest.raises(
        sim.UsageError, match=r"is not available on ascend310b .* it is on ascend310p, ascend910a, "
    ):
        run_op(OP, "tiny", product="ascend310b")
    for product in ("ascend910a", "ascend310p"):
        assert run_op(OP, "tiny", product=product, values=False).run.dtype == "float16"
        with pytest.raises(sim.UsageError, match=f"does not take bfloat16 on {product}"):
            run_op(OP, "tiny", "bfloat16", product=product)
    x = np.zeros(3, ml_dtypes.bfloat16)
    with pytest.raises(sim.UsageError, match="x is bfloat16; on ascend910a it must be float16 or float32"):
        bce_with_logits_backward(G, x, np.zeros(3, np.float32), product="ascend910a")


# -- tiling ----------------------------------------------------------------------------------------------------------


@pytest.mark.drawn(3)
@pytest.mark.parametrize("case", OP.cases)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_default_tilings_of_the_cases_come_near_the_bound(case, dtype):
    run = run_op(OP, case, dtype, values=False).run
    launch = run.launches[0]
    assert run.buffers["UB"].peak_bytes <= run.buffers["UB"].capacity_bytes
    assert all("are padded to" in w for w in run.warnings)  # rows that are no multiple of a block
    assert bool(run.warnings) == (case == "chest-xray")
    # rows that start anywhere in a line weigh up to a quarter more on the way than the bytes of the bound
    assert launch.time_us - launch.overhead_us < 1.36 * launch.bound[1] + 2.5


@pytest.mark.drawn(8)
@pytest.mark.parametrize("stable", [0, 1])
@pytest.mark.parametrize("copies", [1, 2, 3])
@pytest.mark.parametrize("types", [(F16, F16, F16), (F16, F32, F32), (F32, F16, F16), (F32, F32, F32)])
@pytest.mark.parametrize(
    "extra", [{}, {"weight": 4096}, {"pos_weight": 4096}, {"weight": (32, 1), "pos_weight": 128}]
)
def test_ub_need_is_never_less_than_what_is_placed(extra, types, copies, stable):
    from ascendtile.kernels.loss.tiles import element_bytes

    shape = (32, 128) if "weight" in extra and "pos_weight" in extra else 4096
    shapes = OP.shapes({"shape": shape, "grad_output": shape, **extra}, "float16")
    for n, name in zip(("grad_output", "x", "target"), types, strict=True):
        shapes[n] = sim.shape(shapes[n].shape, name)
    knobs = {"block": 4096, "cores": 1, "buffers": copies, "stable": stable, "banks": "packed"}
    result = run_op(OP, inputs=shapes, values=False, tiling=knobs, overrides={"buffers.ub": "16MiB"})
    assert result.run.buffers["UB"].peak_bytes <= 4096 * element_bytes(shapes, copies, bool(stable)) + 64


def test_the_tiling_in_the_record_is_what_was_used():
    """20 elements in rows of 5: a block of 12 elements holds one row, since rows are padded to 16."""
    sizes = {"shape": (4, 5), "weight": 5}
    tiling = run_op(OP, sizes, values=False, tiling={"block": 12}).tiling
    rest = {"strategy": "auto", "buffers": 1, "banks": "apart", "stable": 0}
    assert tiling == {"block": 5, "cores": 1, **rest}
    assert run_op(OP, "yolo", values=False).tiling == {"block": 8192, "cores": 40, **rest}


# -- the vendor's kernel ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("itemsize", "weights", "elements"), [(4, 0, 6432), (4, 2, 5000), (2, 0, 4672), (2, 2, 4096)]
)
def test_the_vendors_tiles_are_those_of_the_page(itemsize, weights, elements):
    assert vendor_tile(196608, itemsize, weights) == elements


@pytest.mark.parametrize(
    ("n", "rank", "dtype", "weights", "reduction", "cores"),
    [
        (1000, 1, F32, 0, "mean", 1), (1025, 1, F32, 0, "mean", 2), (1 << 20, 1, F32, 0, "mean", 48),
        (8192, 2, F32, 2, "mean", 8), (65536, 2, F32, 2, "mean", 16), (65537, 2, F32, 2, "mean", 24),
        (1 << 20, 2, F32, 2, "mean", 32), ((1 << 20) + 1, 2, F32, 2, "mean", 48), (8192, 2, F16, 2, "mean", 8),
        (65536, 2, F16, 2, "mean", 48), (300_000, 3, F32, 2, "sum", 40), (25_000, 3, BF16, 0, "mean", 25),
        (25_000, 3, BF16, 0, "sum", 25), (28_000, 3, BF16, 0, "sum", 28),
    ],
)  # fmt: skip
def test_the_vendors_cores_are_those_of_the_page(n, rank, dtype, weights, reduction, cores):
    assert vendor_cores(n, rank, from_name(dtype), weights, reduction, 48) == cores


@pytest.mark.drawn(2)
@pytest.mark.parametrize("types", [(F16,) * 5, (F32,) * 5, (BF16, F16, F16, F32, BF16)], ids=" ".join)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_values_of_the_vendors_launches(types, reduction):
    """The same bits as ours, but for the rounding of a result of mixed types: all arithmetic is FP32."""
    sizes = {"shape": (6, 50), "weight": 50, "pos_weight": (6, 1)}
    drawn = OP.inputs(sizes, "float32")
    kinds = dict(zip(("grad_output", "x", "target", "weight", "pos_weight"), types, strict=True))
    given = {n: a.astype(TYPES[kinds[n]]) for n, a in drawn.items()}
    ours, theirs = (
        bce_with_logits_backward(**given, reduction=reduction, tiling={"strategy": s}, errors=False)
        for s in ("auto", "vendor")
    )
    np.testing.assert_array_equal(ours.outputs["out"], theirs.outputs["out"])
    kernels = [x.kernel for x in theirs.launches]
    casts = sum(k != F32 for k in types) + (kinds["target"] != F32) if len(set(types)) > 1 else 0
    assert sorted(kernels) == ["bce_flat", *["cast_flat"] * casts, *["stretch"] * 3]
    assert theirs.tiling["buffers"] == 1
    assert theirs.time_us > ours.time_us


@pytest.mark.parametrize("weighted", [False, True])
def test_the_vendors_kernel_of_910a_clamps_logits(weighted):
    """At -88.7, so that exp does not overflow: one instruction more, and what changes is below the resolution of float32."""
    x = np.array([-1e4, -200, -89, -88.7, -88, -1, 0, 5, 90, 1e4], np.float32)
    inputs = {
        "grad_output": np.ones(1, np.float32),
        "x": x,
        "target": np.linspace(0, 1, 10, dtype=np.float32),
    }
    inputs |= {"pos_weight": np.full(10, 3, np.float32)} if weighted else {}
    common = {"options": {"reduction": "sum"}, "tiling": {"strategy": "vendor"}}
    clamped, plain = (run_op(OP, inputs=inputs, product=p, **common) for p in ("ascend910a", "ascend910b3"))
    golden = OP.reference(inputs, reduction="sum")["out"]
    assert np.isfinite(clamped.outputs["out"]).all()
    np.testing.assert_allclose(clamped.outputs["out"], plain.outputs["out"], atol=1e-37, rtol=0)
    np.testing.assert_allclose(clamped.outputs["out"], golden, atol=1e-6)


def test_only_the_vendors_kernel_of_910a_has_the_clamp():
    shapes, options = OP.shapes("tiny", "float32"), {"reduction": "mean"}
    found = {}
    for product, strategy in itertools.product(
        ("ascend910a", "ascend910b3", "ascend310p"), ("auto", "vendor")
    ):
        context = PlanContext(load_product(product), False)
        plan = OP.plan(shapes, options, OP.read_tiling({"strategy": strategy}), context)
        found[product, strategy] = plan.steps[-1].arguments["LEAST"]
    assert found.pop(("ascend910a", "vendor")) == -88.7
    assert set(found.values()) == {None}
