"""Strided stores: each element leaves from a block of 32 bytes of its own, over which the Vector unit spreads them first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import BufferOverflowError

BLOCK_BYTES = 32
LABEL = "blocks of strided store"


@sim.jit
def spread(out, x, read, write, iterations, B: tl.constexpr, WHAT: tl.constexpr):
    i = tl.arange(0, B)
    for iteration in range(iterations):
        at = iteration * B + i
        v = tl.load(x + at * read)
        if WHAT == "sum":
            v = v + 1.0
        elif WHAT == "indices":
            v = i.to(tl.float32)
        if WHAT == "picked":
            tl.store(out + at * write, v, mask=v > 0.5)
        elif WHAT == "atomic":
            tl.atomic_add(out + at * write, v)
        else:
            tl.store(out + at * write, v)


def launched(
    what: str,
    write: int,
    b: int = 256,
    iterations: int = 1,
    read: int = 1,
    dtype: Any = np.float32,
    **options: Any,
) -> Any:
    """The launch, after its values were compared with numpy's."""
    x = np.random.default_rng(0).uniform(0, 1, b * iterations * read).astype(dtype)
    out = np.zeros(b * iterations * write, dtype)
    with sim.device("ascend910b3", **options):
        run = spread[(1,)](out, x, read, write, iterations, B=b, WHAT=what)
    want = x[::read]
    if what == "sum":
        want = want + dtype(1)
    elif what == "indices":
        want = np.tile(np.arange(b), iterations)
    elif what == "picked":
        want = np.where(want > 0.5, want, 0)
    np.testing.assert_array_equal(out[::write], want)
    return run.launches[0]


def blocks(launch: Any) -> list[tuple[int, int]]:
    return [(v.bytes, v.copies) for v in launch.buffers["UB"].peak if v.name.startswith("blocks of strided")]


@given(st.integers(1, 50), st.integers(2, 5), st.sampled_from([np.float32, np.float16, np.int32]))
def test_a_strided_store_takes_a_block_an_element(eights: int, write: int, dtype: Any) -> None:
    b = 8 * eights
    assert blocks(launched("plain", write, b, dtype=dtype, compiler="ascendc")) == [(b * BLOCK_BYTES, 2)]
    assert blocks(launched("plain", write, b, dtype=dtype, multibuffer=1, compiler="ascendc")) == [
        (b * BLOCK_BYTES, 1)
    ]


@pytest.mark.parametrize("what", ["sum", "indices", "atomic"])
def test_the_vector_unit_spreads_eight_elements_a_repeat(what: str) -> None:
    """Brcb: eight blocks a repeat, one cycle each; beside what a contiguous store needs."""
    b, iterations = 1024, 3
    strided, plain = launched(what, 2, b, iterations), launched(what, 1, b, iterations)
    more = strided.pipes["AIV.V"].busy_cycles - plain.pipes["AIV.V"].busy_cycles
    assert more == pytest.approx(iterations * b / 8)
    assert blocks(plain) == []
    assert strided.cycles > plain.cycles


@pytest.mark.parametrize(("what", "write", "read"), [("plain", 1, 1), ("plain", 2, 2), ("picked", 2, 1)])
def test_stores_that_need_no_spreading(what: str, write: int, read: int) -> None:
    """Contiguous; from a tile that landed block by block; element by element by a mask that data decides."""
    assert blocks(launched(what, write, read=read)) == []


def test_a_strided_store_overflows_as_a_strided_load_does() -> None:
    """8192 elements of 32 bytes are 262144 bytes; the culprit is named."""
    with pytest.raises(BufferOverflowError, match=rf"ub overflow(.|\n)*262144 B  {LABEL}"):
        launched("sum", 2, 8192, multibuffer=1, compiler="ascendc")


@sim.jit
def turned(out, x, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    tl.store(out + i + j * M, tl.load(x + i * N + j))


def test_a_transposed_tile_is_stored_in_rows() -> None:
    x, out = np.arange(512, dtype=np.float32).reshape(16, 32), np.zeros((32, 16), np.float32)
    run = turned[(1,)](out, x, M=16, N=32)
    np.testing.assert_array_equal(out, x.T)
    assert blocks(run.launches[0]) == []
