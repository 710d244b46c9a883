"""Time of torch's operations on a product: of the vendor's kernels where validation has them, else the floor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....simulator.products import Product
from ..verdict import HostCost, ReferencePart, ReferenceTime
from .floors import least_us, nbytes
from .operation import HostOp, classify, counted
from .vendor import DTYPES, vendor_us

MOST_SIMULATED = (
    16  # different operations, those that move and multiply most; of the others the floor is told
)
FLOOR = "least time of its bytes and products"


def price(op: HostOp, product: Product, simulated: bool = True) -> ReferencePart:
    """What one operation takes in us with its launch; 0 of views and of memory that nobody writes.

    simulated: whether to ask for the vendor's kernel first.
    """
    if not op.bytes or classify(op) == "view":
        return ReferencePart(op=op.name, time_us=0.0, kind="floor", source="no work on the device")
    found = vendor_us(op, product) if simulated else None
    if found is not None:
        return ReferencePart(op=op.name, time_us=found[0], kind="vendor", source=found[1])
    return ReferencePart(op=op.name, time_us=_least(op, product), kind="floor", source=FLOOR)


def _least(op: HostOp, product: Product) -> float:
    written = min(op.bytes, sum(map(nbytes, op.outputs)))
    kind = DTYPES.get(op.inputs[0].dtype, "fp32") if op.inputs else "fp32"
    return least_us(product, op.bytes - written, written, op.flops, kind)


def prices(ops: Sequence[HostOp], product: Product) -> dict[HostOp, ReferencePart]:
    """Of each different operation; lines do not make a difference."""
    working = [op for op in counted(ops) if op.bytes]
    dearest = sorted(working, key=lambda op: -_least(op, product))[:MOST_SIMULATED]
    chosen = set(dearest)
    return {op: price(_anywhere(op), product, op in chosen) for op in counted(ops)}


def _anywhere(op: HostOp) -> HostOp:
    """The operation as it is remembered: at no line."""
    return replace(op, line=0)


def reference(ops: Sequence[HostOp], product: Product) -> ReferenceTime:
    """Time of a task's own operations, one launch after another; its parts are operations with what all calls of them take.

    What makes no work on the device is left out. Nothing of the host is in it, such as the dispatch of an operation.
    """
    each, counts = prices(ops, product), counted(ops)
    parts: dict[tuple[str, str, str], float] = {}
    for op, found in each.items():
        if found.time_us:
            key = found.op, found.kind, found.source
            parts[key] = parts.get(key, 0.0) + counts[op] * found.time_us
    told = tuple(
        ReferencePart(op=op, time_us=us, kind=kind, source=source)
        for (op, kind, source), us in sorted(parts.items(), key=lambda item: -item[1])
    )
    kinds = {part.kind for part in told}
    kind = kinds.pop() if len(kinds) == 1 else "mixed" if kinds else "floor"
    return ReferenceTime(time_us=sum(p.time_us for p in told), kind=kind, parts=told)


def host_costs(ops: Sequence[HostOp], product: Product) -> tuple[HostCost, ...]:
    """What an answer does beside its launches, dearest first: operations of one name and line together, with their time."""
    each, counts = prices(ops, product), counted(ops)
    rows: dict[tuple[str, int, str], tuple[int, float]] = {}
    for op, found in each.items():
        key = op.name, op.line, classify(op)
        count, us = rows.get(key, (0, 0.0))
        rows[key] = count + counts[op], us + counts[op] * found.time_us
    told = [
        HostCost(op=name, count=count, time_us=us, kind=kind, line=line or None)
        for (name, line, kind), (count, us) in rows.items()
    ]
    return tuple(sorted(told, key=lambda cost: (-cost.time_us, cost.line or 0, cost.op)))
