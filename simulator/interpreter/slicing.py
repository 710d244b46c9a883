"""Slices of tiles with a place on each axis: bounds are checked wherever the offsets are known; see `units/slices.py`.

A slice of an index tile is an index tile.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.building.buffer_rules import BEGINS, BLOCK_BYTES, off_blocks, pitch_of
from ..ir.building.slices import places_of
from ..ir.program import Op
from ..units import slices
from .state import Frame, InterpreterState
from .values import Affine, Opaque


class Slicing(InterpreterState):
    """The part of the interpreter that knows slices."""

    def op_extract_slice(self, op: Op, frame: Frame) -> None:
        offsets = self.checked_offsets(op, frame, 1)
        x, r = frame.get(op.operand(0)), op.results[0]
        known = not any(isinstance(o, Opaque) for o in offsets)
        if isinstance(x, Affine) and r.static.kind == "affine" and known:
            frame.values[r.id] = _slice_of_index(x, offsets, op)
            self.symbolic_done(op)
        elif r.static.kind == "uniform":  # one number for each program, wherever the slice lies
            frame.values[r.id] = x if isinstance(x, Opaque) else x[_corner(r.shape)]
        else:
            self.dense_op(op, frame)

    def op_insert_slice(self, op: Op, frame: Frame) -> None:
        self.checked_offsets(op, frame, 2)
        self.dense_op(op, frame)

    def op_subview(self, op: Op, frame: Frame) -> None:
        """A view: the elements stay where they are, and it takes no instruction."""
        self.check_aligned(op, self.checked_offsets(op, frame, 1))
        x = frame.get(op.operand(0))
        if not isinstance(x, Opaque):
            moving = [np.atleast_1d(np.asarray(frame.get(v))) for v in op.args[1:] if v is not None]
            x = slices.extract(self.real(x, op.args[0]), places_of(op, tuple(moving)))
        frame.values[op.results[0].id] = x

    def op_move(self, op: Op, frame: Frame) -> None:
        if op.attrs["offsets"] is not None:
            self.check_aligned(op, self.checked_offsets(op, frame, 2))
        self.dense_op(op, frame)

    def op_get_element(self, op: Op, frame: Frame) -> None:
        self.checked_offsets(op, frame, 1)
        self.dense_op(op, frame)

    def checked_offsets(self, op: Op, frame: Frame, tiles: int) -> list[Any]:
        """The offset on each axis. `RunError` where a slice of one program leaves its tile."""
        moving = iter([frame.get(v) for v in op.args[tiles:] if v is not None])
        offsets = [next(moving) if x is None else x for x in op.attrs["offsets"]]
        for axis, (constant, at) in enumerate(zip(op.attrs["offsets"], offsets, strict=True)):
            if constant is None and not isinstance(at, Opaque):
                self.check_axis(op, axis, np.atleast_1d(np.asarray(at)))
        return offsets

    def check_aligned(self, op: Op, offsets: list[Any]) -> None:
        """`RunError` where the part of a buffer begins off the blocks that the hardware reaches."""
        whole = op.operand(0)
        if any(isinstance(x, Opaque) for x in offsets) or all(
            isinstance(x, int) for x in op.attrs["offsets"]
        ):
            return
        bits = whole.number.bits
        places = zip(offsets, pitch_of(whole.shape), strict=True)
        first = np.atleast_1d(np.asarray(sum(x * p for x, p in places))) * bits // 8
        bad = np.flatnonzero(first % BLOCK_BYTES)
        if len(bad):
            site = self.site(op)
            program = site.program(self.programs[bad[0] if len(first) > 1 else 0])
            named = f"{whole.name!r}, " if whole.name else ""
            buffer = f"{named}a buffer of {whole.dtype} {list(whole.shape)}, in {program}"
            raise site.error(off_blocks(buffer, BEGINS, int(first[bad[0]]), bits))

    def check_axis(self, op: Op, axis: int, at: np.ndarray) -> None:
        n = op.operand(0).shape[axis]
        reach = (op.attrs["sizes"][axis] - 1) * op.attrs["strides"][axis]
        bad = np.flatnonzero((at < 0) | (at > n - 1 - reach))
        if len(bad):
            first = int(at[bad[0]])
            site = self.site(op)
            program = site.program(self.programs[bad[0] if len(at) > 1 else 0])
            raise site.error(
                f"{op.kind}: axis {axis} has {n} elements, but offset {first}, size "
                f"{op.attrs['sizes'][axis]} and stride {op.attrs['strides'][axis]} reach from {first} to {first + reach} "
                f"in {program}"
            )


def _corner(shape: tuple[int, ...]) -> tuple[slice, ...]:
    return (slice(None), *(slice(n) for n in shape))


def _slice_of_index(x: Affine, offsets: list[Any], op: Op) -> Affine:
    base = x.base
    for stride, at in zip(x.strides, offsets, strict=True):
        base = base + stride * at
    steps = tuple(s * k for s, k in zip(x.strides, op.attrs["strides"], strict=True))
    return Affine(base, steps, op.results[0].shape)
