"""Walks a tile program for many programs of its grid at once: control flow and symbolic values, exact for each program.

Two readings share it: `ValueRun` (dense.py) computes elements; timing's lowering records instructions. A reading
overrides the methods under "what a reading defines".

Where programs part ways (a branch, different trip counts) the walker goes on with the group that takes the way and
merges afterwards; `self.active` holds the numbers of the programs being walked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import AscendtileError, RunError
from ..frontend import types as ty
from ..frontend.liveness import last_uses
from ..frontend.program import Op, Program, Region, Value
from ..frontend.types import DType
from . import symbolic
from .values import OPAQUE, Affine, Box, Opaque, Pointers, column, merge, take

DEFAULT_STEP_LIMIT = 10_000_000


class DataDependentError(AscendtileError):
    """Control flow or an address depends on data that this run does not have."""


class Frame:
    """Values by number; a frame for a subset of the programs finds outer values through its parent."""

    __slots__ = ("index", "parent", "values")

    def __init__(self, parent: Frame | None = None, index: np.ndarray | None = None) -> None:
        self.values: dict[int, Any] = {}
        self.parent = parent
        self.index = index

    def get(self, v: Value) -> Any:
        x = self.values.get(v.id, _MISSING)
        if x is _MISSING:
            assert self.parent is not None, v
            x = self.parent.get(v)
            x = x if self.index is None else take(x, self.index)
            self.values[v.id] = x
        return x


_MISSING = object()


class Walker(ABC):
    """One walk over a program for the programs numbered `numbers` of a grid."""

    def __init__(
        self, program: Program, grid: tuple[int, int, int], step_limit: int = DEFAULT_STEP_LIMIT
    ) -> None:
        self.program = program
        self.grid = grid
        self.last_uses = last_uses(program)
        self.active = np.empty(0, np.int64)
        self.steps_left = step_limit
        self.step_limit = step_limit
        self.handlers: dict[str, Callable[[Op, Frame], None]] = {
            name[3:]: getattr(self, name) for name in dir(self) if name.startswith("op_")
        }

    def walk(self, numbers: np.ndarray, arguments: dict[str, Any]) -> None:
        """Run the programs `numbers` with the runtime values of the parameters."""
        self.active = numbers
        self.steps_left = self.step_limit
        frame = Frame()
        for name, v in self.program.params.items():
            frame.values[v.id] = arguments[name]
        self.region(self.program.body, frame)

    def region(self, region: Region, frame: Frame) -> None:
        values = frame.values
        for op in region.ops:
            self.handlers[op.kind](op, frame)
            for vid in self.last_uses.get(op.id, ()):
                values.pop(vid, None)

    # -- what a reading defines --------------------------------------------------------------------------------------

    @abstractmethod
    def dense(self, op: Op, args: list[Any]) -> Any:
        """Result of an operation on elements."""

    @abstractmethod
    def load(self, op: Op, pointer: Pointers, mask: Any, other: Any) -> Any:
        """An access to global memory; see `Pointers` for the addresses, `Box` and scalars for the mask."""

    @abstractmethod
    def store(self, op: Op, pointer: Pointers, value: Any, mask: Any) -> None:
        """An access to global memory; see `Pointers` for the addresses, `Box` and scalars for the mask."""

    @abstractmethod
    def atomic(self, op: Op, pointer: Pointers, value: Any, mask: Any) -> Any:
        """An access to global memory; see `Pointers` for the addresses, `Box` and scalars for the mask."""

    def symbolic_done(self, op: Op) -> None:
        """An operation on scalars or index tiles was done."""

    def before_use(self, op: Op, args: list[Any]) -> None:
        """Called before a dense operation; a reading may charge for making symbolic operands real."""

    def turn(self, op: Op, number: int) -> None:
        """A turn of a loop begins."""

    def turn_ends(self, op: Op) -> None:
        """A turn of a loop ends."""

    def branch_ends(self, op: Op, region: Region) -> None:
        """A branch of an `if` was walked."""

    def loop_begins(self, op: Op) -> None:
        """A loop is entered."""

    def check_assert(self, op: Op, condition: Any) -> None:
        """An assertion is reached."""

    # -- scalars, index tiles ----------------------------------------------------------------------------------------

    def op_const(self, op: Op, frame: Frame) -> None:
        x = op.attrs["value"]
        r = op.results[0]
        if isinstance(x, float):
            frame.values[r.id] = np.full(1, x, r.dtype.held)  # type: ignore[union-attr]
        else:
            frame.values[r.id] = symbolic.wrap(x, 64, True) if r.dtype == ty.uint64 else x

    def op_program_id(self, op: Op, frame: Frame) -> None:
        gx, gy, _ = self.grid
        axis = op.attrs["axis"]
        x = (
            self.active % gx
            if axis == 0
            else self.active // gx % gy
            if axis == 1
            else self.active // (gx * gy)
        )
        frame.values[op.results[0].id] = int(x[0]) if len(x) == 1 else x

    def op_num_programs(self, op: Op, frame: Frame) -> None:
        frame.values[op.results[0].id] = self.grid[op.attrs["axis"]]

    def op_arange(self, op: Op, frame: Frame) -> None:
        frame.values[op.results[0].id] = Affine(op.attrs["start"], (1,), op.results[0].shape)

    def op_splat(self, op: Op, frame: Frame) -> None:
        v, r = op.args[0], op.results[0]
        assert v is not None
        x = frame.get(v)
        rank = len(r.shape)
        if isinstance(x, Pointers):
            x = Pointers(x.tensor, Affine(x.offsets, (0,) * rank, r.shape))
        elif v.dtype.is_bool() and not isinstance(x, Opaque):
            x = symbolic.constant_box(x, r.shape)
        elif v.dtype.is_int() and not isinstance(x, Opaque):
            x = Affine(x, (0,) * rank, r.shape)
        elif not isinstance(x, Opaque):
            x = np.broadcast_to(column(x, rank), (x.shape[0], *r.shape))
        frame.values[r.id] = x

    def op_broadcast(self, op: Op, frame: Frame) -> None:
        x = self.shaped(op, frame)
        old, new = op.args[0].shape, op.results[0].shape  # type: ignore[union-attr]
        if isinstance(x, Affine):
            x = Affine(
                x.base, tuple(0 if o != n else s for s, o, n in zip(x.strides, old, new, strict=True)), new
            )
        elif isinstance(x, Box):
            x = _stretch_box(x, old, new)
        elif not isinstance(x, Opaque):
            x = np.broadcast_to(x, (x.shape[0], *new))
        self.put(op, frame, x)

    def op_expand_dims(self, op: Op, frame: Frame) -> None:
        x, at = self.shaped(op, frame), op.attrs["axis"]
        shape = op.results[0].shape
        if isinstance(x, Affine):
            x = Affine(x.base, (*x.strides[:at], 0, *x.strides[at:]), shape)
        elif isinstance(x, Box):
            x = Box((*x.lows[:at], 0, *x.lows[at:]), (*x.highs[:at], 1, *x.highs[at:]), shape)
        elif not isinstance(x, Opaque):
            x = x.reshape(x.shape[0], *shape)
        self.put(op, frame, x)

    def op_permute(self, op: Op, frame: Frame) -> None:
        x, order = self.shaped(op, frame), op.attrs["order"]
        shape = op.results[0].shape
        if isinstance(x, Affine):
            x = Affine(x.base, tuple(x.strides[k] for k in order), shape)
        elif isinstance(x, Box):
            x = Box(tuple(x.lows[k] for k in order), tuple(x.highs[k] for k in order), shape)
        else:
            self.dense_op(op, frame)
            return
        self.put(op, frame, x)

    def op_reshape(self, op: Op, frame: Frame) -> None:
        x = self.shaped(op, frame)
        if isinstance(x, Affine | Box):
            x = self.real(x, op.args[0])
        if not isinstance(x, Opaque):
            x = np.ascontiguousarray(x).reshape(x.shape[0], *op.results[0].shape)
        self.put(op, frame, x)

    def shaped(self, op: Op, frame: Frame) -> Any:
        """Operand of a shape operation: of pointers, their offsets."""
        v = op.args[0]
        assert v is not None
        x = frame.get(v)
        return x.offsets if isinstance(x, Pointers) else x

    def put(self, op: Op, frame: Frame, x: Any) -> None:
        v = op.args[0]
        assert v is not None
        if v.is_pointer:
            x = Pointers(frame.get(v).tensor, x)
        frame.values[op.results[0].id] = x

    def op_addptr(self, op: Op, frame: Frame) -> None:
        p, o = (frame.get(v) for v in op.args if v is not None)
        base = p.offsets
        if isinstance(o, Opaque) or isinstance(base, Opaque):
            out: Any = OPAQUE
        elif isinstance(base, Affine) and isinstance(o, Affine) and symbolic.inside(o, *_limits(op.args[1])):
            out = symbolic.affine_binary("add", base, o)
        elif op.results[0].shape == ():
            out = base + o
        else:
            out = self.real(base, None) + self.real(o, op.args[1]).astype(np.int64)
        frame.values[op.results[0].id] = Pointers(p.tensor, out)

    def op_binary(self, op: Op, frame: Frame) -> None:
        a, b = (frame.get(v) for v in op.args if v is not None)
        out = self.symbolic_binary(op, a, b)
        if out is None:
            self.dense_op(op, frame)
            return
        self.symbolic_done(op)
        frame.values[op.results[0].id] = out

    def symbolic_binary(self, op: Op, a: Any, b: Any) -> Any:
        r = op.results[0]
        if isinstance(a, Affine) and isinstance(b, Affine):
            return self.index_binary(op, a, b)
        if isinstance(a, Box) and isinstance(b, Box):
            return symbolic.box_and(a, b) if op.name == "and" else None
        if r.shape or isinstance(a, Opaque) or isinstance(b, Opaque) or not r.dtype.is_int():
            return OPAQUE if not r.shape and (isinstance(a, Opaque) or isinstance(b, Opaque)) else None
        return None if r.dtype == ty.uint64 else self.scalar_binary(op, a, b)

    def index_binary(self, op: Op, a: Affine, b: Affine) -> Affine | None:
        """On index tiles; of two tiles that are one number per program, on those numbers."""
        if not (symbolic.flat(a) and symbolic.flat(b)):
            return symbolic.affine_binary(op.name, a, b)
        if op.results[0].dtype == ty.uint64:
            return None
        return Affine(self.scalar_binary(op, a.base, b.base), a.strides, a.shape)

    def scalar_binary(self, op: Op, a: Any, b: Any) -> Any:
        dtype = op.results[0].dtype
        assert isinstance(dtype, DType)
        if op.name in ("floordiv", "mod") and np.any(np.asarray(b) == 0):
            raise RunError(f"{place(op)}: integer division by zero in program {self.first_program(b, 0)}")
        out = symbolic.INTEGER[op.name](a, b)
        if dtype.is_bool():
            return bool(out) if isinstance(out, int | np.bool_) else out
        return symbolic.fit_in(out, dtype.bits, dtype.kind == "int")

    def first_program(self, x: Any, value: int) -> int:
        """Number of the first program in which an element of `x` is `value`."""
        hit = np.atleast_1d(np.asarray(x) == value)
        row = int(np.argmax(hit.reshape(hit.shape[0], -1).any(axis=1)))
        return int(self.active[row])

    def op_compare(self, op: Op, frame: Frame) -> None:
        a, b = (frame.get(v) for v in op.args if v is not None)
        r = op.results[0]
        if isinstance(a, Affine) and isinstance(b, Affine):
            out = self.index_compare(op, a, b) if r.static.kind == "box" else None
            if out is not None:
                self.symbolic_done(op)
                frame.values[r.id] = out
                return
        elif r.shape == () and op.args[0].dtype != ty.uint64:  # type: ignore[union-attr]
            frame.values[r.id] = self.scalar_compare(op, a, b)
            self.symbolic_done(op)
            return
        self.dense_op(op, frame)

    def index_compare(self, op: Op, a: Affine, b: Affine) -> Box | None:
        """A box, unless an element does not fit its type: what wraps is compared element by element."""
        limits = _limits(op.args[0])
        return (
            symbolic.affine_compare(op.name, a, b)
            if symbolic.inside(a, *limits) and symbolic.inside(b, *limits)
            else None
        )

    def scalar_compare(self, op: Op, a: Any, b: Any) -> Any:
        if isinstance(a, Opaque) or isinstance(b, Opaque):
            return OPAQUE
        out = symbolic.COMPARE[op.name](a, b)
        if isinstance(out, np.ndarray) and out.shape == (1,):
            return bool(out[0])
        return out if isinstance(out, np.ndarray) else bool(out)

    def op_cast(self, op: Op, frame: Frame) -> None:
        v = op.args[0]
        assert v is not None
        x, r = frame.get(v), op.results[0]
        if isinstance(x, Affine) and r.static.kind == "affine" and _keeps(x, v, r):
            frame.values[r.id] = x
        elif r.shape == () and r.dtype.is_int() and v.dtype.is_int() and not isinstance(x, Opaque):
            frame.values[r.id] = self.scalar_int_cast(x, r.dtype)  # type: ignore[arg-type]
        else:
            self.dense_op(op, frame)

    def scalar_int_cast(self, x: Any, dtype: DType) -> Any:
        if dtype.is_bool():
            return x != 0
        x = (
            int(x)
            if isinstance(x, bool | np.bool_)
            else x.astype(np.int64)
            if isinstance(x, np.ndarray)
            else x
        )
        return symbolic.fit_in(x, dtype.bits, dtype.kind == "int")

    def op_unary(self, op: Op, frame: Frame) -> None:
        v = op.args[0]
        assert v is not None
        x = frame.get(v)
        if not v.shape and v.dtype.is_int() and not v.dtype.is_bool() and not isinstance(x, Opaque):
            out = -x if op.name == "neg" else abs(x)
            frame.values[op.results[0].id] = symbolic.fit_in(out, v.dtype.bits, v.dtype.kind == "int")  # type: ignore[union-attr]
            return
        self.dense_op(op, frame)

    def op_select(self, op: Op, frame: Frame) -> None:
        self.dense_op(op, frame)

    def op_reduce(self, op: Op, frame: Frame) -> None:
        self.dense_op(op, frame)

    def dense_op(self, op: Op, frame: Frame) -> None:
        args = [None if v is None else frame.get(v) for v in op.args]
        self.before_use(op, args)
        out = self.dense(op, args)
        r = op.results[0]
        if not r.shape and r.dtype.is_int() and isinstance(out, np.ndarray):
            out = _scalar_from_dense(out, r.dtype.is_bool())
        frame.values[r.id] = out

    def real(self, x: Any, v: Value | None) -> Any:
        """Elements of a symbolic tile; scalars and dense tiles as they are."""
        if isinstance(x, Affine):
            return x.dense(v.dtype if v is not None and isinstance(v.dtype, DType) else ty.int64)
        return x.dense() if isinstance(x, Box) else x

    # -- memory ------------------------------------------------------------------------------------------------------

    def op_load(self, op: Op, frame: Frame) -> None:
        p, m, o = (None if v is None else frame.get(v) for v in op.args)
        assert p is not None
        out = self.load(op, p, m, o)
        r = op.results[0]
        if not r.shape and r.dtype.is_int() and isinstance(out, np.ndarray):
            out = _scalar_from_dense(out, r.dtype.is_bool())
        frame.values[r.id] = out

    def op_store(self, op: Op, frame: Frame) -> None:
        p, x, m = (None if v is None else frame.get(v) for v in op.args)
        assert p is not None
        self.store(op, p, x, m)

    def op_atomic(self, op: Op, frame: Frame) -> None:
        p, x, m = (None if v is None else frame.get(v) for v in op.args)
        assert p is not None
        frame.values[op.results[0].id] = self.atomic(op, p, x, m)

    def op_assert(self, op: Op, frame: Frame) -> None:
        v = op.args[0]
        assert v is not None
        self.check_assert(op, frame.get(v))

    # -- control flow ------------------------------------------------------------------------------------------------

    def truth(self, op: Op, x: Any) -> bool | np.ndarray:
        if isinstance(x, Opaque):
            raise DataDependentError(
                f"{place(op)}: the `{op.kind}` depends on loaded data, which a run without values does not have"
            )
        if not isinstance(x, np.ndarray):
            return bool(x)
        if x.all():
            return True
        return x if x.any() else False

    def op_if(self, op: Op, frame: Frame) -> None:
        v = op.args[0]
        assert v is not None
        x = self.truth(op, frame.get(v))
        then, other = op.regions
        if not isinstance(x, np.ndarray):
            taken = then if x else other
            inner = Frame(frame)  # its tiles are freed with it
            self.region(taken, inner)
            self.branch_ends(op, taken)
            for r, y in zip(op.results, taken.yields, strict=True):
                frame.values[r.id] = inner.get(y)
            return
        parts = [(np.flatnonzero(x), then), (np.flatnonzero(~x), other)]
        results = [(index, self.subset(op, region, frame, index)) for index, region in parts]
        for k, r in enumerate(op.results):
            frame.values[r.id] = merge([(i, y[k]) for i, y in results], len(self.active))

    def subset(self, op: Op, region: Region, frame: Frame, index: np.ndarray) -> list[Any]:
        """Walk a branch for the programs at `index` of the active ones; gives what it yields."""
        before, self.active = self.active, self.active[index]
        inner = Frame(frame, index)
        self.region(region, inner)
        self.branch_ends(op, region)
        self.active = before
        return [inner.get(y) for y in region.yields]

    def step(self, op: Op) -> None:
        self.steps_left -= 1
        if self.steps_left < 0:
            raise RunError(
                f"{place(op)}: more than {self.step_limit} loop turns; the loop may never end "
                f"(program {int(self.active[0])}). Raise `step_limit` if it is meant to"
            )

    def op_for(self, op: Op, frame: Frame) -> None:
        lower, upper, step = (frame.get(v) for v in op.args[:3] if v is not None)
        if any(isinstance(x, Opaque) for x in (lower, upper, step)):
            raise DataDependentError(
                f"{place(op)}: a loop bound depends on loaded data, which this run does not have"
            )
        if np.any(np.asarray(step) == 0):
            raise RunError(f"{place(op)}: the step of the range is zero")
        trips = _trips(lower, upper, step)
        carried = [frame.get(v) for v in op.args[3:] if v is not None]
        self.loop_begins(op)
        if isinstance(trips, int):
            carried = self.turns(op, frame, lower, step, 0, trips, carried)
        else:
            carried = self.uneven(op, frame, lower, step, trips, carried)
        for r, x in zip(op.results, carried, strict=True):
            frame.values[r.id] = x

    def turns(
        self, op: Op, frame: Frame, lower: Any, step: Any, first: int, last: int, carried: list[Any]
    ) -> list[Any]:
        body = op.regions[0]
        for k in range(first, last):
            self.step(op)
            self.turn(op, k)
            inner = Frame(frame)
            inner.values[body.args[0].id] = lower + k * step
            for a, x in zip(body.args[1:], carried, strict=True):
                inner.values[a.id] = x
            self.region(body, inner)
            carried = [inner.get(y) for y in body.yields]
            self.turn_ends(op)
        return carried

    def uneven(
        self, op: Op, frame: Frame, lower: Any, step: Any, trips: np.ndarray, carried: list[Any]
    ) -> list[Any]:
        """Programs with different trip counts: all go on together, each leaves after its own last turn."""
        count = len(self.active)
        finished: list[tuple[np.ndarray, list[Any]]] = []
        index = np.arange(count)
        done = 0
        for stop in np.unique(trips):
            stop = int(stop)
            if stop > done:
                carried = self.group_turns(op, frame, index, lower, step, done, stop, carried, count)
                done = stop
            leaving = trips[index] == stop
            finished.append((index[leaving], [take(x, np.flatnonzero(leaving)) for x in carried]))
            stay = np.flatnonzero(~leaving)
            carried = [take(x, stay) for x in carried]
            index = index[stay]
        return [merge([(i, xs[k]) for i, xs in finished], count) for k in range(len(carried))]

    def group_turns(
        self,
        op: Op,
        frame: Frame,
        index: np.ndarray,
        lower: Any,
        step: Any,
        first: int,
        last: int,
        carried: list[Any],
        count: int,
    ) -> list[Any]:
        if len(index) == count:
            return self.turns(op, frame, lower, step, first, last, carried)
        before, self.active = self.active, self.active[index]
        out = self.turns(op, Frame(frame, index), take(lower, index), take(step, index), first, last, carried)
        self.active = before
        return out

    def op_while(self, op: Op, frame: Frame) -> None:
        carried = [frame.get(v) for v in op.args if v is not None]
        self.loop_begins(op)
        count = len(self.active)
        index = np.arange(count)
        finished: list[tuple[np.ndarray, list[Any]]] = []
        all_active = self.active
        turn = 0
        while len(index):
            self.step(op)
            self.turn(op, turn)
            turn += 1
            self.active = all_active[index]
            inner = frame if len(index) == count else Frame(frame, index)
            truth, _ = self.while_part(op, 0, inner, carried)
            going = self.truth(op, truth[0])
            if isinstance(going, np.ndarray) or not going:
                stop = ~going if isinstance(going, np.ndarray) else np.ones(len(index), bool)
                finished.append((index[stop], [take(x, np.flatnonzero(stop)) for x in carried]))
                stay = np.flatnonzero(~stop)
                carried = [take(x, stay) for x in carried]
                index = index[stay]
                if not len(index):
                    break
                self.active = all_active[index]
                inner = Frame(frame, index)
            carried, _ = self.while_part(op, 1, inner, carried)
            self.turn_ends(op)
        self.active = all_active
        for k, r in enumerate(op.results):
            frame.values[r.id] = merge([(i, xs[k]) for i, xs in finished], count)

    def while_part(self, op: Op, which: int, frame: Frame, carried: list[Any]) -> tuple[list[Any], Frame]:
        region = op.regions[which]
        inner = Frame(frame)
        for a, x in zip(region.args, carried, strict=True):
            inner.values[a.id] = x
        self.region(region, inner)
        return [inner.get(y) for y in region.yields], inner


def _limits(v: Value | None) -> tuple[int, int]:
    assert v is not None
    assert isinstance(v.dtype, DType)
    return ty.limits(v.dtype)


def _keeps(x: Affine, source: Value, target: Value) -> bool:
    """Whether an index tile stays one in another integer type: what wraps in the first is no longer affine."""
    assert isinstance(source.dtype, DType)
    assert isinstance(target.dtype, DType)
    return target.dtype.bits <= source.dtype.bits or symbolic.inside(x, *ty.limits(source.dtype))


def place(op: Op) -> str:
    """`file:line` of an operation."""
    return f"{op.loc.file}:{op.loc.line}"


def _trips(lower: Any, upper: Any, step: Any) -> Any:
    """Number of turns: an int if it is the same in all programs."""
    if all(isinstance(x, int) for x in (lower, upper, step)):
        return len(range(lower, upper, step))
    span = np.asarray(upper - lower)
    trips = np.maximum(0, -(-span // step))
    return int(trips[0]) if trips.ndim and (trips == trips[0]).all() else trips


def _scalar_from_dense(x: np.ndarray, boolean: bool) -> Any:
    """An integer or boolean scalar from elements of shape (P,) or (1,)."""
    if x.shape == (1,):
        return bool(x[0]) if boolean else int(x.astype(np.int64)[0])
    return x if boolean else x.astype(np.int64)


def _stretch_box(x: Box, old: tuple[int, ...], new: tuple[int, ...]) -> Box:
    """A box along stretched axes: what held for index 0 of an axis of size 1 now holds for all of it."""
    lows, highs = list(x.lows), list(x.highs)
    for k, (o, n) in enumerate(zip(old, new, strict=True)):
        if o == n:
            continue
        lo, hi = x.lows[k], x.highs[k]
        if isinstance(lo, int) and isinstance(hi, int):
            lows[k], highs[k] = 0, n if lo <= 0 < hi else 0
        else:
            lows[k], highs[k] = 0, np.where((np.asarray(lo) <= 0) & (np.asarray(hi) > 0), n, 0)
    return Box(tuple(lows), tuple(highs), new)
