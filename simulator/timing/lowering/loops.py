"""Lowers all iterations of a loop at once, where they differ in numbers only.

Each iteration of each program is a lane, and the body is lowered once for all lanes. Programs may have different trip counts
(trace/lanes.py). Scalar evolution says beforehand how carried values grow, and for how many iterations branches and inner
loops stay the same (trace/scalar_evolution.py). Other iterations are lowered one by one. Scalar work from before the loop is
charged to its first iteration. A slot that alternates is given by a counter (trace/rotating.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from ...interpreter import symbolic
from ...interpreter.flat_pointers import FlatMemory
from ...interpreter.merging import merge
from ...interpreter.regions import AccessRegion
from ...interpreter.state import Frame
from ...interpreter.values import Affine, Box, Pointers
from ...interpreter.values import take as of_lanes
from ...ir.program import Op, Region, Value, walk
from ...precision import dtypes as ty
from ..costs.transfers import sharers
from ..placement.slots import Slot
from ..trace.lanes import IterationLanes, IterationRange, even, ranges_of_trip_counts
from ..trace.scalar_evolution import Forecast, NotAlikeError, after, forecast, grown
from ..trace.tree import Cut, GlobalAccess, Loop, Slots
from .loop_state import Counts, Flush, LeftOver
from .lowering import Lowering
from .shared_iterations import is_shared

LANES = 1 << 17  # at most, that are lowered at once
LEAST_AHEAD = 64  # iterations that are looked at, at least
PATIENCE = 3  # iterations that are lowered alone, and after them all others
SAVED = 24  # operations that take about as long as preparing to lower all iterations at once
LONG = (
    16  # times the iterations under way: a range whose beginning and end, where one core waits, do not matter
)
ELEMENTS = 1 << 24  # of index tiles that have an array of their elements, in all lanes
ONE_BY_ONE = ("while", "sync", "send", "receive", "print")
FORMS = (Affine, Pointers)
EXACT = 1 << 61  # numbers below that are compared and added without wrapping


class LoopLowering(Lowering):
    """Lowering without values, which knows loops."""

    def prepare(self, *args: Any) -> None:
        super().prepare(*args)
        self.times = 1  # iterations that one step stands for
        self.iteration_of: np.ndarray = np.zeros(0, np.int64)  # of each lane, where many are lowered at once
        self.columns: np.ndarray | None = None  # programs of the lanes, None for all
        self.alone: dict[int, bool] = {}  # whether a loop's iterations are lowered one by one
        self.first_flush: Flush | None = None  # of many iterations
        self.left_over: LeftOver | None = None  # of many iterations
        self.evaluating = False

    # -- the loop ----------------------------------------------------------------------------------------------------

    def iterations(
        self, op: Op, frame: Frame, lower: Any, step: Any, first: int, last: int, carried: list[Any]
    ) -> list[Any]:
        done, patience, ahead = first, PATIENCE, LANES // len(self.active)
        while last - done > 1 and patience and not self._is_alone(op):
            m = min(last - done, ahead, LANES // len(self.active), self.steps_left // self.times)
            counter = lower + done * step, step
            lanes = even(len(self.active), m)
            found = self._forecast(op, frame, counter, carried, lanes)
            if found is None or not self._pays(op, found.alike):
                patience -= 1
                carried = super().iterations(op, frame, lower, step, done, done + 1, carried)
                done += 1
                continue
            # What goes the same way for some iterations only may do so again; no more of them are looked at than pay.
            ahead = 4 * ahead if found.alike == m else max(LEAST_AHEAD, 4 * found.alike)
            patience = min(patience + (found.alike > 2), PATIENCE)
            if found.alike < m:
                lanes, m = even(len(self.active), found.alike), found.alike
            self._all(op, frame, counter, lanes, found)
            carried = [after(x, by, m) for x, by in zip(found.start, found.gains, strict=True)]
            done += m
        return super().iterations(op, frame, lower, step, done, last, carried)

    def uneven_trip_counts(
        self, op: Op, frame: Frame, lower: Any, step: Any, trip_counts: np.ndarray, carried: list[Any]
    ) -> list[Any]:
        if self.at_once:
            raise NotAlikeError
        parts = ranges_of_trip_counts(trip_counts)
        if self._stages_are_torn(op, parts):
            self.alone[op.id] = True
            out = super().uneven_trip_counts(op, frame, lower, step, trip_counts, carried)
            del self.alone[op.id]
            return out
        lanes, total = sum(p.trip_count * len(p.programs) for p in parts), sum(p.trip_count for p in parts)
        if lanes <= LANES and total <= self.steps_left and self._pays(op, total) and not self._is_alone(op):
            all_of_them = IterationLanes(parts)
            found = self._forecast(op, frame, (lower, step), carried, all_of_them)
            if found is not None and found.alike == total:
                self._all(op, frame, (lower, step), all_of_them, found)
                return _left(trip_counts, carried, found.start, found.gains)
        return super().uneven_trip_counts(op, frame, lower, step, trip_counts, carried)

    def _stages_are_torn(self, op: Op, parts: list[IterationRange]) -> bool:
        """Whether ranges of iterations are so short that their stages had better run apart through all of them."""
        placement = self.plan.placement
        return (
            op.id in placement.stages
            and len(parts) > 1
            and min(p.trip_count for p in parts) < LONG * placement.tiles
        )

    def _forecast(
        self, op: Op, frame: Frame, counter: tuple[Any, Any], carried: list[Any], lanes: IterationLanes
    ) -> Forecast | None:
        """What is known of the next iterations before they are lowered; None for too little."""
        if lanes.trip_count < 2 or not self._has_room(frame, len(lanes.index)):
            return None
        try:
            return forecast(self, op, frame, counter, carried, lanes)
        except (NotAlikeError, OverflowError):
            return None

    def evaluate(self, ops: Sequence[Op], frame: Frame, lanes: IterationLanes | None) -> None:
        """Evaluate operations on numbers and index tiles, see `Evaluator`."""
        waiting, active = (self.pending, self.pending_loc), self.active
        overflows, self.evaluating = self.overflows.state(), True
        if lanes is not None:
            self.active = active[lanes.index]
        try:
            for op in ops:
                self.handlers[op.kind](op, frame)
                _check_forms(op, frame)
        finally:
            self.pending, self.pending_loc = waiting
            self.active, self.evaluating = active, False
            self.overflows.restore(overflows)

    def dense(self, op: Op, args: list[Any]) -> Any:
        if self.evaluating:
            raise NotAlikeError
        return super().dense(op, args)

    def _pays(self, op: Op, trip_count: int) -> bool:
        """Whether lowering them at once is less work than one by one."""
        if op.id in self.plan.placement.stages:
            return trip_count > 1
        some = sum(1 for _ in islice(walk(op.regions[0]), SAVED))  # more of them would change nothing
        return trip_count > 1 and (trip_count - 1) * some >= SAVED

    def _is_alone(self, op: Op) -> bool:
        """Whether iterations have to be lowered one by one, whatever their values."""
        found = self.alone.get(op.id)
        if found is None:
            inner = list(walk(op.regions[0]))
            found = self.alone[op.id] = (
                self.exchange is not None
                or op.id in self.program.one_by_one
                or self.subs > 1
                or is_shared(op)
                or any(o.kind in ONE_BY_ONE or is_shared(o) for o in inner)
            )
        return found

    def _all(
        self, op: Op, frame: Frame, counter: tuple[Any, Any], lanes: IterationLanes, known: Forecast
    ) -> None:
        """Lower the next iterations at once. counter: its value in the first of them, and its step.

        Raises `NotAlikeError` if they cannot be lowered so after all: the launch is then lowered anew.
        """
        before, recorder = Counts(self), self.recorder
        flushed, self.first_flush = self.first_flush, None
        left_over, self.left_over = self.left_over, LeftOver(before.current)
        active, times, iteration_of = self.active, self.times, self.iteration_of
        around, stage = recorder.body, recorder.stage
        inside = around is not None  # the loop around this one is lowered at once, too
        columns = self.columns = self.columns if inside else self.active_or_none()
        body: list[Any] = []
        recorder.body = body
        self.active, self.times = active[lanes.index], times * lanes.trip_count
        self.iteration_of = iteration_of[lanes.index] + lanes.iteration * times if inside else lanes.iteration
        try:
            self._body(op, Frame(frame, lanes.index), counter, lanes, known)
            self._charge_later_iterations(lanes, before.pending)
            self.left_over.check(self.current)
            more = before.repeat(self, op, lanes.trip_count, not inside)
        except NotAlikeError as e:
            raise NotAlikeError(op.id if e.loop < 0 else e.loop) from None
        if left_over is not None:
            left_over.inside(self.left_over)
        recorder.body, self.active, self.times, self.left_over = around, active, times, left_over
        self.iteration_of = iteration_of
        self.first_flush = flushed or self.first_flush
        recorder.stage = stage
        ahead = self.plan.placement.tiles if op.id in self.plan.placement.stages else 1
        self._take(body, lanes, more, columns, ahead)

    def _take(
        self,
        body: list[Any],
        lanes: IterationLanes,
        more: dict[Any, int],
        columns: np.ndarray | None,
        ahead: int,
    ) -> None:
        """Record the loop: one for each range of iterations. more: what an iteration adds to counts. ahead: see `Loop`."""
        rotating, parts = self.recorder.builder.rotating, lanes.parts
        gains = {c: more[c] for c in rotating.counters(body) if more.get(c)}
        if len(parts) == 1 and len(parts[0].programs) == len(self.active):
            self.recorder.take(Loop(lanes.trip_count, body, gains, ahead), columns)
            return
        done = first = 0
        for part in parts:
            end = first + part.trip_count * len(part.programs)
            mine = rotating.later(Cut(len(lanes.index), first, end).body(body), gains, done)
            every = len(part.programs) == len(self.active)
            own = columns if every else self.active[part.programs] - self.first_number
            self.recorder.take(Loop(part.trip_count, mine, gains, ahead), own)
            done, first = done + part.trip_count, end

    def _body(
        self, op: Op, frame: Frame, counter: tuple[Any, Any], lanes: IterationLanes, known: Forecast
    ) -> None:
        """Lower the body once for all lanes."""
        body = op.regions[0]
        iteration, index = lanes.iteration, lanes.index
        self.step(op)
        self.iteration_begins(op, 0)
        inner = Frame(frame)
        inner.values[body.args[0].id] = grown(*counter, iteration, index)
        for a, x, by in zip(body.args[1:], known.start, known.gains, strict=True):
            inner.values[a.id] = grown(x, by, iteration, index)
        self.region(body, inner)
        self.hand_on(body.yields, [body.args[1:], op.results], inner)
        self.iteration_ends(op)

    @property
    def at_once(self) -> bool:
        """Whether many iterations are lowered at once now."""
        return self.recorder.body is not None

    def flush(self, cube: bool = False) -> None:
        body = self.recorder.body
        if self.pending and body is not None and self.first_flush is None:
            self.first_flush = Flush(body, len(body), self.pending, len(self.active))
        super().flush(cube)

    def _charge_later_iterations(self, lanes: IterationLanes, before: int) -> None:
        """The first scalar work: in the first iteration what was before the loop, in others what the last one left.

        Its record may be in an inner loop: there it is that of the first iteration.
        """
        if self.pending == before:
            return
        first = self.first_flush
        if first is None:
            raise NotAlikeError
        x, cycles = first.body[first.number], self.plan.costs.model.scalar_cycles
        occupancy = x.occupancy if isinstance(x.occupancy, np.ndarray) else np.full(first.lanes, x.occupancy)
        occupancy[: len(lanes.index)] = (self.pending + first.pending - before) * cycles
        occupancy[: lanes.first] = first.pending * cycles
        first.body[first.number] = x._replace(occupancy=occupancy)

    def _has_room(self, frame: Frame | None, lanes: int) -> bool:
        """Index tiles that are arrays get a copy for each lane."""
        while frame is not None:
            for x in frame.values.values():
                if type(x) is Pointers:
                    x = x.offsets
                if type(x) is np.ndarray and x.ndim > 1 and len(x) > 1 and x[0].size * lanes > ELEMENTS:
                    return False
            frame = frame.parent
        return True

    # -- what may not differ between lanes ---------------------------------------------------------------------------

    def region(self, region: Region, frame: Frame) -> None:
        if not self.at_once:
            super().region(region, frame)
            return
        stages, recorder = self.plan.stage_of, self.recorder
        for op in region.ops:
            recorder.stage = stages.get(op.id, recorder.stage)
            self.handlers[op.kind](op, frame)
            _check_forms(op, frame)

    def fits(self, x: Affine, v: Value) -> bool:
        """What depends on the numbers of all programs must not depend on the numbers of other iterations."""
        if not (self.at_once or self.evaluating):
            return super().fits(x, v)
        low, high = ty.limits(v.number)
        if not symbolic.inside(x, max(low, -EXACT), min(high, EXACT)):
            raise NotAlikeError
        return True

    def real(self, x: Any, v: Value | None) -> Any:
        if self.at_once and isinstance(x, Affine | Box) and math.prod(x.shape) * len(self.active) > ELEMENTS:
            raise NotAlikeError
        return super().real(x, v)

    def truth(self, op: Op, x: Any) -> bool | np.ndarray:
        out = super().truth(op, x)
        if self.at_once and isinstance(out, np.ndarray):
            raise NotAlikeError
        return out

    def subset(self, op: Op, region: Region, frame: Frame, index: np.ndarray) -> list[Any]:
        if self.at_once:
            raise NotAlikeError
        return super().subset(op, region, frame, index)

    def step(self, op: Op) -> None:
        self.steps_left -= self.times - 1
        super().step(op)

    # -- slots -------------------------------------------------------------------------------------------------------

    def slots_at(self, roots: tuple[tuple[int, int], ...]) -> Slots:
        if self.left_over is not None:
            self.left_over.note(roots, self.current)
        return super().slots_at(roots)

    def copy_of(self, slot: Slot, loop: Any) -> tuple[Slots, Slots]:
        if not self.at_once or slot.copies == 1:
            return super().copy_of(slot, loop)
        count, number = self.iteration_counts.get(loop, 0), self.recorder.builder.rotating.number
        writes, clobbers = zip(*slot.targets, strict=True)
        return (number(writes, loop, count),), (number(clobbers, loop, count),) if any(clobbers) else ()

    # -- records -----------------------------------------------------------------------------------------------------

    def active_or_none(self) -> np.ndarray | None:
        return self.columns if self.at_once else super().active_or_none()

    def source(
        self, op: Op, pointer: Pointers, mask: Any, amount: Any
    ) -> tuple[GlobalAccess | None, np.ndarray | None, Any]:
        if self.at_once and isinstance(pointer.tensor, FlatMemory):
            raise NotAlikeError
        return super().source(op, pointer, mask, amount)

    def cores_alike(self, region: AccessRegion) -> Any:
        iteration = self.iteration_of if self.at_once else None
        return sharers(region.starts, self.active, self.plan.wiring.machine.cores, iteration)

    def way_out(self, op: Op, pointer: Pointers, mask: Any, channels: tuple[int, int], pipe: int) -> Any:
        if self.at_once and isinstance(pointer.offsets, Affine) and isinstance(pointer.tensor, FlatMemory):
            raise NotAlikeError
        return super().way_out(op, pointer, mask, channels, pipe)

    def check_bursts(self, op: Op, v: Value, bursts: Any, elements: Any) -> None:
        if not self.at_once:
            super().check_bursts(op, v, bursts, elements)
            return
        if isinstance(bursts, int) and isinstance(elements, int) and (bursts <= 1 or bursts != elements):
            return
        lanes, starts = len(self.active), np.flatnonzero(np.diff(self.iteration_of, prepend=-1))
        many, every = (np.maximum.reduceat(np.broadcast_to(x, lanes), starts) for x in (bursts, elements))
        for n in np.unique(many[(many > 1) & (many == every)]):
            super().check_bursts(op, v, int(n), int(n))


def _left(trip_counts: np.ndarray, carried: list[Any], start: list[Any], gains: list[Any]) -> list[Any]:
    """What programs with those trip counts leave a loop with. carried: what they enter it with."""
    groups = [(stop, np.flatnonzero(trip_counts == stop)) for stop in sorted(set(trip_counts.tolist()))]
    return [
        merge(
            [(i, of_lanes(after(x, by, stop) if stop else entry, i)) for stop, i in groups], len(trip_counts)
        )
        for entry, x, by in zip(carried, start, gains, strict=True)
    ]


def _check_forms(op: Op, frame: Frame) -> None:
    for r in op.results:
        x = frame.values[r.id]
        if isinstance(x, FORMS):
            _check_form(x)


def _check_form(x: Any) -> None:
    """Raise `NotAlikeError` if the form of a value depends on its numbers: such iterations are lowered one by one."""
    if isinstance(x, Pointers):
        if isinstance(x.tensor, FlatMemory):
            raise NotAlikeError
        x = x.offsets
    if isinstance(x, Affine):
        for s in x.strides:
            if not isinstance(s, int):
                raise NotAlikeError
