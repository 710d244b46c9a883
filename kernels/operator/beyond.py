"""Where an operator takes more than the vendor's document of it.

The documents are those that the operators were first written from; the vendor's newer ones have some of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...simulator.products import Product
from .messages import listed

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
        return tuple(f"{op}: {what}: its document does not have it, newer ones do" for what in found)
