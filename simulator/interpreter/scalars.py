"""Operations on scalars, index tiles, masks and pointers: exact for every program, and the same for every backend.

Where a result leaves the symbolic form, the backend's `dense` takes over.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.index_arithmetic import narrows
from ..ir.program import Op, Value
from ..ir.types import PointerType
from ..precision import dtypes as ty
from ..precision.dtypes import DType
from ..units import vector
from . import flat_pointers, symbolic
from .faults import place
from .merging import merge
from .state import DataDependentError, Frame, InterpreterState, scalar_from_dense
from .values import OPAQUE, Affine, Box, Opaque, Pointers, column


class Indexing(InterpreterState):
    """The part of the interpreter that computes indices."""

    def op_const(self, op: Op, frame: Frame) -> None:
        x = op.attrs["value"]
        r = op.results[0]
        if isinstance(x, float):
            frame.values[r.id] = np.full(1, x, r.number.host_dtype)
        else:
            frame.values[r.id] = symbolic.wrap(x, 64, True) if r.dtype == ty.uint64 else x

    def op_program_id(self, op: Op, frame: Frame) -> None:
        gx, gy, gz = self.grid
        axis = op.attrs["axis"]
        x = (
            self.active % gx
            if axis == 0
            else self.active // gx % gy
            if axis == 1
            else self.active // (gx * gy) % gz
        )
        frame.values[op.results[0].id] = int(x[0]) if len(x) == 1 else x

    def op_sub_vec_id(self, op: Op, frame: Frame) -> None:
        x = self.active // self.total
        frame.values[op.results[0].id] = int(x[0]) if len(x) == 1 else x

    def op_num_programs(self, op: Op, frame: Frame) -> None:
        frame.values[op.results[0].id] = self.grid[op.attrs["axis"]]

    def op_arange(self, op: Op, frame: Frame) -> None:
        frame.values[op.results[0].id] = Affine(op.attrs["start"], (1,), op.results[0].shape)

    def op_splat(self, op: Op, frame: Frame) -> None:
        v, r = op.operand(0), op.results[0]
        x = frame.get(v)
        rank = len(r.shape)
        if isinstance(x, Pointers):
            known = not isinstance(x.offsets, Opaque)
            x = Pointers(x.tensor, Affine(x.offsets, (0,) * rank, r.shape)) if known else x
        elif v.dtype.is_bool() and not isinstance(x, Opaque):
            x = symbolic.constant_box(x, r.shape)
        elif v.dtype.is_int() and not isinstance(x, Opaque):
            x = Affine(x, (0,) * rank, r.shape)
        elif not isinstance(x, Opaque):
            x = np.broadcast_to(column(x, rank), (x.shape[0], *r.shape))
        frame.values[r.id] = x

    def op_broadcast(self, op: Op, frame: Frame) -> None:
        x = self.shaped(op, frame)
        old, new = op.operand(0).shape, op.results[0].shape
        if isinstance(x, Affine):
            x = Affine(
                x.base, tuple(0 if o != n else s for s, o, n in zip(x.strides, old, new, strict=True)), new
            )
        elif isinstance(x, Box):
            x = stretch_box(x, old, new)
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
        v = op.operand(0)
        x = frame.get(v)
        return x.offsets if isinstance(x, Pointers) else x

    def put(self, op: Op, frame: Frame, x: Any) -> None:
        v = op.operand(0)
        if v.is_pointer:
            x = Pointers(frame.get(v).tensor, x)
        frame.values[op.results[0].id] = x

    def op_addptr(self, op: Op, frame: Frame) -> None:
        p, o = self.operands(op, frame)
        base = p.offsets
        if isinstance(o, Opaque) or isinstance(base, Opaque):
            out: Any = OPAQUE
        elif isinstance(base, Affine) and isinstance(o, Affine) and self.index_fits(o, op.operand(1)):
            out = symbolic.affine_binary("add", base, o)
            self.check_pointer(op, base.base, o.base)
        elif op.results[0].shape == ():
            out = symbolic.in_64(base + o)
            self.check_pointer(op, base, o)
        else:
            out = self.real(base, None) + self.real(o, op.args[1]).astype(np.int64)
        frame.values[op.results[0].id] = Pointers(p.tensor, out)

    def index_fits(self, x: Affine, v: Value) -> bool:
        """As `fits`, of an index that becomes part of an address."""
        fit = self.fits(x, v)
        if not fit:
            self.overflows.tile(x, v, self.programs)
        elif self.overflows.wrapped:
            self.overflows.forget(v, self.programs)
        return fit

    def check_pointer(self, op: Op, base: Any, offset: Any) -> None:
        if isinstance(base, int) and isinstance(offset, int) and not symbolic.fits(base + offset, 64):
            self.overflows.pointer(op, base + offset, self.programs)

    def op_binary(self, op: Op, frame: Frame) -> None:
        a, b = self.operands(op, frame)
        out = self.symbolic_binary(op, a, b)
        if out is None:
            self.dense_op(op, frame)
        else:
            self.symbolic_done(op)
            frame.values[op.results[0].id] = out
        if self.zeros is not None:
            self.follow_zeros(op, frame)

    def symbolic_binary(self, op: Op, a: Any, b: Any) -> Any:
        r, known = op.results[0], op.name in symbolic.INTEGER
        if not r.shape:
            if isinstance(a, Opaque) or isinstance(b, Opaque):
                return OPAQUE
            exact = known and r.dtype.is_int() and r.dtype != ty.uint64
            return self.scalar_binary(op, a, b) if exact else None
        if known and isinstance(a, Affine) and isinstance(b, Affine):
            return self.index_binary(op, a, b)
        if op.name == "and" and isinstance(a, Box) and isinstance(b, Box):
            return symbolic.box_and(a, b)
        return None

    def index_binary(self, op: Op, a: Affine, b: Affine) -> Affine | None:
        """On index tiles; of two tiles that are one number per program, on those numbers."""
        if not (symbolic.flat(a) and symbolic.flat(b)):
            return symbolic.affine_binary(op.name, a, b)
        if op.results[0].dtype == ty.uint64:
            return None
        return Affine(self.scalar_binary(op, a.base, b.base), a.strides, a.shape)

    def scalar_binary(self, op: Op, a: Any, b: Any) -> Any:
        dtype = op.results[0].number
        division = op.name in ("floordiv", "mod")
        if division and (b == 0 if isinstance(b, int) else not b.all()):
            return self.divided_with_zeros(op, a, b)
        out = symbolic.INTEGER[op.name](a, b)
        if dtype.is_bool():
            return bool(out) if isinstance(out, int | np.bool_) else out
        if symbolic.fits(out, dtype.bits, dtype.kind == "int" or dtype.bits == 64):
            if self.overflows.wrapped:
                self.overflows.forget(op.results[0], self.programs)
            return out
        self.overflows.scalar(op, a, b, out, self.programs)
        return symbolic.fit_in(out, dtype.bits, dtype.kind == "int")

    def divided_with_zeros(self, op: Op, a: Any, b: Any) -> Any:
        """Quotients or remainders where some divisors are 0: 0 there, and noted."""
        zeros = np.atleast_1d(np.asarray(b) == 0)
        self.found_zeros(op, zeros)
        if isinstance(b, int):
            return 0
        return np.where(zeros, 0, symbolic.INTEGER[op.name](a, np.where(zeros, 1, b)))

    def op_compare(self, op: Op, frame: Frame) -> None:
        a, b = self.operands(op, frame)
        r = op.results[0]
        if isinstance(a, Affine) and isinstance(b, Affine):
            out = self.index_compare(op, a, b) if r.static.kind == "box" else None
            if out is not None:
                self.symbolic_done(op)
                frame.values[r.id] = out
                return
        elif r.shape == () and op.operand(0).dtype != ty.uint64:
            frame.values[r.id] = self.scalar_compare(op, a, b)
            self.symbolic_done(op)
            return
        self.dense_op(op, frame)

    def index_compare(self, op: Op, a: Affine, b: Affine) -> Box | None:
        """A box, unless an element does not fit its type: what wraps is compared element by element."""
        fit = self.index_fits(a, op.operand(0)) and self.index_fits(b, op.operand(1))
        return symbolic.affine_compare(op.name, a, b) if fit else None

    def scalar_compare(self, op: Op, a: Any, b: Any) -> Any:
        if isinstance(a, Opaque) or isinstance(b, Opaque):
            return OPAQUE
        out = symbolic.COMPARE[op.name](a, b)
        if isinstance(out, np.ndarray) and out.shape == (1,):
            return bool(out[0])
        return out if isinstance(out, np.ndarray) else bool(out)

    def op_cast(self, op: Op, frame: Frame) -> None:
        v = op.operand(0)
        x, r = frame.get(v), op.results[0]
        if op.attrs.get("overflow"):
            self.dense_op(op, frame)
        elif v.is_pointer or r.is_pointer:
            frame.values[r.id] = self.pointer_cast(op, x)
        elif isinstance(x, Affine) and r.static.kind == "affine" and self.keeps(x, v, r):
            frame.values[r.id] = x
        elif r.shape == () and r.dtype.is_int() and v.dtype.is_int() and not isinstance(x, Opaque):
            frame.values[r.id] = self.scalar_int_cast(x, r.number)
            if narrows(op):
                self.overflows.narrowed(op, x, self.programs)
        else:
            self.dense_op(op, frame)

    def keeps(self, x: Affine, source: Value, target: Value) -> bool:
        """Whether an index tile stays one in another integer type: what wraps in the first is no longer affine."""
        return target.number.bits <= source.number.bits or self.index_fits(x, source)

    def fits(self, x: Affine, v: Value) -> bool:
        """Whether no element of an index tile wraps in the type of its value."""
        return symbolic.inside(x, *ty.limits(v.number))

    def pointer_cast(self, op: Op, x: Any) -> Any:
        """Between integers and pointers, and between pointers to different types."""
        t = op.results[0].dtype
        if isinstance(x, Opaque) or (isinstance(x, Pointers) and isinstance(x.offsets, Opaque)):
            raise DataDependentError(
                f"{place(op)}: an address depends on loaded data, which this run does not have"
            )
        if not isinstance(t, PointerType):
            at = flat_pointers.addresses(x)
            return at.elements() if isinstance(at, Affine) else at
        element = ty.int64 if isinstance(t.element_ty, PointerType) else t.element_ty
        if isinstance(x, Pointers):
            return flat_pointers.viewed(x, element, self.site(op), self.programs)
        found = flat_pointers.from_addresses(x, element, self.site(op), self.programs)
        return self.known.resolved(found)

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
        v = op.operand(0)
        x = frame.get(v)
        plain = op.name in ("neg", "abs") and not isinstance(x, Opaque)
        if plain and not v.shape and v.dtype.is_int() and not v.dtype.is_bool():
            out = -x if op.name == "neg" else abs(x)
            frame.values[op.results[0].id] = symbolic.fit_in(out, v.number.bits, v.number.kind == "int")
            return
        self.dense_op(op, frame)

    def op_select(self, op: Op, frame: Frame) -> None:
        if op.results[0].is_pointer:
            frame.values[op.results[0].id] = self.select_pointers(op, frame)
        else:
            self.dense_op(op, frame)
        if self.overflows.begun:
            self.overflows.select(op, frame, self.programs)

    def select_pointers(self, op: Op, frame: Frame) -> Pointers:
        c, a, b = self.operands(op, frame)
        if any(isinstance(x, Opaque) for x in (c, a.offsets, b.offsets)):
            raise DataDependentError(
                f"{place(op)}: an address depends on loaded data, which this run does not have"
            )
        if not op.results[0].shape:
            picks = np.broadcast_to(np.asarray(c), len(self.active))
            parts = [(np.flatnonzero(picks), a), (np.flatnonzero(~picks), b)]
            parts = [(i, p if len(i) == len(picks) else p.take(i)) for i, p in parts if len(i)]
            return merge(parts, len(picks))  # type: ignore[no-any-return]
        if a.tensor is not b.tensor:
            a, b = flat_pointers.as_flat(a), flat_pointers.as_flat(b)
        chosen = c.dense() if isinstance(c, Box) else np.asarray(c)
        return Pointers(a.tensor, np.where(chosen, self.real(a.offsets, None), self.real(b.offsets, None)))

    def op_bitcast(self, op: Op, frame: Frame) -> None:
        """A view: the bits stay where they are, and it takes no instruction."""
        v, r = op.operand(0), op.results[0]
        x = frame.get(v)
        if not isinstance(x, Opaque):
            source, target = v.number, r.number
            x = vector.bitcast(
                np.atleast_1d(np.asarray(self.real(x, v))).astype(source.host_dtype), source, target
            )
            x = scalar_from_dense(x, target.is_bool()) if not r.shape and target.is_int() else x
        frame.values[r.id] = x


def stretch_box(x: Box, old: tuple[int, ...], new: tuple[int, ...]) -> Box:
    """A box broadcast along axes: what is true of index 0 of an axis of size 1 becomes true of all of it."""
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
