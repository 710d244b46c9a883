"""Reductions along the last axis as the vendor's compiler makes them; their scratch is 10.1 of `placement/compiled/scratch.py`.

AscendNPU-IR at commit 52f96a13, lib/Template, Vector/Reduction: ReduceARImpl.h, ReductionUtils.h, ReduceR.cpp.

    sums, maxima, minima of floats    rows are folded in halves, elementwise, until one repeat is left; then one repeat of the
                                      reducing instruction for each row
    integers, products, bits          folded to a block of 32 bytes; from there on the scalar unit moves the upper half of
                                      each row away, and an instruction joins the two
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from ...ir.program import Value
from .model import Cost
from .operands import Operands, bits_of

REDUCED_BY_INSTRUCTION = ("sum", "max", "min")
ELEMENTWISE = {"sum": ("add",), "xor": ("and", "not", "or", "and")}
BLOCKS_A_REPEAT = 8


def rows_reduced(c: Operands, name: str, v: Value, dtype: str) -> Cost:
    """Each row of a tile, by sum, max, min, mul, and, or or xor, in that type."""
    return functools.reduce(Cost.then, _Rows(c, name, v, dtype).steps())


class _Rows:
    """Rows of `columns` elements. lanes, block: elements of a repeat and of a block."""

    def __init__(self, c: Operands, name: str, v: Value, dtype: str) -> None:
        self.c, self.name, self.dtype, self.bits = c, name, dtype, bits_of(dtype)
        self.columns = v.shape[-1]
        self.rows = max(1, v.numel // self.columns)
        self.lanes = c.model.repeat_bytes * 8 // self.bits
        self.block = max(1, self.lanes // BLOCKS_A_REPEAT)

    def steps(self) -> Iterator[Cost]:
        """What is done, each on the result of the one before."""
        if not (self.dtype.startswith("fp") and self.name in REDUCED_BY_INSTRUCTION):
            yield from self._by_elements()
            return
        if self.columns > self.lanes:
            yield from self._halves(self.lanes)
        row = "reduce_repeat_sum" if self.name == "sum" else "reduce_repeat_max"
        yield self.c.model.vector(row, self.dtype, self.rows * self.lanes, self.bits)

    def _by_elements(self) -> Iterator[Cost]:
        """Longer rows are joined repeat by repeat first."""
        if self.columns > self.lanes:
            yield self._instruction("duplicate", self.lanes)
            yield from self._repeats_joined(-(-self.columns // self.lanes))
            self.columns = self.lanes
        if self.columns > self.block:
            yield from self._halves(self.block)
        else:
            yield self._instruction("duplicate", self.block)
            yield from self._joined(self.block)
        n = self.block
        while n > 1:
            n //= 2
            yield self.c.model.scalar_loop(self.rows * n)
            yield from self._whole_rows()
        yield self.c.model.scalar_loop(self.rows)

    def _repeats_joined(self, repeats: int) -> Iterator[Cost]:
        """Repeat after repeat of all rows onto their first; rows one by one where that makes fewer instructions."""
        if self.rows > repeats or self.name == "xor":
            for _ in range(repeats):
                yield from self._joined(self.lanes)
            return
        row = ELEMENTWISE.get(self.name, (self.name,))[0]
        for _ in range(self.rows):
            yield self.c.model.vector(row, self.dtype, repeats * self.lanes, self.bits)

    def _whole_rows(self) -> Iterator[Cost]:
        """An instruction on a block of each row."""
        for row in ELEMENTWISE.get(self.name, (self.name,)):
            yield self.c.model.vector(row, self.dtype, self.rows * self.block, self.bits)

    def _halves(self, last: int) -> Iterator[Cost]:
        """Upper halves onto lower ones until rows of `last` are left; what is beyond a power of two right after the first."""
        n = 1 << (self.columns.bit_length() - 1)
        beyond = self.columns - n
        if n > last:
            n //= 2
            yield from self._joined(n)
        else:
            yield self._instruction("max", n)  # a move
        while beyond > 0:
            yield from self._joined(min(beyond, n))
            beyond -= n
        while n > last:
            n //= 2
            yield from self._joined(n)

    def _joined(self, columns: int) -> Iterator[Cost]:
        for row in ELEMENTWISE.get(self.name, (self.name,)):
            yield self._instruction(row, columns)

    def _instruction(self, row: str, columns: int) -> Cost:
        """On so many elements of each row: repeats go along the rows or along the columns, whichever makes more of them."""
        each = self.c.model.repeats(columns, self.bits)
        met = self.c.banks is not None and not self.c.banks.apart(columns * self.bits // 8)
        groups, elements = min(self.rows, each), self.rows * each * self.lanes
        conflict = met and row not in ("duplicate", "not")
        return self.c.model.vector(row, self.dtype, elements, self.bits, groups, conflict)
