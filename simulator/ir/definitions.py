"""Where values come from: the operation that makes each, and what loops and branches hand on."""

from __future__ import annotations

from collections.abc import Iterable

from .program import Op, Value


def makers(ops: Iterable[Op]) -> tuple[dict[int, Op], dict[int, list[int]]]:
    """By value: the operation without regions that makes it, and what it may be a copy of across regions."""
    made: dict[int, Op] = {}
    sources: dict[int, list[int]] = {}

    def copy(target: Value, *values: Value | None) -> None:
        sources.setdefault(target.id, []).extend(v.id for v in values if v is not None)

    for op in ops:
        if not op.regions:
            made.update((r.id, op) for r in op.results)
            continue
        first = 3 if op.kind == "for" else 0
        looped = op.kind in ("for", "while")
        for k, r in enumerate(op.results):
            # of a while, the first of what its condition hands back is the condition itself
            copy(r, *(region.yields[k] for region in op.regions if k < len(region.yields)))
            if looped:
                copy(r, op.args[first + k])
        for region in op.regions if looped else ():
            args = region.args[1:] if op.kind == "for" else region.args
            for k, a in enumerate(args):
                copy(a, op.args[first + k], op.regions[-1].yields[k])
    return made, sources
