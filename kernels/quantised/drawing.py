"""Inputs of cases: activations and weights are drawn as floating-point numbers, and quantised as `quantise.py` says."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ... import simulator as sim
from ...simulator.errors import UsageError
from ...simulator.interpreter.tensors import Shape
from ...simulator.precision.rounding import encode
from ..operator.draw import Draw
from ..operator.tensors import Arrays, Sizes
from .quantise import pack_int4, quantised

OUTLIERS = "outliers"
# Channels of activations that are far larger than the others: about one in a hundred, up to 20 times (LLM.int8, arXiv
# 2208.07339, section 4: features above 6 where most stay below 3.5).
APART, LARGER = 128, 20.0

SIZES = {
    "m": "rows of x",
    "n": "columns of the result",
    "k": "length of the sums",
    "x_bits": "optional: 8 (int8) or 16 (the type of the run) bits of an element of x; 8 if left out",
    "w_bits": "optional: 8 or 4 bits of a weight; 8 if left out",
    "group": "optional: terms of a sum whose weights share a scale; left out: a column has one",
    "transposed": "optional: 1 for weights that lie as (n, k); left out: as (k, n)",
    "tokens": "optional: 1 for a scale of each row of an int8 x; left out: one of all, in the scales of columns",
}
ALLOWED = {"x_bits": (8, 16), "w_bits": (4, 8, 16), "tokens": (0, 1), "transposed": (0, 1)}


def read_sizes(op: str, sizes: Sizes) -> dict[str, int]:
    """All sizes as numbers, checked against each other."""
    found = {"x_bits": 8, "w_bits": 8, "group": 0, "tokens": 0, "transposed": 0}
    for name, x in sizes.items():
        if not isinstance(x, int):
            raise UsageError(f"{op}: size {name!r} must be one number, got {x}")
        found[name] = x
    for name, allowed in ALLOWED.items():
        if found[name] not in allowed:
            raise UsageError(
                f"{op}: size {name!r} is {found[name]}; it must be {' or '.join(map(str, allowed))}"
            )
    axis = "k" if found["transposed"] else "n"
    if found["w_bits"] == 4 and (found[axis] % 2 or found["x_bits"] == 8):
        raise UsageError(
            f"{op}: w_bits=4 needs x_bits=16 and an even {axis}, as a byte holds two weights of a row; got "
            f"x_bits={found['x_bits']} and {axis}={found[axis]}"
        )
    if found["group"] and found["k"] % found["group"]:
        raise UsageError(f"{op}: groups of {found['group']} do not divide the {found['k']} terms of a sum")
    if found["tokens"] and found["x_bits"] == 16:
        raise UsageError(f"{op}: tokens=1 is of an int8 x; got x_bits=16")
    return found


def described(s: Mapping[str, int], dtype: str, lead: tuple[int, ...] = ()) -> dict[str, Shape]:
    """Shapes of the inputs; lead: experts, whose weights and scales lie behind each other."""
    x8, packed = s["x_bits"] == 8, s["w_bits"] == 4
    rows, columns = (s["n"], s["k"]) if s["transposed"] else (s["k"], s["n"])
    weight = (*lead, rows, columns // 2 if packed else columns)
    kinds = {4: "uint8", 8: "int8"}
    shapes = {
        "x": sim.shape((s["m"], s["k"]), "int8" if x8 else dtype),
        "weight": sim.shape(weight, kinds.get(s["w_bits"], dtype)),
    }
    if s["w_bits"] < 16:
        groups = (s["k"] // s["group"],) if s["group"] else ()
        kind = "float32" if x8 and dtype == "float16" else dtype
        shapes["scale"] = sim.shape((*lead, *groups, s["n"]), kind)
    if s["tokens"]:
        shapes["token_scale"] = sim.shape((s["m"],), "float32")
    return shapes


def draw(shapes: Mapping[str, Shape], numbers: Draw) -> Arrays:
    """Activations, of which "outliers" makes some channels large, and weights, quantised with the scales that they have.

    Without scales of rows the one of x is multiplied into those of the columns.
    """
    x, tokens = _activations(shapes, numbers)
    found = {"x": x}
    scale = shapes.get("scale")
    if scale is None:
        return {**found, "weight": numbers.normal("weight", shapes["weight"], shapes["x"].shape[1] ** -0.5)}
    weight, scales = _weights(shapes, numbers)
    if tokens is not None and "token_scale" in shapes:
        found["token_scale"] = tokens
    elif tokens is not None:
        scales = scales * tokens
    found |= {"weight": weight, "scale": encode(scales.astype(np.float32), scale.dtype.name)}
    return {n: found[n] for n in shapes}


def _activations(shapes: Mapping[str, Shape], numbers: Draw) -> tuple[np.ndarray, np.ndarray | None]:
    """x, and the scales of its rows or of all of it where it is int8."""
    shape = shapes["x"]
    quantise = shape.dtype.name == "int8"
    wide = sim.shape(shape.shape, "float32") if quantise else shape
    real = _with_outliers(numbers, "x", wide)
    if not quantise:
        return real, None
    return quantised(real, 8, 1 if "token_scale" in shapes else None)


def _with_outliers(numbers: Draw, name: str, shape: Shape) -> np.ndarray:
    if numbers.distribution != OUTLIERS:
        return numbers.signal(name, shape)
    noise = numbers.normal(name, shape)
    noise[:, APART // 2 :: APART] *= noise.dtype.type(LARGER)
    return noise


def _weights(shapes: Mapping[str, Shape], numbers: Draw) -> tuple[np.ndarray, np.ndarray]:
    """Codes as they are stored, and scales, expert by expert."""
    shape, scale, k = shapes["weight"], shapes["scale"].shape, shapes["x"].shape[1]
    packed = shape.dtype.name == "uint8"
    dims = (*shape.shape[:-1], shape.shape[-1] * (2 if packed else 1))
    real = numbers.normal("weight", sim.shape(dims, "float32"), k**-0.5)
    groups = scale[-2] if len(scale) == len(dims) else 1
    axis = len(dims) - (2 if dims[-2] == k and scale[-1] == dims[-1] else 1)
    codes, scales = quantised(real, 4 if packed else 8, axis, k // groups if groups > 1 else 0)
    if groups > 1 and axis == len(dims) - 1:
        scales = np.swapaxes(scales, -1, -2)
    return (pack_int4(codes) if packed else codes), scales.reshape(scale)
