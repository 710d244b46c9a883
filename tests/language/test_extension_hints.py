"""Loops over vector cores, hints, and the builtins that the extension shares with Triton."""

from __future__ import annotations

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import CompileError
from ascendtile.simulator.language.extra.cann import extension as al


@sim.jit
def halves(out, x, H: tl.constexpr, BIND: tl.constexpr):
    total = tl.zeros((H,), tl.float32)
    i = tl.arange(0, H)
    v = tl.load(x + tl.arange(0, 2 * H))
    for s in al.parallel(0, 2, bind_sub_block=BIND):
        part = al.extract_slice(v, (s * H,), (H,), (1,))
        tl.store(out + s * H + i, part + 1)
        total += part
    tl.store(out + 2 * H + i, total)


@pytest.mark.parametrize("bind", [False, True])
def test_parallel_is_a_loop_that_says_how_it_is_timed(bind: bool) -> None:
    x = np.arange(128, dtype=np.float32)
    out = np.zeros(192, np.float32)
    run = halves[(1,)](out, x, H=64, BIND=bind)
    np.testing.assert_array_equal(out, np.concatenate([x + 1, x[:64] + x[64:]]))
    assert any("iterations go to the two vector cores of a group" in n for n in run.notes) == bind
    assert any("total goes from iteration to iteration" in w for w in run.warnings) == bind


@sim.jit
def names_in_a_shared_loop(out, x, B: tl.constexpr, AFTER: tl.constexpr, BEFORE: tl.constexpr):
    i = tl.arange(0, B)
    at, same = i, i
    for s in al.parallel(0, 4, bind_sub_block=True):
        if BEFORE:
            tl.store(out + at, 1.0)
        at = s * B + i
        tl.store(out + at + same, tl.load(x + at))
    if AFTER:
        tl.store(out + at, 0.0)


@pytest.mark.parametrize(("after", "before"), [(False, False), (True, False), (False, True)])
def test_a_name_that_each_iteration_gives_a_value_of_its_own_passes_nothing_on(after, before) -> None:
    x = sim.shape(1024, "float32")
    run = names_in_a_shared_loop.time((1,), x, x, B=64, AFTER=after, BEFORE=before)
    assert [f.what.split(" goes ")[0] for f in run.faults] == (["at"] if after or before else [])


@sim.jit
def shared(out, x, iterations, B: tl.constexpr, LENGTH: tl.constexpr, BIND: tl.constexpr):
    """Iterations of LENGTH dependent operations on a tile of their own, beside a tile that all iterations read."""
    pid, o = tl.program_id(0), tl.arange(0, B)
    y = tl.load(x + o) + 1.0
    for iteration in al.parallel(0, iterations, bind_sub_block=BIND):
        v = tl.load(x + iteration * B + o)
        for _ in tl.static_range(LENGTH):
            v = v + y
        tl.store(out + (pid * iterations + iteration) * B + o, v)


@pytest.mark.parametrize("iterations", [2, 5, 8])
def test_two_vector_cores_share_the_iterations_in_time(iterations: int) -> None:
    """Each core has its own iterations, and its own copy of what is made before the loop; many take half the time."""
    b, length = 4096, 16
    x = np.random.default_rng(0).uniform(-1, 1, (iterations, b)).astype(np.float32)
    runs = {}
    # without conflicts of banks an addition of two tiles takes what one of a number takes
    alike = {"ub_banks.read_read_conflict": "none"}
    for bind in (True, False):
        out = np.zeros((1, iterations, b), np.float32)
        with sim.device("ascend910b3", overrides=alike):
            runs[bind] = shared[(1,)](out, x, iterations, B=b, LENGTH=length, BIND=bind)
        np.testing.assert_allclose(out[0], x + length * (x[0].astype(np.float64) + 1), rtol=1e-5)
    two, one = runs[True].launches[0], runs[False].launches[0]
    add = one.pipes["AIV.V"].busy_cycles / (iterations * length + 1)
    for pipe, mine in (("AIV.V", -(-iterations // 2)), ("AIV1.V", iterations // 2)):
        assert two.pipes[pipe].busy_cycles == pytest.approx(add * (mine * length + 1))
    assert two.cycles < one.cycles
    if iterations == 8:
        assert two.cycles < 0.6 * one.cycles
    assert (two.cores, one.cores) == (20, 40)


@pytest.mark.parametrize("device", ["ascend310p", "ascend910a"])
def test_one_vector_core_has_all_iterations_where_there_is_no_second(device: str) -> None:
    x, out = np.ones((3, 64), np.float32), np.zeros((1, 3, 64), np.float32)
    with sim.device(device):
        bound, plain = (shared[(1,)](out, x, 3, B=64, LENGTH=2, BIND=bind) for bind in (True, False))
    assert bound.cycles == plain.cycles
    assert any(f"one vector core does all iterations: {device}" in n for n in bound.notes)


@sim.jit
def cube_and_iterations(out, a, b, data, M: tl.constexpr, BIND: tl.constexpr):
    """A product, and iterations over halves of it; how many there are is loaded."""
    i, j, h = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :], tl.arange(0, M // 2)[:, None]
    acc = tl.dot(tl.load(a + i * M + j), tl.load(b + i * M + j))
    for half in al.parallel(0, tl.load(data), bind_sub_block=BIND):
        part = al.extract_slice(acc, (half * (M // 2), 0), (M // 2, M), (1, 1))
        tl.store(out + (h + half * (M // 2)) * M + j, tl.exp(part) * 2.0)


def test_halves_of_a_product_go_to_the_two_cores() -> None:
    """Also where data decides how many iterations there are: values and time are then found together."""
    m, rng = 64, np.random.default_rng(3)
    a, b = (rng.uniform(-1, 1, (m, m)).astype(np.float32) for _ in range(2))
    launches = {}
    for bind in (True, False):
        out = np.zeros((m, m), np.float32)
        with sim.device("ascend910b3", bind_sub_block=False):  # the compiler does not cut tiles besides
            run = cube_and_iterations[(1,)](out, a, b, np.array([2], np.int32), M=m, BIND=bind)
        np.testing.assert_allclose(out, 2 * np.exp(a.astype(np.float64) @ b), rtol=1e-4)
        launches[bind] = run.launches[0]
    two, one = launches[True].pipes, launches[False].pipes
    assert two["AIC.M"].busy_cycles == one["AIC.M"].busy_cycles
    assert two["AIV.V"].busy_cycles == pytest.approx(two["AIV1.V"].busy_cycles)
    assert two["AIV.V"].busy_cycles == pytest.approx(one["AIV.V"].busy_cycles / 2)
    assert launches[True].cycles < launches[False].cycles


@sim.jit
def doubled(out, x, ITERATIONS: tl.constexpr, B: tl.constexpr, HOW: tl.constexpr):
    for iteration in range(ITERATIONS):
        v = tl.load(x + iteration * B + tl.arange(0, B))
        w = v * 2
        if HOW == "word":
            al.multibuffer(w, 2)
        if HOW == "hint":
            al.compile_hint(w, "hivm.multi_buffer", 2)
        if HOW == "other":
            al.compile_hint(w, "something", True)
        tl.store(out + iteration * B + tl.arange(0, B), w + v)


def test_a_tile_has_the_buffers_that_the_kernel_asks_for() -> None:
    x = np.ones(4096, np.float32)
    peak = {}
    for how in ("", "word", "hint", "other"):
        with sim.device(multibuffer=1):
            out = np.zeros_like(x)
            peak[how] = doubled[(1,)](out, x, ITERATIONS=4, B=1024, HOW=how).buffers["UB"].peak_bytes
        np.testing.assert_array_equal(out, 3 * x)
    assert peak["other"] == peak[""]
    assert peak["word"] == peak["hint"] == peak[""] + 4096


@sim.jit
def three_buffers(x):
    v = tl.load(x + tl.arange(0, 64))
    al.multibuffer(v, 3)


def test_two_is_the_only_number_of_buffers() -> None:
    with pytest.raises(CompileError, match="a tile can have 2 buffers, got int 3"):
        three_buffers[(1,)](np.zeros(64, np.float32))


@sim.jit
def shared_builtins(out, small, x, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, al.flip(v))
    tl.store(out + N + i, al.sort(v, descending=True))
    tl.store(small + i, al.cast(v, tl.int8, overflow_mode="saturate"))
    tl.store(small + N + i, al.cast(al.cast(v, tl.int32), tl.int8, overflow_mode="trunc"))


def test_builtins_that_triton_has_too() -> None:
    x = (np.random.default_rng(3).standard_normal(48) * 300).astype(np.float32)
    out, small = np.zeros(96, np.float32), np.zeros(96, np.int8)
    shared_builtins[(1,)](out, small, x, N=48)
    np.testing.assert_array_equal(out, np.concatenate([x[::-1], np.sort(x)[::-1]]))
    np.testing.assert_array_equal(small[:48], np.clip(np.trunc(x), -128, 127).astype(np.int8))
    np.testing.assert_array_equal(small[48:], np.trunc(x).astype(np.int32).astype(np.int8))


@sim.jit
def scaled_operands(x, w, out, K, M: tl.constexpr, N: tl.constexpr, B: tl.constexpr, TWICE: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, B)
    acc = tl.zeros((M, N), tl.float32)
    for first in range(0, K, B):
        u = tl.load(x + i[:, None] * K + (first + k)[None, :])
        v = tl.load(w + (first + k)[:, None] * N + j[None, :]) * 2
        if TWICE:
            al.multibuffer(v, 2)
        acc = tl.dot(u, v, acc)
    tl.store(out + i[:, None] * N + j[None, :], acc)


def test_an_operand_from_the_vector_cores_has_two_places_in_l1_where_it_asks_for_them() -> None:
    shapes = [
        sim.shape(s, d)
        for s, d in (((16, 1024), "float16"), ((1024, 128), "float16"), ((16, 128), "float32"))
    ]
    with sim.device("ascend910b3", compiler="ascendc"):
        one, two = (
            scaled_operands.time((1,), *shapes, 1024, M=16, N=128, B=64, TWICE=t, multibuffer=2)
            for t in (False, True)
        )
    copies = [{v.name: v.copies for v in run.buffers["L1"].peak} for run in (one, two)]
    assert [c["v in L1"] for c in copies] == [1, 2]
    assert two.cycles < one.cycles
