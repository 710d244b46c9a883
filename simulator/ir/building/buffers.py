"""Explicit buffers: places in UB, L1 or L0 that a kernel allocates, fills and reads under a name of their own.

Tiles are values; a buffer is a place. What a buffer holds at a point of the program is a value (`Contents`), which a scope
keeps beside its names under the buffer's key, so that loops and branches carry it as they carry any name. A write makes new
contents, a read gives what is held: a tensor that was read earlier keeps what it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...precision import dtypes as ty
from ..operations import FREE, RECORDED, Context, Operation, Scratch, define, result_type
from ..program import Op, Program, Value
from . import slices
from .aggregate import Aggregate
from .buffer_rules import (
    L0,
    AddressSpace,
    KernelBuffer,
    check_aligned,
    check_rows,
    checked_space,
    element_type,
    integers,
    listed,
    pitch_of,
    tile,
)
from .builder import Builder
from .promotion import KernelError, check_shape, describe
from .registry import unwrap

KEY = "buffer "  # no name of a kernel has a space


def _unwritten(at: Context, op: Op) -> np.ndarray:
    """What was never written."""
    dtype = result_type(op)
    return np.full((1, *op.results[0].shape), ty.poison(dtype), dtype.host_dtype)


def _written(at: Context, op: Op, x: np.ndarray, *rest: np.ndarray) -> np.ndarray:
    return x if op.attrs["offsets"] is None else slices.inserted(at, op, x, *rest)


@dataclass(frozen=True)
class Contents(Aggregate):
    """What a buffer holds."""

    value: Value
    methods = {}  # noqa: RUF012

    def parts(self) -> tuple[Any, ...]:
        return (self.value,)

    def rebuilt(self, parts: tuple[Any, ...]) -> Aggregate:
        return Contents(*parts)

    def kind(self) -> str:
        return f"contents {self.value.dtype} {list(self.value.shape)}"


def contents(env: Mapping[str, Any]) -> dict[str, Any]:
    """What a scope knows of buffers, by key."""
    return {n: x for n, x in env.items() if n.startswith(KEY)}


def value_in(b: Builder, buffer: KernelBuffer) -> Value:
    """The whole of what a buffer holds now."""
    found = b.contents.get(buffer.key)
    if not isinstance(found, Contents):
        raise KernelError(
            f"{buffer} is made inside of a loop or a branch, or by another function, and is not known here; make it before"
        )
    return found.value


@define(Operation(RECORDED, value=_unwritten), name="alloc")
def new(b: Builder, dtype: Any, shape: Any, space: Any, unique: bool = False) -> KernelBuffer:
    """A buffer that nothing was written to."""
    dtype, sizes = element_type(dtype), check_shape(tuple(unwrap(n) for n in listed(shape)))
    if not sizes:
        raise KernelError("alloc: a buffer needs at least one axis")
    buffer = KernelBuffer(b.new_buffer(KEY), dtype, sizes, checked_space("alloc", space))
    value = b.value(dtype, sizes, buffer.key)
    b.emit("alloc", (), (value,), space=buffer.place, unique=bool(unwrap(unique)))
    b.contents[buffer.key] = Contents(value)
    return buffer


def of_tensor(b: Builder, tensor: Any, space: Any, bound: Any) -> KernelBuffer:
    """A buffer that holds a tensor: `bound` if given, else where the tensor lies, else a new one in `space`."""
    what, where = "to_buffer", checked_space("to_buffer", space)
    v = tile(what, tensor)
    if bound is not None:
        buffer = _buffer(what, bound)
        _same(what, v, buffer)
        _move(b, v, buffer, "bind")
        return buffer
    if where in (None, AddressSpace.UB):
        buffer = KernelBuffer(b.new_buffer(KEY), v.dtype, v.shape, where)  # type: ignore[arg-type]
        b.contents[buffer.key] = Contents(v)
        return buffer
    buffer = new(b, v.dtype, v.shape, where)
    _move(b, v, buffer, "bind")
    return buffer


def to_tensor(b: Builder, buffer: Any, target_shape: Any = None) -> Value:
    """What a buffer holds, as a tensor."""
    buffer = _buffer("to_tensor", buffer)
    if unwrap(target_shape):
        raise KernelError(
            "to_tensor: target_shape (another layout of the same bytes) is not modelled; leave it out and reshape the tensor"
        )
    return _read(b, buffer)


@define(Operation(FREE, view=True), name="subview")
@define(Operation(RECORDED, value=lambda at, op, x: x, view=True), name="from_l1")
def _read(b: Builder, buffer: KernelBuffer) -> Value:
    v = value_in(b, buffer)
    if buffer.place in L0:
        raise KernelError(
            f"{buffer} cannot be read: tl.dot alone fills and empties it; keep operands in L1 and take the result of tl.dot"
        )
    if buffer.offsets:
        fixed, moving = _split(buffer.offsets)
        where: dict[str, Any] = {"offsets": fixed, "sizes": buffer.shape, "strides": (1,) * len(buffer.shape)}
        v = b.emit_one("subview", (v, *moving), v.dtype, buffer.shape, **where)
    return b.emit_one("from_l1", (v,), v.dtype, v.shape) if buffer.place == "L1" else v


def copy(b: Builder, what: str, source: Any, target: Any, spaces: tuple[str, ...]) -> None:
    """What `source` (in UB) holds goes to `target`, which lies in one of `spaces`."""
    src, dst = _buffer(what, source), _buffer(what, target)
    if src.place != "UB" or dst.place not in spaces:
        raise KernelError(
            f"{what} takes a buffer in UB to one in {' or '.join(spaces)}, got {src} and {dst}; allocate them there"
        )
    _same(what, _read(b, src), dst)
    _move(b, _read(b, src), dst, what)


def fixpipe(b: Builder, source: Any, target: Any, modes: Mapping[str, Any]) -> None:
    """A product straight from L0C to UB: checked as the vendor does; a launch refuses it where there is no such path."""
    v, dst = tile("fixpipe", source), _buffer("fixpipe", target)
    if dst.place != "UB":
        raise KernelError(f"fixpipe: the target must be a buffer in UB, got {dst}")
    check_rows(dst, modes)
    if v.numel != value_in(b, dst).numel:
        raise KernelError(f"fixpipe: {describe(v)} does not fill {dst}")
    b.only_elsewhere.setdefault("fixpipe", b.loc)
    _move(b, b.reshape(b.cast(v, dst.dtype), dst.shape), dst, "fixpipe")


def part(b: Builder, buffer: Any, offsets: Any, sizes: Any, strides: Any) -> KernelBuffer:
    """The part of a buffer that begins at `offsets`: constant sizes, stride 1, rows that begin on blocks of 32 bytes."""
    what, whole = "subview", _buffer("subview", buffer)
    rank = len(whole.shape)
    size, step = (integers(what, n, x, rank) for n, x in (("size", sizes), ("stride", strides)))
    at: list[Any] = [slices.checked_offset(what, unwrap(x)) for x in listed(offsets)]
    if len(at) != rank:
        raise KernelError(f"subview: {whole} has {rank} axes, but {len(at)} offsets are given")
    for axis, (n, first, count, s) in enumerate(zip(whole.shape, at, size, step, strict=True)):
        slices.check_axis(what, axis, n, first if isinstance(first, int) else None, count, s)
    pitch = whole.strides or pitch_of(whole.shape)
    check_aligned(whole, at, size, step, pitch)
    if whole.offsets:
        at = [b.binary("add", x, y) for x, y in zip(whole.offsets, at, strict=True)]
    return replace(whole, shape=size, strides=pitch, offsets=tuple(at))


@define(Operation(RECORDED, value=_written, scratch=Scratch.INTO_L1), name="move")
def _move(b: Builder, v: Value, target: KernelBuffer, how: str) -> None:
    if target.place in L0:
        raise KernelError(
            f"{target}: tl.dot alone fills it; put its operands into L1, and take its result as it is"
        )
    whole = value_in(b, target)
    out = b.value(whole.dtype, whole.shape, target.key)
    if target.offsets:
        fixed, moving = _split(target.offsets)
        where: dict[str, Any] = {"offsets": fixed, "sizes": target.shape, "strides": (1,) * len(target.shape)}
        b.emit("move", (whole, v, *moving), (out,), name=how, space=target.place, **where)
    else:
        b.emit("move", (v,), (out,), name=how, space=target.place, offsets=None)
    b.contents[target.key] = Contents(out)


def moved(op: Op) -> Value:
    """The tile that a move writes."""
    v = op.args[0 if op.attrs["offsets"] is None else 1]
    assert v is not None
    return v


def name_contents(program: Program, names: Mapping[str, str]) -> dict[int, Op]:
    """Value -> the `alloc` of the buffer it is in. Gives all that buffers hold the buffers' own names."""
    made = {op.results[0].name: op for op in program.walk() if op.kind == "alloc"}
    out: dict[int, Op] = {}
    for op in program.walk():
        for v in (*op.results, *(a for r in op.regions for a in r.args)):
            if v.name.startswith(KEY):
                if v.name in made:
                    out[v.id] = made[v.name]
                v.name = names.get(v.name, "buffer")
    return out


def _split(offsets: tuple[Any, ...]) -> tuple[tuple[int | None, ...], list[Value]]:
    fixed = tuple(x if isinstance(x, int) else None for x in offsets)
    return fixed, [x for x in offsets if isinstance(x, Value)]


def _buffer(what: str, x: Any) -> KernelBuffer:
    x = unwrap(x)
    if not isinstance(x, KernelBuffer):
        raise KernelError(f"{what} needs a buffer (alloc or to_buffer), got {describe(x)}")
    return x


def _same(what: str, v: Value, buffer: KernelBuffer) -> None:
    if v.shape != buffer.shape or v.dtype != buffer.dtype:
        raise KernelError(
            f"{what}: {describe(v)} and {buffer} must have one shape and type; cast or reshape one"
        )
