"""A write to an explicit buffer that another covers before anything reads it is a fault; what some path reads is none."""

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
