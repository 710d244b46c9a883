"""What an operation of the kernel makes of which elements of its operands are defined, where that is more than a movement.

Each rule is given the operation and, for its operands, what `instrument.py` passes; None says that all elements are defined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...interpreter.symbolic import box_and
from ...interpreter.values import Affine, Box
from ...ir.program import Op
from .boxes import all_along, dense, full, stretched, within


def both(a: Any, b: Any) -> Any:
    """Where both are defined."""
    if a is None or b is None:
        return b if a is None else a
    return box_and(a, b) if isinstance(a, Box) and isinstance(b, Box) else dense(a) & dense(b)


def _shape(op: Op) -> tuple[int, ...]:
    return op.attrs["of"].results[0].shape  # type: ignore[no-any-return]


def _load(op: Op, mask: Any) -> Any:
    return mask


def _filled(op: Op, mask: Any, other: Any) -> Any:
    return other if mask is None else dense(mask) | dense(other)


def _alloc(op: Op, _: Any) -> Any:
    return np.zeros((1, *_shape(op)), bool)


def _same(op: Op, x: Any) -> Any:
    return x


def _select(op: Op, condition: Any, asked: Any, then: Any, other: Any) -> Any:
    """What is not chosen need not be defined: `tl.where(mask, x, 0)` under the mask of the load is defined everywhere."""
    if other is None and within(condition, then):
        return full(_shape(op)) if asked is None else asked
    chosen = dense(condition)
    if chosen.ndim == 1:
        chosen = chosen.reshape(-1, *(1,) * len(_shape(op)))
    yes, no = (True if x is None else dense(x) for x in (then, other))
    return both(np.where(chosen, yes, no), asked)


def _and(op: Op, a: Any, b: Any, x: Any, y: Any) -> Any:
    return _settled(op, a, b, x, y, lambda v: v == 0)


def _or(op: Op, a: Any, b: Any, x: Any, y: Any) -> Any:
    return _settled(op, a, b, x, y, lambda v: v if v.dtype == bool else v == -1)


def _settled(op: Op, a: Any, b: Any, x: Any, y: Any, settles: Callable[[np.ndarray], np.ndarray]) -> Any:
    """Where both are defined, or one is and has the value that settles the result. a, b: the operands themselves."""
    if op.name == "and":
        for chosen, own, other in ((a, x, y), (b, y, x)):
            if own is None and _is_mask(chosen) and within(chosen, other):
                return full(_shape(op))  # a mask that hides all that is not defined
    alone = [settles(_elements(v)) & _known(d) for v, d in ((a, x), (b, y))]
    return dense(both(x, y)) | alone[0] | alone[1]


def _is_mask(x: Any) -> bool:
    return isinstance(x, Box) or (isinstance(x, np.ndarray) and x.dtype == bool)


def _known(d: Any) -> Any:
    return True if d is None else dense(d)


def _elements(x: Any) -> np.ndarray:
    if isinstance(x, Affine):
        return x.elements()
    return x.dense() if isinstance(x, Box) else np.atleast_1d(np.asarray(x))


def _reduce(op: Op, x: Any) -> Any:
    return all_along(x, op.attrs["of"].attrs["axis"])


def _scan(op: Op, x: Any) -> Any:
    of = op.attrs["of"].attrs
    axis, back = of["axis"], of["reverse"]
    seen = np.flip(dense(x), axis + 1) if back else dense(x)
    out = np.logical_and.accumulate(seen, axis=axis + 1)
    return np.flip(out, axis + 1) if back else out


def _sort(op: Op, x: Any) -> Any:
    axis = op.attrs["of"].attrs["axis"]
    return stretched(all_along(x, axis), axis, _shape(op)[axis])


def _histogram(op: Op, mask: Any, x: Any, asked: Any = None) -> Any:
    """Every bin counts every element under the mask."""
    counted = dense(full(op.attrs["of"].operand(0).shape)) if x is None else dense(x)
    fine = (counted if mask is None else counted | ~dense(mask)) & _known(asked)
    return stretched(fine.reshape(len(fine), -1).all(axis=1), 0, _shape(op)[0])


def _gather(op: Op, index: Any, x: Any, known: Any) -> Any:
    if x is None:
        return known
    axis, at, held = op.attrs["of"].attrs["axis"] + 1, _elements(index).astype(np.int64), dense(x)
    count = max(len(at), len(held))
    at, held = (np.broadcast_to(a, (count, *a.shape[1:])) for a in (at, held))
    found = np.take_along_axis(held, np.clip(at, 0, held.shape[axis] - 1), axis=axis)
    return both(found, known)


def _dot(op: Op, a: Any, b: Any, acc: Any = None) -> Any:
    """An element of a product is made of a row of the left and a column of the right operand."""
    *batch, m, n = _shape(op)
    k = len(batch)
    rows = None if a is None else stretched(all_along(a, k + 1), k + 1, n)
    columns = None if b is None else stretched(all_along(b, k), k, m)
    return both(both(rows, columns), acc)


RULES: dict[str, Callable[..., Any]] = {
    "load": _load,
    "atomic": _load,
    "filled": _filled,
    "alloc": _alloc,
    "same": _same,
    "select": _select,
    "and": _and,
    "or": _or,
    "times": _and,
    "reduce": _reduce,
    "arg_reduce": _reduce,
    "scan": _scan,
    "sort": _sort,
    "histogram": _histogram,
    "gather": _gather,
    "dot": _dot,
}
