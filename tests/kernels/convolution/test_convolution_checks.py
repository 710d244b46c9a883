"""The checks of convolution backward: each row of the vendor's table, its status code, and what the message names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ascendtile.kernels import convolution_backward, get_operator, run_op
from ascendtile.kernels.convolution.call import ConvolutionCall, TensorView
from ascendtile.kernels.convolution.checks import check_call, forward_sizes
from ascendtile.kernels.convolution.geometry import Axis
from ascendtile.simulator import shape
from ascendtile.simulator.errors import RefusedError, UsageError
from ascendtile.simulator.products import load_product

A2, TRAINING, INFERENCE = "ascend910b3", "ascend910a", "ascend310p"
NULLPTR, INVALID, INNER = 161001, 161002, 561103


def view(*dims, dtype="float16", fmt=None):
    return TensorView(dims, dtype, fmt)


def call_2d(**changes):
    x, w, dy = view(2, 8, 9, 9), view(4, 8, 3, 3), view(2, 4, 9, 9)
    base = ConvolutionCall(
        dy, x, w, (1, 1), (1, 1), (1, 1), (0, 0), (True,) * 3, (4,),
        grad_input=x, grad_weight=w, grad_bias=view(4),
    )  # fmt: skip
    return replace(base, **changes)


def call_3d(**changes):
    x, w, dy = view(1, 4, 5, 6, 7), view(4, 4, 3, 3, 3), view(1, 4, 5, 6, 7)
    base = ConvolutionCall(
        dy, x, w, (1,) * 3, (1,) * 3, (1,) * 3, (0,) * 3, (True,) * 3, (4,),
        grad_input=x, grad_weight=w, grad_bias=view(4),
    )  # fmt: skip
    return replace(base, **changes)


def transposed(**changes):
    x, w, dy = view(2, 8, 5, 5), view(8, 4, 3, 3), view(2, 4, 10, 10)
    base = ConvolutionCall(
        dy, x, w, (2, 2), (1, 1), (1, 1), (1, 1), (True,) * 3, (4,), transposed=True,
        grad_input=x, grad_weight=w, grad_bias=view(4),
    )  # fmt: skip
    return replace(base, **changes)


def refusal(call, product=A2, mode=0):
    with pytest.raises(RefusedError) as error:
        check_call(call, load_product(product), mode)
    assert str(error.value.status) in str(error.value)
    return error.value


@pytest.mark.parametrize("call", [call_2d(), call_3d(), transposed()])
def test_correct_calls_pass(call):
    assert check_call(call, load_product(A2), 0) == ()


NULLS = ["grad_output", "input", "weight", "stride", "padding", "dilation", "output_padding", "output_mask"]


@pytest.mark.parametrize("name", NULLS)
def test_null_pointers(name):
    error = refusal(call_2d(**{name: None}))
    assert error.status == NULLPTR
    assert error.reason.startswith(f"{name} is null")


@pytest.mark.parametrize("name", ["grad_input", "grad_weight", "grad_bias"])
def test_a_wanted_result_must_be_there_and_another_need_not(name):
    assert refusal(call_2d(**{name: None})).status == NULLPTR
    mask = tuple(n != name for n in ("grad_input", "grad_weight", "grad_bias"))
    assert check_call(call_2d(**{name: None}, output_mask=mask), load_product(A2), 0) == ()


ROWS = [
    # 2: mask
    (call_2d(output_mask=(True, False)), NULLPTR, "output_mask has 2 elements, it must have 3"),
    # 4: types
    (call_2d(input=view(2, 8, 9, 9, dtype="int8")), INVALID, "input is int8"),
    (call_2d(grad_bias=view(4, dtype="float64")), INVALID, "grad_bias is float64"),
    # 5: formats and ranks
    (call_2d(weight=view(4, 8, 3, 3, fmt="NHWC")), INVALID, "weight has format NHWC, at rank 4 it must be NCHW"),
    (call_2d(input=view(2, 8)), INVALID, "input has rank 2, it must be 3 (N, C, L)"),
    (call_2d(grad_bias=view(4, fmt="NC")), INVALID, "grad_bias has format NC, it must be ND"),
    # 6: values, in order
    (call_2d(stride=(0, 1), padding=(-1, 0)), INVALID, "stride is (0, 1)"),
    (call_2d(padding=(-1, 0), dilation=(0, 1)), INVALID, "padding is (-1, 0)"),
    (call_2d(dilation=(1, 0), groups=0), INVALID, "dilation is (1, 0)"),
    (transposed(output_padding=(-1, 0)), INVALID, "output_padding is (-1, 0)"),
    (call_2d(groups=0), INVALID, "groups is 0"),
    # 9: ranks and emptiness
    (call_2d(input=view(2, 8, 9)), INVALID, "grad_output, input and weight have ranks [4, 3, 4]"),
    (call_2d(grad_output=view(2, 0, 9, 9)), INVALID, "grad_output has shape (2, 0, 9, 9) and no elements"),
    # 10: shapes of results
    (call_2d(grad_input=view(2, 8, 9, 8)), INVALID, "grad_input has shape (2, 8, 9, 8), it must be input's, (2, 8, 9, 9)"),
    (call_2d(grad_weight=view(4, 8, 3, 1)), INVALID, "grad_weight has shape (4, 8, 3, 1)"),
    (call_2d(grad_bias=view(8)), INVALID, "grad_bias has shape (8,), it must be the channels of grad_output, (4,)"),
    # 11: lengths
    (call_2d(stride=(1,)), INVALID, "stride has 1 values (1,), for 2 spatial axes it must have 2"),
    (call_2d(padding=(1, 1, 1)), INVALID, "padding has 3 values (1, 1, 1), for 2 spatial axes it must have 2 or 4"),
    (call_2d(dilation=(1, 1, 1)), INVALID, "dilation has 3 values"),
    (call_3d(padding=(1, 1, 1, 1)), INVALID, "padding has 4 values"),
    # 12: channels
    (call_2d(grad_output=view(2, 5, 9, 9), grad_bias=view(5)), INVALID, "channels are 5, weight's first axis is 4"),
    (call_2d(groups=2), INVALID, "on its second axis: groups must be 1, it is 2"),
    (call_2d(input=view(2, 9, 9, 9), grad_input=view(2, 9, 9, 9)), INVALID, "8 on its second axis, which does not divide"),
    (
        call_2d(
            input=view(2, 8, 9, 9), weight=view(4, 1, 3, 3), grad_weight=view(4, 1, 3, 3), groups=8
        ),
        INVALID,
        "grad_output has 4 channels, which groups 8 must divide",
    ),
    (transposed(input=view(2, 6, 5, 5), grad_input=view(2, 6, 5, 5)), INVALID, "are 6, weight's first axis is 8"),
    (transposed(groups=2), INVALID, "grad_output has 4 channels, weight has 4 on its second axis: groups must be 1"),
    # 12: the shape of the bias
    (call_2d(bias_sizes=(5,)), INVALID, "bias_sizes is (5,), it must be (4,), weight's first axis"),
    (transposed(bias_sizes=(8,)), INVALID, "bias_sizes is (8,), it must be (4,), weight's second axis times groups"),
    # 13: sizes in 3D
    (call_3d(grad_output=view(1, 4, 5, 6, 8)), INVALID, "sizes (5, 6, 8), the forward convolution gives (5, 6, 7)"),
    (
        call_3d(weight=view(4, 4, 9, 3, 3), grad_weight=view(4, 4, 9, 3, 3)),
        INVALID, "the kernel reaches over 9 elements on axis D, input with its padding has 7",
    ),
    # 13 in 1D and 2D, which the vendor finds in an inner step
    (call_2d(grad_output=view(2, 4, 9, 8)), INVALID, "spatial sizes (9, 8), the forward convolution gives (9, 9)"),
    (transposed(output_padding=(0, 1)), INVALID, "the forward convolution gives (9, 10)"),
    (call_2d(input=view(3, 8, 9, 9), grad_input=view(3, 8, 9, 9)), INVALID, "grad_output has batch 2, input has 3"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "status", "text"), ROWS, ids=[r[2] for r in ROWS])
def test_each_row_of_the_table(call, status, text):
    error = refusal(call)
    assert error.status == status
    assert text in str(error)


@pytest.mark.parametrize(
    ("dtype", "product", "modes"),
    [
        ("float32", TRAINING, {0, 3}),
        ("float32", INFERENCE, {0, 3}),
        ("float16", TRAINING, set()),
        ("float32", A2, set()),
        ("bfloat16", A2, set()),
    ],
)
def test_modes_by_product(dtype, product, modes):
    views = {n: replace(getattr(call_2d(), n), dtype=dtype) for n in ("grad_output", "input", "weight")}
    for mode in range(4):
        if mode in modes:
            assert refusal(call_2d(**views), product, mode).status == INVALID
        else:
            check_call(call_2d(**views), load_product(product), mode)
    assert refusal(call_2d(**views), product, 4).status == INVALID


def test_checks_come_in_the_order_of_the_table():
    """Every later mistake is there, too, and the first one is named."""
    wrong = call_2d(stride=(0, 1), groups=2, grad_bias=view(8), input=view(2, 8, 9))
    assert "stride is (0, 1)" in refusal(wrong, A2, 7).reason
    wrong = replace(wrong, stride=(1, 1))
    assert "outside 0 to 3" in refusal(wrong, A2, 7).reason
    assert "ranks" in refusal(wrong).reason
    assert "grad_bias has shape" in refusal(replace(wrong, input=view(2, 8, 9, 9))).reason


def test_three_axes_where_they_are():
    call = call_3d()
    assert "takes 1 or 2" in refusal(call, TRAINING).reason
    assert "takes 1 or 2" in refusal(call, INFERENCE).reason
    wide = view(4, 4, 3, 3, 3, dtype="float32")
    grouped = call_3d(input=view(1, 8, 5, 6, 7), grad_input=view(1, 8, 5, 6, 7), groups=2, grad_weight=wide)
    names = ("grad_output", "input", "weight")
    wide_inputs = {n: replace(getattr(grouped, n), dtype="float32") for n in names}
    for given in (grouped, replace(grouped, **wide_inputs)):
        assert all(check_call(given, load_product(A2), mode) == () for mode in range(4))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"weight": view(4, 8, 256, 1), "input": view(2, 8, 300, 9), "padding": (0, 0)},
            "weight on its last axes is (256, 1)",
        ),
        ({"padding": (256, 1)}, "padding is (256, 1)"),
        ({"dilation": (256, 1), "padding": (255, 1)}, "dilation is (256, 1)"),
    ],
)
def test_documented_ranges_of_the_a2(changes, text):
    call = call_2d(**changes)
    x, w = call.input.shape, call.weight.shape
    sizes = forward_sizes(call)
    dy = view(x[0], w[0], *sizes)
    call = replace(call, grad_output=dy, grad_input=call.input, grad_weight=call.weight)
    error = refusal(call)
    assert error.status == INNER
    assert text in error.reason
    check_call(call, load_product(TRAINING), 0)


def test_strides_of_three_axes_reach_63():
    def call(stride):
        x = view(1, 4, 5, 70, 70)
        base = call_3d(input=x, grad_input=x, stride=(1, stride, stride))
        return replace(base, grad_output=view(1, 4, *forward_sizes(base)))

    check_call(call(63), load_product(A2), 0)
    assert "stride on H and W is (64, 64), every value must be from 1 to 63" in refusal(call(64)).reason


def test_empty_tensors():
    x, dy = view(0, 8, 9, 9), view(0, 4, 9, 9)
    nothing = call_2d(input=x, grad_input=x, grad_output=dy)
    assert check_call(nothing, load_product(A2), 0) == ()
    assert "bias_sizes is null" in refusal(replace(nothing, bias_sizes=None)).reason
    assert check_call(replace(nothing, bias_sizes=None, output_mask=(1, 1, 0)), load_product(A2), 0) == ()
    assert refusal(nothing, TRAINING).status == INVALID
    flat = view(2, 8, 0, 9)
    assert "an empty batch" in refusal(call_2d(input=flat, grad_input=flat)).reason
    far = replace(nothing, weight=view(4, 8, 15, 3), grad_weight=view(4, 8, 15, 3))
    assert "reaches over 15 elements on axis H" in refusal(far).reason


def test_a_refused_operator_run_is_a_usage_error_with_the_status():
    op = get_operator("convolution_backward")
    with pytest.raises(UsageError, match="status 161002"):
        run_op(op, "tiny", options={"stride": "1,1"}, values=False)
    with pytest.raises(RefusedError, match="cubeMathType KEEP_DTYPE"):
        run_op(op, "tiny", "float32", TRAINING, values=False)
    with pytest.raises(UsageError, match="output_mask is"):
        run_op(op, "tiny", options={"output_mask": (1, 2, 0)}, values=False)
    with pytest.raises(UsageError, match="not available on ascend310b"):
        run_op(op, "tiny", product="ascend310b", values=False)


def test_options_are_read_from_texts():
    op = get_operator("convolution_backward")
    assert op.read_options({"stride": "2,3", "padding": "1x2", "dilation": 4})["stride"] == (2, 3)
    with pytest.raises(UsageError, match="option 'stride' must be an integer, got 'a'"):
        op.read_options({"stride": "a,b"})


def test_time_only_needs_no_data():
    x, w = shape((2, 16, 8, 8), "float16"), shape((16, 16, 3, 3), "float16")
    result = convolution_backward(x, x, w, padding=1, values=False)
    assert result.outputs == {}
    assert [x.kernel for x in result.launches] == ["whole"]
    result = convolution_backward(x, x, w, padding=1, values=False, tiling={"launches": "joint"})
    assert {"prepare", "both_gradients", "sum_partials"} <= {x.kernel for x in result.launches}


# Channels of a group on both sides, groups, legal numbers of merged groups in blocks of 16 (float16).
MERGES = [
    ((2, 2), 2, {2}),
    ((8, 8), 4, {2, 4}),
    ((16, 8), 4, {2, 4}),
    ((4, 8), 8, {4, 8}),
    ((16, 16), 3, {1, 2, 3}),
]


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("channels", "groups", "legal"), MERGES)
def test_merged_groups_are_whole_blocks_or_refused(channels, groups, legal):
    """Right values (small integers are exact) for every number that is taken; the message names the legal ones."""
    narrow, wide = channels
    g = np.random.default_rng(3)
    dy, x, w = (
        g.integers(-2, 3, s).astype(np.float16)
        for s in ((1, narrow * groups, 3, 3), (1, wide * groups, 5, 5), (narrow * groups, wide, 3, 3))
    )
    expected = get_operator("convolution_backward").reference(
        {"grad_output": dy, "input": x, "weight": w}, groups=groups
    )
    for asked in range(1, groups + 1):
        take = lambda n=asked: convolution_backward(  # noqa: E731
            dy, x, w, groups=groups, tiling={"merged_groups": n}, time=False, errors=False
        )
        if asked in legal:
            for name, found in take().outputs.items():
                np.testing.assert_array_equal(found, expected[name])
            continue
        with pytest.raises(UsageError, match=f"'merged_groups' is {asked}; .*take .*{groups}$"):
            take()


@pytest.mark.drawn(1)
@pytest.mark.parametrize("stride", [2, 40, 300])
def test_phases_without_taps_are_not_unrolled_by_the_hundred(stride):
    """Of `stride` positions along D three at most meet a tap; each of the others was code of its own. Values are exact."""
    g = np.random.default_rng(1)
    dy, x, w = (
        g.integers(-2, 3, s).astype(np.float16)
        for s in ((1, 2, 2, 1, 1), (1, 2, stride + 3, 3, 3), (2, 2, 3, 3, 3))
    )
    found = convolution_backward(dy, x, w, stride=(stride, 1, 1), time=False, errors=False)
    assert found.tiling["taps"] == "window"
    axis = Axis(stride + 3, 2, 3, stride)
    assert len(axis.phases(True)) == min(stride, 3)
    given = {"grad_output": dy, "input": x, "weight": w}
    expected = get_operator("convolution_backward").reference(given, stride=(stride, 1, 1))
    for name, values in found.outputs.items():
        np.testing.assert_array_equal(values, expected[name])
