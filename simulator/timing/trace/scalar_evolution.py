"""Values that a loop carries and that grow by the same amount in every turn.

What holds for all turns is not assumed: a walk of a turn gives back what it hands to the next one, and that is compared with
what was expected there. So if the first turn's values are right, those of all turns are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...interpreter.flat_pointers import Anywhere
from ...interpreter.state import Frame, InterpreterState
from ...interpreter.values import OPAQUE, Affine, Box, Opaque, Pointers, take
from ...ir.program import Op, Value
from ...precision import dtypes as ty


class NotAlikeError(Exception):
    """The turns of a loop differ in more than numbers, so that they must be walked one by one."""


class AlikeUntilError(NotAlikeError):
    """So many of the turns, the first ones, may differ in numbers only."""

    def __init__(self, turns: int) -> None:
        super().__init__(turns)
        self.turns = turns


def growth(before: Any, after: Any) -> Any:
    """What a value gains in a turn: an int or array for numbers, None for what stays as it is."""
    if isinstance(after, Opaque):
        return None
    if type(before) is not type(after):
        raise NotAlikeError
    if isinstance(after, Pointers):
        if before.tensor is not after.tensor or isinstance(after.tensor, Anywhere):
            raise NotAlikeError
        return growth(before.offsets, after.offsets)
    if isinstance(after, Affine):
        return growth(before.base, after.base) if _same_strides(before, after) else _unlike()
    if isinstance(after, bool | Box) or (isinstance(after, np.ndarray) and not _numbers(after)):
        return None if equal(before, after) else _unlike()
    if not isinstance(after, np.ndarray):
        return after - before
    return after - before if before.shape == after.shape else _unlike()


def grown(x: Any, by: Any, turn: np.ndarray, index: np.ndarray) -> Any:
    """The value so many turns later. turn, index: of each lane the turns and the program, of those that have `x`."""
    if by is None:
        return take(x, index)
    if isinstance(x, Pointers):
        return Pointers(x.tensor, grown(x.offsets, by, turn, index))
    if isinstance(x, Affine):
        return Affine(grown(x.base, by, turn, index), x.strides, x.shape)
    if not (by if isinstance(by, int) else by.any()):
        return take(x, index)
    return turn * take(by, index) + take(x, index)


def after(x: Any, by: Any, turns: int) -> Any:
    """The value so many turns later, in the form in which it is held."""
    if by is None:
        return x
    if isinstance(x, Pointers):
        return Pointers(x.tensor, after(x.offsets, by, turns))
    if isinstance(x, Affine):
        return Affine(after(x.base, by, turns), x.strides, x.shape)
    return x + turns * by


def equal(a: Any, b: Any) -> bool:
    """Whether two values are the same in all lanes; a number may stand for one in each lane."""
    if isinstance(a, Opaque) or isinstance(b, Opaque):
        return isinstance(a, Opaque) and isinstance(b, Opaque)
    if isinstance(a, Pointers):
        same = isinstance(b, Pointers) and a.tensor is b.tensor
        return same and equal(a.offsets, b.offsets)
    if isinstance(a, Affine):
        return isinstance(b, Affine) and _same_strides(a, b) and equal(a.base, b.base)
    if isinstance(a, Box):
        same = isinstance(b, Box) and a.shape == b.shape
        return same and all(
            equal(x, y) for x, y in zip((*a.lows, *a.highs), (*b.lows, *b.highs), strict=True)
        )
    return _equal_numbers(a, b)


def _equal_numbers(a: Any, b: Any) -> bool:
    if isinstance(b, Pointers | Affine | Box):
        return False
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.shape == b.shape and a.dtype == b.dtype:
        return bool((a == b).all())
    x, y = np.asarray(a), np.asarray(b)
    kinds = {x.dtype.kind, y.dtype.kind}
    if len(kinds) > 1 or x.shape[1:] != y.shape[1:]:
        return False
    return bool(np.all(x == y))


def _same_strides(a: Affine, b: Affine) -> bool:
    return a.shape == b.shape and all(
        isinstance(x, int) and isinstance(y, int) and x == y
        for x, y in zip(a.strides, b.strides, strict=True)
    )


def _numbers(x: np.ndarray) -> bool:
    """Whether an array holds an integer for each program."""
    return x.ndim == 1 and x.dtype.kind == "i"


def _unlike() -> Any:
    raise NotAlikeError


# Operations on numbers and index tiles that no walk records.
PLAIN = ("addptr", "arange", "binary", "broadcast", "const", "expand_dims", "splat")
FORMS = ("affine", "pointer", "scalar")


def foreseen(
    walk: InterpreterState, op: Op, frame: Frame, counter: Any, carried: list[Any]
) -> tuple[list[Any], list[Any]]:
    """What each value is in all turns but for its growth, and what it gains in a turn.

    counter: that of the loop in its first turn. Raises `NotAlikeError` if that would take a walk of the turn.
    """
    body = op.regions[0]
    args = body.args[1:]
    start = [OPAQUE if _unknown(a, x) else x for a, x in zip(args, carried, strict=True)]
    made = list(zip(args, body.yields, start, strict=True))
    asked = [y for a, y, x in made if not isinstance(x, Opaque) and y is not a]
    inner = Frame(frame)
    inner.values[body.args[0].id] = counter
    inner.values.update((a.id, x) for a, x in zip(args, start, strict=True))
    for o in _needed(op, asked):
        walk.handlers[o.kind](o, inner)
    return start, [None if isinstance(x, Opaque) or y is a else _gain(x, inner.get(y)) for a, y, x in made]


def _unknown(v: Value, x: Any) -> bool:
    """Elements that a walk without values does not know, be it in later turns only: no record depends on them."""
    return isinstance(x, Opaque) or (bool(v.shape) and v.dtype.is_floating())


def _gain(before: Any, after: Any) -> Any:
    if isinstance(after, Opaque):
        raise NotAlikeError
    return growth(before, after)


def _needed(op: Op, asked: list[Value]) -> list[Op]:
    """The operations of the body that make those values, in order."""
    ops = op.regions[0].ops
    wanted = {v.id for v in asked}
    found = []
    for o in reversed(ops):
        if not any(r.id in wanted for r in o.results):
            continue
        r = o.results[0]
        if o.kind not in PLAIN or r.static.kind not in FORMS or r.dtype == ty.uint64:
            raise NotAlikeError
        wanted.update(v.id for v in o.args if v is not None)
        found.append(o)
    return found[::-1]
