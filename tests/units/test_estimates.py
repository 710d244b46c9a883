"""The coarse Reciprocal and Rsqrt instructions, and their accurate forms."""

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.language.extra.cann import extension as al
from ascendtile.simulator.precision import dtypes as ty

from ..support.elementwise import unary

# argument, result as printed; Ascend C pages of Reciprocal (FP32) and Rsqrt (FP16)
RECIPROCAL = [
    (1.2017815, "0.83203125"),
    (-8.758528, "-0.11401367"),
    (-3.9551935, "-0.2529297"),
    (-1.3599057, "-0.734375"),
    (-2.319316, "-0.43164062"),
]
RSQRT = [
    (1, "0.998"),
    (2, "0.705"),
    (3, "0.576"),
    (4, "0.499"),
    (128, "0.08813"),
    (0.8335, "1.094"),
    (2.672, "0.6113"),
    (5.36, "0.4316"),
]


def a_step(printed):
    """One step of the 9-bit grid there, and half a unit of the last digit that was printed."""
    digits = len(printed.partition(".")[2])
    return 2.0 ** (np.floor(np.log2(abs(float(printed)))) - 8) + 0.5 * 10.0**-digits


@pytest.mark.parametrize(("x", "printed"), RECIPROCAL)
def test_reciprocal_is_within_a_step_of_the_printed_result(x, printed):
    got = float(unary("rec", np.array([[x]], np.float32), ty.float32)[0, 0])
    assert abs(got - float(printed)) <= a_step(printed)
    assert abs(got * x - 1) < 3e-3


@pytest.mark.parametrize(("x", "printed"), RSQRT)
def test_rsqrt_is_within_a_step_of_the_printed_result(x, printed):
    got = float(unary("rsqrt", np.array([[x]], np.float32), ty.float16)[0, 0])
    assert abs(got - float(printed)) <= a_step(printed)


def test_every_estimate_has_nine_significand_bits_and_keeps_the_bound():
    x = np.linspace(0.01, 100, 50_001, dtype=np.float32).reshape(1, -1)
    for name, exact in (("rec", 1 / x.astype(np.float64)), ("rsqrt", x.astype(np.float64) ** -0.5)):
        got = unary(name, x, ty.float32)
        assert not (got.view(np.uint32) & 0x7FFF).any()
        assert np.abs(got / exact - 1).max() <= 2.0**-9


def test_special_values():
    x = np.array([[0.0, -0.0, np.inf, np.nan]], np.float32)
    np.testing.assert_array_equal(unary("rec", x, ty.float32), [[np.inf, -np.inf, 0, np.nan]])


@sim.jit
def both(x_ptr, coarse_ptr, fine_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    tl.store(coarse_ptr + at, al.rsqrt_estimate(x))
    tl.store(fine_ptr + at, tl.rsqrt(x))


def test_a_kernel_can_use_either_and_the_coarse_one_costs_less():
    x = np.linspace(1, 2, 64, dtype=np.float32)
    coarse, fine = np.empty_like(x), np.empty_like(x)
    with sim.device("ascend910b3"):
        run = both[(1,)](x, coarse, fine, BLOCK=64)
    exact = x.astype(np.float64) ** -0.5
    assert 1e-4 < np.abs(coarse / exact - 1).max() < 3e-3
    assert np.abs(fine / exact - 1).max() < 2e-7
    cost = {y.source: y.busy["AIV.V"] for y in run.lines if "AIV.V" in y.busy}
    assert min(cost, key=cost.get).startswith("tl.store(coarse_ptr")
