"""Pointers from tables of addresses, to other types, and into one tensor or another reach the right elements or none."""

from __future__ import annotations

import gc
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.interpreter.flat_pointers import _live_tensors

from .runs import launch


def table_of(arrays: list[np.ndarray]) -> np.ndarray:
    return np.array([a.ctypes.data for a in arrays], np.int64)


@sim.jit
def grow(table, out, sizes, B: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, B)
    p = tl.load(table + pid).to(tl.pointer_type(tl.float16))
    x = tl.load(p + i, mask=i < tl.load(sizes + pid))
    tl.store(out + pid * B + i, x.to(tl.float32))
    tl.store(p + i, x + 1, mask=i < tl.load(sizes + pid))


@pytest.mark.parametrize("time", [False, True])
def test_a_table_of_addresses_reaches_arrays_that_are_no_arguments(time: bool) -> None:
    sizes = np.array([3, 8, 1, 5], np.int32)
    xs = [np.arange(n, dtype=np.float16) + np.float16(10 * n) for n in sizes]
    before = [x.copy() for x in xs]
    out = np.zeros((4, 8), np.float32)
    with sim.device(time=time):
        grow[(4,)](table_of(xs), out, sizes, B=8)
    for k, n in enumerate(sizes):
        assert np.array_equal(out[k], [*before[k], *[0] * (8 - n)])
        assert np.array_equal(xs[k], before[k] + 1)


@pytest.mark.extra("torch")
def test_torch_tensors_behind_addresses() -> None:
    import torch

    xs = [torch.arange(5, dtype=torch.float16) * k for k in (1, 2)]
    out = torch.zeros(2, 8)
    launch(grow, (2,), torch.tensor([x.data_ptr() for x in xs]), out, np.array([5, 5], np.int32), B=8)
    assert out[1].tolist() == [0, 2, 4, 6, 8, 0, 0, 0]
    assert xs[1].tolist() == [1, 3, 5, 7, 9]


class Model:
    def __init__(self, x: np.ndarray) -> None:
        self.weights = (x,)


class Slotted:
    __slots__ = ("weights",)

    def __init__(self, x: np.ndarray) -> None:
        self.weights = x


def test_addresses_of_arrays_that_only_objects_and_functions_hold() -> None:
    held: list[Any] = [kind(np.full(2, k, np.float16)) for k, kind in enumerate((Model, Slotted))]
    held += [(lambda x: lambda: x)(np.full(2, 2, np.float16))]
    table = np.array(
        [k().ctypes.data for k in (lambda: held[0].weights[0], lambda: held[1].weights, held[2])]
    )
    out = np.zeros((3, 2), np.float32)
    launch(grow, (3,), table, out, np.full(3, 2, np.int32), B=2)
    assert out.tolist() == [[0, 0], [1, 1], [2, 2]]


def test_looking_for_live_arrays_leaves_nothing_behind() -> None:
    """No list of all objects, which would find itself the next time."""
    heap: list[Any] = [[] for _ in range(50_000)]
    found = []
    for _ in range(2):
        _live_tensors()
        found.append(sum(map(len, (x for x in gc.get_objects() if type(x) is list))))
    assert len(heap) < found[1] < 1.2 * found[0]


def test_an_address_in_no_tensor_is_an_error_that_names_it() -> None:
    with pytest.raises(sim.RunError, match="load at address 0x7c in program 0") as e:
        launch(grow, (1,), np.array([0x7C], np.int64), np.zeros(8, np.float32), np.ones(1, np.int32), B=8)
    assert "test_pointers.py" in str(e.value)


@sim.jit
def choose(a, b, out, n, B: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, B)
    p = a if pid % 3 == 0 else b
    q = b
    if pid % 2 == 0:
        q = a + pid
    r = tl.where(i < n, a + i, b + i)
    s = tl.where(pid < 2, b, a)
    x = tl.load(p + i) + 10 * tl.load(q + i) + 100 * tl.load(r, mask=i != 1) + 1000 * tl.load(s + i)
    tl.store(out + pid * B + i, x)


@given(st.integers(0, 6), st.integers(1, 6))
def test_one_name_for_two_tensors(n: int, programs: int) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.integers(0, 9, 12).astype(np.int32), rng.integers(0, 9, 7).astype(np.int32)
    out = np.zeros((programs, 5), np.int32)
    launch(choose, (programs,), a, b, out, n, B=5)
    i = np.arange(5)
    for pid in range(programs):
        p, q, s = (a if pid % 3 == 0 else b), (a[pid:] if pid % 2 == 0 else b), (b if pid < 2 else a)
        r = np.where(i == 1, 0, np.where(i < n, a[:5], b[:5]))
        assert np.array_equal(out[pid], p[:5] + 10 * q[:5] + 100 * r + 1000 * s[:5])


def test_one_name_for_two_tensors_is_timed_without_data() -> None:
    shape = sim.shape(16, "int32")
    assert choose.time((3,), shape, shape, shape, 2, B=5).time_us > 0


@sim.jit
def store_either(a, b, B: tl.constexpr):
    pid = tl.program_id(0)
    p = tl.where(pid % 2 == 0, a, b)
    tl.store(p + (pid // 2) * B + tl.arange(0, B), pid + tl.arange(0, B) * 0)
    tl.atomic_add(p, 100)


def test_stores_and_atomics_through_one_name() -> None:
    a, b = np.full(4, -1, np.int32), np.full(4, -1, np.int32)
    launch(store_either, (4,), a, b, B=2)
    assert a.tolist() == [200, 0, 2, 2]
    assert b.tolist() == [201, 1, 3, 3]


@sim.jit
def as_bytes(x, out, B: tl.constexpr):
    p = x.to(tl.pointer_type(tl.uint8))
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(p + i).to(tl.int32))
    if x != out:
        tl.store(out + B, (p + 4).to(tl.int64) - x.to(tl.int64))


def test_a_pointer_to_another_type_sees_the_bytes() -> None:
    x = np.array([0x04030201, -2], np.int32)
    out = np.zeros(9, np.int64)
    launch(as_bytes, (1,), x, out, B=8)
    assert out.tolist() == [1, 2, 3, 4, 254, 255, 255, 255, 4]


def test_beyond_the_bytes_is_out_of_bounds() -> None:
    with pytest.raises(sim.RunError, match="element 8 of 'x'"):
        launch(as_bytes, (1,), np.zeros(2, np.int32), np.zeros(20, np.int64), B=9)


@sim.jit
def cast_at_a_byte(x, out, BYTES: tl.constexpr):
    p = (x + tl.program_id(0) * BYTES).to(tl.pointer_type(tl.float32))
    tl.store(out + tl.program_id(0), tl.load(p))


def test_a_cast_to_wider_elements_at_an_odd_byte_names_argument_program_and_way_out() -> None:
    x, out = np.arange(16, dtype=np.float32), np.zeros(3, np.float32)
    launch(cast_at_a_byte, (3,), x.view(np.uint8), out, BYTES=4)
    assert out.tolist() == [0, 1, 2]
    with pytest.raises(
        sim.RunError,
        match=r"to fp32 in program 1: byte 2 of 'x' \(address 0x\w+\) is no multiple of the 4 bytes of an element; "
        "move the pointer by multiples of 4 bytes",
    ):
        launch(cast_at_a_byte, (3,), x.view(np.uint8), out, BYTES=2)


@pytest.mark.parametrize("first", [0, 1, 2, 4])
def test_an_array_between_two_elements_is_refused(first: int) -> None:
    x = np.zeros(64, np.uint8)[first : first + 16].view(np.float32)
    with (
        pytest.raises(sim.UsageError, match=r"x: .* element size 4 bytes; pass x\.copy\(\)")
        if first % 4
        else nullcontext()
    ):
        launch(cast_at_a_byte, (1,), x, np.zeros(1, np.float32), BYTES=0)


@sim.jit
def misaligned(x, out):
    p = x.to(tl.pointer_type(tl.int8)) + 1
    tl.store(out, tl.load(p.to(tl.pointer_type(tl.int32))))


def test_a_misaligned_address_is_an_error() -> None:
    with pytest.raises(sim.RunError, match="no multiple of the 4 bytes"):
        launch(misaligned, (1,), np.zeros(4, np.int32), np.zeros(1, np.int32))


@sim.jit
def pointers_to_pointers(table, out, K: tl.constexpr):
    for k in range(K):
        tl.store(out + k, tl.load(tl.load(table.to(tl.pointer_type(tl.pointer_type(tl.float32))) + k)))


def test_a_table_of_pointers() -> None:
    xs: list[Any] = [np.array([k + 0.5], np.float32) for k in range(3)]
    out = np.zeros(3, np.float32)
    launch(pointers_to_pointers, (1,), table_of(xs), out, K=3)
    assert out.tolist() == [0.5, 1.5, 2.5]
