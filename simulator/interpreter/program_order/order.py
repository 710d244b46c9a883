"""Whether programs of a grid may run at once, or must run one after another because they see each other's writes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ...ir.pointer_roots import pointer_roots
from ...ir.program import Op, Program, Region
from ...precision.dtypes import DType
from ..arguments import runtime_arguments
from ..backend import AddressBackend
from ..flat_pointers import FlatMemory
from ..interpreter import DEFAULT_STEP_LIMIT, DataDependentError, Interpreter
from ..lanes import lanes
from ..regions import can_add
from ..state import InterpreterState
from ..tensors import Tensor, overlap
from ..values import Affine, Box, Opaque, Pointers
from .spans import MAX_RUNS, Spans, meet_each_other, meet_others, runs_of
from .without_addresses import without_addresses

# Atomics whose effect does not depend on the order in which programs come.
COMMUTATIVE = ("and", "or", "xor", "max", "min")


class Order(NamedTuple):
    """Whether the result depends on the order of the programs, and if nothing but some writes makes it do so, which ones.

    waiting: atomics that only add and stores (by id), to tensors of which the kernel makes no other use: programs may run at
    once if these writes wait, and are made program by program when all have run. waiting_bytes: of the tiles that one
    program writes so, on average. Without `waiting` programs must run one by one where `depends`.
    """

    depends: bool
    waiting: frozenset[int] = frozenset()
    waiting_bytes: int = 0


def must_run_one_by_one(program: Program, grid: tuple[int, int, int], arguments: dict[str, Any]) -> bool:
    """True if the result depends on the order of the programs."""
    return find_order(program, grid, arguments).depends


def find_order(
    program: Program,
    grid: tuple[int, int, int],
    arguments: dict[str, Any],
    step_limit: int = DEFAULT_STEP_LIMIT,
) -> Order:
    """What a result owes to the order of the programs. Raises `RunError` for a loop of more iterations than `step_limit`.

    One atomic whose result is used, outside of loops and the only access to its tensor, does not need it: the elements of
    all programs are combined in the order of the programs.
    Programs that read and write the same memory, each in a part of its own (an update in place), may run at once: the
    parts are found by interpretation without values.
    """
    if grid == (1, 1, 1):
        return Order(False)
    if reaches_anything(program):
        return Order(True)
    shared = _shared(program, arguments)
    if not shared:
        return Order(False)
    touched = _Touched(shared, _only_written(program, arguments, shared))
    skipped = _apart_from(program, arguments, shared)
    interpreter = Interpreter(program, grid, touched, step_limit, skipped)
    total = grid[0] * grid[1] * grid[2]
    try:
        numbers = lanes(program, grid, np.arange(total))
        interpreter.run(numbers, runtime_arguments(program, arguments))
    except DataDependentError:
        return Order(True)
    if touched.unknown or touched.meet():
        return Order(True)
    if not touched.writes_meet():
        return Order(False)
    return (
        Order(True, frozenset(touched.writes), -(-touched.write_bytes // total))
        if touched.boxes
        else Order(True)
    )


def _only_written(program: Program, arguments: dict[str, Any], shared: set[int]) -> set[int]:
    """Shared tensors (by id) that the kernel only stores to; or of floats, only adds to, atomically and for no result."""
    uses = _uses(program)
    tensors = {n: t for n in uses if isinstance(t := arguments.get(n), Tensor) and id(t) in shared}

    def only(what: str, x: Tensor) -> bool:
        return all(set(uses[n]) == {what} for n, t in tensors.items() if t is x or overlap(t, x))

    def adds(x: Tensor) -> bool:
        return x.dtype.is_floating() and can_add(x) and only("add", x)

    return {id(t) for t in tensors.values() if only("store", t) or adds(t)}


def _apart_from(program: Program, arguments: dict[str, Any], shared: set[int]) -> set[int]:
    """Operations that say nothing of where the shared tensors are accessed."""
    names = {n for n, t in arguments.items() if isinstance(t, Tensor) and id(t) in shared}
    roots = pointer_roots(program)

    def matters(op: Op) -> bool:
        pointer = op.operand(0)
        found = roots.get(pointer.id)
        return not found or not names.isdisjoint(found)

    return without_addresses(program, matters)


def reaches_anything(program: Program) -> bool:
    """Whether pointers made of numbers are written through, or read while others are written."""
    roots = pointer_roots(program)
    rootless = [_what(op) for op, _ in _accesses(program.body, 1) if not roots.get(op.operand(0).id)]
    if not rootless:
        return False
    return any(op.kind in ("store", "atomic") for op in program.walk())


def directions(program: Program) -> dict[str, str]:
    """Tensor argument -> "in", "out" or "in out". An atomic whose result is not used is "out"."""
    out = program.directions
    for name, uses in () if out else _uses(program).items():
        read, written = bool({"load", "both"} & uses.keys()), bool(uses.keys() - {"load"})
        out[name] = " ".join([*(["in"] if read else []), *(["out"] if written else [])])
    return dict(out)


def _shared(program: Program, arguments: dict[str, Any]) -> set[int]:
    """Tensors (by id) in which programs could see each other: read and written, or written more than once.

    Arguments that overlap count as one tensor.
    """
    uses = _uses(program)
    tensors = {n: t for n in uses if isinstance(t := arguments.get(n), Tensor)}
    out: set[int] = set()
    for x in tensors.values():
        together: dict[str, int] = {}
        for b, y in tensors.items():
            if x is y or overlap(x, y):
                for what, times in uses[b].items():
                    together[what] = together.get(what, 0) + times
        if _may_see(together, x.dtype):
            out.add(id(x))
    return out


def _may_see(uses: dict[str, int], dtype: DType) -> bool:
    reads, writes, adds = (uses.get(x, 0) for x in ("load", "store", "add"))
    commuting, both = uses.get("commutative", 0), uses.get("both", 0)
    if both:
        return both > 1 or len(uses) > 1
    atomics = adds + commuting
    return bool(
        (reads and (writes or atomics))
        or (writes and atomics)
        or writes > 1
        or commuting > 1
        or (commuting and adds)
        or (adds > 1 and dtype.is_floating())
    )


def _uses(program: Program) -> dict[str, dict[str, int]]:
    """How often each parameter is loaded from, stored to, added to, or "both"; twice for what happens in a loop."""
    roots = pointer_roots(program)
    out: dict[str, dict[str, int]] = {}
    for op, times in _accesses(program.body, 1):
        for name in roots.get(op.operand(0).id, set()):
            uses = out.setdefault(name, {})
            uses[_what(op)] = uses.get(_what(op), 0) + times
    return out


def _accesses(region: Region, times: int) -> Iterator[tuple[Op, int]]:
    for op in region.ops:
        if op.kind in ("load", "store", "atomic"):
            yield op, times
        for inner in op.regions:
            yield from _accesses(inner, 2 if op.kind in ("for", "while") else times)


def _what(op: Op) -> str:
    if op.kind != "atomic":
        return op.kind
    if op.attrs["result_used"]:
        return "both"
    return "add" if op.name == "add" else "commutative" if op.name in COMMUTATIVE else "store"


class _Touched(AddressBackend):
    """Keeps what memory each program reads, stores to and adds to, in the shared tensors.

    written: shared tensors (by id) that the kernel only adds to, or only stores to.
    """

    def __init__(self, shared: set[int], written: set[int]) -> None:
        self.shared = shared
        self.written = written
        self.writes: set[int] = set()  # operations (by id) that write to tensors of `written`
        self.write_spans = Spans()
        self.write_bytes = 0
        self.boxes = True  # whether all of them are boxes of memory
        self.unknown = False
        self.spans = {what: Spans() for what in ("load", "store", "add", "commutative")}
        self.floating = False
        self.atomics: set[str] = set()

    def attach(self, interpreter: InterpreterState) -> None:
        super().attach(interpreter)
        self.boxes = interpreter.subs == 1

    def access(self, op: Op, pointer: Pointers, mask: Any) -> None:
        tensor, offsets = pointer.tensor, pointer.offsets
        if isinstance(tensor, FlatMemory):
            self.unknown = True
            return
        if id(tensor.whole) not in self.shared or self.unknown:
            return
        scalar = not op.operand(0).shape
        if isinstance(offsets, Opaque) or not (scalar or isinstance(offsets, Affine)):
            self.unknown = True
            return
        affine = offsets if isinstance(offsets, Affine) else Affine(offsets, (), ())
        if scalar and isinstance(mask, np.ndarray) and len(mask) == len(self.interpreter.active):
            affine, programs, mask = affine.take(np.flatnonzero(mask)), self.interpreter.programs[mask], True
        else:
            programs = self.interpreter.programs
        if id(tensor.whole) in self.written:
            self._add_write(op, tensor, affine, mask, programs)
            return
        if op.kind == "atomic":
            self.atomics.add(op.name)
        what = "store" if _what(op) == "both" else _what(op)
        self._add(self.spans[what], tensor, runs_of(affine, mask, programs))
        self.floating |= what == "add" and tensor.dtype.is_floating()

    def _add_write(self, op: Op, tensor: Tensor, affine: Affine, mask: Any, programs: np.ndarray) -> None:
        self.writes.add(op.id)
        self.write_bytes += len(programs) * math.prod(affine.shape) * tensor.dtype.host_dtype.itemsize
        plain = not affine.shape or mask is None or isinstance(mask, bool | Box)
        self.boxes &= plain and tensor is tensor.whole
        if self.write_spans.count <= MAX_RUNS:
            self._add(self.write_spans, tensor, runs_of(affine, mask, programs))

    def _add(self, spans: Spans, tensor: Tensor, runs: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
        program, low, high = runs
        size = tensor.dtype.itemsize
        start = tensor.address + tensor.origin * size
        spans.add(program, start + low * size, start + high * size)
        self.unknown |= sum(s.count for s in self.spans.values()) > MAX_RUNS

    def writes_meet(self) -> bool:
        """Whether two programs write to one address so, where their order matters; too many to tell may."""
        return self.write_spans.count > MAX_RUNS or meet_each_other(self.write_spans)

    def meet(self) -> bool:
        """Whether a program touches what another writes, so that their order matters."""
        load, store, add, commutative = (self.spans[x] for x in ("load", "store", "add", "commutative"))
        atomic = Spans()
        atomic.batches = [*add.batches, *commutative.batches]
        everything = Spans()
        everything.batches = [*load.batches, *atomic.batches]
        if meet_each_other(store) or meet_others(everything, store):
            return True
        if len(self.atomics) > 1 or (self.floating and meet_each_other(add)):
            return True  # rounding makes the order of additions matter
        return bool(atomic.batches and load.batches) and (
            meet_each_other(atomic) or meet_others(load, atomic)
        )
