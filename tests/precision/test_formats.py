"""Number formats: their figures against numpy, ml_dtypes and the vendor's constants."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.precision.formats import BOOL, FORMATS, HF32, TF32, get_format

FLOATS = {
    "fp16": np.finfo(np.float16),
    "bf16": ml_dtypes.finfo(ml_dtypes.bfloat16),
    "fp32": np.finfo(np.float32),
    "fp64": np.finfo(np.float64),
}


@pytest.mark.parametrize("name", FLOATS)
def test_floats_agree_with_the_libraries(name: str) -> None:
    fmt, info = FORMATS[name], FLOATS[name]
    assert (fmt.bits, fmt.exponent, fmt.mantissa) == (info.bits, info.iexp, info.nmant)
    assert (fmt.max, fmt.min) == (float(info.max), float(info.min))
    assert fmt.min_normal == float(info.smallest_normal)
    assert fmt.min_subnormal == float(info.smallest_subnormal)
    assert fmt.unit_roundoff == float(info.eps) / 2


@pytest.mark.parametrize("name", [n for n in FORMATS if "int" in n])
def test_integers_agree_with_numpy(name: str) -> None:
    fmt, info = FORMATS[name], ml_dtypes.iinfo(FORMATS[name].dtype)
    assert (fmt.bits, fmt.min, fmt.max) == (info.bits, info.min, info.max)
    assert not fmt.is_float


def test_hf32_has_the_constants_of_the_documents() -> None:
    assert np.float32(HF32.max).view(np.uint32) == 0x7F7FF000
    assert (HF32.bits, HF32.unit_roundoff, HF32.min_normal) == (20, 2.0**-12, 2.0**-126)
    assert HF32.ulp(1.0) == 2.0**-11
    assert (TF32.bits, TF32.mantissa) == (19, 10)


@pytest.mark.parametrize("name", ["fp16", "bf16", "fp32"])
def test_ulp_is_the_gap_to_the_next_number(name: str) -> None:
    fmt = FORMATS[name]
    x = np.array([1.0, 1.5, 2.0, 3.999, 1000.0, fmt.min_normal, 2 * fmt.min_normal]).astype(fmt.dtype)
    gap = np.nextafter(x, fmt.dtype.type(np.inf)).astype(np.float64) - x.astype(np.float64)
    assert np.array_equal(fmt.ulp(x.astype(np.float64)), gap)
    assert np.array_equal(fmt.ulp(-x.astype(np.float64)), gap)


@pytest.mark.parametrize("name", ["fp16", "bf16", "hf32", "fp32"])
def test_ulp_of_what_has_no_exponent(name: str) -> None:
    fmt = FORMATS[name]
    assert fmt.ulp([0.0, fmt.min_subnormal / 3]).tolist() == [fmt.min_subnormal] * 2
    assert np.isnan(fmt.ulp([np.inf, -np.inf, np.nan])).all()
    assert fmt.ulp(np.ones((2, 3))).shape == (2, 3)


def test_ulp_of_integers_is_one() -> None:
    assert FORMATS["int8"].ulp([0, 100]).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("which", "name"),
    [
        ("fp16", "fp16"),
        ("float16", "fp16"),
        ("torch.bfloat16", "bf16"),
        (np.float32, "fp32"),
        (np.dtype(">f2"), "fp16"),
        (ml_dtypes.bfloat16, "bf16"),
        (np.dtype(ml_dtypes.bfloat16), "bf16"),
        (np.bool_, "bool"),
        ("int1", "bool"),
        (HF32, "hf32"),
        (np.dtype("u4"), "uint32"),
    ],
    ids=str,
)
def test_lookup(which: Any, name: str) -> None:
    assert get_format(which).name == name


def test_unknown_formats_are_named_with_the_known() -> None:
    with pytest.raises(UsageError, match=r"unknown number format 'fp8e4': known are fp16, bf16, .*, bool$"):
        get_format("fp8e4")


def test_names_and_storage() -> None:
    assert all(str(fmt) == name for name, fmt in FORMATS.items())
    assert HF32.dtype == np.float32
    assert (BOOL.bits, BOOL.min, BOOL.max, BOOL.dtype) == (1, 0, 1, np.bool_)
