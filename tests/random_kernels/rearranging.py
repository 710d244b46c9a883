"""Rules that move elements: other shapes and orders of axes, joins, slices of tiles, sorts, gathers within a tile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from .expressions import Pen
from .trees import Expr, numbered


def elsewhere(pen: Pen, x: Expr, there: str, to: Any, back: str, fro: Any, shape: Any) -> Expr:
    """Work on `x` in another shape, and the result brought back. there, back: texts around a tile."""
    moved = replace(x, text=there.format(x.text), shape=shape, value=lambda env: to(x.value(env)))
    y = pen.on(shape, {"moved": moved}).expression(x.dtype, 1)
    return replace(y, text=back.format(y.text), shape=pen.shape, value=lambda env: fro(y.value(env)))


def reshaped(pen: Pen, dtype: str, size: int) -> Expr:
    x, count, shape = pen.expression(dtype, size - 1), int(np.prod(pen.shape)), pen.shape
    new = pen.pick((count,), (2, count // 2), (count // 2, 2), (1, *shape), (2, 1, count // 2))
    name = pen.pick("tl.reshape({}, %s)", "tl.view({}, %s)", "{}.reshape(%s)")
    there = "tl.ravel({})" if len(new) == 1 and pen.pick(True, False) else name % (new,)
    back = f"tl.reshape({{}}, {shape})"
    return elsewhere(pen, x, there, lambda a: a.reshape(new), back, lambda a: a.reshape(shape), new)


def transposed(pen: Pen, dtype: str, size: int) -> Expr | None:
    if len(pen.shape) == 1:
        return None
    x, order = pen.expression(dtype, size - 1), pen.draw(st.permutations(range(len(pen.shape))))
    order, inverse = tuple(order), tuple(int(k) for k in np.argsort(order))
    there, back = (f"{pen.pick('tl.permute', 'tl.trans')}({{}}, {axes})" for axes in (order, inverse))
    new = tuple(pen.shape[k] for k in order)
    return elsewhere(
        pen, x, there, lambda a: np.transpose(a, order), back, lambda a: np.transpose(a, inverse), new
    )


def with_an_axis_more(pen: Pen, dtype: str, size: int) -> Expr:
    x, at = pen.expression(dtype, size - 1), pen.draw(st.integers(0, len(pen.shape)))
    new = (*pen.shape[:at], 1, *pen.shape[at:])
    there, back = f"tl.expand_dims({{}}, {at})", f"tl.squeeze({{}}, {at})"
    return elsewhere(
        pen, x, there, lambda a: np.expand_dims(a, at), back, lambda a: a.reshape(pen.shape), new
    )


def axis(pen: Pen) -> int:
    return int(pen.draw(st.integers(0, len(pen.shape) - 1)))


def flipped(pen: Pen, dtype: str, size: int) -> Expr:
    x, at = pen.expression(dtype, size - 1), axis(pen)
    return replace(x, text=f"tl.flip({x.text}, {at})", value=lambda env: np.flip(x.value(env), at))


def halves(pen: Pen, dtype: str, size: int) -> Expr | None:
    """Split into elements of even and odd places, and put together again, maybe in the other order."""
    if pen.shape[-1] % 2:
        return None
    x, shape, order = pen.expression(dtype, size - 1), pen.shape, (pen.pick(0, 1), pen.pick(0, 1))
    pairs = (*shape[:-1], shape[-1] // 2, 2)
    parts = ", ".join(f"tl.split(tl.reshape({x.text}, {pairs}))[{k}]" for k in order)
    text = pen.pick(f"tl.interleave({parts})", f"tl.reshape(tl.join({parts}), {shape})")

    def value(env: Any) -> Any:
        return np.reshape(x.value(env), pairs)[..., order].reshape(shape)

    return replace(x, text=text, value=value)


def sliced(pen: Pen, dtype: str, size: int) -> Expr:
    """A part of two tiles behind each other, of every element or of every second one."""
    (a, b), at = pen.two(dtype, size), axis(pen)
    count, step = pen.shape[at], pen.pick(1, 2)
    first = pen.draw(st.integers(0, count if step == 1 else 1))
    offsets, steps = (
        [k if n == at else d for n in range(len(pen.shape))] for k, d in ((first, 0), (step, 1))
    )
    both = f"tl.cat({a.text}, {b.text}, can_reorder=True, dim={at})"
    text = f"al.extract_slice({both}, {tuple(offsets)}, {pen.shape}, {tuple(steps)})"

    def value(env: Any) -> Any:
        whole = np.concatenate([a.value(env), b.value(env)], at)
        return np.take(whole, range(first, first + step * count, step), at)

    return replace(a, text=text, value=value, most=max(a.most, b.most), grain=min(a.grain, b.grain))


def inserted(pen: Pen, dtype: str, size: int) -> Expr:
    """A part of one tile in another's place."""
    a, b = pen.two(dtype, size)
    sizes = tuple(pen.draw(st.integers(1, n)) for n in pen.shape)
    here, there = (
        tuple(pen.draw(st.integers(0, n - k)) for n, k in zip(pen.shape, sizes, strict=True)) for _ in "ab"
    )
    ones = (1,) * len(sizes)
    part = f"al.extract_slice({b.text}, {here}, {sizes}, {ones})"
    text = f"al.insert_slice({a.text}, {part}, {there}, {sizes}, {ones})"
    source, target = (tuple(slice(o, o + k) for o, k in zip(x, sizes, strict=True)) for x in (here, there))

    def value(env: Any) -> Any:
        out = np.array(a.value(env))
        out[target] = b.value(env)[source]
        return out

    return replace(a, text=text, value=value, most=max(a.most, b.most), grain=min(a.grain, b.grain))


def element(pen: Pen, dtype: str, size: int) -> Expr:
    """One element for all, at a place that is a constant or the program's data."""
    x, places = pen.expression(dtype, size - 1), [pen.scalar() for _ in pen.shape]
    numbers = [numbered(p, n) for p, n in zip(places, pen.shape, strict=True)]
    texts = ", ".join(p.text for p in numbers)
    text = f"tl.broadcast_to(al.get_element({x.text}, ({texts},)), {pen.shape})"

    def value(env: Any) -> Any:
        return np.full(pen.shape, x.value(env)[tuple(int(p.value(env)) for p in numbers)])

    return replace(x, text=text, value=value)


def in_order(pen: Pen, dtype: str, size: int) -> Expr:
    """All elements of a row, so that it does not matter in which order equal ones come."""
    x, most_first = pen.expression(dtype, size - 1), pen.pick(True, False)
    by = pen.pick(f"tl.sort({x.text}, descending={most_first})", f"tl.topk({x.text}, {pen.shape[-1]})")
    down = most_first or "topk" in by[:7]

    def value(env: Any) -> Any:
        found = np.sort(x.value(env), axis=-1)
        return found[..., ::-1] if down else found

    return replace(x, text=by, value=value)


def taken(pen: Pen, dtype: str, size: int) -> Expr:
    """Elements of the tile at places that are data."""
    x, at = pen.expression(dtype, size - 1), axis(pen)
    places = numbered(pen.expression("int32", 1), pen.shape[at])
    text = f"tl.gather({x.text}, {places.text}, {at})"
    return replace(
        x,
        text=text,
        value=lambda env: np.take_along_axis(x.value(env), places.value(env).astype(np.int64), at),
    )


RULES = (
    reshaped, transposed, with_an_axis_more, flipped, halves, sliced, inserted, element, in_order, taken,
)  # fmt: skip
