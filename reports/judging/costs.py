"""What a case costs beside its launches: host operations of the answer, the task's own operators, the floor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from ...simulator.products import Product
from .exchange import forms_in
from .judged_case import JudgedCase
from .pricing.floors import floor_us, nbytes
from .pricing.operation import HostOp, HostTensor
from .pricing.prices import host_costs, reference
from .verdict import HostCost, ReferencePart, ReferenceTime


@dataclass(frozen=True)
class CaseCost:
    """Of one call of one case. time_us: launches and host operations, None where the answer did not return."""

    launches_us: float | None
    host: tuple[HostCost, ...]
    reference: ReferenceTime | None
    floor_us: float | None

    @property
    def host_us(self) -> float:
        """Of all host operations."""
        return sum(x.time_us for x in self.host)

    @property
    def time_us(self) -> float | None:
        """All of the call."""
        return None if self.launches_us is None else self.launches_us + self.host_us


def cost_of(case: JudgedCase, product: Product) -> CaseCost:
    """What a case costs on a product."""
    form, returned = case.form, bool(case.calls) and case.end is None and not case.failed
    launches = sum(x.time_us for x in case.calls[0].launches) if returned else None
    host = host_costs(_host_ops(case), product) if returned else ()
    if form.ops is None or form.outputs is None:
        return CaseCost(launches, host, None, None)
    floor = floor_us(form.inputs, _written(case), form.ops, product, form.made)
    return CaseCost(launches, host, reference(form.ops, product), floor)


def _written(case: JudgedCase) -> list[HostTensor]:
    """The task's outputs, without those that the answer gives in fewer bytes, which some benchmarks let pass."""
    wanted = case.form.outputs or ()
    given = forms_in(case.calls[0].outputs) if case.calls and case.calls[0].outputs else [None] * len(wanted)
    sizes = [None if x is None else nbytes(HostTensor(x.shape, x.dtype)) for x in given]
    pairs = zip_longest(wanted, sizes[: len(wanted)])
    return [x for x, size in pairs if x is not None and (size is None or size >= nbytes(x))]


def _host_ops(case: JudgedCase) -> list[HostOp]:
    return [HostOp.from_json(op) for op in case.calls[0].host_ops]


def summed_reference(costs: Sequence[CaseCost]) -> ReferenceTime | None:
    """Of all cases; None where one of them has none."""
    found = [cost.reference for cost in costs if cost.reference is not None]
    if not found or len(found) < len(costs):
        return None
    parts: dict[tuple[str, str, str], float] = {}
    for x in (part for one in found for part in one.parts):
        key = x.op, x.kind, x.source
        parts[key] = parts.get(key, 0.0) + x.time_us
    rows = tuple(ReferencePart(op=op, kind=kind, source=s, time_us=us) for (op, kind, s), us in parts.items())
    kinds = {x.kind for x in found}
    kind = kinds.pop() if len(kinds) == 1 else "mixed"
    return ReferenceTime(time_us=sum(x.time_us for x in found), kind=kind, parts=rows)


def summed_host(costs: Sequence[CaseCost]) -> tuple[HostCost, ...]:
    """Host operations of all cases, dearest first."""
    rows: dict[tuple[str, str, int | None], tuple[int, float]] = {}
    for x in (x for cost in costs for x in cost.host):
        count, us = rows.get((x.op, x.kind, x.line), (0, 0.0))
        rows[x.op, x.kind, x.line] = count + x.count, us + x.time_us
    made = [
        HostCost(op=op, kind=kind, line=line, count=count, time_us=us)
        for (op, kind, line), (count, us) in rows.items()
    ]
    return tuple(sorted(made, key=lambda x: (-x.time_us, x.op, x.line or 0)))
