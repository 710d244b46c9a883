"""What reductions, scans, sorts, transposes and other operations along an axis become (8, 9.6, 10.1, 10.2, 10.7 to 10.9).

Scratch: AscendNPU-IR, lib/Dialect/HIVM/IR/ExtraBufferOpInterface.
"""

from __future__ import annotations

from ....ir.program import Op
from ..needs import INSERTION
from . import padding, scratch
from .building import StepBuilder
from .tiles import BROADCAST, TILE, PlannedTile
from .types import BOOL, BYTES, bits_of, element_of, summed_in


def reduce(b: StepBuilder, op: Op) -> None:
    """In fp32 where fp16 and bf16 are summed; the result is cast back."""
    v, r = op.operand(0), op.results[0]
    element = element_of(v)
    used = summed_in(op.name, element)
    t = b.widened(op, b.tile_of(v), used)
    extra = scratch.reduction(op.name, used, bits_of(used), b.shape(v), op.attrs["axis"])
    out = b.tile(b.shape(r) or (1,), used, TILE, op, r)
    b.step(op, [t], [out], extra=extra)
    b.of[r.id] = out if used == element else _back(b, op, out, element)


def _back(b: StepBuilder, op: Op, out: PlannedTile, element: str) -> PlannedTile:
    narrow = b.tile(out.shape, element, TILE, op, op.results[0])
    b.cast_step(op, out, narrow)
    return narrow


def arg_reduce(b: StepBuilder, op: Op) -> None:
    """The value and where it is; along another axis with a copy of both."""
    v = op.operand(0)
    outs = [b.tile(b.shape(r) or (1,), element_of(r), TILE, op, r) for r in op.results]
    b.of.update((r.id, t) for r, t in zip(op.results, outs, strict=True))
    extra = scratch.arg_reduction(bits_of(element_of(v)), b.shape(v), op.attrs["axis"])
    b.step(op, [b.tile_of(v)], outs, extra=extra)


def scan(b: StepBuilder, op: Op) -> None:
    """Sums and products have no scratch, maxima and minima a copy; fp16 and bf16 are added up in fp32."""
    v, r = op.operand(0), op.results[0]
    used = summed_in(f"cum{op.name}", element_of(v))
    t = b.widened(op, b.tile_of(v), used)
    copy = 0 if op.name in ("sum", "prod") else scratch.elements(b.shape(v)) * bits_of(used)
    out = b.result(op, r) if used == element_of(v) else b.tile(b.shape(r), used, TILE, op, r)
    b.step(op, [t], [out], extra=copy)
    if used != element_of(v):
        b.of[r.id] = _back(b, op, out, element_of(r))


def sort(b: StepBuilder, op: Op) -> None:
    """Pairs of value and index, merged to and fro."""
    v = op.operand(0)
    element = element_of(v)
    used = "fp16" if element in BYTES else "fp32" if element not in ("fp16", "fp32") else element
    t = b.widened(op, b.tile_of(v), used)
    extra = scratch.sort(b.shape(v)[-1], bits_of(used), len(op.results) > 1, bool(op.attrs["descending"]))
    outs = [b.result(op, r) for r in op.results]
    padding.sort((t, *outs))
    b.step(op, [t], outs, extra=extra)


def gather(b: StepBuilder, op: Op) -> None:
    """By 32-bit indices, with a copy of them; along another axis than the last, and of 64 bits, by scalar code. int8 goes by
    way of fp16 (GatherOp::decomposeOperation in lib/Dialect/HFusion/IR/HFusionOps.cpp).
    """
    v, r = op.operand(0), op.results[0]
    given = b.tile_of(op.operand(1)) or b.filled(op, op.operand(1))
    at = b.widened(op, given, "int32") if given.bits == 64 else given
    assert at is not None
    used = "fp16" if element_of(v) in BYTES else element_of(v)
    source = b.widened(op, b.tile_of(v), used)
    out = b.result(op, r) if used == element_of(v) else b.tile(b.shape(r), used, TILE, op, r)
    by_scalar = op.attrs["axis"] != len(v.shape) - 1 or out.bits == 64
    out.scalar |= by_scalar
    b.step(op, [source, at], [out], extra=0 if by_scalar else scratch.rounded(at.numel * at.bits))
    if used != element_of(v):
        b.of[r.id] = _back(b, op, out, element_of(v))


def cat(b: StepBuilder, op: Op) -> None:
    """Parts side by side; the last axis of two single columns is an interleave. Bools go by way of fp16."""
    r = op.results[0]
    found = [b.tile_of(v) or b.filled(op, v) for v in op.args if v is not None]
    mask = element_of(r) == BOOL
    parts = [b.widened(op, t, "fp16") for t in found] if mask else found
    woven = len(found) == 2 and r.shape[-1] == 2 and op.attrs["axis"] == len(r.shape) - 1
    extra = scratch.interleave(found[0].numel, found[0].bits) if woven else 0
    b.step(op, parts, [b.result(op, r)], extra=extra)


def permute(b: StepBuilder, op: Op) -> None:
    """Blocks of 32 bytes are turned; int64 has a buffer of its own for it, bools go by way of fp16."""
    v, r = op.operand(0), op.results[0]
    t = b.tile_of(v) or b.filled(op, v)
    turned = op.attrs["order"][-1] != len(v.shape) - 1
    element = element_of(v)
    wide = b.widened(op, t, "fp16") if element == BOOL else t
    assert wide is not None
    out = b.result(op, r)
    if turned:
        padding.transpose(wide, out, b.shape(v), op.attrs["order"])
    b.step(op, [wide], [out], extra=scratch.TRANSPOSE_BITS if turned and t.bits == 64 else 0)


def insertion(b: StepBuilder, op: Op) -> None:
    """Into the tile itself, if nobody reads the old one later; else into a copy of it."""
    r, into = op.results[0], op.operand(0)
    old = b.tile_of(into) or b.filled(op, into)
    part = b.tile_of(op.operand(1)) or b.filled(op, op.operand(1))
    dying = any(m.dying for m in b.needs.made.get(op.id, ()) if m.value is r)
    if dying and r.id not in b.of:
        b.of[r.id] = old
        old.values.append(r)
    b.step(op, [old, part], [b.of.get(r.id) or b.result(op, r)], extra=other_scratch(b, op))


def other(b: StepBuilder, op: Op) -> None:
    """Any other operation: a buffer for each result, with what it says that it needs beside."""
    if op.kind == INSERTION:
        insertion(b, op)
        return
    found = [b.tile_of(v) for v in op.args]
    outs = [b.result(op, r) for r in op.results if b.in_ub(r) or r.id in b.of]
    if outs or any(found):
        b.step(op, found, outs, extra=other_scratch(b, op))


def other_scratch(b: StepBuilder, op: Op) -> int:
    """Bits that an operation without a rule of its own takes beside its operands."""
    return 8 * b.needs.scratch.get(op.id, 0)


def broadcast(b: StepBuilder, op: Op) -> None:
    """A broadcast that is written out (7.2), with 10.4; bools by way of fp16."""
    r, source = op.results[0], op.operand(0)
    inner = b.tile_of(source)
    mask = element_of(r) == BOOL
    wide = b.widened(op, inner, "fp16") if mask else inner
    t = b.tile(b.shape(r), "fp16" if mask else element_of(r), BROADCAST, op, r)
    b.step(op, [wide], [t], extra=scratch.broadcast(b.shape(source), b.shape(r), t.bits))
    b.of[r.id] = _back(b, op, t, BOOL) if mask else t
