"""What operations give in float64: the table's own value on operands of that type, and few rules beside it.

Operands are arrays (P or 1, *shape): float64 where they are floating-point numbers, as in the run where they are not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import AscendtileError
from ...ir.operations import OPERATIONS, name_of
from ...ir.program import Op, Value
from ...precision import dtypes as ty
from ...units import slices
from ...units.vector import DIRECTIONS, Numerics

EXACT = Numerics(coarse=False)
# The result is taken from the run and followed from there on: bits, a class of the user's own, memory that nobody wrote.
FROM_THE_RUN = ("const", "bitcast", "custom", "alloc")
ON_THE_GRID = ("nextafter",)  # what these mean depends on the type's grid


class NotFollowedError(AscendtileError):
    """An operation has no meaning without rounding."""


def evaluate(context: Any, op: Op, twin: Op, operands: list[np.ndarray]) -> np.ndarray:
    """The result of an operation on its operands. twin: see `in_float64`. Raises `NotFollowedError`."""
    if op.kind in FROM_THE_RUN or op.name in ON_THE_GRID:
        raise NotFollowedError(op.kind)
    rule = RULES.get(op.kind)
    with np.errstate(all="ignore"):
        if rule is not None:
            return np.asarray(rule(op, *operands))
        value = OPERATIONS[name_of(twin)].value if name_of(twin) in OPERATIONS else None
        if value is None:
            raise NotFollowedError(op.kind)
        made: np.ndarray = np.asarray(value(context, twin, *operands), np.float64)
        return made


def in_float64(op: Op) -> Op:
    """The operation on float64 numbers; a directed rounding is the operation that it rounds."""
    base, _, way = op.name.rpartition("_")
    name = base if way in DIRECTIONS else op.name
    args = tuple(None if v is None else _wide(v) for v in op.args)
    return Op(op.id, op.kind, name, args, tuple(map(_wide, op.results)), op.attrs, op.loc)


def _wide(v: Value) -> Value:
    if v.is_pointer or not v.dtype.is_floating():
        return v
    out = Value(v.id, ty.float64, v.shape, v.loc, v.name)
    out.static = v.static
    return out


def _shape(op: Op) -> tuple[int, ...]:
    return op.results[0].shape


def _splat(op: Op, x: np.ndarray) -> np.ndarray:
    return np.broadcast_to(x.reshape(len(x), *(1,) * len(_shape(op))), (len(x), *_shape(op)))


def _reshape(op: Op, x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).reshape(len(x), *_shape(op))


def _broadcast(op: Op, x: np.ndarray) -> np.ndarray:
    return np.broadcast_to(x, (len(x), *_shape(op)))


def _cast(op: Op, x: np.ndarray, *random: np.ndarray) -> np.ndarray:
    return np.asarray(x, np.float64)


def _select(op: Op, condition: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    rank = len(_shape(op))
    c, a, b = (x.reshape(len(x), *(1,) * (rank + 1 - x.ndim), *x.shape[1:]) for x in (condition, a, b))
    return np.where(c, a, b)


def _dot(op: Op, a: np.ndarray, b: np.ndarray, *acc: np.ndarray) -> np.ndarray:
    product: np.ndarray = np.matmul(a, b)
    return np.asarray(product + acc[0]) if acc else product


def _subview(op: Op, x: np.ndarray, *moving: np.ndarray) -> np.ndarray:
    rest = iter(moving)
    offsets = [next(rest) if o is None else np.array([o]) for o in op.attrs["offsets"]]
    return slices.extract(x, slices.places(offsets, op.attrs["sizes"], op.attrs["strides"]))


def _unpack(op: Op, packed: np.ndarray) -> np.ndarray:
    """The values that the codes stand for."""
    value = OPERATIONS["unpack"].value
    assert value is not None
    return np.asarray(value(None, op, packed), np.float64)


def _fixpipe_scaled(op: Op, acc: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """With all bits of the scales."""
    return np.asarray(acc * scale.reshape(len(scale), 1, -1))


RULES: dict[str, Callable[..., Any]] = {
    "splat": _splat,
    "expand_dims": _reshape,
    "reshape": _reshape,
    "broadcast": _broadcast,
    "cast": _cast,
    "select": _select,
    "dot": _dot,
    "subview": _subview,
    "unpack": _unpack,
    "fixpipe_scaled": _fixpipe_scaled,
}
__all__ = ["EXACT", "NotFollowedError", "evaluate"]
