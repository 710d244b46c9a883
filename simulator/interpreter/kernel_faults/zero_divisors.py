"""Integer divisions by zero: an error where their result is used, none where a mask hides it.

The device goes on, and nobody says what it computes; here the result is 0, and it is followed which elements of which values
come from it. An access that is masked out there, or a select that takes the other side, ends the trail. What is not known to
work element by element, as a reduction, counts as a use, and so does what steers a loop or a branch. What loops and branches
hand on keeps the elements of all its sources; for other programs than were at work then that is a use.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...errors import RunError
from ...ir.definitions import makers
from ...ir.program import Op, Program, Value
from ..values import Opaque, column, take

Handler = Callable[[Op, Any], None]
BY_ELEMENT = ("binary", "unary", "compare", "cast", "select", "fma", "bitcast", "addptr")
SHAPES = ("splat", "broadcast", "expand_dims", "reshape", "permute")
KNOWS = ("defined", "float64")  # what is followed beside values is no use of them
STEERING = {"for": 3, "while": 0, "if": 1}  # operands in front that steer it; what follows is handed on
MASKED = {"load": 1, "store": 2, "atomic": 2}  # operand that is the mask


class ZeroLanes(NamedTuple):
    """lanes: elements of a value, (P or 1, *shape), that come of the division `op` by the `zeros` of its right side."""

    lanes: np.ndarray
    op: Op
    zeros: np.ndarray


class _Frame(Protocol):
    """Values by number of the programs that run now; see `state.Frame`."""

    values: dict[int, Any]
    index: np.ndarray | None

    @property
    def parent(self) -> Any: ...
    def get(self, v: Value) -> Any: ...


class _Dividing(Protocol):
    """What is asked of an interpreter."""

    program: Program
    active: np.ndarray

    def real(self, x: Any, v: Value | None) -> Any: ...
    def divided_by_zero(self, op: Op, zeros: np.ndarray) -> RunError: ...


class ZeroDivisors:
    """Follows results of divisions by zero through an interpreter, from the first such division on."""

    def __init__(self, interpreter: _Dividing) -> None:
        self.interpreter = interpreter
        ops = list(interpreter.program.walk())
        _, self.sources = makers(ops)
        self.handed_on = {source for found in self.sources.values() for source in found}
        self.steering = {op.regions[0].yields[0].id for op in ops if op.kind == "while"}
        self.carried: dict[int, tuple[ZeroLanes, np.ndarray]] = {}  # with the programs that were at work

    def handlers(self, plain: defaultdict[str, Handler]) -> defaultdict[str, Handler]:
        """Methods that carry out operations and follow them."""
        made = {kind: partial(self.carry_out, handler) for kind, handler in plain.items()}
        return defaultdict(lambda: partial(self.carry_out, plain[""]), made)

    def begin(self, op: Op, zeros: np.ndarray, frame: _Frame) -> None:
        """`op` has just divided by zero there."""
        shape = op.results[0].shape
        lanes = zeros if zeros.ndim > 1 else column(zeros, len(shape))
        self._put(op, ZeroLanes(np.broadcast_to(lanes, (len(lanes), *shape)), op, zeros), frame)

    def carry_out(self, handler: Handler, op: Op, frame: _Frame) -> None:
        given = [None if v is None else self._given(frame, v) for v in op.args]
        if op.kind in KNOWS or not any(given):
            handler(op, frame)
            return
        self._check(op, given, frame)
        for v, x in zip(op.args, given, strict=True) if op.regions else ():
            if v is not None and x is not None:
                self._carry(v.id, x)
        handler(op, frame)
        if op.results and not op.regions and (left := self._left(op, given, frame)) is not None:
            self._put(op, left, frame)

    def _check(self, op: Op, given: list[ZeroLanes | None], frame: _Frame) -> None:
        """Raise the error of a division whose result is used."""
        if op.kind in BY_ELEMENT or op.kind in SHAPES:
            return
        at, first = MASKED.get(op.kind), STEERING.get(op.kind, len(given))
        for k, x in enumerate(given[:first]):
            if x is None or (op.kind == "load" and k == 2):
                continue
            self._fail_if(x, x.lanes if at in (None, k) else x.lanes & self._chosen(op.args[at], frame))

    def _chosen(self, mask: Value | None, frame: _Frame) -> Any:
        """Where a mask lets an access through; nowhere if that is not known, as in a run without values."""
        return True if mask is None else self._elements(mask, frame, False)

    def _elements(self, v: Value, frame: _Frame, unknown: bool) -> Any:
        """The truth values (P or 1, *shape) of a value."""
        x = frame.get(v)
        if isinstance(x, Opaque):
            return unknown
        return np.atleast_1d(np.asarray(self.interpreter.real(x, v)))

    def _left(self, op: Op, given: list[ZeroLanes | None], frame: _Frame) -> ZeroLanes | None:
        """What of the result comes of a division by zero."""
        first = next(x for x in given if x is not None)
        lanes = self._lanes(op, [False if x is None else x.lanes for x in given], frame)
        return first._replace(lanes=lanes) if np.any(lanes) else None

    def _lanes(self, op: Op, given: list[Any], frame: _Frame) -> Any:
        shape = op.results[0].shape
        if op.kind in SHAPES:
            return SHAPED[op.kind](op, given[0], shape)
        if op.kind == "load":
            return given[2] & ~np.asarray(self._chosen(op.args[1], frame))
        if op.kind == "select":
            c = self._elements(op.operand(0), frame, True)
            known = not isinstance(c, bool)
            return np.where(c, given[1], given[2]) | given[0] if known else False
        if op.kind == "binary" and op.name in ("and", "or") and op.results[0].dtype.is_bool():
            return self._truth(op, given, frame)
        return np.logical_or.reduce(np.broadcast_arrays(*given))

    def _truth(self, op: Op, given: list[Any], frame: _Frame) -> Any:
        """Of `a and b`: not where the other side is false, whatever this one is; of `a or b`, not where it is true."""
        x, y = (self._elements(op.operand(k), frame, op.name == "and") for k in (0, 1))
        x, y = (x, y) if op.name == "and" else (~np.asarray(x), ~np.asarray(y))
        return (given[0] & (y | given[1])) | (given[1] & (x | given[0]))

    def _put(self, op: Op, lanes: ZeroLanes, frame: _Frame) -> None:
        number = op.results[0].id
        if number in self.steering:
            self._fail_if(lanes, lanes.lanes)
        if number in self.handed_on:
            self._carry(number, lanes)
        frame.values[~number] = lanes  # numbers of values are not negative

    def _carry(self, number: int, x: ZeroLanes) -> None:
        """Keep what comes of a division in a value that a loop or a branch hands on."""
        known, active = self.carried.get(number), self.interpreter.active
        if known is not None and np.array_equal(known[1], active):
            x = x._replace(lanes=x.lanes | known[0].lanes)
        elif known is not None:
            self._fail_if(x, x.lanes)
        self.carried[number] = x, active

    def _given(self, frame: _Frame, v: Value) -> ZeroLanes | None:
        """What is known of a value: from the operation that made it, or from what handed it on."""
        found = _found(frame, v)
        if found is not None or v.id not in self.sources:
            return found
        for number in self._all_sources(v.id):
            known = self.carried.get(number)
            if known is None:
                continue
            if not np.array_equal(known[1], self.interpreter.active):
                self._fail_if(known[0], known[0].lanes)
            found = known[0] if found is None else found._replace(lanes=found.lanes | known[0].lanes)
        return found

    def _all_sources(self, number: int) -> set[int]:
        seen: set[int] = set()
        wanted = [number]
        while wanted:
            new = set(self.sources.get(wanted.pop(), ())) - seen
            seen |= new
            wanted.extend(new)
        return seen

    def _fail_if(self, x: ZeroLanes, used: Any) -> None:
        if np.any(used):
            alike = used.shape[1:] == x.zeros.shape[1:]
            raise self.interpreter.divided_by_zero(x.op, used if alike else x.zeros)


def _found(frame: _Frame, v: Value) -> ZeroLanes | None:
    """What is known of a value in this frame, or in one around it for the programs of this one."""
    x = frame.values.get(~v.id)
    if x is not None or frame.parent is None:
        return x
    x = _found(frame.parent, v)
    if x is None or frame.index is None:
        return x
    lanes, zeros = take(x.lanes, frame.index), take(x.zeros, frame.index)
    return x._replace(lanes=lanes, zeros=zeros) if lanes.any() else None


SHAPED: dict[str, Callable[[Op, np.ndarray, tuple[int, ...]], np.ndarray]] = {
    "splat": lambda op, x, shape: np.broadcast_to(column(x, len(shape)), (len(x), *shape)),
    "broadcast": lambda op, x, shape: np.broadcast_to(x, (len(x), *shape)),
    "expand_dims": lambda op, x, shape: x.reshape(len(x), *shape),
    "reshape": lambda op, x, shape: x.reshape(len(x), *shape),
    "permute": lambda op, x, shape: x.transpose(0, *(k + 1 for k in op.attrs["order"])),
}
