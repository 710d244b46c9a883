"""Whether programs of a grid may run together, or must run one after another because they see each other's writes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..frontend.program import Op, Program, Value
from .memory import Tensor
from .run import runtime_arguments
from .values import OPAQUE, Affine, Box, Pointers
from .walker import DataDependentError, Walker


def must_run_one_by_one(program: Program, grid: tuple[int, int, int], arguments: dict[str, Any]) -> bool:
    """True if a program may read what another program writes, or uses the result of an atomic.

    Programs that read and write the same memory, each in a part of its own (an update in place), may run together: the
    parts are found by a walk without values.
    """
    if any(op.kind == "atomic" and op.attrs["result_used"] for op in program.walk()):
        return True
    shared = _read_and_written(program, arguments)
    if not shared or grid == (1, 1, 1):
        return False
    spans = _Spans(program, grid, shared)
    try:
        spans.walk(np.arange(grid[0] * grid[1] * grid[2]), runtime_arguments(program, arguments))
    except DataDependentError:
        return True
    return spans.unknown or spans.meet()


def _read_and_written(program: Program, arguments: dict[str, Any]) -> set[int]:
    """Addresses of the windows that are both read and written; arguments that overlap count as one."""
    roots = _roots(program)
    read = [t for n in _names(program, roots, ("load",)) if isinstance(t := arguments.get(n), Tensor)]
    written = [
        t for n in _names(program, roots, ("store", "atomic")) if isinstance(t := arguments.get(n), Tensor)
    ]
    return {id(x) for a in read for b in written if _overlap(a, b) for x in (a, b)}


def _overlap(a: Tensor, b: Tensor) -> bool:
    return (
        a.address < b.address + b.elements * b.dtype.itemsize
        and b.address < a.address + a.elements * a.dtype.itemsize
    )


def _roots(program: Program) -> dict[int, set[str]]:
    """For each pointer value, the parameters it may come from."""
    out: dict[int, set[str]] = {v.id: {n} for n, v in program.params.items() if v.is_pointer}

    def flow(target: Value, sources: list[Value | None]) -> None:
        if target.is_pointer:
            out.setdefault(target.id, set()).update(*(out.get(s.id, set()) for s in sources if s is not None))

    for _ in range(3):  # loops hand pointers back: a few passes reach the end of any chain in practice
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


def _names(program: Program, roots: dict[int, set[str]], kinds: tuple[str, ...]) -> set[str]:
    ops = (op for op in program.walk() if op.kind in kinds)
    return set().union(*(roots.get(op.args[0].id, set()) for op in ops if op.args[0] is not None), set())


class _Spans(Walker):
    """Walks without values and keeps, per program, the span of addresses it reads and writes in the shared tensors."""

    def __init__(self, program: Program, grid: tuple[int, int, int], shared: set[int]) -> None:
        super().__init__(program, grid)
        count = grid[0] * grid[1] * grid[2]
        self.shared = shared
        self.unknown = False
        self.low = {w: np.full(count, np.iinfo(np.int64).max) for w in ("read", "write")}
        self.high = {w: np.full(count, np.iinfo(np.int64).min) for w in ("read", "write")}

    def dense(self, op: Op, args: list[Any]) -> Any:
        return OPAQUE

    def load(self, op: Op, pointer: Pointers, mask: Any, other: Any) -> Any:
        self.note("read", pointer, mask)
        return OPAQUE

    def store(self, op: Op, pointer: Pointers, value: Any, mask: Any) -> None:
        self.note("write", pointer, mask)

    def atomic(self, op: Op, pointer: Pointers, value: Any, mask: Any) -> Any:
        return OPAQUE  # atomics without a result commute up to rounding and are applied in program order

    def note(self, what: str, pointer: Pointers, mask: Any) -> None:
        tensor = pointer.tensor
        if id(tensor) not in self.shared:
            return
        offsets = pointer.offsets if isinstance(pointer.offsets, Affine | int | np.ndarray) else None
        if offsets is None or (isinstance(offsets, np.ndarray) and not isinstance(mask, bool | type(None))):
            self.unknown = True
            return
        affine = offsets if isinstance(offsets, Affine) else Affine(offsets, (), ())
        low, high = _extent(affine, mask if isinstance(mask, Box) else None)
        size = tensor.dtype.itemsize
        start = tensor.address + tensor.origin * size
        used = self.active
        self.low[what][used] = np.minimum(self.low[what][used], start + low * size)
        self.high[what][used] = np.maximum(self.high[what][used], start + (high + 1) * size)

    def meet(self) -> bool:
        """Whether the read span of a program meets the write span of another."""
        order = np.argsort(self.low["write"], kind="stable")
        low, high = self.low["write"][order], self.high["write"][order]
        top = np.maximum.accumulate(high)
        if np.any(low[1:] < top[:-1]):
            return True  # writes of two programs meet: keep the order of the programs
        first = np.searchsorted(top, self.low["read"], side="right")
        last = np.searchsorted(low, self.high["read"], side="left")
        programs = np.arange(len(order))
        touched = last - first
        own = (touched == 1) & (order[np.minimum(first, len(order) - 1)] == programs)
        return bool(np.any((touched > 0) & ~own))


def _extent(affine: Affine, box: Box | None) -> tuple[Any, Any]:
    """Smallest and largest element offset, masked-out ones left out along each axis."""
    low, high = affine.base, affine.base
    for k, (s, n) in enumerate(zip(affine.strides, affine.shape, strict=True)):
        first = 0 if box is None else np.maximum(box.lows[k], 0)
        last = n - 1 if box is None else np.maximum(np.minimum(box.highs[k], n) - 1, first)
        ends = (s * first, s * last)
        low, high = low + np.minimum(*ends), high + np.maximum(*ends)
    return low, high
