"""Illegal kernels: a drawn legal one with a statement that no kernel may have, with other tokens, or with a wrong call."""

from __future__ import annotations

import io
import tokenize
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from .blocks import Kernel
from .kernels import kernels

# Statements over the variables that every drawn kernel has: x (floating point), y (integer), i, at (int32), pid, s, n, m.
WRONG = (
    "bad = nothing + 1", "bad = x.nothing()", "bad = tl.nothing(x)", "import os", "bad = lambda u: u", "del x",
    "yield x", "with open('f') as f:\n        pass", "try:\n        pass\n    finally:\n        pass",
    "raise ValueError('no')", "bad = {1: x}", "bad = [u for u in x]", "x[0] = 1.0", "x.value = 1", "bad = x + 'text'",
    "bad = x + None", "bad = x + tl.arange(0, 7)", "bad = x & y", "bad = x << 1", "bad = ~x", "bad = tl.dot(x, pid)",
    "bad = tl.dot(x, y)", "bad = tl.load(i)", "bad = tl.load(x_in_ptr + x)", "tl.store(at, x)", "tl.store(out_ptr, x)",
    "bad = tl.sum(x, axis=7)", "bad = tl.max(x, axis='0')", "bad = tl.cumsum(x, axis=-9)", "bad = tl.arange(0, n)",
    "bad = tl.arange(5, 2)", "bad = tl.arange(0)", "bad = tl.full((n,), 0, tl.int32)", "bad = tl.zeros((0,), tl.float32)",
    "bad = tl.zeros((-3,), tl.float32)", "bad = tl.zeros((4,), 'no type')", "bad = x.to(3)", "bad = x.to(tl.nothing)",
    "bad = tl.where(x)", "bad = tl.where(x > 0, x)", "bad = tl.exp(x, 3)", "bad = tl.load(x_in_ptr + at, colour=3)",
    "bad = tl.reshape(x, (7, 7))", "bad = tl.trans(x, 5)", "bad = tl.broadcast_to(x, (3, 3, 3))", "bad = x[None, 5:2]",
    "bad = tl.program_id(7)", "bad = tl.num_programs(-1)", "bad = tl.associative_scan(x, 0, 3)", "bad = tl.cast(x, None)",
    "tl.static_assert(False)", "tl.device_assert(n < 0, 'no')", "assert n < 0", "bad = 1 // 0",
    "tl.store(more_ptr + at, y // 0, mask=at < n)",
    "bad = tl.load(x_in_ptr + at + 1000000)", "bad = tl.load(x_in_ptr - 1)", "tl.store(out_ptr + at + n, 0.0)",
    "bad = tl.load(table_ptr + i - 100)", "tl.atomic_add(sums_ptr + i + 4000, 1)",
    "for k in range(2):\n        x = y.to(tl.int64) + k", "for k in x:\n        pass", "while x:\n        pass",
    "if x > 0:\n        pass", "for k in range(0, 4, 0):\n        pass", "for k in tl.static_range(n):\n        pass",
    "kernel(x, y)", "bad = x if x > 0 else y", "while n > 0:\n        m = m + 1", "bad, worse = x",
    "bad = tl.atomic_add(sums_ptr + i)", "bad = tl.gather(x, x, 0)", "bad = tl.histogram(x, 8)", "bad = tl.sort(x, 3)",
    "bad = tl.split(x)", "bad = tl.join(x, tl.arange(0, 3))", "tl.debug_barrier(1)", "bad = x @ y", "bad = x ** y",
)  # fmt: skip
ARGUMENTS: tuple[Any, ...] = (
    None, "text", [1, 2], {}, object(), 1j, np.array([None, "x"], object), np.zeros(4, complex), np.array(["a"]),
    float("nan"), 10**30, b"bytes", np.zeros(0, np.float32), 3.5, len, np.datetime64("2026-01-01"),
)  # fmt: skip
GRIDS: tuple[Any, ...] = ((-1,), (0,), ("2",), (1, 2, 3, 4), (), None, 2.5, (1.5,), (2**40,), "grid", ((1,),))


@st.composite
def with_a_wrong_statement(draw: Any) -> tuple[Kernel, str]:
    kernel = draw(kernels())
    lines = kernel.source.split("\n")
    first = next(k for k, line in enumerate(lines) if line.startswith("    s = ")) + 1
    places = [k for k in range(first, len(lines)) if lines[k].startswith("    ") and lines[k][4] != " "]
    places = [k for k in places if not lines[k].startswith(("    else", "    elif"))]
    wrong = draw(st.sampled_from(WRONG))
    lines.insert(draw(st.sampled_from(places)), f"    {wrong}")
    return replace(kernel, source="\n".join(lines)), wrong


SIGNS = ("+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>", "<", "==", "**", "@", "and", ",")
NUMBERS = (
    "0",
    "-1",
    "1",
    "3",
    "0.5",
    "1e300",
    "64",
    "4096",
    "10**9",
    "2**62",
    "2**70",
    "True",
    "'1'",
    "None",
    "(1, 2)",
)
NAMES = (
    "x",
    "y",
    "i",
    "at",
    "n",
    "pid",
    "tl",
    "sim",
    "x_in_ptr",
    "out_ptr",
    "None",
    "float",
    "int32",
    "sum",
    "exp",
    "nothing",
)


@st.composite
def with_changed_tokens(draw: Any) -> Kernel:
    """One to three tokens of the kernel's body are exchanged for others of their kind, which may well be legal."""
    kernel = draw(kernels())
    head, mark, body = kernel.source.partition("    pid = tl.program_id(0)\n")
    rows = ("def f():\n" + mark + body).split("\n")
    tokens = [*tokenize.generate_tokens(io.StringIO("\n".join(rows)).readline)][5:]
    words = [t for t in tokens if t.string in SIGNS or t.type == tokenize.NUMBER or t.type == tokenize.NAME]
    for _ in range(draw(st.integers(1, 3))):
        old = draw(st.sampled_from(words))
        new = draw(
            st.sampled_from(
                SIGNS if old.string in SIGNS else NUMBERS if old.type == tokenize.NUMBER else NAMES
            )
        )
        row, begin, end = old.start[0] - 1, old.start[1], old.end[1]
        if rows[row][begin:end] == old.string:  # else one before it in the line has another length now
            rows[row] = rows[row][:begin] + new + rows[row][end:]
    return replace(kernel, source=head + "\n".join(rows[1:]))


@st.composite
def with_a_wrong_call(draw: Any) -> tuple[Kernel, dict[str, Any], Any]:
    """A legal kernel; changed arguments, and a grid."""
    kernel = draw(kernels())
    given, grid = kernel.arguments(), kernel.grid
    how = draw(st.sampled_from(("missing", "unknown", "kind", "grid")))
    name = draw(st.sampled_from([*given]))
    if how == "missing":
        del given[name]
    elif how == "unknown":
        given["unknown"] = 3
    elif how == "kind":
        given[name] = draw(st.sampled_from(ARGUMENTS))
    else:
        grid = draw(st.sampled_from(GRIDS))
    return kernel, given, grid
