"""Draws expressions: only operations that round once at most, so that values can be compared to the bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from .trees import (
    DIGITS,
    FLOATS,
    INTEGERS,
    NUMPY,
    TABLE,
    TOP,
    UNSIGNED,
    Env,
    Expr,
    divided,
    limit,
    made,
    whole,
)

Rule = Callable[[Any, str, int], Expr | None]


@dataclass
class Pen:
    """Draws expressions over the variables in scope. helpers: texts of the functions that were written on the way.
    dtypes: those that the machine has. more: rules of other modules."""

    draw: Any
    shape: tuple[int, ...]
    scope: dict[str, Expr]
    helpers: list[str]
    dtypes: tuple[str, ...] = (*NUMPY,)
    more: tuple[Rule, ...] = ()

    def on(self, shape: tuple[int, ...], scope: dict[str, Expr]) -> Pen:
        """Another one, for tiles of another shape or in another function."""
        return replace(self, shape=shape, scope=scope)

    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def variable(self, dtype: str, shape: tuple[int, ...] | None = None) -> Expr:
        """One in scope, turned into the type; a constant tile where there is none."""
        shape = self.shape if shape is None else shape
        fitting = [
            x
            for x in self.scope.values()
            if x.shape == shape and (x.dtype == dtype or self.castable(x, dtype))
        ]
        if not fitting:
            return self.constant_tile(dtype, shape)
        chosen = self.pick(*fitting)
        return chosen if chosen.dtype == dtype else self.cast(chosen, dtype)

    def constant_tile(self, dtype: str, shape: tuple[int, ...]) -> Expr:
        c = self.number(dtype)
        tile = NUMPY[dtype](c)
        text = f"tl.full({shape}, {c}, tl.{dtype})" if shape else f"tl.cast({c}, tl.{dtype})"
        return Expr(
            text, dtype, shape, lambda env: np.full(shape, tile), abs(c), 0.25 if dtype in FLOATS else 1.0
        )

    def scalar(self, dtype: str = "int32") -> Expr:
        """A scalar in scope, or a constant."""
        c = self.number(dtype)
        known = [x for x in self.scope.values() if x.shape == () and x.dtype == dtype]
        chosen: Expr = self.pick(*known, Expr(str(c), dtype, (), lambda env: NUMPY[dtype](c), abs(c), 0.25))
        return chosen

    def number(self, dtype: str) -> Any:
        if dtype in FLOATS:
            return self.pick(0.25, 0.5, 1.5, 2.0, -0.75, -3.0)
        return self.pick(1, 2, 3, 5, 7) if dtype in UNSIGNED else self.pick(1, 2, 3, 7, -2, -5)

    def castable(self, x: Expr, dtype: str) -> bool:
        """Whether numpy and Triton agree on it: no overflow of a float, no second rounding of an integer."""
        if x.dtype == "int1" or dtype in INTEGERS:
            return True
        return x.most <= (TOP[dtype] if x.is_float or dtype == "float32" else 2.0 ** (DIGITS[dtype] - 1))

    def cast(self, x: Expr, dtype: str) -> Expr:
        value = x.value
        grain = (x.grain if dtype in FLOATS else 1.0) if x.is_float else 1.0
        like, cuts = replace(x, dtype=dtype), x.is_float and dtype in INTEGERS
        found = made(
            f"{x.text}.to(tl.{dtype})",
            like,
            x.shape,
            lambda env: whole(value(env), dtype) if cuts else np.asarray(value(env)).astype(NUMPY[dtype]),
            min(x.most, limit(dtype)),
            grain,
        )
        assert found is not None
        return (
            found
            if x.is_float or dtype in FLOATS or x.most <= limit(dtype)
            else replace(found, most=limit(dtype))
        )

    def expression(self, dtype: str, size: int) -> Expr:
        """Of a type and of the tile's shape, with about `size` operations."""
        if size <= 0:
            return self.variable(dtype)
        rules = [self.arithmetic, self.extreme, self.where, self.by_number, self.converted, self.unary]
        rules += [self.reduced, self.gathered, self.helped]
        rules += (
            [self.quotient]
            if dtype == "float32"
            else [self.bits, self.integer_division]
            if dtype in INTEGERS
            else []
        )
        rule = self.pick(*rules, *self.more, *self.more)
        found = rule(self, dtype, size) if rule in self.more else rule(dtype, size)
        return found if found is not None else self.variable(dtype)

    def two(self, dtype: str, size: int) -> tuple[Expr, Expr]:
        left = self.draw(st.integers(0, size - 1))
        return self.expression(dtype, left), self.expression(dtype, size - 1 - left)

    def arithmetic(self, dtype: str, size: int) -> Expr | None:
        (a, b), sign = self.two(dtype, size), self.pick("+", "-", "*")
        do: Any = {"+": np.add, "-": np.subtract, "*": np.multiply}[sign]
        most = a.most * b.most if sign == "*" else a.most + b.most
        grain = a.grain * b.grain if sign == "*" else min(a.grain, b.grain)
        return made(
            f"({a.text} {sign} {b.text})",
            a,
            self.shape,
            lambda env: do(a.value(env), b.value(env)),
            most,
            grain,
        )

    def by_number(self, dtype: str, size: int) -> Expr | None:
        x, c, sign = self.expression(dtype, size - 1), self.number(dtype), self.pick("+", "-", "*")
        do: Any = {"+": np.add, "-": np.subtract, "*": np.multiply}[sign]
        most = x.most * abs(c) if sign == "*" else x.most + abs(c)
        grain = x.grain * 0.25 if sign == "*" else min(x.grain, 0.25)
        constant = NUMPY[dtype](c)
        return made(
            f"({x.text} {sign} {c})", x, self.shape, lambda env: do(x.value(env), constant), most, grain
        )

    def extreme(self, dtype: str, size: int) -> Expr | None:
        (a, b), name = self.two(dtype, size), self.pick("maximum", "minimum")
        do: Any = getattr(np, name)
        text = f"tl.{name}({a.text}, {b.text})"
        return made(
            text,
            a,
            self.shape,
            lambda env: do(a.value(env), b.value(env)),
            max(a.most, b.most),
            min(a.grain, b.grain),
        )

    def where(self, dtype: str, size: int) -> Expr | None:
        (a, b), c = self.two(dtype, size), self.condition()
        text = f"tl.where({c.text}, {a.text}, {b.text})"
        most, grain = max(a.most, b.most), min(a.grain, b.grain)
        return made(
            text, a, self.shape, lambda env: np.where(c.value(env), a.value(env), b.value(env)), most, grain
        )

    def condition(self, shape: tuple[int, ...] | None = None) -> Expr:
        """A comparison, or two of them."""
        shape = self.shape if shape is None else shape
        dtype = self.pick("int32", "float32") if shape else "int32"
        x, c, sign = (
            self.variable(dtype, shape),
            self.number(dtype),
            self.pick("<", "<=", ">", ">=", "==", "!="),
        )
        do: Any = {
            "<": np.less,
            "<=": np.less_equal,
            ">": np.greater,
            ">=": np.greater_equal,
            "==": np.equal,
        }.get(sign, np.not_equal)
        one = Expr(f"({x.text} {sign} {c})", "int1", shape, lambda env: do(x.value(env), NUMPY[dtype](c)))
        if not shape or self.pick(True, True, False):
            return one
        other, join = self.condition(shape), self.pick("&", "|")
        both: Any = {"&": np.logical_and, "|": np.logical_or}[join]
        text = f"({one.text} {join} {other.text})"
        return Expr(text, "int1", shape, lambda env: both(one.value(env), other.value(env)))

    def converted(self, dtype: str, size: int) -> Expr | None:
        x = self.expression(self.pick(*self.dtypes), size - 1)
        return self.cast(x, dtype) if self.castable(x, dtype) else None

    def unary(self, dtype: str, size: int) -> Expr | None:
        x = self.expression(dtype, size - 1)
        if dtype in UNSIGNED:
            return None
        text, do = self.pick((f"(-{x.text})", np.negative), (f"tl.abs({x.text})", np.abs))
        return made(text, x, self.shape, lambda env: do(x.value(env)), x.most, x.grain)

    def quotient(self, dtype: str, size: int) -> Expr | None:
        a, b = self.two(dtype, size)
        text = f"({a.text} / (tl.abs({b.text}) + 0.5))"
        half = np.float32(0.5)
        return made(
            text, a, self.shape, lambda env: a.value(env) / (np.abs(b.value(env)) + half), a.most * 2, 0.0
        )

    def bits(self, dtype: str, size: int) -> Expr | None:
        sign = self.pick("&", "|", "^", "<<", ">>")
        do: Any = {"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor}.get(sign)
        if do is None:
            x, c = self.expression(dtype, size - 1), self.pick(1, 2, 3)
            shift: Any = np.left_shift if sign == "<<" else np.right_shift
            most = x.most * 2**c
            return made(
                f"({x.text} {sign} {c})",
                x,
                self.shape,
                lambda env: shift(x.value(env), NUMPY[dtype](c)),
                most,
                1.0,
            )
        a, b = self.two(dtype, size)
        return made(
            f"({a.text} {sign} {b.text})",
            a,
            self.shape,
            lambda env: do(a.value(env), b.value(env)),
            limit(dtype),
            1.0,
        )

    def integer_division(self, dtype: str, size: int) -> Expr | None:
        x, c, sign = self.expression(dtype, size - 1), self.number(dtype), self.pick("//", "%")
        constant = NUMPY[dtype](c)

        def value(env: Env) -> Any:
            a = x.value(env)
            quotient = divided(a, constant)
            return quotient if sign == "//" else (a - quotient * constant).astype(a.dtype)

        return made(f"({x.text} {sign} {c})", x, self.shape, value, x.most if sign == "//" else abs(c), 1.0)

    def reduced(self, dtype: str, size: int) -> Expr | None:
        """Along one axis, or all of a row, and broadcast again."""
        x, name = self.expression(dtype, size - 1), self.pick("max", "min", "sum")
        axis = self.draw(st.integers(0, len(self.shape) - 1))
        count = self.shape[axis]
        most = x.most * count if name == "sum" else x.most
        if name == "sum" and (dtype not in ("int32", "float32") or not replace(x, most=most).exact):
            return None
        do: Any = getattr(np, name)
        places = ", ".join("None" if k == axis else ":" for k in range(len(self.shape)))
        again = f"[{places}]" if len(self.shape) > 1 else ""
        narrow = f".to(tl.{dtype})"  # reductions of fewer than 32 bits give 32
        text = f"tl.broadcast_to(tl.{name}({x.text}, axis={axis}){again}, {self.shape}){narrow}"

        def value(env: Env) -> Any:
            found = do(np.asarray(x.value(env)), axis=axis, keepdims=True)
            return np.broadcast_to(found.astype(NUMPY[dtype]), self.shape)

        return made(text, x, self.shape, value, most, x.grain)

    def gathered(self, dtype: str, size: int) -> Expr | None:
        """From a table of float32, at places that are data."""
        at = self.expression("int32", size - 1)
        text = f"tl.load(table_ptr + (({at.text}) & {TABLE - 1}))"
        table = Expr(
            text, "float32", self.shape, lambda env: env["table"][at.value(env) & (TABLE - 1)], 8.0, 0.25
        )
        return (
            table if dtype == "float32" else self.cast(table, dtype) if self.castable(table, dtype) else None
        )

    def helped(self, dtype: str, size: int) -> Expr | None:
        """A function of its own, written for this call; it may return early, by the program's number."""
        a, b = self.two(dtype, size)
        inner = self.on(self.shape, {"u": a.named("u"), "v": b.named("v")})
        body, early = (inner.expression(dtype, min(size, 2)) for _ in range(2))
        parity, name = self.pick(0, 1, 2), f"helper_{len(self.helpers)}"
        lines = [f"    if tl.program_id(0) % 2 == {parity}:", f"        return {early.text}"] * (parity < 2)
        head = ["@sim.jit", f"def {name}(u, v, table_ptr):"]
        self.helpers.append("\n".join([*head, *lines, f"    return {body.text}\n"]))

        def value(env: Env) -> Any:
            chosen = early if env["column"] % 2 == parity else body
            return chosen.value({**env, "u": a.value(env), "v": b.value(env)})

        most, grain = max(body.most, early.most), min(body.grain, early.grain)
        text = f"{name}({a.text}, {b.text}, table_ptr)"
        return Expr(text, dtype, self.shape, value, most, grain)
