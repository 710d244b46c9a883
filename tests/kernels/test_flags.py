"""Flags of the Python faces: what Python takes as true is not always what was meant."""

from __future__ import annotations

import numpy as np
import pytest

from ascendtile.kernels import (
    batch_norm_reduce_backward,
    bce_with_logits_backward,
    convolution,
    convolution_backward,
    get_operator,
    group_norm_backward,
    run_op,
)
from ascendtile.simulator import shape
from ascendtile.simulator.errors import RefusedError, UsageError

IMAGE, WEIGHT = shape((1, 2, 5, 5), "float16"), shape((2, 2, 3, 3), "float16")


def backward(**options):
    return convolution_backward(IMAGE, IMAGE, WEIGHT, padding=1, values=False, **options)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("given", [False, 0, "false", np.False_, np.int64(0)])
def test_every_way_to_say_no_means_no(given):
    """`bool("false")` is true: a text decides by what it says."""
    assert backward(transposed=given).run.options["transposed"] == "false"
    found = convolution(IMAGE, WEIGHT, padding=1, transposed=given, values=False)
    assert found.run.options["transposed"] == "false"


@pytest.mark.parametrize("given", ["no", "", 2, 0.5, None, [True]])
def test_what_is_no_flag_is_refused(given):
    with pytest.raises(RefusedError, match=r"transposed is .*; it must be True or False") as error:
        backward(transposed=given)
    assert error.value.status == 161002


@pytest.mark.parametrize(
    ("given", "status"), [(None, 161001), ("yes", 161002), (1, 161002), ((1, "x", 0), 161002)]
)
def test_masks_that_are_none(given, status):
    x = shape((2, 4, 3), "float32")
    rows = shape((2, 2), "float32")
    for call in (
        lambda: backward(output_mask=given),
        lambda: group_norm_backward(x, x, rows, rows, output_mask=given),
    ):
        with pytest.raises(RefusedError, match="output_mask") as error:
            call()
        assert error.value.status == status


def test_masks_are_bools_ones_or_arrays():
    for mask in ((True, False, 1), np.array([1, 0, 1], bool), [np.True_, "false", 1.0]):
        assert backward(output_mask=mask).run.options["output_mask"] == (1, 0, 1)


def test_flags_of_batch_norm():
    x, c = shape((2, 4, 3), "float32"), shape(4, "float32")
    with pytest.raises(RefusedError, match="weight_g is 'some'"):
        batch_norm_reduce_backward(x, x, c, c, weight_g="some", values=False)


def test_sizes_of_groups_that_do_not_divide_are_refused_before_numbers_are_drawn():
    for sizes, words in (
        ({"n": 2, "c": 5, "group": 2}, "C is 5, group is 2; group must be at least 1 and divide C"),
        ({"n": (2, 3), "c": 4, "group": 2}, "size 'n' is 2x3; it must be one number"),
    ):
        with pytest.raises(RefusedError, match=words) as error:
            run_op("group_norm_backward", case=sizes)
        assert error.value.status == 161002
        with pytest.raises(RefusedError, match=words):
            get_operator("group_norm_backward").shapes(sizes, "float16")


def test_modes_and_reductions_by_number():
    """The numbers of the C interface stand for the names; others are refused with the status of the page."""
    for mode, name in enumerate(("KEEP_DTYPE", "ALLOW_FP32_DOWN_PRECISION", "USE_FP16", "USE_HF32")):
        assert backward(cube_math_type=mode).run.cube_math_type == name
    for mode in (7, 4, -1, 1.5, "USE_TF32"):
        with pytest.raises(
            RefusedError, match=r"it must be 0 KEEP_DTYPE, 1 .*, 2 USE_FP16 or 3 USE_HF32$"
        ) as error:
            backward(cube_math_type=mode)
        assert error.value.status == 161002
    x = shape((2, 3), "float32")
    one = shape((1,), "float32")
    for number, name in enumerate(("none", "mean", "sum")):
        found = bce_with_logits_backward(one, x, x, reduction=number, values=False)
        assert found.run.options["reduction"] == name
    for wrong in (3, -1, 0.5, True):
        with pytest.raises(UsageError, match="'reduction' must be one of none, mean or sum"):
            bce_with_logits_backward(one, x, x, reduction=wrong, values=False)
