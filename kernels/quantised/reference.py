"""Products of quantised numbers in float64: what their kernels are measured against."""

from __future__ import annotations

import numpy as np

from ..operator.parallel import float64
from ..operator.tensors import Arrays
from .quantise import unpack_int4


def real(stored: np.ndarray) -> np.ndarray:
    """Numbers of any type in float64."""
    return stored.astype(np.float64) if stored.dtype.kind in "iu" else float64(stored)


def product_in_float64(inputs: Arrays, transposed: bool = False) -> np.ndarray:
    """One product, before its rounding. transposed: whether weights lie as (N, K)."""
    x, weight = real(inputs["x"]), _whole_weights(inputs["weight"])
    weight = weight.T if transposed else weight
    bias = real(inputs["bias"]) if "bias" in inputs else 0.0
    if inputs["x"].dtype != np.int8:
        return np.asarray(x @ _real_weights(inputs, weight) + bias)
    scale = real(inputs["scale"])
    if scale.ndim == 2 and len(scale) > 1:
        out = _by_group(x, weight, scale)
    else:
        start = bias if "bias" in inputs and inputs["bias"].dtype == np.int32 else 0.0
        out, bias = (x @ weight + start) * scale.reshape(-1), 0.0 if np.ndim(start) else bias
    if "token_scale" in inputs:
        out = out * real(inputs["token_scale"])[:, None]
    return np.asarray(out + bias)


def _whole_weights(stored: np.ndarray) -> np.ndarray:
    return real(unpack_int4(stored) if stored.dtype == np.uint8 else stored)


def _real_weights(inputs: Arrays, weight: np.ndarray) -> np.ndarray:
    if "scale" not in inputs:
        return weight
    scale, offset = (real(inputs[n]) if n in inputs else np.zeros(1) for n in ("scale", "offset"))
    scale, offset = (
        np.repeat(s, len(weight) // len(s), axis=0) if s.ndim == 2 else s for s in (scale, offset)
    )
    return np.asarray((weight + offset) * scale)


def _by_group(x: np.ndarray, weight: np.ndarray, scale: np.ndarray) -> np.ndarray:
    deep = len(weight) // len(scale)
    parts = (
        x[:, g * deep : (g + 1) * deep] @ weight[g * deep : (g + 1) * deep] * s for g, s in enumerate(scale)
    )
    return np.asarray(sum(parts))
