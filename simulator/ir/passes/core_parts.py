"""The parts of a program that its Cube core and its Vector cores run, each as a program of its own.

A part holds the operations of its core, what they need of scalars and indices, and the control flow around them. Where it
uses a tile of the other core it receives it there, and the other part sends it: what the vendor's compiler does with
transfers and flags of its own.
"""

from __future__ import annotations

from dataclasses import replace

from ..liveness import read_by
from ..operations import operation
from ..program import Op, Program, Region, Value
from .split_cores import CUBE, VECTOR, Cores, barrier_cores


def parts(program: Program) -> dict[str, Program]:
    """ "cube" and "vector" -> the part that this core runs: found once for each program."""
    kept = vars(program)
    if "parts" not in kept:
        kept["parts"] = _parts(program)
    found: dict[str, Program] = kept["parts"]
    return found


def _parts(program: Program) -> dict[str, Program]:
    cores = Cores(program)
    needs = {core: _Needs(program, cores, core) for core in (CUBE, VECTOR)}
    out = {}
    for core, other in ((CUBE, VECTOR), (VECTOR, CUBE)):
        part = _Part(needs[core], needs[other].received, program.op_count)
        split = dict(program.split_builtins)
        if core == CUBE:
            split.pop("sub_vec_id", None)
        body = part.region(program.body)
        out[core] = replace(program, body=body, split_builtins=split, op_count=part.count).finish()
    return out


class _Needs:
    """What a core keeps of a program: operations and values, and which of these it is sent (all by id)."""

    def __init__(self, program: Program, cores: Cores, core: str) -> None:
        self.cores, self.core = cores, core
        self.at = {op.id: self._where(op) for op in program.walk() if not op.regions}
        self.ops: set[int] = set()
        self.values: set[int] = set()
        self.received: set[int] = set()
        known = -1
        while known != (known := len(self.ops) + len(self.values)):
            self._region(program.body)

    def _region(self, region: Region) -> bool:
        kept = [self._op(op) for op in reversed(region.ops)]  # what reads a value before what makes it
        return any(kept)

    def _op(self, op: Op) -> bool:
        if op.regions:
            return self._control(op)
        at = self.at[op.id]
        needed = any(r.id in self.values for r in op.results)
        if at not in ("", self.core):
            self.received.update(r.id for r in op.results if r.id in self.values)
            return needed
        if not (needed or at == self.core or operation(op).effect):
            return False
        self.ops.add(op.id)
        self._need(*op.args)
        return True

    def _where(self, op: Op) -> str:
        if op.kind == "sync" and op.name == "all":
            named = barrier_cores(op.attrs["mode"])
            return "" if len(named) > 1 else named[0]
        at = self.cores.of(op)
        return VECTOR if not at and op.kind in ("print", "assert") else at

    def _control(self, op: Op) -> bool:
        inside = [self._region(r) for r in op.regions]
        groups = carried_groups(op)
        self.received.difference_update(r.id for r in op.results)
        self.received.update(r.id for r in op.results if r.id in self.values and self._accumulates(op, r))
        kept = [k for k in range(len(groups)) if self.carries(op, k)]
        self.received.difference_update(op.results[k].id for k in kept)
        if not any(inside) and not kept:
            return any(r.id in self.received for r in op.results)
        self.ops.add(op.id)
        if op.kind == "while":
            self._need(op.regions[0].yields[0])
        else:
            self._need(*op.args[: 3 if op.kind == "for" else 1])
        for k in kept:
            self._need(*groups[k])
        return True

    def _accumulates(self, op: Op, r: Value) -> bool:
        """Whether a loop's result is an accumulator of products, seen from the Vector core: the whole is sent after it."""
        return self.core == VECTOR and op.kind == "for" and r.id in self.cores.products

    def carries(self, op: Op, k: int) -> bool:
        """Whether this core keeps result k of a loop or an `if`."""
        group = carried_groups(op)[k]
        if self._accumulates(op, op.results[k]):
            group = group[3:]
        return any(v.id in self.values for v in group)

    def _need(self, *values: Value | None) -> None:
        self.values.update(v.id for v in values if v is not None)


class _Part:
    """Copies a program, keeping what one core needs."""

    def __init__(self, needs: _Needs, sent: set[int], count: int) -> None:
        self.needs, self.sent, self.count = needs, sent, count

    def number(self) -> int:
        """Of an operation that the program does not have."""
        self.count += 1
        return self.count - 1

    def region(self, old: Region) -> Region:
        new = Region()
        new.args = list(old.args)
        new.yields = list(old.yields)
        due: list[Op] = []  # a tile of the other core is waited for where it is used first
        for op in old.ops:
            sent = tuple(r for r in op.results if r.id in self.needs.received)
            if sent:
                due.append(Op(self.number(), "receive", "", (), sent, {}, op.loc))
            if op.id not in self.needs.ops:
                continue
            read = read_by(op)
            new.ops += [o for o in due if any(r.id in read for r in o.results)]
            due = [o for o in due if not any(r.id in read for r in o.results)]
            new.ops.append(self._control(op) if op.regions else op)
            given = tuple(r for r in op.results if r.id in self.sent)
            if given:
                new.ops.append(Op(self.number(), "send", "", given, (), {}, op.loc))
        new.ops += due
        return new

    def _control(self, op: Op) -> Op:
        """With the carried values that this core needs."""
        kept = [k for k in range(len(op.results)) if self.needs.carries(op, k)]
        first = {"for": 3, "while": 0}.get(op.kind, 1)
        args = op.args[:first] if op.kind == "if" else (*op.args[:first], *(op.args[first + k] for k in kept))
        regions = []
        for i, old in enumerate(op.regions):
            new = self.region(old)
            if op.kind != "if":
                skip = 1 if op.kind == "for" else 0
                new.args = [*old.args[:skip], *(old.args[skip + k] for k in kept)]
            condition = op.kind == "while" and i == 0
            new.yields = list(old.yields) if condition else [old.yields[k] for k in kept]
            regions.append(new)
        results = tuple(op.results[k] for k in kept)
        return Op(op.id, op.kind, op.name, args, results, op.attrs, op.loc, tuple(regions))


def carried_groups(op: Op) -> list[tuple[Value, ...]]:
    """For each result of a loop or an `if`, all values that are needed if one of them is."""
    if op.kind == "if":
        return [(r, *(inner.yields[k] for inner in op.regions)) for k, r in enumerate(op.results)]
    first, skip = (3, 1) if op.kind == "for" else (0, 0)
    out = []
    for k, r in enumerate(op.results):
        initial = op.args[first + k]
        assert initial is not None
        args = (inner.args[skip + k] for inner in op.regions)
        out.append((r, initial, op.regions[-1].yields[k], *args))
    return out
