"""What element-wise operations become: casts, rewrites and their scratch (8, 10.3 to 10.8).

Rewrites: AscendNPU-IR, lib/Dialect/HFusion/Transforms/Normalize.cpp. Scratch: lib/Dialect/HIVM/IR/ExtraBufferOpInterface.
"""

from __future__ import annotations

from ....ir.operations import Scratch, operation
from ....ir.program import Op, Value
from . import padding, scratch
from .building import BOOL_CAST_BITS, StepBuilder, Tiles
from .tiles import COMPARED, FILLED, INDICES, WIDENED, PlannedTile
from .types import BOOL, BYTES, INTEGERS, ORDERS, compared_in, computed_in, element_of, through

BLOCK = scratch.BLOCK_BITS
WITH_SCALAR = ("sub", "div")  # a block of scratch beside a scalar operand (10.3)


def arange(b: StepBuilder, op: Op) -> None:
    """Indices that somebody reads as elements."""
    b.step(op, [], [b.result(op, op.results[0], INDICES)])


def elementwise(b: StepBuilder, op: Op) -> None:
    """One, two or three operands, in the type that the unit has."""
    r = op.results[0]
    found, extra = b.operands(op.args)
    element = element_of(r)
    used = BOOL if element == BOOL else computed_in(op, element)
    wide = [b.widened(op, t, used) for t in found]
    if used != element:
        t = b.tile(b.shape(r), used, WIDENED, op)
        b.step(op, wide, [t], over=wide, extra=extra)
        out = b.result(op, r)
        b.cast_step(op, t, out)
    elif op.name == "xor" and not _flipped(b, op):
        _xor(b, op, wide)
    elif op.name == "umulhi":
        b.step(op, wide, [b.result(op, r)], extra=scratch.wide_product(b.shape(r)))
    else:
        alone = op.name in WITH_SCALAR and any(t is None for t in found)
        b.step(op, wide, [b.result(op, r)], over=wide, extra=extra + BLOCK * alone + _stated(b, op))


def _stated(b: StepBuilder, op: Op) -> int:
    """Bits of scratch by the table, of an operation that the compiler does not know: one of the user's own."""
    unknown = op.name not in WITH_SCALAR and Scratch.SCALARS in operation(op).scratch
    return 8 * b.needs.scratch.get(op.id, 0) if unknown else 0


def _flipped(b: StepBuilder, op: Op) -> bool:
    """Whether it is `~x`, one `not`."""
    known = b.definitions
    sources = (known.scalar_source(v) for v in op.args if v is not None)
    made = (known.of(v) for v in sources if v is not None)
    return any(
        o is not None and o.kind == "const" and (o.attrs["value"] == -1 or o.attrs["value"] is True)
        for o in made
    )


def _xor(b: StepBuilder, op: Op, operands: Tiles) -> None:
    """`not(a and b) and (a or b)`."""
    r = op.results[0]
    both, either = (b.tile(b.shape(r), element_of(r), WIDENED, op) for _ in range(2))
    b.step(op, operands, [both])
    b.step(op, operands, [either], over=operands)
    b.step(op, [both, either], [b.result(op, r)], over=[both, either])


def compare(b: StepBuilder, op: Op) -> None:
    """In place of an operand, which is wider (3.10). Numbers are written out: they are operands of arithmetic alone.

    An order of signed int32 is a maximum and an equality; in release 8.5 it is one of int64. Scalar code compares int64, as
    it does unsigned and short integers (11.2).
    """
    v = op.operand(0)
    found, extra = b.operands(op.args)
    element = element_of(v)
    ordered = element == "int32" and op.name in ORDERS
    used = "int64" if ordered and b.rules.older else compared_in(element)
    if not ordered or b.rules.older:
        found = [t or b.number(op, a, element) for t, a in zip(found, op.args, strict=True) if a is not None]
    found = [b.widened(op, t, used) for t in found]
    if ordered and used == element:
        found = _most(b, op, found)
    if used in INTEGERS and used != "int32":
        _compare_by_scalar(b, op, found)
    else:
        b.step(op, found, [b.result(op, op.results[0])], over=[] if extra else found, extra=extra)


def _most(b: StepBuilder, op: Op, operands: Tiles) -> Tiles:
    """The larger of two operands, and the one that it is equal to, or not, if the order holds."""
    k = op.name in ("le", "gt")
    target = operands[k] or b.number(op, op.operand(int(k)), "int32")
    most = b.tile(b.shape(op.results[0]), "int32", COMPARED, op)
    b.step(op, operands, [most], over=operands)
    return [most, target]


def _compare_by_scalar(b: StepBuilder, op: Op, operands: Tiles) -> None:
    """Scalar code stores no bits: it makes bytes, and those are compared with 0 as fp16 (HIVMDecomposeOp.cpp)."""
    r = op.results[0]
    made = b.tile(b.shape(r), "int8", COMPARED, op)
    for t in (*operands, made):
        if t is not None:
            t.scalar = True
    b.step(op, operands, [made], over=operands)
    half, zero = b.tile(made.shape, "fp16", COMPARED, op), b.tile(made.shape, "fp16", FILLED, op)
    b.step(op, [made], [half])
    b.step(op, [], [zero])
    b.step(op, [half, zero], [b.result(op, r)], over=[half, zero])


def select(b: StepBuilder, op: Op) -> None:
    """10.6: not in place, because of its scratch, which those of int64 do not have; bools are selected by way of fp16."""
    r = op.results[0]
    element = "fp16" if element_of(r) == BOOL else element_of(r)
    found, extra = b.operands(op.args)
    wide = [b.widened(op, t, element) for t in found[1:]]
    if b.rules.older:
        wide = [t or b.number(op, op.operand(k + 1), element) for k, t in enumerate(wide)]
    free = element in ("int64", "uint64")
    extra += 0 if free else BLOCK * (1 + sum(t is None for t in wide))
    out = b.tile(b.shape(r), element, WIDENED, op) if element_of(r) == BOOL else b.result(op, r)
    b.step(op, [found[0], *wide], [out], over=wide if free else [], extra=extra)
    if element_of(r) == BOOL:
        b.step(op, [out], [b.result(op, r)], over=[out])


def cast(b: StepBuilder, op: Op) -> None:
    """One that widens what was loaded is made where it is first read, so that the loaded tile is what waits."""
    r, v = op.results[0], op.operand(0)
    made = b.definitions.of(v)
    if made is not None and made.kind == "load" and r.number.bits > v.number.bits:
        b.pending[r.id] = op
    else:
        cast_now(b, op)


def cast_now(b: StepBuilder, op: Op) -> None:
    """The cast, by way of another type where the unit has no straight one."""
    r, v = op.results[0], op.operand(0)
    before = _undone(b, op)
    if before is not None:
        b.of[r.id] = before
        return
    t = b.tile_of(v)
    if t is None:
        b.step(op, [], [b.result(op, r)])
        return
    source, target = element_of(v), element_of(r)
    middle = through(source, target)
    t = b.widened(op, t, middle) if middle else t
    if target == BOOL:
        _to_bool(b, op, r, t)
        return
    out = b.result(op, r)
    assert t is not None
    if (middle or source) in ("int32", "int16") and target in BYTES:
        padding.truncation(t, out, b.shape(v))
    b.cast_step(op, t, out, _cast_scratch(b, v, source, target, middle))


def _undone(b: StepBuilder, op: Op) -> PlannedTile | None:
    """What an earlier cast started from, if this one takes it back."""
    r, before = op.results[0], b.definitions.of(op.operand(0))
    same = before is not None and before.kind == "cast" and before.operand(0).dtype == r.dtype
    return b.tile_of(before.operand(0)) if before is not None and same and r.dtype.is_floating() else None


def _to_bool(b: StepBuilder, op: Op, r: Value, t: PlannedTile | None) -> None:
    """Equal to zero, then not."""
    equal = b.tile(b.shape(r), BOOL, COMPARED, op)
    b.step(op, [t], [equal], over=[t])
    b.step(op, [equal], [b.result(op, r)], over=[equal])


def _cast_scratch(b: StepBuilder, v: Value, source: str, target: str, middle: str) -> int:
    """10.5."""
    if source == BOOL:
        return 0 if middle else BOOL_CAST_BITS
    last = middle or source
    if last in ("int32", "int16") and target in BYTES:
        return scratch.truncation(b.shape(v), int(last[3:]))
    return 0
