"""Cube and Vector work of one kernel: side by side where the cores are apart, on shared pipes where they are not; and how
many copies of a tile let iterations overlap.
"""

from __future__ import annotations

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl

pytestmark = pytest.mark.usefixtures("by_hand")

SPLIT = ("ascend910b3", "ascend910c")
COUPLED = ("ascend910a", "ascend310p", "ascend310b")
M, N = 64, 8192


@sim.jit
def both(
    x, y, out, other, iterations, CUBE: tl.constexpr, VECTOR: tl.constexpr, M: tl.constexpr, N: tl.constexpr
):
    """A product, and work on another tile that has nothing to do with it, in each iteration."""
    at = tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :]
    flat = tl.arange(0, N)
    for t in range(iterations):
        if CUBE:
            u = tl.load(x + t * M * M + at)
            tl.store(out + t * M * M + at, tl.dot(u, u))
        if VECTOR:
            v = tl.load(y + t * N + flat)
            tl.store(other + t * N + flat, tl.exp(tl.exp(v)))


@sim.jit
def product_then_exp(x, out, iterations, M: tl.constexpr):
    at = tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :]
    for t in range(iterations):
        u = tl.load(x + t * M * M + at)
        tl.store(out + t * M * M + at, tl.exp(tl.dot(u, u) * 0.01))


@sim.jit
def sums(x, y, out, K, STAGES: tl.constexpr, M: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, M)
    acc = tl.zeros((M, M), tl.float32)
    for k in tl.range(0, K, M, num_stages=STAGES):
        u = tl.load(x + i[:, None] * K + (k + j)[None, :])
        v = tl.load(y + (k + i)[:, None] * M + j[None, :])
        acc = tl.dot(u, v, acc)
    tl.store(out + i[:, None] * M + j[None, :], acc)


def timed(product, cube, vector, iterations=12):
    shapes = (
        sim.shape(iterations * M * M, "float16"),
        sim.shape(iterations * N, "float32"),
        sim.shape(iterations * M * M, "float32"),
        sim.shape(iterations * N, "float32"),
    )
    with sim.device(product, bind_sub_block=False):
        return both.time((1,), *shapes, iterations, CUBE=cube, VECTOR=vector, M=M, N=N)


@pytest.mark.parametrize("product", SPLIT)
def test_cores_that_are_apart_take_the_time_of_the_longer_one(product):
    """One Vector core beside the Cube, as where there is no product."""
    cube, vector, mixed = (timed(product, *w).cycles for w in ((True, False), (False, True), (True, True)))
    assert 0.999 * max(cube, vector) <= mixed  # the scalar unit has less to do beside the other core
    assert mixed < max(cube, vector) + 0.25 * min(cube, vector)


@pytest.mark.parametrize("product", COUPLED)
def test_a_core_that_is_both_shares_the_pipes_that_load_and_store(product):
    cube, vector, mixed = (timed(product, *w) for w in ((True, False), (False, True), (True, True)))
    for pipe in ("AICORE.MTE2", "AICORE.MTE3", "AICORE.V"):  # V also empties L0C
        alone = [r.pipes[pipe].busy_cycles for r in (cube, vector)]
        assert mixed.pipes[pipe].busy_cycles == pytest.approx(sum(alone), rel=0.02)
        assert mixed.cycles >= sum(alone)
    assert mixed.cycles < cube.cycles + vector.cycles  # products run beside vector work
    assert mixed.pipes["AICORE.M"].busy_cycles == pytest.approx(cube.pipes["AICORE.M"].busy_cycles)


@pytest.mark.drawn(3)
@pytest.mark.parametrize(
    ("product", "shared"), [*((p, x) for p in SPLIT for x in (True, False)), *((p, False) for p in COUPLED)]
)
def test_the_product_of_one_iteration_runs_beside_the_vector_work_of_another(product, shared):
    """Two copies: while one iteration's product is worked on, the next one is made. One copy: later, never earlier."""
    iterations = 8
    shapes = (sim.shape(iterations * M * M, "float16"), sim.shape(iterations * M * M, "float32"))
    times = {}
    for copies in (1, 2):
        how = {"multibuffer": copies, "workspace_copies": copies, "bind_sub_block": shared}
        with sim.device(product, timeline=10_000, **how):
            run = product_then_exp.time((1,), *shapes, iterations, M=M)
        times[copies] = run.cycles
    t = run.launches[0].timeline
    spans = {}
    for k in range(len(t.start)):
        spans.setdefault(t.pipes[t.pipe[k]].partition(".")[2], []).append(
            (float(t.start[k]), float(t.end[k]))
        )
    if product in SPLIT:  # on the others the loads take longest, and products wait for them
        work = "MTE3" if shared else "V"  # of two Vector cores V is done before the next product is
        products = spans["M"] + spans["FIXP"]  # made, and on their way out of L0C
        assert any(a < d and c < b for a, b in products for c, d in spans[work])
    moved = spans["MTE2"] + spans.get("FIXP", [])
    assert any(a < d and c < b for a, b in moved for c, d in spans["V"])
    assert times[2] < 0.9 * times[1]


def test_copies_in_the_workspace_let_the_cube_core_run_ahead():
    """One place in global memory: the next product waits until the last one is read, however many copies UB has."""
    iterations = 12
    shapes = (sim.shape(iterations * M * M, "float16"), sim.shape(iterations * M * M, "float32"))

    def cycles(copies, workspace):
        with sim.device("ascend910b3", multibuffer=copies):
            return product_then_exp.time(
                (1,), *shapes, iterations, M=M, set_workspace_multibuffer=workspace
            ).cycles

    assert cycles(2, 1) == pytest.approx(cycles(1, 1), rel=0.05)
    assert cycles(2, 2) < 0.75 * cycles(2, 1)
    assert cycles(2, 4) <= cycles(2, 2)
    with pytest.raises(
        sim.UsageError, match="set_workspace_multibuffer must be a number of copies from 1 to 16, got 0"
    ):
        cycles(2, 0)


def test_what_was_sent_may_be_overwritten_before_the_other_core_knows():
    """The next Mmad waits for the fixpipe to have read L0C, not for the flag that crosses to the Vector core."""
    iterations, far = 4, 5000
    shapes = (sim.shape(iterations * M * M, "float16"), sim.shape(iterations * M * M, "float32"))
    with sim.device("ascend910b3", timeline=10_000, overrides={"sync.cross_core_model_cycles": far}):
        t = product_then_exp.time((1,), *shapes, iterations, M=M).launches[0].timeline
    first = {"AIC.M": [], "AIC.FIXP": []}
    for k in range(len(t.start)):
        name = t.pipes[t.pipe[k]]
        if name in first and t.end[k] > t.start[k]:
            first[name].append((float(t.start[k]), float(t.end[k])))
    assert first["AIC.M"][1][0] < first["AIC.FIXP"][0][1] + 50


def test_values_do_not_depend_on_how_far_iterations_overlap():
    iterations = 3
    x = np.random.default_rng(1).standard_normal(iterations * 16 * 16).astype(np.float16)
    outs = []
    for product, copies in (("ascend910b3", 1), ("ascend910b3", 4), ("ascend310p", 2)):
        out = np.empty(x.size, np.float32)
        with sim.device(product, multibuffer=copies, numerics={"fp32_subnormals": "keep"}):
            product_then_exp[(1,)](x, out, iterations, M=16)
        outs.append(out)
    assert (outs[0] == outs[1]).all()
    squares = np.stack([m @ m for m in x.astype(np.float64).reshape(iterations, 16, 16)])
    for out in outs:
        assert np.allclose(out.reshape(iterations, 16, 16), np.exp(squares * 0.01), rtol=1e-3)


@pytest.mark.parametrize("product", ["ascend910b3", "ascend310p"])
def test_stages_of_a_loop_are_copies_of_its_tiles(product):
    """tl.range(num_stages=n) is multibuffer=n for that loop: the same bytes of L1, the same time; deeper is no slower."""
    k = 1024
    shapes = (sim.shape((M, k), "float16"), sim.shape((k, M), "float16"), sim.shape((M, M), "float32"))
    found = {}
    for n in (1, 2, 3, 4):
        with sim.device(product):
            staged = sums.time((1,), *shapes, k, STAGES=n, M=M)
        with sim.device(product, multibuffer=n):
            buffered = sums.time((1,), *shapes, k, STAGES=0, M=M)
        assert staged.cycles == buffered.cycles
        assert staged.buffers["L1"].peak_bytes == buffered.buffers["L1"].peak_bytes == 2 * n * M * M * 2
        assert {v.copies for v in staged.buffers["L1"].peak} == {n}
        found[n] = staged.cycles
    assert found[2] < 0.9 * found[1]
    assert found[4] <= found[3] <= found[2]
