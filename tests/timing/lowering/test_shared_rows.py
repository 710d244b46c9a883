"""Two Vector cores share the rows of a program with products (compiler.md 5): half of each tile is done by each of them, and
the Cube core waits for both. So it is whoever makes the code; what the compiler leaves whole an author of Ascend C may cut.
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
COMPILER, BY_HAND = "triton-ascend", "ascendc"
authors = pytest.mark.parametrize("author", [COMPILER, BY_HAND])


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
def masked_rows(x, out, rows, M: tl.constexpr):
    m = tl.arange(0, M)
    there, at = (m < rows)[:, None], m[:, None] * M + tl.arange(0, M)[None, :]
    tl.store(out + at, tl.dot(tl.exp(tl.load(x + at, mask=there, other=0.0)), tl.load(x + at)), mask=there)


@sim.jit
def turned(x, out, M: tl.constexpr):
    m = tl.arange(0, M)
    at = m[:, None] * M + m[None, :]
    a = tl.load(x + at)
    tl.store(out + at, tl.exp(tl.trans(tl.exp(tl.dot(a, a)))))


@sim.jit
def weighted_keys(k, q, out, N: tl.constexpr, M: tl.constexpr, D: tl.constexpr, T: tl.constexpr):
    """Rows of q weighted for each row of k: the first tile for the Cube has the rows of q, what is stored those of k."""
    n, d = tl.arange(0, N), tl.arange(0, D)
    there, at = (n < N - 1)[:, None], n[:, None] * D + d[None, :]
    keys, acc = tl.load(k + at, mask=there, other=0.0), tl.zeros((N, D), tl.float32)
    for t in range(T):
        rows = tl.load(q + (t * M + tl.arange(0, M))[:, None] * D + d[None, :])
        p = tl.where((n < N - 1)[None, :], tl.exp(tl.dot(rows, tl.trans(keys))), 0.0)
        acc += tl.dot(tl.trans(p.to(tl.float16)), rows)
    tl.store(out + at, acc * 2.0, mask=there)


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
@authors
def test_memory_and_l2_move_the_same_bytes_as_with_one_vector_core_in_no_more_time(
    product, author, m, n, t, programs
):
    both, alone = (launch(product, m, 64, n, t, programs, alone=x, compiler=author) for x in (False, True))
    assert both.resources == pytest.approx(alone.resources)
    assert both.cycles <= alone.cycles


@given(m=st.sampled_from((16, 32, 64)), n=st.sampled_from((64, 96, 128)), t=st.integers(1, 4))
@settings(max_examples=8, deadline=None)
@authors
def test_a_vector_core_has_half_of_ub(author, m, n, t):
    """Where both have the copies that they ask for. All tiles have the rows; scratch of the compiler has whole blocks."""
    both, alone = (
        launch("ascend910b3", m, 64, n, t, alone=x, compiler=author).buffers["UB"].peak_bytes
        for x in (False, True)
    )
    assert alone // 2 <= both <= alone // 2 + 64 * (author == COMPILER)


@pytest.mark.parametrize("product", SPLIT)
@authors
def test_each_vector_core_has_about_half_of_the_work(product, author):
    """Each instruction has a start-up of its own; the bytes of a transfer are just the half."""
    both, alone = (launch(product, m=128, alone=x, compiler=author) for x in (False, True))
    assert "AIV1.V" not in alone.pipes
    for pipe in VECTOR:
        mine, others, whole = busy(both, "AIV", pipe), busy(both, "AIV1", pipe), busy(alone, "AIV", pipe)
        assert mine == pytest.approx(others, rel=0.05)
        assert 0.9 * whole < mine + others < 1.3 * whole, pipe
    assert both.cycles < 0.8 * alone.cycles


@given(m=st.sampled_from((16, 32, 64)), n=st.sampled_from((64, 128, 256)))
@settings(max_examples=6, deadline=None)
@authors
def test_a_core_computes_what_one_alone_computes_for_half_of_the_rows(author, m, n):
    both = launch("ascend910b3", 2 * m, 64, n, compiler=author)
    half = launch("ascend910b3", m, 64, n, alone=True, compiler=author)
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


@authors
def test_the_cube_waits_for_both_vector_cores_and_both_wait_for_the_cube(author):
    run = launch("ascend910b3", t=1, programs=1, timeline=1000, compiler=author)
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


@authors
def test_a_program_for_two_axes_that_are_summed_runs_on_one_vector_core_and_says_why(author):
    with sim.device("ascend910b3", compiler=author):
        run = both_sums.time(
            (1,), sim.shape(4096, "float16"), *(sim.shape(64, "float32") for _ in range(2)), M=64
        )
    assert "AIV1.V" not in run.launches[0].pipes
    (note,) = [n for n in run.launches[0].notes if "one Vector core works" in n]
    assert "no axis of the tile of 64 " in note


def square(kernel, *more, m=64, **device):
    with sim.device("ascend910b3", **device):
        return kernel.time(
            (1,), sim.shape(m * m, "float16"), sim.shape(m * m, "float32"), *more, M=m
        ).launches[0]


@pytest.mark.parametrize(
    ("kernel", "more", "why"),
    [
        (masked_rows, (40,), "is masked along the rows that they would share"),
        (turned, (), "transposes the last axis"),
    ],
)
def test_what_only_the_compiler_leaves_whole_is_cut_by_hand(kernel, more, why):
    whole, cut = (square(kernel, *more, compiler=x) for x in (COMPILER, BY_HAND))
    assert [n for n in whole.notes if "one Vector core works" in n and why in n]
    assert "AIV1.V" not in whole.pipes
    assert "AIV1.V" in cut.pipes
    assert not [n for n in cut.notes if "one Vector core works" in n]
    alone = square(kernel, *more, compiler=BY_HAND, bind_sub_block=False)
    assert cut.cycles < alone.cycles
    assert 2 * cut.buffers["UB"].peak_bytes == alone.buffers["UB"].peak_bytes


def test_by_hand_all_tiles_are_cut_along_the_axis_of_what_is_stored_where_that_of_the_first_does_not_do():
    tensors = (
        sim.shape((64, 32), "float16"),
        sim.shape((4 * 128, 32), "float16"),
        sim.shape((64, 32), "float32"),
    )
    with sim.device("ascend910b3", compiler=BY_HAND):
        both, alone = (
            weighted_keys.time((1,), *tensors, N=64, M=128, D=32, T=4, enable_auto_bind_sub_block=x).launches[
                0
            ]
            for x in (True, False)
        )
    assert busy(both, "AIV", "V") == pytest.approx(busy(both, "AIV1", "V"))
    assert busy(both, "AIV", "V") < 0.6 * busy(alone, "AIV", "V")
    assert both.buffers["UB"].peak_bytes < 0.6 * alone.buffers["UB"].peak_bytes


@pytest.mark.parametrize("product", [*SPLIT, *COUPLED])
@authors
def test_without_a_product_or_without_a_second_vector_core_nothing_is_shared(product, author):
    with sim.device(product, compiler=author):
        run = no_product.time((1,), sim.shape(64, "float32"), sim.shape(64, "float32"), M=64).launches[0]
    assert not any(p.startswith("AIV1") for p in run.pipes)
    assert not any("one Vector core works" in n for n in run.notes)
    if product in COUPLED:
        assert not any(p.startswith("AIV1") for p in launch(product, compiler=author).pipes)
    else:
        assert not any("one Vector core works" in n for n in launch(product, alone=True).notes)


@authors
def test_code_without_the_option_runs_on_one_vector_core_and_says_so(author):
    run = launch("ascend910b3", compiler=author, bind_sub_block=False)
    assert "AIV1.V" not in run.pipes
    assert any("one Vector core works: bind_sub_block" in n for n in run.notes)


@authors
def test_values_are_the_same_bits_on_one_and_on_two_vector_cores(author):
    rng = np.random.default_rng(0)
    x, y = (
        rng.standard_normal((3, 32, 32)).astype(np.float16),
        rng.standard_normal((32, 64)).astype(np.float16),
    )
    found = []
    for alone in (False, True):
        out = np.zeros((3, 32, 64), np.float32)
        with device_of("ascend910b3", alone, compiler=author):
            there_and_back[(1,)](x, y, out, M=32, K=32, N=64, T=3)
        found.append(out)
    assert np.array_equal(*found)
    assert found[0].any()


@authors
def test_what_a_vector_pipe_holds_up_is_told_for_both_cores_at_once(author):
    run = launch("ascend910b3", m=128, programs=1, explain=True, compiler=author)
    assert "AIV1.V" not in run.lifted
    assert run.lifted["AIV.V"] < 0.9 * run.time_us


@pytest.mark.drawn(2)
@pytest.mark.parametrize("programs", [1, 25])
@authors
def test_iterations_are_lowered_at_once_and_alike(programs, author):
    in_turn = {"workspace_copies": 1}  # stages run apart only where iterations are lowered at once
    assert check(lambda: launch("ascend910b3", t=40, programs=programs, compiler=author, **in_turn)) > 0
