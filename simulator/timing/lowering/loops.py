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
from ..trace.ragged_loops import Stretches, even, of_trips
from ..trace.recorder import Recorder
from ..trace.rotation import Rotation, Slots
from ..trace.scalar_evolution import AlikeUntilError, NotAlikeError, after, equal, foreseen, grown, growth
from ..trace.series import Series, Source, Unrolled, take
from .context import Way
from .loop_state import Flush, LeftOver, State
from .lowering import Lowering
from .shared_turns import is_shared
from .sub_cores import TurnsRecorder

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
        self.series: Series | None = None
        self.times = 1  # turns that a step of the walk stands for
        self.turn_of: np.ndarray = np.zeros(0, np.int64)  # of each lane, in a walk of many turns
        self.inside = False  # whether a walk of many turns is one of a loop inside of another such walk
        self.rotation = Rotation()
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
            before = self.recorder.records
            earlier, carried = carried, super().turns(op, frame, lower, step, done, done + 1, carried)
            done += 1
            most = self._most(self.recorder.records - before)
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
        if failed and m >= LEAST and self.series is None:
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
        if self.series is not None:
            raise self._unlike_from(trips != trips[0])
        if self.together and op.id not in self.uneven_apart and self._may_be_alike(op):
            parts = of_trips(trips)
            lanes, turns = sum(p.turns * len(p.programs) for p in parts), sum(p.turns for p in parts)
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

    def _most(self, records: int) -> int:
        """Turns of so many records each that are walked at once; a loop inside such a walk has no say in its records."""
        lanes = LANES // len(self.active)
        return min(lanes, RECORDS // max(1, records)) if self.series is None else lanes

    def _may_be_alike(self, op: Op) -> bool:
        if op.id not in self.asked:
            self.asked.add(op.id)
            apart = self.exchange is not None or type(self.recorder) not in (Recorder, Series, TurnsRecorder)
            if (
                apart
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
        before = State(self)
        flushed, self.first_flush = self.first_flush, None
        left_over, self.left_over = self.left_over, LeftOver(before.current) if fresh else self.left_over
        outer, active, times, turn_of = self.recorder, self.active, self.times, self.turn_of
        around, self.inside = self.inside, isinstance(outer, Series)
        inside = self.inside
        series = Series(self.active_or_none(), outer.drains)
        self.recorder = self.series = series  # type: ignore[assignment]
        self.active, self.times = active[turns.index], times * turns.turns
        self.turn_of = turn_of[turns.index] + turns.turn * times if inside else turns.turn
        try:
            self._check_memory(frame, len(turns.index))
            self._body(op, Frame(frame, turns.index), counter, turns, carried, gains)
            if fresh:
                self._charge_later_turns(series, before.pending, inside and flushed is None)
                self.left_over.check(self.current)  # type: ignore[union-attr]
                if not inside and series.records * turns.turns > RECORDS:
                    raise NotAlikeError
            _check_pipes(outer, series)
            before.check(self, op, fresh)
            found = before.repeat(self, self.rotation, series, turns, not inside)
        except BaseException:
            before.restore(self)
            self.first_flush = flushed
            raise
        finally:
            if left_over is not None and fresh:
                left_over.inside(self.left_over)  # type: ignore[arg-type]
            self.recorder, self.active, self.times, self.left_over = outer, active, times, left_over
            self.turn_of, self.inside = turn_of, around
            self.series = outer if isinstance(outer, Series) else None
        if isinstance(outer, Series):
            self.first_flush = flushed or self._flush_inside(outer, series, found[0])
            outer.take(found[0])
            return
        self.first_flush = flushed or self.first_flush
        for part, records in zip(turns.parts, found, strict=True):
            every = len(part.programs) == len(active)
            columns = series.columns if every else active[part.programs] - self.first_number
            take(outer, columns, records, self.touch)

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
        turn, index = turns.turn, turns.index
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

    def flush(self, cube: bool = False) -> None:
        if self.pending and self.series is not None and self.first_flush is None:
            self.first_flush = Flush(self.series, len(self.series.templates), self.pending)
        super().flush(cube)

    def _charge_later_turns(self, series: Series, before: int, apart: bool) -> None:
        """The first scalar work of a turn has in the first what was before the loop, in others what the last one left.

        apart: its record in the first turn gets a template of its own, also if it is the same.
        """
        first = self.first_flush
        there = first is not None and first.series is series
        if self.pending == before and not (apart and there):
            return
        if first is None or not there:
            raise NotAlikeError
        cycles = (self.pending + first.pending - before) * self.plan.costs.model.scalar_cycles
        series.first_turn = (first.number, series.templates[first.number])
        series.templates[first.number] = series.templates[first.number]._replace(occupancy=cycles)

    def _flush_inside(self, outer: Series, series: Series, found: Unrolled) -> Flush | None:
        """That of a loop inside, whose first turn has a template of its own for it, for the turn around it."""
        first = self.first_flush
        if first is None or first.series is not series or series.first_turn is None:
            return first
        return Flush(outer, len(outer.templates) + len(found.templates) - 1, first.pending)

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
        if self.series is None:
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
        if self.series is not None and isinstance(out, np.ndarray):
            raise self._unlike_from(out != out[0])
        return out

    def subset(self, op: Op, region: Region, frame: Frame, index: np.ndarray) -> list[Any]:
        if self.series is not None:
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
        if self.series is None or slot.copies == 1:
            return super().copy_of(slot, loop)
        count = self.turn_counts.get(loop, 0)
        writes, clobbers = zip(*slot.targets, strict=True)
        moved = (self.rotation.number(clobbers, loop, count),) if any(clobbers) else ()
        return (self.rotation.number(writes, loop, count),), moved

    # -- records -----------------------------------------------------------------------------------------------------

    def active_or_none(self) -> np.ndarray | None:
        return super().active_or_none() if self.series is None else self.series.columns

    def first_share(self, op: Op, pointer: Pointers, mask: Any, amount: Any) -> tuple[Any, Any]:
        """In a walk of many turns: where the load reads. What comes from memory is found when all are known."""
        if self.series is None or op.attrs.get("cache") == ".cv":
            return super().first_share(op, pointer, mask, amount)
        if isinstance(pointer.tensor, Anywhere):
            raise NotAlikeError
        region = self.checked_region(op, pointer, mask, "load", self.active)
        return (pointer.tensor, region), self.cores_alike(region)

    def cores_alike(self, region: AccessRegion) -> Any:
        cores = self.plan.wiring.machine.cores
        return sharers(
            region.starts, self.active, self.times, cores, None if self.series is None else self.turn_of
        )

    def way_out(self, op: Op, pointer: Pointers, mask: Any, ways: tuple[int, int], pipe: int) -> Any:
        """In a walk of many turns: what the store changes. Its way is found when all are known."""
        if self.series is None or not isinstance(pointer.offsets, Affine):
            return super().way_out(op, pointer, mask, ways, pipe)
        if isinstance(pointer.tensor, Anywhere):
            raise NotAlikeError
        region = self.checked_region(op, pointer, mask, op.kind, self.active)
        return self.touching(op, pipe, ways, pointer.tensor, region, True)

    def least(self, way: Way, bursts: Any, amount: Any, sharers: Any) -> dict[str, Any]:
        if self.series is None:
            return super().least(way, bursts, amount, sharers)
        cycles = self.plan.least_cycles(way, bursts, amount, sharers)
        return (
            {"occupancy": 0.0, "least": cycles} if isinstance(cycles, np.ndarray) else {"occupancy": cycles}
        )

    def _add_later(self, pipe: int, active: np.ndarray | None, source: Source, what: dict[str, Any]) -> None:
        if self.series is None:
            super()._add_later(pipe, active, source, what)
        else:
            what.pop("grade", 0)
            self.series.add(pipe, source.lines[0], active=active, source=source, **what)

    def transfer(
        self, op: Op, pipe: int, channels: tuple[int, int], amount: Any, first: Any, what: dict[str, Any]
    ) -> None:
        if self.series is not None and isinstance(first, np.ndarray):  # a discrete load: all of it, each time
            self.add(pipe, op.loc, channel=channels[0], amount=amount, **what)
        else:
            super().transfer(op, pipe, channels, amount, first, what)

    def fill(self, op: Op, r: Value, elements: Any, slots: tuple[int, ...]) -> None:
        if self.series is None:
            super().fill(op, r, elements, slots)
            return
        partial = np.broadcast_to(np.asarray(elements) < r.numel, len(self.active))
        if partial.any():
            cost = self.plan.costs.filled(r)
            self.add(
                self.plan.wiring.vector,
                op.loc,
                occupancy=cost.occupancy + cost.latency,
                instructions=cost.instructions,
                grade=cost.grade,
                reads=slots,
                partial=partial,
            )

    def check_bursts(self, op: Op, v: Value, bursts: Any, elements: Any) -> None:
        """A warning belongs to a turn: one that is new would have to wait for its place among them."""
        if self.series is None:
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


def _check_pipes(recorder: Recorder, series: Series) -> None:
    """Where two Vector cores share turns, what a Vector core does is put in its place record by record."""
    if isinstance(recorder, TurnsRecorder) and any(t.pipe in recorder.pair.own for t in series.templates):
        raise NotAlikeError


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
