"""Draws kernels: statements around drawn expressions, their source and arguments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from . import counting, mixing, rearranging
from .accesses import POINTERS, SWAPPED, WAYS, drawn_product, exchanged, load, multiplied, store
from .blocks import Block, Kernel, assigned, indented, together
from .expressions import Pen
from .trees import FLOATS, INTEGERS, NUMPY, TABLE, UNSIGNED, Expr, limit

SMALL = ((16,), (32,), (50,), (64,), (4, 16), (3, 20), (8, 8))
LARGE = ((1024,), (2000,), (8, 256))
SPLIT = ("ascend910b1", "ascend910b3", "ascend910b4", "ascend910c")
MACHINES = (*SPLIT, "ascend910a", "ascend310p")
HEADER = "import ascendtile.simulator as sim\nimport ascendtile.simulator.language as tl\n"
HEADER += "import ascendtile.simulator.language.extra.cann.extension as al\n\n\n"
HEADER += "@sim.jit\ndef larger(a, b):\n    return tl.maximum(a, b)\n\n\n"
HEADER += "@sim.jit\ndef farther(a, b):\n    return tl.where(tl.abs(a) >= tl.abs(b), a, b)\n\n\n"
MORE = (*rearranging.RULES, *counting.RULES, *mixing.RULES)


class Author:
    """Writes the body of one kernel."""

    def __init__(self, draw: Any, large: bool) -> None:
        self.draw = draw
        self.shape: tuple[int, ...] = draw(st.sampled_from(LARGE if large else SMALL))
        self.size = int(np.prod(self.shape))
        self.machine = draw(st.sampled_from([*MACHINES]))
        floats = FLOATS if self.machine in SPLIT else {n: x for n, x in FLOATS.items() if n != "bfloat16"}
        self.pen = Pen(draw, self.shape, {}, [], (*floats, *INTEGERS), MORE)
        self.grid = draw(st.integers(8, 64) if large else st.integers(1, 5))
        self.rows = draw(st.sampled_from([k for k in (1, 1, 2, 3) if self.grid % k == 0]))  # of the grid
        self.count = max(
            1, self.grid * self.size - draw(st.integers(0, self.size))
        )  # elements: the last tile has a tail
        self.float = draw(st.sampled_from([*floats]))
        self.integer = draw(st.sampled_from([*INTEGERS]))
        self.dtypes = {"float32", "int32", self.float, self.integer}
        self.sums = "int32" if self.machine in SPLIT else "float32"
        self.swapped = self.pen.pick(*SWAPPED)
        operands = ("float16", "int8", *(("bfloat16", "float32") if self.machine in SPLIT else ()))
        self.product = drawn_product(self.pen, operands)

    def body(self) -> Block:
        blocks = [self.index(), self.loaded("x", self.float), self.loaded("y", self.integer), self.scalar()]
        statements = (self.assignment, self.branch, self.loop, self.while_loop, self.turned, self.exchanged)
        blocks += [self.draw(st.sampled_from(statements))() for _ in range(self.draw(st.integers(1, 4)))]
        blocks += [self.stored("out", "float32"), self.stored("more", self.integer), self.added()]
        if self.draw(st.integers(0, 3)) == 0:
            blocks.append(multiplied(self.pen, self.product))
        return together(blocks)

    def index(self) -> Block:
        """`i`: the number of an element in the tile; `at`: in the tensor."""
        axes = [f"tl.arange(0, {n})" for n in self.shape]
        text = axes[0] if len(axes) == 1 else f"{axes[0]}[:, None] * {self.shape[1]} + {axes[1]}[None, :]"
        grid = ["pid += tl.num_programs(0) * tl.program_id(1)"] * (self.rows > 1)
        places = np.arange(self.size, dtype=np.int32).reshape(self.shape)
        self.pen.scope["i"] = Expr("i", "int32", self.shape, lambda env: places, self.size, 1.0)
        for name, most in (("pid", 64.0), ("m", 4.0), ("C", 3.0)):
            self.pen.scope[name] = replace(argument(name, "int32"), most=most)
        self.pen.scope["f"] = argument("f", "float32")

        def run(env: dict[str, Any]) -> None:
            env["at"] = env["pid"] * np.int32(self.size) + places

        return Block(["pid = tl.program_id(0)", *grid, f"i = {text}", f"at = pid * {self.size} + i"], run)

    def loaded(self, name: str, dtype: str) -> Block:
        way = self.pen.pick(*WAYS)
        other = self.pen.number(dtype) if way == POINTERS else 0
        grain = 0.25 if dtype in FLOATS else 1.0
        self.pen.scope[name] = Expr(name, dtype, self.shape, lambda env: env[name], 8.0, grain)

        def run(env: dict[str, Any]) -> None:
            data = env[f"{name}_in"]
            env[name] = np.where(env["at"] < env["n"], data[env["at"] % len(data)], NUMPY[dtype](other))

        return Block([load(name, way, self.shape, other)], run)

    def scalar(self) -> Block:
        """`s`: data of the program, small and not below 0."""
        self.pen.scope["s"] = Expr("s", "int32", (), lambda env: env["s"], 5.0, 1.0)

        def run(env: dict[str, Any]) -> None:
            env["s"] = env["turns"][env["pid"]]

        return Block(["s = tl.load(turns_ptr + pid)"], run)

    def new(self, dtype: str) -> tuple[str, Block]:
        """A variable of a new name."""
        name, x = f"v{len(self.pen.scope)}", self.pen.expression(dtype, self.draw(st.integers(0, 4)))
        block = assigned(name, x)
        self.pen.scope[name] = x.named(name)
        return name, block

    def type(self) -> str:
        return str(self.draw(st.sampled_from([*sorted(self.dtypes)])))

    def assignment(self) -> Block:
        return self.new(self.type())[1]

    def branch(self) -> Block:
        """On the program's number or its data: each side gives the variable another value."""
        name, before = self.new(self.type())
        x, condition = self.pen.scope[name], self.pen.condition(())
        also = self.pen.condition(())
        sides = [self.pen.expression(x.dtype, 2) for _ in range(3)]
        yes, perhaps, no = (assigned(name, side) for side in sides)
        every = [x, *sides]
        most, grain = max(e.most for e in every), min(e.grain for e in every)
        self.pen.scope[name] = replace(x, most=most, grain=grain)

        def run(env: dict[str, Any]) -> None:
            before.run(env)
            (yes if condition.value(env) else perhaps if also.value(env) else no).run(env)

        lines = [*before.lines, f"if {condition.text}:", *indented(yes)]
        lines += [f"elif {also.text}:", *indented(perhaps), "else:", *indented(no)]
        return Block(lines, run)

    def carried(self, most_turns: int, counter: str) -> tuple[Block, Block]:
        """What stands before a loop, and its body: a variable that each iteration adds to, or keeps the larger of."""
        name, before = self.new(self.type())
        acc = self.pen.scope.pop(name)
        self.pen.scope[counter] = Expr(counter, "int32", (), lambda env: env[counter], most_turns, 1.0)
        term = self.pen.expression(acc.dtype, 2)
        del self.pen.scope[counter]
        added, larger = acc.most + most_turns * term.most, max(acc.most, term.most)
        adds = self.draw(st.booleans()) and not (acc.is_float and added > limit(acc.dtype))
        text = f"{name} + {term.text}" if adds else f"tl.maximum({name}, {term.text})"
        do: Any = np.add if adds else np.maximum
        body = assigned(name, replace(acc, text=text, value=lambda env: do(env[name], term.value(env))))
        most = min(added if adds else larger, limit(acc.dtype))
        after = replace(acc.named(name), most=most, grain=min(acc.grain, term.grain))
        self.pen.scope[name] = after if after.exact else replace(after, grain=0.0)
        return before, body

    def loop(self) -> Block:
        """As often as a constant, an argument or the program's data says; there may be another one in it."""
        bound, most = self.draw(
            st.sampled_from((("3", 3), ("m", 4), ("s", 5), ("tl.static_range(2)", 2), ("C", 3)))
        )
        within = self.draw(st.sampled_from((1, 1, 2, 3)))
        before, body = self.carried(most * within, "k")
        text = bound if bound.startswith("tl.") else f"range({bound})"
        nested = (
            indented(body)
            if within == 1
            else [f"    for _ in range({within}):", *indented(Block(indented(body), body.run))]
        )

        def run(env: dict[str, Any]) -> None:
            before.run(env)
            for k in range(int(env[bound]) if bound in ("m", "s", "C") else most):
                env["k"] = np.int32(k)
                together([body] * within).run(env)

        return Block([*before.lines, f"for k in {text}:", *nested], run)

    def while_loop(self) -> Block:
        before, body = self.carried(5, "left")

        def run(env: dict[str, Any]) -> None:
            before.run(env)
            env["left"] = env["s"]
            while env["left"] > 0:
                body.run(env)
                env["left"] = env["left"] - np.int32(1)

        lines = [*before.lines, "left = s", "while left > 0:", *indented(body), "    left = left - 1"]
        return Block(lines, run)

    def turned(self) -> Block:
        """Two variables that each iteration exchanges, and works on one of them."""
        dtype = self.type()
        (a, before), (b, behind) = self.new(dtype), self.new(dtype)
        x, y = (self.pen.scope.pop(name) for name in (a, b))
        term = self.pen.expression(dtype, 1)
        every, turns = (x, y, term), self.draw(st.integers(1, 3))
        most, grain = max(e.most for e in every), min(e.grain for e in every)
        for name, v in ((a, x), (b, y)):
            self.pen.scope[name] = replace(v, most=most, grain=grain)

        def run(env: dict[str, Any]) -> None:
            together([before, behind]).run(env)
            for _ in range(turns):
                env[a], env[b] = env[b], np.minimum(env[a], term.value(env))

        lines = [f"for _ in range({turns}):", f"    {a}, {b} = {b}, tl.minimum({a}, {term.text})"]
        return Block([*before.lines, *behind.lines, *lines], run)

    def exchanged(self) -> Block:
        if self.sums != "int32":  # the coupled core has no atomics but sums of floats
            return self.assignment()
        return exchanged(self.pen, f"v{len(self.pen.scope)}", self.swapped)

    def stored(self, name: str, dtype: str) -> Block:
        x = self.pen.expression(dtype, self.draw(st.integers(1, 6)))

        def run(env: dict[str, Any]) -> None:
            inside = env["at"] < env["n"]
            env[name][env["at"][inside]] = np.broadcast_to(x.value(env), self.shape)[inside]

        return Block([store(name, self.pen.pick(*WAYS), self.shape, x.text)], run)

    def added(self) -> Block:
        """Whole numbers, so that the order of the programs does not matter."""
        x, where = self.pen.expression("int32", 2), self.pen.expression("int32", 1)
        name = (
            self.draw(st.sampled_from(("atomic_add", "atomic_max"))) if self.sums == "int32" else "atomic_add"
        )
        do: Any = np.add if name == "atomic_add" else np.maximum
        if self.sums == "float32":  # the coupled core adds no 32-bit integers in memory
            whole = x
            x = replace(x, text=f"({x.text} & 255).to(tl.float32)", value=lambda env: whole.value(env) & 255)

        def run(env: dict[str, Any]) -> None:
            places = np.broadcast_to(where.value(env) & (TABLE - 1), self.shape)
            do.at(env["sums"], places, np.broadcast_to(x.value(env), self.shape))

        return Block([f"tl.{name}(sums_ptr + (({where.text}) & {TABLE - 1}), {x.text})"], run)


def argument(name: str, dtype: str) -> Expr:
    return Expr(name, dtype, (), lambda env: NUMPY[dtype](env[name]), 3.0, 0.25)


def numbers(seed: np.random.Generator, dtype: str, size: int) -> np.ndarray:
    if dtype in FLOATS:
        return (seed.integers(-32, 33, size) / 4).astype(NUMPY[dtype])
    return seed.integers(0 if dtype in UNSIGNED else -8, 9, size).astype(NUMPY[dtype])


@st.composite
def kernels(draw: Any, large: bool = False) -> Kernel:
    """Legal ones. large: of so many elements that it matters how fast memory is."""
    author = Author(draw, large)
    body = author.body()
    seed = np.random.default_rng(draw(st.integers(0, 2**16)))
    n = author.count
    tensors = {
        "x_in_ptr": numbers(seed, author.float, n),
        "y_in_ptr": numbers(seed, author.integer, n),
        "turns_ptr": seed.integers(0, 6, author.grid).astype(np.int32),
        "table_ptr": numbers(seed, "float32", TABLE),
        "out_ptr": np.full(n, -7, np.float32),
        "more_ptr": np.full(n, 7, NUMPY[author.integer]),
        "sums_ptr": np.zeros(TABLE, NUMPY[author.sums]),
    }
    p = author.product
    tensors["a_ptr"] = numbers(seed, p.dtype, p.rows * p.depth)
    tensors["b_ptr"] = numbers(seed, p.dtype, p.depth * p.cols)
    tensors["prod_ptr"] = np.zeros(author.grid * p.rows * p.cols, np.float32)
    tensors["swap_ptr"] = numbers(seed, author.swapped, author.grid * author.size)
    names = ", ".join([*tensors, "n", "m", "f", "C: tl.constexpr"])
    lines = "\n".join(indented(body))
    source = HEADER + "\n\n".join(author.pen.helpers) + f"\n\n@sim.jit\ndef kernel({names}):\n{lines}\n"
    scalars = {
        "n": n,
        "m": author.pen.pick(0, 1, 2, 4),
        "f": author.pen.number("float32"),
        "C": author.pen.pick(1, 2, 3),
    }
    grid = (author.grid // author.rows, *([author.rows] if author.rows > 1 else []))
    return Kernel(source, grid, tensors, scalars, body, author.machine)
