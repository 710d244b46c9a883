"""Laws that hold for every kernel: no time below a bound, less bandwidth or fewer buffers never help, numbers do not matter.

Random kernels: tiles of one to three tensors are loaded in a loop, worked on, reduced or multiplied, and stored.
"""

from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl

SLACK = 1e-9  # of rounding; a bound is exact
EXAMPLES = 40
LAWS = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


@sim.jit
def streaming(
    x_ptr, y_ptr, z_ptr, out_ptr, n, last, TURNS: tl.constexpr, BLOCK: tl.constexpr, TENSORS: tl.constexpr,
    WORK: tl.constexpr, REVERSED: tl.constexpr, STRIDED: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    if REVERSED:
        pid = last - pid
    for k in range(TURNS):
        tile = k * tl.num_programs(0) + pid if STRIDED else pid * TURNS + k
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
    block, grid, turns = (
        draw(st.sampled_from([256, 1000, 4096, 8192])),
        draw(st.integers(1, 96)),
        draw(st.integers(1, 9)),
    )
    dtype = draw(st.sampled_from(["float16", "float32", "bfloat16"]))
    names = ["ascend910b3", "ascend910c"] + (["ascend310p"] if dtype != "bfloat16" else [])
    n = max(1, block * grid * turns - (0 if whole else draw(st.integers(0, block))))
    x = sim.shape(n, dtype)
    arguments = dict(x_ptr=x, y_ptr=x, z_ptr=x, out_ptr=x, n=n, last=grid - 1, TURNS=turns, BLOCK=block)
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


kernels = st.one_of(streams(), products())


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
@given(kernels)
def test_a_buffer_less_never_helps(drawn):
    assert drawn.time(copies=1).time_us >= drawn.time(copies=2).time_us * 0.98


@LAWS
@given(st.one_of(streams(whole=True), products()))
def test_renumbering_programs_changes_nothing(drawn):
    """Backwards, neighbours stay neighbours: locality is the same. Programs are alike: a short one at the end or at the
    beginning is another schedule."""
    there, back = drawn.time(), drawn.time(reversed_order=True)
    assert back.time_us == pytest.approx(there.time_us, rel=0.01)
