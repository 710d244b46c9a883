"""Ways to memory: pointers, block pointers and descriptors; atomics whose results are used; products with tails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from .blocks import Block
from .expressions import Pen
from .trees import NUMPY, Expr, limit

POINTERS, BLOCK, MOVED, DESCRIPTOR = "pointers", "block pointer", "advanced block pointer", "descriptor"
WAYS = (POINTERS, POINTERS, BLOCK, MOVED, DESCRIPTOR)


def way_to(tensor: str, way: str, size: int) -> str:
    """A block pointer or a descriptor for the program's part of a tensor of `n` elements."""
    if way == DESCRIPTOR:
        return f"tl.make_tensor_descriptor({tensor}, (n,), (1,), ({size},))"
    first = "0" if way == MOVED else f"pid * {size}"
    made = f"tl.make_block_ptr({tensor}, (n,), (1,), ({first},), ({size},), (0,))"
    return f"tl.advance({made}, (pid * {size},))" if way == MOVED else made


def load(name: str, way: str, shape: tuple[int, ...], other: Any) -> str:
    """A statement; what lies beyond the end is `other`, or 0 where the way says so."""
    size = int(np.prod(shape))
    if way == POINTERS:
        return f"{name} = tl.load({name}_in_ptr + at, mask=at < n, other={other})"
    there = way_to(f"{name}_in_ptr", way, size)
    read = (
        f"{there}.load([pid * {size}])"
        if way == DESCRIPTOR
        else f"tl.load({there}, boundary_check=(0,), padding_option='zero')"
    )
    return f"{name} = tl.reshape({read}, {shape})"


def store(name: str, way: str, shape: tuple[int, ...], text: str) -> str:
    size = int(np.prod(shape))
    if way == POINTERS:
        return f"tl.store({name}_ptr + at, {text}, mask=at < n)"
    there, flat = way_to(f"{name}_ptr", way, size), f"tl.reshape({text}, ({size},))"
    if way == DESCRIPTOR:
        return f"{there}.store([pid * {size}], {flat})"
    return f"tl.store({there}, {flat}, boundary_check=(0,))"


ATOMICS: dict[str, Any] = {
    "add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "xchg": lambda old, x: x,
}  # fmt: skip
SWAPPED = ("int32", "int16", "int8")


def exchanged(pen: Pen, name: str, dtype: str) -> Block:
    """Each program's own elements in memory: what an atomic found there, and what it left."""
    op, x, y = pen.pick(*ATOMICS, "cas"), pen.expression(dtype, 1), pen.expression(dtype, 0)
    given = f"{y.text}, {x.text}" if op == "cas" else x.text
    pen.scope[name] = Expr(name, dtype, pen.shape, lambda env: env[name], limit(dtype), 1.0)

    def run(env: dict[str, Any]) -> None:
        old = env[name] = env["swap"][env["at"]]
        new = np.asarray(x.value(env))
        left = np.where(old == y.value(env), new, old) if op == "cas" else ATOMICS[op](old, new)
        env["swap"][env["at"]] = left

    return Block([f"{name} = tl.atomic_{op}(swap_ptr + at, {given})"], run)


@dataclass(frozen=True)
class Product:
    """A product (rows, depth) times (depth, cols) in tiles of (m, k) and (k, n). dtype: of the operands."""

    dtype: str
    rows: int
    cols: int
    depth: int
    m: int
    n: int
    k: int

    @property
    def sums(self) -> str:
        return "int32" if self.dtype == "int8" else "float32"

    def of(self, env: dict[str, Any]) -> Any:
        """The tile, zero beyond the ends; exact."""
        a, b = (env[name].astype(NUMPY[self.sums]) for name in ("a", "b"))
        whole = np.zeros((self.m, self.n), NUMPY[self.sums])
        whole[: self.rows, : self.cols] = a.reshape(self.rows, self.depth) @ b.reshape(self.depth, self.cols)
        return whole

    def by_pointers(self, turned: bool, adds: str) -> list[str]:
        inside, across, along = f"(r < {self.rows})", f"(c < {self.cols})", f"(first + e < {self.depth})"
        right = f"b_ptr + (first + e)[:, None] * {self.cols} + c", f"{along}[:, None] & {across}"
        if turned:  # read with rows as columns, and transposed again
            down = f"(tl.arange(0, {self.n})[:, None]"
            right = (
                f"b_ptr + (first + e)[None, :] * {self.cols} + {down})",
                f"{along}[None, :] & ({down} < {self.cols}))",
            )
        return [
            f"for first in range(0, {self.depth}, {self.k}):",
            f"    left_at = a_ptr + r * {self.depth} + (first + e)[None, :]",
            f"    lhs = tl.load(left_at, mask={inside} & {along}[None, :], other=0)",
            f"    rhs = tl.load({right[0]}, mask={right[1]}, other=0)",
            *(["    rhs = tl.trans(rhs)"] * turned),
            f"    {adds}",
        ]

    def by_blocks(self, adds: str) -> list[str]:
        m, n, k = self.m, self.n, self.k
        left = f"(a_ptr, ({self.rows}, {self.depth}), ({self.depth}, 1), (0, 0), ({m}, {k}), (1, 0))"
        right = f"(b_ptr, ({self.depth}, {self.cols}), ({self.cols}, 1), (0, 0), ({k}, {n}), (1, 0))"
        return [
            f"left_at = tl.make_block_ptr{left}",
            f"right_at = tl.make_block_ptr{right}",
            f"for first in range(0, {self.depth}, {k}):",
            "    lhs = tl.load(left_at, boundary_check=(0, 1), padding_option='zero')",
            "    rhs = tl.load(right_at, boundary_check=(0, 1), padding_option='zero')",
            f"    {adds}",
            f"    left_at, right_at = tl.advance(left_at, (0, {k})), tl.advance(right_at, ({k}, 0))",
        ]


def drawn_product(pen: Pen, dtypes: tuple[str, ...]) -> Product:
    m, n, k = (pen.pick(16, 32) for _ in range(3))
    rows, cols, depth = (pen.draw(st.integers(1, x)) for x in (m, n, 2 * k))
    return Product(pen.pick(*dtypes), rows, cols, depth, m, n, k)


def multiplied(pen: Pen, p: Product) -> Block:
    """In one or two steps along K, worked on and stored."""
    most = 64.0 * 2 * p.k
    scope = {
        "d": Expr("d", p.sums, (p.m, p.n), lambda env: env["d"], most, 0.0625 if p.sums == "float32" else 1.0)
    }
    x = pen.on((p.m, p.n), scope).expression("float32", pen.draw(st.integers(0, 3)))

    def run(env: dict[str, Any]) -> None:
        found = x.value({**env, "d": p.of(env)})
        env["prod"].reshape(-1, p.rows, p.cols)[env["pid"]] = found[: p.rows, : p.cols]

    adds = pen.pick("d = tl.dot(lhs, rhs, d)", "d += tl.dot(lhs, rhs)")
    loop = pen.pick(p.by_pointers(False, adds), p.by_pointers(True, adds), p.by_blocks(adds))
    lines = [
        f"r, c, e = tl.arange(0, {p.m})[:, None], tl.arange(0, {p.n})[None, :], tl.arange(0, {p.k})",
        f"d = tl.zeros(({p.m}, {p.n}), tl.{p.sums})",
        *loop,
        f"prod_at = prod_ptr + pid * {p.rows * p.cols} + r * {p.cols} + c",
        f"tl.store(prod_at, {x.text}, mask=(r < {p.rows}) & (c < {p.cols}))",
    ]
    return Block(lines, run)
