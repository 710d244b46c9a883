"""sub_vec_id: the Vector part of a program runs on both cores beside its Cube core, the Cube's part once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import CompileError, OutOfBoundsError, UsageError
from ascendtile.simulator.language.extra.cann import extension as al


@sim.jit
def halves(a, b, c, hop, seen, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """The Cube makes a product, each Vector core takes its half of the rows; no flags, as the compiler would add them."""
    p = tl.program_id(0) + tl.num_programs(0) * tl.program_id(2)
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    x = tl.load(a + (p * M + i) * K + k[None, :])
    y = tl.load(b + k[:, None] * N + j)
    tl.store(hop + (p * M + i) * N + j, tl.dot(x, y))
    rows: tl.constexpr = M // al.sub_vec_num()
    r = tl.arange(0, M // al.sub_vec_num())[:, None] + al.sub_vec_id() * rows
    mine = (p * M + r) * N + j
    tl.store(c + mine, tl.exp(tl.load(hop + mine)))
    tl.atomic_add(seen + p, 1)


@sim.jit
def added_products(a, total, count, order, M: tl.constexpr):
    """Atomics: of the product once, of vector code by each Vector core."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    x = tl.load(a + i * M + j)
    tl.atomic_add(total + i * M + j, tl.dot(x, x))
    tl.atomic_add(count + al.sub_vec_id(), 1)
    at = tl.atomic_add(order, 1)
    tl.store(order + 1 + at, 1)


@sim.jit
def vector_only(x, out, B: tl.constexpr):
    """No product at all: two Vector cores a program all the same."""
    i = (tl.program_id(0) * 2 + al.sub_vec_id()) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i) * 2.0)


@sim.jit
def every_second(x, out, iterations, B: tl.constexpr):
    """Loops and branches that the two cores go through differently."""
    s = al.sub_vec_id()
    i = tl.program_id(0) * B + tl.arange(0, B)
    value = tl.load(x + i)
    total = tl.zeros((B,), tl.float32)
    for t in range(s, iterations, 2):
        total += value + t
    if s == 0:
        tl.atomic_add(out + i, total)
    else:
        tl.atomic_add(out + i, total * 10.0)


@sim.jit
def both_answer(a, b, out, hop, back, iterations, M: tl.constexpr):
    """Flags in both directions between one Cube core and two Vector cores, in loops of their own."""
    base = tl.program_id(0) * M * M
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    with al.scope(core_mode="cube"):
        y = tl.load(b + i * M + j)
        for _ in range(iterations):
            al.sync_block_wait("vector", "cube", 1)
            x = tl.load(back + base + i * M + j)
            tl.store(hop + base + i * M + j, tl.dot(x, y))
            al.sync_block_set("cube", "vector", 0)
    with al.scope(core_mode="vector"):
        rows = tl.arange(0, M // 2)[:, None] + al.sub_vec_id() * (M // 2)
        mine = base + rows * M + j
        tl.store(back + mine, tl.load(a + mine))
        al.sync_block_set("vector", "cube", 1)
        for _ in range(iterations):
            al.sync_block_wait("cube", "vector", 0)
            z = tl.load(hop + mine) * 0.5 + 1.0
            tl.store(back + mine, z)
            tl.atomic_add(out + mine, z)
            al.sync_block_set("vector", "cube", 1)


@sim.jit
def iterations_from_data(x, iterations, out, B: tl.constexpr):
    """How long each Vector core works is in memory."""
    s = al.sub_vec_id()
    i = (tl.program_id(0) * 2 + s) * B + tl.arange(0, B)
    value = tl.load(x + i)
    total = tl.zeros((B,), tl.float32)
    for _ in range(tl.load(iterations + tl.program_id(0) * 2 + s)):
        total += value
    tl.store(out + i, total)


def drawn(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return (rng.standard_normal(shape) * 0.3).astype(np.float32)


@given(
    grid=st.sampled_from([(1,), (3,), (30,), (3, 1, 2)]),
    m=st.sampled_from([2, 6, 32]),
    n=st.sampled_from([1, 5, 16]),
)
def test_each_vector_core_does_its_half(grid: tuple[int, ...], m: int, n: int) -> None:
    rng = np.random.default_rng(m * n)
    p, k = int(np.prod(grid)), 8
    a, b = drawn(rng, p * m, k), drawn(rng, k, n)
    c, hop, seen = (
        np.full((p * m, n), np.nan, np.float32),
        np.empty((p * m, n), np.float32),
        np.zeros(p, np.int32),
    )
    with sim.device("ascend910b3"):
        halves[grid](a, b, c, hop, seen, M=m, N=n, K=k)
    want = a.astype(np.float64) @ b
    assert np.allclose(hop, want, rtol=1e-5, atol=1e-5)
    assert np.allclose(c, np.exp(want), rtol=3e-5)
    assert (seen == 2).all()


@pytest.mark.parametrize("programs", [1, 5, 50])
def test_atomics_of_the_product_are_made_once(programs: int) -> None:
    m = 16
    a = drawn(np.random.default_rng(0), m, m)
    total, count, order = (
        np.zeros((m, m), np.float32),
        np.zeros(2, np.int32),
        np.zeros(2 * programs + 1, np.int32),
    )
    with sim.device("ascend910b3"):
        added_products[(programs,)](a, total, count, order, M=m)
    assert np.allclose(total, programs * (a.astype(np.float64) @ a), rtol=1e-4, atol=1e-4)
    assert count.tolist() == [programs, programs]
    assert order[0] == 2 * programs
    assert (order[1:] == 1).all()  # each core of each program drew a number of its own


@pytest.mark.parametrize("programs", [1, 3, 64])
def test_kernel_without_products(programs: int) -> None:
    b = 32
    x, out = drawn(np.random.default_rng(1), programs * 2 * b), np.zeros(programs * 2 * b, np.float32)
    with sim.device("ascend910b3"):
        run = vector_only[(programs,)](x, out, B=b)
    assert np.array_equal(out, x * 2)
    assert run.launches[0].cores == 20  # pairs of the 40 Vector cores


@pytest.mark.parametrize("iterations", [1, 2, 7])
def test_cores_that_go_different_ways(iterations: int) -> None:
    p, b = 4, 16
    x, out = drawn(np.random.default_rng(2), p * b), np.zeros(p * b, np.float32)
    with sim.device("ascend910b3"):
        every_second[(p,)](x, out, iterations, B=b)
    want = sum((x.astype(np.float64) + t) * (1 if t % 2 == 0 else 10) for t in range(iterations))
    assert np.allclose(out, want, rtol=1e-5)


def test_work_that_data_decides() -> None:
    p, b = 3, 16
    x, out = drawn(np.random.default_rng(5), 2 * p, b), np.zeros((2 * p, b), np.float32)
    iterations = np.array([1, 0, 4, 2, 3, 50], np.int32)
    with sim.device("ascend910b3"):
        run = iterations_from_data[(p,)](x, iterations, out, B=b)
        iterations[5] = 3
        shorter = iterations_from_data[(p,)](x, iterations, out.copy(), B=b)
    assert np.allclose(out, x * np.array([1, 0, 4, 2, 3, 50])[:, None], rtol=1e-5)
    assert run.launches[0].pipes["AIV1.V"].busy_cycles > shorter.launches[0].pipes["AIV1.V"].busy_cycles
    assert run.launches[0].pipes["AIV.V"].busy_cycles == shorter.launches[0].pipes["AIV.V"].busy_cycles


@pytest.mark.parametrize("iterations", [1, 3])
def test_one_cube_core_and_two_vector_cores_take_iterations(iterations: int) -> None:
    m, p = 16, 3
    rng = np.random.default_rng(3)
    a, b = drawn(rng, p, m, m), drawn(rng, m, m)
    out, hop, back = (np.zeros((p, m, m), np.float32) for _ in range(3))
    with sim.device("ascend910b3"):
        run = both_answer[(p,)](a, b, out, hop, back, iterations, M=m)
    x, want = a.astype(np.float64), 0.0
    for _ in range(iterations):
        x = x @ b * 0.5 + 1
        want = want + x
    assert np.allclose(out, want, rtol=1e-4)
    pipes = run.launches[0].pipes
    assert pipes["AIV.V"].busy_cycles == pytest.approx(pipes["AIV1.V"].busy_cycles)
    assert pipes["AIC.M"].busy_cycles > 0


def test_two_cores_share_the_work() -> None:
    """Half of the rows on each of two cores takes less time than all of them on one, and the Cube works no more."""
    m, k = 128, 16  # a product that takes less time than what the Vector cores do
    rng = np.random.default_rng(4)
    a, b = drawn(rng, m, k), drawn(rng, k, m)
    c, hop, seen = np.empty((m, m), np.float32), np.empty((m, m), np.float32), np.zeros(1, np.int32)
    with sim.device("ascend910b3", l2="warm"):  # so that the Cube's loads do not take longer than all else
        two = halves[(1,)](a, b, c, hop, seen, M=m, N=m, K=k)
        one = whole[(1,)](a, b, c, hop, M=m, N=m, K=k)
    assert two.cycles < one.cycles
    pipes, alone = two.launches[0].pipes, one.launches[0].pipes
    assert pipes["AIC.M"].busy_cycles == alone["AIC.M"].busy_cycles
    assert pipes["AIC.FIXP"].busy_cycles == alone["AIC.FIXP"].busy_cycles
    assert pipes["AIV.V"].busy_cycles < 0.6 * alone["AIV.V"].busy_cycles


@sim.jit
def whole(a, b, c, hop, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    y = tl.load(b + k[:, None] * N + j)
    tl.store(hop + i * N + j, tl.dot(tl.load(a + i * K + k[None, :]), y))
    tl.store(c + i * N + j, tl.exp(tl.load(hop + i * N + j)))


@sim.jit
def cube_depends(a, out, WHAT: tl.constexpr, M: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    s = al.sub_vec_id()
    if WHAT == "load":
        x = tl.load(a + s + i * M + j)
        tl.store(out + i * M + j, tl.dot(x, x))
    elif WHAT == "store":
        x = tl.load(a + i * M + j)
        tl.store(out + (i + s) * M + j, tl.dot(x, x))
    elif WHAT == "under":
        if s == 0:
            x = tl.load(a + i * M + j)
            tl.store(out + i * M + j, tl.dot(x, x))
    elif WHAT == "set":  # noqa: SIM102
        if s == 0:
            al.sync_block_set("vector", "cube", 0)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("load", "load: the cube core runs it once, so it must not depend on sub_vec_id"),
        ("store", "store: the cube core runs it once, so it must not depend on sub_vec_id"),
        ("under", "load: the cube core runs it once, so it must not depend on sub_vec_id"),
        ("set", "sync_block_set under a condition on sub_vec_id: both vector cores must pass it"),
    ],
)
def test_cube_part_that_depends_on_the_vector_core_is_refused(what: str, words: str) -> None:
    a = np.ones((17, 16), np.float32)
    with sim.device("ascend910b3"), pytest.raises(CompileError, match=words):
        cube_depends[(1,)](a, a.copy(), WHAT=what, M=16)


def test_error_names_the_program_not_the_lane() -> None:
    x = np.ones(5 * 32, np.float32)
    with sim.device("ascend910b3"), pytest.raises(OutOfBoundsError, match="program 2"):
        vector_only[(3,)](x, np.ones(192, np.float32), B=32)


@pytest.mark.parametrize("product", ["ascend910a", "ascend310p", "ascend310b"])
def test_products_with_one_vector_core_refuse(product: str) -> None:
    x = np.ones(64, np.float32)
    with sim.device(product), pytest.raises(UsageError, match=f"uses sub_vec_id.*{product} has 1"):
        vector_only[(1,)](x, x.copy(), B=32)
