"""cubeMathType as a user gives it: the name, or the number that the C interface takes."""

from __future__ import annotations

from typing import Any

from ...simulator.device import CUBE_MATH_TYPES
from .messages import listed
from .operator import Operator
from .parameter import whole
from .refusing import refuse


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
