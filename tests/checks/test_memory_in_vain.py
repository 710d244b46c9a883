"""Memory that nobody has written is not loaded; a store that is overwritten before anybody loads it costs time."""

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.checks.written.scratch import fill, unwritten
from ascendtile.simulator.precision import dtypes as ty

B = tl.constexpr(16)


@sim.jit
def partial_sums(x, scratch, n):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(scratch + tl.program_id(0), tl.sum(tl.load(x + i), axis=0))


@sim.jit
def total(scratch, out, n):
    i = tl.arange(0, B)
    tl.store(out, tl.sum(tl.load(scratch + i, mask=i < n, other=0.0), axis=0))


def told(run, kind, text):
    return [m for m in run.warnings if m.kind == kind and text in m]


def sums(n, dtype="float32"):
    """The launch that adds the first `n` of 5 partial sums of a scratch of 16."""
    x, out = np.ones(80, np.float32), np.zeros(1, np.float32)
    scratch = sim.empty(16, dtype)
    with sim.device(check=True, time=False):
        partial_sums[(5,)](x, scratch, 80)
        return total[(1,)](scratch, out, n)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "int64"])
def test_scratch_that_was_not_written_is_a_fault_with_its_element(dtype):
    (found,) = told(sums(6, dtype), "fault", "nobody has written")
    assert "program 0 loads element 5 of 'scratch'" in found
    assert found.programs == (0,)
    assert told(sums(5, dtype), "fault", "nobody has written") == []


@pytest.mark.parametrize("dtype", [*(t for t in ty.ALL if not t.is_bool()), ty.float8e4nv])
def test_unwritten_elements_are_those_that_nobody_has_assigned(dtype):
    x = fill(np.zeros(40, dtype.storage))
    assert unwritten(x, dtype).all()
    x[8:24] = x.dtype.type(1)
    assert np.flatnonzero(~unwritten(x, dtype)).tolist() == list(range(8, 24))
    x[...] = x.dtype.type(1)
    assert unwritten(x, dtype) is None


@sim.jit
def in_one_launch(x, scratch, out, n):
    i = tl.arange(0, B)
    tl.store(scratch + i, tl.load(x + i), mask=i < n)
    tl.store(out + i, tl.load(scratch + 15 - i, mask=15 - i < 12, other=0.0))


@pytest.mark.parametrize(("n", "count"), [(11, 1), (12, 0)])
def test_what_a_launch_has_stored_is_written(n, count):
    x, scratch, out = np.ones(16, np.int16), sim.empty(16, "int16"), np.zeros(16, np.int16)
    with sim.device(check=True, time=False):
        run = in_one_launch[(1,)](x, scratch, out, n)
    assert len(told(run, "fault", "nobody has written")) == count


@sim.jit
def counter(count, out, n):
    tl.store(out + tl.program_id(0), tl.atomic_add(count, 1))


@pytest.mark.parametrize(("count", "faults"), [(sim.empty(1, "int32"), 1), (np.zeros(1, np.int32), 0)])
def test_an_atomic_on_what_nobody_has_written_is_a_fault(count, faults):
    with sim.device(check=True, time=False):
        run = counter[(3,)](count, np.zeros(3, np.int32), 3)
    assert len(told(run, "fault", "makes an atomic_add of element 0 of 'count'")) == faults


@sim.jit
def store_twice(x, out, READ: tl.constexpr, SHIFT: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i)
    tl.store(out + i, v)
    if READ:
        v += tl.load(out + i)
    tl.store(out + i + SHIFT, v * 2.0)


@sim.jit
def store_in_a_loop(x, out, READ: tl.constexpr, SHIFT: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.zeros((B,), tl.float32)
    for k in range(3):
        v += tl.load(x + i)
        tl.store(out + i + k * SHIFT * 16, v)
        if READ:
            v += tl.load(out + i)


@sim.jit
def store_by_addresses(x, out, READ: tl.constexpr, SHIFT: tl.constexpr):
    i = tl.arange(0, B)
    at = tl.load(x + i).to(tl.int32) * i
    tl.store(out + at, 1.0)
    if READ:
        tl.atomic_add(out + at, 1.0)
    tl.store(out + at + SHIFT, 2.0)


KERNELS = [store_twice, store_in_a_loop, store_by_addresses]


def stored(kernel, **how):
    x, out = np.ones(64, np.float32), np.zeros(128, np.float32)
    with sim.device(check=True, time=False):
        return told(kernel[(1,)](x, out, **how), "time", "in vain")


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_store_that_is_overwritten_unread_costs_time_and_names_both_lines(kernel):
    (found,) = stored(kernel, READ=False, SHIFT=0)
    assert "all that program 0 stores to 'out' here it stores to again at line" in found


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("how", [{"READ": True, "SHIFT": 0}, {"READ": False, "SHIFT": 1}])
def test_a_store_that_is_read_or_overwritten_in_part_is_not_told(kernel, how):
    assert stored(kernel, **how) == []


@sim.jit
def through_two_arguments(a, b, READ: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(a + i, 1.0)
    if READ:
        tl.store(b + i + B, tl.load(b + i))
    tl.store(b + i, 2.0)


@sim.jit
def told_between(x, out, HOW: tl.constexpr):
    i = tl.arange(0, 16)
    tl.store(out + i, 1)
    if HOW == "atomic":
        tl.atomic_xchg(x, 1)
    elif HOW == "relaxed":
        tl.atomic_xchg(x, 1, sem="relaxed")
    tl.store(out + i, 2)


@pytest.mark.parametrize(("how", "in_vain"), [("", True), ("relaxed", True), ("atomic", False)])
def test_a_store_that_others_were_told_of_is_not_in_vain(how: str, in_vain: bool) -> None:
    with sim.device(check=True, time=False):
        run = told_between[(1,)](np.zeros(1, np.int32), np.zeros(16, np.int32), HOW=how)
    assert any("in vain" in w for w in run.warnings) == in_vain


@pytest.mark.parametrize("read", [False, True])
def test_a_store_is_in_vain_also_through_another_argument_in_its_memory(read):
    x = np.zeros(64, np.float32)
    with sim.device(check=True, time=False):
        run = through_two_arguments[(1,)](x[:32], x, READ=read)
    assert bool(told(run, "time", "in vain")) is not read


@sim.jit
def of_smaller_elements(x, out, READ: tl.constexpr):
    i = tl.arange(0, 2 * B)
    tl.store(x + tl.arange(0, B), tl.load(out + tl.arange(0, B)))
    halves = x.to(tl.pointer_type(tl.int16), bitcast=True)
    if READ:
        tl.store(out + i, tl.load(halves + i))
    tl.store(halves + i, i.to(tl.int16))


@pytest.mark.parametrize("read", [False, True])
def test_a_store_is_in_vain_also_through_a_view_of_smaller_elements(read):
    with sim.device(check=True, time=False):
        run = of_smaller_elements[(1,)](np.zeros(16, np.float32), np.zeros(32, np.float32), READ=read)
    assert bool(told(run, "time", "in vain")) is not read


@sim.jit
def loads_halves(scratch, out, WRITE: tl.constexpr):
    i = tl.arange(0, 2 * B)
    halves = scratch.to(tl.pointer_type(tl.float16), bitcast=True)
    if WRITE:
        tl.store(halves + i, tl.zeros((2 * B,), tl.float16))
    tl.store(out + i, tl.load(halves + i))


@sim.jit
def loads_at_an_address(address, out, WRITE: tl.constexpr):
    i = tl.arange(0, B)
    scratch = tl.load(address).to(tl.pointer_type(tl.float32))
    if WRITE:
        tl.store(scratch + i, 1.0)
    tl.store(out + i, tl.load(scratch + i))


@pytest.mark.parametrize("write", [False, True])
def test_what_nobody_has_written_is_known_through_views_and_addresses(write):
    scratch, another = sim.empty(16), sim.empty(16)
    with sim.device(check=True, time=False):
        runs = [
            loads_halves[(1,)](scratch, np.zeros(32, np.float16), WRITE=write),
            loads_at_an_address[(1,)](np.array([another.ctypes.data]), np.zeros(16, np.float32), WRITE=write),
        ]
    assert [bool(told(run, "fault", "nobody has written")) for run in runs] == [not write] * 2
