"""Integer divisions by zero: an error where their result is used, none where a mask hides it.

The device goes on, and nobody says what it computes; here the result is 0, and it is followed which elements of which values
come from it. An access that is masked out there, or a select that takes the other side, ends the trail. What is not known to
work element by element, as a reduction or a loop-carried value, counts as a use.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...errors import RunError
from ...ir.program import Op, Program, Value
from ..values import Opaque, column, take

Handler = Callable[[Op, Any], None]
BY_ELEMENT = ("binary", "unary", "compare", "cast", "select", "fma", "bitcast", "addptr")
SHAPES = ("splat", "broadcast", "expand_dims", "reshape", "permute")
KNOWS = "defined"  # what a check knows of values is no use of them
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

    def real(self, x: Any, v: Value | None) -> Any: ...
    def divided_by_zero(self, op: Op, zeros: np.ndarray) -> RunError: ...


class ZeroDivisors:
    """Follows results of divisions by zero through an interpreter, from the first such division on."""

    def __init__(self, interpreter: _Dividing) -> None:
        self.interpreter = interpreter
        walked = interpreter.program.walk()
        self.handed_on = {v.id for op in walked for region in op.regions for v in region.yields}

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
        given = [None if v is None else _found(frame, v) for v in op.args]
        if op.kind == KNOWS or not any(given):
            handler(op, frame)
            return
        self._check(op, given, frame)
        handler(op, frame)
        if op.results and (left := self._left(op, given, frame)) is not None:
            self._put(op, left, frame)

    def _check(self, op: Op, given: list[ZeroLanes | None], frame: _Frame) -> None:
        """Raise the error of a division whose result is used."""
        if op.kind in BY_ELEMENT or op.kind in SHAPES:
            return
        at = MASKED.get(op.kind)
        for k, x in enumerate(given):
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
            return _SHAPED[op.kind](op, given[0], shape)
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
        if op.results[0].id in self.handed_on:
            self._fail_if(lanes, lanes.lanes)
        frame.values[~op.results[0].id] = lanes  # numbers of values are not negative

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


_SHAPED: dict[str, Callable[[Op, np.ndarray, tuple[int, ...]], np.ndarray]] = {
    "splat": lambda op, x, shape: np.broadcast_to(column(x, len(shape)), (len(x), *shape)),
    "broadcast": lambda op, x, shape: np.broadcast_to(x, (len(x), *shape)),
    "expand_dims": lambda op, x, shape: x.reshape(len(x), *shape),
    "reshape": lambda op, x, shape: x.reshape(len(x), *shape),
    "permute": lambda op, x, shape: x.transpose(0, *(k + 1 for k in op.attrs["order"])),
}
