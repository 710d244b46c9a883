"""Windows of tiles in L1 on the way to L0 (LoadData3D), and chains of products in L0C."""

from __future__ import annotations

import numpy as np

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.language.extra.cann import extension as al


@sim.jit
def three_taps(x_ptr, w_ptr, out_ptr, n, WINDOWS: tl.constexpr):
    """Sum over n channel blocks and three taps of shifted rows of x (n, 1, 34, 32) times w (n, 3, 32, 32)."""
    k, rows = tl.arange(0, 32), tl.arange(0, 34)
    acc = tl.zeros((32, 32), tl.float32)
    for i in range(n):
        image = i * (34 * 32) + rows[None, None, :, None] * 32 + k[None, None, None, :]
        if WINDOWS:
            x = tl.load(x_ptr + image)
        for j in tl.static_range(3):
            if WINDOWS:
                tap = tl.reshape(al.extract_slice(x, (0, 0, j, 0), (1, 1, 32, 32), (1, 1, 1, 1)), (32, 32))
            else:
                tap = tl.load(x_ptr + i * (34 * 32) + (j + k)[:, None] * 32 + k[None, :])
            w = tl.load(w_ptr + (i * 3 + j) * 1024 + k[:, None] * 32 + k[None, :])
            acc += tl.dot(tap, w)
    tl.store(out_ptr + k[:, None] * 32 + k[None, :], acc)


@sim.jit
def window_for_both(x_ptr, out_ptr):
    """A window that the Cube and the Vector unit read."""
    k, rows = tl.arange(0, 32), tl.arange(0, 34)
    x = tl.load(x_ptr + rows[None, None, :, None] * 32 + k[None, None, None, :])
    tap = tl.reshape(al.extract_slice(x, (0, 0, 1, 0), (1, 1, 32, 32), (1, 1, 1, 1)), (32, 32))
    at = k[:, None] * 32 + k[None, :]
    tl.store(out_ptr + at, tl.dot(tap, tap))
    tl.store(out_ptr + 1024 + at, tl.exp(tap).to(tl.float32))


def arrays(n=2):
    g = np.random.default_rng(0)
    x = g.integers(-2, 3, (n, 34, 32)).astype(np.float16)
    w = g.integers(-2, 3, (n, 3, 32, 32)).astype(np.float16)
    return x, w, np.zeros((32, 32), np.float32)


def test_windows_give_the_same_values_and_load_the_image_once():
    found = {}
    for windows in (True, False):
        x, w, out = arrays()
        run = three_taps[(1,)](x, w, out, 2, WINDOWS=windows)
        found[windows] = out, run.launches[0]
    np.testing.assert_array_equal(found[True][0], found[False][0])
    x, w, _ = arrays()
    expected = sum(np.float64(x[i, j : j + 32]) @ np.float64(w[i, j]) for i in range(2) for j in range(3))
    np.testing.assert_array_equal(found[True][0], expected)
    one, three = (found[k][1] for k in (True, False))
    assert not any(p.startswith("AIV") for p in one.pipes)
    assert set(one.buffers) == {"L1", "L0A", "L0B", "L0C"} | ({"UB"} & set(one.buffers))
    assert one.buffers["L0C"].peak_bytes == 32 * 32 * 4
    assert one.pipes["AIC.MTE2"].busy_cycles < three.pipes["AIC.MTE2"].busy_cycles
    assert one.pipes["AIC.MTE1"].busy_cycles >= three.pipes["AIC.MTE1"].busy_cycles


def test_an_image_in_l1_has_no_gaps_between_its_rows():
    x, w, out = arrays()
    run = three_taps[(1,)](x, w, out, 2, WINDOWS=True)
    image = next(v for v in run.launches[0].buffers["L1"].peak if v.shape == (1, 1, 34, 32))
    assert image.bytes == 48 * 32 * 2  # 34 rows in fractals of 16


def test_a_window_that_the_vector_unit_reads_is_its_own_tile():
    x = np.random.default_rng(0).integers(-2, 3, (34, 32)).astype(np.float16)
    out = np.zeros((2, 32, 32), np.float32)
    run = window_for_both[(1,)](x, out)
    tap = np.float64(x[1:33])
    np.testing.assert_array_equal(out[0], tap @ tap)
    np.testing.assert_allclose(out[1], np.exp(tap), rtol=2e-3)
    assert run.launches[0].pipes["AIV.V"].busy_cycles > 0
