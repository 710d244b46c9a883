"""Rules that bring elements together: reductions and scans of every kind, places of extremes, histograms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from .expressions import Pen
from .trees import INTEGERS, NUMPY, UNSIGNED, Expr, limit, made, numbered

BINS = 16


def over(pen: Pen, dtype: str, text: str, found: Any) -> tuple[str, Any]:
    """One number for each row, as a whole tile of the type. text: with the axis kept."""

    def value(env: Any) -> Any:
        return np.broadcast_to(np.asarray(found(env)).astype(NUMPY[dtype]), pen.shape)

    return f"tl.broadcast_to({text}, {pen.shape}).to(tl.{dtype})", value


def of_all(pen: Pen, dtype: str, size: int) -> Expr:
    x, name = pen.expression(dtype, size - 1), pen.pick("max", "min")
    text, value = over(pen, dtype, f"tl.{name}({x.text})", lambda env: getattr(np, name)(x.value(env)))
    return replace(x, text=text, value=value)


def bits_of_all(pen: Pen, dtype: str, size: int) -> Expr | None:
    if dtype not in INTEGERS:
        return None
    x, at = pen.expression(dtype, size - 1), pen.draw(st.integers(0, len(pen.shape) - 1))
    name, do = pen.pick(("xor_sum", np.bitwise_xor), ("reduce_or", np.bitwise_or), ("sum", np.add))
    text = f"tl.{name}({x.text}, axis={at}, keep_dims=True)"
    text, value = over(
        pen, dtype, text, lambda env: do.reduce(x.value(env), axis=at, keepdims=True, dtype=NUMPY[dtype])
    )
    return replace(x, text=text, value=value, most=limit(dtype))


def farthest(a: Any, at: int) -> Any:
    """Of each row the first element of the largest magnitude, as `farther` in a kernel finds it."""
    return np.take_along_axis(a, np.expand_dims(np.argmax(np.abs(a), axis=at), at), at)


def by_a_function(pen: Pen, dtype: str, size: int) -> Expr | None:
    if dtype in UNSIGNED:
        return None
    x, at = pen.expression(dtype, size - 1), pen.draw(st.integers(0, len(pen.shape) - 1))
    name, do = pen.pick(
        ("larger", lambda a: np.max(a, axis=at, keepdims=True)), ("farther", lambda a: farthest(a, at))
    )
    text, value = over(
        pen, dtype, f"tl.reduce({x.text}, {at}, {name}, keep_dims=True)", lambda env: do(x.value(env))
    )
    return replace(x, text=text, value=value)


def place(pen: Pen, dtype: str, size: int) -> Expr | None:
    """Where the extreme is: of equal ones the first or the last."""
    x, at = pen.expression(pen.pick(*pen.dtypes), size - 1), pen.draw(st.integers(0, len(pen.shape) - 1))
    name, left, count = pen.pick("argmax", "argmin"), pen.pick(True, False), pen.shape[at]
    do: Any = getattr(np, name)

    def found(env: Any) -> Any:
        a = x.value(env)
        first = (
            do(a, axis=at, keepdims=True) if left else count - 1 - do(np.flip(a, at), axis=at, keepdims=True)
        )
        return first.astype(np.int32)

    whole = f"tl.{name}({x.text}, {at}, tie_break_left={left}, keep_dims=True)"
    text, value = over(
        pen,
        "int32",
        pen.pick(
            whole,
            f"tl.{name[3:]}({x.text}, {at}, return_indices=True, "
            f"return_indices_tie_break_left={left}, keep_dims=True)[1]",
        ),
        found,
    )
    at_most = Expr(text, "int32", pen.shape, value, float(count), 1.0)
    return at_most if dtype == "int32" else pen.cast(at_most, dtype)


def running(pen: Pen, dtype: str, size: int) -> Expr | None:
    """Scans of integers from either end: sums and products wrap."""
    if dtype not in INTEGERS:
        return None
    x, at, back = (
        pen.expression(dtype, size - 1),
        pen.draw(st.integers(0, len(pen.shape) - 1)),
        pen.pick(True, False),
    )
    name, do = pen.pick(("cumsum", np.add), ("cumprod", np.multiply))
    text = f"tl.{name}({x.text}, axis={at}, reverse={back}).to(tl.{dtype})"
    way = (lambda a: np.flip(a, at)) if back else np.asarray
    return replace(
        x,
        text=text,
        value=lambda env: way(do.accumulate(way(x.value(env)), axis=at, dtype=NUMPY[dtype])),
        most=limit(dtype),
    )


def farthest_so_far(pen: Pen, dtype: str, size: int) -> Expr | None:
    if dtype in UNSIGNED:
        return None
    x, at, back = (
        pen.expression(dtype, size - 1),
        pen.draw(st.integers(0, len(pen.shape) - 1)),
        pen.pick(True, False),
    )
    way = (lambda a: np.flip(a, at)) if back else np.asarray

    def value(env: Any) -> Any:
        out = np.moveaxis(np.array(way(x.value(env))), at, 0)
        for k in range(1, len(out)):
            out[k] = np.where(np.abs(out[k - 1]) >= np.abs(out[k]), out[k - 1], out[k])
        return way(np.moveaxis(out, 0, at))

    return replace(x, text=f"tl.associative_scan({x.text}, {at}, farther, reverse={back})", value=value)


def counted(pen: Pen, dtype: str, size: int) -> Expr | None:
    """A histogram of small numbers, some of them left out, read at places that are data."""
    x, bins, count = (
        pen.expression("int32", size - 1),
        numbered(pen.expression("int32", 1), BINS),
        int(np.prod(pen.shape)),
    )
    masks = pen.pick(True, False)
    chosen = pen.condition() if masks else None
    table = f"tl.histogram(({x.text}) & {2 * BINS - 1}, {BINS}{f', mask={chosen.text}' if chosen else ''})"
    text = f"tl.reshape(tl.gather({table}, tl.reshape({bins.text}, ({count},)), 0), {pen.shape})"

    def value(env: Any) -> Any:
        a = np.asarray(x.value(env)) & (2 * BINS - 1)
        kept = (a < BINS) & (np.broadcast_to(chosen.value(env), pen.shape) if chosen else True)
        return np.bincount(a[kept], minlength=BINS).astype(np.int32)[bins.value(env)]

    found = Expr(text, "int32", pen.shape, value, float(count), 1.0)
    return found if dtype == "int32" else pen.cast(found, dtype) if pen.castable(found, dtype) else None


def scanned(pen: Pen, dtype: str, size: int) -> Expr | None:
    x, at = pen.expression(dtype, size - 1), pen.draw(st.integers(0, len(pen.shape) - 1))
    most = x.most * pen.shape[at]
    if dtype not in ("int32", "float32") or not replace(x, most=most).exact:
        return None
    text = f"tl.cumsum({x.text}, axis={at})"
    return made(
        text,
        x,
        pen.shape,
        lambda env: np.cumsum(x.value(env), axis=at, dtype=NUMPY[dtype]),
        most,
        x.grain,
    )


def maximum_so_far(pen: Pen, dtype: str, size: int) -> Expr | None:
    """A scan by a function of the author's."""
    x, at = pen.expression(dtype, size - 1), pen.draw(st.integers(0, len(pen.shape) - 1))
    text = f"tl.associative_scan({x.text}, {at}, larger)"
    return made(text, x, pen.shape, lambda env: np.maximum.accumulate(x.value(env), axis=at), x.most, x.grain)


RULES = (
    scanned, maximum_so_far, of_all, bits_of_all, by_a_function, place, running, farthest_so_far, counted,
)  # fmt: skip
