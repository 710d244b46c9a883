"""Index arithmetic that leaves its integer type: the number wraps as on the device, and the address is another one.

Told where an access uses such a number in its address or its mask, also where the wrapped index lies inside of the tensor;
not where a mask that is right hides it. Arithmetic on data, as of hashes and random numbers, wraps on purpose (see
ir/index_arithmetic.py).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...ir.definitions import makers
from ...ir.index_arithmetic import MASKS, SHAPES, deciding, decisive, index_arithmetic, reaching
from ...ir.program import Op, Program, Value
from ...messages import Message, fault
from ...precision import dtypes as ty
from .. import symbolic
from ..faults import Grid, place, program_name
from ..values import Affine, column
from .expressions import expression
from .overflow_uses import Makers, Trail
from .wrapped_numbers import Source, Wrapped, both, joined, others, put

Range = tuple[int, int]
EXACT = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "shl": np.left_shift}


def _scanned(op: Op, x: np.ndarray) -> np.ndarray:
    """Running sums along an axis, in 64 bits."""
    axis = op.attrs["axis"] + 1
    x = np.flip(x, axis) if op.attrs["reverse"] else x
    out = np.cumsum(x, axis, dtype=np.int64)
    return np.flip(out, axis) if op.attrs["reverse"] else out


EXACT_ALONE = {
    "cast": lambda op, x: x.astype(np.int64),
    "reduce": lambda op, x: x.sum(op.attrs["axis"] + 1, dtype=np.int64),
    "scan": _scanned,
}


class Overflow(NamedTuple):
    """The number farthest outside of its type that accesses used, and its program; all programs with such numbers.

    what: what it is a part of: the address, the mask, the condition or the range.
    """

    op: Op
    value: int
    program: int
    programs: frozenset[int]
    what: str = "address"


State = tuple[dict[int, Overflow], dict[int, Wrapped], dict[int, Source], dict[int, Source]]


class IndexOverflows:
    """What the index arithmetic of one program gave that its type does not hold, by operation."""

    def __init__(self, program: Program, grid: Grid) -> None:
        self.program, self.grid = program, grid
        self.worst: dict[int, Overflow] = {}  # that an access used
        self.wrapped: dict[int, Wrapped] = {}  # by value (id)
        self.handed: dict[int, Source] = {}  # what loops and branches have handed on, by value (id)
        self.selected: dict[int, Source] = {}  # what has decided in selects, by value (id)
        self.begun = False  # whether anything has wrapped so far
        self.last: list[tuple[int, Overflow]] = []  # of the access (id) at hand: the worst of each program
        self.ranges: dict[int, Range] = {}  # of values (by id) that such an operation has just made

    @functools.cached_property
    def makers(self) -> Makers:
        """Where values of the program come from."""
        return makers(self.program.walk())

    def narrowed(self, op: Op, x: Any, programs: np.ndarray) -> None:
        """A scalar that is cast to a narrower type."""
        if op.id in index_arithmetic(self.program):
            self._note(op, op.results[0], x, True, programs)

    def scalar(self, op: Op, a: Any, b: Any, exact: Any, programs: np.ndarray) -> None:
        """A scalar of each program, or of all, that does not fit in the type of the result."""
        if op.id in index_arithmetic(self.program):
            self._note(op, op.results[0], exact, _meant(op, a, b), programs)

    def elements(
        self, op: Op, args: list[Any], real: list[np.ndarray], out: np.ndarray, programs: np.ndarray
    ) -> None:
        """Index arithmetic on elements. args: the operands, real: the same as arrays; out: what the register holds."""
        if op.kind != "binary":
            self._note(
                op, op.results[0], EXACT_ALONE[op.kind](op, real[0]).reshape(out.shape), True, programs
            )
            return
        ranges = [self._range(v, x, r) for v, x, r in zip(op.args, args, real, strict=True)]
        r = op.results[0]
        self.ranges[r.id] = found = _range_of(op.name, *ranges)
        low, high = ty.limits(r.number)
        if low <= found[0] and found[1] <= high:
            self.forget(r, programs)
            return
        self.ranges[r.id] = low, high
        for x, v in zip(args, op.args, strict=True):
            if v is not None and isinstance(x, Affine) and not symbolic.inside(x, low, high):
                self.tile(x, v, programs)
        exact = EXACT[op.name](*real, dtype=np.int64)
        self._note(op, r, exact, _meant(op, *real), programs)

    def _range(self, v: Value | None, x: Any, real: np.ndarray) -> Range:
        """Two numbers between which all elements lie."""
        assert v is not None
        if isinstance(x, Affine):
            return symbolic.extremes(x)
        known = self.ranges.get(v.id)
        if known is not None:
            return known
        once = real[tuple(slice(0, 1) if s == 0 else slice(None) for s in real.strides)]
        return int(once.min()), int(once.max())

    def tile(self, x: Affine, v: Value, programs: np.ndarray) -> None:
        """An index tile, of which an element does not fit in the type of its value."""
        op = self._arithmetic(v)
        if op is not None:
            self._note(op, v, x.elements(), True, programs)

    def _arithmetic(self, v: Value) -> Op | None:
        """What computes an index tile, before it is given another shape or handed on; None for no index arithmetic."""
        made, sources = self.makers
        wanted, seen = [v.id], set[int]()
        found: list[Op] = []
        while wanted:
            number = wanted.pop()
            if number in seen:
                continue
            seen.add(number)
            wanted += sources.get(number, ())
            op = made.get(number)
            if op is not None and op.id in index_arithmetic(self.program):
                found.append(op)
            elif op is not None and op.kind in SHAPES:
                wanted.append(op.operand(0).id)
        return max(found, key=lambda op: op.id, default=None)  # of a loop, its own after what is before it

    def pointer(self, op: Op, exact: int, programs: np.ndarray) -> None:
        """A pointer that was moved beyond 64 bits."""
        self._keep(op, exact, programs, "address")

    def state(self) -> State:
        """What is known; see `restore`."""
        return self.worst.copy(), self.wrapped.copy(), self.handed.copy(), self.selected.copy()

    def restore(self, known: State) -> None:
        """Forget what was found since then."""
        self.worst, self.wrapped, self.handed, self.selected = known

    def hand_on(
        self,
        given: Sequence[Value | None],
        targets: Sequence[Sequence[Value]],
        frame: Any,
        programs: np.ndarray,
    ) -> None:
        """A loop or branch hands values on: to each of `targets`, as arguments of its body and its results."""
        trail = self._trail(frame, programs)
        whole = [v for v in given if v is not None]
        found = [trail.index(v) if v.is_pointer or v.number.is_int() else [] for v in whole]
        data = [trail.data(v) if self.selected else [] for v in whole]
        for values in targets:
            for v, new, by_selects in zip(values, found, data, strict=True):
                put(self.handed, v, new, programs)
                put(self.selected, v, by_selects, programs)

    def select(self, op: Op, frame: Any, programs: np.ndarray) -> None:
        """A select that was made: keep what decides of numbers that have wrapped, until an access uses the result."""
        trail, meant = self._trail(frame, programs), deciding(self.program).get(op.id, frozenset())
        found = [w for w in trail.mask(op.operand(0)) if w.op.id in meant] if meant else []
        r = op.results[0]
        earlier = self.selected.pop(r.id, [])  # of other programs, which the trail must not stop at
        data = joined([*trail.differs(op, found), *(trail.data(r) if self.selected else [])])
        self.selected.update({r.id: earlier} if earlier else {})
        put(self.selected, r, data, programs)

    def _trail(self, frame: Any, programs: np.ndarray) -> Trail:
        return Trail(self.makers[0], self.wrapped, self.handed, self.selected, frame, programs)

    def messages(self) -> tuple[Message, ...]:
        """What accesses have used."""
        return tuple(fault(self._text(x), place(x.op), (x.program,)) for _, x in sorted(self.worst.items()))

    def behind(self, access: Op, program: int) -> str:
        """Why an access of that program is out of bounds; "" where it uses no index that has overflowed."""
        mine = [x for number, x in self.last if number == access.id and program in x.programs]
        found = reaching(self.program, [access.operand(0)])
        mine += [
            x for n, x in self.worst.items() if n in found and x.op.kind == "addptr" and x.program == program
        ]
        return next((f"{self._text(x)} (line {x.op.loc.line})" for x in mine if x.program == program), "")

    def access(self, op: Op, frame: Any, programs: np.ndarray) -> None:
        """An access that is about to be made: keep what it uses of numbers that have wrapped."""
        trail = self._trail(frame, programs)
        mask, self.last = op.args[MASKS[op.kind]], []
        index = trail.index(op.operand(0))
        chosen = trail.chosen(mask) if index else False
        addresses = {w.op.id for w in index}
        for w in index:
            self._used(op, w, (w.at >= 0) & _column(chosen, w.at.ndim), programs, "address")
        if self.selected:
            self._data(op, trail, programs)
        for w in trail.mask(mask) if mask is not None else ():
            self._used(op, w, w.at >= 0, programs, "address" if w.op.id in addresses else "mask")

    def _data(self, op: Op, trail: Trail, programs: np.ndarray) -> None:
        """Keep what selects went by on the way to the address and the stored value of an access."""
        values = [op.operand(0), *((op.operand(1),) if op.kind != "load" else ())]
        found = [w for v in values for w in trail.data(v)]
        chosen = trail.chosen(op.args[MASKS[op.kind]]) if found else False
        for w in found:
            self._used(op, w, (w.at >= 0) & _column(chosen, w.at.ndim), programs, "condition")

    def decision(self, op: Op, frame: Any, programs: np.ndarray) -> None:
        """A branch or loop that is about to go its way: keep what decides of numbers that have wrapped."""
        meant = deciding(self.program).get(op.id)
        if meant is None:
            return
        trail, (conditions, bounds) = self._trail(frame, programs), decisive(op)
        found = [w for v in conditions if v is not None for w in trail.mask(v)]
        found += [w for v in bounds if v is not None for w in trail.index(v)]
        for w in found:
            if w.op.id in meant:
                self._used(op, w, w.at >= 0, programs, "range" if bounds else "condition")

    def _used(self, access: Op, w: Wrapped, lanes: np.ndarray, programs: np.ndarray, what: str) -> None:
        """Keep the number farthest outside among those that lanes (P or 1, *shape) use, of each program."""
        at = np.broadcast_to(w.at, np.broadcast_shapes(w.at.shape, lanes.shape))
        for row in np.flatnonzero(lanes.reshape(len(lanes), -1).any(axis=1)):
            numbers = w.exact.flat[at[row % len(at)][lanes[row]]]
            value = int(numbers[np.argmax(np.abs(numbers))])
            mine = programs[[row]] if len(lanes) > 1 else programs
            self._keep(w.op, value, mine, what)
            every = (Overflow(w.op, value, int(p), frozenset([int(p)]), what) for p in mine)
            self.last += [(access.id, x) for x in every]

    def forget(self, v: Value, programs: np.ndarray) -> None:
        """A value that fits in these programs."""
        known = self.wrapped.pop(v.id, None)
        if known is not None and (left := others(known, programs)) is not None:
            self.wrapped[v.id] = left

    def _note(self, op: Op, v: Value, exact: Any, meant: Any, programs: np.ndarray) -> None:
        """Keep which of these numbers of the value v lie outside of its type; meant: where they count."""
        low, high = ty.limits(op.results[0].number)
        exact = np.array([exact], object) if isinstance(exact, int) else exact
        outside = np.asarray(((exact < low) | (exact > high)) & meant, bool)
        self.forget(v, programs)
        if not outside.any():
            return
        outside = np.broadcast_to(outside, exact.shape)
        new = Wrapped(op, programs, exact, np.where(outside, np.arange(exact.size).reshape(exact.shape), -1))
        self.begun, known = True, self.wrapped.get(v.id)
        self.wrapped[v.id] = new if known is None else both(known, new)

    def _keep(self, op: Op, value: int, programs: np.ndarray, what: str) -> None:
        program, known, every = int(programs[0]), self.worst.get(op.id), frozenset(programs.tolist())
        if known is not None and (abs(known.value), -known.program) >= (abs(value), -program):
            self.worst[op.id] = known._replace(programs=known.programs | every)
        else:
            every |= known.programs if known else frozenset()
            self.worst[op.id] = Overflow(op, value, program, every, what)

    def _text(self, x: Overflow) -> str:
        op, dtype = x.op, x.op.results[0].dtype
        formula = expression(self.program, op)
        where = program_name(x.program, self.grid)
        if op.kind == "addptr":
            return (
                f"pointer overflow: {formula} is element {x.value:,} in {where}, beyond the 64 bits of an address; "
                "correct the offsets"
            )
        kept = ty.wrapped(x.value, op.results[0].number)
        return (
            f"{dtype} overflow: {formula} = {x.value:,} in {where} does not fit in {dtype}, and the {x.what} is made of "
            f"{kept:,} instead; {'keep it in 64 bits' if op.kind == 'cast' else 'take .to(tl.int64) of an operand'}"
        )


def _column(chosen: Any, rank: int) -> Any:
    """A mask with as many axes as the elements of an access."""
    return column(chosen, rank - 1) if isinstance(chosen, np.ndarray) and chosen.ndim == 1 else chosen


def _range_of(name: str, a: Range, b: Range) -> Range:
    """Where sums, differences, products or shifted numbers of two ranges lie."""
    if name == "add":
        return a[0] + b[0], a[1] + b[1]
    if name == "sub":
        return a[0] - b[1], a[1] - b[0]
    if name == "shl":
        b = (1 << min(max(b[0], 0), 64), 1 << min(max(b[1], 0), 64))
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _meant(op: Op, a: Any, b: Any) -> Any:
    """Where both operands are numbers that somebody meant: the smallest of a type is poison, or has wrapped before."""
    smallest = ty.limits(op.results[0].number)[0]
    return np.not_equal(a, smallest) & np.not_equal(b, smallest)
