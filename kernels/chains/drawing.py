"""Numbers that a chain is given: seeded noise in float32, before any rounding, or arrays of the user's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ... import simulator as sim
from ...simulator.errors import UsageError
from ...simulator.interpreter.tensors import as_array
from ...simulator.precision.rounding import decode
from ..operator.draw import Draw
from ..operator.messages import near
from ..operator.tensors import Arrays
from .chain import Chain, ChainInput, dims_of


def drawn(chain: Chain, sizes: Mapping[str, int], numbers: Draw) -> Arrays:
    """Every input in float32."""
    return {x.name: _drawn(x, sizes, numbers) for x in chain.inputs}


def _drawn(x: ChainInput, sizes: Mapping[str, int], numbers: Draw) -> np.ndarray:
    like = sim.shape(dims_of(x.shape, sizes), "float32")
    if x.draw == "labels":
        return numbers.labels(x.name, like)
    if x.draw == "one_hot":
        highest = np.argmax(numbers.normal(x.name, like), axis=-1)
        return np.asarray(np.eye(like.shape[-1], dtype=np.float32)[highest])
    scale = x.scale / (sizes[x.fan] ** 0.5 if x.fan else 1.0)
    make = numbers.normal if x.draw == "normal" else numbers.signal
    return make(x.name, like, scale, x.center)


def given(chain: Chain, sizes: Mapping[str, int], inputs: Mapping[str, Any]) -> Arrays:
    """The user's arrays, float64 as they are and everything else in float32. Raises `UsageError`."""
    shapes = {x.name: dims_of(x.shape, sizes) for x in chain.inputs}
    for n in inputs:
        if n not in shapes:
            raise UsageError(f"the chain {chain.name} has no input {n!r}{near(n, shapes)}")
    missing = [n for n in shapes if n not in inputs]
    if missing:
        raise UsageError(f"the chain {chain.name} needs the input {missing[0]!r} {shapes[missing[0]]}")
    return {n: _wide(n, inputs[n], shape) for n, shape in shapes.items()}


def _wide(name: str, x: Any, shape: tuple[int, ...]) -> np.ndarray:
    array = as_array(name, x)
    if array is None or array.dtype.kind not in "fV":
        kind = type(x).__name__ if array is None else str(array.dtype)
        raise UsageError(f"input {name!r} is {kind}; give an array of floating-point numbers")
    if array.shape != shape:
        raise UsageError(
            f"input {name!r} has shape {array.shape}, these sizes make it {shape}; give --size, or sizes="
        )
    plain = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False)).reshape(shape)
    return plain if plain.dtype in (np.float32, np.float64) else decode(plain)
