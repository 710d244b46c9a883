"""The best tiling of each row of a precision study."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..kernels.operator.operator import Operator
from ..simulator.interpreter.tensors import Shape
from ..simulator.products import Product
from .explore import explore


def best_tilings(
    what: str | Operator, product: str | Product | None = None, **options: Any
) -> Callable[[Mapping[str, Shape], Mapping[str, Any], str], dict[str, Any]]:
    """For `tiling=` of `precision_study` and `precision_sweep`: a function of inputs, options of the operator and
    cubeMathType that explores and gives the best knobs.

    product: that of the study; without, that of the device in force. options: of `explore`, such as `budget` or `space`.
    A row of which no tiling runs keeps what the operator chooses.
    """

    def best(inputs: Mapping[str, Shape], of_operator: Mapping[str, Any], mode: str) -> dict[str, Any]:
        given: dict[str, Any] = {"inputs": inputs, "options": of_operator, "cube_math_type": mode}
        found = explore(what, product=product, **given, **options).best
        return {} if found is None else {n: x for n, x in found.point.items() if x is not None}

    return best
