"""What lanes store to, and load from, found without values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ...interpreter.backend import AddressBackend
from ...interpreter.faults import place
from ...interpreter.flat_pointers import FlatMemory
from ...interpreter.program_order.loop_lanes import ChosenLanes, LoopLanes
from ...interpreter.program_order.spans import MAX_RUNS, runs_of
from ...interpreter.state import DataDependentError, InterpreterState
from ...interpreter.tensors import Tensor
from ...interpreter.values import OPAQUE, Affine, Box, Opaque, Pointers, take
from ...ir.program import Op, Program
from ...units.vector import Numerics
from ..numpy_backend import NumpyBackend
from .memory_runs import MemoryRuns

MOST_ELEMENTS = 1 << 24  # of one access that are looked at one by one


class Writes(NamedTuple):
    """Stores that reach wanted memory: of each row of a tile the lane, and which wanted runs it meets, [first, last)."""

    op: Op
    lanes: np.ndarray
    programs: np.ndarray
    first: np.ndarray
    last: np.ndarray


class KnownIndices(AddressBackend):
    """Computes what follows from numbers of programs and arguments alone, as far as it is not too much."""

    interpreter: LoopLanes

    def __init__(self, program: Program, grid: tuple[int, int, int]) -> None:
        super().__init__()
        self.elements = NumpyBackend(program, grid, Numerics())
        self.too_many = False  # whether something was not computed because it has too many elements

    def attach(self, interpreter: InterpreterState) -> None:
        super().attach(interpreter)
        self.elements.attach(interpreter)

    def dense(self, op: Op, args: list[Any]) -> Any:
        if any(isinstance(x, Opaque) for x in args):
            return OPAQUE
        if len(self.interpreter.active) * op.results[0].numel > MOST_ELEMENTS:
            self.too_many = True
            return OPAQUE
        return self.elements.dense(op, args)


class StoresTo(KnownIndices):
    """Finds the stores and atomics that reach wanted memory."""

    def __init__(self, program: Program, grid: tuple[int, int, int], wanted: MemoryRuns) -> None:
        super().__init__(program, grid)
        self.wanted = wanted
        self.writes: list[Writes] = []

    def access(self, op: Op, pointer: Pointers, mask: Any) -> None:
        if op.kind == "load":
            return
        lanes, programs = self.interpreter.lanes, self.interpreter.programs
        near = self._near(pointer, mask, len(programs))
        rows = len(near) * op.operand(0).numel // max((1, *op.operand(0).shape))
        if rows > MAX_RUNS:  # `runs_of` would take whole tiles for their hulls
            self.too_many = True
            raise DataDependentError(
                f"{place(op)}: {rows} rows of tiles lie near what is wanted, over {MAX_RUNS}"
            )
        self.too_many |= len(near) * op.operand(0).numel > MOST_ELEMENTS
        row, low, high = byte_runs(op, pointer.take(near), take(mask, near), len(near))
        first, last = self.wanted.met(low, high)
        hit = first < last
        if hit.any():
            index = near[row[hit]]
            self.writes.append(Writes(op, lanes[index], programs[index], first[hit], last[hit]))

    def _near(self, pointer: Pointers, mask: Any, count: int) -> np.ndarray:
        """Lanes of which the whole tile, its mask left out, spans some of what is wanted."""
        if not isinstance(pointer.offsets, Affine) or isinstance(pointer.tensor, FlatMemory):
            return np.arange(count)
        low = high = np.broadcast_to(pointer.offsets.base + pointer.tensor.origin, count)
        for s, n in zip(pointer.offsets.strides, pointer.offsets.shape, strict=True):
            low, high = low + np.minimum(0, s * (n - 1)), high + np.maximum(0, s * (n - 1))
        first, last = self.wanted.met(*_addresses(pointer.tensor, low, high + 1))
        return np.flatnonzero(first < last)


class SomeStores(AddressBackend):
    """Draws lanes out of those that reach each store: the first, the last, and `count` others."""

    interpreter: LoopLanes

    def __init__(self, count: int, draw: np.random.Generator) -> None:
        super().__init__()
        self.count, self.draw = count, draw
        self.writes: list[Writes] = []

    def access(self, op: Op, pointer: Pointers, mask: Any) -> None:
        lanes = self.interpreter.lanes
        if op.kind != "load" and len(lanes):
            some = np.r_[0, len(lanes) - 1, self.draw.integers(0, len(lanes), self.count)]
            every = np.arange(len(some))
            self.writes.append(Writes(op, lanes[some], self.interpreter.programs[some], every, every + 1))


class Stored(KnownIndices):
    """Finds the memory that is stored to."""

    def __init__(self, program: Program, grid: tuple[int, int, int]) -> None:
        super().__init__(program, grid)
        self.runs: list[tuple[np.ndarray, np.ndarray]] = []

    def access(self, op: Op, pointer: Pointers, mask: Any) -> None:
        if op.kind != "load":
            _, low, high = byte_runs(op, pointer, mask, len(self.interpreter.programs))
            self.runs.append((low, high))


class LoadsFrom(KnownIndices):
    """Finds what is loaded from some tensors' memory; atomics load what they change."""

    def __init__(self, program: Program, grid: tuple[int, int, int], among: MemoryRuns) -> None:
        super().__init__(program, grid)
        self.among = among
        self.runs: list[tuple[np.ndarray, np.ndarray]] = []

    def access(self, op: Op, pointer: Pointers, mask: Any) -> None:
        tensor = pointer.tensor
        if op.kind == "store" or not len(self.among):
            return
        if not isinstance(tensor, FlatMemory):
            first, last = self.among.met(
                *_addresses(tensor, np.zeros(1, np.int64), np.array([tensor.elements]))
            )
            if first[0] == last[0]:
                return
        _, low, high = byte_runs(op, pointer, mask, len(self.interpreter.programs))
        self.runs.append((low, high))


def byte_runs(op: Op, pointer: Pointers, mask: Any, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(place of the lane, low, high) of the bytes that an access of `count` lanes reaches."""
    tensor, offsets = pointer.tensor, pointer.offsets
    if isinstance(tensor, FlatMemory) or isinstance(offsets, Opaque) or isinstance(mask, Opaque):
        raise DataDependentError(
            f"{place(op)}: where the {op.kind} goes depends on data, or on addresses as numbers"
        )
    scalar = not op.operand(0).shape
    if scalar and isinstance(mask, np.ndarray) and len(mask) == count:
        chosen = np.flatnonzero(mask)
        row, low, high = byte_runs(op, pointer.take(chosen), None, len(chosen))
        return chosen[row], low, high
    boxes = mask is None or isinstance(mask, bool | Box)
    if boxes and (scalar or isinstance(offsets, Affine)):
        affine = offsets if isinstance(offsets, Affine) else Affine(offsets, (), ())
        row, low, high = runs_of(affine, mask, np.arange(count))
    else:
        row, low, high = _elements(op, offsets, mask, count)
    return row, *_addresses(tensor, low + tensor.origin, high + tensor.origin)


def _elements(op: Op, offsets: Any, mask: Any, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of an access whose addresses or mask are tables, element by element."""
    if count * op.operand(0).numel > MOST_ELEMENTS:
        raise DataDependentError(
            f"{place(op)}: the {op.kind} has addresses or a mask by element, {count * op.operand(0).numel} of them, more "
            f"than the {MOST_ELEMENTS} that are looked at"
        )
    at = offsets.elements() if isinstance(offsets, Affine) else np.asarray(offsets)
    chosen: Any = True if mask is None else mask.dense() if isinstance(mask, Box) else np.asarray(mask)
    at, chosen = np.broadcast_arrays(at, chosen)
    at, chosen = (np.broadcast_to(x, (count, *x.shape[1:])) for x in (at, chosen))
    where = np.nonzero(chosen)
    found = at[where]
    return where[0], found, found + 1


def _addresses(tensor: Tensor, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bytes of elements [low, high) of the tensor's window."""
    size = tensor.dtype.itemsize
    return tensor.address + low * size, tensor.address + high * size


def chosen_of(
    found: Iterable[Writes],
    kept: np.ndarray,
    trips: Mapping[int, int],
    independent: Mapping[int, tuple[int, ...]],
    loop_of: Mapping[int, tuple[int, ...]],
) -> ChosenLanes:
    """The lanes that store to those wanted runs that are `kept`, a truth value for each.

    trips, independent: see `ChosenLanes`. loop_of: the independent loops around each operation (by id).
    """
    before = np.concatenate(([0], np.cumsum(kept)))
    programs: list[np.ndarray] = []
    lanes: dict[int, list[np.ndarray]] = {}
    for w in found:
        hit = before[w.first] < before[w.last]
        programs.append(w.programs[hit])
        numbers = w.lanes[hit]
        for loop in reversed(loop_of[w.op.id]):
            lanes.setdefault(loop, []).append(numbers)
            numbers = numbers // max(1, trips[loop])
    each = {n: np.unique(np.concatenate(x)) for n, x in lanes.items()}
    return ChosenLanes(
        np.unique(np.concatenate([*programs, np.empty(0, np.int64)])), each, trips, independent
    )
