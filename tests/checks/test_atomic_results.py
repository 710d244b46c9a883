"""The old value of an atomic has no value in lanes that its mask leaves out: using it there is a fault."""

import linecache

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl

B = tl.constexpr(16)


@sim.jit
def kept(x, out, n, RIGHT: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    old = tl.atomic_add(x + i, 1, mask=i < n)
    tl.store(out + i, old, mask=(i < n) | (not RIGHT))


@sim.jit
def largest(x, out, n, RIGHT: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    old = tl.atomic_max(x + i, 3, mask=i < n)
    if RIGHT:
        old = tl.where(i < n, old, 0)
    tl.store(out + tl.program_id(0), tl.max(old, axis=0))


@sim.jit
def exchanged(p, value, here):
    return tl.atomic_xchg(p, value, mask=here)


@sim.jit
def place(x, out, n, RIGHT: tl.constexpr):
    i, j = tl.arange(0, 4)[:, None], tl.arange(0, B)[None, :]
    here = i * B + j < n
    at = exchanged(x + i * B + j, i * B + j, here)
    tl.store(out + i * B + j, tl.load(x + at, mask=here | (not RIGHT), other=0), mask=here)


@sim.jit
def turn(x, out, n, RIGHT: tl.constexpr):
    for k in range(3):
        old = tl.atomic_add(x + k, 1, mask=k < n - 38)
        if RIGHT:
            old = tl.where(k < n - 38, old, 0)
        if old > 0:
            tl.store(out + k, old)


@sim.jit
def unused(x, out, n, RIGHT: tl.constexpr):
    i = tl.arange(0, B)
    old = tl.atomic_add(x + i, 1, mask=i < n - 30)
    tl.store(out + i, old * 0 if RIGHT else old)


KERNELS = [(kept, 3), (largest, 3), (place, 1), (turn, 1), (unused, 1)]


def found(kernel, programs, right):
    x, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    with sim.device(check=True, time=False):
        return kernel[(programs,)](x, out, 40, RIGHT=right).faults


@pytest.mark.parametrize(("kernel", "programs"), KERNELS)
def test_a_use_of_an_old_value_where_the_mask_leaves_it_out_is_a_fault_at_the_atomic(kernel, programs):
    (fault,) = found(kernel, programs, False)
    assert "masked-out lanes of this atomic_" in fault
    assert "atomic_" in linecache.getline(*fault.file_and_line)


@pytest.mark.parametrize(("kernel", "programs"), KERNELS)
def test_old_values_under_the_mask_of_their_atomic_are_none(kernel, programs):
    assert found(kernel, programs, True) == ()


@sim.jit
def exchange_only(x, out, READ: tl.constexpr):
    old = tl.atomic_xchg(x + tl.program_id(0), 1)
    if READ:
        tl.store(out + tl.program_id(0), old)


@pytest.mark.parametrize("read", [False, True])
def test_an_exchange_reads_what_was_there_if_its_result_is_used(read):
    with sim.device(check=True, time=False):
        run = exchange_only[(2,)](sim.empty(2, "int32"), np.zeros(2, np.int32), READ=read)
    assert [m for m in run.faults if "nobody has written" in m] == list(run.faults)
    assert bool(run.faults) is read
