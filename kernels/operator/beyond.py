"""Where an operator takes more than the vendor's document of it, and inputs whose values the product does not keep.

The documents are those that the operators were first written from; the vendor's newer ones have some of it. Both faces
say it: `OpResult.notes` and `OpResult.warnings` in Python, `executor.notes` in the C interface.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...simulator.device import Device
from ...simulator.numerics import choice
from ...simulator.products import Product
from .messages import listed

if TYPE_CHECKING:
    from .operator import Operator

A3_FAMILY = "Atlas A3"


@dataclass(frozen=True)
class Beyond:
    """What an operator takes on purpose and its document does not have.

    dtypes: types of tensors. a3: the Atlas A3 series. strided: tensors that are not contiguous.
    """

    dtypes: tuple[str, ...] = ()
    a3: bool = False
    strided: bool = False

    def notes(
        self, op: str, dtypes: Mapping[str, str], strided: Iterable[str], product: Product
    ) -> tuple[str, ...]:
        """A sentence for each point of this call. dtypes: of all tensors by name; strided: names of those that are."""
        wide, views = [n for n, d in dtypes.items() if d in self.dtypes], list(strided)
        found = []
        if wide:
            found.append(f"{listed(wide)} of type {listed(self.dtypes)}")
        if views and self.strided:
            found.append(f"{listed(views)} with strides")
        if self.a3 and product.text("product.family").startswith(A3_FAMILY):
            found.append(f"{product.name}, of the Atlas A3 series")
        return tuple(f"{op}: {words}: its document does not have it, newer ones do" for words in found)


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
    words = f"{op.name} on {machine.product.name}: {listed(odd)} with infinities or NaN"
    words += ", which is not supported there" if excluded else ""
    return (words + (": NaN counts as 0, infinity as the largest number" if saturates else ""),)
