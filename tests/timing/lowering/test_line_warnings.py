"""Warnings say a thing once for each line; buffers name the file of a line that is not the kernel's."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from tests.frontend.sources import module


@sim.jit
def draws(out, seed, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.rand(seed, i))


@sim.jit
def products(out, x, B: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    for k in tl.static_range(N):
        v = tl.umulhi(v, v + k)
    tl.store(out + i, v)


def found(run: sim.Run, word: str) -> list[str]:
    return [w for w in run.warnings if word in w]


def test_operations_of_a_line_share_one_warning_with_their_number() -> None:
    (words,) = found(draws.time((1,), sim.shape(64, "float32"), 3, B=64), "umulhi has no vector")
    # Two for each of ten rounds, but one for the last two: one of four numbers is used.
    assert words.endswith("; 18 operations of this line")


@pytest.mark.parametrize("n", [1, 2, 5])
def test_their_cycles_are_added(n: int) -> None:
    x = sim.shape(256, "int32")
    (one,) = found(products.time((1,), x, x, B=256, N=1), "umulhi has no vector")
    (many,) = found(products.time((1,), x, x, B=256, N=n), "umulhi has no vector")
    first, total = (int(re.search(r"\((\d+) cycles", w).group(1)) for w in (one, many))  # type: ignore[union-attr]
    assert abs(total - n * first) <= n
    assert many.endswith(f"; {n} operations of this line") == (n > 1)


HELPER = """
@sim.jit
def twice(p, i):
    a = tl.load(p + i)
    return a.to(tl.float32) * 2.0 + tl.exp(a.to(tl.float32))
"""


def test_an_overflow_names_the_file_of_a_helper_from_elsewhere(tmp_path: Path) -> None:
    helper = module(tmp_path, HELPER)
    kernel = module(
        tmp_path,
        "twice = None\n@sim.jit\ndef k(x, out, B: tl.constexpr):\n    i = tl.arange(0, B)\n    v = tl.load(x + i) * 3.0\n"
        "    tl.store(out + i, twice(x, i) + v)\n",
    )
    kernel.twice = helper.twice
    x = np.zeros(1 << 17, np.float32)
    with pytest.raises(sim.RunError, match="ub overflow") as caught:
        kernel.k[(1,)](x, x.copy(), B=1 << 17)
    text = str(caught.value)
    assert f"Alive at the peak (lines of {kernel.__file__}):" in text
    rows = [line for line in text.split("\n") if " B  " in line]
    assert any(re.search(r"  v \[131072\] fp32  line 7$", row) for row in rows)
    assert any(f"{helper.__file__}:" in row for row in rows)
    assert all(f"{kernel.__file__}:" not in row for row in rows)


def test_an_overflow_leaves_out_what_takes_no_memory(tmp_path: Path) -> None:
    kernel = module(
        tmp_path,
        "@sim.jit\ndef k(x, out, f, B: tl.constexpr):\n    i = tl.arange(0, B)\n    factor = f * 2.0\n"
        "    tl.store(out + i, tl.exp(tl.load(x + i)) * factor)\n",
    )
    x = np.zeros(1 << 17, np.float32)
    with pytest.raises(sim.RunError, match="ub overflow") as caught:
        kernel.k[(1,)](x, x.copy(), 0.5, B=1 << 17)
    rows = [line.split()[0] for line in str(caught.value).split("\n") if " B  " in line]
    assert rows
    assert "0" not in rows
