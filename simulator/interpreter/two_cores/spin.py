"""A `while` that waits for memory which nobody changes any more: a hang, found at once and not at the step limit.

What a `while` does next follows from the values that it carries and from the memory that it reads. Where an iteration
leaves both as they were, as far as its condition depends on them, so does every further one. Nothing else can change that
memory meanwhile: programs that were begun run in step with this one, and the others begin here when it is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from ...errors import RunError
from ...ir.located_errors import at_line
from ...ir.pointer_roots import pointer_roots
from ...ir.program import Op, Program, Value, walk
from ..flat_pointers import FlatMemory
from ..tensors import Tensor, overlap
from ..values import Affine, Box, Opaque, Pointers, take

FIRST = 8  # iteration that is looked at, and then those of 16, 32, 64 ...
PASSES = ("sync", "send", "receive", "custom")  # what hands over to others, or may keep something of its own
WRITES = ("store", "atomic")
MOST_BYTES = 1 << 26  # of memory that is compared, where the loop writes to it


def is_due(iteration: int) -> bool:
    """Whether this iteration (from 0) of a `while` is looked at."""
    return iteration >= FIRST and not iteration & (iteration - 1)


class Condition(NamedTuple):
    """What that of a `while` depends on: values that the loop carries, by place, and what reads memory (by id).

    written: tensors by name that the loop writes to, of a loop that reads memory; None where they are not known, or others
    go on meanwhile.
    """

    carried: tuple[int, ...]
    reads: frozenset[int]
    written: frozenset[str] | None


class Spin:
    """One iteration of a `while`."""

    def __init__(self, state: Any, op: Op, carried: Sequence[Any], lanes: int) -> None:
        """state: the interpreter, with the programs in the loop. carried: before the iteration, in so many lanes."""
        self.state, self.op, self.lanes = state, op, lanes
        found = state.conditions.get(op.id)
        self.condition: Condition = found or state.conditions.setdefault(
            op.id, condition_of(state.program, op)
        )
        self.windows = self._windows()
        self.memory = None if self.windows is None else [w.tobytes() for w in self.windows]
        self.values = [copy(carried[k]) for k in self.condition.carried]

    def stands(self, carried: Sequence[Any], lanes: int) -> bool:
        """Whether the iteration left all as it was. carried: behind it."""
        if self.windows is None or self.memory is None or self.lanes != lanes:
            return False
        if not all(map(_same, self.values, (carried[k] for k in self.condition.carried))):
            return False
        return all(w.tobytes() == old for w, old in zip(self.windows, self.memory, strict=True))

    def _windows(self) -> list[np.ndarray] | None:
        """Memory that the loop may write to; None where it is not looked at."""
        names = self.condition.written
        if not names:
            return None if names is None else []
        found = [t for t in self.state.known.given if t.name in names and t.window is not None]
        size = sum(t.elements * t.dtype.itemsize for t in found)
        return None if size > MOST_BYTES else [t.window for t in found]

    def error(self, run_once: Any) -> RunError:
        """What is waited for, and why nobody changes it. run_once: runs the condition and the body once more."""
        state, site = self.state, self.state.site(self.op)
        reads = self._reads(run_once)
        others = len(state.programs) - 1
        who = f"{site.program(state.programs[0])}{f' and {others} others' if others else ''}"
        text = (
            f"hang in {who}: the loop never ends, as nothing that its condition depends on changes any more"
        )
        if not reads:
            return RunError(at_line(self.op.loc, f"{text}. Let the loop change it"))
        op, pointer, got = reads[0]
        why, stores = self._why(pointer.tensor)
        what = f"it waits for {_element(pointer, got)}, {why}"
        here = [at_line(o.loc, "stores to it") for o in stores]
        read = [at_line(op.loc, "reads it")] if op.loc.line != self.op.loc.line else []
        return RunError("\n".join([at_line(self.op.loc, f"{text}: {what}"), *read, *dict.fromkeys(here)]))

    def _reads(self, run_once: Any) -> list[tuple[Op, Pointers, Any]]:
        """(operation, its pointer, what it gives) of each read that the condition depends on."""
        found: list[tuple[Op, Pointers, Any]] = []
        wanted = self.condition.reads
        before = {name: getattr(self.state, name) for name in ("load", "atomic")}

        def spied(name: str) -> Any:
            def read(op: Op, pointer: Pointers, *rest: Any) -> Any:
                got = before[name](op, pointer, *rest)
                if op.id in wanted:
                    found.append((op, pointer, got))
                return got

            return read

        vars(self.state).update({name: spied(name) for name in before})
        try:
            run_once()
        finally:
            for name in before:
                del vars(self.state)[name]
        return found

    def _why(self, tensor: Tensor) -> tuple[str, list[Op]]:
        """Why the memory does not change, and what could change it."""
        stores = self._stores(tensor)
        inside = any(o.kind in WRITES for o in _inside(self.op))
        if not stores:
            where = " outside of the loop" if inside else ""
            return (
                f"and no program of the launch stores to it{where}: let one store to it before the wait",
                stores,
            )
        state = self.state
        own = self.op.attrs.get("core")
        if any(o.attrs.get("core") not in (None, own) for o in stores):
            return (
                "and the other core stores to it, but nothing says when: without a flag that it waits for, a program is "
                "run in the order of its source. Let the cores pass one (sync_block_set, sync_block_wait)",
                stores,
            )
        later = state.total * state.subs - state.begun
        if later > 0 or state.lanes_begun > len(state.active):
            return (
                "and only programs that are not that far could store to it: programs are run here one after another, in "
                "order. The device runs as many at once as it has cores, and hangs where the grid has more. Let programs "
                "wait for lower numbers only, or order them with al.sync_block_all, for which all of them are run at once",
                stores,
            )
        return "and no program is left that could store to it: let one store to it before the wait", stores

    def _stores(self, tensor: Tensor) -> list[Op]:
        exchange = self.state.exchange
        whole = self.state.program if exchange is None else exchange.whole
        anywhere = isinstance(tensor, FlatMemory)
        names = {t.name for t in self.state.known.given if anywhere or overlap(t, tensor)}
        roots, own = pointer_roots(whole), {o.id for o in _inside(self.op)}
        return [
            o
            for o in whole.walk()
            if o.kind in WRITES
            and o.id not in own
            and not names.isdisjoint(roots.get(o.operand(0).id) or names)
        ]


def _inside(op: Op) -> Iterator[Op]:
    return (o for region in op.regions for o in walk(region))


def condition_of(program: Program, op: Op) -> Condition:
    """What the condition of a `while` depends on, through all iterations: also what the loop writes, if it reads memory."""
    found, inside = _Slice(op), list(_inside(op))
    found.add(op.regions[0].yields[:1])
    written: frozenset[str] | None = None
    if not any(o.kind in PASSES for o in inside):
        written = _written(program, inside) if found.reads else frozenset()
    if found.reads:
        for o in inside:
            if any(x.kind in WRITES for x in (o, *_inside(o))):
                found.add_operation(o)
    return Condition(tuple(sorted(found.carried)), frozenset(found.reads), written)


def _written(program: Program, inside: list[Op]) -> frozenset[str] | None:
    writes = [o for o in inside if o.kind in WRITES]
    roots = pointer_roots(program) if writes else {}
    found = [roots.get(o.operand(0).id) for o in writes]
    return frozenset().union(*(x or () for x in found)) if all(found) else None


class _Slice:
    """Values of a loop that others depend on."""

    def __init__(self, op: Op) -> None:
        self.body = op.regions[1]
        self.makers = {
            v.id: o for o in _inside(op) for v in (*o.results, *(a for r in o.regions for a in r.args))
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
        every = (op, *_inside(op))
        self.reads.update(o.id for o in every if o.kind in ("load", "atomic"))
        return [v for o in every for v in (*o.args, *(y for r in o.regions for y in r.yields))]


def _same(a: Any, b: Any) -> bool:
    """Whether two values of the interpreter are the same to the bit; elements that nobody knows decide nothing, or the
    condition would not be known."""
    if isinstance(a, Opaque) and isinstance(b, Opaque):
        return True
    if isinstance(a, Pointers) and isinstance(b, Pointers):
        return a.tensor is b.tensor and _same(a.offsets, b.offsets)
    if isinstance(a, Affine) and isinstance(b, Affine):
        return _same(a.base, b.base) and all(map(_same, a.strides, b.strides))
    if isinstance(a, Box) and isinstance(b, Box):
        return all(map(_same, (*a.lows, *a.highs), (*b.lows, *b.highs)))
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return type(a) is type(b) and bool(a == b)


def _element(pointer: Pointers, got: Any) -> str:
    """What is read, of the first program: "element 3 of 'flag', which is 0"."""
    at: Any = take(pointer.offsets, np.zeros(1, np.int64))
    at = np.asarray(at.elements() if isinstance(at, Affine) else at).reshape(-1)
    low, high = int(at.min()), int(at.max())
    where = "memory" if isinstance(pointer.tensor, FlatMemory) else repr(pointer.tensor.name)
    if len(at) > 1:
        return f"elements {low} to {high} of {where}"
    value = "" if isinstance(got, Opaque) else f", which is {np.asarray(got).reshape(-1)[0]}"
    return f"element {low} of {where}{value}"
