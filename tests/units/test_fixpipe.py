"""FIXP: casts, overflow in both modes, ReLU, quantisation, and what the two paths offer."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.units.cube import mmad
from ascendtile.simulator.units.fixpipe import fixpipe, output_path, read_scale

F32 = np.float32


def column(*values: float) -> Any:
    return np.array(values, F32)[:, None]


@pytest.mark.parametrize(
    ("target", "dtype", "path"),
    [("fp16", np.float16, "fixp"), ("fp16", np.float16, "vector"), ("bf16", ml_dtypes.bfloat16, "fixp")],
)
def test_casts_round_to_nearest_even(target: str, dtype: Any, path: str) -> None:
    acc = np.random.default_rng(1).standard_normal((40, 50)).astype(F32) * 100
    assert np.array_equal(fixpipe(acc, target, path=path), acc.astype(dtype).astype(F32))


def test_fp32_leaves_unchanged_and_is_a_copy() -> None:
    acc = column(np.nan, np.inf, -0.0, 1e-40, 3.4e38)
    result = fixpipe(acc, "fp32")
    assert np.array_equal(result.view(np.uint32), acc.view(np.uint32))
    assert not np.may_share_memory(result, acc)


@pytest.mark.parametrize(
    ("value", "ieee", "saturated"),
    [(65519.996, 65504, 65504), (65520, np.inf, 65504), (-1e9, -np.inf, -65504), (np.nan, np.nan, 0)],
)
def test_overflow_follows_the_mode(value: float, ieee: float, saturated: float) -> None:
    assert np.array_equal(fixpipe(column(value), "fp16"), column(ieee), equal_nan=True)
    assert fixpipe(column(value), "fp16", overflow="saturate")[0, 0] == saturated


def test_relu_after_the_cast() -> None:
    result = fixpipe(column(-3, -0.0, 2, np.nan, -np.inf, 1e9), "fp16", relu=True)[:, 0]
    assert np.array_equal(result, np.array([0, 0, 2, np.nan, 0, np.inf], F32), equal_nan=True)
    assert not np.signbit(result[:2]).any()
    assert fixpipe(np.array([[-7, 7]], np.int32), "int32", relu=True).tolist() == [[0, 7]]


def test_scale_is_read_as_19_bits() -> None:
    words = np.array([0x3F801FFF, 0x3F802000, 0xBF7FFFFF], np.uint32)
    assert read_scale(words.view(F32)).view(np.uint32).tolist() == [0x3F800000, 0x3F802000, 0xBF7FE000]
    acc = column(4096)
    assert fixpipe(acc.astype(np.int32), "fp16", scale=words.view(F32)[0])[0, 0] == 4096


@pytest.mark.parametrize("overflow", ["inf_nan", "saturate"])
def test_int32_to_fp16_saturates_in_either_mode(overflow: str) -> None:
    acc = np.array([[2**31 - 1, -(2**31), 3]], np.int32)
    assert fixpipe(acc, "fp16", scale=0.5, overflow=overflow).tolist() == [[65504, -65504, 1.5]]


def test_dequantisation_rounds_once() -> None:
    """2049 + 2^-14 is just above a tie of FP16, whose spacing is 2 there; float32 would make it the tie itself."""
    acc = np.array([[2049 * 2**14 + 1]], np.int32)
    assert fixpipe(acc, "fp16", scale=2.0**-14)[0, 0] == 2050
    assert fixpipe(acc - 1, "fp16", scale=2.0**-14)[0, 0] == 2048


def test_quantisation_to_int8_saturates() -> None:
    acc = np.array([[0.5, 1.5, 2.5, 1e9, -1e9, np.nan, -127.6]], F32)
    result = fixpipe(acc, "int8", scale=1.0)
    assert result.dtype == np.int8
    assert result.tolist() == [[0, 2, 2, 127, -128, 0, -128]]
    assert fixpipe(acc, "int8", scale=1.0, relu=True).tolist() == [[0, 2, 2, 127, 0, 0, 0]]
    assert fixpipe(np.array([[100, -300]], np.int32), "int8", scale=0.5).tolist() == [[50, -128]]


def test_one_scale_per_column() -> None:
    acc = np.full((2, 3), 8, np.int32)
    assert fixpipe(acc, "fp16", scale=[0.5, 1, 2]).tolist() == [[4, 8, 16]] * 2


def test_path_follows_what_the_cube_takes() -> None:
    assert output_path(("fp16", "int8")) == "vector"
    assert output_path(("fp16", "bf16", "fp32")) == "fixp"


@pytest.mark.parametrize(
    ("target", "options", "text"),
    [
        (
            "bf16",
            {"path": "vector"},
            "no conversion from fp32 to bf16 on path vector; there are fp32 to fp32",
        ),
        ("int32", {}, "no conversion from fp32 to int32"),
        ("int8", {}, "fp32 to int8 needs a scale"),
        ("fp16", {"scale": 2.0}, "fp32 to fp16 takes no scale"),
        ("int8", {"scale": [1, 2]}, r"scale is \(2,\); the rule is one, or one for each of 3 columns"),
        ("fp16", {"path": "mte"}, "path 'mte': known are fixp, vector"),
        ("fp16", {"overflow": "wrap"}, "overflow 'wrap': known are inf_nan, saturate"),
    ],
)
def test_refusals(target: str, options: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        fixpipe(np.zeros((2, 3), F32), target, **options)


def test_fp64_is_no_accumulator() -> None:
    with pytest.raises(UsageError, match="no conversion from float64 to fp16"):
        fixpipe(np.zeros((2, 3)), "fp16")


def test_int8_product_dequantised() -> None:
    random = np.random.default_rng(0)
    a, b = (random.integers(-128, 128, s).astype(np.int8) for s in ((6, 64), (64, 5)))
    result = fixpipe(mmad(a, b, operand="int8"), "fp16", scale=2.0**-8)
    exact = (a.astype(np.int64) @ b.astype(np.int64)) / 256
    assert np.array_equal(result, exact.astype(np.float16).astype(F32))
