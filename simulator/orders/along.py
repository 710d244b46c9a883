"""Expressions of operations along an axis: sums in the order of the Vector unit, scans, sorts, products of the Cube."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir.operations import in_fp32, result_type
from ..ir.program import Op
from ..precision.dtypes import DType
from ..precision.dtypes import float32 as FP32
from ..precision.formats import BF16, FP16, get_format
from ..precision.formats import FP32 as FP32_FORMAT
from ..units.cube_rules import CubeRules, operand_format
from ..units.vector import Numerics
from .arithmetic import SORTED, STEP
from .elementwise import WHOLE_SETS, Elementwise, rounding
from .expressions import ZERO, ExpressionKind, VectorRounding

AS_STORED = (FP16, BF16, FP32_FORMAT)  # formats whose operands the Cube reads as memory holds them
Numbers = np.ndarray  # of expressions, int64


class Along:
    """Of one run, as `Elementwise` is."""

    def __init__(self, elementwise: Elementwise) -> None:
        self.elementwise = elementwise
        self.arithmetic = elementwise.arithmetic
        self.of = elementwise.of
        self.numerics: Numerics = elementwise.numerics

    def of_op(self, op: Op, operands: Sequence[Numbers]) -> Numbers | None:
        """Numbers of the result (P or 1, *shape); None where the order is not known."""
        chosen: Callable[..., Numbers | None] | None = getattr(self, f"_{op.kind}", None)
        return None if chosen is None else chosen(op, *operands)

    # -- reductions --------------------------------------------------------------------------------------------------

    def _reduce(self, op: Op, x: Numbers) -> Numbers | None:
        t, axis = result_type(op), op.attrs["axis"]
        rows = np.moveaxis(x, axis + 1, -1)
        if not t.is_floating():
            return self._whole(op, t, rows)
        if op.name in ("max", "min"):
            r = self._of_extremes(t)
            place = ("along", axis, op.operand(0).shape)
            return self._rows(rows, lambda row: self.arithmetic.extreme(op.name, r, row, place))
        inner = FP32 if in_fp32(op) else t
        out = self._sum_or_product(op, inner, rows, axis)
        return self._narrowed(inner, t, out)

    def _narrowed(self, inner: DType, t: DType, out: Numbers) -> Numbers:
        return out if inner is t else self.of.each(self.elementwise.to_narrower(inner, t), out)

    def _sum_or_product(self, op: Op, inner: DType, rows: Numbers, axis: int) -> Numbers:
        r = self._rounding(inner)
        if op.name == "sum" and inner.bits == 64:
            return self._rows(
                rows,
                lambda row: self.of.number(ExpressionKind("numpy sum", (op.operand(0).shape, axis)), row),
            )
        if op.name == "sum" and axis == len(op.operand(0).shape) - 1:
            if self.numerics.sum_tree != "adjacent":
                return self._rows(rows, lambda row: self.of.number(self._whole_sum(op, r), row))
            return self._tree(rows, r, self.numerics.repeat_bytes * 8 // inner.bits)
        combine = self.arithmetic.add if op.name == "sum" else self.arithmetic.mul
        return self._folded(rows, r, functools.partial(combine, r))

    def _rounding(self, t: DType) -> VectorRounding:
        """Where operands are read as zeros that results do not become, terms on the way are not read as operands are."""
        r = rounding(t, self.numerics)
        return r if r.flushes == r.reads_zeros else r._replace(place="along")

    def _of_extremes(self, t: DType) -> VectorRounding:
        """Results are operands as they are read: nothing is rounded."""
        r = rounding(t, self.numerics)
        return r._replace(saturates=False, flushes=r.reads_zeros)

    def _whole_sum(self, op: Op, r: VectorRounding) -> ExpressionKind:
        """A sum of which the order is not followed."""
        n = self.numerics
        return ExpressionKind("vector sum", (n.sum_tree, n.sum_order, n.repeat_bytes, op.operand(0).shape, r))

    def _whole(self, op: Op, t: DType, rows: Numbers) -> Numbers | None:
        bits, signed = t.bits, t.is_int_signed()
        if op.name in WHOLE_SETS:
            return self._rows(rows, lambda row: self.arithmetic.whole.combined(op.name, bits, signed, row))
        if t.is_bool():
            return None
        if op.name == "sum":
            return self._rows(rows, lambda row: self.arithmetic.whole.sum(bits, signed, row))
        product = functools.partial(self.arithmetic.whole.product, bits, signed)
        return self._rows(rows, lambda row: functools.reduce(product, row))

    def _tree(self, rows: Numbers, r: VectorRounding, lanes: int) -> Numbers:
        """`row_sum` of `units/_elementwise.pyx`: a tree of neighbours in each repeat, then repeats in turn or by a tree."""
        add = functools.partial(self.arithmetic.add, r)
        parts = [self._pairs(rows[..., k : k + lanes], r) for k in range(0, rows.shape[-1], lanes)]
        if self.numerics.sum_order == "tree_sequential":
            total = parts[0]
            for part in parts[1:]:
                total = self.of.each(add, total, part)
            return self._settled(total, r)
        while len(parts) > 1:
            every = np.stack(parts, -1)
            parts = [self._pairs(every[..., k : k + lanes], r) for k in range(0, len(parts), lanes)]
        return self._settled(parts[0], r)

    def _pairs(self, level: Numbers, r: VectorRounding) -> Numbers:
        add = functools.partial(self.arithmetic.add, r)
        while level.shape[-1] > 1:
            n = level.shape[-1] // 2 * 2
            made = self.of.each(add, level[..., 0:n:2], level[..., 1:n:2])
            level = np.concatenate([made, self._settled(level[..., n:], r)], -1)
        return np.asarray(level[..., 0])

    def _settled(self, x: Numbers, r: VectorRounding) -> Numbers:
        return self.of.each(functools.partial(self.arithmetic.settle, r), x) if x.size else x

    def _folded(self, rows: Numbers, r: VectorRounding, combine: Callable[..., int]) -> Numbers:
        """The upper half onto the lower one, until one is left."""
        while (n := rows.shape[-1]) > 1:
            lower = (n + 1) // 2
            made = self.of.each(combine, rows[..., : n - lower], rows[..., lower:])
            rows = np.concatenate([made, self._settled(rows[..., n - lower : lower], r)], -1)
        return np.asarray(rows[..., 0])

    def _rows(self, rows: Numbers, make: Callable[[tuple[int, ...]], int]) -> Numbers:
        """`make` of each row along the last axis."""
        flat = rows.reshape(-1, rows.shape[-1]).tolist()
        return np.array([make(tuple(row)) for row in flat], np.int64).reshape(rows.shape[:-1])

    # -- indices, scans, sorts, counts ---------------------------------------------------------------------------------

    def _arg_reduce(self, op: Op, x: Numbers) -> Numbers:
        """Equal elements are told apart by their place, zeros of either sign are equal."""
        made = ExpressionKind(op.name, (str(op.operand(0).dtype), op.attrs["first"]))
        unsigned = self.arithmetic.unsigned
        rows = np.moveaxis(x, op.attrs["axis"] + 1, -1)
        return self._rows(rows, lambda row: self.of.number(made, tuple(map(unsigned, row))))

    def _scan(self, op: Op, x: Numbers) -> Numbers | None:
        t = result_type(op)
        combine = self._combine(op, FP32 if in_fp32(op) else t)
        if combine is None:
            return None
        axis = op.attrs["axis"] + 1
        work = np.moveaxis(np.flip(x, axis) if op.attrs["reverse"] else x, axis, 0)
        out = list(itertools.accumulate(work, lambda a, b: self.of.each(combine, a, b)))
        made = np.moveaxis(np.array(out), 0, axis)
        made = np.flip(made, axis) if op.attrs["reverse"] else made
        return self._narrowed(FP32, t, made) if in_fp32(op) else made

    def _combine(self, op: Op, t: DType) -> Callable[..., int] | None:
        """Of a scan."""
        if t.is_bool() or (t.bits == 64 and t.is_floating()):
            return None
        bits, signed = t.bits, t.is_int_signed()
        r = self._rounding(t)
        if not t.is_floating():
            if op.name in WHOLE_SETS:
                return lambda a, b: self.arithmetic.whole.combined(op.name, bits, signed, (a, b))
            if op.name == "mul":
                return functools.partial(self.arithmetic.whole.product, bits, signed)
            return lambda a, b: self.arithmetic.whole.sum(bits, signed, (a, b))
        if op.name in ("sum", "mul"):
            return functools.partial(self.arithmetic.add if op.name == "sum" else self.arithmetic.mul, r)
        r = self._of_extremes(t)
        return lambda a, b: self.arithmetic.extreme(op.name, r, (a, b), ("scan",))

    def _sort(self, op: Op, x: Numbers) -> Numbers:
        """Of floats the order of zeros is that of the operand."""
        t, n = result_type(op), op.operand(0).shape[op.attrs["axis"]]
        rows = np.moveaxis(x, op.attrs["axis"] + 1, -1)
        flat = [tuple(row) for row in rows.reshape(-1, n).tolist()]
        flat = flat if t.is_floating() else [tuple(sorted(row)) for row in flat]
        detail = (str(t), op.attrs["descending"])
        made = [[self.of.number(ExpressionKind(SORTED, (*detail, k)), row) for k in range(n)] for row in flat]
        return np.moveaxis(np.array(made, np.int64).reshape(rows.shape), -1, op.attrs["axis"] + 1)

    def _histogram(self, op: Op, x: Numbers, mask: Numbers | None = None) -> Numbers:
        count = max(len(x), 1 if mask is None else len(mask))
        held = np.broadcast_to(x, (count, *x.shape[1:])).reshape(count, -1).tolist()
        shown = (
            None
            if mask is None
            else np.broadcast_to(mask, (count, *mask.shape[1:])).reshape(count, -1).tolist()
        )
        bins = range(op.results[0].shape[0])
        made = [
            [self._count(k, row, None if shown is None else shown[p]) for k in bins]
            for p, row in enumerate(held)
        ]
        return np.array(made, np.int64)

    def _count(self, bin_: int, row: list[int], mask: list[int] | None) -> int:
        every = [1] * len(row) if mask is None else mask
        hits = (self._hit(bin_, x, None if mask is None else m) for x, m in zip(row, every, strict=True))
        return self.arithmetic.whole.sum(32, True, tuple(hits))

    def _hit(self, bin_: int, x: int, mask: int | None) -> int:
        """1 where an element is in a bin."""
        if mask is not None and self.of.is_constant(mask):
            if not self.of.value(mask):
                return ZERO
            mask = None
        if mask is None and self.of.is_constant(x):
            return self.of.constant(int(self.of.value(x) == bin_))
        return self.of.number(ExpressionKind("in bin", (bin_,)), (x,) if mask is None else (x, mask))

    def _gather(self, op: Op, x: Numbers, index: Numbers) -> Numbers:
        """By an index that depends on data: on the index and all that it chooses from."""
        axis, count = op.attrs["axis"] + 1, max(len(x), len(index))
        at = np.broadcast_to(index, (count, *index.shape[1:]))
        held = np.moveaxis(np.broadcast_to(x, (count, *x.shape[1:])), axis, -1)
        rows = [tuple(row) for row in held.reshape(-1, held.shape[-1]).tolist()]
        which = np.moveaxis(at, axis, -1)
        made = ExpressionKind("chosen", ())
        out = [
            [self.of.number(made, (i, *row)) for i in some]
            for row, some in zip(rows, which.reshape(len(rows), -1).tolist(), strict=True)
        ]
        return np.moveaxis(np.array(out, np.int64).reshape(which.shape), -1, axis)

    # -- products ------------------------------------------------------------------------------------------------------

    def _dot(self, op: Op, a: Numbers, b: Numbers, acc: Numbers | None = None) -> Numbers | None:
        rules = self._rules(op)
        if rules.accumulate != "exact" or rules.k_order != "ascending":
            return None
        count = max(len(x) for x in (a, b, acc) if x is not None)
        left, right = (np.broadcast_to(x, (count, *x.shape[1:])) for x in (a, np.swapaxes(b, -1, -2)))
        rows, columns = (x.reshape(-1, *x.shape[-2:]).tolist() for x in (left, right))
        shape = (*left.shape[:-1], right.shape[-2])
        start = np.broadcast_to(ZERO if acc is None else acc, shape).reshape(len(rows), shape[-2], shape[-1])
        make = self._whole_product if rules.formats[0].is_integer else self._steps(rules)
        made = [
            [
                [make(c, row, column) for c, column in zip(cs, ys, strict=True)]
                for cs, row in zip(css, xs, strict=True)
            ]
            for css, xs, ys in zip(start.tolist(), rows, columns, strict=True)
        ]
        return np.array(made, np.int64).reshape(shape)

    def _rules(self, op: Op) -> CubeRules:
        """As `ir/building/core_operations.py` chooses them."""
        types = [op.operand(side).number for side in (0, 1)]
        read = [operand_format(t.name, op.attrs["precision"], self.numerics.hf32) for t in types]
        left, right = (t.format if r == t.name else get_format(r) for t, r in zip(types, read, strict=True))
        switches: dict[str, Any] = {"operand": left, "other": None if left is right else right}
        if op.attrs.get("acc_format") is not None:
            switches["accumulator"] = op.attrs["acc_format"].format
        elif (left, right) != (FP16, FP16):
            switches["accumulator"] = None
        rules = self.numerics.cube.with_switches(switches)
        if op.attrs.get("scaled"):
            rules = rules.with_switches(
                {"block_k": rules.products_per_step, "operand": FP32_FORMAT, "other": None}
            )
        return rules

    def _fixpipe_scaled(self, op: Op, acc: Numbers, scale: Numbers) -> Numbers:
        """Each accumulator with the scale of its column."""
        made = self.elementwise.whole(op, op.results[0])
        columns = np.broadcast_to(scale.reshape(len(scale), 1, -1), (len(scale), *acc.shape[1:]))
        return self.of.each(lambda x, y: self.of.number(made, (x, y)), acc, columns)

    def _steps(self, rules: CubeRules) -> Callable[[int, list[int], list[int]], int]:
        made = ExpressionKind(STEP, _detail(rules))
        kb = rules.products_per_step

        def steps(acc: int, row: list[int], column: list[int]) -> int:
            for k in range(0, len(row), kb):
                pairs = zip(row[k : k + kb], column[k : k + kb], strict=True)
                acc = self.arithmetic.step(made, acc, tuple(itertools.chain.from_iterable(pairs)))
            return acc

        return steps

    def _whole_product(self, acc: int, row: list[int], column: list[int]) -> int:
        products = (self.arithmetic.whole.product(32, True, a, b) for a, b in zip(row, column, strict=True))
        return self.arithmetic.whole.sum(32, True, (acc, *products))


def _detail(rules: CubeRules) -> tuple[Any, ...]:
    """All of the rules that the value of a step depends on; see `Arithmetic.step`."""
    accumulator = rules.accumulates_in.name
    rounding = VectorRounding(accumulator, rules.overflow == "saturate", rules.flushes_results)
    second = rules if rules.other is None else rules.with_switches({"operand": rules.other})
    read = [(x.operand_grid.name, x.operand_round, x.operand_subnormals) for x in (rules, second)]
    how = rules.products_per_step, rules.block_round, rules.block_sum
    # a finite operand that is rounded on its way in may become infinite, and 0 times that is NaN
    exact = rules.block_sum == "exact" and all(x.operand_grid in AS_STORED for x in (rules, second))
    return (rounding, *read, *how, rules.other is None, exact, True)
