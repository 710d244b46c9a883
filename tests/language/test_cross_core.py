"""Flags between Cube and Vector cores: values of kernels whose cores wait for each other, hangs, refused arguments."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import CompileError, RunError, UsageError
from ascendtile.simulator.language.extra.cann import extension as al

from ..golden.kernels import ping_pong

COUPLED = ("ascend910a", "ascend310p", "ascend310b")
SPLIT = ("ascend910b1", "ascend910b2", "ascend910b3", "ascend910b4", "ascend910c")
PIPE = al.PIPE


@sim.jit
def exp_of_product(a, b, c, hop, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """The product goes through memory; the flag stands between, without scopes."""
    p = tl.program_id(0)
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    x = tl.load(a + (p * M + i) * K + k[None, :])
    y = tl.load(b + k[:, None] * N + j)
    here = (p * M + i) * N + j
    tl.store(hop + here, tl.dot(x, y))
    al.sync_block_set("cube", "vector", 5, PIPE.PIPE_FIX, PIPE.PIPE_MTE2)
    al.sync_block_wait("cube", "vector", 5, PIPE.PIPE_FIX, PIPE.PIPE_MTE2)
    tl.store(c + here, tl.exp(tl.load(hop + here)))


@sim.jit
def tile_across(a, b, out, iterations, M: tl.constexpr):
    """A tile of the Cube's scope is used in the Vector's: it is sent, whatever the flags do beside it."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    at = tl.program_id(0) * M * M + i * M + j
    total = tl.zeros((M, M), tl.float32)
    for t in range(iterations):
        with al.scope(core_mode="cube"):
            al.sync_block_wait("vector", "cube", 2)
            product = tl.dot(tl.load(a + at), tl.load(b + i * M + j))
        with al.scope(core_mode="vector"):
            al.sync_block_set("vector", "cube", 2)
            total += tl.abs(product) + t
    tl.store(out + at, total)


def drawn(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return (rng.standard_normal(shape) * 0.3).astype(np.float32)


@given(
    p=st.integers(1, 5),
    m=st.sampled_from([1, 3, 16, 17]),
    n=st.sampled_from([1, 8, 20]),
    k=st.integers(1, 33),
)
def test_flag_between_product_and_vector_work_keeps_the_values(p: int, m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(m * 100 + n)
    a, b = drawn(rng, p * m, k), drawn(rng, k, n)
    c, hop = np.full((p * m, n), np.nan, np.float32), np.full((p * m, n), np.nan, np.float32)
    with sim.device("ascend910b3"):
        exp_of_product[(p,)](a, b, c, hop, M=m, N=n, K=k)
    want = a.astype(np.float64) @ b
    assert np.allclose(hop, want, rtol=1e-5, atol=1e-5)
    assert np.allclose(c, np.exp(want), rtol=3e-5)


def ping_pong_by_hand(a: np.ndarray, b: np.ndarray, iterations: int, m: int) -> np.ndarray:
    x, total = a.astype(np.float64).reshape(-1, m, m), 0.0
    for _ in range(iterations):
        x = x @ b * 0.5 + 1
        total = total + x
    return total


@pytest.mark.parametrize("iterations", [1, 2, 17])
def test_loops_of_both_cores_take_iterations(iterations: int) -> None:
    """In the source the Cube's whole loop stands before the Vector's: read from top to bottom it would never go on."""
    m, p = 16, 3
    rng = np.random.default_rng(1)
    a, b = drawn(rng, p, m, m), drawn(rng, m, m) * 0.3
    out, hop, back = (np.full((p, m, m), np.nan, np.float32) for _ in range(3))
    with sim.device("ascend910b1"):
        run = ping_pong[(p,)](a, b, out, hop, back, iterations, M=m)
    assert np.allclose(out, ping_pong_by_hand(a, b, iterations, m), rtol=1e-4)
    assert run.cycles > iterations * 2 * 220  # both flags of an iteration travel one after another


def test_values_of_waiting_cores_do_not_need_time() -> None:
    m = 16
    rng = np.random.default_rng(2)
    a, b = drawn(rng, 2, m, m), drawn(rng, m, m)
    out, hop, back = (np.empty((2, m, m), np.float32) for _ in range(3))
    with sim.device("ascend910b3", time=False):
        ping_pong[(2,)](a, b, out, hop, back, 3, M=m)
    assert np.allclose(out, ping_pong_by_hand(a, b, 3, m), rtol=1e-4)


def test_time_without_values_is_the_same() -> None:
    m = 16
    a, b = np.ones((2, m, m), np.float32), np.ones((m, m), np.float32)
    out, hop, back = (np.empty((2, m, m), np.float32) for _ in range(3))
    shapes = [sim.shape(x.shape, "float32") for x in (a, b, out, hop, back)]
    with sim.device("ascend910b3"):
        run = ping_pong[(2,)](a, b, out, hop, back, 3, M=m)
        alone = ping_pong.time((2,), *shapes, 3, M=m)
    assert run.cycles == alone.cycles


def test_tile_of_one_scope_is_used_in_the_other() -> None:
    m = 16
    rng = np.random.default_rng(3)
    a, b, out = drawn(rng, 2, m, m), drawn(rng, m, m), np.empty((2, m, m), np.float32)
    with sim.device("ascend910b3"):
        tile_across[(2,)](a, b, out, 3, M=m)
    assert np.allclose(out, 3 * np.abs(a.astype(np.float64) @ b) + 3, rtol=1e-5)


@sim.jit
def event_of_a_table(table, out, N: tl.constexpr):
    """The number of the flag is loaded."""
    event = tl.load(table + tl.program_id(0))
    with al.scope(core_mode="vector"):
        al.sync_block_wait("cube", "vector", event)
        i = tl.arange(0, N)
        tl.store(out + tl.program_id(0) * N + i, (i + event).to(tl.float32))
    with al.scope(core_mode="cube"):
        al.sync_block_set("cube", "vector", event)


def test_event_that_is_data() -> None:
    table, out = np.array([3, 15, 0], np.int32), np.zeros((3, 8), np.float32)
    with sim.device("ascend910b3"):
        event_of_a_table[(3,)](table, out, N=8)
    assert np.array_equal(out, np.arange(8) + table[:, None])


def test_event_that_is_data_and_out_of_range_is_an_error() -> None:
    table, out = np.array([16], np.int32), np.zeros((1, 8), np.float32)
    with sim.device("ascend910b3"), pytest.raises(RunError, match="event_id is 16, it must be 0 to 15"):
        event_of_a_table[(1,)](table, out, N=8)


# -- hangs ---------------------------------------------------------------------------------------------------------------


@sim.jit
def nobody_sets(out, N: tl.constexpr):
    i = tl.arange(0, N)
    al.sync_block_wait("cube", "vector", 7)
    tl.store(out + i, i.to(tl.float32))


@sim.jit
def each_waits(out, N: tl.constexpr):
    i = tl.arange(0, N)
    with al.scope(core_mode="cube"):
        al.sync_block_wait("vector", "cube", 1)
        al.sync_block_set("cube", "vector", 0)
    with al.scope(core_mode="vector"):
        al.sync_block_wait("cube", "vector", 0)
        al.sync_block_set("vector", "cube", 1)
        tl.store(out + i, i.to(tl.float32))


@sim.jit
def one_iteration_too_many(a, out, M: tl.constexpr):
    """The Cube sets twice, the Vector core waits three times."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    x = tl.load(a + i * M + j)
    for _ in range(2):
        tl.store(out + i * M + j, tl.dot(x, x))
        al.sync_block_set("cube", "vector", 4)
    for _ in range(3):
        al.sync_block_wait("cube", "vector", 4)


def line_of(kernel: object, text: str) -> int:
    source = kernel.source  # type: ignore[attr-defined]
    return next(n for n, line in enumerate(source.lines, source.first_line) if text in line)


def test_wait_that_nobody_ends_names_core_line_and_event() -> None:
    out = np.full(8, -1, np.float32)
    with sim.device("ascend910b3"), pytest.raises(RunError) as e:
        nobody_sets[(2,)](out, N=8)
    text = str(e.value)
    assert "hang in program 0" in text
    assert (
        f"the vector core waits on pipe MTE2 at {__file__}:{line_of(nobody_sets, 'sync_block_wait')} for event 7"
        in text
    )
    assert (
        "which the cube core does not set: no sync_block_set of it is in the kernel; the cube core has ended"
        in text
    )
    assert "Nobody can go on: let the cube core set the event, as often as it is waited for" in text
    assert (out == -1).all()  # it is found before anything is written


@pytest.mark.parametrize("values", [True, False])
def test_cores_that_wait_for_each_other_are_both_named(values: bool) -> None:
    out = np.full(8, -1, np.float32)
    with sim.device("ascend910b3", time=not values), pytest.raises(RunError) as e:
        each_waits[(1,)](out, N=8)
    text = str(e.value)
    assert (
        f"the cube core waits on pipe MTE2 at {__file__}:{line_of(each_waits, 'wait(' + chr(34) + 'vector')} for event 1"
        in text
    )
    assert (
        f"the vector core waits on pipe MTE2 at {__file__}:{line_of(each_waits, 'wait(' + chr(34) + 'cube')} for event 0"
        in text
    )
    for core, what, pipe in (
        ("vector", "set(" + chr(34) + "vector", "MTE3"),
        ("cube", "set(" + chr(34) + "cube", "FIX"),
    ):
        where = f"{__file__}:{line_of(each_waits, what)}"
        assert f"which the {core} core does not set yet: that is on pipe {pipe} at {where}" in text
        assert f"{where}:9: event" in text  # both sides are shown, with carets
    assert "let one of the two cores set its flag before it waits" in text


def test_time_alone_finds_the_hang_too() -> None:
    with sim.device("ascend910b3"), pytest.raises(RunError, match="hang in program 0"):
        each_waits.time((1,), sim.shape(8, "float32"), N=8)


def test_a_set_ends_one_wait_only() -> None:
    a, out = np.ones((16, 16), np.float32), np.zeros((16, 16), np.float32)
    with (
        sim.device("ascend910b3"),
        pytest.raises(
            RunError, match="event 4, which the cube core does not set again: it did so 2 times, on pipe FIX"
        ),
    ):
        one_iteration_too_many[(1,)](a, out, M=16)


@sim.jit
def wrong_event(a, out, M: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    x = tl.load(a + i * M + j)
    tl.store(out + i * M + j, tl.dot(x, x))
    al.sync_block_set("cube", "vector", 1)
    al.sync_block_wait("cube", "vector", 0)


def test_a_wait_for_another_event_than_is_set_names_both() -> None:
    a, out = np.ones((16, 16), np.float32), np.zeros((16, 16), np.float32)
    with sim.device("ascend910b3"), pytest.raises(RunError) as e:
        wrong_event[(1,)](a, out, M=16)
    line = line_of(wrong_event, "sync_block_set")
    assert f"no sync_block_set of it is in the kernel, only of event 1 at {__file__}:{line}" in str(e.value)


@sim.jit
def sets_that_nobody_takes(a, out, iterations, M: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    x = tl.load(a + i * M + j)
    for _ in range(iterations):
        tl.store(out + i * M + j, tl.dot(x, x))
        al.sync_block_set("cube", "vector", 3)
    al.sync_block_wait("cube", "vector", 3)


@pytest.mark.parametrize("values", [True, False])
def test_a_flag_that_is_set_more_often_than_its_counter_holds_is_an_error(values: bool) -> None:
    a, out = np.ones((16, 16), np.float32), np.zeros((16, 16), np.float32)
    with sim.device("ascend910b3", values=values, time=not values):
        sets_that_nobody_takes[(1,)](a, out, 16, M=16)
        with pytest.raises(
            RunError,
            match=r"sets event 3 16 times more often than the vector core waits for it, and .* holds 15",
        ):
            sets_that_nobody_takes[(1,)](a, out, 17, M=16)


# -- refused -------------------------------------------------------------------------------------------------------------


@sim.jit
def any_flag(out, SENDER: tl.constexpr, RECEIVER: tl.constexpr, EVENT: tl.constexpr):
    al.sync_block_set(SENDER, RECEIVER, EVENT)
    al.sync_block_wait(SENDER, RECEIVER, EVENT)
    tl.store(out, 1.0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("cube", "vector", 16), "event_id must be 0 to 15, got int 16"),
        (("cube", "vector", -1), "event_id must be 0 to 15, got int -1"),
        (("vector", "cube", 1.0), "event_id must be 0 to 15, got float 1.0"),
        (("cube", "cube", 0), "sender and receiver are both 'cube'"),
        (("vector", "vector", 0), "sender and receiver are both 'vector'"),
        (("aiv", "cube", 0), "sender must be one of cube, vector, got str 'aiv'"),
    ],
)
def test_arguments_that_flags_refuse(arguments: tuple, words: str) -> None:
    with sim.device("ascend910b3"), pytest.raises(CompileError, match=words):
        any_flag[(1,)](np.zeros(1, np.float32), *arguments)


@pytest.mark.parametrize("event", range(16))
def test_every_event_works(event: int) -> None:
    out = np.zeros(1, np.float32)
    with sim.device("ascend910b3"):
        any_flag[(1,)](out, "vector", "cube", event)
    assert out[0] == 1


@pytest.mark.parametrize("product", COUPLED)
def test_products_with_coupled_cores_refuse(product: str) -> None:
    out = np.zeros(1, np.float32)
    with sim.device(product), pytest.raises(UsageError, match=f"uses sync_block_set.*{product} has 1"):
        any_flag[(1,)](out, "cube", "vector", 0)
    assert out[0] == 0


@pytest.mark.parametrize("product", SPLIT)
def test_products_with_split_cores_take_it(product: str) -> None:
    out = np.zeros(1, np.float32)
    with sim.device(product):
        any_flag[(1,)](out, "cube", "vector", 0)
    assert out[0] == 1


@sim.jit
def wrong_core(a, out, WHAT: tl.constexpr, M: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    x = tl.load(a + i * M + j)
    if WHAT == "dot":
        with al.scope(core_mode="vector"):
            tl.store(out + i * M + j, tl.dot(x, x))
    elif WHAT == "add":
        with al.scope(core_mode="cube"):
            tl.store(out + i * M + j, x + x)
    elif WHAT == "set":
        with al.scope(core_mode="vector"):
            al.sync_block_set("cube", "vector", 0)
    elif WHAT == "pipe":
        al.sync_block_set("vector", "cube", 0, PIPE.PIPE_M, PIPE.PIPE_MTE2)
    elif WHAT == "mode":
        with al.scope(core_mode="scalar"):
            pass
    else:
        with al.scope(core_mode="cube"), al.scope(core_mode="vector"):  # the innermost counts
            tl.store(out + i * M + j, x + x)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("dot", "dot: the vector core cannot multiply matrices"),
        ("add", "add: the cube core has no vector unit"),
        ("set", "the cube core executes it, but it stands in scope"),
        ("pipe", "sender_pipe is PIPE_M, but the vector core has PIPE_S, PIPE_V"),
        ("mode", "core_mode must be one of cube, vector, got str 'scalar'"),
    ],
)
def test_scope_that_a_core_cannot_serve(what: str, words: str) -> None:
    a = np.ones((16, 16), np.float32)
    with sim.device("ascend910b3"), pytest.raises(CompileError, match=words):
        wrong_core[(1,)](a, a.copy(), WHAT=what, M=16)


def test_the_innermost_scope_counts_and_names_leave_it() -> None:
    a, out = np.ones((16, 16), np.float32), np.zeros((16, 16), np.float32)
    with sim.device("ascend910b3"):
        wrong_core[(1,)](a, out, WHAT="inner", M=16)
    assert (out == 2).all()
