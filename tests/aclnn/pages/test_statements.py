"""Statements of the pages that no table of checks holds: signatures, order of launches, traffic, laws of the sums, edges.

One test a statement, named after it; the page and its section stand in the docstring.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from ascendtile.kernels import aclnn, batch_norm_reduce_backward, run_op
from ascendtile.simulator.products import load_product

from ..calls import blank, run, strided, tensor
from . import test_batch_norm_page as bn
from . import test_bce_page as bce
from . import test_convolution_page as conv
from . import test_group_norm_page as gn
from . import test_rms_norm_page as rms
from .rows import A2, A3, BF16, F16, F32, Row, check_row, status_on

# -- page about what the operators share -------------------------------------------------------------------------------

SIGNATURES = {
    bn: "gradOut input mean invstd weight inputG weightG biasG sumDy sumDyXmu gradWeight gradBias",
    rms: "dy x rstd gamma dxOut dgammaOut",
    bce: "gradOutput self target weightOptional posWeightOptional reduction out",
    conv: "gradOutput input weight biasSizes stride padding dilation transposed outputPadding groups outputMask "
    "cubeMathType gradInput gradWeight gradBias",
    gn: "gradOut input mean rstd gamma N C HxW group outputMask gradInput gradGammaOut gradBetaOut",
}


@pytest.mark.parametrize("page", SIGNATURES, ids=lambda p: p.PHASES[1].__name__)
def test_parameters_have_the_names_and_the_order_of_the_prototype(page):
    """Section 1 of each page; what C gives back through pointers (workspaceSize, executor) is returned."""
    assert list(inspect.signature(page.PHASE_ONE).parameters) == SIGNATURES[page].split()
    assert list(inspect.signature(page.PHASES[1]).parameters) == [
        "workspace",
        "workspaceSize",
        "executor",
        "stream",
    ]
    assert page.PHASE_ONE.__name__ == f"{page.PHASES[1].__name__}GetWorkspaceSize"


def test_a_call_is_contiguous_then_casts_then_the_kernel_then_cast_and_view_copy():
    """Shared page, section 1: what a phase 1 body looks like; of one input the copy comes before its cast."""
    given = {n: strided(np.zeros((4, 6)), k) for n, k in (("self", F16), ("target", F32), ("out", F32))}
    given |= {"gradOutput": blank((1,), BF16), "weightOptional": None, "posWeightOptional": None}
    kernels = bce.PHASE_ONE(*bce.good(**given).values())[2].kernels
    assert [(k.role, k.parameter) for k in kernels if k.role != "main"] == [
        ("cast", "gradOutput"), ("contiguous", "self"), ("cast", "self"), ("contiguous", "target"), ("view copy", "out"),
    ]  # fmt: skip
    assert [k.role for k in kernels[-2:]] == ["main", "view copy"]
    out = blank((4, 6), BF16)
    mixed = bce.good(self=blank((4, 6), F16), target=blank((4, 6), BF16), out=out)
    assert [k.role for k in bce.PHASE_ONE(*mixed.values())[2].kernels][-2:] == ["main", "cast"]


@pytest.mark.parametrize("product", [*A2, A3])
def test_two_vector_cores_for_a_cube_core_and_registers_of_256_bytes(product):
    """Shared page, section 5."""
    found = load_product(product)
    assert found.vector_cores == 2 * found.cube_cores
    assert found.integer("vector.bytes_per_repeat") == 256


# Operator -> (sizes, elements, tiling, passes over the elements): reads of whole inputs and writes of whole outputs.
TRAFFIC = {
    "BN: dy and x once": ("batch_norm_reduce_backward", {"n": 8, "c": 64, "space": (64, 64)}, 2**21, {}, 2),
    "GN: a group stays in UB": (
        "group_norm_backward", {"n": 4, "c": 256, "space": (16, 16), "group": 32}, 2**18, {"strategy": "vendor"}, 3),
    "GN: a group does not fit": (
        "group_norm_backward", {"n": 2, "c": 64, "space": (128, 128), "group": 32}, 2**21, {"strategy": "vendor"}, 5),
    "BCE: logits and labels": ("bce_with_logits_backward", {"shape": (512, 1024)}, 2**19, {}, 3),
    "BCE: a gradient for each": (
        "bce_with_logits_backward", {"shape": (512, 1024), "grad_output": (512, 1024)}, 2**19, {}, 4),
    "BCE: weights for each": (
        "bce_with_logits_backward", {"shape": (512, 1024), "weight": (512, 1024), "pos_weight": (512, 1024)}, 2**19, {}, 5),
}  # fmt: skip


@pytest.mark.drawn(4)
@pytest.mark.parametrize("dtype", [F16, F32])
@pytest.mark.parametrize("name", TRAFFIC)
def test_bytes_moved(name, dtype):
    """Shared page, section 7; RmsNormGrad is in test_rms_norm_page.py. Vectors of channels come on top: a few per cent."""
    op, sizes, elements, tiling, passes = TRAFFIC[name]
    found = run_op(op, sizes, dtype, product="ascend910b3", tiling=tiling, values=False)
    moved = sum(x.resources["L2"] for x in found.launches) / elements / (2 if dtype == F16 else 4)
    assert passes <= moved <= 1.03 * passes


# -- BatchNormReduceBackward -------------------------------------------------------------------------------------------


def test_sums_of_devices_add_up_to_the_sums_of_the_whole_batch():
    """Section 2: they are sums, not means; that is why they are all-reduced before they are divided."""
    dy, x, mean, invstd = bn.numbers((6, 3, 5))
    parts = [
        batch_norm_reduce_backward(dy[k], x[k], mean, invstd).outputs for k in (slice(0, 2), slice(2, 6))
    ]
    whole = batch_norm_reduce_backward(dy, x, mean, invstd).outputs
    for n, found in whole.items():
        np.testing.assert_array_equal(found, parts[0][n] + parts[1][n])


@pytest.mark.parametrize("strategy", ["auto", "vendor"])
def test_one_sample_of_one_element_has_no_spread(strategy):
    """Section 5, edge (1, C): the mean is x itself, so that sumDyXmu and gradWeight are 0 and sumDy is dy."""
    x = np.float32([[3, -2, 0.5, 7]])
    ask = {"tiling": {"strategy": strategy}, "time": False}
    found = batch_norm_reduce_backward(x + 1, x, x[0], np.ones(4, np.float32), **ask).outputs
    assert not found["sum_dy_xmu"].any()
    assert not found["grad_weight"].any()
    np.testing.assert_array_equal(found["sum_dy"], x[0] + 1)


@pytest.mark.parametrize(("channels", "cores"), [(3, 1), (1024, 1), (1025, 2), (4096, 4)])
def test_the_last_kernel_of_the_vendor_has_4096_bytes_for_each_core(channels, cores):
    """Section 4.1: C / 1024 cores in FP32, nearly always 1 to 8 of them."""
    sizes, tiling = {"n": 2, "c": channels, "space": 4}, {"strategy": "vendor"}
    found = run_op("batch_norm_reduce_backward", sizes, F32, tiling=tiling, values=False)
    assert [x.grid[0] for x in found.launches if x.kernel == "finish"][-1] == cores


def test_an_output_in_another_type_is_refused_even_where_it_could_be_cast():
    """The document: outputs "as the input"; FP32 sums of FP16 data belong to the Python face (out_dtype)."""
    for kind in (F32, BF16):
        wide = {n: blank((3,), kind) for n in bn.OUTPUTS}
        check_row(bn.PHASE_ONE, bn.good(**wide), Row("3", {}, 161002, f"sumDy is {kind}, input is float16"))
    asked = bn.good(biasG=False, gradBias=blank((3,), F32))
    assert status_on("ascend910b3", bn.PHASE_ONE, asked) == (0, "")


# -- RmsNormGrad -------------------------------------------------------------------------------------------------------


def test_nothing_is_broadcast():
    """Section 1: no promotion, no broadcasting; one row of rstd or gamma does not stand for all."""
    for change in ({"rstd": blank((1, 1), F32)}, {"rstd": blank((4, 1), F32)}, {"gamma": blank((1,))}):
        name = next(iter(change))
        check_row(rms.PHASE_ONE, rms.good(), Row("3", change, 561002, f"{name} has shape"))


def test_gamma_has_as_many_axes_as_are_normalised():
    """Section 1: T is what gamma has, L the rest: the same x with other splits gives other means."""
    stream = aclnn.aclrtCreateStream()[1]
    dy, x, _, _ = rms.numbers((2, 4, 8), 1)
    for axes in (1, 2, 3):
        rows = x.shape[: 3 - axes]
        rms.check_values(
            stream, tensor, (dy, x, np.ones(rows, np.float32), np.ones(x.shape[3 - axes :], np.float32))
        )


# -- BCEWithLogitsBackward ---------------------------------------------------------------------------------------------


def test_the_mean_divides_by_the_elements_of_self_whatever_the_weights_are():
    """Section 2: not the batch size, not the sum of weights."""
    stream = aclnn.aclrtCreateStream()[1]
    values = [tensor(np.full(s, v, np.float32)) for s, v in (((1,), 1), ((4, 6), 0), ((4, 6), 1), ((6,), 24))]
    out = blank((4, 6), F32)
    run(*bce.PHASES, stream, *values, None, 1, out)
    np.testing.assert_array_equal(out.array(), np.float32(-0.5))


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_out_has_the_shape_of_self_for_every_reduction(reduction):
    """Section 2: the words "mean / sum of the result" of the document say which forward is undone, not a shape."""
    check_row(
        bce.PHASE_ONE,
        bce.good(reduction=reduction),
        Row("5b", {"out": blank((1,), BF16)}, 161002, "it must be (4, 6), the shape of self"),
    )


# -- GroupNormBackward -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", [("N", "C"), ("N", "HxW"), ("C", "HxW")])
def test_sizes_below_zero_are_refused_even_where_their_product_agrees(pair):
    """Section 1: two of them negative have the product of the elements; treated as 161002."""
    change = {n: -gn.good()[n] for n in pair}
    status, message = status_on("ascend910b3", gn.PHASE_ONE, gn.good(**change))
    assert (status, "it must be at least 0" in message) == (161002, True)


def test_data_of_channels_last_shape_is_read_as_n_c_hxw():
    """Section 1: the tensor's shape is free; (N, HxW, C) in shape is still N, C, HxW in order of the elements."""
    stream = aclnn.aclrtCreateStream()[1]
    values = gn.numbers(*gn.SIZES)
    n, c, hxw, _ = gn.SIZES
    outputs, arguments = gn.call_with(tensor, values, gn.SIZES, shape=(n, hxw, c))
    run(*gn.PHASES, stream, *arguments)
    for name, expected in gn.by_formula(*values).items():
        assert gn.near(outputs[name].array(), expected)
