"""Rules of types and scalars: promotion as Triton has it, casts with a rule, scalars beside tiles, functions of math."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .expressions import Pen
from .trees import FLOATS, INTEGERS, NUMPY, SIGNED, UNSIGNED, Expr, limit, made

OPERATIONS: dict[str, Any] = {"+": np.add, "-": np.subtract, "*": np.multiply}


def bits(dtype: str) -> int:
    return int(np.dtype(NUMPY[dtype]).itemsize) * 8


def common(a: str, b: str) -> str:
    """Triton's rule: float32, then float16, before all; bfloat16 only with itself; the wider; of as many bits unsigned."""
    for name in ("float32", "float16"):
        if name in (a, b):
            return name
    if "bfloat16" in (a, b):
        return a if a == b else "float32"
    if bits(a) != bits(b) or a in UNSIGNED:
        return a if bits(a) >= bits(b) else b
    return b


def promoted(pen: Pen, dtype: str, size: int) -> Expr | None:
    """Operands of two types."""
    pairs = [(a, b) for a in pen.dtypes for b in pen.dtypes if a != b and common(a, b) == dtype]
    if not pairs:
        return None
    types = pen.pick(*pairs)
    a, b = (pen.expression(t, k) for t, k in zip(types, ((size - 1) // 2, size // 2), strict=True))
    if not all(pen.castable(x, dtype) for x in (a, b)):
        return None
    sign, wide = pen.pick(*OPERATIONS), [x if x.dtype == dtype else pen.cast(x, dtype) for x in (a, b)]
    most = wide[0].most * wide[1].most if sign == "*" else wide[0].most + wide[1].most
    grain = wide[0].grain * wide[1].grain if sign == "*" else min(x.grain for x in wide)
    do = OPERATIONS[sign]
    return made(
        f"({a.text} {sign} {b.text})",
        wide[0],
        pen.shape,
        lambda env: do(*(x.value(env) for x in wide)),
        most,
        grain,
    )


def with_a_scalar(pen: Pen, dtype: str, size: int) -> Expr | None:
    """One of the program's data, or an argument."""
    if dtype not in ("int32", "float32"):
        return None
    x, c, sign = pen.expression(dtype, size - 1), pen.scalar(dtype), pen.pick(*OPERATIONS)
    most = x.most * c.most if sign == "*" else x.most + c.most
    grain, do = x.grain * c.grain if sign == "*" else min(x.grain, c.grain), OPERATIONS[sign]
    text = pen.pick(f"({x.text} {sign} {c.text})", f"tl.{do.__name__[:3]}({x.text}, {c.text})")
    return made(text, x, pen.shape, lambda env: do(x.value(env), NUMPY[dtype](c.value(env))), most, grain)


def by_a_condition(pen: Pen, dtype: str, size: int) -> Expr:
    """Python's `if` within an expression, on a scalar."""
    (a, b), c = pen.two(dtype, size), pen.condition(())
    asked, holds = pen.pick((c.text, c.value), (f"not {c.text}", lambda env: not c.value(env)))
    return replace(
        a,
        text=f"({a.text} if {asked} else {b.text})",
        value=lambda env: (a if holds(env) else b).value(env),
        most=max(a.most, b.most),
        grain=min(a.grain, b.grain),
    )


def limited(pen: Pen, dtype: str, size: int) -> Expr | None:
    """Integers as narrower ones, that end at the limits or keep their low bits."""
    if dtype not in INTEGERS:
        return None
    x, mode = (
        pen.expression(pen.pick(*(t for t in pen.dtypes if t in INTEGERS)), size - 1),
        pen.pick("saturate", "trunc"),
    )
    ends = np.iinfo(NUMPY[dtype])

    def value(env: Any) -> Any:
        a = np.asarray(x.value(env))
        if mode == "saturate":
            a = np.array([min(max(int(v), ends.min), ends.max) for v in a.flat], object).reshape(a.shape)
        return a.astype(NUMPY[dtype])

    text = f"tl.cast({x.text}, tl.{dtype}, overflow_mode='{mode}')"
    return Expr(text, dtype, pen.shape, value, limit(dtype), 1.0)


def same_bits(pen: Pen, dtype: str, size: int) -> Expr | None:
    """Integers read with the other sign; a number without sign as the integer of its bits."""
    if dtype not in INTEGERS:
        return None
    twin = f"u{dtype}" if dtype in SIGNED else dtype[1:]
    x = pen.expression("float32" if dtype == "int32" and pen.pick(True, False) else twin, size - 1)
    text = x.text if x.dtype == twin else f"tl.abs({x.text})"  # the sign of a zero is nobody's promise

    def value(env: Any) -> Any:
        a = np.asarray(x.value(env))
        return np.ascontiguousarray(a if x.dtype == twin else np.abs(a)).view(NUMPY[dtype]).reshape(a.shape)

    return Expr(f"{text}.to(tl.{dtype}, bitcast=True)", dtype, pen.shape, value, limit(dtype), 1.0)


def inverted(pen: Pen, dtype: str, size: int) -> Expr | None:
    if dtype not in INTEGERS:
        return None
    x = pen.expression(dtype, size - 1)
    return replace(x, text=f"(~{x.text})", value=lambda env: np.invert(x.value(env)), most=limit(dtype))


def high_half(pen: Pen, dtype: str, size: int) -> Expr | None:
    """Of a product of twice as many bits."""
    if dtype not in ("int32", "uint32"):
        return None
    a, b = pen.two(dtype, size)

    def value(env: Any) -> Any:
        long = np.uint64 if dtype in UNSIGNED else np.int64
        product = np.asarray(a.value(env)).astype(long) * np.asarray(b.value(env)).astype(long)
        return (product >> long(32)).astype(NUMPY[dtype])

    return replace(a, text=f"tl.umulhi({a.text}, {b.text})", value=value, most=limit(dtype))


def clamped(pen: Pen, dtype: str, size: int) -> Expr | None:
    if dtype not in FLOATS:
        return None
    x, ends = pen.expression(dtype, size - 1), sorted((pen.number(dtype), pen.number(dtype)))
    low, high = (NUMPY[dtype](c) for c in ends)
    text = f"tl.clamp({x.text}, {ends[0]}, {ends[1]})"
    return replace(
        x, text=text, value=lambda env: np.minimum(np.maximum(x.value(env), low), high),
        most=max(map(abs, ends)), grain=min(x.grain, 0.25),
    )  # fmt: skip


def rounded(pen: Pen, dtype: str, size: int) -> Expr | None:
    """To whole numbers; a square root, which is rounded correctly."""
    if dtype != "float32":
        return None
    x, name = pen.expression(dtype, size - 1), pen.pick("floor", "ceil", "sqrt")
    do: Any = getattr(np, name)
    if name == "sqrt":
        text = f"tl.sqrt(tl.abs({x.text}))"
        return made(text, x, pen.shape, lambda env: do(np.abs(x.value(env))), max(x.most, 1.0), 0.0)
    return made(f"tl.{name}({x.text})", x, pen.shape, lambda env: do(x.value(env)), x.most + 1, 1.0)


def multiplied_and_added(pen: Pen, dtype: str, size: int) -> Expr | None:
    """With one rounding; where the product is exact that is what two operations give. Integers wrap."""
    a, b = pen.two(dtype, size)
    c = pen.variable(dtype)
    product = made("", a, pen.shape, None, a.most * b.most, a.grain * b.grain)
    if product is None or not product.exact:
        return None
    return made(
        f"tl.fma({a.text}, {b.text}, {c.text})", a, pen.shape, lambda env: a.value(env) * b.value(env) + c.value(env),
        a.most * b.most + c.most, min(a.grain * b.grain, c.grain),
    )  # fmt: skip


RULES = (
    promoted, with_a_scalar, by_a_condition, limited, same_bits, inverted, high_half, clamped, rounded,
    multiplied_and_added,
)  # fmt: skip
