"""Two Vector cores share the rows of a program with products (compiler.md 5): half of each tile is done by each of them, and
the Cube core waits for both.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl

from .test_loops import check

SPLIT = ("ascend910b3", "ascend910c")
COUPLED = ("ascend910a", "ascend310p")
VECTOR = ("V", "MTE2", "MTE3")


@sim.jit
def there_and_back(x, y, out, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr, T: tl.constexpr):
    """Vector work before and after a product: every tile of it has the rows."""
    m, k, n = tl.arange(0, M)[:, None], tl.arange(0, K), tl.arange(0, N)[None, :]
    first = tl.program_id(0) * T
    w = tl.load(y + k[:, None] * N + n)
    for t in range(first, first + T):
        a = tl.exp(tl.load(x + (t * M + m) * K + k[None, :]).to(tl.float32)).to(tl.float16)
        p = tl.exp(tl.dot(a, w))
        tl.store(out + (t * M + m) * N + n, p / tl.sum(p, axis=1)[:, None])


@sim.jit
def with_a_row(x, y, row, out, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr):
    """A row of the result's columns, which both cores need whole."""
    m, k, n = tl.arange(0, M)[:, None], tl.arange(0, K), tl.arange(0, N)
    a = tl.load(x + m * K + k[None, :])
    p = tl.dot(a, tl.load(y + k[:, None] * N + n[None, :]))
    tl.store(out + m * N + n[None, :], p * tl.exp(tl.load(row + n))[None, :])


@sim.jit
def and_one_number(x, row, out, kept, M: tl.constexpr):
    """A row that both cores need whole, and a number that one of them stores."""
    m, n = tl.arange(0, M)[:, None], tl.arange(0, M)
    r = tl.exp(tl.load(row + n))
    a, b = tl.load(x + m * M + n[None, :]), tl.load(x + n[:, None] * M + n[None, :])
    tl.store(out + m * M + n[None, :], tl.dot(a, b) * r[None, :])
    tl.store(kept, tl.sum(r))


@sim.jit
def both_sums(x, out, other, M: tl.constexpr):
    m = tl.arange(0, M)
    a = tl.load(x + m[:, None] * M + m[None, :])
    p = tl.dot(a, a)
    tl.store(out + m, tl.sum(p, axis=0))
    tl.store(other + m, tl.sum(p, axis=1))


@sim.jit
def no_product(x, out, M: tl.constexpr):
    m = tl.arange(0, M)
    tl.store(out + m, tl.exp(tl.load(x + m)))


def device_of(product, alone=False, **device):
    """alone: a Cube core has one Vector core, which does all the work."""
    cores = {"ascend910b3": 20, "ascend910c": 24}
    overrides = {"cores.aiv_per_aic": 1, "cores.vector_cores": cores[product]} if alone else None
    return sim.device(product, overrides=overrides, **device)


def launch(product, m=64, k=64, n=128, t=3, programs=2, **device):
    sizes = (programs * t * m * k, k * n)
    tensors = *(sim.shape(s, "float16") for s in sizes), sim.shape(programs * t * m * n, "float32")
    with device_of(product, **device):
        return there_and_back.time((programs,), *tensors, M=m, K=k, N=n, T=t).launches[0]


def busy(run, core, pipe):
    return run.pipes[f"{core}.{pipe}"].busy_cycles


@pytest.mark.parametrize("product", SPLIT)
@given(
    m=st.sampled_from((32, 64, 128)),
    n=st.sampled_from((64, 96, 128)),
    t=st.integers(1, 6),
    programs=st.integers(1, 30),
)
@settings(max_examples=8, deadline=None)
def test_memory_and_l2_move_the_same_bytes_as_with_one_vector_core(product, m, n, t, programs):
    both, alone = (launch(product, m, 64, n, t, programs, alone=x) for x in (False, True))
    assert both.resources == pytest.approx(alone.resources)


@pytest.mark.parametrize("product", SPLIT)
def test_each_vector_core_has_about_half_of_the_work(product):
    """Each instruction has a start-up of its own; the bytes of a transfer are just the half."""
    both, alone = (launch(product, m=128, alone=x) for x in (False, True))
    assert "AIV1.V" not in alone.pipes
    for pipe in VECTOR:
        mine, others, whole = busy(both, "AIV", pipe), busy(both, "AIV1", pipe), busy(alone, "AIV", pipe)
        assert mine == pytest.approx(others, rel=0.05)
        assert 0.9 * whole < mine + others < 1.3 * whole, pipe
    assert both.cycles < 0.8 * alone.cycles


@given(m=st.sampled_from((16, 32, 64)), n=st.sampled_from((64, 128, 256)))
@settings(max_examples=6, deadline=None)
def test_a_core_computes_what_one_alone_computes_for_half_of_the_rows(m, n):
    both = launch("ascend910b3", 2 * m, 64, n)
    half = launch("ascend910b3", m, 64, n, alone=True)
    assert busy(both, "AIV", "V") == pytest.approx(busy(half, "AIV", "V"))


def test_a_tile_without_the_axis_is_read_by_both_and_from_memory_once():
    m, n = 64, 256

    def resources(alone):
        shapes = (
            sim.shape(m * m, "float16"),
            sim.shape(m * n, "float16"),
            *(sim.shape(s, "float32") for s in (n, m * n)),
        )
        with device_of("ascend910b3", alone):
            return with_a_row.time((1,), *shapes, M=m, K=m, N=n).launches[0].resources

    both, alone = resources(alone=False), resources(alone=True)
    assert both["HBM"] == pytest.approx(alone["HBM"])
    assert both["L2"] == pytest.approx(alone["L2"] + 4 * n)


def test_the_second_vector_core_is_told_as_the_first_and_bytes_of_what_one_alone_stores_once():
    m = 64
    row, tile = sim.shape(m, "float32"), sim.shape(m * m, "float32")
    with sim.device("ascend910b3", timeline=1000):
        run = and_one_number.time((1,), sim.shape(m * m, "float16"), row, tile, row, M=m).launches[0]
    t = run.timeline
    for pipe in VECTOR:
        one, other = f"AIV.{pipe}", f"AIV1.{pipe}"
        assert run.pipes[one] == run.pipes[other]
        assert run.bounds[one] == run.bounds[other]
        for line in run.lines:
            assert line.busy.get(one) == line.busy.get(other)
            assert line.stalls.get(one) == line.stalls.get(other)
        rows = [
            [(t.start[k], t.end[k], t.line[k]) for k in np.flatnonzero(t.pipe == t.pipes.index(n))]
            for n in (one, other)
        ]
        assert rows[0] == rows[1]
        assert rows[0]
    moved = {n: x[0] for n, x in run.core_bytes.items()}
    half = 4 * m * m / 2
    assert moved["AIV.GM to UB"] == moved["AIV1.GM to UB"] == 4 * m + half
    assert moved["AIV.UB to GM"] > moved["AIV1.UB to GM"] == half
    assert run.roofs["UB to GM"].amount == moved["AIV.UB to GM"] + moved["AIV1.UB to GM"]


def test_the_cube_waits_for_both_vector_cores_and_both_wait_for_the_cube():
    run = launch("ascend910b3", t=1, programs=1, timeline=1000)
    t = run.timeline

    def times(pipe):
        spans = [
            (float(t.start[k]), float(t.end[k])) for k in range(len(t.start)) if t.pipes[t.pipe[k]] == pipe
        ]
        return [(start, end) for start, end in spans if start < end]

    products = [start for start, _ in times("AIC.M")]
    sent = [times(f"{core}.MTE3")[0] for core in ("AIV", "AIV1")]  # to the Cube
    read = [times(f"{core}.MTE2")[-1] for core in ("AIV", "AIV1")]  # the product
    assert max(end for _, end in sent) < min(products)
    assert max(products) < min(start for start, _ in read)


def test_a_program_for_two_axes_that_are_summed_runs_on_one_vector_core_and_says_why():
    with sim.device("ascend910b3"):
        run = both_sums.time(
            (1,), sim.shape(4096, "float16"), *(sim.shape(64, "float32") for _ in range(2)), M=64
        )
    assert "AIV1.V" not in run.launches[0].pipes
    (note,) = [n for n in run.launches[0].notes if "one Vector core works" in n]
    assert "no axis of the tile of 64 " in note


@pytest.mark.parametrize("product", [*SPLIT, *COUPLED])
def test_without_a_product_or_without_a_second_vector_core_nothing_is_shared(product):
    with sim.device(product):
        run = no_product.time((1,), sim.shape(64, "float32"), sim.shape(64, "float32"), M=64).launches[0]
    assert not any(p.startswith("AIV1") for p in run.pipes)
    assert not any("one Vector core works" in n for n in run.notes)
    if product in COUPLED:
        assert not any(p.startswith("AIV1") for p in launch(product).pipes)


@pytest.mark.parametrize("how", [{"compiler": "ascendc"}, {"bind_sub_block": False}])
def test_code_written_by_hand_and_code_without_the_option_run_on_one_vector_core(how):
    assert "AIV1.V" not in launch("ascend910b3", **how).pipes


def test_values_are_the_same_bits_on_one_and_on_two_vector_cores():
    rng = np.random.default_rng(0)
    x, y = (
        rng.standard_normal((3, 32, 32)).astype(np.float16),
        rng.standard_normal((32, 64)).astype(np.float16),
    )
    found = []
    for alone in (False, True):
        out = np.zeros((3, 32, 64), np.float32)
        with device_of("ascend910b3", alone):
            there_and_back[(1,)](x, y, out, M=32, K=32, N=64, T=3)
        found.append(out)
    assert np.array_equal(*found)
    assert found[0].any()


def test_what_a_vector_pipe_holds_up_is_told_for_both_cores_at_once():
    run = launch("ascend910b3", m=128, programs=1, explain=True)
    assert "AIV1.V" not in run.lifted
    assert run.lifted["AIV.V"] < 0.9 * run.time_us


@pytest.mark.parametrize("programs", [1, 25])
def test_iterations_are_lowered_at_once_and_alike(programs):
    assert check(lambda: launch("ascend910b3", t=40, programs=programs)) > 0
