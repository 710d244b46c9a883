"""What a loop carries into its first turn and how it will grow, read off the few operations that make it.

It is only expected: a walk of all turns compares what each turn hands on with it (see `induction.py`).
"""

from __future__ import annotations

from typing import Any

from ..execution.reading import Frame, Reading
from ..execution.values import OPAQUE, Opaque
from ..frontend import types as ty
from ..frontend.program import Op, Value
from .induction import NotAlikeError, growth

# Operations on numbers and index tiles that no walk records.
PLAIN = ("addptr", "arange", "binary", "broadcast", "const", "expand_dims", "splat")
FORMS = ("affine", "pointer", "scalar")


def foreseen(
    walk: Reading, op: Op, frame: Frame, counter: Any, carried: list[Any]
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
