"""What the condition of a `while` depends on, through all iterations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from ...ir.pointer_roots import pointer_roots
from ...ir.program import Op, Program, Value, walk

PASSES = ("sync", "send", "receive", "custom")  # what hands over to others, or may keep something of its own
WRITES = ("store", "atomic")


class Condition(NamedTuple):
    """What that of a `while` depends on: values that the loop carries, by place, and what reads memory (by id).

    written: tensors by name that the loop writes to, of a loop that reads memory; None where they are not known, or others
    go on meanwhile.
    """

    carried: tuple[int, ...]
    reads: frozenset[int]
    written: frozenset[str] | None


def inside_of(op: Op) -> Iterator[Op]:
    return (o for region in op.regions for o in walk(region))


def reads_memory(program: Program, op: Op) -> bool:
    """Whether what a `while` does next depends on memory."""
    known = program.for_checks.setdefault("whiles", {})
    if op.id not in known:
        found = Slice(op)
        found.add(op.regions[0].yields[:1])
        known[op.id] = bool(found.reads)
    return bool(known[op.id])


def condition_of(
    program: Program, op: Op, sharing: Callable[[AbstractSet[str]], set[str]] = set
) -> Condition:
    """What the condition of a `while` depends on, through all iterations: also what the loop writes where it reads.

    sharing: the arguments that share memory with those of these names.
    """
    found, inside = Slice(op), list(inside_of(op))
    found.add(op.regions[0].yields[:1])
    written: frozenset[str] | None = frozenset()
    while True:
        reads = [o for o in inside if o.id in found.reads]
        read = _named(program, reads)
        near = None if read is None else sharing(read)
        writes = [o for o in inside if reads and o.kind in WRITES and _meets(program, o, near)]
        written = _named(program, writes)
        for o in inside:
            if any(x in writes for x in (o, *inside_of(o))):
                found.add_operation(o)
        if len(found.reads) == len(reads):
            break
    if any(o.kind in PASSES for o in inside):
        written = None
    return Condition(tuple(sorted(found.carried)), frozenset(found.reads), written)


def _named(program: Program, ops: list[Op]) -> frozenset[str] | None:
    """The arguments that these access; None where one goes to an address that comes from none."""
    roots = pointer_roots(program) if ops else {}
    found = [roots.get(o.operand(0).id) for o in ops]
    return frozenset().union(*(x or () for x in found)) if all(found) else None


def _meets(program: Program, op: Op, names: AbstractSet[str] | None) -> bool:
    found = pointer_roots(program).get(op.operand(0).id)
    return names is None or not found or not names.isdisjoint(found)


class Slice:
    """Values of a loop that others depend on."""

    def __init__(self, op: Op) -> None:
        self.body = op.regions[1]
        self.makers = {
            v.id: o for o in inside_of(op) for v in (*o.results, *(a for r in o.regions for a in r.args))
        }
        self.places = {a.id: k for region in op.regions for k, a in enumerate(region.args)}
        self.seen: set[int] = set()
        self.carried: set[int] = set()
        self.reads: set[int] = set()

    def add(self, values: Iterable[Value | None]) -> None:
        """These values, and what they depend on."""
        todo = list(values)
        while todo:
            v = todo.pop()
            if v is None or v.id in self.seen:
                continue
            self.seen.add(v.id)
            if v.id in self.places:
                self.carried.add(self.places[v.id])
                todo.append(self.body.yields[self.places[v.id]])
            elif v.id in self.makers:
                todo += self._operands(self.makers[v.id])

    def add_operation(self, op: Op) -> None:
        """What an operation does depends on these."""
        self.add(self._operands(op))

    def _operands(self, op: Op) -> list[Value | None]:
        """Of an operation with regions those of all inside of it."""
        every = (op, *inside_of(op))
        self.reads.update(o.id for o in every if o.kind in ("load", "atomic"))
        return [v for o in every for v in (*o.args, *(y for r in o.regions for y in r.yields))]
