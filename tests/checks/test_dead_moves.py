"""A write to an explicit buffer that another covers before anything reads it is a fault; what some path reads is none.

A write that is in vain in part, or in all iterations but the last, costs time.
"""

import linecache

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.language.extra.cann import buffer as bl

B = tl.constexpr(16)


@sim.jit
def twice(x, out, READ: tl.constexpr):
    buf = bl.alloc(tl.float32, [B])
    i = tl.arange(0, B)
    bl.to_buffer(tl.load(x + i), bind_buffer=buf)  # in vain
    total = 0.0
    if READ:
        total = tl.sum(bl.to_tensor(buf), axis=0)
    bl.to_buffer(tl.load(x + B + i), bind_buffer=buf)
    tl.store(out + i, bl.to_tensor(buf) + total)


@sim.jit
def half(x, out, READ: tl.constexpr):
    buf = bl.alloc(tl.float32, [2 * B])
    i = tl.arange(0, B)
    bl.to_buffer(tl.load(x + tl.arange(0, 2 * B)), bind_buffer=buf)
    bl.to_buffer(tl.load(x + B + i), bind_buffer=bl.subview(buf, [0], [B], [1]))  # in vain
    at = B if READ else 0
    bl.to_buffer(tl.load(x + i) + 1.0, bind_buffer=bl.subview(buf, [at], [B], [1]))
    tl.store(out + tl.arange(0, 2 * B), bl.to_tensor(buf))


@sim.jit
def loop(x, out, READ: tl.constexpr):
    buf, keep = bl.alloc(tl.float32, [B]), bl.alloc(tl.float32, [B])
    i = tl.arange(0, B)
    bl.to_buffer(tl.zeros((B,), tl.float32), bind_buffer=keep)
    for k in range(3):
        bl.to_buffer(tl.load(x + k + i), bind_buffer=buf)  # in vain
        if READ:
            bl.to_buffer(bl.to_tensor(keep) + bl.to_tensor(buf), bind_buffer=keep)
        bl.to_buffer(tl.load(x + k + B + i), bind_buffer=buf)
        bl.to_buffer(bl.to_tensor(keep) + bl.to_tensor(buf), bind_buffer=keep)
    tl.store(out + i, bl.to_tensor(keep))


@sim.jit
def branch(x, out, READ: tl.constexpr):
    buf = bl.alloc(tl.float32, [B])
    i = tl.arange(0, B)
    bl.to_buffer(tl.load(x + i), bind_buffer=buf)  # in vain
    if tl.load(out) > 0.0:
        bl.to_buffer(tl.load(x + i) * 2.0, bind_buffer=buf)
    elif not READ:
        bl.to_buffer(tl.load(x + i) * 3.0, bind_buffer=buf)
    tl.store(out + i, bl.to_tensor(buf))


def warnings(kernel, read, kind):
    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    with sim.device(check=True, time=False):
        run = kernel[(1,)](x, out, READ=read)
    return [m for m in run.warnings if m.kind == kind and "written to" in m]


@pytest.mark.parametrize("kernel", [twice, half, branch, loop])
def test_a_write_that_is_overwritten_unread_is_a_fault_with_both_lines(kernel):
    (found,) = warnings(kernel, False, "fault")
    assert "in vain" in linecache.getline(*found.file_and_line)
    assert "are overwritten at line" in found


@pytest.mark.parametrize("kernel", [twice, half, branch, loop])
def test_a_write_that_some_path_reads_is_none(kernel):
    assert warnings(kernel, True, "fault") == []


@sim.jit
def left_over(x, out):
    buf = bl.alloc(tl.float32, [B])
    i = tl.arange(0, B)
    for k in range(2):
        bl.to_buffer(tl.load(x + i + k), bind_buffer=buf)
    tl.store(out + i, tl.load(x + i))


def test_a_write_that_nothing_reads_costs_time():
    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    with sim.device(check=True, time=False):
        run = left_over[(1,)](x, out)
    assert [m.kind for m in run.warnings if "read by nothing" in m] == ["time"]


@sim.jit
def last_one_read(x, out, READ: tl.constexpr):
    buf = bl.alloc(tl.float32, [B])
    i = tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for k in range(3):
        bl.to_buffer(tl.load(x + k + i), bind_buffer=buf)  # in vain
        if READ:
            total += bl.to_tensor(buf)
    tl.store(out + i, bl.to_tensor(buf) + total)


@sim.jit
def last_one_read_in_a_while(x, out, READ: tl.constexpr):
    buf = bl.alloc(tl.float32, [2, B])
    i, k = tl.arange(0, B)[None, :], 0
    bl.to_buffer(tl.zeros((2, B), tl.float32), bind_buffer=buf)
    row = bl.subview(buf, [1, 0], [1, B], [1, 1])
    while k < 3:
        if READ:
            bl.to_buffer(bl.to_tensor(row) + tl.load(x + k + i), bind_buffer=row)
        else:
            bl.to_buffer(tl.load(x + k + i), bind_buffer=row)  # in vain
        k += 1
    tl.store(out + tl.arange(0, 2)[:, None] * B + i, bl.to_tensor(buf))


@sim.jit
def fill(buf, x, k):
    bl.to_buffer(tl.load(x + k + tl.arange(0, B)), bind_buffer=buf)  # in vain


@sim.jit
def last_one_read_on_both_branches(x, out, READ: tl.constexpr):
    buf = bl.alloc(tl.float32, [B])
    total = tl.zeros((B,), tl.float32)
    for k in range(3):
        if tl.load(x + k) > 0.0:
            fill(buf, x, k)
        else:
            bl.to_buffer(tl.zeros((B,), tl.float32), bind_buffer=buf)
        if READ:
            total += bl.to_tensor(buf)
    tl.store(out + tl.arange(0, B), bl.to_tensor(buf) + total)


@sim.jit
def half_of_it(x, out, READ: tl.constexpr):
    buf = bl.alloc(tl.float32, [2 * B])
    low = bl.subview(buf, [0], [B], [1])
    bl.to_buffer(tl.load(x + tl.arange(0, 2 * B)), bind_buffer=buf)  # in vain
    zero = tl.zeros((B,), tl.float32)
    bl.to_buffer(bl.to_tensor(low) * 2.0 if READ else zero, bind_buffer=low)
    tl.store(out + tl.arange(0, 2 * B), bl.to_tensor(buf))


@sim.jit
def both_halves(x, out, READ: tl.constexpr):
    buf = bl.alloc(tl.float32, [2 * B])
    bl.to_buffer(tl.load(x + tl.arange(0, 2 * B)), bind_buffer=buf)  # in vain
    for k in tl.static_range(2):
        part = bl.subview(buf, [k * B], [B], [1])
        v = tl.load(x + tl.arange(0, B))
        bl.to_buffer(bl.to_tensor(part) + v if READ else v, bind_buffer=part)
    tl.store(out + tl.arange(0, 2 * B), bl.to_tensor(buf))


IN_PART = [last_one_read, last_one_read_in_a_while, last_one_read_on_both_branches, half_of_it, both_halves]


@pytest.mark.parametrize("kernel", IN_PART)
def test_a_write_that_is_in_vain_in_part_or_until_the_last_iteration_costs_time(kernel):
    (found,) = [
        m for m in warnings(kernel, False, "time") if "in vain" in linecache.getline(*m.file_and_line)
    ]
    assert "before anything reads them" in found
    assert warnings(kernel, False, "fault") == []


@pytest.mark.parametrize("kernel", IN_PART)
def test_a_write_whose_elements_are_all_read_is_none(kernel):
    assert not [m for kind in ("time", "fault") for m in warnings(kernel, True, kind) if "before any" in m]


@sim.jit
def of_the_last_iteration(x, out, n):
    buf = bl.alloc(tl.float32, [B])
    i = tl.arange(0, B)
    bl.to_buffer(tl.zeros((B,), tl.float32), bind_buffer=buf)
    for k in range(n):
        if k == n - 1:
            bl.to_buffer(tl.load(x + k + i), bind_buffer=buf)
    tl.store(out + i, bl.to_tensor(buf))


def test_a_write_on_a_branch_of_the_last_iteration_is_none():
    with sim.device(check=True, time=False):
        run = of_the_last_iteration[(1,)](np.ones(64, np.float32), np.zeros(16, np.float32), 3)
    assert not [m for m in run.warnings if "written to" in m]


@sim.jit
def at_a_place_that_is_data(x, out, at):
    buf = bl.alloc(tl.float32, [4 * B])
    bl.to_buffer(tl.load(x + tl.arange(0, 4 * B)), bind_buffer=buf)
    bl.to_buffer(tl.load(x + tl.arange(0, B)), bind_buffer=bl.subview(buf, [tl.load(at)], [B], [1]))
    low = bl.subview(buf, [0], [B], [1])
    bl.to_buffer(bl.to_tensor(bl.subview(buf, [B], [B], [1])) + bl.to_tensor(low), bind_buffer=low)
    tl.store(out + tl.arange(0, 4 * B), bl.to_tensor(buf))


def test_a_write_to_a_place_that_is_data_is_none():
    with sim.device(check=True, time=False):
        run = at_a_place_that_is_data[(1,)](
            np.ones(64, np.float32), np.zeros(64, np.float32), np.array([16], np.int32)
        )
    assert not [m for m in run.warnings if "written to" in m]
