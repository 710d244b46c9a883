"""Time of flags and barriers: a wait holds its pipe until the set has arrived, to the cycle, and costs nothing later."""

from __future__ import annotations

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import RunError
from ascendtile.simulator.language.extra.cann import extension as al
from ascendtile.simulator.record.run import Run

PIPE = al.PIPE
LATENCY = "sync.cross_core_model_cycles"
PRODUCT = "ascend910b3"
MET = sim.load_product(PRODUCT).number("sync.barrier_cycles")


@sim.jit
def hand_over(a, c, hop, FROM: tl.constexpr, TO: tl.constexpr, M: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    at = i * M + j
    x = tl.load(a + at)
    tl.store(hop + at, tl.dot(x, x))
    al.sync_block_set("cube", "vector", 0, FROM, TO)
    al.sync_block_wait("cube", "vector", 0, FROM, TO)
    y = tl.load(c + at)
    tl.store(c + at, y * 2.0)


@sim.jit
def two_flags(a, c, hop, M: tl.constexpr):
    """The Cube sets the same flag twice before the Vector core is asked to wait for the first one."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    at = i * M + j
    x = tl.load(a + at)
    tl.store(hop + at, tl.dot(x, x))
    al.sync_block_set("cube", "vector", 0)
    z = tl.load(a + M * M + at)
    tl.store(hop + M * M + at, tl.dot(z, z))
    al.sync_block_set("cube", "vector", 0)
    al.sync_block_wait("cube", "vector", 0)
    y = tl.load(hop + at)
    al.sync_block_wait("cube", "vector", 0)
    w = tl.load(hop + M * M + at)
    tl.store(c + at, y + w)


@sim.jit
def late_wait(a, c, hop, iterations, M: tl.constexpr):
    """The Vector core works for long before it asks for the flag."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    at = i * M + j
    x = tl.load(a + at)
    tl.store(hop + at, tl.dot(x, x))
    al.sync_block_set("cube", "vector", 0)
    y = tl.load(c + at)
    for _ in range(iterations):
        y = tl.exp(y) * 0.5
    al.sync_block_wait("cube", "vector", 0, PIPE.PIPE_FIX, PIPE.PIPE_V)
    tl.store(c + at, y + 1.0)


@sim.jit
def neighbours(a, out, MODE: tl.constexpr, B: tl.constexpr):
    """After the barrier each program reads what the next one has written before it."""
    p, n = tl.program_id(0), tl.num_programs(0)
    i = tl.arange(0, B)
    tl.store(a + p * B + i, (i + p * B).to(tl.float32))
    al.sync_block_all(MODE, 8)
    tl.store(out + p * B + i, tl.load(a + (p + 1) % n * B + i))


@sim.jit
def uneven(a, out, c, d, MODE: tl.constexpr, B: tl.constexpr, SHARED: tl.constexpr, CUBE: tl.constexpr):
    """Programs with more and more iterations, then a barrier, then all read what the last one has written."""
    p, n = tl.program_id(0), tl.num_programs(0)
    i = tl.arange(0, B)
    x = tl.zeros((B,), tl.float32) + p
    for _ in range(p * 50):
        x = tl.exp(x - x) * p
    if CUBE:
        j = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
        y = tl.load(c + j)
        tl.store(d + j, tl.dot(y, y))
    tl.store(a + p * B + i, x)
    al.sync_block_all(MODE, 8)
    for _ in al.parallel(0, 2, bind_sub_block=SHARED):
        tl.store(out + p * B + i, tl.load(a + (n - 1) * B + i))


@sim.jit
def some_reach_it(a, B: tl.constexpr):
    if tl.program_id(0) < 2:
        al.sync_block_all("all_vector", 8)
    tl.store(a + tl.program_id(0) * B + tl.arange(0, B), 1.0)


def run_of(kernel: object, *args: object, latency: float | None = None, **constants: object) -> Run:
    changed = {} if latency is None else {LATENCY: latency}
    with sim.device(PRODUCT, timeline=10_000, overrides=changed):
        return kernel[(1,)](*args, **constants)  # type: ignore[index]


def tensors(m: int) -> tuple[np.ndarray, ...]:
    return np.ones((2, m, m), np.float32), np.ones((m, m), np.float32), np.empty((2, m, m), np.float32)


def rows(run: Run, pipe: str, line: str) -> list[tuple[float, float]]:
    """(start, done) of the records of a pipe that lines with this text made."""
    launch = run.launches[0]
    t = launch.timeline
    assert t is not None
    return [
        (float(t.start[k]), float(t.done[k]))
        for k in range(len(t.start))
        if t.pipes[t.pipe[k]] == pipe and line in launch.lines[t.line[k]].source
    ]


def flag_cycles() -> float:
    from ascendtile.simulator.products import load_product

    product = load_product(PRODUCT)
    return product.number("sync.set_flag_cycles") + product.number("sync.wait_flag_cycles")


@pytest.mark.parametrize("latency", [0.0, 1.0, 220.0, 1000.0])
def test_load_behind_a_wait_starts_when_the_flag_arrives(latency: float) -> None:
    """Written to the end by the fixpipe, the way to the other core, the flag of the pipe: not a cycle more or less."""
    run = run_of(hand_over, *tensors(16), PIPE.PIPE_FIX, PIPE.PIPE_MTE2, latency=latency, M=16)
    written = max(done for _, done in rows(run, "AIC.FIXP", "tl.store(hop"))
    start = min(s for s, _ in rows(run, "AIV.MTE2", "tl.load(c"))
    assert start == pytest.approx(written + latency + flag_cycles(), abs=1e-6)


@pytest.mark.parametrize("latency", [220.0, 1000.0])
def test_a_wait_for_a_flag_is_a_gap_of_its_own_kind(latency: float) -> None:
    """MTE2 is free from the start; the flag comes `latency` (and the pipes' flag) after the set, which the wait names."""
    launch = run_of(hand_over, *tensors(16), PIPE.PIPE_FIX, PIPE.PIPE_MTE2, latency=latency, M=16).launches[0]
    t = launch.timeline
    assert t is not None
    waits = [k for k in t.select(0, t.pipes.index("AIV.MTE2")) if t.reason[k] == t.reasons.index("flag")]
    (wait,) = waits
    assert "sync_block_wait" in launch.lines[t.line[wait]].source
    other = t.waited[wait]
    assert "sync_block_set" in launch.lines[t.line[other]].source
    assert t.start[wait] == pytest.approx(t.end[other] + latency + flag_cycles(), abs=1e-6)
    assert launch.pipes["AIV.MTE2"].stalls["flag"] == t.gap[wait] == t.start[wait]


def test_launch_is_longer_by_just_what_the_flag_is() -> None:
    short, long = (
        run_of(hand_over, *tensors(16), PIPE.PIPE_FIX, PIPE.PIPE_MTE2, latency=n, M=16).cycles
        for n in (500.0, 501.0)
    )
    assert long - short == pytest.approx(1.0, abs=1e-6)


def test_without_the_wait_the_load_would_start_at_once() -> None:
    """A wait on MTE3 holds the store; the load before it goes through MTE2 and is free."""
    run = run_of(hand_over, *tensors(16), PIPE.PIPE_FIX, PIPE.PIPE_MTE3, M=16)
    written = max(done for _, done in rows(run, "AIC.FIXP", "tl.store(hop"))
    assert min(s for s, _ in rows(run, "AIV.MTE2", "tl.load(c")) < written
    store = min(s for s, _ in rows(run, "AIV.MTE3", "tl.store(c"))
    assert store >= written + 220


def test_a_set_waits_for_its_own_pipe_only() -> None:
    run = run_of(hand_over, *tensors(16), PIPE.PIPE_MTE1, PIPE.PIPE_MTE2, M=16)
    moved = max(done for _, done in rows(run, "AIC.MTE1", "tl.dot"))
    start = min(s for s, _ in rows(run, "AIV.MTE2", "tl.load(c"))
    assert start == pytest.approx(moved + 220 + flag_cycles(), abs=1e-6)


def test_pipe_all_waits_for_every_pipe_of_the_sender_and_holds_all_of_the_receiver() -> None:
    run = run_of(hand_over, *tensors(16), PIPE.PIPE_ALL, PIPE.PIPE_ALL, M=16)
    written = max(done for _, done in rows(run, "AIC.FIXP", "tl.store(hop"))
    assert min(s for s, _ in rows(run, "AIV.MTE2", "tl.load(c")) >= written + 220


def test_the_first_wait_is_ended_by_the_first_set() -> None:
    run = run_of(two_flags, *tensors(128), M=128)
    first, second = sorted(done for _, done in rows(run, "AIC.FIXP", "tl.store(hop"))
    one = min(s for s, _ in rows(run, "AIV.MTE2", "y = tl.load"))
    two = min(s for s, _ in rows(run, "AIV.MTE2", "w = tl.load"))
    assert one == pytest.approx(first + 220 + flag_cycles(), abs=1e-6)
    assert two == pytest.approx(second + 220 + flag_cycles(), abs=1e-6)
    assert one < second + 220


def test_a_flag_that_came_long_ago_costs_nothing() -> None:
    """With enough work before the wait the flag's way is hidden, whatever its length."""
    cycles = {run_of(late_wait, *tensors(16), 60, latency=n, M=16).cycles for n in (0.0, 220.0, 400.0)}
    assert len(cycles) == 1
    assert run_of(late_wait, *tensors(16), 60, latency=40_000.0, M=16).cycles > 40_000


def test_the_assumed_figure_is_named() -> None:
    run = run_of(late_wait, *tensors(16), 1, M=16)
    assert any(LATENCY in n for n in run.launches[0].notes)


@sim.jit
def runs_ahead(a, hop, iterations, M: tl.constexpr):
    """Nothing ever tells the Cube core to wait."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    x = tl.load(a + i * M + j)
    with al.scope(core_mode="cube"):
        for _ in range(iterations):
            tl.store(hop + i * M + j, tl.dot(x, x))
            al.sync_block_set("cube", "vector", 6)
    with al.scope(core_mode="vector"):
        for _ in range(iterations):
            al.sync_block_wait("cube", "vector", 6)


@pytest.mark.parametrize(("iterations", "warned"), [(15, False), (16, True), (40, True)])
def test_sets_beyond_the_counter_are_a_warning(iterations: int, warned: bool) -> None:
    a, _, hop = tensors(16)
    with sim.device(PRODUCT):
        run = runs_ahead[(2,)](a, hop, iterations, M=16)
    found = [w for w in run.warnings if "more than 15 sets of event 6 ahead of the waits" in w]
    assert bool(found) == warned


# -- barriers ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["all", "all_vector"])
@pytest.mark.parametrize("programs", [2, 7, 40])
def test_barrier_shows_every_program_what_the_others_wrote(mode: str, programs: int) -> None:
    b = 64
    a, out = (np.full(programs * b, -1, np.float32) for _ in range(2))
    with sim.device(PRODUCT):
        neighbours[(programs,)](a, out, MODE=mode, B=b)
    want = np.roll(np.arange(programs * b).reshape(programs, b), -1, axis=0)
    assert np.array_equal(out.reshape(programs, b), want)


@pytest.mark.parametrize(("mode", "shared"), [("all_vector", False), ("all_vector", True), ("all", True)])
def test_barrier_waits_for_the_slowest_program(mode: str, shared: bool) -> None:
    """Program p makes p iterations before the barrier; afterwards no core loads before the last one has stored and told."""
    b, programs = 64, 5
    a, out = np.zeros((programs, b), np.float32), np.zeros((programs, b), np.float32)
    c = np.zeros((16, 16), np.float32)
    with sim.device(PRODUCT, timeline=10_000):
        run = uneven[(programs,)](a, out, c, c.copy(), MODE=mode, B=b, SHARED=shared, CUBE=mode == "all")
    assert (out == 4.0).all()
    stored = max(done for _, done in rows(run, "AIV.MTE3", "tl.store(a"))
    begun = [
        s
        for p in ("AIV.MTE2", "AIV1.MTE2")
        if p in run.launches[0].timeline.pipes
        for s, _ in rows(run, p, "tl.load(a")
    ]
    assert len(begun) >= programs
    assert stored + MET <= min(begun) < stored + MET + 100
    waits = run.launches[0].pipes["AIV.S"].stalls
    assert waits["flag"] > 0  # of the mean core
    total = sum(x for n, x in waits.items() if n != "bandwidth") + run.launches[0].pipes["AIV.S"].busy_cycles
    assert total == pytest.approx(run.cycles)


def test_barrier_of_cores_that_have_no_work_says_so() -> None:
    a, out = np.zeros(8, np.float32), np.zeros(8, np.float32)
    with sim.device(PRODUCT):
        run = neighbours[(1,)](a, out, MODE="all_cube", B=8)
    assert any("the kernel has no work for such cores; no core waits" in w for w in run.warnings)


def test_barrier_stops_all_pipes_and_pays_the_flag() -> None:
    b = 64
    a, out = np.zeros(b, np.float32), np.zeros(b, np.float32)
    with sim.device(PRODUCT, timeline=1000):
        run = neighbours[(1,)](a, out, MODE="all_vector", B=b)
    stored = max(done for _, done in rows(run, "AIV.MTE3", "tl.store(a"))
    assert min(s for s, _ in rows(run, "AIV.MTE2", "tl.load(a")) >= stored + 220


@sim.jit
def uneven_pair(a, out, iterations, B: tl.constexpr, SYNC: tl.constexpr):
    """The second Vector core works longer; with the barrier the first one's last store waits for it."""
    s = al.sub_vec_id()
    i = s * B + tl.arange(0, B)
    x = tl.load(a + i)
    for _ in range(s * iterations):
        x = tl.exp(x) * 0.5
    tl.store(a + i, x)
    if SYNC:
        al.sync_block_all("all_sub_vector", 3)
    tl.store(out + i, tl.load(a + (1 - s) * B + tl.arange(0, B)))


@pytest.mark.parametrize("iterations", [20, 60])
def test_vector_cores_of_a_program_wait_for_each_other(iterations: int) -> None:
    b = 1024
    a, out = np.linspace(0, 1, 2 * b, dtype=np.float32), np.zeros(2 * b, np.float32)
    run = run_of(uneven_pair, a, out, iterations, B=b, SYNC=True)
    assert np.array_equal(out.reshape(2, b), a.reshape(2, b)[::-1])
    late = max(done for _, done in rows(run, "AIV1.MTE3", "tl.store(a"))
    first = min(s for s, _ in rows(run, "AIV.MTE3", "tl.store(out"))
    assert first > late + 220
    free = run_of(uneven_pair, a, out, iterations, B=b, SYNC=False)
    late = max(done for _, done in rows(free, "AIV1.MTE3", "tl.store(a"))
    assert min(s for s, _ in rows(free, "AIV.MTE3", "tl.store(out")) < late


def test_more_programs_than_cores_would_wait_for_ever() -> None:
    a, out = (np.full(41 * 8, -1, np.float32) for _ in range(2))
    with (
        sim.device(PRODUCT),
        pytest.raises(RunError, match="waits for all 41 programs, but ascend910b3 runs 40"),
    ):
        neighbours[(41,)](a, out, MODE="all", B=8)
    assert (a == -1).all()


def test_barrier_that_some_programs_miss_is_a_hang() -> None:
    a = np.full(5 * 8, -1, np.float32)
    with sim.device(PRODUCT), pytest.raises(RunError, match="2 of 5 programs reach sync_block_all"):
        some_reach_it[(5,)](a, B=8)
    assert (a == -1).all()


@sim.jit
def product_and_halves(a, hop, count, M: tl.constexpr):
    """The Cube stores a product, and each Vector core changes its half of the rows."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    half = tl.arange(0, M // 2)[:, None] + al.sub_vec_id() * (M // 2)
    for t in range(count):
        x = tl.load(a + (t * M + i) * M + j)
        tl.store(hop + (t * M + i) * M + j, tl.dot(x, x))
        tl.store(hop + (t * M + half) * M + j, tl.load(hop + (t * M + half) * M + j) + 1.0)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("programs", [1, 3, 30])
def test_a_product_in_a_loop_waits_for_its_tile_and_each_iteration_adds_time(programs: int) -> None:
    """The Cube's part has one lane a program, the Vector parts two."""
    cycles = []
    for count in (1, 2, 3, 4, 9, 40):
        with sim.device(PRODUCT, timeline=10_000):
            shapes = sim.shape((count, 64, 64), "float16"), sim.shape((count, 64, 64), "float32")
            run = product_and_halves.time((programs,), *shapes, count, M=64)
        cycles.append(run.cycles)
        t = run.launches[0].timeline
        loads, copies = (np.flatnonzero(t.pipe == t.pipes.index(n)) for n in ("AIC.MTE2", "AIC.MTE1"))
        first = [min(x[t.program[x] == 0], key=lambda k: t.start[k]) for x in (loads, copies)]
        assert t.start[first[1]] >= t.done[first[0]]
    assert cycles == sorted(set(cycles))
