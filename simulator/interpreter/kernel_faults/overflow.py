"""Index arithmetic that leaves its integer type: the number wraps as on the device, and the address is another one.

Told wherever such a number is part of an address, also where a mask hides the access or the wrapped index lies inside of the
tensor. Arithmetic on data, as of hashes and random numbers, wraps on purpose (see ir/index_arithmetic.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...ir.index_arithmetic import index_arithmetic, reaching
from ...ir.program import Op, Program, Value
from ...messages import Message, fault
from ...precision import dtypes as ty
from .. import symbolic
from ..faults import Grid, place, program_name
from ..values import Affine
from .expressions import expression, maker

Range = tuple[int, int]
EXACT = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "shl": np.left_shift}


class Overflow(NamedTuple):
    """The number farthest outside of its type that an operation gave, and its program; all programs with such numbers."""

    op: Op
    value: int
    program: int
    programs: frozenset[int]


class IndexOverflows:
    """What the index arithmetic of one program gave that its type does not hold, by operation."""

    def __init__(self, program: Program, grid: Grid) -> None:
        self.program, self.grid = program, grid
        self.worst: dict[int, Overflow] = {}
        self.ranges: dict[int, Range] = {}  # of values (by id) that such an operation has just made

    def scalar(self, op: Op, a: Any, b: Any, exact: Any, programs: np.ndarray) -> None:
        """A scalar of each program, or of all, that does not fit in the type of the result."""
        if op.id in index_arithmetic(self.program):
            self._note(op, exact, _meant(op, a, b), programs)

    def elements(
        self, op: Op, args: list[Any], real: list[np.ndarray], out: np.ndarray, programs: np.ndarray
    ) -> None:
        """Index arithmetic on elements. args: the operands, real: the same as arrays; out: what the register holds."""
        ranges = [self._range(v, x, r) for v, x, r in zip(op.args, args, real, strict=True)]
        r = op.results[0]
        self.ranges[r.id] = found = _range_of(op.name, *ranges)
        low, high = ty.limits(r.number)
        if low <= found[0] and found[1] <= high:
            return
        self.ranges[r.id] = low, high
        for x, v in zip(args, op.args, strict=True):
            if v is not None and isinstance(x, Affine) and not symbolic.inside(x, low, high):
                self.tile(x, v, programs)
        exact = EXACT[op.name](*real, dtype=np.int64)
        if (exact != out).any():
            self._note(op, exact, _meant(op, *real), programs)

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
        op = maker(self.program, v)
        if op is not None and op.id in index_arithmetic(self.program):
            low, high = (np.atleast_1d(np.asarray(end)) for end in symbolic.span(x))
            for end in (low, high):
                self._note(op, end, True, programs)

    def pointer(self, op: Op, exact: int, programs: np.ndarray) -> None:
        """A pointer that was moved beyond 64 bits."""
        self._keep(op, exact, int(programs[0]), programs)

    def messages(self) -> tuple[Message, ...]:
        return tuple(fault(self._text(x), place(x.op), (x.program,)) for _, x in sorted(self.worst.items()))

    def behind(self, access: Op, program: int) -> str:
        """Why an access of that program is out of bounds; "" where no index of it is known to have overflowed."""
        found = reaching(self.program, [access.operand(0)])
        texts = (
            f"{self._text(x)} (line {x.op.loc.line})"
            for n, x in self.worst.items()
            if n in found and program in x.programs
        )
        return next(texts, "")

    def _note(self, op: Op, exact: Any, meant: Any, programs: np.ndarray) -> None:
        """Keep what of these numbers lies farthest outside; meant: where they count."""
        low, high = ty.limits(op.results[0].number)
        exact = np.array([exact], object) if isinstance(exact, int) else exact
        outside = ((exact < low) | (exact > high)) & meant
        if not outside.any():
            return
        rows = np.flatnonzero(outside.reshape(len(outside), -1).any(axis=1))
        which = programs[rows] if len(outside) > 1 else programs
        far = np.abs(np.where(outside, exact, 0))
        row, *rest = np.unravel_index(int(np.argmax(far)), far.shape)
        program = programs[row] if len(outside) > 1 else programs[0]
        self._keep(op, int(exact[(row, *rest)]), int(program), which)

    def _keep(self, op: Op, value: int, program: int, programs: np.ndarray) -> None:
        known, every = self.worst.get(op.id), frozenset(programs.tolist())
        if known is not None and (abs(known.value), -known.program) >= (abs(value), -program):
            self.worst[op.id] = known._replace(programs=known.programs | every)
        else:
            self.worst[op.id] = Overflow(
                op, value, program, every | (known.programs if known else frozenset())
            )

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
            f"{dtype} overflow: {formula} = {x.value:,} in {where} does not fit in {dtype}, and the address is made of "
            f"{kept:,} instead; take .to(tl.int64) of an operand"
        )


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
