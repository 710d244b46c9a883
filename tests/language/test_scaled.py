"""tl.dot_scaled: operands times powers of two, then the product; formats that are made for scales, which the Cube reads."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import CompileError

from .values import output


@sim.jit
def product(
    out, a, sa, b, sb, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, G: tl.constexpr, F: tl.constexpr
):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    g = tl.arange(0, K // G)
    x = tl.load(a + m[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + n[None, :])
    left = tl.load(sa + m[:, None] * (K // G) + g[None, :])
    right = None
    if sb is not None:
        right = tl.load(sb + n[:, None] * (K // G) + g[None, :])
    acc = tl.full((M, N), 1.0, tl.float32)
    acc = tl.dot_scaled(x, left, F, y, right, F, acc=acc)
    tl.store(out + m[:, None] * N + n[None, :], acc)


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("exponents", [np.int8, np.uint8])
@pytest.mark.parametrize(("name", "kind"), [("fp16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_groups_are_scaled_by_powers_of_two(name: str, kind: Any, exponents: Any, both: bool) -> None:
    """Small integers times small powers of two: everything is exact, so the float64 product must be met."""
    rng = np.random.default_rng(1)
    m, n, k, g = 16, 8, 96, 32
    a, b = rng.integers(-3, 4, (m, k)).astype(kind), rng.integers(-3, 4, (k, n)).astype(kind)
    powers = [rng.integers(-3, 3, shape) for shape in ((m, k // g), (n, k // g))]
    sa, sb = ((p + (127 if exponents is np.uint8 else 0)).astype(exponents) for p in powers)
    got = output(product, m * n, a, sa, b, sb if both else None, M=m, N=n, K=k, G=g, F=name).reshape(m, n)
    left = a.astype(float) * np.repeat(2.0 ** powers[0], g, 1)
    right = b.astype(float) * (np.repeat(2.0 ** powers[1], g, 1).T if both else 1)
    np.testing.assert_array_equal(got, 1 + left @ right)


def test_what_is_refused() -> None:
    half, wrong = np.zeros((16, 16), np.float16), np.zeros((16, 4), np.int32)
    with pytest.raises(
        CompileError, match=r"scales of lhs must be int8 or uint8 of shape \[16, a divisor of 16\]"
    ):
        output(product, 256, half, wrong, half, None, M=16, N=16, K=16, G=4, F="fp16")
    with pytest.raises(CompileError, match="lhs must be a bf16 tile with two axes, got a fp16 tile"):
        output(product, 256, half, wrong, half, None, M=16, N=16, K=16, G=4, F="bf16")


# ---- formats made for scales ----


@sim.jit
def scaled(
    out, a, sa, b, sb, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, G: tl.constexpr,
    FA: tl.constexpr, FB: tl.constexpr, PA: tl.constexpr, PB: tl.constexpr, KA: tl.constexpr, KB: tl.constexpr,
):  # fmt: skip
    """PA, PB: (rows, columns) of elements in one of memory. KA, KB: whether they are packed along K."""
    g = tl.arange(0, K // G)
    m, n = tl.arange(0, M), tl.arange(0, N)
    ma, ka = tl.arange(0, M // PA[0]), tl.arange(0, K // PA[1])
    kb, nb = tl.arange(0, K // PB[0]), tl.arange(0, N // PB[1])
    x = tl.load(a + ma[:, None] * (K // PA[1]) + ka[None, :])
    y = tl.load(b + kb[:, None] * (N // PB[1]) + nb[None, :])
    left, right = None, None
    if sa is not None:
        left = tl.load(sa + m[:, None] * (K // G) + g[None, :])
    if sb is not None:
        right = tl.load(sb + n[:, None] * (K // G) + g[None, :])
    acc = tl.load(c + m[:, None] * N + n[None, :])
    acc = tl.dot_scaled(x, left, FA, y, right, FB, acc, lhs_k_pack=KA, rhs_k_pack=KB)
    tl.store(out + m[:, None] * N + n[None, :], acc)


def elements(name: str, shape: tuple[int, int], axis: int, rng: Any) -> tuple[Any, Any, tuple[int, int]]:
    """Memory of drawn elements (of four bits two a byte along an axis), their values, and the elements of one of memory."""
    fmt = sim.element_type(name).format
    if fmt.bits > 8:
        x = rng.integers(-2, 3, shape).astype(fmt.dtype)
        return x, x.astype(np.float64), (1, 1)
    finite = np.flatnonzero(np.isfinite(fmt.values) & (np.abs(fmt.values) <= 2) & (np.abs(fmt.values) >= 0.5))
    codes = rng.choice(finite, shape).astype(np.uint8)
    if fmt.bits > 4:
        return codes, fmt.values[codes], (1, 1)
    low, high = (np.take(codes, np.arange(k, shape[axis], 2), axis) for k in (0, 1))
    return low | high << 4, fmt.values[codes], ((2, 1), (1, 2))[axis]


def run_scaled(
    fa: str, fb: str, sa: Any, sb: Any, K: int, ka: bool = True, kb: bool = True, **device: Any
) -> Any:
    """What the kernel makes of 16 x K times K x 8, what is right, and its Run."""
    rng = np.random.default_rng(3)
    a, x, pa = elements(fa, (16, K), 1 if ka else 0, rng)
    b, y, pb = elements(fb, (K, 8), 0 if kb else 1, rng)
    c, out = rng.integers(-4, 5, (16, 8)).astype(np.float32), np.zeros((16, 8), np.float32)
    g = K // sa.shape[1] if sa is not None else K // sb.shape[1] if sb is not None else 32
    with sim.device(**device):
        run = scaled[(1,)](
            out, a, sa, b, sb, c, M=16, N=8, K=K, G=g, FA=fa, FB=fb, PA=pa, PB=pb, KA=ka, KB=kb
        )  # fmt: skip
    left = 1 if sa is None else np.repeat(factors(sa), g, 1)
    right = 1 if sb is None else np.repeat(factors(sb), g, 1).T
    return out, c + (x * left) @ (y * right), run


def factors(scales: Any) -> Any:
    if scales.dtype == np.uint8:
        return np.where(scales == 255, np.nan, 2.0 ** (scales.astype(float) - 127))
    return 2.0**scales if scales.dtype == np.int8 else scales.astype(float)


def powers(rows: int, groups: int, kind: Any = np.uint8, around: int = 127) -> Any:
    return (np.random.default_rng(rows).integers(-1, 2, (rows, groups)) + around).astype(kind)


@pytest.mark.drawn(3)
@pytest.mark.parametrize(
    ("fa", "fb"),
    [("e4m3", "e4m3"), ("e5m2", "e4m3"), ("e2m1", "e2m1"), ("e4m3", "e2m1"), ("bf16", "e2m1"), ("e5m2", "fp16"),
     ("hif8", "e4m3")],
)  # fmt: skip
def test_elements_times_scales_of_groups_of_32_are_exact(fa: str, fb: str) -> None:
    """Sums of these elements have no more bits than float32, so the float64 product must be met."""
    got, right, run = run_scaled(fa, fb, powers(16, 2), powers(8, 2), 64)
    np.testing.assert_array_equal(got, right)
    assert "scales apply to elements without rounding" in run.faults[-1]
    only_one, right, _ = run_scaled(fa, fb, None, powers(8, 2), 64)
    np.testing.assert_array_equal(only_one, right)


@pytest.mark.parametrize(("ka", "kb"), [(False, True), (True, False), (False, False)])
def test_four_bits_may_be_packed_along_the_other_axis(ka: bool, kb: bool) -> None:
    got, right, _ = run_scaled("e2m1", "e2m1", powers(16, 1), powers(8, 1), 32, ka, kb)
    np.testing.assert_array_equal(got, right)


def test_exponents_as_triton_ascend_has_them() -> None:
    got, right, _ = run_scaled("e4m3", "e4m3", powers(16, 2, np.int8, 0), powers(8, 2, np.int8, 0), 64)
    np.testing.assert_array_equal(got, right)


def test_nvfp4_has_scales_of_e4m3_for_groups_of_16() -> None:
    sa, sb = (
        np.linspace(0.5, 3, rows * 4).reshape(rows, 4).astype(ml_dtypes.float8_e4m3fn) for rows in (16, 8)
    )
    got, right, _ = run_scaled("e2m1", "e2m1", sa, sb, 64)
    np.testing.assert_array_equal(got, right)


@pytest.mark.parametrize("formats", [("e4m3", "e4m3"), ("fp16", "fp16"), ("bf16", "bf16")])
def test_a_scale_of_255_is_nan(formats: tuple[str, str]) -> None:
    sa, sb = powers(16, 2), powers(8, 2)
    sa[3, 1] = 255
    got, right, _ = run_scaled(*formats, sa, sb, 64)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(right))
    assert np.isnan(got[3]).all()
    assert not np.isnan(np.delete(got, 3, 0)).any()


def test_a_saturating_product_applies_scales_before_it_saturates() -> None:
    got, right, _ = run_scaled("e4m3", "e4m3", powers(16, 2), powers(8, 2), 64, product="ascend910a")
    np.testing.assert_array_equal(got, right)


def test_scales_come_by_way_of_l1_and_cost_time_and_four_bits_are_half_the_bytes() -> None:
    _, _, eight = run_scaled("e4m3", "e4m3", powers(16, 16), powers(8, 16), 512)
    _, _, plain = run_scaled("e4m3", "e4m3", None, None, 512)
    _, _, four = run_scaled("e2m1", "e2m1", powers(16, 16), powers(8, 16), 512)
    assert plain.pipes["AIC.MTE1"].busy_cycles < eight.pipes["AIC.MTE1"].busy_cycles
    assert plain.pipes["AIC.MTE2"].busy_cycles < eight.pipes["AIC.MTE2"].busy_cycles
    assert four.pipes["AIC.M"].busy_cycles < eight.pipes["AIC.M"].busy_cycles
    assert four.pipes["AIC.MTE2"].busy_cycles < eight.pipes["AIC.MTE2"].busy_cycles


@sim.jit
def quantised(out, a, b, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Elements and scales that the Vector unit makes: both go on to L1."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + m[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + n[None, :])
    top = tl.max(tl.abs(x), 1)
    scale = ((top.to(tl.int32, bitcast=True) >> 23) - 7).to(tl.uint8)
    power = (scale.to(tl.int32) << 23).to(tl.float32, bitcast=True)
    q = (x / power[:, None]).to(tl.float8e4nv)
    s = tl.expand_dims(scale, 1)
    tl.store(out + m[:, None] * N + n[None, :], tl.dot_scaled(q, s, "e4m3", y, None, "e4m3"))


def test_operands_and_scales_that_the_kernel_makes() -> None:
    rng = np.random.default_rng(0)
    x, y = (
        rng.standard_normal((16, 32)).astype(np.float32),
        rng.standard_normal((32, 16)).astype(ml_dtypes.float8_e4m3fn),
    )
    out = np.zeros((16, 16), np.float32)
    with sim.device(errors=True):
        run = quantised[(1,)](out, x, y, M=16, N=16, K=32)
    right = x.astype(float) @ y.astype(float)
    assert np.abs(out - right).max() < 0.1 * np.abs(right).max()
    assert run.pipes["AIC.M"].busy_cycles > 0
    assert 0 < run.errors["out"].max_abs < 0.1 * np.abs(right).max()


@pytest.mark.parametrize(
    ("fa", "fb", "sa", "sb", "text"),
    [
        ("e4m3", "e4m3", powers(16, 4), None, r"scales of lhs must have shape \[16, 2\], one for each of 16 rows"),
        ("e4m3", "e4m3", None, powers(16, 2), r"scales of rhs must have shape \[8, 2\], one for each of 8 columns"),
        ("e4m3", "e4m3", powers(16, 2, np.float16), None, "scales of lhs must be uint8, int8 or fp8e4nv with two axes"),
        ("fp16", "bf16", None, None, "the formats are fp16 and bf16; the Cube reads operands of 16 bits of one format"),
        ("e9m9", "e4m3", None, None, "the format of lhs is 'e9m9'"),
        ("int4", "e4m3", None, None, "the format of lhs is 'int4'; it takes floating formats up to 16 bits"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_both_shapes(fa: str, fb: str, sa: Any, sb: Any, text: str) -> None:
    zeros = {"e9m9": np.zeros((16, 64), np.uint8), "int4": np.zeros((16, 64), np.uint8)}
    rng = np.random.default_rng(0)
    a = zeros[fa] if fa in zeros else elements(fa, (16, 64), 1, rng)[0]
    b, c = elements(fb, (64, 8), 0, rng)[0], np.zeros((16, 8), np.float32)
    with pytest.raises(CompileError, match=text):
        refused_scales[(1,)](
            c, a, sa, b, sb, M=16, N=8, K=64, SA=None if sa is None else sa.shape, SB=None if sb is None else sb.shape,
            FA=fa, FB=fb,
        )  # fmt: skip


@sim.jit
def refused_scales(
    out, a, sa, b, sb, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, SA: tl.constexpr, SB: tl.constexpr,
    FA: tl.constexpr, FB: tl.constexpr,
):  # fmt: skip
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + m[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + n[None, :])
    left, right = None, None
    if SA is not None:
        left = tl.load(sa + tl.arange(0, SA[0])[:, None] * SA[1] + tl.arange(0, SA[1])[None, :])
    if SB is not None:
        right = tl.load(sb + tl.arange(0, SB[0])[:, None] * SB[1] + tl.arange(0, SB[1])[None, :])
    tl.store(out + m[:, None] * N + n[None, :], tl.dot_scaled(x, left, FA, y, right, FB))


def test_k_that_groups_do_not_divide_is_refused() -> None:
    with pytest.raises(
        CompileError, match="scales of lhs are for groups of 32 along K, which does not divide K = 48"
    ):
        run_scaled("e4m3", "e4m3", powers(16, 1), None, 48)
