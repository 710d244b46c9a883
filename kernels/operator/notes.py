"""What both faces say of a call: `OpResult.notes` and `warnings` in Python, `executor.notes` in the C interface."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from ...simulator.device import Device
from ...simulator.numerics import choice
from ...simulator.products import Product
from .messages import listed
from .operator import Operator


def call_notes(
    op: Operator, dtypes: Mapping[str, str], strided: Iterable[str], product: Product
) -> tuple[str, ...]:
    """Notes of `Operator.beyond`; none for an operator without."""
    return op.beyond.notes(op.name, dtypes, strided, product) if op.beyond else ()


def value_warnings(op: Operator, arrays: Mapping[str, np.ndarray], machine: Device) -> tuple[str, ...]:
    """What becomes of NaN and infinities in inputs where the product does not keep them, or the document excludes them."""
    excluded = machine.product.integer("product.npu_arch") in op.finite_on
    saturates = choice(machine, "overflow_mode") == "saturate"
    if not (excluded or saturates):
        return ()
    odd = [n for n, x in arrays.items() if n not in op.without_influence and not np.isfinite(x).all()]
    if not odd:
        return ()
    warning = f"{op.name} on {machine.product.name}: {listed(odd)} with infinities or NaN"
    warning += ", which is not supported there" if excluded else ""
    return (warning + (": NaN counts as 0, infinity as the largest number" if saturates else ""),)
