"""Forward convolution: values of every geometry against torch, types, bias, refusals, and gradients of a forward run."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
from ascendtile.kernels import convolution, convolution_backward, get_operator, run_op
from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.products import load_product

OP = get_operator("convolution")


def integers(shape, seed=0, dtype=np.float16):
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)


def by_torch(x, w, b, transposed=False, output_padding=0, **options):
    import torch

    axes = x.ndim - 2
    tensors = [None if v is None else torch.tensor(np.float64(v)) for v in (x, w, b)]
    if transposed:
        call = getattr(torch.nn.functional, f"conv_transpose{axes}d")
        return call(*tensors, output_padding=output_padding, **options).numpy()
    return getattr(torch.nn.functional, f"conv{axes}d")(*tensors, **options).numpy()


@pytest.mark.extra("torch")
@given(st.data())
def test_integers_come_out_exactly(data):
    axes = data.draw(st.integers(1, 3), "axes")
    small = st.tuples(*[st.integers(1, 3)] * axes)
    taps, stride, dilation = (data.draw(small, n) for n in ("taps", "stride", "dilation"))
    padding = data.draw(st.tuples(*[st.integers(0, 2)] * axes), "padding")
    groups, c_in, c_out, batch = (data.draw(st.integers(1, n), "channels") for n in (3, 5, 6, 3))
    transposed = data.draw(st.booleans(), "transposed")
    reach = [(k - 1) * d + 1 for k, d in zip(taps, dilation, strict=True)]
    sizes = [
        max(1, r - 2 * p) + data.draw(st.integers(0, 5), "more") for r, p in zip(reach, padding, strict=True)
    ]
    if transposed and any(
        (n - 1) * s + r <= 2 * p for n, s, r, p in zip(sizes, stride, reach, padding, strict=True)
    ):
        return
    channels = (groups * c_in, c_out) if transposed else (groups * c_out, c_in)
    x, w = integers((batch, groups * c_in, *sizes)), integers((*channels, *taps), 1)
    b = integers(groups * c_out, 2) if data.draw(st.booleans(), "bias") else None
    options = {
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "groups": groups,
        "transposed": transposed,
    }
    found = convolution(x, w, b, **options, time=False, errors=False).outputs["y"]
    np.testing.assert_array_equal(np.float64(found), by_torch(x, w, b, **options))


@pytest.mark.extra("torch")
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
@pytest.mark.parametrize("bias", [False, True])
def test_the_reference_is_that_of_torch_and_results_are_rounded_once(dtype, bias):
    g = np.random.default_rng(3)
    x, w, b = (g.standard_normal(s).astype(dtype) for s in ((2, 16, 9, 9), (8, 16, 3, 3), (8,)))
    given = {"input": x, "weight": w} | ({"bias": b} if bias else {})
    golden = OP.reference(given, padding=(1, 1))["y"]
    expected = by_torch(x, w, b if bias else None, padding=1)
    assert np.linalg.norm(golden - expected) <= 1e-12 * np.linalg.norm(expected)
    found = convolution(*given.values(), padding=1, time=False, errors=False).outputs["y"]
    assert found.dtype == dtype
    unit = float(ml_dtypes.finfo(dtype).eps) / 2
    sums = OP.reference({n: np.abs(np.float64(v)) for n, v in given.items()}, padding=(1, 1))["y"]
    assert np.all(np.abs(np.float64(found) - golden) <= unit * np.abs(golden) * 1.01 + 146 * 2.0**-24 * sums)


@pytest.mark.extra("torch")
@pytest.mark.parametrize("transposed", [False, True])
def test_patches_have_their_taps_as_channels(transposed):
    w = integers((6, 3, 8, 16), 1)
    x = integers((2, 6, 3, 4) if transposed else (2, 3, 24, 64))
    result = convolution(x, w, stride=(8, 16), transposed=transposed, time=False, errors=False)
    assert result.tiling["taps"] == "patch"
    np.testing.assert_array_equal(
        np.float64(result.outputs["y"]), by_torch(x, w, None, transposed, stride=(8, 16))
    )


def test_a_forward_run_makes_what_the_gradients_take():
    """d/dx of 0.5 |y|^2 along a direction, by differences of the forward, is the gradient's."""
    g = np.random.default_rng(0)
    x, w = (
        g.standard_normal((2, 4, 8, 8)).astype(np.float32),
        g.standard_normal((5, 4, 3, 3)).astype(np.float32),
    )
    step = g.standard_normal(x.shape).astype(np.float32)
    y = convolution(x, w, padding=1, time=False, errors=False).outputs["y"]
    dx = convolution_backward(y, x, w, padding=1, time=False, errors=False).outputs["grad_input"]
    sizes = [
        0.5
        * np.sum(
            np.float64(convolution(x + h * step, w, padding=1, time=False, errors=False).outputs["y"]) ** 2
        )
        for h in (np.float32(0.01), np.float32(-0.01))
    ]
    slope = float(np.sum(np.float64(dx) * step))
    assert (sizes[0] - sizes[1]) / 0.02 == pytest.approx(slope, rel=1e-4)


def test_every_case_fits_and_a_bias_costs_a_launch():
    for name, case in OP.cases.items():
        OP.check(OP.shapes(name, "float16"), OP.read_options(case.options), load_product("ascend910b3"))
    plain = run_op(OP, "resnet50-l4-3x3", "float16", values=False)
    assert [launch.kernel for launch in plain.launches] == ["whole"]
    assert plain.tiling["bias"] == "none"
    biased = run_op(OP, "tiny", "float16", values=False)
    assert [launch.kernel for launch in biased.launches] == ["whole", "add_bias"]
    assert biased.tiling["bias"] == "vector"


@pytest.mark.drawn(1)
@pytest.mark.parametrize("case", ["hunyuan-patch", "whisper-stem", "c3d"])
def test_a_bias_of_many_outputs_starts_the_sums_and_saves_time(case):
    """It goes by the bias table, so that the launches are those of rows of channels and none adds it."""
    with sim.device(l2="cold"):
        chosen, other = (
            run_op(OP, case, "float16", values=False, tiling=t) for t in ({}, {"bias": "vector"})
        )
    assert chosen.tiling["bias"] == "table"
    assert [launch.kernel for launch in chosen.launches] == ["prepare", "image_windows", "from_rows"]
    assert chosen.launches[1].buffers["BT"].peak_bytes == 4 * chosen.tiling["block_m"]
    assert "BT" not in other.launches[0].buffers
    assert chosen.time_us < other.time_us


@pytest.mark.extra("torch")
@given(
    st.tuples(st.integers(1, 3), st.integers(1, 2), st.integers(1, 20), st.integers(1, 20)),
    st.tuples(st.integers(1, 3), st.integers(1, 2), st.integers(1, 2), st.integers(3, 9)),
    st.booleans(),
    st.sampled_from((np.float16, np.float32)),
    st.sampled_from(("window", "reload")),
    st.integers(0, 2**31),
)
def test_a_bias_by_the_table_is_exact_for_integers(sizes, window, transposed, dtype, taps, seed):
    """Small integers come out as torch has them; the sum with its bias is rounded once."""
    batch, groups, narrow, wide = sizes
    k, stride, dilation, length = window
    stride = min(stride, k) if transposed else stride  # every position meets a tap
    dilation = 1 if transposed else dilation
    g = np.random.default_rng(seed)
    x = g.integers(-3, 4, (batch, groups * narrow, length + 3, length + 3)).astype(dtype)
    w = g.integers(
        -3, 4, (groups * narrow, wide, k, k) if transposed else (groups * wide, narrow, k, k)
    ).astype(dtype)
    bias = g.integers(-9, 10, groups * wide).astype(dtype)
    how = {"stride": stride, "dilation": dilation, "groups": groups, "padding": 1 if k > 1 else 0}
    tiling = {"bias": "table", "taps": taps}
    got = convolution(x, w, bias, transposed=transposed, **how, tiling=tiling, errors=False)
    assert got.tiling["bias"] == "table"
    np.testing.assert_array_equal(np.float64(got.outputs["y"]), by_torch(x, w, bias, transposed, **how))


def test_a_bias_that_the_table_does_not_take_is_refused_in_words():
    x, w, b = (np.zeros(s, ml_dtypes.bfloat16) for s in ((1, 16, 6, 6), (16, 16, 3, 3), (16,)))
    with pytest.raises(
        UsageError, match=r"bias=table takes a bias of float16 or float32.*take bias=vector or auto"
    ):
        convolution(x, w, b, tiling={"bias": "table"})
    assert convolution(x, w, b).tiling["bias"] == "vector"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"input": (2, 4)}, "input has rank 2, weight 4; both must be"),
        ({"input": (2, 0, 8, 8)}, "input has shape (2, 0, 8, 8) and no elements"),
        (
            {"input": (2, 5, 8, 8)},
            "input has 5 channels, 4 of weight times groups 1 is 4; they must be equal",
        ),
        ({"bias": (7,)}, "bias has shape (7,); it must be (6,)"),
        ({"stride": (1, 0)}, "stride is (1, 0); it must be 2 values of at least 1"),
        ({"padding": (1, 1, 1)}, "padding is (1, 1, 1); it must be 2 or 4 values of at least 0"),
        ({"output_padding": (1, 0)}, "output_padding is (1, 0); without transposed it must be 0"),
        ({"dilation": (5, 5)}, "the output would have spatial sizes (-2, -2)"),
    ],
)
def test_refusals_name_both_values(changes, text):
    shapes = {"input": (2, 4, 8, 8), "weight": (6, 4, 3, 3), "bias": (6,)}
    given = {n: np.zeros(changes.get(n, s), np.float16) for n, s in shapes.items()}
    options = {n: v for n, v in changes.items() if n not in shapes}
    with pytest.raises(UsageError) as error:
        convolution(**given, **options)
    assert text in str(error.value)
