"""Laws of `fixpipe_scaled` and `unpack_int4`: values, where the work is done and what it takes, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
import ascendtile.simulator.language.extra.cann.extension as al
from ascendtile.simulator.errors import BufferOverflowError, CompileError

SPLIT, COUPLED = "ascend910b3", "ascend310p"


@sim.jit
def scaled(
    x, w, s, out, K,
    M: tl.constexpr, N: tl.constexpr, B: tl.constexpr, OUT: tl.constexpr, ROW: tl.constexpr, ADDED: tl.constexpr,
):  # fmt: skip
    """out = x w times s, on the way out of L0C; ADDED: something is left to do after it."""
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, B)
    acc = tl.zeros((M, N), tl.int32)
    for first in range(0, K, B):
        u = tl.load(x + i[:, None] * K + (first + k)[None, :])
        v = tl.load(w + (first + k)[:, None] * N + j[None, :])
        acc = tl.dot(u, v, acc)
    made = al.fixpipe_scaled(acc, tl.load(s + j) if ROW else tl.load(s), OUT)
    tl.store(out + i[:, None] * N + j[None, :], made + 1 if ADDED else made)


@sim.jit
def plain(x, w, out, K, M: tl.constexpr, N: tl.constexpr, B: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, B)
    acc = tl.zeros((M, N), tl.int32)
    for first in range(0, K, B):
        u = tl.load(x + i[:, None] * K + (first + k)[None, :])
        v = tl.load(w + (first + k)[:, None] * N + j[None, :])
        acc = tl.dot(u, v, acc)
    tl.store(out + i[:, None] * N + j[None, :], acc)


@sim.jit
def unpacked(x, out, N: tl.constexpr):
    tl.store(out + tl.arange(0, 2 * N), al.unpack_int4(tl.load(x + tl.arange(0, N))))


def timed(product=SPLIT, n=64, row=True, out="float16", added=False):
    shapes = [sim.shape(x, d) for x, d in (((32, 128), "int8"), ((128, n), "int8"), ((n,), "float32"))]
    how = {"M": 32, "N": n, "B": 64, "OUT": getattr(tl, out), "ROW": row, "ADDED": added}
    with sim.device(product, timeline=1000):
        return scaled.time((1,), *shapes, sim.shape((32, n), out), 128, **how)


def expected(x, w, scale, out):
    """In double: 32 bits of a sum times the 11 bits of a scale that are read are exact there."""
    read = (np.asarray(scale).view(np.uint32) & 0xFFFFE000).view(np.float32).astype(np.float64)
    exact = (x.astype(np.int64) @ w.astype(np.int64)) * read
    if out == "int8":
        return np.clip(np.rint(exact), -128, 127).astype(np.int8)
    return np.clip(exact, -65504, 65504).astype(np.float16)


@given(
    st.integers(0, 2**32 - 1), st.sampled_from([SPLIT, COUPLED]), st.booleans(), st.booleans(), st.booleans()
)
def test_the_result_is_the_exact_product_with_the_scale_as_it_is_read_rounded_once(
    seed, product, row, half, added
):
    draw = np.random.default_rng(seed)
    x, w = (draw.integers(-128, 128, s, dtype=np.int8) for s in ((16, 64), (64, 32)))
    scale = (draw.standard_normal(32 if row else 1) * 10.0 ** draw.integers(-6, 2)).astype(np.float32)
    name = "float16" if half else "int8"
    out = np.zeros((16, 32), name)
    with sim.device(product):
        kind = getattr(tl, name)
        scaled[(1,)](x, w, scale, out, 64, M=16, N=32, B=64, OUT=kind, ROW=row, ADDED=added)
    want = expected(x, w, scale, name)
    assert np.array_equal(out, want + want.dtype.type(1) if added else want)


def test_scales_go_into_the_buffer_of_the_fixpipe_and_no_vector_core_is_asked():
    run, number, product = timed(), timed(row=False), sim.load_product(SPLIT)
    assert {name.partition(".")[0] for name in run.pipes} == {"AIC"}
    table = run.buffers["FB"]
    assert (table.peak_bytes, table.capacity_bytes) == (64 * 8, 2048)
    assert "FB" not in number.buffers
    way = product.number("path.l1_to_bt.fixed_cycles") + 64 * 8 / product.number(
        "path.l1_to_bt.bytes_per_cycle"
    )
    assert run.pipes["AIC.FIXP"].busy_cycles == pytest.approx(number.pipes["AIC.FIXP"].busy_cycles + way)


def test_half_the_bytes_leave_the_core_of_what_leaves_it_unscaled():
    shapes = [sim.shape(x, d) for x, d in (((32, 128), "int8"), ((128, 64), "int8"), ((32, 64), "int32"))]
    with sim.device(SPLIT, timeline=1000):
        whole = plain.time((1,), *shapes, 128, M=32, N=64, B=64)
    assert (_left(timed(row=False)), _left(whole)) == (32 * 64 * 2, 32 * 64 * 4)


def _left(run):
    """Bytes that the fixpipe moved."""
    t = run.launches[0].timeline
    return sum(b for p, b in zip(t.pipe, t.bytes, strict=True) if t.pipes[p] == "AIC.FIXP")


def test_the_vector_unit_does_it_where_something_is_left_to_do_or_no_fixpipe_is_there():
    assert timed(added=True).pipes["AIV.V"].busy_cycles > 0
    coupled = timed(COUPLED)
    assert "FB" not in coupled.buffers
    assert coupled.pipes["AICORE.V"].busy_cycles > 0


def test_more_columns_than_the_buffer_holds_overflow_it():
    assert timed(n=256).buffers["FB"].peak_bytes == 2048
    with pytest.raises(BufferOverflowError, match="fb overflow, requires 20480 bits while 16384 bits"):
        timed(n=320)


@pytest.mark.parametrize(
    ("out", "scale", "message"),
    [
        ("bfloat16", "float32", "fixpipe_scaled makes fp16 or int8 of int32, not bf16"),
        ("float32", "float32", "fixpipe_scaled makes fp16 or int8 of int32"),
        ("float16", "float16", "the scale must be float32"),
    ],
)
def test_what_the_fixpipe_cannot_make_is_refused(out, scale, message):
    shapes = [sim.shape(x, d) for x, d in (((16, 64), "int8"), ((64, 16), "int8"), ((16,), scale))]
    with sim.device(SPLIT), pytest.raises(CompileError, match=message):
        scaled.time(
            (1,), *shapes, sim.shape((16, 16), out), 64,
            M=16, N=16, B=64, OUT=getattr(tl, out), ROW=True, ADDED=False,
        )  # fmt: skip


@pytest.mark.parametrize("stored", [np.uint8, np.int8])
def test_both_halves_of_every_byte_become_numbers_from_minus_8_to_7_low_half_first(stored):
    packed = np.arange(256, dtype=np.uint8)
    out = np.zeros(512, np.float16)
    with sim.device(SPLIT):
        unpacked[(1,)](packed.view(stored), out, N=256)
    low, high = ((packed >> shift & 15).astype(int) for shift in (0, 4))
    want = np.stack([np.where(x < 8, x, x - 16) for x in (low, high)], axis=1).reshape(-1)
    assert np.array_equal(out, want)


def test_unpacking_takes_the_cast_of_as_many_int8_and_says_that_its_figure_is_assumed():
    with sim.device(SPLIT):
        run = unpacked.time((1,), sim.shape((4096,), "uint8"), sim.shape((8192,), "float16"), N=4096)
    assert any("int4 to fp16" in str(m) for m in run.notes)
    with sim.device(SPLIT), pytest.raises(CompileError, match="unpack_int4 takes a uint8 or int8 tile"):
        unpacked.time((1,), sim.shape((64,), "int32"), sim.shape((128,), "float16"), N=64)
