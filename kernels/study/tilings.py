"""The tilings of a study's rows: one for all of them, so that times differ by the mode alone, or for each its own best."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...simulator.device import device
from ...simulator.errors import AscendtileError
from ...simulator.interpreter.tensors import Shape
from ...simulator.products import Product
from ..operator.messages import listed
from ..operator.operator import Operator
from ..operator.plan import PlanContext
from ..operator.tensors import Knobs
from ..running.fitting import fits, plan_that_fits
from .data import Data
from .results import ModeRow

TilingOf = Callable[[Mapping[str, Shape], Mapping[str, Any], str], Knobs]  # of inputs, options, cubeMathType


class Tilings:
    """asked: knobs of every row, or a function that gives each row's own."""

    def __init__(self, op: Operator, product: Product, asked: Knobs | TilingOf) -> None:
        self.op, self.product = op, product
        self.asked: Knobs = {} if callable(asked) else asked
        self.each: TilingOf | None = asked if callable(asked) else None
        self.shared: dict[str, Any] | None = None

    def share(self, data: Data, mode: str, dtype: str) -> None:
        """All rows take the tiling of this one, unless each has its own."""
        if self.each is None:
            used = self._used(data, mode, dtype, self.asked)
            again = self._used(data, mode, dtype, used)
            self.shared = {n: x for n, x in used.items() if again.get(n) == x}

    def of(self, data: Data, mode: str, dtype: str, grouped: bool) -> Knobs:
        """Every knob of a row. grouped: the mode adds parts of sums, and how many is its own matter.

        Where the shared tiling is refused or does not fit, and where the best is not searched, as operands are in blocks,
        the operator chooses one for the row.
        """
        if self.each is not None and not self.op.blocks(dtype):
            best = self.each(data.whole(self.op, dtype), data.options, mode)
            return self._used(data, mode, dtype, best)
        own = self.op.order_knobs if grouped else ()
        knobs = {n: x for n, x in (self.shared or {}).items() if n not in own or n in self.asked}
        try:
            return self._used(data, mode, dtype, knobs, must_fit=True)
        except AscendtileError:
            return self._used(data, mode, dtype, self.asked)

    def not_searched(self, rows: Iterable[ModeRow]) -> list[str]:
        """A note about rows that have no best tiling of their own among rows that have."""
        names = [r.name for r in rows if not r.status and self.op.blocks(r.dtype)] if self.each else []
        return (
            [f"not searched, as operands are in blocks; the operator chooses: {listed(names)}"]
            if names
            else []
        )

    def _used(
        self, data: Data, mode: str, dtype: str, knobs: Knobs, must_fit: bool = False
    ) -> dict[str, Any]:
        """The knobs as used with these; `BufferOverflowError` where they have to fit and do not."""
        tensors, options = data.whole(self.op, dtype), self.op.read_options(data.options)
        with device(self.product, cube_math_type=mode, values=False):
            self.op.check(tensors, options, self.product)
            context = PlanContext(self.product, False)
            plan = plan_that_fits(self.op, tensors, options, self.op.read_tiling(knobs), context)
            if must_fit and not fits(plan):
                raise AscendtileError(f"{self.op.name}: the tiling does not fit")
        known = {p.name for p in self.op.parameters}
        return {n: x for n, x in plan.used.items() if n in known}


def different_tilings(rows: Iterable[ModeRow], shared: Mapping[str, Any] | None) -> list[str]:
    """Notes about rows whose knobs are not those of the others, those with the same difference together."""
    groups: dict[str, list[str]] = {}
    for row in rows:
        names = () if shared is None or row.status else dict.fromkeys((*row.tiling, *shared))
        other = [f"{n}={row.tiling.get(n)}" for n in names if row.tiling.get(n) != (shared or {}).get(n)]
        if other:
            groups.setdefault(" ".join(other), []).append(row.name)
    return [f"another tiling, {text}: {listed(names)}" for text, names in groups.items()]
