"""Arguments of a launch as the interpreter has them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from ..ir.program import Program
from ..precision import dtypes as ty
from .symbolic import wrap
from .tensors import Tensor
from .values import Pointers


def runtime_arguments(program: Program, arguments: dict[str, Any]) -> dict[str, Any]:
    """Values of the parameters as the interpreter has them."""
    out: dict[str, Any] = {}
    for name, v in program.params.items():
        x = arguments[name]
        if isinstance(x, Tensor):
            out[name] = Pointers(x, 0)
        elif v.dtype.is_floating():
            with np.errstate(over="ignore"):
                out[name] = np.full(1, x, v.number.host_dtype)
        elif v.dtype == ty.uint64:
            out[name] = wrap(x, 64, True)
        else:
            out[name] = x
    return out


def key_of_arguments(arguments: Mapping[str, Any]) -> Hashable:
    """Numbers, and tensors but for their elements; None if there is anything else."""
    if not all(isinstance(x, Tensor | bool | int | float) for x in arguments.values()):
        return None
    return tuple((name, _of(x)) for name, x in arguments.items())


def _of(x: Any) -> Hashable:
    if isinstance(x, Tensor):
        address = None if x.window is None else x.address
        return (address, x.origin, x.elements, x.dtype.name, x.shape)
    return (type(x).__name__, repr(x))
