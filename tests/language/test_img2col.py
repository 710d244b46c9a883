"""Laws of `img2col`: values, what it takes of time and room as an operand of a product, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import CompileError
from ascendtile.simulator.language.extra.cann import extension as al
from ascendtile.simulator.timing.placement.windows import MORE_TO_L0B, Window, fractal_cycles


@sim.jit
def windows_only(
    x_ptr, out_ptr, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, ROWS: tl.constexpr, T: tl.constexpr
):
    """T: taps, steps, distances. out (ROWS, taps x C)."""
    h, w, c = tl.arange(0, H), tl.arange(0, W), tl.arange(0, C)
    image = tl.load(
        x_ptr + h[None, :, None, None] * (W * C) + w[None, None, :, None] * C + c[None, None, None, :]
    )
    seen = al.img2col(image, *T)
    wide: tl.constexpr = T[0][0] * T[0][1] * C
    rows = tl.reshape(seen, (ROWS, wide))
    tl.store(out_ptr + tl.arange(0, ROWS)[:, None] * wide + tl.arange(0, wide)[None, :], rows)


@sim.jit
def convolved(x_ptr, w_ptr, out_ptr, W: tl.constexpr, STEP: tl.constexpr, OUT: tl.constexpr):
    """Windows of 3 x 3 taps, STEP apart, of an image of W x W positions and 16 channels, times w (144, 16)."""
    h, c = tl.arange(0, W), tl.arange(0, 16)
    image = tl.load(
        x_ptr + h[None, :, None, None] * (W * 16) + h[None, None, :, None] * 16 + c[None, None, None, :]
    )
    rows = tl.reshape(al.img2col(image, (3, 3), (STEP, STEP), (1, 1)), (OUT, 144))
    w = tl.load(w_ptr + tl.arange(0, 144)[:, None] * 16 + c[None, :])
    tl.store(out_ptr + tl.arange(0, OUT)[:, None] * 16 + c[None, :], tl.dot(rows, w))


def reference(x, taps, steps, apart):
    h, w, _ = x.shape
    down, across = (
        (n - (t - 1) * a - 1) // s + 1 for n, t, s, a in zip((h, w), taps, steps, apart, strict=True)
    )
    return np.array(
        [
            [
                x[i * steps[0] + a * apart[0], j * steps[1] + b * apart[1]]
                for a in range(taps[0])
                for b in range(taps[1])
            ]
            for i in range(down)
            for j in range(across)
        ]
    ).reshape(down * across, -1)


two = st.tuples(st.integers(1, 3), st.integers(1, 3))


@given(taps=two, steps=two, apart=two, more=st.tuples(st.integers(0, 4), st.integers(0, 4)))
def test_a_row_is_what_a_window_meets_tap_by_tap(taps, steps, apart, more):
    h, w = ((t - 1) * a + 1 + m for t, a, m in zip(taps, apart, more, strict=True))
    x = np.arange(h * w * 8, dtype=np.float32).reshape(h, w, 8)
    want = reference(x, taps, steps, apart)
    out = np.zeros_like(want)
    windows_only[(1,)](x, out, H=h, W=w, C=8, ROWS=len(want), T=(taps, steps, apart))
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize(("size", "step"), [(10, 1), (9, 2)])
def test_as_an_operand_it_is_read_in_l1_and_takes_no_vector_core(size, step):
    g = np.random.default_rng(0)
    x, w = (g.integers(-2, 3, s).astype(np.float16) for s in ((size, size, 16), (144, 16)))
    rows = reference(np.float64(x), (3, 3), (step, step), (1, 1))
    out = np.zeros((len(rows), 16), np.float32)
    launch = convolved[(1,)](x, w, out, W=size, STEP=step, OUT=len(rows)).launches[0]
    np.testing.assert_array_equal(out, rows @ np.float64(w))
    assert not any(pipe.startswith("AIV") for pipe in launch.pipes)
    assert launch.buffers["L1"].peak_bytes < 2 * (x.nbytes + w.nbytes)


@pytest.mark.parametrize("taps", [(4, 1), (0, 1), 3, (1, 2, 3)])
def test_windows_larger_than_the_image_and_odd_numbers_are_refused(taps):
    x = np.zeros((3, 3, 8), np.float32)
    with pytest.raises(CompileError, match="img2col"):
        windows_only[(1,)](x, x, H=3, W=3, C=8, ROWS=1, T=(taps, (1, 1), (1, 1)))


@given(
    rows=st.integers(1, 8),
    row=st.integers(1, 80),
    stride=st.integers(1, 9),
    more=st.sampled_from((0, MORE_TO_L0B)),
)
def test_a_window_is_never_faster_than_positions_side_by_side(rows, row, stride, more):
    slowdown = Window(rows, row, stride).slowdown(more)
    assert slowdown >= 1.0
    assert (slowdown == 1.0) == (stride == 1 and (rows == 1 or row % 16 == 0))


def test_cycles_of_a_fractal_are_the_published_rates():
    """512 bytes over 256, 512/(n+2) and at least 32; 512/(2 s); 32 for other strides."""
    assert [fractal_cycles(1, n) for n in (1, 2, 3, 16)] == [2, 4, 5, 16]
    assert [fractal_cycles(s, 1) for s in (2, 4, 8)] == [4, 8, 16]
    assert fractal_cycles(2, 3) == 7
    assert [fractal_cycles(s, 1) for s in (3, 5, 6, 7, 16)] == [16] * 5


@pytest.mark.parametrize("size", [10, 18])
def test_shorter_rows_and_larger_steps_take_longer_to_reach_l0(size):
    cycles = {}
    for step in (1, 2):
        out = ((size - 3) // step + 1) ** 2
        shapes = [sim.shape((n,), "float16") for n in (size * size * 16, 144 * 16)]
        run = convolved.time((1,), *shapes, sim.shape((out * 16,), "float32"), W=size, STEP=step, OUT=out)
        cycles[step] = run.launches[0].pipes["AIC.MTE1"].busy_cycles / -(-out // 16)
    assert cycles[2] > cycles[1]
