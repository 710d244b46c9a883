"""Turns of a loop walked all at once, where they differ in numbers only.

The turn becomes one more axis of what the walk knows: a lane for each turn and program, so that the body is walked once for
all of them. The first turn is walked alone before, as what it hands on shows how carried values grow; without any, it is
walked with the others, and the scalar work from before the loop is then charged to it. Slots that alternate from turn to
turn are put in afterwards (rotation.py).

A walk in doubt is thrown away and its turns are walked one by one: where a branch or a bound is not the same in all lanes,
where a carried value does not grow evenly, where anything is in error. Either way the records are the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..errors import AscendtileError
from ..execution import symbolic
from ..execution.anywhere import Anywhere
from ..execution.copy import Region as AccessRegion
from ..execution.reading import Frame
from ..execution.values import Affine, Box, Pointers
from ..frontend import types as ty
from ..frontend.program import Op, Region, Value, walk
from ..frontend.types import DType
from .access import sharers
from .induction import NotAlikeError, after, equal, grown, growth
from .lower import Lowering
from .plan import Way
from .recorder import Recorder
from .rotation import Rotation, Slots
from .series import Series, Source, Unrolled, take
from .slots import Slot

LANES = 1 << 17  # at most, of one walk
RECORDS = 1 << 18  # at most, of one walk, unless its loops inside turn out longer than in the first turn
LEAST = 4  # turns for which a walk of all at once pays
ELEMENTS = 1 << 24  # of index tiles that are held element by element, in all lanes
ONE_BY_ONE = ("while", "sync", "send", "receive", "print")
PRODUCTS = ("products of L0A", "products of L0B")  # the counts by which halves of L0 alternate
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
        self.rotation = Rotation()
        self.alone: set[int] = set()  # loops whose turns are walked one by one
        self.asked: set[int] = set()
        self.first_flush: Flush | None = None  # of the walk of many turns; see `_from_the_start`
        self.begun_alone: set[int] = set()  # loops without carried values whose first turn is walked alone
        self.left_over: LeftOver | None = None  # of a walk from the start

    # -- the loop ----------------------------------------------------------------------------------------------------

    def turns(
        self, op: Op, frame: Frame, lower: Any, step: Any, first: int, last: int, carried: list[Any]
    ) -> list[Any]:
        if not self.together or last - first <= LEAST or not self._may_be_alike(op):
            return super().turns(op, frame, lower, step, first, last, carried)
        done, failed = self._from_the_start(op, frame, (lower, step), first, last, carried), False
        while last - done > LEAST:
            before = self.recorder.records
            earlier, carried = carried, super().turns(op, frame, lower, step, done, done + 1, carried)
            done += 1
            most = self._most(self.recorder.records - before)
            while (m := min(last - done, most, self.steps_left // self.times)) >= LEAST:
                try:
                    gains = [growth(x, y) for x, y in zip(earlier, carried, strict=True)]
                    carried = self._all(op, frame, (lower + done * step, step), m, carried, gains)
                except (NotAlikeError, AscendtileError, OverflowError):
                    break
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
    ) -> int:
        """Walk all turns at once where nothing is carried; the turn that comes next, `first` if that was not possible."""
        if carried or op.id in self.begun_alone:
            return first
        m = min(last - first, LANES // len(self.active), self.steps_left // self.times)
        lower, step = counter
        try:
            if m >= LEAST:
                self._all(op, frame, (lower + first * step, step), m, [], [], True)
                return first + m
        except (NotAlikeError, AscendtileError, OverflowError):
            self.begun_alone.add(op.id)
        return first

    def _most(self, records: int) -> int:
        """Turns of so many records each that are walked at once; a loop inside such a walk has no say in its records."""
        lanes = LANES // len(self.active)
        return min(lanes, RECORDS // max(1, records)) if self.series is None else lanes

    def _may_be_alike(self, op: Op) -> bool:
        if op.id not in self.asked:
            self.asked.add(op.id)
            apart = self.exchange is not None or type(self.recorder) not in (Recorder, Series)
            if apart or any(o.kind in ONE_BY_ONE for o in walk(op.regions[0])):
                self.alone.add(op.id)
        return op.id not in self.alone

    def _all(
        self,
        op: Op,
        frame: Frame,
        counter: tuple[Any, Any],
        m: int,
        carried: list[Any],
        gains: list[Any],
        fresh: bool = False,
    ) -> list[Any]:
        """Walk the next `m` turns. counter: its value in the first of them, and its step. fresh: no turn was before."""
        before = _State(self)
        flushed, self.first_flush = self.first_flush, None
        left_over, self.left_over = self.left_over, LeftOver(before.current) if fresh else self.left_over
        outer, active, times = self.recorder, self.active, self.times
        inside = isinstance(outer, Series)
        series = Series(self.active_or_none(), outer.drains)
        self.recorder = self.series = series  # type: ignore[assignment]
        index = np.tile(np.arange(len(active)), m)
        self.active, self.times = np.tile(active, m), times * m
        try:
            self._check_memory(frame, len(index))
            self._body(op, Frame(frame, index), counter, (np.arange(m), index), carried, gains)
            if fresh:
                self._charge_later_turns(series, before.pending)
                self.left_over.check(self.current)  # type: ignore[union-attr]
                if not inside and series.records * m > RECORDS:
                    raise NotAlikeError
            before.check(self, op, fresh)
            found = before.repeat(self, series, m, not inside)
        except BaseException:
            before.restore(self)
            self.first_flush = flushed
            raise
        finally:
            if left_over is not None and fresh:
                left_over.inside(self.left_over)  # type: ignore[arg-type]
            self.recorder, self.active, self.times, self.left_over = outer, active, times, left_over
            self.series = outer if isinstance(outer, Series) else None
        self.first_flush = flushed or self.first_flush
        if isinstance(outer, Series):
            outer.take(found)
        else:
            take(outer, series.columns, found, self.touch)
        return [after(x, by, m) for x, by in zip(carried, gains, strict=True)]

    def _body(
        self,
        op: Op,
        frame: Frame,
        counter: tuple[Any, Any],
        where: tuple[np.ndarray, np.ndarray],
        carried: list[Any],
        gains: list[Any],
    ) -> None:
        """One walk for all turns. where: their numbers, and the lanes of a turn for each of them."""
        body = op.regions[0]
        turns, index = where
        self.step(op)
        self.turn(op, 0)
        inner = Frame(frame)
        inner.values[body.args[0].id] = grown(*counter, turns, index)
        for a, x, by in zip(body.args[1:], carried, gains, strict=True):
            inner.values[a.id] = grown(x, by, turns, index)
        self.region(body, inner)
        for y, x, by in zip(body.yields, carried, gains, strict=True):
            if not equal(inner.get(y), grown(x, by, turns + 1, index)):
                raise NotAlikeError
        self.turn_ends(op)

    def flush(self, cube: bool = False) -> None:
        if self.pending and self.series is not None and self.first_flush is None:
            self.first_flush = Flush(self.series, len(self.series.templates), self.pending)
        super().flush(cube)

    def _charge_later_turns(self, series: Series, before: int) -> None:
        """The first scalar work of a turn has in the first what was before the loop, in others what the last one left."""
        if self.pending == before:
            return
        first = self.first_flush
        if first is None or first.series is not series:
            raise NotAlikeError
        cycles = (self.pending + first.pending - before) * self.plan.costs.model.scalar_cycles
        series.first_turn = (first.number, series.templates[first.number])
        series.templates[first.number] = series.templates[first.number]._replace(occupancy=cycles)

    def _check_memory(self, frame: Frame | None, lanes: int) -> None:
        """Index tiles that are held element by element get a copy for each lane."""
        while frame is not None:
            for x in frame.values.values():
                if isinstance(x, Pointers):
                    x = x.offsets
                if isinstance(x, np.ndarray) and x.ndim > 1 and len(x) > 1 and x[0].size * lanes > ELEMENTS:
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

    def subset(self, op: Op, region: Region, frame: Frame, index: np.ndarray) -> list[Any]:
        if self.series is not None:
            raise NotAlikeError
        return super().subset(op, region, frame, index)

    def uneven(self, *args: Any) -> list[Any]:
        if self.series is not None:
            raise NotAlikeError
        return super().uneven(*args)

    def step(self, op: Op, weight: int = 1) -> None:
        self.steps_left -= (self.times - 1) * weight
        super().step(op, weight)

    # -- slots -------------------------------------------------------------------------------------------------------

    def slots_at(self, roots: tuple[tuple[int, int], ...]) -> Slots:
        if self.left_over is not None:
            self.left_over.note(roots, self.current)
        return super().slots_at(roots)

    def copy_of(self, slot: Slot, loop: int) -> tuple[Slots, Slots]:
        if self.series is None or slot.copies == 1:
            return super().copy_of(slot, loop)
        count = self.turn_counts.get(loop, 0)
        writes, clobbers = zip(*slot.targets, strict=True)
        moved = (self.rotation.number(clobbers, loop, count),) if any(clobbers) else ()
        return (self.rotation.number(writes, loop, count),), moved

    def half(self, side: int, fresh: bool) -> int:
        if self.series is None:
            return super().half(side, fresh)
        if fresh:
            self.count_load(side)
        choices = tuple((pair[side],) for pair in self.plan.l0_slots)
        return self.rotation.number(choices, PRODUCTS[side], self.products[side] - 1)

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
        return sharers(region.starts, self.active, self.times, self.plan.wiring.machine.cores)

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

    def _transfer(
        self, op: Op, pipe: int, channels: tuple[int, int], amount: Any, first: Any, what: dict[str, Any]
    ) -> None:
        if self.series is not None and isinstance(first, np.ndarray):  # a discrete load: all of it, each time
            self._add(pipe, op.loc, channel=channels[0], amount=amount, **what)
        else:
            super()._transfer(op, pipe, channels, amount, first, what)

    def _fill(self, op: Op, r: Value, elements: Any, slots: tuple[int, ...]) -> None:
        if self.series is None:
            super()._fill(op, r, elements, slots)
            return
        partial = np.broadcast_to(np.asarray(elements) < r.numel, len(self.active))
        if partial.any():
            cost = self.plan.costs.filled(r)
            self._add(
                self.plan.wiring.vector,
                op.loc,
                occupancy=cost.occupancy + cost.latency,
                instructions=cost.instructions,
                reads=slots,
                partial=partial,
            )

    def _check_bursts(self, op: Op, v: Value, bursts: Any, elements: Any) -> None:
        """A warning belongs to a turn: one that is new would have to wait for its place among them."""
        if self.series is None:
            super()._check_bursts(op, v, bursts, elements)
            return
        if isinstance(bursts, int) and isinstance(elements, int) and (bursts <= 1 or bursts != elements):
            return
        known = len(self.plan.warnings)
        by_turn = ((-1, len(self.active) // self.times), len(self.active))
        many, every = (
            np.broadcast_to(x, by_turn[1]).reshape(by_turn[0]).max(axis=1) for x in (bursts, elements)
        )
        for n in np.unique(many[(many > 1) & (many == every)]):
            super()._check_bursts(op, v, int(n), int(n))
        if len(self.plan.warnings) > known:
            raise NotAlikeError


class LeftOver:
    """Values that a turn reads before it makes them: where the last turn left them, which the first one does not know."""

    def __init__(self, before: dict[int, int]) -> None:
        self.before = before
        self.read: set[int] = set()

    def note(self, roots: tuple[tuple[int, int], ...], now: dict[int, int]) -> None:
        for i, _ in roots:
            if now.get(i) == self.before.get(i):
                self.read.add(i)

    def inside(self, inner: LeftOver) -> None:
        """What a walk of a loop inside found."""
        self.read |= {i for i in inner.read if inner.before.get(i) == self.before.get(i)}

    def check(self, now: dict[int, int]) -> None:
        if any(now.get(i) != self.before.get(i) for i in self.read):
            raise NotAlikeError


class Flush(NamedTuple):
    """The first record of scalar work in a walk of many turns: where it went, and the operations it stands for."""

    series: Series
    number: int
    pending: int


class _State:
    """What a walk changes besides values, so that it can be taken back."""

    def __init__(self, turns: Turns) -> None:
        plan, model = turns.plan, turns.plan.costs.model
        self.dicts: list[dict[Any, Any]] = [
            plan.lines,
            plan.templates,
            plan.executed,
            model.notes,
            model.assumed,
            model.known_rows,  # a row makes its notes when it is looked up
        ]
        self.copies = [d.copy() for d in self.dicts]
        self.warnings, self.grade = plan.warnings.saved(), _grade(turns)
        self.current, self.turn_counts = dict(turns.current), dict(turns.turn_counts)
        self.products, self.steps_left = turns.products, turns.steps_left
        self.pending, self.pending_loc = turns.pending, turns.pending_loc
        self.read_lines = turns.touch.read_lines
        self.pending_bias = dict(turns.pending_bias)

    def restore(self, turns: Turns) -> None:
        for d, copy in zip(self.dicts, self.copies, strict=True):
            d.clear()
            d.update(copy)
        turns.plan.warnings.restore(self.warnings)
        turns.plan.costs.model.take_grade()
        turns.plan.costs.model.give_back(self.grade)
        turns.current, turns.turn_counts = self.current, self.turn_counts
        turns.products, turns.steps_left = self.products, self.steps_left
        turns.pending, turns.pending_loc = self.pending, self.pending_loc
        turns.touch.read_lines = self.read_lines
        turns.pending_bias = self.pending_bias

    def check(self, after: Turns, op: Op, fresh: bool) -> None:
        """Raise `NotAlikeError` unless the turn of `op` has ended as it began, but for what each turn makes anew.

        fresh: scalar work that has no record yet may differ; see `_charge_later_turns`.
        """
        made = {r.id for inner in walk(op.regions[0]) for r in inner.results}
        moved = {v for v, slot in after.current.items() if self.current.get(v) != slot}
        waiting = (after.pending, after.pending_loc) != (self.pending, self.pending_loc)
        if (waiting and not fresh) or _grade(after) != self.grade or not moved <= made:
            raise NotAlikeError

    def repeat(self, turns: Turns, series: Series, times: int, last: bool) -> Unrolled:
        """Go on as after so many turns instead of one; gives their records."""
        gains: dict[Any, int] = {
            k: count - self.turn_counts.get(k, -1) for k, count in turns.turn_counts.items()
        }
        more = [after - before for before, after in zip(self.products, turns.products, strict=True)]
        gains.update(zip(PRODUCTS, more, strict=True))
        found = series.unrolled(times, turns.rotation, gains, last)
        for v, slot in turns.current.items():
            if slot < 0:
                turns.current[v] = turns.rotation.after((slot,), gains, times - 1, last)[0]
        a, b = (count + times * by for count, by in zip(self.products, more, strict=True))
        turns.products = (a, b)
        for k in turns.turn_counts:
            turns.turn_counts[k] = self.turn_counts.get(k, -1) + times * gains[k]
        return found


def _grade(walk: Turns) -> int:
    """That of figures which no record has taken yet."""
    model = walk.plan.costs.model
    grade = model.take_grade()
    model.give_back(grade)
    return grade


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
    if isinstance(x, Affine) and not all(isinstance(s, int) for s in x.strides):
        raise NotAlikeError
