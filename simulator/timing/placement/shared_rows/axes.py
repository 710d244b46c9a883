"""Which axes of which tiles run along each other, as classes (5.2).

AscendNPU-IR, lib/Dialect/HIVM/Analysis/DimensionAnalyzer.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ....ir.program import Op, Program, Value

Axis = tuple[int, int]  # value, axis


class Groups(NamedTuple):
    """Names of classes: of axes that an operation needs whole, and of those that it mixes with others."""

    reduced: frozenset[Axis]
    blocked: frozenset[Axis]


class AxisClasses:
    """Classes of the axes of all tiles of a program.

    by_formulas: whether tiles belong together whose offsets or masks are made of the same numbers, as they do where these
    numbers are tiles themselves.
    """

    def __init__(self, program: Program, by_formulas: bool = True) -> None:
        self.by_formulas = by_formulas
        self.parent: dict[Axis, Axis] = {}
        self._reduced: set[Axis] = set()
        self._blocked: set[Axis] = set()
        for op in program.walk():
            RULES.get(op.kind, AxisClasses._elementwise)(self, op)
        self.groups = Groups(self._classes(self._reduced), self._classes(self._blocked))

    def of(self, v: Value, axis: int) -> Axis:
        """The name of an axis's class."""
        a = (v.id, axis)
        while a in self.parent:
            a = self.parent[a]
        return a

    def _classes(self, axes: Iterable[Axis]) -> frozenset[Axis]:
        out = set()
        for a in axes:
            while a in self.parent:
                a = self.parent[a]
            out.add(a)
        return frozenset(out)

    def _join(self, u: Value, i: int, v: Value, j: int) -> None:
        if not self.by_formulas and _is_formula(u) and _is_formula(v):
            return
        x, y = self.of(u, i), self.of(v, j)
        if x != y:
            self.parent[x] = y

    def _same(self, u: Value | None, v: Value | None) -> None:
        """Axis by axis; one of a single element is stretched and is not cut."""
        if u is None or v is None or len(u.shape) != len(v.shape):
            return
        for k, (m, n) in enumerate(zip(u.shape, v.shape, strict=True)):
            if m == n > 1:
                self._join(u, k, v, k)

    def _elementwise(self, op: Op) -> None:
        tiles = [v for v in (*op.args, *op.results) if v is not None and v.shape]
        first = min(tiles, key=_is_formula, default=None)
        for v in tiles:
            self._same(first, v)

    def _loop(self, op: Op) -> None:
        first, skip = (3, 1) if op.kind == "for" else (0, 0)
        for k, r in enumerate(op.results):
            self._same(op.args[first + k], r)
            for inner in op.regions:
                self._same(inner.args[skip + k] if len(inner.args) > skip + k else None, r)
            self._same(op.regions[-1].yields[k], r)

    def _branch(self, op: Op) -> None:
        for k, r in enumerate(op.results):
            for inner in op.regions:
                self._same(inner.yields[k], r)

    def _expand(self, op: Op) -> None:
        v, r, axis = op.operand(0), op.results[0], op.attrs["axis"]
        for k in range(len(v.shape)):
            self._join(v, k, r, k + (k >= axis))

    def _permute(self, op: Op) -> None:
        for k, old in enumerate(op.attrs["order"]):
            self._join(op.results[0], k, op.operand(0), old)

    def _reduce(self, op: Op) -> None:
        v, axis = op.operand(0), op.attrs["axis"]
        self._reduced.add((v.id, axis))
        for r in op.results:
            for k in range(len(r.shape)):
                self._join(r, k, v, k + (k >= axis))

    def _along(self, op: Op) -> None:
        """A scan, a sort, a part or parts side by side: the axis stays whole, the others stay what they are."""
        axis = op.attrs["axis"]
        for v in op.args:
            if v is not None and v.shape:
                self._reduced.add((v.id, axis))
                self._same(v, op.results[0])
        self._reduced.update((r.id, axis) for r in op.results)

    def _slice(self, op: Op) -> None:
        """5.2: whole axes go through."""
        part, whole = (op.results[0] if op.kind == "extract_slice" else op.operand(1)), op.operand(0)
        if op.kind == "insert_slice":
            self._same(whole, op.results[0])
        for k, (m, n) in enumerate(zip(part.shape, whole.shape, strict=True)):
            if m == n:
                self._join(part, k, whole, k)
            else:
                self._blocked.update({(part.id, k), (whole.id, k)})

    def _dot(self, op: Op) -> None:
        """A product comes by way of GM, so its rows need not be those of its operands."""
        self._same(op.args[2], op.results[0])

    def _reshape(self, op: Op) -> None:
        """AxisClasses stay what they are if those of one element alone come or go; else they mix."""
        v, r = op.operand(0), op.results[0]
        a, b = ([k for k, n in enumerate(x.shape) if n > 1] for x in (v, r))
        if [v.shape[k] for k in a] == [r.shape[k] for k in b]:
            for i, j in zip(a, b, strict=True):
                self._join(v, i, r, j)
        else:
            self._mix(op)

    def _mix(self, op: Op) -> None:
        for v in (*op.args, *op.results):
            if v is not None:
                self._blocked.update((v.id, k) for k in range(len(v.shape)))


def _is_formula(v: Value) -> bool:
    """Whether a tile has no elements in a buffer, as offsets, masks of boxes and pointers."""
    return bool(v.static.kind != "dense")


RULES: dict[str, Callable[[AxisClasses, Op], None]] = {
    "for": AxisClasses._loop,
    "while": AxisClasses._loop,
    "if": AxisClasses._branch,
    "expand_dims": AxisClasses._expand,
    "permute": AxisClasses._permute,
    "reduce": AxisClasses._reduce,
    "arg_reduce": AxisClasses._reduce,
    "scan": AxisClasses._along,
    "sort": AxisClasses._along,
    "slice": AxisClasses._along,
    "cat": AxisClasses._along,
    "extract_slice": AxisClasses._slice,
    "insert_slice": AxisClasses._slice,
    "dot": AxisClasses._dot,
    "reshape": AxisClasses._reshape,
    "gather": AxisClasses._mix,
    "img2col": AxisClasses._mix,
    "custom": AxisClasses._mix,
    "histogram": AxisClasses._mix,
}
