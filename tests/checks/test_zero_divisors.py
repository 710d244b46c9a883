"""An integer division by zero is an error where its result is used, and none where a mask hides it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl

B = 8


@sim.jit
def stored(x, y, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i) % tl.load(y + i), mask=i < n)


@sim.jit
def reduced(x, y, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out, tl.sum(tl.where(i < n, tl.load(x + i) // tl.load(y + i), 0)))


@sim.jit
def shaped(x, y, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    quotient = tl.reshape(tl.load(x + i) // tl.load(y + i), (2, B // 2)) + 1
    at = tl.reshape(i, (2, B // 2))
    tl.store(out + tl.trans(at), tl.trans(quotient), mask=tl.trans(at) < n)


@sim.jit
def compared(x, y, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, 1, mask=(i < n) & (tl.load(x + i) % tl.load(y + i) == 0))


@sim.jit
def addressed(x, y, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    at = tl.load(x + i) // tl.load(y + i)
    tl.store(out + i, tl.load(x + at, mask=i < n, other=0), mask=i < n)


@sim.jit
def guarded(x, y, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    quotient = tl.load(x + i) // tl.load(y + i)
    for k in range(2):
        tl.store(out + i, quotient + k, mask=i < n)


@sim.jit
def carried(x, y, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    total = tl.zeros((B,), tl.int32)
    for k in range(3):
        total += tl.load(x + i) // tl.load(y + i) + k
    tl.store(out + i, total, mask=i < n)


@sim.jit
def branched(x, y, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    quotient = tl.load(x + i)
    if n > 0:
        quotient = quotient // tl.load(y + i)
    tl.store(out + i, quotient, mask=i < n)


@sim.jit
def repeated(x, y, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    quotient = tl.load(x + i) // tl.load(y + i)
    k = 0
    while k < 2:
        quotient += 1
        k += 1
    tl.store(out + i, quotient, mask=i < n)


KERNELS = [stored, reduced, shaped, compared, addressed, guarded, carried, branched, repeated]


def launch(kernel: Any, n: int, **device: Any) -> np.ndarray:
    """Divisors from element 5 on are 0; elements below n are used."""
    x, y, out = np.arange(B, dtype=np.int32), np.ones(B, np.int32), np.full(B, -1, np.int32)
    y[5:] = 0
    with sim.device(**device):
        kernel[(1,)](x, y, out, n, B=B)
    return out


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_a_quotient_of_zero_that_a_mask_hides_is_no_error(kernel: Any) -> None:
    for device in ({"time": False}, {"check": True}):
        assert (launch(kernel, 5) == launch(kernel, 5, **device)).all()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_one_lane_more_is_an_error_that_names_the_division(kernel: Any) -> None:
    with pytest.raises(sim.RunError, match=r"integer division by zero in program 0, element \[5\]") as e:
        launch(kernel, 6)
    assert "//" in str(e.value) or "%" in str(e.value)


@given(divisors=st.lists(st.integers(-2, 2), min_size=B, max_size=B), n=st.integers(0, B))
def test_it_is_an_error_if_and_only_if_a_lane_below_the_mask_divides_by_zero(
    divisors: list[int], n: int
) -> None:
    x, y, out = np.arange(-3, B - 3, dtype=np.int32), np.array(divisors, np.int32), np.full(B, 99, np.int32)
    with sim.device(time=False):
        if (y[:n] == 0).any():
            with pytest.raises(sim.RunError, match=rf"element \[{int(np.argmax(y[:n] == 0))}\]"):
                stored[(1,)](x, y, out, n, B=B)
            return
        stored[(1,)](x, y, out, n, B=B)
    assert out[:n].tolist() == np.fmod(x[:n], y[:n]).tolist()
    assert (out[n:] == 99).all()


def test_what_is_not_hidden_has_its_quotient() -> None:
    assert launch(stored, 5).tolist() == [0, 0, 0, 0, 0, -1, -1, -1]
    assert launch(shaped, 5).tolist() == [1, 2, 3, 4, 5, -1, -1, -1]
    assert launch(reduced, 5)[0] == 10


@sim.jit
def by_program(out, n, B: tl.constexpr):
    pid = tl.program_id(0)
    tl.store(out + pid, B // (pid - 2), mask=pid < n)


@sim.jit
def steered(out, n, B: tl.constexpr):
    for i in range(B // n):
        tl.store(out + i, 1)


@sim.jit
def steers(x, out, B: tl.constexpr):
    k = 0
    while B // tl.load(x) > k:
        k += 1
    tl.store(out, k)


@sim.jit
def uneven(x, y, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    total = tl.load(x + i)
    for _ in range(tl.program_id(0)):
        total += tl.load(x + i) // tl.load(y + i)
    tl.store(out + i, total, mask=i < n)


def test_scalars_of_programs_that_are_masked_out_are_no_error() -> None:
    out = np.full(4, -1, np.int32)
    by_program[(4,)](out, 2, B=8)
    assert out.tolist() == [-4, -8, -1, -1]
    with pytest.raises(sim.RunError, match="integer division by zero in program 2"):
        by_program[(4,)](out, 3, B=8)
    with pytest.raises(sim.RunError, match="integer division by zero in program 2"):
        by_program.time((4,), out, 3, B=8)


def test_what_steers_a_loop_is_a_use() -> None:
    with pytest.raises(sim.RunError, match=r"integer division by zero in program 0 \(n is 0\)"):
        steered[(1,)](np.zeros(8, np.int32), 0, B=8)
    with pytest.raises(sim.RunError, match="integer division by zero in program 0"):
        steers[(1,)](np.zeros(1, np.int32), np.zeros(1, np.int32), B=8)


def test_what_some_programs_alone_hand_on_counts_as_a_use() -> None:
    x, y, out = np.arange(B, dtype=np.int32), np.zeros(B, np.int32), np.zeros(B, np.int32)
    with pytest.raises(sim.RunError, match=r"integer division by zero in program [12]"):
        uneven[(3,)](x, y, out, 0, B=B)
