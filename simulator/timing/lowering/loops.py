"""Turns of a loop walked all at once, where they differ in numbers only.

The turn becomes one more axis of what the walk knows: a lane for each turn and program, so that the body is walked once for
all of them, be it that programs have different trip counts (ragged_loops.py). How carried values grow is read off the
operations that make them (scalar_evolution.py); where that cannot be, the first turn is walked alone before. Scalar work
from before the loop is charged to its first turn. Slots that alternate from turn to turn are put in afterwards
(rotation.py).

A walk in doubt is thrown away and its turns are walked one by one: where a branch or a bound is not the same in all lanes,
where a carried value does not grow evenly, where anything is in error. Either way the records are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import AscendtileError
from ...interpreter import symbolic
from ...interpreter.flat_pointers import Anywhere
from ...interpreter.merging import merge
from ...interpreter.regions import AccessRegion
from ...interpreter.state import Frame
from ...interpreter.values import Affine, Box, Pointers
from ...interpreter.values import take as of_lanes
from ...ir.program import Op, Region, Value, walk
from ...precision import dtypes as ty
from ...precision.dtypes import DType
from ..costs.transfers import sharers
from ..placement.slots import Slot
from ..trace.lanes import Stretches, even, of_trips
from ..trace.scalar_evolution import AlikeUntilError, NotAlikeError, after, equal, foreseen, grown, growth
from ..trace.tree import Cut, GlobalAccess, Loop, Slots, records
from .loop_state import Flush, LeftOver, State
from .lowering import Lowering
from .shared_turns import is_shared

LANES = 1 << 17  # at most, of one walk
RECORDS = 1 << 18  # at most, of one walk, unless its loops inside turn out longer than in the first turn
LEAST = 4  # turns for which a walk of all at once pays, after the first
SAVED = 24  # operations whose walk takes about as long as the preparation of a walk of all turns
ELEMENTS = 1 << 24  # of index tiles that are held element by element, in all lanes
ONE_BY_ONE = ("while", "sync", "send", "receive", "print")
CHECKED = ("compare", "cast", "addptr", "reshape", "bitcast")
FORMS = (Affine, Pointers)
EXACT = 1 << 61  # differences of numbers below that fit 64 bits


class Turns(Lowering):
    """The part of a walk without values that knows loops."""

    together = True  # False: all turns one by one

    def prepare(self, *args: Any) -> None:
        super().prepare(*args)
        self.times = 1  # turns that a step of the walk stands for
        self.turn_of: np.ndarray = np.zeros(0, np.int64)  # of each lane, in a walk of many turns
        self.inside = False  # whether a walk of many turns is one of a loop inside of another such walk
        self.columns: np.ndarray | None = None  # programs of such a walk, None for all
        self.alone: set[int] = set()  # loops whose turns are walked one by one
        self.asked: set[int] = set()
        self.first_flush: Flush | None = None  # of the walk of many turns; see `_from_the_start`
        self.begun_alone: set[int] = set()  # loops whose first turn is walked alone
        self.uneven_apart: set[int] = set()  # loops whose programs with other trip counts are walked apart
        self.left_over: LeftOver | None = None  # of a walk from the start

    # -- the loop ----------------------------------------------------------------------------------------------------

    def turns(
        self, op: Op, frame: Frame, lower: Any, step: Any, first: int, last: int, carried: list[Any]
    ) -> list[Any]:
        if not self.together or last - first < 2 or not self._may_be_alike(op):
            return super().turns(op, frame, lower, step, first, last, carried)
        done, carried = self._from_the_start(op, frame, (lower, step), first, last, carried)
        failed = False
        while last - done > LEAST:
            before = self.recorder.builder.records
            earlier, carried = carried, super().turns(op, frame, lower, step, done, done + 1, carried)
            done += 1
            most = self._most(self.recorder.builder.records - before)
            while (m := min(last - done, most, self.steps_left // self.times)) >= LEAST:
                try:
                    gains = [growth(x, y) for x, y in zip(earlier, carried, strict=True)]
                    m = self._alike(m, self._all, op, frame, (lower + done * step, step), carried, gains)
                except (NotAlikeError, AscendtileError, OverflowError):
                    break
                carried = [after(x, by, m) for x, by in zip(carried, gains, strict=True)]
                earlier = [after(x, by, -1) for x, by in zip(carried, gains, strict=True)]
                done += m
            if failed or m < LEAST:
                break
            failed = True  # a second turn alone may be enough: forms of values settle
        if failed and m >= LEAST and not self.at_once:
            self.alone.add(op.id)
        return super().turns(op, frame, lower, step, done, last, carried)

    def _from_the_start(
        self, op: Op, frame: Frame, counter: tuple[Any, Any], first: int, last: int, carried: list[Any]
    ) -> tuple[int, list[Any]]:
        """Walk all turns at once; the turn that comes next, `first` if that was not possible, and what it is handed."""
        m = min(last - first, LANES // len(self.active), self.steps_left // self.times)
        if op.id in self.begun_alone or not self._pays(op, m):
            return first, carried
        lower, step = counter
        begin = (lower + first * step, step)
        try:
            start, gains = self._foreseen(op, frame, begin[0], carried)
            m = self._alike(m, self._all, op, frame, begin, start, gains, True)
        except (NotAlikeError, AscendtileError, OverflowError):
            self.begun_alone.add(op.id)
            return first, carried
        return first + m, [after(x, by, m) for x, by in zip(start, gains, strict=True)]

    def uneven(
        self, op: Op, frame: Frame, lower: Any, step: Any, trips: np.ndarray, carried: list[Any]
    ) -> list[Any]:
        if self.at_once:
            raise self._unlike_from(trips != trips[0])
        if self.together and op.id not in self.uneven_apart and self._may_be_alike(op):
            parts = of_trips(trips)
            lanes, turns = sum(p.trips * len(p.programs) for p in parts), sum(p.trips for p in parts)
            if lanes <= LANES and turns <= self.steps_left and self._pays(op, turns):
                try:
                    start, gains = self._foreseen(op, frame, lower, carried)
                    self._all(op, frame, (lower, step), Stretches(parts), start, gains, True)
                    return _left(trips, carried, start, gains)
                except (NotAlikeError, AscendtileError, OverflowError):
                    self.uneven_apart.add(op.id)
        return super().uneven(op, frame, lower, step, trips, carried)

    def _alike(self, m: int, walk: Callable[..., None], op: Op, frame: Frame, begin: Any, *rest: Any) -> int:
        """Walk `m` turns at once, or as many of them as turn out to be alike; gives their number."""
        try:
            walk(op, frame, begin, even(len(self.active), m), *rest)
        except AlikeUntilError as e:
            m = e.turns
            if m < LEAST:
                raise
            walk(op, frame, begin, even(len(self.active), m), *rest)
        return m

    def _unlike_from(self, other: np.ndarray) -> NotAlikeError:
        """What says so, where some lanes go on in another way. other: whether a lane does."""
        if self.inside:
            return NotAlikeError()
        return AlikeUntilError(int(self.turn_of[other.argmax()]))

    def _foreseen(
        self, op: Op, frame: Frame, counter: Any, carried: list[Any]
    ) -> tuple[list[Any], list[Any]]:
        """What the first turn is handed, and how that grows."""
        if not carried:
            return [], []
        waiting = self.pending, self.pending_loc
        try:
            return foreseen(self, op, frame, counter, carried)
        finally:
            self.pending, self.pending_loc = waiting

    def _pays(self, op: Op, turns: int) -> bool:
        """Whether to walk them at once is less work than one by one."""
        return turns > 1 and (turns - 1) * sum(1 for _ in walk(op.regions[0])) >= SAVED

    def _most(self, count: int) -> int:
        """Turns of so many records each that are walked at once; a loop inside such a walk has no say in its records."""
        lanes = LANES // len(self.active)
        return lanes if self.at_once else min(lanes, RECORDS // max(1, count))

    def _may_be_alike(self, op: Op) -> bool:
        if op.id not in self.asked:
            self.asked.add(op.id)
            if (
                self.exchange is not None
                or is_shared(op)
                or any(o.kind in ONE_BY_ONE or is_shared(o) for o in walk(op.regions[0]))
            ):
                self.alone.add(op.id)
        return op.id not in self.alone

    def _all(
        self,
        op: Op,
        frame: Frame,
        counter: tuple[Any, Any],
        turns: Stretches,
        carried: list[Any],
        gains: list[Any],
        fresh: bool = False,
    ) -> None:
        """Walk the next turns. counter: its value in the first of them, and its step. fresh: no turn was before."""
        before, recorder = State(self), self.recorder
        flushed, self.first_flush = self.first_flush, None
        left_over, self.left_over = self.left_over, LeftOver(before.current) if fresh else self.left_over
        active, times, turn_of, around, inside = (
            self.active,
            self.times,
            self.turn_of,
            recorder.body,
            self.inside,
        )
        self.inside = around is not None
        columns = self.columns = self.columns if self.inside else self.active_or_none()
        body: list[Any] = []
        recorder.body = body
        self.active, self.times = active[turns.index], times * turns.trips
        self.turn_of = turn_of[turns.index] + turns.iteration * times if self.inside else turns.iteration
        try:
            self._check_memory(frame, len(turns.index))
            self._body(op, Frame(frame, turns.index), counter, turns, carried, gains)
            if fresh:
                self._charge_later_turns(turns, before.pending)
                self.left_over.check(self.current)  # type: ignore[union-attr]
                if not self.inside and records(body) * turns.trips > RECORDS:
                    raise NotAlikeError
            before.check(self, op, fresh)
            more = before.repeat(self, turns.trips, not self.inside)
        except BaseException:
            before.restore(self)
            self.first_flush = flushed
            raise
        finally:
            if left_over is not None and fresh:
                left_over.inside(self.left_over)  # type: ignore[arg-type]
            recorder.body, self.active, self.times, self.left_over = around, active, times, left_over
            self.turn_of, self.inside = turn_of, inside
        self.first_flush = flushed or self.first_flush
        self._take(body, turns, more, columns)

    def _take(
        self, body: list[Any], turns: Stretches, more: dict[Any, int], columns: np.ndarray | None
    ) -> None:
        """Hand on the loop: one for each stretch of iterations. more: what an iteration adds to counts."""
        rotating, parts = self.recorder.builder.rotating, turns.parts
        gains = {c: more[c] for c in rotating.counters(body) if more.get(c)}
        if len(parts) == 1 and len(parts[0].programs) == len(self.active):
            self.recorder.take(Loop(turns.trips, body, gains), columns)
            return
        done = lanes = 0
        for part in parts:
            end = lanes + part.trips * len(part.programs)
            mine = rotating.later(Cut(len(turns.index), lanes, end).body(body), gains, done)
            every = len(part.programs) == len(self.active)
            own = columns if every else self.active[part.programs] - self.first_number
            self.recorder.take(Loop(part.trips, mine, gains), own)
            done, lanes = done + part.trips, end

    def _body(
        self,
        op: Op,
        frame: Frame,
        counter: tuple[Any, Any],
        turns: Stretches,
        carried: list[Any],
        gains: list[Any],
    ) -> None:
        """One walk for all turns."""
        body = op.regions[0]
        turn, index = turns.iteration, turns.index
        self.step(op)
        self.turn(op, 0)
        inner = Frame(frame)
        inner.values[body.args[0].id] = grown(*counter, turn, index)
        for a, x, by in zip(body.args[1:], carried, gains, strict=True):
            inner.values[a.id] = grown(x, by, turn, index)
        self.region(body, inner)
        for y, x, by in zip(body.yields, carried, gains, strict=True):
            if not equal(inner.get(y), grown(x, by, turn + 1, index)):
                raise NotAlikeError
        self.turn_ends(op)

    @property
    def at_once(self) -> bool:
        """Whether many iterations are walked at once now."""
        return self.recorder.body is not None

    def flush(self, cube: bool = False) -> None:
        body = self.recorder.body
        if self.pending and body is not None and self.first_flush is None:
            self.first_flush = Flush(body, len(body), self.pending, len(self.active))
        super().flush(cube)

    def _charge_later_turns(self, turns: Stretches, before: int) -> None:
        """The first scalar work of an iteration has in the first what was before the loop, in others what the last one left.

        Its record may be in a loop inside: there it is that of the first iteration.
        """
        if self.pending == before:
            return
        first = self.first_flush
        if first is None:
            raise NotAlikeError
        x, cycles = first.body[first.number], self.plan.costs.model.scalar_cycles
        occupancy = x.occupancy if isinstance(x.occupancy, np.ndarray) else np.full(first.lanes, x.occupancy)
        occupancy[: len(turns.index)] = (self.pending + first.pending - before) * cycles
        occupancy[: turns.first] = first.pending * cycles
        first.body[first.number] = x._replace(occupancy=occupancy)

    def _check_memory(self, frame: Frame | None, lanes: int) -> None:
        """Index tiles that are held element by element get a copy for each lane."""
        while frame is not None:
            for x in frame.values.values():
                if type(x) is Pointers:
                    x = x.offsets
                if type(x) is np.ndarray and x.ndim > 1 and len(x) > 1 and x[0].size * lanes > ELEMENTS:
                    raise NotAlikeError
            frame = frame.parent

    # -- what may not differ between lanes ---------------------------------------------------------------------------

    def region(self, region: Region, frame: Frame) -> None:
        if not self.at_once:
            super().region(region, frame)
            return
        values = frame.values
        for op in region.ops:
            if op.kind in CHECKED:
                self._check_operands(op, frame)
            self.handlers[op.kind](op, frame)
            for r in op.results:
                if isinstance(values[r.id], FORMS):
                    _check_form(values[r.id])

    def _check_operands(self, op: Op, frame: Frame) -> None:
        """What the walk decides by the numbers of all programs together must not be decided by other turns' numbers."""
        if op.kind in ("compare", "cast", "addptr"):
            for v in op.args:
                x = None if v is None or v.is_pointer else frame.get(v)
                if isinstance(x, Affine) and not symbolic.inside(x, *_limits(v)):
                    raise NotAlikeError
        elif op.kind in ("reshape", "bitcast"):
            v = op.args[0]
            assert v is not None
            if isinstance(frame.get(v), Affine | Box) and v.numel * len(self.active) > ELEMENTS:
                raise NotAlikeError

    def truth(self, op: Op, x: Any) -> bool | np.ndarray:
        out = super().truth(op, x)
        if self.at_once and isinstance(out, np.ndarray):
            raise self._unlike_from(out != out[0])
        return out

    def subset(self, op: Op, region: Region, frame: Frame, index: np.ndarray) -> list[Any]:
        if self.at_once:
            raise NotAlikeError
        return super().subset(op, region, frame, index)

    def step(self, op: Op, weight: int = 1) -> None:
        self.steps_left -= (self.times - 1) * weight
        super().step(op, weight)

    # -- slots -------------------------------------------------------------------------------------------------------

    def slots_at(self, roots: tuple[tuple[int, int], ...]) -> Slots:
        if self.left_over is not None:
            self.left_over.note(roots, self.current)
        return super().slots_at(roots)

    def copy_of(self, slot: Slot, loop: Any) -> tuple[Slots, Slots]:
        if not self.at_once or slot.copies == 1:
            return super().copy_of(slot, loop)
        count, number = self.turn_counts.get(loop, 0), self.recorder.builder.rotating.number
        writes, clobbers = zip(*slot.targets, strict=True)
        return (number(writes, loop, count),), (number(clobbers, loop, count),) if any(clobbers) else ()

    # -- records -----------------------------------------------------------------------------------------------------

    def active_or_none(self) -> np.ndarray | None:
        return self.columns if self.at_once else super().active_or_none()

    def source(
        self, op: Op, pointer: Pointers, mask: Any, amount: Any
    ) -> tuple[GlobalAccess | None, np.ndarray | None, Any]:
        if self.at_once and isinstance(pointer.tensor, Anywhere):
            raise NotAlikeError
        return super().source(op, pointer, mask, amount)

    def cores_alike(self, region: AccessRegion) -> Any:
        cores = self.plan.wiring.machine.cores
        return sharers(region.starts, self.active, self.times, cores, self.turn_of if self.at_once else None)

    def way_out(self, op: Op, pointer: Pointers, mask: Any, channels: tuple[int, int], pipe: int) -> Any:
        if self.at_once and isinstance(pointer.offsets, Affine) and isinstance(pointer.tensor, Anywhere):
            raise NotAlikeError
        return super().way_out(op, pointer, mask, channels, pipe)

    def check_bursts(self, op: Op, v: Value, bursts: Any, elements: Any) -> None:
        """A warning belongs to a turn: one that is new would have to wait for its place among them."""
        if not self.at_once:
            super().check_bursts(op, v, bursts, elements)
            return
        if isinstance(bursts, int) and isinstance(elements, int) and (bursts <= 1 or bursts != elements):
            return
        known = len(self.plan.warnings)
        lanes, starts = len(self.active), np.flatnonzero(np.diff(self.turn_of, prepend=-1))
        many, every = (np.maximum.reduceat(np.broadcast_to(x, lanes), starts) for x in (bursts, elements))
        for n in np.unique(many[(many > 1) & (many == every)]):
            super().check_bursts(op, v, int(n), int(n))
        if len(self.plan.warnings) > known:
            raise NotAlikeError


def _left(trips: np.ndarray, carried: list[Any], start: list[Any], gains: list[Any]) -> list[Any]:
    """What programs with so many turns each leave a loop with. carried: what they enter it with."""
    groups = [(stop, np.flatnonzero(trips == stop)) for stop in np.unique(trips).tolist()]
    return [
        merge([(i, of_lanes(after(x, by, stop) if stop else entry, i)) for stop, i in groups], len(trips))
        for entry, x, by in zip(carried, start, gains, strict=True)
    ]


def _limits(v: Value | None) -> tuple[int, int]:
    """Of numbers that are compared and added without wrapping."""
    assert v is not None
    assert isinstance(v.dtype, DType)
    low, high = ty.limits(v.dtype)
    return max(low, -EXACT), min(high, EXACT)


def _check_form(x: Any) -> None:
    """Forms of a value that depend on its numbers are followed turn by turn."""
    if isinstance(x, Pointers):
        if isinstance(x.tensor, Anywhere):
            raise NotAlikeError
        x = x.offsets
    if isinstance(x, Affine):
        for s in x.strides:
            if not isinstance(s, int):
                raise NotAlikeError
