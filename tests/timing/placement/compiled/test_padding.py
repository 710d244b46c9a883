"""Axes that the compiler makes longer than what they hold: transposes, sorts and casts to bytes, in known sums."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl

PRODUCT = "ascend910b3"
BITS = {"float32": 32, "float16": 16, "int8": 8, "int64": 64, "int32": 32}
SIDES = st.sampled_from([2, 4, 8, 16, 32, 64])


@sim.jit
def turned(x, out, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    v = tl.load(x + i[:, None] * N + j[None, :])
    tl.store(out + j[:, None] * M + i[None, :], tl.trans(v))


@sim.jit
def axes_turned(x, out, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    o = (
        tl.arange(0, K)[:, None, None] * M * N
        + tl.arange(0, M)[None, :, None] * N
        + tl.arange(0, N)[None, None, :]
    )
    p = (
        tl.arange(0, M)[:, None, None] * K * N
        + tl.arange(0, K)[None, :, None] * N
        + tl.arange(0, N)[None, None, :]
    )
    tl.store(out + p, tl.permute(tl.load(x + o), (1, 0, 2)))


@sim.jit
def in_order(x, out, M: tl.constexpr, N: tl.constexpr):
    o = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + o, tl.sort(tl.load(x + o), descending=True))


def placed(kernel: Any, element: str, **sides: int) -> Any:
    n = 1
    for k in sides.values():
        n *= k
    with sim.device(PRODUCT, overrides={"buffers.ub": 1 << 24}):
        tensor = sim.shape((n,), element)
        return kernel.time((1,), tensor, tensor, **sides).launches[0].buffers["UB"].placed_bytes


def up(n: int, to: int) -> int:
    return -(-n // to) * to


@pytest.mark.parametrize("element", sorted(BITS))
@settings(max_examples=8, deadline=None)
@given(m=SIDES, n=SIDES)
def test_a_transpose_with_the_last_axis_has_both_axes_in_blocks_and_of_words_one_in_two(
    element: str, m: int, n: int
) -> None:
    """Source and result each; int64 has 4 096 bytes of scratch beside."""
    block = 256 // BITS[element]
    rows, columns = up(m, block), up(n, block)
    if BITS[element] == 32 and rows % 16 and columns % 16:
        columns = up(n, 16)
    need = 2 * rows * columns * BITS[element] // 8
    assert placed(turned, element, M=m, N=n) == need + 4096 * (element == "int64")


@settings(max_examples=8, deadline=None)
@given(st.sampled_from([2, 4]), st.sampled_from([2, 4]), st.sampled_from([2, 8]))
def test_a_transpose_of_other_axes_pads_nothing(k: int, m: int, n: int) -> None:
    assert placed(axes_turned, "float32", K=k, M=m, N=n) == 2 * up(k * m * n * 4, 32)


@settings(max_examples=8, deadline=None)
@given(st.sampled_from([1, 2, 8]), st.sampled_from([2, 16, 32, 64]))
def test_rows_of_a_sort_are_up_to_32_elements(m: int, n: int) -> None:
    """What is loaded, what is stored, and five rows of scratch."""
    row = up(n, 32) * 4
    assert placed(in_order, "float32", M=m, N=n) == 2 * m * row + 5 * row


@sim.jit
def to_bytes(x, out, M: tl.constexpr, N: tl.constexpr):
    o = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + o, tl.load(x + o).to(tl.int8))


@sim.jit
def row_to_bytes(x, out, N: tl.constexpr):
    o = tl.arange(0, N)
    tl.store(out + o, tl.load(x + o).to(tl.int8))


def truncated(kernel: Any, bits: int, **sides: int) -> int:
    """Bytes side by side; the result lies on the source if that is as large."""
    n = sides.get("M", 1) * sides["N"]
    with sim.device(PRODUCT, overrides={"buffers.ub": 1 << 24}):
        run = kernel.time((1,), sim.shape((n,), f"int{bits}"), sim.shape((n,), "int8"), **sides)
    return int(run.launches[0].buffers["UB"].placed_bytes) - up(2 * n * bits // 8, 32)


@settings(max_examples=10, deadline=None)
@given(st.sampled_from([16, 32]), SIDES, SIDES)
def test_a_cast_to_bytes_has_32_rows_and_whole_blocks(bits: int, m: int, n: int) -> None:
    source, result = up(m, 32) * up(n, 256 // bits) * bits // 8, up(m, 32) * up(n, 32)
    beside = 0 if source >= result else result
    assert truncated(to_bytes, bits, M=m, N=n) == source + beside


@pytest.mark.parametrize(
    ("bits", "n", "source"), [(32, 8, 1024), (32, 32, 4096), (32, 64, 4096), (32, 2048, 8192), (16, 64, 2048)]
)
def test_a_cast_of_one_axis_to_bytes_has_1024_elements_or_fewer_if_it_is_short(
    bits: int, n: int, source: int
) -> None:
    assert truncated(row_to_bytes, bits, N=n) == source
