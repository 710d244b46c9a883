"""convolution_backward: indices by integers that every mode computes exactly, errors that rounding explains, all modes."""

from __future__ import annotations

from math import prod

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
from ascendtile.kernels import convolution_backward, get_operator, run_op
from ascendtile.kernels.operator.plan import PlanContext
from ascendtile.simulator.device import CUBE_MATH_TYPES
from ascendtile.simulator.precision.cube_math import resolve_convolution
from ascendtile.simulator.precision.rounding import encode, round_to
from ascendtile.simulator.products import load_product

OP = get_operator("convolution_backward")
RESULTS = ("grad_input", "grad_weight", "grad_bias")
UNIT = {"fp16": 2.0**-11, "bf16": 2.0**-8, "fp32": 2.0**-24, "hf32": 2.0**-12}
A2 = "ascend910b3"


class Problem:
    """Random integers from -2 to 2 in the shapes of a convolution: products and short sums are exact in every mode."""

    def __init__(
        self, batch, groups, narrow, wide, taps, stride, dilation, padding, sizes, transposed=False, extra=0
    ):
        axes = range(len(taps))
        self.options = {
            "stride": stride,
            "padding": padding,
            "dilation": dilation,
            "groups": groups,
            "transposed": transposed,
            "output_padding": tuple(min(extra, s - 1) if transposed else 0 for s in stride),
        }
        reach = [dilation[k] * (taps[k] - 1) for k in axes]
        small = [max(n, reach[k] + 1 - 2 * padding[k]) for k, n in enumerate(sizes)]
        if transposed:
            out = [
                (small[k] - 1) * stride[k] - 2 * padding[k] + reach[k] + self.options["output_padding"][k] + 1
                for k in axes
            ]
            channels = (groups * narrow, groups * wide)
        else:
            out = [(small[k] + 2 * padding[k] - reach[k] - 1) // stride[k] + 1 for k in axes]
            channels = (groups * wide, groups * narrow)
        self.shapes = {
            "grad_output": (batch, channels[1], *out),
            "input": (batch, channels[0], *small),
            "weight": (groups * narrow, wide, *taps),
        }
        self.possible = min(out) >= 1

    def arrays(self, dtype=np.float32, seed=0):
        g = np.random.default_rng(seed)
        return {n: g.integers(-2, 3, s).astype(dtype) for n, s in self.shapes.items()}


@st.composite
def problems(draw, most_axes=3):
    n = draw(st.integers(1, most_axes))

    def each(low, high):
        return tuple(draw(st.integers(low, high)) for _ in range(n))

    problem = Problem(
        draw(st.integers(1, 3)), draw(st.sampled_from([1, 1, 2, 3, 6])), draw(st.sampled_from([1, 2, 5, 16, 17])),
        draw(st.sampled_from([1, 2, 3, 16, 20])), each(1, 3), each(1, 3), each(1, 3), each(0, 2), each(1, 8),
        draw(st.booleans()), draw(st.integers(0, 2)),
    )  # fmt: skip
    return problem


def torch_gradients(problem, arrays):
    import torch

    o = problem.options
    tensors = [torch.tensor(arrays[n]).double() for n in ("grad_output", "input", "weight")]
    bias = [problem.shapes["grad_output"][1]]
    found = torch.ops.aten.convolution_backward(
        *tensors, bias, o["stride"], o["padding"], o["dilation"], o["transposed"], o["output_padding"], o["groups"],
        [True] * 3,
    )  # fmt: skip
    return dict(zip(RESULTS, (x.numpy() for x in found), strict=True))


def reference(problem, arrays):
    options = {**problem.options, "transposed": "true" if problem.options["transposed"] else "false"}
    return OP.reference(arrays, **options)


# -- the reference -----------------------------------------------------------------------------------------------------


@pytest.mark.extra("torch")
@given(problems(), st.integers(0, 99))
def test_the_reference_is_that_of_torch_in_float64(problem, seed):
    if not problem.possible:
        return
    g = np.random.default_rng(seed)
    arrays = {n: g.standard_normal(s).astype(np.float32) for n, s in problem.shapes.items()}
    expected = torch_gradients(problem, arrays)
    for n, x in reference(problem, arrays).items():
        scale = max(1.0, np.abs(expected[n]).max(initial=0))
        assert np.abs(x - expected[n]).max(initial=0) <= 1e-12 * scale


EXAMPLES = [
    (
        {"stride": 2, "padding": 1},
        np.arange(1, 17).reshape(1, 1, 4, 4), [[[[1, 0, -1], [2, 0, -2], [1, 0, -1]]]], [[[[1, 2], [3, 4]]]],
        [[0, 2, 0, -4], [0, 2, 0, -6], [0, 2, 0, -8], [0, 1, 0, -4]], [[24, 43, 50], [44, 78, 88], [68, 118, 128]], [10],
    ),
    (
        {"groups": 2},
        [[[1, 2, 3, 4], [5, 6, 7, 8]]], [[[1, 2]], [[3, -1]]], [[[1, 2, 3], [4, 5, 6]]],
        [[1, 4, 7, 6], [12, 11, 13, -6]], [[14, 20], [92, 107]], [6, 15],
    ),
    (
        {"stride": 2, "padding": 1, "transposed": True, "output_padding": 1},
        [[[1, 2, 3]]], [[[1, 2, 3]]], [[[1, 2, 3, 4, 5, 6]]], [8, 20, 32], [16, 22, 28], [21],
    ),
]  # fmt: skip


@pytest.mark.drawn(4)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
@pytest.mark.parametrize("mode", CUBE_MATH_TYPES[:4])
@pytest.mark.parametrize(("options", "x", "w", "dy", "dx", "dw", "db"), EXAMPLES)
def test_worked_examples_in_every_mode(options, x, w, dy, dx, dw, db, mode, dtype):
    arrays = [np.asarray(v).astype(dtype) for v in (dy, x, w)]
    found = convolution_backward(*arrays, **options, cube_math_type=mode, time=False, errors=False).outputs
    for n, expected in zip(RESULTS, (dx, dw, db), strict=True):
        np.testing.assert_array_equal(np.array(found[n], np.float64).reshape(np.shape(expected)), expected)


# -- indices -----------------------------------------------------------------------------------------------------------


@given(
    problems(),
    st.integers(0, 99),
    st.sampled_from(
        [
            {},
            {"block_p": 16, "weight_p": 16},
            {"weight_parts": 3, "combine": "two_phase"},
            {"weight_parts": 2},
            {"strategy": "vendor"},
        ]
    ),
    st.sampled_from([np.float16, np.float32]),
)
def test_integers_come_out_exactly_whatever_the_tiling(problem, seed, tiling, dtype):
    if not problem.possible:
        return
    arrays = problem.arrays(dtype, seed)
    found = convolution_backward(**arrays, **problem.options, tiling=tiling, time=False, errors=False).outputs
    for n, expected in reference(problem, arrays).items():
        np.testing.assert_array_equal(np.array(found[n], np.float64), expected)


@pytest.mark.extra("torch")
def test_four_paddings_are_top_bottom_left_right():
    import torch

    g = np.random.default_rng(0)
    x, w = (g.integers(-2, 3, s).astype(np.float32) for s in ((2, 3, 5, 6), (4, 3, 2, 3)))
    top, bottom, left, right = 1, 0, 2, 3
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    dy = g.integers(-2, 3, (2, 4, 5, 9)).astype(np.float32)
    found = convolution_backward(
        dy, x, w, padding=(top, bottom, left, right), time=False, errors=False
    ).outputs
    none = [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True] * 3
    tensors = [torch.tensor(v).double() for v in (dy, padded, w)]
    dx, dw, db = (v.numpy() for v in torch.ops.aten.convolution_backward(*tensors, [4], *none))
    np.testing.assert_array_equal(found["grad_input"], dx[:, :, top : top + 5, left : left + 6])
    np.testing.assert_array_equal(found["grad_weight"], dw)
    np.testing.assert_array_equal(found["grad_bias"], db)


@pytest.mark.parametrize("mask", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (0, 0, 0)])
def test_only_what_the_mask_asks_for_is_computed(mask):
    problem = Problem(2, 1, 3, 4, (3,), (1,), (1,), (1,), (7,))
    arrays = problem.arrays()
    asked = {"output_mask": mask, "tiling": {"launches": "joint"}}
    result = convolution_backward(**arrays, **problem.options, **asked)
    assert set(result.outputs) == {n for n, wanted in zip(RESULTS, mask, strict=True) if wanted}
    golden = reference(problem, arrays)
    for n, x in result.outputs.items():
        np.testing.assert_array_equal(x, golden[n])
    kernels = {launch.kernel for launch in result.launches}
    assert ("sum_partials" in kernels) == bool(mask[2])
    assert ("weight_tiles" in kernels) == bool(mask[1])
    assert ("image_windows" in kernels) == bool(mask[0])


def test_one_launch_for_both_gradients_gives_the_same_and_saves_time():
    shapes = {"input": (4, 32, 14, 14), "weight": (48, 32, 3, 3), "grad_output": (4, 48, 14, 14)}
    inputs, padding = OP.inputs(shapes, "float16"), {"padding": (1, 1)}
    joint, apart = (
        run_op(
            OP,
            inputs=inputs,
            tiling={"launches": n, "weight_parts": 3, "taps": "window"},
            options=padding,
            errors=False,
        )
        for n in ("joint", "apart")
    )
    for n in RESULTS:
        np.testing.assert_array_equal(joint.outputs[n], apart.outputs[n])
    assert "both_gradients" in {launch.kernel for launch in joint.launches}
    assert joint.time_us < apart.time_us


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize(
    ("taps", "sizes"), [((3,), (96,)), ((2, 3), (8, 48)), ((2, 2, 2), (4, 6, 48)), ((16, 16), (48, 32))]
)
def test_patches_have_their_taps_as_channels(taps, sizes, dtype):
    axes = len(taps)
    problem = Problem(2, 1, 20, 3, taps, taps, (1,) * axes, (0,) * axes, sizes)
    arrays = problem.arrays(dtype)
    golden = reference(problem, arrays)
    few = "window" if prod(taps) <= 64 else "patch"  # a window for each tap is faster than to fold them
    for asked, used in (("auto", few), ("patch", "patch"), ("reload", "reload")):
        result = convolution_backward(
            **arrays, **problem.options, tiling={"taps": asked}, time=False, errors=False
        )
        assert result.tiling["taps"] == used
        for n, expected in golden.items():
            np.testing.assert_array_equal(np.float64(result.outputs[n]), expected)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("transposed", [False, True])
def test_ways_to_meet_the_taps_differ_in_time_and_not_in_values(transposed):
    problem = Problem(2, 1, 32, 16, (3, 3), (1, 1), (1, 1), (1, 1), (14, 14), transposed)
    arrays = problem.arrays(np.float16)
    one, other = (
        convolution_backward(
            **arrays, **problem.options, tiling={"taps": t, "launches": "apart"}, errors=False
        )
        for t in ("window", "reload")
    )
    assert (one.tiling["taps"], other.tiling["taps"]) == ("window", "reload")
    np.testing.assert_array_equal(one.outputs["grad_input"], other.outputs["grad_input"])
    loads = [r.launches[k].pipes["AIC.MTE2"].busy_cycles for r in (one, other) for k in [_product(r)]]
    assert loads[0] < loads[1]


def _product(result):
    """Place of the launch that makes grad_input."""
    return next(k for k, launch in enumerate(result.launches) if launch.kernel.startswith("image_"))


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    "case", ["resnet50-l2-3x3", "resnet50-l1-1x1", "swin-unetr", "dcgan-up", "whisper-stem"]
)
def test_the_automatic_way_is_the_fastest_or_within_5_percent(case):
    def microseconds(taps):
        only, ways = {"output_mask": (1, 0, 0)}, {"taps": taps, "launches": "apart"}
        result = run_op(OP, case, "float16", A2, values=False, tiling=ways, options=only)
        return result.launches[_product(result)].time_us

    assert microseconds("auto") <= 1.05 * min(microseconds("window"), microseconds("reload"))


@pytest.mark.drawn(1)
@pytest.mark.parametrize("sizes", [(32, 1024, 256, 14), (32, 576, 96, 14)])
def test_tiles_are_chosen_by_the_rows_that_leave_l0c_too(sizes):
    """Few channels to sum and many to store: short rows of positions keep the fixpipe busy longer than the Cube."""
    n, c_in, c_out, size = sizes
    arrays = [
        sim.shape(s, "float16") for s in ((n, c_out, size, size), (n, c_in, size, size), (c_out, c_in, 1, 1))
    ]

    def launch(**tile):
        only = {"output_mask": (True, False, False), "tiling": {"launches": "apart", **tile}}
        with sim.device(A2):
            found = convolution_backward(*arrays, stride=1, padding=0, values=False, **only)
        return found.launches[_product(found)]

    chosen = launch()
    others = [launch(block_m=m, block_p=p) for m in (64, 128) for p in (4 * size, size * size)]
    assert chosen.time_us <= 1.05 * min(x.time_us for x in others)


# -- layouts -----------------------------------------------------------------------------------------------------------


@given(
    problems(),
    st.integers(0, 99),
    st.sampled_from(["NC1HWC0", "NHWC"]),
    st.sampled_from(["FRACTAL_Z", "ND"]),
    st.sampled_from([np.float16, np.float32]),
)
def test_layouts_change_no_bit(problem, seed, image, weight, dtype):
    if not problem.possible:
        return
    g = np.random.default_rng(seed)
    arrays = {n: g.standard_normal(s).astype(dtype) for n, s in problem.shapes.items()}
    layouts = {"image_layout": image, "filter_layout": weight}
    want, found = (
        convolution_backward(**arrays, **problem.options, tiling=t, time=False, errors=False).outputs
        for t in ({}, layouts)
    )
    for n, x in want.items():
        np.testing.assert_array_equal(found[n], x)


@pytest.mark.exhaustive
def test_layouts_have_launches_of_their_own_and_are_told():
    """Rows and matrices are made by launches of their own, and turned into blocks row by row on the way to L1."""
    plain, rows, matrices = (
        run_op(OP, "resnet50-l4-3x3", "float16", A2, values=False, tiling=t)
        for t in ({}, {"image_layout": "NHWC"}, {"filter_layout": "ND"})
    )
    told = [(r.tiling["image_layout"], r.tiling["filter_layout"]) for r in (plain, rows, matrices)]
    assert told == [("NC1HWC0", "FRACTAL_Z"), ("NHWC", "FRACTAL_Z"), ("NC1HWC0", "ND")]
    made = [[x.kernel for x in r.launches].count("to_rows") for r in (plain, rows, matrices)]
    assert made == [0, 2, 1]
    assert plain.time_us < min(rows.time_us, matrices.time_us)
    refused = run_op(
        OP, "tiny", "float16", A2, values=False, tiling={"strategy": "vendor", "image_layout": "NHWC"}
    )
    assert refused.tiling["image_layout"] == "NC1HWC0"
    assert any("image_layout=NHWC was asked for" in w for w in refused.warnings)


# -- the vendor's strategy ---------------------------------------------------------------------------------------------

# (input, weight, gradOutput, stride, padding) and baseM, baseN, baseK that the vendor's rule gives in 16 bits.
PUBLISHED = [
    ("32x64x56x56", "64x64x3x3", "32x64x56x56", 1, 1, (336, 64, 48)),
    ("32x128x28x28", "128x128x3x3", "32x128x28x28", 1, 1, (256, 128, 48)),
    ("32x256x56x56", "64x256x1x1", "32x64x56x56", 1, 0, (256, 128, 64)),
    ("32x512x7x7", "512x512x3x3", "32x512x7x7", 1, 1, (64, 336, 48)),
    ("2x320x64x64", "320x320x3x3", "2x320x64x64", 1, 1, (256, 128, 48)),
    ("1x512x7x32x32", "512x512x3x3x3", "1x512x7x32x32", 1, 1, (256, 128, 48)),
    ("1x256x8x128x128", "256x256x4x4x4", "1x256x6x66x66", 2, 3, (256, 128, 64)),
]


@pytest.mark.parametrize(("x", "w", "dy", "stride", "padding", "base"), PUBLISHED)
def test_base_tiles_of_the_vendors_rule(x, w, dy, stride, padding, base):
    sizes = dict(zip(("input", "weight", "grad_output"), (x, w, dy), strict=True))
    shapes = {n: tuple(int(k) for k in v.split("x")) for n, v in sizes.items()}
    axes = len(shapes["input"]) - 2
    options = {"stride": (stride,) * axes, "padding": (padding,) * axes, "output_mask": (1, 0, 0)}
    knobs = {"strategy": "vendor"}
    plan = OP.plan(
        OP.shapes(shapes, "float16"),
        OP.read_options(options),
        OP.read_tiling(knobs),
        PlanContext(load_product(A2), False),
    )
    assert tuple(plan.tiling[f"base_{axis}"] for axis in "mnk") == base


@pytest.mark.exhaustive
def test_the_vendors_launches_cost_more():
    """Each layout has its launch, and a stride of 2 multiplies about four times as much."""
    only = {"output_mask": (1, 1, 0)}
    ours, theirs = (
        run_op(OP, "resnet50-l2-3x3", "float16", A2, values=False, tiling={"strategy": s}, options=only)
        for s in ("auto", "vendor")
    )
    assert theirs.time_us > 1.2 * ours.time_us
    kernels = [launch.kernel for launch in theirs.launches]
    assert kernels == [*["prepare"] * 4, "image_windows", "weight_tiles", "from_rows", "from_rows"]
    strided = {"input": (8, 64, 56, 56), "weight": (64, 64, 3, 3), "grad_output": (8, 64, 28, 28)}
    options = {"stride": (2, 2), "padding": (1, 1), "output_mask": (1, 0, 0)}
    busy = []
    for s in ("auto", "vendor"):
        tiling = {"strategy": s, "taps": "window", "launches": "apart"}
        result = run_op(OP, strided, "float16", A2, values=False, tiling=tiling, options=options)
        busy.append(result.launches[_product(result)].pipes["AIC.M"].busy_cycles)
    assert busy[1] > 2.5 * busy[0]


def test_a_knob_that_the_shapes_do_not_allow_is_named():
    problem = Problem(1, 1, 2, 2, (3,), (1,), (1,), (1,), (8,))
    result = convolution_backward(**problem.arrays(), **problem.options, tiling={"taps": "patch"}, time=False)
    assert any("taps=patch was asked for" in x for x in result.warnings)


def test_gaps_between_windows_and_what_the_last_one_leaves_have_no_gradient():
    x, w = np.ones((1, 1, 11), np.float32), np.ones((1, 1, 2), np.float32)
    found = convolution_backward(np.ones((1, 1, 3), np.float32), x, w, stride=4).outputs["grad_input"]
    np.testing.assert_array_equal(found[0, 0], [1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0])


def test_strided_inputs_are_made_contiguous_first():
    problem = Problem(2, 1, 3, 4, (3,), (1,), (1,), (1,), (7,))
    arrays = problem.arrays()
    turned = {n: np.ascontiguousarray(x.swapaxes(0, -1)).swapaxes(0, -1) for n, x in arrays.items()}
    plain, strided = (convolution_backward(**a, **problem.options) for a in (arrays, turned))
    for n in RESULTS:
        np.testing.assert_array_equal(plain.outputs[n], strided.outputs[n])
    assert len(strided.launches) > len(plain.launches)


# -- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.drawn(3)
@pytest.mark.parametrize("mode", CUBE_MATH_TYPES[:4])
@pytest.mark.parametrize("kind", ["fp16", "bf16", "fp32"])
@pytest.mark.parametrize(
    ("groups", "stride", "transposed"), [(1, 1, False), (2, 1, False), (1, 2, False), (1, 2, True)]
)
def test_errors_are_those_that_rounding_explains(kind, mode, groups, stride, transposed):
    """|e| <= (n + 1) 2^-24 sum|products| + unit of what is written |result|; n: length of the sum and parts."""
    problem = Problem(2, groups, 5, 6, (3, 2), (stride,) * 2, (1, 1), (1, 0), (9, 8), transposed)
    g = np.random.default_rng(1)
    arrays = {n: encode(g.standard_normal(s), kind) for n, s in problem.shapes.items()}
    found = convolution_backward(
        **arrays, **problem.options, cube_math_type=mode, time=False, errors=False
    ).outputs
    resolved = resolve_convolution(load_product(A2), (kind,) * 3, mode, groups=groups)
    seen = {n: round_to(np.float32(x), resolved.operand, resolved.hf32_round) for n, x in arrays.items()}
    golden = reference(problem, seen)
    sizes = reference(problem, {n: np.abs(x) for n, x in seen.items()})
    through = "fp16" if groups > 1 and resolved.compute != "fp32" else kind
    written = {"grad_input": (resolved.output("grad_input"), kind), "grad_weight": (through, kind)}
    for n, units in written.items():
        length = 2 * 9 * 8 * 4
        room = (length + 1) * UNIT["fp32"] * sizes[n] + sum(UNIT[u] for u in units) * np.abs(golden[n]) * 1.01
        assert np.all(np.abs(np.float64(found[n]) - golden[n]) <= room + 2.0**-24)


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("dtype", "mode", "bits"),
    [
        ("float32", "KEEP_DTYPE", (21.0, 24.0)),
        ("float32", "USE_HF32", (12.5, 13.0)),
        ("float32", "USE_FP16", (11.2, 12.0)),
    ],
)
def test_effective_bits_of_the_numerics_specification(dtype, mode, bits):
    """Relative error of a product of normal data: 3e-7 to 5e-7 in FP32, 1.47e-4 in HF32, 2.9e-4 in FP16."""
    case = {"input": (4, 32, 14, 14), "weight": (32, 32, 3, 3), "grad_output": (4, 32, 14, 14)}
    result = run_op(OP, case, dtype, cube_math_type=mode, time=False, options={"padding": (1, 1)})
    for n in ("grad_input", "grad_weight"):
        assert bits[0] < result.errors[n].effective_bits < bits[1]


def test_fp32_is_within_1e_minus_5():
    case = {"input": (4, 64, 14, 14), "weight": (64, 64, 3, 3), "grad_output": (4, 64, 14, 14)}
    inputs = OP.inputs(case, "float32")
    result = run_op(OP, inputs=inputs, time=False, errors=False, options={"padding": (1, 1)})
    for n, golden in OP.reference(inputs, padding=(1, 1)).items():
        assert np.linalg.norm(np.float64(result.outputs[n]) - golden) <= 1e-5 * np.linalg.norm(golden)


def test_sums_above_the_range_of_fp16_are_kept_in_a_wide_grad_weight():
    x = np.full((1, 1, 64), 60.0, np.float16)
    w = np.ones((1, 1, 1), np.float16)
    narrow, wide = (
        convolution_backward(x, x, w, grad_weight_dtype=t, time=False, errors=False).outputs["grad_weight"]
        for t in ("auto", "float32")
    )
    assert wide[0, 0, 0] == 60.0 * 60.0 * 64
    assert np.isinf(narrow[0, 0, 0])


def test_use_fp16_overflows_where_float32_inputs_leave_its_range():
    x, w = np.full((1, 1, 4), 7e4, np.float32), np.ones((1, 1, 1), np.float32)
    kept, cast = (
        convolution_backward(np.ones_like(x), x, w, cube_math_type=m, time=False, errors=False).outputs
        for m in ("KEEP_DTYPE", "USE_FP16")
    )
    assert kept["grad_weight"][0, 0, 0] == 28e4
    assert np.isinf(cast["grad_weight"][0, 0, 0])
    np.testing.assert_array_equal(cast["grad_bias"], kept["grad_bias"])


def test_mixed_types_are_promoted():
    arrays = Problem(2, 1, 3, 4, (3,), (1,), (1,), (1,), (7,)).arrays()
    x, dy, w = (
        arrays["input"].astype(np.float16),
        arrays["grad_output"].astype(ml_dtypes.bfloat16),
        arrays["weight"],
    )
    result = convolution_backward(dy, x, w, padding=1)
    assert [result.outputs[n].dtype for n in RESULTS] == [x.dtype, w.dtype, dy.dtype]
    golden = OP.reference(arrays, padding=(1,))
    np.testing.assert_array_equal(np.float64(result.outputs["grad_weight"]), golden["grad_weight"])


def test_bfloat16_with_use_fp16_is_warned_of():
    x = np.ones((1, 1, 3), ml_dtypes.bfloat16)
    result = convolution_backward(x, x, np.ones((1, 1, 1), ml_dtypes.bfloat16), cube_math_type="USE_FP16")
    assert any("BF16 inputs converted to FP16" in x for x in result.warnings)


# -- nothing to multiply, and cases ------------------------------------------------------------------------------------


def test_an_empty_batch_gives_zeros():
    x, dy, w = (np.zeros(s, np.float32) for s in ((0, 3, 5), (0, 4, 5), (4, 3, 1)))
    found = convolution_backward(dy[:0].reshape(0, 4, 5), x, w, bias_sizes=[4], errors=False).outputs
    assert found["grad_input"].shape == (0, 3, 5)
    np.testing.assert_array_equal(found["grad_weight"], np.zeros_like(w))
    np.testing.assert_array_equal(found["grad_bias"], np.zeros(4))


def test_shapes_of_every_case_fit_and_are_accepted():
    assert len(OP.cases) >= 24
    for name, case in OP.cases.items():
        options = OP.read_options(case.options)
        OP.check(OP.shapes(name, "float16"), options, load_product(A2))
