"""Costs of operations that move elements inside of a tile, and of scans and sorts.

Where the product's table has the instruction it is used; how a scan is cut into instructions nobody published, so that its
use is listed as assumed.
"""

from __future__ import annotations

import functools
import operator
from dataclasses import replace

from ...ir.program import Op, Value
from ..placement.layouts import BLOCK_BYTES, padded_elements
from ..placement.scratch import slice_is_copied
from .model import Cost, CostModel

SORT_REPEAT = 32  # elements of one repeat of Sort32 and of a merge


class RearrangeCosts:
    """Costs on one product; a part of `VectorCosts`."""

    model: CostModel

    def _slice(self, op: Op) -> Cost:
        """Whole blocks are copied, every second element is picked by a fixed pattern, anything else is gathered."""
        r, v = op.results[0], op.args[0]
        assert v is not None
        axis, step = op.attrs["axis"], op.attrs["step"]
        if axis != len(r.shape) - 1:
            return self._moved("copy", r)
        start = op.attrs["start"] * _bits(r) // 8
        if step == 1 and start % BLOCK_BYTES == 0:
            return self._moved("copy", r)
        return self._moved("gather_mask", v) if step in (1, 2) else self._gathered(r)

    def _extract_slice(self, op: Op) -> Cost:
        """Rows that lie on blocks are copied, an instruction for each plane; others are gathered element by element."""
        r = op.results[0]
        if slice_is_copied(op):
            return self._of_masks(op, self.rows_copied(r))
        self._note_slice(op)
        return self._of_masks(op, self._gathered(r))

    def _insert_slice(self, op: Op) -> Cost:
        """Rows that lie on blocks are copied; others are spread by a gather and a selection in the rows that they touch."""
        full, sub = op.args[0], op.args[1]
        assert full is not None
        assert sub is not None
        if slice_is_copied(op):
            return self._of_masks(op, self.rows_copied(sub))
        self._note_slice(op)
        bits = max(16, _bits(full))
        rows = sub.numel // sub.shape[-1]
        elements = rows * -(-full.shape[-1] * bits // 256) * 256 // bits
        name = "fp16" if bits == 16 else "fp32"
        return self._of_masks(op, self._gathered(sub).then(self.model.vector("select", name, elements, bits)))

    def _of_masks(self, op: Op, cost: Cost) -> Cost:
        """Masks, of one bit an element, become halves by a selection first, and their result a mask by a comparison."""
        tiles = op.args[: 1 if op.kind == "extract_slice" else 2]
        if not op.results[0].dtype.is_bool():
            return cost
        for v in tiles:
            assert v is not None
            cost = self.model.vector("select", "fp16", padded_elements(v, 16), 16).then(cost)
        return cost.then(self.model.vector("compares", "fp16", padded_elements(op.results[0], 16), 16))

    def _note_slice(self, op: Op) -> None:
        self.model.notes[
            f"{op.kind}: off the blocks of 32 bytes it is costed as a gather of its elements; the sequence is assumed"
        ] = None

    def rows_copied(self, v: Value) -> Cost:
        """A copy with a stride between rows: one instruction for each plane of rows and columns."""
        bits = max(16, _bits(v))
        planes = v.numel // functools.reduce(operator.mul, v.shape[-2:], 1)
        name = "fp16" if bits == 16 else "fp32"
        return self.model.vector("copy", name, padded_elements(v, bits), bits, planes)

    def _get_element(self, op: Op) -> Cost:
        """The scalar unit reads one element of UB."""
        return self.model.scalar_loop(1)

    def _cat(self, op: Op) -> Cost:
        """A copy of all elements; parts of a last axis that do not start on a block are gathered."""
        r = op.results[0]
        parts = [v for v in op.args if v is not None]
        last = op.attrs["axis"] == len(r.shape) - 1
        aligned = all(v.shape[-1] * _bits(v) // 8 % BLOCK_BYTES == 0 for v in parts)
        return self._moved("copy", r) if aligned or not last else self._gathered(r)

    def _gather(self, op: Op) -> Cost:
        """Gather takes byte offsets: indices are scaled first, and get the start of their row if there are rows."""
        r = op.results[0]
        elements = padded_elements(r, 32)
        scaled = self.model.vector("muls", "int32", elements, 32)
        if len(r.shape) > 1:
            scaled = scaled.then(self.model.vector("add", "int32", elements, 32))
        return scaled.then(self._moved("gather", r))

    def _moved(self, row: str, v: Value) -> Cost:
        """One instruction over all elements, as elements of 16 or 32 bits."""
        bits = max(16, _bits(v))
        name = "fp16" if bits == 16 else "fp32"
        return self.model.vector(row, name, padded_elements(v, bits), bits)

    def _gathered(self, r: Value) -> Cost:
        """A gather with the offsets made on the spot."""
        return self.model.vector("index", "int32", padded_elements(r, 32), 32).then(self._moved("gather", r))

    def _scan(self, op: Op) -> Cost:
        """Row after row is combined with the one before; along the last axis the tile is transposed and back."""
        r = op.results[0]
        n = r.shape[op.attrs["axis"]]
        row = max(1, r.numel // n)
        dtype = "fp32" if r.dtype.name == "bf16" else r.dtype.name
        name = "add" if op.name == "sum" else op.name
        self.model.notes[
            f"scan: costed as {n - 1} dependent instructions of one row; the sequence is assumed"
        ] = None
        first = self.model.vector(name, dtype, row, _bits(r))
        later = replace(
            first, occupancy=first.occupancy - self.model.masking(row, _bits(r))
        )  # the mask stays
        steps = [first, *[later] * (n - 2)] if n > 1 else [self._moved("copy", r)]
        if op.attrs["axis"] == len(r.shape) - 1 and row > 1:
            turned = self.model.transposed(r.numel, _bits(r))
            steps = [turned, *steps, turned]
        return functools.reduce(Cost.then, steps)

    def _sort(self, op: Op) -> Cost:
        """Sort32 of each 32 elements, then merges of four lists until one is left; ascending order negates twice."""
        r = op.results[0]
        n, rows = r.shape[-1], r.numel // r.shape[-1]
        repeats = rows * -(-n // SORT_REPEAT)
        steps = [self.repeated("sort32", repeats)]
        length = SORT_REPEAT
        while length < n:
            steps.append(self.repeated("mrgsort4", repeats))
            length *= 4
        if not op.attrs["descending"]:
            turned = self.model.vector("muls", "fp32", padded_elements(r, 32), 32)
            steps = [turned, *steps, turned]
        return functools.reduce(Cost.then, [*steps, self._moved("gather_mask", r)])

    def repeated(self, row: str, repeats: int) -> Cost:
        return self.model.vector(row, "any", repeats * self.model.repeat_bytes, 8)


def _bits(v: Value) -> int:
    name = v.dtype.name
    return 32 if name == "bf16" else v.dtype.bits  # type: ignore[union-attr]
