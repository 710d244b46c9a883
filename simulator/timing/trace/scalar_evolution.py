"""Scalar evolution: values that a loop carries and that grow by the same amount in every iteration.

They are found before the loop is lowered. The operations that make such a value are evaluated for the first iteration,
which gives the growth. Pointers that all iterations move by the same need no more; for other values, evaluating all
iterations at once proves it by induction. In the same way it is found in how many iterations branches, and trip counts of
inner loops, stay the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...interpreter.control_flow import trip_count_of
from ...interpreter.flat_pointers import FlatMemory
from ...interpreter.state import Frame
from ...interpreter.values import OPAQUE, Affine, Box, Opaque, Pointers, take
from ...ir.program import Op, Region, Value
from ...precision import dtypes as ty
from .lanes import IterationLanes


class NotAlikeError(Exception):
    """Iterations of a loop differ in more than numbers, so that they must be lowered one by one. loop: its number."""

    def __init__(self, loop: int = -1) -> None:
        super().__init__(loop)
        self.loop = loop


def growth(before: Any, after: Any) -> Any:
    """What a value gains in an iteration: an int or array for numbers, None for what stays as it is."""
    if isinstance(after, Opaque):
        return None
    if type(before) is not type(after):
        raise NotAlikeError
    if isinstance(after, Pointers):
        if before.tensor is not after.tensor or isinstance(after.tensor, FlatMemory):
            raise NotAlikeError
        return growth(before.offsets, after.offsets)
    if isinstance(after, Affine):
        return growth(before.base, after.base) if _same_strides(before, after) else _unlike()
    if isinstance(after, bool | Box) or (isinstance(after, np.ndarray) and not _numbers(after)):
        return None if equal(before, after) else _unlike()
    if not isinstance(after, np.ndarray):
        return after - before
    return after - before if before.shape == after.shape else _unlike()


def grown(x: Any, by: Any, iteration: np.ndarray, index: np.ndarray) -> Any:
    """The value so many iterations later. iteration, index: number of the iteration and of the program of each lane."""
    if by is None:
        return take(x, index)
    if isinstance(x, Pointers):
        return Pointers(x.tensor, grown(x.offsets, by, iteration, index))
    if isinstance(x, Affine):
        return Affine(grown(x.base, by, iteration, index), x.strides, x.shape)
    if not (by if isinstance(by, int) else by.any()):
        return take(x, index)
    return iteration * take(by, index) + take(x, index)


def after(x: Any, by: Any, iterations: int) -> Any:
    """The value so many iterations later, in the same form."""
    if by is None:
        return x
    if isinstance(x, Pointers):
        return Pointers(x.tensor, after(x.offsets, by, iterations))
    if isinstance(x, Affine):
        return Affine(after(x.base, by, iterations), x.strides, x.shape)
    return x + iterations * by


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


# Operations on numbers and index tiles that record nothing; of the second sort those on numbers only.
PLAIN = ("addptr", "arange", "binary", "broadcast", "const", "expand_dims", "splat")
OF_NUMBERS = ("cast", "compare", "unary")
FORMS = ("affine", "pointer", "scalar")


class Evaluator(Protocol):
    """An interpreter that carries out single operations, without any effect but on the frame."""

    def evaluate(self, ops: Sequence[Op], frame: Frame, lanes: IterationLanes | None) -> None:
        """lanes: iterations of the active programs; None for these as they are. Raises `NotAlikeError` where it takes more
        than numbers and index tiles.
        """


class Forecast(NamedTuple):
    """start: what each carried value is in all iterations but for its growth. gains: what it gains in one.

    alike: so many iterations, the first ones, differ in numbers only.
    """

    start: list[Any]
    gains: list[Any]
    alike: int


def forecast(
    of: Evaluator, op: Op, frame: Frame, counter: tuple[Any, Any], carried: list[Any], lanes: IterationLanes
) -> Forecast:
    """counter: that of the loop in its first iteration, and its step. Raises `NotAlikeError` if only lowering can tell."""
    body = op.regions[0]
    args = body.args[1:]
    start = [OPAQUE if _unknown(a, x) else x for a, x in zip(args, carried, strict=True)]
    made = zip(args, body.yields, start, strict=True)
    moving = [(a, y, x) for a, y, x in made if not isinstance(x, Opaque) and y is not a]
    inner = _begun(Frame(frame), body, counter[0], start)
    ops = list(_flat(body))[::-1]
    of.evaluate(_needed(ops, [y for _, y, _ in moving]), inner, None)
    gain = {a.id: _gain(x, inner.get(y)) for a, y, x in moving}
    gains = [gain.get(a.id) for a in args]
    deciding = [values for values in _decisions(body) if _can_be_known(ops, values)]
    inside = {v.id for v in (*body.args, *(r for o in ops for r in o.results))}
    unproven = [
        (y, x, gain[a.id]) for a, y, x in moving if gain[a.id] is None or not _only_adds(a, y, ops, inside)
    ]
    asked = [*(y for y, *_ in unproven), *(v for values in deciding for v in values)]
    if not asked:
        return Forecast(start, gains, lanes.trip_count)
    index, iteration = lanes.index, lanes.iteration
    grown_args = [grown(x, by, iteration, index) for x, by in zip(start, gains, strict=True)]
    every = _begun(Frame(frame, index), body, grown(*counter, iteration, index), grown_args)
    of.evaluate(_needed(ops, asked), every, lanes)
    later = [
        1 + _same_until(every.get(y), grown(x, by, iteration + 1, index), lanes) for y, x, by in unproven
    ]
    same = [_uniform_until(_decided([every.get(v) for v in values]), lanes) for values in deciding]
    return Forecast(start, gains, min([lanes.trip_count, *later, *same]))


def _begun(frame: Frame, body: Region, counter: Any, carried: list[Any]) -> Frame:
    """With what an iteration is handed."""
    frame.values[body.args[0].id] = counter
    frame.values.update((a.id, x) for a, x in zip(body.args[1:], carried, strict=True))
    return frame


def _unknown(v: Value, x: Any) -> bool:
    """Elements that are unknown without values, perhaps in later iterations only: no record depends on them."""
    return isinstance(x, Opaque) or (bool(v.shape) and v.dtype.is_floating())


def _gain(before: Any, after: Any) -> Any:
    if isinstance(after, Opaque):
        raise NotAlikeError
    return growth(before, after)


def _only_adds(a: Value, y: Value, ops: list[Op], inside: AbstractSet[int]) -> bool:
    """Whether an iteration that is given pointers `a` leaves them as `y`, moved by what is the same in all iterations.

    ops: of the body, the last one first; inside: numbers of what it makes, and of what it is given.
    """
    for o in ops:
        if o.kind == "addptr" and o.results[0] is y and o.operand(1).id not in inside:
            y = o.operand(0)
    return y is a


def _decisions(region: Region) -> Iterator[list[Value]]:
    """What branches and loops of a body go by, but for those in loops inside: a condition, or both bounds and a step."""
    for o in region.ops:
        if o.kind == "if":
            yield [o.operand(0)]
            for branch in o.regions:
                yield from _decisions(branch)
        elif o.kind == "for":
            yield [o.operand(k) for k in range(3)]


def _decided(values: list[Any]) -> Any:
    """Which branch is taken, or how many iterations a loop has; None where only data tell."""
    if any(isinstance(x, Opaque) for x in values):
        return None
    return values[0] if len(values) == 1 else trip_count_of(*values)


def _uniform_until(x: Any, lanes: IterationLanes) -> int:
    """The first iteration in which any lane differs from the first one."""
    if not isinstance(x, np.ndarray) or len(x) == 1:
        return lanes.trip_count
    return _first(x != x[0], lanes)


def _same_until(a: Any, b: Any, lanes: IterationLanes) -> int:
    """The first iteration in which two values differ."""
    if equal(a, b):
        return lanes.trip_count
    while isinstance(a, Pointers) and isinstance(b, Pointers) and a.tensor is b.tensor:
        a, b = a.offsets, b.offsets
    if isinstance(a, Affine) and isinstance(b, Affine) and _same_strides(a, b):
        a, b = a.base, b.base
    other = np.asarray(_numbers_of(a) != _numbers_of(b))
    return _first(np.broadcast_to(other, len(lanes.index)), lanes) if other.ndim < 2 else 0


def _numbers_of(x: Any) -> Any:
    if isinstance(x, Pointers | Affine | Box | Opaque):
        raise NotAlikeError
    return np.asarray(x)


def _first(other: np.ndarray, lanes: IterationLanes) -> int:
    return int(lanes.iteration[other.argmax()]) if other.any() else lanes.trip_count


def _can_be_known(ops: list[Op], values: Iterable[Value]) -> bool:
    try:
        _needed(ops, values)
    except NotAlikeError:
        return False
    return True


def _flat(region: Region) -> Iterator[Op]:
    """The operations of a body, those of branches too."""
    for o in region.ops:
        yield o
        if o.kind == "if":
            for branch in o.regions:
                yield from _flat(branch)


def _needed(ops: list[Op], asked: Iterable[Value]) -> list[Op]:
    """Those that make some values, in order. ops: of a body, the last one first."""
    wanted = {v.id for v in asked}
    found = []
    for o in ops if wanted else ():
        if any(r.id in wanted for r in o.results):
            if not _is_plain(o):
                raise NotAlikeError
            wanted.update(v.id for v in o.args if v is not None)
            found.append(o)
    return found[::-1]


def _is_plain(o: Op) -> bool:
    r = o.results[0]
    if r.static.kind not in FORMS or r.dtype == ty.uint64:
        return False
    return o.kind in PLAIN or (
        o.kind in OF_NUMBERS and not any(v is not None and v.shape for v in (*o.args, r))
    )
