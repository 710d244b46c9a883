"""Loops over the vector cores of a group, and hints for the compiler."""

from __future__ import annotations

from typing import Any

from ....ir.building.buffer_rules import KernelBuffer
from ....ir.building.buffers import value_in
from ....ir.building.promotion import KernelError, Operand, describe
from ....ir.building.ranges import DynamicRange
from ....ir.building.registry import Builder, builtin
from ....ir.program import Value
from ....precision.dtypes import DType
from ... import creation, shapes
from ... import reduction as scans
from ...iterators import range_builtin

COPIES = 2  # the only number of copies that the vendor's compiler takes
MULTIBUFFER_HINTS = ("hivm.multi_buffer", "multi_buffer")


@builtin
def parallel(
    b: Builder,
    arg1: Any,
    arg2: Any = None,
    step: Any = None,
    num_stages: int | None = None,
    loop_unroll_factor: int | None = None,
    bind_sub_block: bool = False,
) -> DynamicRange:
    """A loop `for i in parallel(...)` whose iterations do not depend on each other; otherwise as `tl.range`.

    bind_sub_block: the two vector cores of a group share the iterations in time, one after the other; where Cube and Vector
    share a core one does all. Values are those of the iterations in order; what one hands to the next is named in a warning.
    """
    loop: DynamicRange = range_builtin.build(b, arg1, arg2, step, num_stages, loop_unroll_factor)
    if bind_sub_block:
        loop.hints["bind_sub_block"] = True
    return loop


@builtin
def compile_hint(b: Builder, ptr: Value | KernelBuffer, hint_name: str, hint_val: Any = None) -> None:
    """A note for the vendor's compiler at a tile. "hivm.multi_buffer" is `multibuffer`; others change nothing here."""
    if not isinstance(hint_name, str):
        raise KernelError(f"compile_hint: the name of a hint must be a string, got {describe(hint_name)}")
    if not isinstance(ptr, Value | KernelBuffer):
        raise KernelError(f"compile_hint needs a tile, a scalar or a buffer, got {describe(ptr)}")
    if hint_name in MULTIBUFFER_HINTS:
        _copies(b, ptr, hint_val)


@builtin
def multibuffer(b: Builder, src: Value | KernelBuffer, size: int) -> None:
    """Two buffers for a tile that is made in a loop, so that an iteration can write one while the last one is still read.

    size: 2. Outside of a loop it changes nothing. An explicit buffer takes twice its bytes, written in turn. An operand of a
    product that is made on the Vector cores has two places in L1, too.
    """
    if not isinstance(src, Value | KernelBuffer) or not src.shape:
        raise KernelError(f"multibuffer needs a tile or a buffer, got {describe(src)}")
    _copies(b, src, size)


def _copies(b: Builder, v: Value | KernelBuffer, size: Any) -> None:
    if size != COPIES or isinstance(size, bool):
        raise KernelError(f"multibuffer: a tile can have {COPIES} buffers, got {describe(size)}")
    b.copies[(value_in(b, v) if isinstance(v, KernelBuffer) else v).id] = COPIES


@builtin
def cast(
    b: Builder,
    input: Operand,
    dtype: DType,
    fp_downcast_rounding: str | None = None,
    bitcast: bool = False,
    overflow_mode: str | None = None,
    random: Value | None = None,
) -> Value:
    """As `tl.cast`; overflow_mode: "trunc" keeps the low bits of an integer, "saturate" ends at the limits."""
    out: Value = creation.cast.build(b, input, dtype, fp_downcast_rounding, bitcast, overflow_mode, random)
    return out


@builtin
def flip(b: Builder, ptr: Value, dim: int = -1) -> Value:
    """As `tl.flip`: `ptr` in the opposite order along `dim`."""
    out: Value = shapes.flip.build(b, ptr, dim)
    return out


@builtin
def sort(b: Builder, ptr: Value, dim: int = -1, descending: bool = False) -> Value:
    """As `tl.sort`, along the last axis only."""
    out: Value = scans.sort.build(b, ptr, dim, descending)
    return out


__all__ = ["cast", "compile_hint", "flip", "multibuffer", "parallel", "sort"]
