"""Explicit buffers: values against plain tensors and float64, places in the ledger, ways between buffers, refusals."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import BufferOverflowError, CompileError, RunError, UsageError
from ascendtile.simulator.language.extra.cann import buffer as bl
from ascendtile.simulator.language.extra.cann import extension as al

SPLIT, COUPLED = "ascend910b3", "ascend310p"


def drawn(rng: np.random.Generator, *shape: int, dtype: Any = np.float32) -> Any:
    return rng.uniform(-1, 1, shape).astype(dtype)


# -- values ----------------------------------------------------------------------------------------------------------


@sim.jit
def put(buffer, x):
    """A helper that writes its caller's buffer."""
    bl.to_buffer(x, bind_buffer=buffer)


@sim.jit
def running_sum(out, last, x, n, ODD: tl.constexpr, B: tl.constexpr):
    """The sum so far and the last odd row lie in buffers; helpers, loops and branches write them."""
    o = tl.arange(0, B)
    total = bl.alloc(tl.float32, [B], al.ascend_address_space.UB)
    kept = bl.alloc(tl.float32, [B])
    put(total, tl.zeros((B,), tl.float32))
    put(kept, tl.full((B,), -1.0, tl.float32))
    for i in range(n):
        v = tl.load(x + i * B + o)
        if i % 2 == ODD:
            put(kept, v)
        put(total, total.to_tensor() + v)
    tl.store(out + o, bl.to_tensor(total))
    tl.store(last + o, kept.to_tensor())


@given(st.integers(0, 5), st.sampled_from([0, 1]), st.sampled_from([8, 40]))
def test_buffers_are_written_by_helpers_loops_and_branches(n: int, odd: int, b: int) -> None:
    x = drawn(np.random.default_rng(n), max(n, 1), b)
    out, last = np.zeros(b, np.float32), np.zeros(b, np.float32)
    running_sum[(1,)](out, last, x, n, ODD=odd, B=b)
    np.testing.assert_allclose(out, x[:n].astype(np.float64).sum(0), atol=1e-6)
    rows = [i for i in range(n) if i % 2 == odd]
    np.testing.assert_array_equal(last, x[rows[-1]] if rows else np.full(b, -1, np.float32))


@sim.jit
def early(buffer, v, flag):
    """Writes on one of two ways out."""
    if flag > 0:
        bl.to_buffer(v, bind_buffer=buffer)
        return 1
    bl.to_buffer(v * 2.0, bind_buffer=buffer)
    return 2


@sim.jit
def ways_out(out, x, flags, B: tl.constexpr):
    pid, o = tl.program_id(0), tl.arange(0, B)
    buffer = bl.alloc(tl.float32, [B])
    way = early(buffer, tl.load(x + o), tl.load(flags + pid))
    tl.store(out + pid * B + o, buffer.to_tensor() + way)


def test_a_helper_with_two_ways_out() -> None:
    x, out = drawn(np.random.default_rng(0), 16), np.zeros((3, 16), np.float32)
    ways_out[(3,)](out, x, np.array([1, 0, 5], np.int32), B=16)
    np.testing.assert_allclose(out, np.stack([x + 1, 2 * x + 2, x + 1]), rtol=1e-6)


@sim.jit
def through_parts(out, x, at, M: tl.constexpr, N: tl.constexpr, ROWS: tl.constexpr):
    """A part is written in place at a row that each program reads; a part of the part is read back."""
    pid = tl.program_id(0)
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    whole = bl.to_buffer(tl.load(x + i * N + j), al.ascend_address_space.UB)
    buffer = bl.alloc(tl.float32, [M, N], al.ascend_address_space.UB)
    al.copy(whole, buffer)
    row = tl.load(at + pid)
    rows = bl.subview(buffer, [row, 0], [ROWS, N], [1, 1])
    bl.to_buffer(rows.to_tensor() * 10.0, bind_buffer=rows)
    one = rows.subview([ROWS - 1, 8], [1, 8], [1, 1])
    bl.to_buffer(one.to_tensor() + 1.0, bind_buffer=one)
    tl.store(out + pid * M * N + i * N + j, bl.to_tensor(buffer))


@given(st.integers(1, 5), st.integers(0, 3), st.sampled_from([16, 24]))
def test_parts_are_read_and_written_in_place(rows: int, room: int, n: int) -> None:
    m = rows + room
    x = drawn(np.random.default_rng(rows), m, n)
    at = np.array([0, room, room // 2], np.int32)
    out = np.zeros((3, m, n), np.float32)
    run = through_parts[(3,)](out, x, at, M=m, N=n, ROWS=rows)
    for p in range(3):
        want = x.copy()
        want[at[p] : at[p] + rows] *= np.float32(10)
        want[at[p] + rows - 1, 8:16] += np.float32(1)
        np.testing.assert_array_equal(out[p], want)
    assert any("al.copy: Triton-Ascend takes it for Ascend 950 only" in n for n in run.launches[0].notes)


def test_a_part_that_leaves_its_buffer_is_an_error_of_the_program() -> None:
    x, out = np.zeros((4, 16), np.float32), np.zeros((2, 4, 16), np.float32)
    with pytest.raises(RunError, match=r"axis 0 has 4 elements, but offset 3, size 2 .* in program 1"):
        through_parts[(2,)](out, x, np.array([0, 3], np.int32), M=4, N=16, ROWS=2)


@sim.jit
def unwritten(out, ints, x, B: tl.constexpr):
    o = tl.arange(0, B)
    nothing = bl.alloc(tl.float16, [B])
    numbers = bl.alloc(tl.int16, [B])
    old = bl.to_tensor(numbers)
    tl.store(out + o, nothing.to_tensor())
    tl.store(ints + o, old)
    bl.to_buffer(tl.load(x + o), bind_buffer=numbers)
    first = numbers.to_tensor()
    bl.to_buffer(first + 1, bind_buffer=numbers)
    tl.store(x + o, first)


def test_reads_that_the_device_may_answer_otherwise_are_named() -> None:
    """Nothing written: NaN and the smallest integer. Read before a write and used after it: what was read."""
    out, ints, x = np.zeros(16, np.float16), np.zeros(16, np.int16), np.arange(16, dtype=np.int16)
    run = unwritten[(1,)](out, ints, x, B=16)
    assert np.isnan(out).all()
    assert (ints == np.iinfo(np.int16).min).all()
    np.testing.assert_array_equal(x, np.arange(16))
    words = run.launches[0].warnings
    assert sum("nothing is read, but nothing was written to it" in w for w in words) == 1
    assert sum("numbers is read, but nothing was written to it" in w for w in words) == 1
    assert sum("numbers was written again at line" in w for w in words) == 1
    with sim.device(time=False):
        untimed = unwritten[(1,)](out, ints, x, B=16)
    assert run.faults == untimed.faults == untimed.warnings
    assert len(run.faults) == 3


# -- places and ways -------------------------------------------------------------------------------------------------


@sim.jit
def product(out, a, b, K: tl.constexpr, M: tl.constexpr, HOW: tl.constexpr):
    i, k = tl.arange(0, M), tl.arange(0, K)
    at, bt = i[:, None] * K + k[None, :], k[:, None] * M + i[None, :]
    if HOW == "plain":
        left = tl.load(a + at)
    elif HOW == "plain computed":
        left = tl.load(a + at) * 2.0
    else:
        held = bl.alloc(tl.float16, [M, K], al.ascend_address_space.L1)
        if HOW == "bound":
            bl.to_buffer(tl.load(a + at), bind_buffer=held)
        elif HOW == "copied":
            al.copy(bl.to_buffer(tl.load(a + at) * 2.0, al.ascend_address_space.UB), held)
        elif HOW == "half":
            bl.to_buffer(tl.load(a + at), bind_buffer=held)
            part = held.subview([0, 0], [M // 2, K], [1, 1])
            bl.to_buffer(tl.zeros((M // 2, K), tl.float16), bind_buffer=part)
        left = held.to_tensor()
        if HOW == "read":
            bl.to_buffer(tl.load(a + at), bind_buffer=held)
            left = (held.to_tensor() + 1.0).to(tl.float16)
    tl.store(out + i[:, None] * M + i[None, :], tl.dot(left, tl.load(b + bt)))


def multiplied(device: str, how: str, m: int = 32, k: int = 64) -> Any:
    """The launch, after its values were compared with float64."""
    rng = np.random.default_rng(1)
    a, b, out = (
        drawn(rng, m, k, dtype=np.float16),
        drawn(rng, k, m, dtype=np.float16),
        np.zeros((m, m), np.float32),
    )
    with sim.device(device):
        run = product[(1,)](out, a, b, K=k, M=m, HOW=how)
    left = a.astype(np.float64)
    if how in ("copied", "plain computed"):
        left = left * 2
    elif how == "half":
        left[: m // 2] = 0
    elif how == "read":
        left = (a + np.float16(1)).astype(np.float64)
    np.testing.assert_allclose(out, left @ b.astype(np.float64), atol=2e-3)
    return run.launches[0]


@pytest.mark.parametrize("device", [SPLIT, COUPLED])
def test_a_load_bound_to_l1_goes_there_and_costs_what_it_cost(device: str) -> None:
    """The load is the product's operand either way; only the name in the ledger differs."""
    bound, plain = multiplied(device, "bound"), multiplied(device, "plain")
    assert bound.cycles == plain.cycles
    assert [(v.name, v.bytes) for v in bound.buffers["L1"].peak if v.name == "held"] == [
        ("held", 32 * 64 * 2)
    ]
    assert not any("global memory" in n for n in bound.notes)


def test_ub_to_l1_takes_mte3_where_the_core_has_both() -> None:
    """310P: UB to L1 at 256 bytes a cycle (its file), fixed cycles before it; nothing passes through global memory."""
    copied, bound = multiplied(COUPLED, "copied"), multiplied(COUPLED, "bound")
    more = copied.pipes["AICORE.MTE3"].busy_cycles - bound.pipes["AICORE.MTE3"].busy_cycles
    assert more == pytest.approx(15 + 32 * 64 * 2 / 256)
    assert copied.resources == bound.resources
    assert not any("global memory" in n for n in copied.notes)


def test_ub_to_l1_goes_through_global_memory_where_the_cores_are_apart() -> None:
    copied, bound = multiplied(SPLIT, "copied"), multiplied(SPLIT, "bound")
    assert any(n.startswith("UB to L1 goes through global memory: ascend910b3") for n in copied.notes)
    assert copied.pipes["AIV.MTE3"].busy_cycles > 0
    assert copied.cycles > bound.cycles
    same = multiplied(
        SPLIT, "plain computed"
    )  # tl.dot sends an operand of UB the same way, after the load of the other
    for pipe in ("AIV.MTE3", "AIC.MTE2", "AIC.M"):
        assert copied.pipes[pipe].busy_cycles == pytest.approx(same.pipes[pipe].busy_cycles)
    assert copied.resources == same.resources


@pytest.mark.parametrize("device", [SPLIT, COUPLED])
@pytest.mark.parametrize("how", ["half", "read"])
def test_parts_of_l1_and_reads_by_the_vector_unit(device: str, how: str) -> None:
    launch = multiplied(device, how)
    if how == "read" and device == SPLIT:
        assert any(n.startswith("L1 to UB goes through global memory") for n in launch.notes)
    if how == "read" and device == COUPLED:
        more = (
            launch.pipes["AICORE.MTE1"].busy_cycles
            - multiplied(device, "bound").pipes["AICORE.MTE1"].busy_cycles
        )
        assert more == pytest.approx(
            15 + 32 * 64 * 2 / 128
        )  # fixed cycles and rate of path.l1_to_ub in its file


@sim.jit
def kept(out, x, n, B: tl.constexpr, WHERE: tl.constexpr, UNIQUE: tl.constexpr):
    o = tl.arange(0, B)
    if WHERE == "UB":
        place = bl.alloc(tl.float32, [B], al.ascend_address_space.UB, is_mem_unique=UNIQUE)
    elif WHERE == "L0A":
        place = bl.alloc(tl.float16, [B // 64, 64], al.ascend_address_space.L0A)
    else:
        place = bl.alloc(tl.float32, [B // 64, 64], al.ascend_address_space.L0C)
    if WHERE == "UB":
        v = tl.load(x + o)
        al.multibuffer(place, 2)
        for i in range(n):
            bl.to_buffer(v + i, bind_buffer=place)
            tl.store(out + i * B + o, place.to_tensor())
        tl.store(out + o, v)


def test_a_buffer_takes_its_bytes_under_its_name() -> None:
    """UB: 4 KiB twice, as multibuffer says; made in place, so that no copy runs. L0C and L0A: one each."""
    out, x = np.zeros((3, 1024), np.float32), drawn(np.random.default_rng(0), 1024)
    run = kept[(1,)](out, x, 3, B=1024, WHERE="UB", UNIQUE=True)
    np.testing.assert_allclose(out[1:], np.stack([x + 1, x + 2]), rtol=1e-6)
    found = {v.name: (v.bytes, v.copies) for v in run.launches[0].buffers["UB"].peak}
    assert found["place"] == (4096, 2)
    assert all(alive >= 8192 for _, alive in run.launches[0].buffers["UB"].steps)
    for where, size in (("L0A", 2048), ("L0C", 4096)):
        with sim.device(SPLIT):
            launch = kept[(1,)](out, x, 3, B=1024, WHERE=where, UNIQUE=False).launches[0]
        assert [(v.name, v.bytes) for v in launch.buffers[where].peak] == [("place", size)]


@pytest.mark.parametrize("where", ["UB", "L0A", "L0C"])
def test_a_buffer_that_does_not_fit_is_named(where: str) -> None:
    out = np.zeros(1 << 16, np.float32)
    with (
        sim.device(SPLIT),
        pytest.raises(BufferOverflowError, match=rf"{where.lower()} overflow(.|\n)*place"),
    ):
        kept[(1,)](out, out, 0, B=1 << 16, WHERE=where, UNIQUE=False)


@sim.jit
def handed_over(out, hop, a, b, M: tl.constexpr):
    """The Vector core fills a buffer in L1 in each iteration, the Cube multiplies what it holds; flags say when."""
    i = tl.arange(0, M)
    at = i[:, None] * M + i[None, :]
    held = bl.alloc(tl.float16, [M, M], al.ascend_address_space.L1)
    for iteration in range(3):
        with al.scope(core_mode="vector"):
            v = tl.load(a + at) * (iteration + 1)
            al.copy(bl.to_buffer(v.to(tl.float16), al.ascend_address_space.UB), held)
            al.sync_block_set("vector", "cube", 1)
        with al.scope(core_mode="cube"):
            al.sync_block_wait("vector", "cube", 1)
            tl.store(out + iteration * M * M + at, tl.dot(held.to_tensor(), tl.load(b + at)))


def test_a_buffer_between_the_two_cores() -> None:
    m, rng = 16, np.random.default_rng(2)
    a, b = drawn(rng, m, m, dtype=np.float16), drawn(rng, m, m, dtype=np.float16)
    out = np.zeros((3, m, m), np.float32)
    with sim.device(SPLIT):
        run = handed_over[(1,)](out, out.copy(), a, b, M=m)
    want = np.stack([(a * np.float16(t + 1)).astype(np.float64) @ b.astype(np.float64) for t in range(3)])
    np.testing.assert_allclose(out, want, atol=1e-2)
    assert run.launches[0].pipes["AIV.MTE3"].busy_cycles > 0


# -- refusals --------------------------------------------------------------------------------------------------------


@sim.jit
def straight_out(out, a, N: tl.constexpr, MODE: tl.constexpr):
    i, j = tl.arange(0, 16), tl.arange(0, N)
    place = bl.alloc(tl.float32, [16, N], al.ascend_address_space.UB)
    left = tl.load(a + i[:, None] * 16 + i[None, :])
    acc = tl.dot(left, tl.load(a + i[:, None] * N + j[None, :]))
    if MODE == "dual":
        al.fixpipe(acc, place, dual_dst_mode=al.FixpipeDualDstMode.COLUMN_SPLIT)
    else:
        al.fixpipe(acc, place, al.FixpipeDMAMode.NZ2ND)
    tl.store(out + i[:, None] * N + j[None, :], place.to_tensor())


@pytest.mark.parametrize("device", [SPLIT, COUPLED, "ascend910c"])
def test_fixpipe_is_refused_by_product_with_the_way_out(device: str) -> None:
    a, out = np.zeros((16, 16), np.float16), np.zeros((16, 16), np.float32)
    with sim.device(device), pytest.raises(UsageError, match=f"fixpipe.*{device} cannot.*result of tl.dot"):
        straight_out[(1,)](out, a, N=16, MODE="")


@pytest.mark.parametrize(("n", "mode", "least"), [(12, "", 8), (16, "dual", 32)])
def test_rows_that_fixpipe_cannot_write(n: int, mode: str, least: int) -> None:
    a, out = np.zeros((16, 16), np.float16), np.zeros((16, 16), np.float32)
    with pytest.raises(CompileError, match=f"must be a multiple of {least} elements"):
        straight_out[(1,)](out, a, N=n, MODE=mode)


@sim.jit
def wrong(out, WHAT: tl.constexpr):
    o = tl.arange(0, 64)
    x = tl.zeros((64,), tl.float32)
    ub = bl.alloc(tl.float32, [64], al.ascend_address_space.UB)
    square = bl.alloc(tl.float32, [8, 12], al.ascend_address_space.UB)
    l1 = bl.alloc(tl.float32, [64], al.ascend_address_space.L1)
    if WHAT == "mask":
        bl.alloc(tl.int1, [64])
    elif WHAT == "space":
        bl.alloc(tl.float32, [64], "UB")
    elif WHAT == "shape":
        bl.to_buffer(x, bind_buffer=square)
    elif WHAT == "scalar":
        bl.to_buffer(1.0)
    elif WHAT == "tensor":
        al.copy(x, ub)
    elif WHAT == "from l1":
        al.copy(l1, ub)
    elif WHAT == "to ub":
        al.copy_from_ub_to_l1(ub, ub)
    elif WHAT == "l0a":
        bl.to_buffer(x, al.ascend_address_space.L0A)
    elif WHAT == "layout":
        ub.to_tensor(target_shape=[8, 8])
    elif WHAT == "offset":
        ub.subview([1], [8], [1])
    elif WHAT == "pointer":
        ub.subview([out], [8], [1])
    elif WHAT == "fraction":
        ub.subview([tl.load(out)], [8], [1])
    elif WHAT == "tile":
        ub.subview([o], [8], [1])
    elif WHAT == "stride":
        ub.subview([0], [8], [2])
    elif WHAT == "rows":
        square.subview([0, 0], [2, 8], [1, 1])
    elif WHAT == "outside":
        ub.subview([60], [8], [1])
    elif WHAT == "inside only":
        for _ in range(2):
            inner = bl.alloc(tl.float32, [64])
        inner.to_tensor()
    elif WHAT == "another":
        for _ in range(2):
            ub = bl.alloc(tl.float32, [64])
    elif WHAT == "ternary":
        _ = al.copy(ub, ub) if tl.program_id(0) == 0 else None
    tl.store(out + o, ub.to_tensor())


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("mask", "alloc: the element type must be a number's"),
        ("space", "must be one of al.ascend_address_space"),
        ("shape", "must have one shape and type|and a buffer of fp32 [8, 12]"),
        ("scalar", "to_buffer needs a tile"),
        ("tensor", "copy needs a buffer"),
        ("from l1", "copy takes a buffer in UB to one in UB or L1"),
        ("to ub", "takes a buffer in UB to one in L1"),
        ("l0a", "tl.dot alone fills it"),
        ("layout", "target_shape"),
        ("offset", "it begins at byte 4, which must be a multiple of 32"),
        ("pointer", "subview: an offset must be an integer scalar, got"),
        ("fraction", "subview: an offset must be an integer scalar, got"),
        ("tile", "subview: an offset must be an integer scalar, got"),
        ("stride", "all strides must be 1"),
        ("rows", "its rows are apart by bytes 48, which must be a multiple of 32"),
        ("outside", "axis 0 has 64 elements"),
        ("inside only", "is assigned inside a loop only"),
        ("another", "'ub' changes its type in the loop"),
        ("ternary", "use an `if` statement"),
    ],
)
def test_what_buffers_refuse(what: str, words: str) -> None:
    with pytest.raises(CompileError, match=re.escape(words) if "|" not in words else words.split("|")[0]):
        wrong[(1,)](np.zeros(64, np.float32), WHAT=what)


def test_a_buffer_describes_itself() -> None:
    """Kernels ask buffers for their type, shape and place at compile time."""
    asked[(1,)](np.zeros(1, np.float32))


@sim.jit
def asked(out):
    x = bl.alloc(tl.float16, [4, 32], al.ascend_address_space.L1)
    part = x.subview([0, 16], [4, 16], [1, 1])
    tl.static_assert(x.dtype == tl.float16)
    tl.static_assert(x.shape[1] == 32)
    tl.static_assert(x.space == al.ascend_address_space.L1)
    tl.static_assert(x.type.element_ty == tl.float16)
    tl.static_assert(part.shape[1] == 16)
    tl.static_assert(part.strides[0] == 32)
    tl.store(out, 1.0)
