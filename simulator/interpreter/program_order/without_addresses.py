"""Finds operations that do not say where a program accesses memory, and that an interpreter may leave out."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...ir.definitions import makers
from ...ir.program import Op, Program, Value

ACCESSES = ("load", "store", "atomic")


def without_addresses(program: Program, matters: Callable[[Op], bool]) -> set[int]:
    """Operations (by id) on which neither control flow nor the pointer or mask of an access depends.

    matters: whether an access is one that is asked about. What has regions, or no result, always stays.
    """
    ops = list(program.walk())
    made, sources = makers(ops)
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
        op = made.get(vid)
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
