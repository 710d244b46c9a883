"""What a kernel does with explicit buffers that the device may not do as it looks, in words for its author."""

from __future__ import annotations

from ..frontend.program import Op, Region, Value
from .plan import Plan


def buffer_words(plan: Plan) -> None:
    """Warn of reads of buffers that nothing was written to, and of tensors used after their buffer was written again."""
    if plan.program.buffers:
        _region(plan, plan.program.body, {})


def _region(plan: Plan, region: Region, now: dict[int, Value]) -> None:
    """now: what each buffer (by its `alloc`) holds."""
    for op in region.ops:
        if not op.regions:
            _reads(plan, op, now)
        for inner in op.regions:
            _region(plan, inner, {**now, **_held(plan, tuple(inner.args))})
        now.update(_held(plan, op.results))


def _held(plan: Plan, values: tuple[Value, ...]) -> dict[int, Value]:
    buffers = plan.program.buffers
    return {buffers[v.id].id: v for v in values if v.id in buffers}


def _reads(plan: Plan, op: Op, now: dict[int, Value]) -> None:
    written = (
        op.kind == "move" and op.attrs["offsets"] is not None
    )  # its first operand is what it writes into
    for v in op.args[1 if written else 0 :]:
        root = None if v is None else plan.definitions.root(v)
        alloc = None if root is None else plan.program.buffers.get(root.id)
        if root is None or alloc is None:
            continue
        if alloc.results[0] is root:
            plan.warn(
                op,
                f"{root.name} is read, but nothing was written to it: on the device it holds what was there",
            )
        elif now.get(alloc.id, root) is not root:
            plan.warn(
                op,
                f"{root.name} was written again at line {now[alloc.id].loc.line}: used here is what was read before, on the "
                "device it may be what was written; read it again",
            )
