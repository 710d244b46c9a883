"""Loops in which an atomic hands out the work: a program goes on with whatever number it draws.

Which program gets which number is chance, so two numbers that one program draws in a run may go to two on the device.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .definitions import makers
from .program import Op, Program, Region, Value

OWN = ("program_id", "sub_vec_id")  # tell programs apart


class WorkQueues(NamedTuple):
    """draws: atomics (by id) that hand out numbers. begins: those before a loop, which its first turn goes by. accesses:
    loads and stores (by id) whose address, mask and branch depend on the number at most, not on the program.
    """

    draws: frozenset[int]
    begins: frozenset[int]
    accesses: frozenset[int]


NO_QUEUE = WorkQueues(frozenset(), frozenset(), frozenset())


class _Inner(NamedTuple):
    """An operation in the body of a loop: its place there, and the conditions of what it stands in."""

    op: Op
    place: int
    conditions: tuple[Value, ...]


def work_queues(program: Program) -> WorkQueues:
    """The queues of a kernel.

    A scalar `atomic_add` in a loop hands out work if addresses of the loop depend on its result, and if all loads and
    stores of the loop stand before it, or all behind it. Elsewhere it may count what was found.
    """
    trail = _Trail(program)
    found = [_queue(loop, outside, trail) for loop, outside in _loops(program.body, ())]
    return WorkQueues(*(frozenset().union(*column) for column in zip(NO_QUEUE, *found, strict=True)))


def _loops(region: Region, conditions: tuple[Value, ...]) -> Iterator[tuple[Op, tuple[Value, ...]]]:
    for op in region.ops:
        inner = (*conditions, *_conditions(op))
        if op.kind in ("for", "while"):
            yield op, inner
        for r in op.regions:
            yield from _loops(r, inner)


def _conditions(op: Op) -> tuple[Value, ...]:
    """What decides how often the regions of an operation are run."""
    if op.kind == "while":
        return (op.regions[0].yields[0],)
    return tuple(v for v in op.args[: {"if": 1, "for": 3}.get(op.kind, 0)] if v is not None)


def _inside(region: Region, conditions: tuple[Value, ...], place: int = -1) -> Iterator[_Inner]:
    for k, op in enumerate(region.ops):
        here = k if place < 0 else place
        yield _Inner(op, here, conditions)
        for r in op.regions:
            yield from _inside(r, (*conditions, *_conditions(op)), here)


def _queue(loop: Op, outside: tuple[Value, ...], trail: _Trail) -> WorkQueues:
    inner = list(_inside(loop.regions[-1], outside))
    plain = [x for x in inner if x.op.kind in ("load", "store")]
    drawn = {x.op.id: x.place for x in inner if _hands_out(x.op)}
    asked = {"load": 1, "store": 2}  # the operand that is the mask
    behind = {
        x.op.id: trail.behind([x.op.operand(0), x.op.args[asked[x.op.kind]], *x.conditions]) for x in plain
    }
    draws = {n for n in drawn if any(n in found for found in behind.values())}
    places = [x.place for x in plain]
    if not draws or not all(drawn[n] < min(places) or drawn[n] > max(places) for n in draws):
        return NO_QUEUE
    before = (trail.made.get(v.id) for v in loop.args if v is not None)
    begins = {op.id for op in before if op is not None and _hands_out(op)}
    own = trail.own - begins - {x.op.id for x in inner if x.op.kind == "atomic"}
    accesses = frozenset(n for n, found in behind.items() if not found & own)
    return WorkQueues(frozenset(draws | begins), frozenset(begins), accesses)


def _hands_out(op: Op) -> bool:
    return (
        op.kind == "atomic" and op.name == "add" and bool(op.attrs["result_used"]) and not op.operand(0).shape
    )


class _Trail:
    """Goes back from values, through loads and what loops and branches hand on. own: what differs between programs."""

    def __init__(self, program: Program) -> None:
        ops = list(program.walk())
        self.made, self.sources = makers(ops)
        self.deciding = {r.id: op.operand(0) for op in ops if op.kind == "if" for r in op.results}
        self.own = {op.id for op in ops if op.kind in (*OWN, "atomic")}

    def behind(self, values: list[Value | None]) -> set[int]:
        """Operations (by id) that values depend on."""
        todo = [v.id for v in values if v is not None]
        seen: set[int] = set()
        found: set[int] = set()
        while todo:
            n = todo.pop()
            if n in seen:
                continue
            seen.add(n)
            todo += self.sources.get(n, ())
            if n in self.deciding:
                todo.append(self.deciding[n].id)
            if n in self.made:
                found.add(self.made[n].id)
                todo += [v.id for v in self.made[n].args if v is not None]
        return found
