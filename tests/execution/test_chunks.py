"""However many programs run at once, the result is the same to the last bit, and is what each program means alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl

from .runs import run

f32 = np.float32
PROGRAMS = 11


@sim.jit
def divergent(out, x, B: tl.constexpr):
    """Branches, loops and while loops of lengths that differ between programs; tiles, masks and pointers carried."""
    pid = tl.program_id(0)
    i = tl.arange(0, B)
    m = i < pid
    acc = tl.zeros((B,), tl.float32)
    ptr = x + i
    n = tl.load(x + pid).to(tl.int32)
    for k in range(n % 4):
        for j in range(k, pid % 3):
            acc += tl.load(ptr, mask=m, other=0.5) * j
            if j == 1:
                ptr += 1
            else:
                m = i < j + k
        if acc.sum(0) > 3.0:
            acc = acc / 3.0
    while n > 0 and pid > 2:
        if n % 2 == 0:
            acc += tl.where(m, n, 1.0)
            i += 1
        elif pid % 2 == 0:
            i = tl.load(x + i, mask=i < 20, other=3.0).to(tl.int32)
        n -= 3
    tl.store(out + pid * B + tl.arange(0, B), acc + i + n)


def meaning(x: np.ndarray, B: int) -> np.ndarray:
    out = np.empty((PROGRAMS, B), f32)
    for pid in range(PROGRAMS):
        i, at, acc = np.arange(B), np.arange(B), np.zeros(B, f32)
        m = i < pid
        n = int(x[pid])
        for k in range(n % 4):
            for j in range(k, pid % 3):
                acc = acc + np.where(m, x[np.where(m, at, 0)], f32(0.5)) * f32(j)
                if j == 1:
                    at = at + 1
                else:
                    m = np.arange(B) < j + k
            if acc.sum() > 3:
                acc = acc / f32(3)
        while n > 0 and pid > 2:
            if n % 2 == 0:
                acc = acc + np.where(m, f32(n), f32(1))
                i = i + 1
            elif pid % 2 == 0:
                i = np.where(i < 20, x[np.where(i < 20, i, 0)], f32(3)).astype(int)
            n -= 3
        out[pid] = acc + i.astype(f32) + f32(n)
    return out


VALUES = (np.arange(40) * 7 % 13).astype(f32)


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, PROGRAMS, 100])
def test_divergent_programs_give_what_each_gives_alone(chunk: int) -> None:
    out, _ = run(divergent, (PROGRAMS,), np.zeros((PROGRAMS, 5), f32), VALUES, B=5, chunk=chunk)
    np.testing.assert_array_equal(out, meaning(VALUES, 5))


@given(
    st.lists(st.integers(0, 16), min_size=40, max_size=40),
    st.integers(1, 6),
    st.integers(1, PROGRAMS),
    st.integers(1, 5),
)
def test_any_chunk_of_any_data_gives_the_same_bits(
    data: list[int], size: int, chunk: int, other: int
) -> None:
    x = np.array(data, f32)
    a, _ = run(divergent, (PROGRAMS,), np.zeros((PROGRAMS, size), f32), x, B=size, chunk=chunk)
    b, _ = run(divergent, (PROGRAMS,), np.zeros((PROGRAMS, size), f32), x, B=size, chunk=other)
    np.testing.assert_array_equal(a, b)


@sim.jit
def grid3(out):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    at = x + tl.num_programs(0) * (y + tl.num_programs(1) * z)
    tl.store(out + at, 100 * z + 10 * y + x)


@pytest.mark.parametrize("chunk", [1, 5, 24])
def test_axes_of_the_grid(chunk: int) -> None:
    (out,) = run(grid3, (2, 3, 4), np.zeros(24, np.int32), chunk=chunk)
    assert out.tolist() == [100 * z + 10 * y + x for z in range(4) for y in range(3) for x in range(2)]


@sim.jit
def merging_forms(out, table, n, B: tl.constexpr):
    """An index tile or a mask in some programs, loaded elements in others."""
    pid = tl.program_id(0)
    if pid % 3 == 0:
        i = tl.arange(0, B)
        m = i < 2
    elif pid % 3 == 1:
        i = tl.load(table + tl.arange(0, B))
        m = i > 1
    else:
        i = tl.arange(0, B) * 2
        m = i < n
    for _ in range(pid):
        i = i + tl.load(table + tl.arange(0, B))
    tl.store(out + pid * B + tl.arange(0, B), i + 100 * m.to(tl.int32))


@pytest.mark.parametrize("chunk", [1, 2, 6])
def test_index_tiles_meet_loaded_tiles(chunk: int) -> None:
    table = np.array([3, 0, 2, 1], np.int32)
    out, *_ = run(merging_forms, (6,), np.zeros((6, 4), np.int32), table, 4, B=4, chunk=chunk)
    i = np.arange(4)
    for pid in range(6):
        start = (i, table, 2 * i)[pid % 3]
        mask = (i < 2, table > 1, 2 * i < 4)[pid % 3]
        np.testing.assert_array_equal(out[pid], start + pid * table + 100 * mask)


@sim.jit
def fill_differs(out, x, n, B: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, B)
    tl.store(out + pid * B + i, tl.load(x + i, mask=i < n, other=pid.to(tl.float32)))


def test_the_fill_of_a_load_may_differ_where_the_addresses_do_not() -> None:
    out, *_ = run(fill_differs, (3,), np.zeros((3, 4), f32), np.ones(4, f32), 2, B=4)
    assert out.tolist() == [[1, 1, p, p] for p in range(3)]


@sim.jit
def two_tensors(out, a, b):
    pid = tl.program_id(0)
    p = a
    if pid > 0:
        p = b
    tl.store(out + pid, tl.load(p))


def test_one_name_may_point_into_two_tensors() -> None:
    args = np.zeros(2, f32), np.ones(1, f32), np.full(1, 2, f32)
    assert run(two_tensors, (1,), *args)[0].tolist() == [1, 0]
    assert run(two_tensors, (2,), *args)[0].tolist() == [1, 2]


@sim.jit
def far(out, mask, n, B: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, B) + pid * 2_000_000_000
    tl.store(out + pid * B + tl.arange(0, B), (i < n).to(tl.int32))


def test_an_index_tile_wraps_as_int32_before_it_is_compared() -> None:
    out, *_ = run(far, (3,), np.zeros((3, 4), np.int32), 0, 2, B=4)
    i = (np.arange(4, dtype=np.int64) + np.arange(3)[:, None] * 2_000_000_000).astype(np.int32)
    np.testing.assert_array_equal(out, i < 2)


@sim.jit
def wrapping(out, wide, B: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, B) * 0x40000001 + pid * 0x7FFFFFFF
    at = pid * B + tl.arange(0, B)
    tl.store(out + at, i)
    tl.store(wide + at, i.to(tl.int64) + (i.to(tl.uint32) >> 3).to(tl.int64) + i.to(tl.int8) + (i < 5))


def test_wrapped_index_tiles_widen_and_narrow_as_registers_do() -> None:
    out, wide, *_ = run(wrapping, (3,), np.zeros((3, 6), np.int32), np.zeros((3, 6), np.int64), B=6)
    exact = np.arange(6, dtype=np.int64) * 0x40000001 + np.arange(3)[:, None] * 0x7FFFFFFF
    i = exact.astype(np.int32)
    np.testing.assert_array_equal(out, i)
    want = i.astype(np.int64) + (i.astype(np.uint32) >> 3) + i.astype(np.int8) + (i < 5)
    np.testing.assert_array_equal(wide, want)


def test_a_long_loop_keeps_no_tile_after_its_last_use() -> None:
    import tracemalloc

    @sim.jit
    def chain(out, x, n, B: tl.constexpr):
        i = tl.arange(0, B)
        acc = tl.load(x + i)
        if n > 0:
            t = acc * 2.0
            acc = t + 1.0
        for _ in range(n):
            a = acc * 0.5
            b = a + 1.0
            acc = a + b
        for _ in tl.static_range(20):
            acc = (acc + 1.0) * 0.5
        tl.store(out + i, acc)

    x = np.zeros(1 << 18, f32)  # a tile of 1 MiB
    tracemalloc.start()
    run(chain, (1,), x, x, 20, B=1 << 18)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8.5 * x.nbytes  # two copies of the arguments, and the few tiles alive at one time


def steps(kernel: Any, chunk: int) -> Any:
    return run(kernel, (3,), np.zeros(3, np.int32), chunk=chunk, steps=1000)


@sim.jit
def endless(out):
    i = 0
    while tl.program_id(0) < 5 + i:
        i += 1
    tl.store(out, i)


@pytest.mark.parametrize("chunk", [1, 3])
def test_an_endless_loop_is_stopped_and_named(chunk: int) -> None:
    with pytest.raises(
        sim.RunError, match=r"test_chunks\.py:\d+:\d+: more than 1000 loop iterations.*program 0"
    ):
        steps(endless, chunk)
