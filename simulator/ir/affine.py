"""Which values stay symbolic: found once from the program, for placement and all interpreters.

    scalar    shape (): lives in scalar registers, one number per program
    affine    an index tile  base + sum_k stride_k * i_k  with scalar base and strides: costs nothing until it is needed
    box       a mask that is a box in the index space: low_k <= i_k < high_k
    pointers  a tile of pointers with affine or dense offsets
    uniform   a floating tile whose elements are one scalar per program: costs nothing until it is needed
    dense     everything else: real elements, in UB

`Static.axes` are the axes along which an affine tile or a box varies. Whatever leaves these forms is dense, and an access
through dense offsets is a discrete access.
"""

from __future__ import annotations

from typing import NamedTuple

from .operations import operation
from .program import Op, Program, Region, Value

SYMBOLIC = ("affine", "box", "uniform")
NO_AXES: frozenset[int] = frozenset()


class Static(NamedTuple):
    """The form of one value."""

    kind: str  # scalar, affine, box, uniform, pointer, dense
    axes: frozenset[int] = NO_AXES
    affine_offsets: bool = True  # for pointers: the offsets stay affine


SCALAR = Static("scalar")
DENSE = Static("dense")


def classify(program: Program) -> None:
    """Fill in `Value.static` for every value of the program."""
    for v in program.params.values():
        v.static = Static("pointer") if v.is_pointer else SCALAR
    _region(program.body)


def _region(region: Region) -> None:
    for op in region.ops:
        if op.kind in ("for", "while"):
            _loop(op)
            continue
        for inner in op.regions:
            _region(inner)
        for i, r in enumerate(op.results):
            r.static = _merge(op, i) if op.kind == "if" else _result(op, r)


def _loop(op: Op) -> None:
    """What a loop carries keeps its symbolic form if every iteration hands back the same form; found by trying."""
    first = 3 if op.kind == "for" else 0
    carried = [_known(v.static) for v in op.args[first:] if v is not None]
    while True:
        for inner in op.regions:
            _enter(op, inner, carried)
            _region(inner)
        after = [_join(c, v.static) for c, v in zip(carried, op.regions[-1].yields, strict=True)]
        if after == carried:
            break
        carried = after
    for r, s in zip(op.results, carried, strict=True):
        r.static = s


def _enter(op: Op, inner: Region, carried: list[Static]) -> None:
    args = inner.args
    if op.kind == "for":
        args[0].static = SCALAR
        args = args[1:]
    for v, s in zip(args, carried, strict=True):
        v.static = s


def _known(s: Static | None) -> Static:
    return s or SCALAR


def _join(a: Static, b: Static) -> Static:
    """The strongest form that both values have."""
    if a == b:
        return a
    if a.kind != b.kind or a.kind in ("dense", "box", "uniform"):
        return DENSE
    return Static(a.kind, a.axes | b.axes, a.affine_offsets and b.affine_offsets)


def _merge(op: Op, i: int) -> Static:
    return _join(*(inner.yields[i].static for inner in op.regions))


def _result(op: Op, r: Value) -> Static:
    if r.is_pointer:
        return _pointer(op)
    if r.shape == ():
        return SCALAR
    rule = _RULES.get(op.kind)
    return rule(op) if rule else DENSE


def _pointer(op: Op) -> Static:
    if op.kind == "select" and op.results[0].shape:
        return Static("pointer", affine_offsets=False)
    axes, offsets_ok = NO_AXES, True
    for kind, along, affine in [a.static for a in op.args if a is not None]:
        offsets_ok = offsets_ok and (affine if kind == "pointer" else kind in ("scalar", "affine"))
        axes = axes | along if along else axes
    return Static("pointer", axes, offsets_ok)


def _arange(op: Op) -> Static:
    return Static("affine", frozenset({0}))


def _splat(op: Op) -> Static:
    v = _arg(op)
    if v.dtype.is_bool():
        return Static("box")
    return Static("affine") if v.dtype.is_int() else Static("uniform")


def _reshape(op: Op) -> Static:
    return _arg(op).static if _arg(op).static.kind == "uniform" else DENSE


def _extract(op: Op) -> Static:
    s = _arg(op).static
    return s if s.kind in ("affine", "uniform") else DENSE


def _broadcast(op: Op) -> Static:
    s = _arg(op).static
    return s if s.kind in SYMBOLIC else DENSE


def _expand(op: Op) -> Static:
    s = _arg(op).static
    if s.kind not in SYMBOLIC:
        return DENSE
    at = op.attrs["axis"]
    return Static(s.kind, frozenset(a + (a >= at) for a in s.axes))


def _permute(op: Op) -> Static:
    s = _arg(op).static
    if s.kind not in SYMBOLIC:
        return DENSE
    order = op.attrs["order"]
    return Static(s.kind, frozenset(order.index(a) for a in s.axes))


def _cast(op: Op) -> Static:
    s = _arg(op).static
    out = op.results[0].dtype
    if op.attrs.get("overflow"):
        return DENSE
    widening = out.is_int() and not out.is_bool() and _arg(op).dtype.is_int()
    return s if s.kind == "affine" and widening else DENSE


def _binary(op: Op) -> Static:
    a, b = (v.static for v in op.args if v is not None)
    if a.kind == b.kind == "affine":
        if op.name in ("add", "sub"):
            return Static("affine", a.axes | b.axes)
        if op.name == "mul" and not (a.axes and b.axes):
            return Static("affine", a.axes | b.axes)
        # a tile without axes is one number per program: any integer operation on two of them still is
        if not a.axes and not b.axes and op.results[0].dtype.is_int() and operation(op).formula:
            return Static("affine")
    if a.kind == b.kind == "box" and op.name == "and":
        return Static("box", a.axes | b.axes)
    return DENSE


def _compare(op: Op) -> Static:
    a, b = (v.static for v in op.args if v is not None)
    if a.kind == b.kind == "affine" and op.name in ("lt", "le", "gt", "ge", "eq"):
        axes = a.axes | b.axes
        if len(axes) <= 1:
            return Static("box", axes)
    return DENSE


def _arg(op: Op) -> Value:
    v = op.args[0]
    assert v is not None
    return v


_RULES = {
    "arange": _arange,
    "splat": _splat,
    "broadcast": _broadcast,
    "expand_dims": _expand,
    "permute": _permute,
    "reshape": _reshape,
    "cast": _cast,
    "binary": _binary,
    "compare": _compare,
    "extract_slice": _extract,
}
