"""cubeMathType as a user gives it: the name, or the number that the C interface takes."""

from __future__ import annotations

from typing import Any

from ...simulator.device import CUBE_MATH_TYPES
from ...simulator.products import Product
from .messages import listed
from .operator import Operator
from .parameter import whole
from .refusing import refuse
from .tensors import Tensors, dtype_name


def idle_mode(op: Operator, tensors: Tensors, product: Product, mode: str) -> tuple[str, ...]:
    """A note where an operator of the Cube does what it does with KEEP_DTYPE, and no warning of the mode says so."""
    keep = CUBE_MATH_TYPES[0]
    if op.resolve is None or mode == keep:
        return ()
    found = op.resolve(tensors, product, mode)
    if found.warning or found != op.resolve(tensors, product, keep):
        return ()
    kinds = listed(dict.fromkeys(dtype_name(tensors[n]) for n in op.required))
    why = f"with inputs of {kinds} the Cube multiplies in {found.operand}, as with {keep}"
    return (f"cube_math_type {mode} has no effect: {why}",)


def mode_name(op: Operator, given: Any) -> Any:
    """The name of a cubeMathType; `RefusedError` (161002) for one that the interface of an operator of the Cube lacks.

    What is no mode goes on as it is for operators without the Cube: the device refuses it.
    """
    if given in CUBE_MATH_TYPES:
        return given
    number, known = whole(given), CUBE_MATH_TYPES[: op.modes]
    if number is not None and 0 <= number < len(known):
        return known[number]
    if op.resolve is None:
        return given
    names = listed([f"{n} {name}" for n, name in enumerate(known)], "or")
    raise refuse(f"{op.name}: cube_math_type is {given!r}; it must be {names}")
