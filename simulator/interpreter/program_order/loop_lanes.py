"""Loops whose iterations have nothing to do with each other, carried out for all iterations at once.

A program that goes through a tensor tile by tile hands nothing from one iteration to the next. Each of its iterations is
then carried out as if it were a program of its own (a lane), and of them only those that somebody chose.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ...ir.passes.split_cores import has_sub_vectors
from ...ir.pointer_roots import pointer_roots
from ...ir.program import Op, Program, Region
from ..backend import Backend
from ..control_flow import trip_count_of
from ..interpreter import DEFAULT_STEP_LIMIT, Interpreter
from ..state import DataDependentError, Frame
from ..tensors import Tensor, overlap
from ..values import Opaque, take

MOST_LANES = 1 << 22
IN_ORDER = ("atomic", "sync", "send", "receive", "while", "print")


class _LaneNumber(NamedTuple):
    """Under which frames have the number of each lane, as if it were a value of the program."""

    id: int = -1


LANE: Any = _LaneNumber()


class ChosenLanes(NamedTuple):
    """programs: their numbers, ascending. loops: loop (by id) -> numbers of the lanes that are carried out, ascending.

    trips: loop (by id) -> the largest trip count: iteration k of a lane is lane number * trips + k. independent: see
    `independent_loops`; where there are some, no program reads what the launch writes.
    """

    programs: np.ndarray
    loops: Mapping[int, np.ndarray]
    trips: Mapping[int, int]
    independent: Mapping[int, tuple[int, ...]]

    @property
    def most(self) -> int:
        """Lanes of the loop that has most of them, or programs."""
        return max(len(self.programs), *(len(x) for x in self.loops.values()), 1)

    def union(self, other: ChosenLanes) -> ChosenLanes:
        """What either has, of one launch."""
        empty = np.empty(0, np.int64)
        loops = {
            n: np.union1d(self.loops.get(n, empty), other.loops.get(n, empty))
            for n in {**self.loops, **other.loops}
        }
        return self._replace(programs=np.union1d(self.programs, other.programs), loops=loops)


def independent_loops(program: Program, arguments: Mapping[str, Any]) -> dict[int, tuple[int, ...]]:
    """Loops (by id) whose iterations may be carried out in any order or alone -> the loops (by id) around each.

    There is none where anything has an order of its own: atomics, flags, `while`; where the launch reads what it writes; or
    where two stores write to one tensor.
    """
    if has_sub_vectors(program) or any(op.kind in IN_ORDER for op in program.walk()):
        return {}
    if not _writes_apart(program, arguments):
        return {}
    return dict(_loops(program.body, ()))


def _writes_apart(program: Program, arguments: Mapping[str, Any]) -> bool:
    """Whether each tensor is stored to at one place, and no tensor that is loaded shares memory with one."""
    roots = pointer_roots(program)
    stored: list[Tensor] = []
    loaded: list[Tensor] = []
    for op in program.walk():
        if op.kind in ("load", "store"):
            names = roots.get(op.operand(0).id, set())
            tensors = [arguments.get(n) for n in names]
            if len(names) != 1 or not isinstance(tensors[0], Tensor):
                return False
            (stored if op.kind == "store" else loaded).append(tensors[0])
    pairs = ((a, b) for k, a in enumerate(stored) for b in (*stored[:k], *loaded))
    return not any(a is b or overlap(a, b) for a, b in pairs)


def _loops(region: Region, outer: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...]]]:
    for op in region.ops:
        if op.kind == "for" and not op.results:
            yield op.id, outer
            yield from _loops(op.regions[0], (*outer, op.id))
        elif op.kind == "if":
            for inner in op.regions:
                yield from _loops(inner, outer)


class LoopLanes(Interpreter):
    """Carries out independent loops for all iterations at once, or for the chosen ones.

    independent: see `independent_loops`. chosen: lanes by loop; None for all.
    """

    def __init__(
        self,
        program: Program,
        grid: tuple[int, int, int],
        backend: Backend,
        step_limit: int = DEFAULT_STEP_LIMIT,
        skipped: frozenset[int] | set[int] = frozenset(),
        independent: Mapping[int, tuple[int, ...]] | None = None,
        chosen: ChosenLanes | None = None,
    ) -> None:
        super().__init__(program, grid, backend, step_limit, skipped)
        self.independent = independent or {}
        self.chosen = chosen
        self.trips: dict[int, int] = {} if chosen is None else dict(chosen.trips)
        self.lanes = np.empty(0, np.int64)  # numbers of those that reach the access at hand

    def region(self, region: Region, frame: Frame) -> None:
        if frame.parent is None:
            frame.values[LANE.id] = self.active
        super().region(region, frame)

    def look_at_index(self, op: Op, frame: Frame) -> None:
        self.lanes = frame.get(LANE)
        super().look_at_index(op, frame)

    def op_for(self, op: Op, frame: Frame) -> None:
        bounds = [frame.get(v) for v in op.args[:3] if v is not None]
        zero = any(isinstance(x, Opaque) for x in bounds) or not np.all(bounds[2])
        if op.id not in self.independent or zero:  # which gives the error
            super().op_for(op, frame)
            return
        self.look_at_decision(op, frame)
        self.step(op)
        self.all_iterations(op, frame, *bounds)

    def all_iterations(self, op: Op, frame: Frame, lower: Any, upper: Any, step: Any) -> None:
        index, k = self.lanes_of(op, trip_count_of(lower, upper, step))
        lanes = frame.get(LANE)[index] * self.trips[op.id] + k
        if self.chosen is not None:
            kept = np.isin(lanes, self.chosen.loops.get(op.id, ()), kind="sort")
            index, k, lanes = index[kept], k[kept], lanes[kept]
        if not len(index):
            return
        before, self.active = self.active, self.active[index]
        inner = Frame(frame, index)
        inner.values[LANE.id] = lanes
        inner.values[op.regions[0].args[0].id] = take(lower, index) + k * take(step, index)
        self.region(op.regions[0], inner)
        self.active = before

    def lanes_of(self, op: Op, trip_counts: Any) -> tuple[np.ndarray, np.ndarray]:
        """Of each iteration of each active lane: the place of the lane, and the iteration's number."""
        counts = np.broadcast_to(trip_counts, len(self.active))
        total = int(counts.sum())
        if total > MOST_LANES:
            raise DataDependentError(
                f"{op.loc.file}:{op.loc.line}: this loop has {total} iterations over all programs, more than the "
                f"{MOST_LANES} that are looked at"
            )
        self.trips.setdefault(op.id, int(counts.max(initial=0)))
        index = np.repeat(np.arange(len(counts)), counts)
        return index, np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)


__all__ = ["LANE", "ChosenLanes", "LoopLanes", "independent_loops"]
