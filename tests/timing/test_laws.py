"""Laws that hold for every kernel: no time below a bound, less bandwidth or fewer buffers never help, numbers do not matter.

Random kernels: tiles of one to three tensors are loaded in a loop, worked on, reduced or multiplied, and stored.
"""

from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.timing.engine.machine import start_cycles

SLACK = 1e-9  # of rounding; a bound is exact
LAWS = settings(suppress_health_check=[HealthCheck.too_slow])


@sim.jit
def streaming(
    x_ptr, y_ptr, z_ptr, out_ptr, n, last, ITERATIONS: tl.constexpr, BLOCK: tl.constexpr, TENSORS: tl.constexpr,
    WORK: tl.constexpr, REVERSED: tl.constexpr, STRIDED: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    if REVERSED:
        pid = last - pid
    for k in range(ITERATIONS):
        tile = k * tl.num_programs(0) + pid if STRIDED else pid * ITERATIONS + k
        at = tile * BLOCK + tl.arange(0, BLOCK)
        acc = tl.load(x_ptr + at, mask=at < n, other=0.0)
        if TENSORS > 1:
            acc += tl.load(y_ptr + at, mask=at < n, other=0.0)
        if TENSORS > 2:
            acc *= tl.load(z_ptr + at, mask=at < n, other=0.0)
        for _ in tl.static_range(WORK):
            acc = tl.exp(acc) * 0.5
        tl.store(out_ptr + at, acc, mask=at < n)


@sim.jit
def product(
    a_ptr, b_ptr, c_ptr, n, k, last, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, EPILOGUE: tl.constexpr,
    REVERSED: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    if REVERSED:
        pid = last - pid
    i, j = pid // (n // BN), pid % (n // BN)
    rows, cols, depth = i * BM + tl.arange(0, BM), j * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        a = tl.load(a_ptr + rows[:, None] * k + (start + depth)[None, :])
        b = tl.load(b_ptr + (start + depth)[:, None] * n + cols[None, :])
        acc = tl.dot(a, b, acc)
    if EPILOGUE:
        acc = tl.maximum(acc, 0.0)
    tl.store(c_ptr + rows[:, None] * n + cols[None, :], acc.to(tl.float16))


@sim.jit
def normalize(
    x_ptr, w_ptr, out_ptr, rows, cols, last, BR: tl.constexpr, BC: tl.constexpr, REVERSED: tl.constexpr,
):  # fmt: skip
    """Two loops of few iterations within one over rows: what one loads can come while the other still works."""
    pid = tl.program_id(0)
    if REVERSED:
        pid = last - pid
    for first in tl.range(pid * BR, rows, tl.num_programs(0) * BR):
        r = (first + tl.arange(0, BR))[:, None]
        squares = tl.zeros((BR,), tl.float32)
        for start in tl.range(0, cols, BC):
            c = (start + tl.arange(0, BC))[None, :]
            x = tl.load(x_ptr + r * cols + c, mask=(r < rows) & (c < cols), other=0.0).to(tl.float32)
            squares += tl.sum(x * x, axis=1)
        scale = 1.0 / tl.sqrt(squares / cols + 1e-5)
        for start in tl.range(0, cols, BC):
            c = start + tl.arange(0, BC)
            inside = (r < rows) & (c[None, :] < cols)
            x = tl.load(x_ptr + r * cols + c[None, :], mask=inside, other=0.0).to(tl.float32)
            w = tl.load(w_ptr + c, mask=c < cols, other=0.0)
            y = x * scale[:, None] * w[None, :]
            tl.store(out_ptr + r * cols + c[None, :], y.to(tl.float16), mask=inside)


@dataclass(frozen=True)
class Drawn:
    """A kernel with its sizes; `time` gives its launch under other figures, buffers or numbers of programs."""

    kernel: object
    grid: int
    arguments: dict
    product: str
    copies: int

    def time(self, reversed_order=False, copies=None, **overrides):
        with sim.device(self.product, multibuffer=copies or self.copies, overrides=overrides, timeline=0):
            run = self.kernel.time((self.grid,), **self.arguments, REVERSED=reversed_order)
        return run.launches[0]


@st.composite
def streams(draw, whole=False):
    block, grid, iterations = (
        draw(st.sampled_from([256, 1024 if whole else 1000, 4096, 8192])),
        draw(st.integers(1, 96)),
        draw(st.integers(1, 9)),
    )
    dtype = draw(st.sampled_from(["float16", "float32", "bfloat16"]))
    names = ["ascend910b3", "ascend910c"] + (["ascend310p"] if dtype != "bfloat16" else [])
    n = max(1, block * grid * iterations - (0 if whole else draw(st.integers(0, block))))
    x = sim.shape(n, dtype)
    arguments = dict(
        x_ptr=x, y_ptr=x, z_ptr=x, out_ptr=x, n=n, last=grid - 1, ITERATIONS=iterations, BLOCK=block
    )
    arguments |= dict(
        TENSORS=draw(st.integers(1, 3)), WORK=draw(st.integers(0, 3)), STRIDED=draw(st.booleans())
    )
    return Drawn(
        streaming,
        grid,
        arguments,
        draw(st.sampled_from(names)),
        draw(st.integers(1, 2)),
    )


@st.composite
def products(draw):
    bm, bn, bk = (draw(st.sampled_from(s)) for s in ([32, 64, 128], [32, 64, 128], [32, 64, 128]))
    m, n, k = (b * draw(st.integers(1, 6)) for b in (bm, bn, bk))
    a, b, c = sim.shape((m, k), "float16"), sim.shape((k, n), "float16"), sim.shape((m, n), "float16")
    grid = (m // bm) * (n // bn)
    arguments = dict(
        a_ptr=a, b_ptr=b, c_ptr=c, n=n, k=k, last=grid - 1, BM=bm, BN=bn, BK=bk, EPILOGUE=draw(st.booleans())
    )
    return Drawn(
        product,
        grid,
        arguments,
        draw(st.sampled_from(["ascend910b3", "ascend910a"])),
        draw(st.integers(1, 2)),
    )


@st.composite
def norms(draw):
    """Rows of one to five blocks, so that the inner loops begin anew all the time."""
    block = draw(st.sampled_from([256, 512, 700, 1024]))
    rows, cols, grid = draw(st.integers(20, 120)), draw(st.integers(100, 5 * block)), draw(st.integers(4, 48))
    x, w = sim.shape((rows, cols), "float16"), sim.shape(cols, "float32")
    arguments = dict(x_ptr=x, w_ptr=w, out_ptr=x, rows=rows, cols=cols, last=grid - 1, BC=block)
    arguments |= dict(BR=draw(st.integers(1, 3)))
    names = ["ascend910b3", "ascend910c", "ascend910a", "ascend310p"]
    return Drawn(normalize, grid, arguments, draw(st.sampled_from(names)), draw(st.integers(1, 2)))


kernels = st.one_of(streams(), products(), norms())


@LAWS
@given(kernels)
def test_no_time_is_below_any_bound(drawn):
    launch = drawn.time()
    name, bound = launch.bound
    assert launch.time_us >= bound * (1 - SLACK), name


@LAWS
@given(kernels, st.sampled_from([0.25, 0.5, 0.9]), st.sampled_from(["memory", "l2"]))
def test_less_bandwidth_never_helps(drawn, part, what):
    key = f"{what}.bandwidth_tb_per_s"
    figure = sim.load_product(drawn.product).number(key)
    assert drawn.time(**{key: figure * part}).time_us >= drawn.time().time_us * 0.98


@LAWS
@given(kernels, st.integers(1, 4))
def test_a_buffer_less_never_helps(drawn, copies):
    """Of a kernel that fits; one with products takes as many copies as do."""
    try:
        more = drawn.time(copies=copies + 1).time_us
    except sim.RunError as e:
        assume("ub overflow" not in str(e))
        raise
    assert drawn.time(copies=copies).time_us >= more * 0.98


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("product", "rows", "cols", "br", "bc", "grid"),
    [
        ("ascend910b3", 216, 1337, 1, 1024, 8),  # a third slot cost 10 %
        ("ascend910c", 208, 1311, 1, 700, 4),
        ("ascend310p", 176, 826, 1, 512, 40),
    ],
)
def test_loops_that_follow_each_other_do_not_wait_for_each_others_buffers(product, rows, cols, br, bc, grid):
    """More slots used to lie on more bytes of the other loop's, whose loads then came later."""
    x, w = sim.shape((rows, cols), "float16"), sim.shape(cols, "float32")
    arguments = dict(x_ptr=x, w_ptr=w, out_ptr=x, rows=rows, cols=cols, last=grid - 1, BR=br, BC=bc)
    drawn = Drawn(normalize, grid, arguments, product, 1)
    times = [drawn.time(copies=n).time_us for n in (1, 2, 3, 4, 6)]
    assert all(more <= less * 1.02 for less, more in pairwise(times)), times


@LAWS
@given(st.one_of(streams(whole=True), products()))
def test_renumbering_programs_changes_nothing(drawn):
    """Backwards, neighbours stay neighbours: locality is the same. Programs are alike, in how they cut lines, too: a short
    one at the end or at the beginning is another schedule. What differs a little starts at most as much later as the last
    core does."""
    there, back = drawn.time(), drawn.time(reversed_order=True)
    product = sim.load_product(drawn.product)
    together = 1 + product.aiv_per_aic  # in a core of the machine, at most
    late = there.cores * together * start_cycles(product) / product.us_to_cycles(1)
    assert back.time_us == pytest.approx(there.time_us, rel=0.01, abs=late)


@pytest.mark.parametrize("product", ["ascend910c", "ascend910b3"])
def test_a_short_program_at_the_end_is_worth_no_more_than_its_own_time(product):
    """193 programs of which the last is short: cores take programs in the order of their numbers, so it comes when all
    others are done; backwards it comes first, and its core takes the next while the others still work. That is list
    scheduling, and no fault: the order is worth what taking and running the short one takes, and without it nothing.
    """

    def times(n):
        x, grid = sim.shape(n, "float32"), -(-n // 512)
        arguments = dict(x_ptr=x, y_ptr=x, z_ptr=x, out_ptr=x, n=n, last=grid - 1, ITERATIONS=1, BLOCK=512)
        drawn = Drawn(streaming, grid, arguments | dict(TENSORS=2, WORK=0, STRIDED=False), product, 2)
        return [drawn.time(reversed_order=backwards) for backwards in (False, True)]

    there, back = times(192 * 512 + 128)
    started = there.cores * start_cycles(sim.load_product(product))
    (alone, _), whole = times(128), times(192 * 512)
    taken = sim.load_product(product).number("launch.dispatch_cycles_per_program")
    assert -started < there.cycles - back.cycles < taken + alone.cycles
    assert whole[1].time_us == pytest.approx(whole[0].time_us, rel=0.005)
