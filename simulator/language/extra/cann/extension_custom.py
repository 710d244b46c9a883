"""Operations of the user: device code elsewhere, a Python callback here.

    @al.register_custom_op
    class scaled_sum:
        core, pipe, mode = al.CORE.VECTOR, al.PIPE.PIPE_V, al.MODE.SIMD
        symbol, bitcode = "scaled_sum", "scaled_sum.bc"            # what the vendor's compiler links; not looked at

        @staticmethod
        def callback(x, y, scale, out=None):                       # numpy arrays of one program
            return x + scale * y

        cycles = 40                                                # or a method of the operands' shapes

and in a kernel `z = al.custom("scaled_sum", x, y, 2.0, out=x)`.
"""

from __future__ import annotations

import enum
from typing import Any

from ....ir.building import custom as operations
from ....ir.building.registry import Builder, builtin


class CORE(enum.Enum):
    """Where code runs."""

    VECTOR = "vector"
    CUBE = "cube"
    CUBE_OR_VECTOR = "cube_or_vector"
    CUBE_AND_VECTOR = "cube_and_vector"


class MODE(enum.Enum):
    """How code is written. Without effect in the model, which has the callback and its cycles."""

    SIMD = "simd"
    SIMT = "simt"
    MIX = "mix"


class IteratorType(enum.Enum):
    """What an operation does along an axis. Without effect in the model."""

    Parallel = "parallel"
    Broadcast = "broadcast"
    Transpose = "transpose"
    Reduction = "reduction"
    Interleave = "interleave"
    Deinterleave = "deinterleave"
    Inverse = "inverse"
    Pad = "pad"
    Concat = "concat"
    Gather = "gather"
    Cumulative = "cumulative"
    Opaque = "opaque"


def register_custom_op(op: type) -> type:
    """Make a class an operation that `custom` can name.

    name: that of the class if missing. core: VECTOR or CUBE_OR_VECTOR. pipe: PIPE_V, PIPE_S, PIPE_MTE2, PIPE_MTE3 or
    PIPE_ALL. mode: any. callback: a static method of the operation's arguments as numpy arrays of one program (`out` holds
    what is given as such), which returns the results or writes them into `out`. cycles: a number, or a method of the
    operands' shapes (`out` last); without it a cost is assumed. extra_buffers: a pair of type and elements, or several,
    for UB beside the operands. `UsageError` where core, pipe or mode is missing or the name is taken.
    """
    return operations.register(op)


@builtin
def custom(b: Builder, name: str, *args: Any, **kwargs: Any) -> Any:
    """Call the operation registered as `name` with tiles, scalars, numbers and tuples of them.

    out: the tile, or a tuple of tiles, whose type and shape the results have. An exception in the callback, or a result of
    another shape, is a `RunError` with program and line.
    """
    return operations.custom(b, name, args, kwargs)


__all__ = ["CORE", "MODE", "IteratorType", "custom", "register_custom_op"]
