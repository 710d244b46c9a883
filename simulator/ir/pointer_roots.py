"""Which parameters the pointers of a program come from."""

from __future__ import annotations

from typing import Any

from .program import Op, Program, Value


def pointer_roots(program: Program) -> dict[int, set[str]]:
    """For each pointer value, the parameters it may come from: found once for a program, and not to be changed."""
    if program.roots is None:
        program.roots = _found(program)
    return program.roots


def _found(program: Program) -> dict[int, set[str]]:
    out: dict[int, set[str]] = {v.id: {n} for n, v in program.params.items() if v.is_pointer}

    def flow(target: Value, sources: list[Value | None]) -> None:
        if target.is_pointer:
            out.setdefault(target.id, set()).update(*(out.get(s.id, set()) for s in sources if s is not None))

    known = -1
    while known != (known := sum(map(len, out.values()))):  # loops hand pointers back: until nothing is added
        for op in program.walk():
            _flow_op(op, flow)
    return out


def _flow_op(op: Op, flow: Any) -> None:
    first = 3 if op.kind == "for" else 0
    for k, r in enumerate(op.results):
        inner_values: list[Value | None] = [i.yields[k] for i in op.regions if k < len(i.yields)]
        flow(r, inner_values or list(op.args))
    if op.kind in ("for", "while"):
        for inner in op.regions:
            args = inner.args[1:] if op.kind == "for" else inner.args
            for k, a in enumerate(args):
                flow(a, [op.args[first + k], op.regions[-1].yields[k]])
