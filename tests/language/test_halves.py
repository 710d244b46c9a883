"""Operations that compute halves in FP32 and round once, when they are done (HFusion's normalisation in AscendNPU-IR)."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.language.extra import libdevice
from ascendtile.simulator.precision.formats import get_format
from ascendtile.simulator.precision.rounding import round_to

from .values import output

HALVES: dict[str, Any] = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16}
FP32_ROUNDING = 2.0**-24


@sim.jit
def sums(out, x, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.arange(0, R), tl.arange(0, C)
    at = r[:, None] * C + c[None, :]
    v = tl.load(x + at)
    tl.static_assert(tl.sum(v, 1).dtype == v.dtype)
    tl.store(out + at, tl.cumsum(v, 1).to(v.dtype))
    tl.store(out + R * C + r, tl.sum(v, 1))
    tl.store(out + R * C + R + c, tl.sum(v, 0))


@sim.jit
def products(out, x, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    tl.store(out + i, tl.cumprod(v, 0).to(v.dtype))


@sim.jit
def functions(out, x, WHAT: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    if WHAT == "rsqrt":
        y = tl.rsqrt(v)
    elif WHAT == "sigmoid":
        y = tl.sigmoid(v)
    elif WHAT == "softmax":
        y = tl.softmax(v)
    else:
        y = libdevice.rnorm3d(v, v, v)
    tl.static_assert(y.dtype == v.dtype)
    tl.store(out + i, y)


def spacing(name: str, x: np.ndarray) -> np.ndarray:
    """The distance of neighbours among halves, at x."""
    fmt = get_format(name)
    _, exponent = np.frexp(np.maximum(np.abs(x), float(fmt.min_normal)))
    return np.asarray(np.ldexp(1.0, exponent - (11 if name == "fp16" else 8)))


def assert_rounded_once(name: str, got: np.ndarray, exact: np.ndarray, error: np.ndarray) -> None:
    """Within half a step of the half's own grid, and what FP32 may have lost before."""
    off = np.abs(got.astype(np.float64) - exact)
    assert (off <= spacing(name, np.abs(exact) + error) / 2 + error).all()


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 5), st.integers(1, 300), st.sampled_from(sorted(HALVES)), st.integers(0, 99))
def test_sums_of_halves_are_rounded_once(rows: int, columns: int, name: str, seed: int) -> None:
    x = np.random.default_rng(seed).normal(0, 3, (rows, columns)).astype(HALVES[name])
    got = output(sums, rows * columns + rows + columns, x, dtype=HALVES[name], R=rows, C=columns)
    wide = x.astype(np.float64)
    for axis, part in ((1, slice(rows * columns, -columns)), (0, slice(-columns, None))):
        error = wide.shape[axis] * FP32_ROUNDING * np.abs(wide).sum(axis)
        assert_rounded_once(name, got[part], wide.sum(axis), error)
    error = columns * FP32_ROUNDING * np.abs(wide).cumsum(1)
    assert_rounded_once(name, got[: rows * columns].reshape(rows, columns), wide.cumsum(1), error)


@pytest.mark.parametrize("name", HALVES)
def test_running_products_of_halves_are_rounded_once(name: str) -> None:
    x = np.random.default_rng(3).uniform(0.9, 1.1, 60).astype(HALVES[name])
    exact = x.astype(np.float64).cumprod()
    got = output(products, 60, x, dtype=HALVES[name], B=60)
    assert_rounded_once(name, got, exact, 60 * FP32_ROUNDING * exact)


@pytest.mark.parametrize("name", HALVES)
@pytest.mark.parametrize("what", ["rsqrt", "sigmoid", "softmax", "rnorm3d"])
def test_functions_of_several_steps_are_rounded_once(what: str, name: str) -> None:
    x = np.random.default_rng(5).uniform(0.1, 4, 500).astype(HALVES[name])
    got = output(functions, 500, x, dtype=HALVES[name], WHAT=what, B=500)
    v = x.astype(np.float64)
    e = np.exp(v - v.max())
    exact = {
        "rsqrt": v**-0.5, "sigmoid": 1 / (1 + np.exp(-v)), "softmax": e / e.sum(), "rnorm3d": 1 / np.sqrt(3 * v * v),
    }[what]  # fmt: skip
    assert_rounded_once(name, got, exact, 16 * FP32_ROUNDING * exact)


def test_a_sum_of_halves_that_passes_the_largest_on_the_way_comes_back() -> None:
    x = np.array([[60000, 60000, -60000, -59008]], np.float16)
    got = output(sums, 9, x, dtype=np.float16, R=1, C=4)
    assert got[4] == 992
    assert got[:4].tolist() == [60000, np.inf, 60000, 992]


def test_a_sum_of_halves_saturates_once_where_the_unit_does() -> None:
    x = np.array([[60000, 60000, -60000, 100]], np.float16)
    with sim.device(numerics={"overflow_mode": "saturate"}):
        got = output(sums, 9, x, dtype=np.float16, R=1, C=4)
    assert got[:4].tolist() == [60000, 65504, 60000, round_to(np.array([60100.0]), "fp16")[0]]


@pytest.mark.parametrize("name", HALVES)
def test_a_sum_of_halves_costs_a_cast_and_a_sum_in_fp32(name: str) -> None:
    """Rows of 64 elements: 8 repeats of the widened tile, and a repeat for the eight sums that go back."""
    product = sim.load_product("ascend910b3")
    kinds = {"fp16": ("cast_f16_f32", "cast_f32_f16"), "bf16": ("cast_bf16_f32", "cast_f32_bf16")}[name]

    def cost(row: str, repeats: int, kind: str = "any") -> float:
        per = product.number(f"vector.op.{row}.per_repeat.{kind}")
        return max(repeats * per, product.number("vector.min_instruction_cycles"))

    fixed = [product.number(f"vector.op.{r}.fixed_cycles") for r in (kinds[0], "reduce_repeat_sum")]
    mask = product.number("vector.partial_mask_penalty_cycles")
    expected = (
        cost(kinds[0], 8) + cost("reduce_repeat_sum", 8, "fp32") + cost(kinds[1], 1) + sum(fixed) + mask
    )
    with sim.device("ascend910b3"):
        run = row_sums.time((1,), sim.shape((8, 64), name), sim.shape(8, name), R=8, C=64)
    assert run.pipes["AIV.V"].busy_cycles == pytest.approx(expected)


@sim.jit
def row_sums(x, out, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.arange(0, R), tl.arange(0, C)
    tl.store(out + r, tl.sum(tl.load(x + r[:, None] * C + c[None, :]), 1))
