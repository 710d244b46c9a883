"""Finds operations that do not say where a program accesses memory, and that an interpreter may leave out."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...ir.program import Op, Program, Value

ACCESSES = ("load", "store", "atomic")


def without_addresses(program: Program, matters: Callable[[Op], bool]) -> set[int]:
    """Operations (by id) on which neither control flow nor the pointer or mask of an access depends.

    matters: whether an access is one that is asked about. What has regions, or no result, always stays.
    """
    ops = list(program.walk())
    makers, sources = _makers(ops)
    kept = [op for op in ops if op.regions or not op.results or (op.kind in ACCESSES and matters(op))]
    kept = [op for op in kept if op.kind != "store" or matters(op)]
    wanted = [v for op in kept for v in _addresses(op)]
    stay = {op.id for op in kept}
    seen: set[int] = set()
    while wanted:
        vid = wanted.pop()
        if vid in seen:
            continue
        seen.add(vid)
        wanted.extend(sources.get(vid, ()))
        op = makers.get(vid)
        if op is not None and op.id not in stay:
            stay.add(op.id)
            wanted.extend(v.id for v in op.args if v is not None)
    return {op.id for op in ops} - stay


def _addresses(op: Op) -> Iterator[int]:
    """What an operation that stays needs: of an access, pointer and mask; of a loop, bounds; of a branch, all."""
    args: tuple[Value | None, ...] = op.args
    if op.kind == "load":
        args = op.args[:2]
    elif op.kind in ("store", "atomic"):
        args = (op.args[0], *op.args[2:])
    elif op.kind == "for":
        args = op.args[:3]
    elif op.kind == "while":
        args = (*op.regions[0].yields[:1],)
    yield from (v.id for v in args if v is not None)


def _makers(ops: list[Op]) -> tuple[dict[int, Op], dict[int, list[int]]]:
    """By value: the operation without regions that makes it, and what it may be a copy of across regions."""
    makers: dict[int, Op] = {}
    sources: dict[int, list[int]] = {}

    def copy(target: Value, *values: Value | None) -> None:
        sources.setdefault(target.id, []).extend(v.id for v in values if v is not None)

    for op in ops:
        if not op.regions:
            makers.update((r.id, op) for r in op.results)
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
    return makers, sources
