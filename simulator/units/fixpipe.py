"""How accumulators leave L0C: cast, quantise, ReLU.

    fixpipe(acc, "fp16", overflow="saturate", relu=True)     # float32 on the FP16 grid
    fixpipe(acc, "int8", scale=0.05)                         # int8
    fixpipe(acc_int32, "fp16", scale=scales)                 # dequantisation; one scale per column

The order is that of the units in the platform configuration files: quantise and cast (pre_conv), then ReLU (pre_act).
Casts round to nearest, ties to even; there is no mode selector (vendor golden data use a plain cast). Products whose
L0C is emptied through the Vector unit have no BF16 there; its CAST_NONE rounds as FIXP does.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import UsageError
from ..precision.rounding import round_to, to_integer

Array = NDArray[Any]

# What each path makes of an accumulator: (accumulator, target) -> whether a scale is needed.
# FIXP: platform configuration, Intrinsic_fix_pipe_pre_conv_cast, and Ascend C "Fixpipe". Vector: "Cast", 910A and 310P.
_FIXP = {
    ("fp32", "fp32"): False,
    ("fp32", "fp16"): False,
    ("fp32", "bf16"): False,
    ("fp32", "int8"): True,
    ("int32", "int32"): False,
    ("int32", "fp16"): True,
    ("int32", "int8"): True,
}
CONVERSIONS = {"fixp": _FIXP, "vector": {pair: need for pair, need in _FIXP.items() if "bf16" not in pair}}


def output_path(cube_inputs: Collection[str]) -> str:
    """ "fixp" or "vector": FIXP casts exist where the Cube takes FP32 (platform configuration, f322f16)."""
    return "fixp" if "fp32" in cube_inputs else "vector"


def fixpipe(
    acc: Array,
    target: str,
    *,
    scale: ArrayLike | None = None,
    relu: bool = False,
    overflow: str = "inf_nan",
    path: str = "fixp",
) -> Array:
    """Accumulators as `target`: float32 arrays for fp32, fp16 and bf16, int8 or int32 arrays for those.

    acc: (..., M, N), float32 or int32. scale: FP32, one for all or (N,), read as 1+8+10 bits; the product with it is
    rounded once. overflow: of casts from FP32; INT32 to FP16 saturates in either mode. path: see `output_path`.
    """
    values = np.asarray(acc)
    _check(values, target, scale, path)
    if scale is not None:
        result = _quantised(values, np.asarray(scale), target)
    elif values.dtype == np.int32 or target == "fp32":
        result = values.copy()
    else:
        result = round_to(values, target, overflow=overflow)
    return _relu(result) if relu else result


def read_scale(scale: ArrayLike) -> NDArray[np.float32]:
    """FP32 scales as FIXP reads them: sign, 8 exponent bits, 10 mantissa bits; the low 13 bits are ignored."""
    words = np.array(scale, np.float32).view(np.uint32) & np.uint32(0xFFFFE000)
    return np.asarray(words).view(np.float32)


def _check(values: Array, target: str, scale: ArrayLike | None, path: str) -> None:
    if path not in CONVERSIONS:
        raise UsageError(f"fixpipe: path {path!r}: known are {', '.join(CONVERSIONS)}")
    source = {"float32": "fp32", "int32": "int32"}.get(values.dtype.name, values.dtype.name)
    needs_scale = CONVERSIONS[path].get((source, target))
    if needs_scale is None:
        known = ", ".join(f"{s} to {t}" for s, t in CONVERSIONS[path])
        raise UsageError(
            f"fixpipe: no conversion from {source} to {target} on path {path}; there are {known}"
        )
    if needs_scale != (scale is not None):
        rule = "needs a scale" if needs_scale else "takes no scale"
        raise UsageError(f"fixpipe: {source} to {target} {rule}")
    if scale is not None and np.shape(scale) not in ((), (1,), values.shape[-1:]):
        raise UsageError(
            f"fixpipe: scale is {np.shape(scale)}; the rule is one, or one for each of {values.shape[-1]} columns"
        )


def _quantised(values: Array, scale: Array, target: str) -> Array:
    """The product is exact in double: 32 bits of an accumulator times 11 bits of a scale."""
    with np.errstate(invalid="ignore"):
        product = values.astype(np.float64) * read_scale(scale)
    if target == "int8":
        return to_integer(product, "int8", "RINT")
    return round_to(product, target, overflow="saturate")


def _relu(values: Array) -> Array:
    """Negative values and minus zero become zero; NaN stays."""
    values[values <= 0] = 0
    return values
