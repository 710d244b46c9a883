"""What was used without ever having had a value is a fault; what is only computed with, and goes nowhere, is none."""

import linecache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.language.extra.cann import buffer as bl
from ascendtile.simulator.language.extra.cann import extension as al

N, B = 40, tl.constexpr(16)
PAIRS = {}  # name: (wrong, right, what the message says, programs)


def pair(says, programs=3):
    def keep(maker):
        PAIRS[maker.__name__] = (*maker(), says, programs)
        return maker

    return keep


def ran(kernel, programs=3, **options):
    x = np.arange(1, 1 + 64 * 64, dtype=np.float32)
    out = np.zeros(4096, np.float32)
    with sim.device(**{"check": True, "time": False, **options}):
        return kernel[(programs,)](x, out, N), out


def faults(run):
    return [m for m in run.warnings if m.kind == "fault"]


@pair("what the sum at line")
def masked_lanes_are_summed():
    @sim.jit
    def wrong(x, out, n):
        i = tl.program_id(0) * B + tl.arange(0, B)
        v = tl.load(x + i, mask=i < n)
        tl.store(out + tl.program_id(0), tl.sum(v, axis=0))

    @sim.jit
    def right(x, out, n):
        i = tl.program_id(0) * B + tl.arange(0, B)
        v = tl.load(x + i, mask=i < n)
        tl.store(out + tl.program_id(0), tl.sum(tl.where(i < n, v, 0.0), axis=0))

    return wrong, right


@pair("what the max at line")
def masked_lanes_have_an_other():
    @sim.jit
    def wrong(x, out, n):
        i = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(out + tl.program_id(0), tl.max(tl.load(x + i, mask=i < n), axis=0))

    @sim.jit
    def right(x, out, n):
        i = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(out + tl.program_id(0), tl.max(tl.load(x + i, mask=i < n, other=-1e30), axis=0))

    return wrong, right


@pair("program 2 stores them to element 40 of 'out'")
def masked_lanes_are_stored():
    @sim.jit
    def wrong(x, out, n):
        i = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(out + i, tl.exp(tl.load(x + i, mask=i < n) * 2.0))

    @sim.jit
    def right(x, out, n):
        i = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(out + i, tl.exp(tl.load(x + i, mask=i < n) * 2.0), mask=i < n - 1)

    return wrong, right


@pair("what the sum at line", 1)
def whole_rows_are_masked_out():
    @sim.jit
    def wrong(x, out, n):  # columns masked out
        r, c = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
        v = tl.load(x + r * B + c, mask=(r < 5) & (c < 3))
        tl.store(out + tl.arange(0, B), tl.sum(v, axis=1), mask=tl.arange(0, B) < 5)

    @sim.jit
    def right(x, out, n):  # rows masked out, each reduced apart, and not stored
        r, c = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
        v = tl.load(x + r * B + c, mask=(r < 5) & (c < B))
        tl.store(out + tl.arange(0, B), tl.sum(v, axis=1), mask=tl.arange(0, B) < 5)

    return wrong, right


@pair("what the dot at line", 1)
def depth_of_a_product():
    @sim.jit
    def wrong(x, out, n):
        i, j = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
        a = tl.load(x + i * B + j, mask=j < 12)
        b = tl.load(x + i * B + j, mask=i < 12, other=0.0)
        tl.store(out + i * B + j, tl.dot(a, b))

    @sim.jit
    def right(x, out, n):  # rows of the left and columns of the right that are not stored
        i, j = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
        a = tl.load(x + i * B + j, mask=i < 12)
        b = tl.load(x + i * B + j, mask=j < 7)
        tl.store(out + i * B + j, tl.dot(a, b), mask=(i < 12) & (j < 7))

    return wrong, right


@pair("what the sum at line", 1)
def sum_of_a_loop():
    @sim.jit
    def wrong(x, out, n):
        total = tl.zeros((B,), tl.float32)
        for first in range(0, n, B):
            i = first + tl.arange(0, B)
            total += tl.load(x + i, mask=i < n)
        tl.store(out + tl.program_id(0), tl.sum(total, axis=0))

    @sim.jit
    def right(x, out, n):
        total = tl.zeros((B,), tl.float32)
        for first in range(0, n, B):
            i = first + tl.arange(0, B)
            v = tl.load(x + i, mask=i < n)
            total = tl.where(i < n, total + v, total)
        tl.store(out + tl.program_id(0), tl.sum(total, axis=0))

    return wrong, right


@pair("program 2 decides by them in `if`")
def branch_on_a_masked_lane():
    @sim.jit
    def wrong(x, out, n):
        p = tl.program_id(0) * B
        v = tl.load(x + p, mask=p < 20)
        if v > 3.0:
            tl.store(out + p, 1.0)

    @sim.jit
    def right(x, out, n):
        p = tl.program_id(0) * B
        v = tl.load(x + p, mask=p < 20)
        if (p < 20) & (v > 3.0):
            tl.store(out + p, 1.0)

    return wrong, right


@pair("stores at addresses made of them", 1)
def address_from_a_masked_lane():
    @sim.jit
    def wrong(x, out, n):
        i = tl.arange(0, B)
        at = tl.load(x + i, mask=i < 5, other=None).to(tl.int32)
        tl.store(out + tl.maximum(tl.minimum(at, 9), 0) + i * 16, 1.0)

    @sim.jit
    def right(x, out, n):
        i = tl.arange(0, B)
        at = tl.load(x + i, mask=i < 5).to(tl.int32)
        tl.store(out + at, 1.0, mask=i < 5)

    return wrong, right


@pair("stores under a mask made of them")
def mask_from_masked_lanes():
    @sim.jit
    def wrong(x, out, n):
        i = tl.program_id(0) * B + tl.arange(0, B)
        v = tl.load(x + i, mask=i < n)
        tl.store(out + i, v, mask=v > 2.0)

    @sim.jit
    def right(x, out, n):
        i = tl.program_id(0) * B + tl.arange(0, B)
        v = tl.load(x + i, mask=i < n)
        tl.store(out + i, v, mask=(v > 2.0) & (i < n))

    return wrong, right


@pair("stores what was never written to half (line", 1)
def half_of_a_buffer():
    @sim.jit
    def wrong(x, out, n):
        half = bl.alloc(tl.float32, [2 * B])
        i = tl.arange(0, B)
        bl.to_buffer(tl.load(x + i), bind_buffer=bl.subview(half, [0], [B], [1]))
        tl.store(out + tl.arange(0, 2 * B), bl.to_tensor(half) + 1.0)

    @sim.jit
    def right(x, out, n):
        half = bl.alloc(tl.float32, [2 * B])
        i = tl.arange(0, B)
        for k in range(2):
            bl.to_buffer(tl.load(x + k * B + i), bind_buffer=bl.subview(half, [k * B], [B], [1]))
        tl.store(out + tl.arange(0, 2 * B), bl.to_tensor(half) + 1.0)

    return wrong, right


@pair("program 1 stores what was never written to once (line")
def buffer_of_one_branch():
    @sim.jit
    def wrong(x, out, n):
        once = bl.alloc(tl.float32, [B])
        i = tl.program_id(0) * B + tl.arange(0, B)
        if tl.program_id(0) == 0:
            bl.to_buffer(tl.load(x + i), bind_buffer=once)
        tl.store(out + i, bl.to_tensor(once))

    @sim.jit
    def right(x, out, n):
        once = bl.alloc(tl.float32, [B])
        i = tl.program_id(0) * B + tl.arange(0, B)
        if tl.program_id(0) == 0:
            bl.to_buffer(tl.load(x + i), bind_buffer=once)
        else:
            bl.to_buffer(tl.load(x + i) + 1.0, bind_buffer=once)
        tl.store(out + i, bl.to_tensor(once))

    return wrong, right


@pytest.mark.parametrize("name", PAIRS)
def test_a_use_of_what_has_no_value_is_a_fault_with_its_line_and_program(name):
    wrong, _, says, programs = PAIRS[name]
    found = faults(ran(wrong, programs)[0])
    assert len(found) == 1
    assert says in found[0]
    file, line = found[0].file_and_line
    at_fault = "bl.to_tensor(" if "never written" in says else "tl.load("
    assert file == __file__
    assert at_fault in linecache.getline(file, line)
    assert f"program {found[0].programs[0]} " in found[0]


@pytest.mark.parametrize("name", PAIRS)
def test_what_goes_nowhere_without_a_value_is_no_fault(name):
    _, right, _, programs = PAIRS[name]
    assert not faults(ran(right, programs)[0])


@pytest.mark.parametrize("name", PAIRS)
def test_values_with_the_check_are_those_with_poison_alone_and_nothing_is_told_without_it(name):
    for kernel in PAIRS[name][:2]:
        programs = PAIRS[name][3]
        run, got = ran(kernel, programs, check=False, masked="poison")
        assert not any("no `other`" in m or "never written to" in m for m in run.warnings)
        np.testing.assert_array_equal(got, ran(kernel, programs)[1])


@sim.jit
def steps_that_data_says(counts, x, out, n):
    i, p = tl.arange(0, B), tl.program_id(0)
    total = tl.zeros((B,), tl.float32)
    for k in range(tl.load(counts + p)):
        total += tl.load(x + k * B + i, mask=k * B + i < n)
    tl.device_print("sum", tl.sum(total, axis=0))
    tl.atomic_add(out + p, tl.sum(total, axis=0))


@pytest.mark.parametrize("time", [False, True])
def test_a_launch_whose_time_depends_on_data_is_looked_at_and_computed_once(time, capfd):
    counts, x, out = np.array([1, 3], np.int32), np.ones(64, np.float32), np.ones(2, np.float32)
    with sim.device(check=True, time=time):
        run = steps_that_data_says[(2,)](counts, x, out, N)
    assert [m.programs for m in faults(run)] == [(1,)]
    assert out[0] == 1 + 16
    assert np.isnan(out[1])
    assert capfd.readouterr().out.count("sum") == 2


@sim.jit
def parts_of_two_cores(x, out, n):
    i, j = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    v = tl.load(x + i * B + j, mask=j < n) * 2.0
    for _ in range(2):
        tl.store(out + i * B + j, tl.dot(v, tl.load(x + i * B + j)))
        al.sync_block_set("cube", "vector", 3)
        al.sync_block_wait("cube", "vector", 3)


@pytest.mark.parametrize(("n", "count"), [(12, 1), (16, 0)])
def test_what_is_defined_goes_with_a_tile_from_one_core_to_the_other(n, count):
    out = np.zeros((16, 16), np.float32)
    with sim.device(check=True, time=False):
        run = parts_of_two_cores[(1,)](np.ones((16, 16), np.float32), out, n)
    assert len(faults(run)) == count


@sim.jit
def block_beyond_its_tensor(x, out, n, PADDING: tl.constexpr):
    p = tl.make_block_ptr(x, (n,), (1,), (0,), (B,), (0,))
    tl.store(out + tl.arange(0, B), tl.load(p, boundary_check=(0,), padding_option=PADDING))


@pytest.mark.parametrize(("padding", "count"), [("", 1), ("zero", 0), ("nan", 0)])
def test_a_block_without_padding_has_no_elements_outside_of_its_tensor(padding, count):
    with sim.device(check=True, time=False):
        run = block_beyond_its_tensor[(1,)](np.ones(16, np.float32), np.zeros(16, np.float32), 12, padding)
    found = faults(run)
    assert len(found) == count
    assert all("elements outside of the block of this load have no `padding_option`" in m for m in found)


@sim.jit
def without_care(x, out, n, CARE: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n, care_padding=CARE))


@pytest.mark.parametrize(
    ("care", "says"), [(True, "Triton leaves them undefined"), (False, "care_padding=False the")]
)
def test_the_message_says_what_the_device_puts_into_masked_lanes(care, says):
    with sim.device(check=True, time=False):
        run = without_care[(1,)](np.ones(16, np.float32), np.zeros(16, np.float32), 12, care)
    assert [says in m for m in faults(run)] == [True]


@sim.jit
def drawn(
    x,
    out,
    rows,
    columns,
    kept_rows,
    kept_columns,
    DENSE: tl.constexpr,
    CLEAN: tl.constexpr,
    HOW: tl.constexpr,
):
    i, j = tl.arange(0, 8)[:, None], tl.arange(0, 16)[None, :]
    inside = (i < rows) & (j < columns)
    if DENSE:
        inside = inside & ((i + j) % 5 != 3)
    v = tl.load(x + i * 16 + j, mask=inside) * 2.0
    if CLEAN == 1:
        v = tl.where(i < rows, v, 0.0)
    elif CLEAN == 2:
        v = tl.where(j < columns, v, 1.0)
    elif CLEAN == 3:
        v = tl.where(inside, v, 0.0)
    elif CLEAN == 4:
        v = tl.where(i > 3, 1.0, v)
    if HOW == 1:
        v += tl.sum(v, axis=1)[:, None]
    elif HOW == 2:
        v += tl.sum(v, axis=0)[None, :]
    elif HOW == 3:
        v = tl.cumsum(v, axis=1)
    elif HOW == 4:
        v = tl.trans(tl.cumsum(tl.trans(v), axis=1, reverse=True))
    elif HOW == 5:
        v += tl.sum(tl.dot(tl.trans(v), v), axis=0)[None, :]
    elif HOW == 6:
        v = tl.reshape(v + tl.sum(v), (2, 64)).reshape(8, 16)
    tl.store(out + i * 16 + j, v, mask=(i < kept_rows) & (j < kept_columns))


@settings(max_examples=80, deadline=None)
@given(*(st.integers(0, n) for n in (8, 16, 8, 16)), st.booleans(), st.integers(0, 4), st.integers(0, 6))
def test_a_fault_is_told_exactly_where_poison_gets_into_memory(rows, columns, kept, wide, dense, clean, how):
    out = np.zeros(128, np.float32)
    with sim.device(check=True, time=False):
        run = drawn[(1,)](np.ones(128, np.float32), out, rows, columns, kept, wide, dense, clean, how)
    assert bool(faults(run)) == bool(np.isnan(out).any())


@sim.jit
def looks_up(x, out, n, GIVEN: tl.constexpr, HOW: tl.constexpr):
    """Masked-out lanes decide where it loads or whether it goes on; n: lanes that the mask lets through."""
    o = tl.arange(0, B)
    v = tl.load(x + o, mask=o < n, other=0) if GIVEN else tl.load(x + o, mask=o < n)
    if HOW == "tile":
        tl.store(out + o, tl.load(x + v))
    elif HOW == "scalar":
        tl.store(out, tl.load(x + tl.sum(v, axis=0)))
    elif HOW == "too far":
        tl.store(out + o, tl.load(x + v + 5000, mask=o < n))
    elif HOW == "stores":
        tl.store(out + o, v)
    else:
        tl.device_assert(tl.sum(v, axis=0) > 0, "sum")


def looked_up(how, given=False):
    return looks_up[(1,)](np.ones(4096, np.int32), np.zeros(16, np.int32), 13, GIVEN=given, HOW=how)


@pytest.mark.parametrize("asked", [{"check": True}, {"masked": "poison"}])
@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("tile", "loads at addresses made of them"),
        ("scalar", "loads at addresses made of what the sum"),
        ("assert", "decides by what the sum"),
    ],
)
def test_an_error_that_masked_out_lanes_lead_to_names_them_and_their_load(asked, how, says):
    why = f"test_undefined.py:.*masked-out lanes of this load have no `other`, and program 0 {says}"
    with sim.device(time=False, **asked):
        with pytest.raises(sim.RunError, match=why):
            looked_up(how)
        assert not looked_up(how, given=True).faults


@pytest.mark.parametrize("asked", [{"check": True}, {"masked": "poison"}])
def test_an_error_that_lanes_with_a_value_lead_to_says_nothing_of_masked_out_ones(asked):
    with sim.device(time=False, **asked), pytest.raises(sim.RunError) as caught:
        looked_up("too far")
    assert "Mask the access" in str(caught.value)
    assert "masked-out" not in str(caught.value)


def test_poison_without_the_checks_tells_no_faults():
    with sim.device(time=False, masked="poison"):
        assert not looked_up("stores").faults
    with sim.device(time=False, check=True):
        assert looked_up("stores").faults
