"""What the compiler's rules make of small kernels: copies, the retry, in-place results, rows of two cores, strides."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import BufferOverflowError
from ascendtile.simulator.launch import prepare
from ascendtile.simulator.timing.fitting import require_places

PRODUCT = "ascend910b3"
B = 4096


@sim.jit
def drawn(x, y, out, n, CODE: tl.constexpr, STEPS: tl.constexpr, B: tl.constexpr):
    o = tl.arange(0, B)
    for t in range(n):
        a = tl.load(x + t * B + o)
        b = tl.load(y + t * B + o)
        for k in tl.static_range(STEPS):
            what = CODE // 6**k % 6
            if what == 0:
                a = a + b
            elif what == 1:
                b = tl.exp(a)
            elif what == 2:
                tl.store(out + t * B + o, a)
            elif what == 3:
                a = tl.where(a > b, a, b)
            elif what == 4:
                a = a - tl.sum(b, axis=0)
            else:
                b = b.to(tl.float16).to(tl.float32) * 2.0
        tl.store(out + t * B + o, a + b)


@sim.jit
def passes(x, out, n, WHAT: tl.constexpr, B: tl.constexpr):
    o = tl.arange(0, B)
    for t in range(n):
        v = tl.load(x + t * B + o)
        if WHAT == "exp":
            v = tl.exp(v)
        elif WHAT == "shared":
            v = (v + 1.0) * (v + 1.0) + (v + 1.0)
        tl.store(out + t * B + o, v)


@sim.jit
def straight(x, out, WHAT: tl.constexpr, B: tl.constexpr):
    o = tl.arange(0, B)
    v = tl.load(x + o)
    if WHAT == "exp":
        v = tl.exp(v)
    elif WHAT == "both":
        v = tl.exp(v) + v
    elif WHAT == "sum":
        v = v - tl.sum(v, axis=0)
    if WHAT == "masked":
        tl.store(out + o, v, mask=v > 0.0)
    elif WHAT == "added under a mask":
        tl.atomic_add(out + o, v, mask=v > 0.0)
    else:
        tl.store(out + o, v)


@sim.jit
def gathered(x, at, out, AXIS: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    o = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + o, tl.gather(tl.load(x + o), tl.load(at + o), AXIS))


@sim.jit
def scaled(x, out, row, WHAT: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    """A product, what the Vector unit makes of it, and how it leaves."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    u, w = tl.load(x + i * N + j), tl.load(x + tl.arange(0, N)[:, None] * N + j)
    v = tl.exp(tl.dot(u, w))
    if WHAT == "turned":
        tl.store(out + tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :], tl.trans(v))
    elif WHAT == "atomic":
        tl.atomic_add(out + i * N + j, v)
    elif WHAT == "columns":
        tl.store(out + i * N + j, v - tl.max(v, axis=0)[None, :])
    elif WHAT == "in place":
        tl.store(out + i * N + j, v + tl.load(out + i * N + j))
    else:
        tl.store(out + i * N + j, v - tl.max(v, axis=1)[:, None])


@sim.jit
def strided(x, out, step, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.store(out + o, tl.exp(tl.load(x + o * step)))


def single(n: int) -> Any:
    return sim.shape((n,), "float32")


def ub(run: Any) -> Any:
    return run.launches[0].buffers["UB"]


def of_loop(what: str, n: Any = 4, **more: Any) -> Any:
    with sim.device(PRODUCT, **more):
        return passes.time((1,), single(4 * B), single(4 * B), n, WHAT=what, B=B)


# -- copies ------------------------------------------------------------------------------------------------------------


def test_what_a_loop_moves_is_there_twice_and_straight_code_once() -> None:
    size = 4 * B
    two = ub(of_loop("exp"))  # loaded and stored: two slots each, on each other only where there is no room
    assert (two.placed_bytes, two.peak_bytes) == (4 * size, 2 * size)
    assert ub(of_loop("plain")).peak_bytes == 2 * size  # the same buffer
    assert ub(of_loop("exp", multibuffer=1)).peak_bytes == size  # in place
    with sim.device(PRODUCT):
        assert ub(straight.time((1,), single(B), single(B), WHAT="exp", B=B)).peak_bytes == size


@pytest.mark.parametrize(("what", "tiles"), [("plain", 1), ("exp", 1), ("both", 2)])
def test_a_result_takes_the_place_of_an_operand_that_ends_there(what: str, tiles: int) -> None:
    with sim.device(PRODUCT):
        assert ub(straight.time((1,), single(B), single(B), WHAT=what, B=B)).peak_bytes == tiles * 4 * B


@pytest.mark.parametrize(("what", "tiles"), [("masked", 3), ("added under a mask", 2)])
def test_a_store_under_a_mask_of_elements_loads_what_lies_there(what: str, tiles: int) -> None:
    """The new tile, what lies there, what is selected, the number that is compared with; a block is the scratch.

    The mask, a bit an element, lies where that number was.
    """
    with sim.device(PRODUCT):
        need = ub(straight.time((1,), single(B), single(B), WHAT=what, B=B)).peak_bytes
    assert need == (tiles + 1) * 4 * B + 32


@pytest.mark.parametrize(
    ("element", "axis", "index"), [("float32", 1, 4), ("float32", 0, 0), ("int64", 1, 0)]
)
def test_gathers_take_a_copy_of_indices_of_32_bits_unless_scalar_code_does_them(
    element: str, axis: int, index: int
) -> None:
    m, n = 16, 64
    with sim.device(PRODUCT):
        x, at = sim.shape((m, n), element), sim.shape((m, n), "int32")
        run = gathered.time((1,), x, at, x, AXIS=axis, M=m, N=n)
        wide = gathered.time((1,), x, sim.shape((m, n), "int64"), x, AXIS=axis, M=m, N=n)
    bytes_each = 2 * (8 if element == "int64" else 4) + 4 + index
    assert ub(run).placed_bytes == bytes_each * m * n
    assert ub(wide).placed_bytes == (bytes_each + 4) * m * n  # narrowed in their own place


def test_an_overflow_is_tried_again_without_copies_and_says_so() -> None:
    """Two tiles with copies, one without; "8.5" gives up and tells the need with copies."""
    small = {"buffers.ub": 6 * B}
    run = of_loop("exp", overrides=small)
    (note,) = (n for n in run.notes if "taken back" in n)
    need = 2 * 4 * B
    assert re.search(rf"multibuffer was taken back to fit: .*{4 * B} bytes.* {need} of {6 * B} bytes", note)
    assert ub(run).peak_bytes == 4 * B
    with pytest.raises(BufferOverflowError) as found:
        of_loop("exp", overrides=small, compiler_version="8.5")
    assert found.value.need_bytes == need > found.value.have_bytes == 6 * B


def test_equal_operations_are_made_once() -> None:
    """Three times v + 1: one addition, as if written once."""
    run = of_loop("shared")
    vector = [line for line in run.launches[0].lines if "v + 1.0" in line.source]
    assert vector
    assert (
        run.launches[0].pipes["AIV.V"].busy_cycles < 4 * of_loop("exp").launches[0].pipes["AIV.V"].busy_cycles
    )
    names = [v.name for v in ub(run).peak]
    assert len(names) <= 2


# -- rows of two Vector cores ----------------------------------------------------------------------------------------


def mixed(what: str, m: int = 64, n: int = 64, **more: Any) -> int:
    with sim.device(PRODUCT):
        run = scaled.time(
            (1,), sim.shape((64 * 64,), "float16"), single(64 * 64), 1, WHAT=what, M=m, N=n, **more
        )
    return ub(run).peak_bytes


def test_each_vector_core_has_half_of_the_rows_unless_the_option_is_off() -> None:
    half, whole = mixed("rows"), mixed("rows", enable_auto_bind_sub_block=False)
    assert 64 * 64 * 4 // 2 <= half < 64 * 64 * 4 <= whole
    assert mixed("atomic") < mixed("atomic", enable_auto_bind_sub_block=False)


def test_the_axis_that_is_not_reduced_is_cut() -> None:
    assert mixed("columns") < mixed("columns", enable_auto_bind_sub_block=False)


@pytest.mark.parametrize("what", ["turned", "in place"])
def test_tiles_stay_whole_where_a_cut_would_not_do(what: str) -> None:
    """A transposed last axis; loads and stores that may meet."""
    assert mixed(what) == mixed(what, enable_auto_bind_sub_block=False)


# -- strides -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("step", "bytes_each"), [(1, 4), (2, 32), (5, 32)])
def test_a_strided_load_takes_a_block_an_element_for_all_that_is_made_of_it(
    step: int, bytes_each: int
) -> None:
    with sim.device(PRODUCT):
        run = strided.time((1,), single(B * step), single(B), step, B=B)
    assert ub(run).peak_bytes == B * bytes_each


# -- random programs -------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 6**5 - 1), st.integers(0, 5), st.sampled_from([1, 2]), st.floats(0.0, 1.0))
def test_no_two_buffers_of_a_program_share_bytes_while_both_live(
    code: int, steps: int, copies: int, part: float
) -> None:
    """Nor does the need exceed what all buffers take side by side; where they fit so, they lie so."""
    plenty = _placed(code, steps, copies, 1 << 30)
    total = sum(s.total for s in plenty.slots)
    need = plenty.buffers["UB"].peak_bytes
    assert need <= total == plenty.buffers["UB"].placed_bytes
    tight = _placed(code, steps, copies, -(-int(need + part * (total - need)) // 32) * 32)
    assert tight.buffers["UB"].placed_bytes <= total
    for s, t in combinations([s for s in tight.slots if s.size], 2):
        if s.start < t.end and t.start < s.end:
            apart = (
                s.place(k) + s.size <= t.place(c) or t.place(c) + t.size <= s.place(k)
                for k in range(s.copies)
                for c in range(t.copies)
            )
            assert all(apart)


def _placed(code: int, steps: int, copies: int, room: int) -> Any:
    with sim.device(PRODUCT, overrides={"buffers.ub": room}, multibuffer=copies, compiler_version="8.5"):
        call = prepare(drawn, (1,), (single(4 * B),) * 3 + (4,), {"CODE": code, "STEPS": steps, "B": B})
        return require_places(call)[1]


def test_values_do_not_depend_on_who_placed_the_tiles() -> None:
    x = np.random.default_rng(0).uniform(0, 1, 4 * 64).astype(np.float32)
    outs = []
    for compiler in ("triton-ascend", "ascendc"):
        out = np.zeros_like(x)
        with sim.device(PRODUCT, compiler=compiler):
            drawn[(1,)](x, x, out, 4, CODE=4321, STEPS=5, B=64)
        outs.append(out)
    np.testing.assert_array_equal(*outs)
