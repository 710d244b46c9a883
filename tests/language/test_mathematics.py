"""Elementwise builtins in a kernel: their values, their types, what they refuse."""

from __future__ import annotations

import inspect
from typing import Any

import ml_dtypes
import mpmath
import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.language.extra import libdevice
from ascendtile.simulator.precision import dtypes as ty
from ascendtile.simulator.units import functions, vector

from ..support.elementwise import binary, unary
from .values import output

HALVES: dict[str, Any] = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16}

ORACLES: dict[str, Any] = {
    "acos": mpmath.acos,
    "acosh": mpmath.acosh,
    "asin": mpmath.asin,
    "asinh": mpmath.asinh,
    "atan": mpmath.atan,
    "atanh": mpmath.atanh,
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "cos": mpmath.cos,
    "cosh": mpmath.cosh,
    "cospi": mpmath.cospi,
    "cyl_bessel_i0": lambda x: mpmath.besseli(0, x),
    "cyl_bessel_i1": lambda x: mpmath.besseli(1, x),
    "erf": mpmath.erf,
    "erfc": mpmath.erfc,
    "erfcinv": lambda x: mpmath.erfinv(1 - x),
    "erfcx": lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
    "erfinv": mpmath.erfinv,
    "exp10": lambda x: mpmath.power(10, x),
    "exp2": lambda x: mpmath.power(2, x),
    "expm1": mpmath.expm1,
    "j0": mpmath.j0,
    "j1": mpmath.j1,
    "lgamma": lambda x: mpmath.log(abs(mpmath.gamma(x))),
    "log10": mpmath.log10,
    "log1p": mpmath.log1p,
    "log2": lambda x: mpmath.log(x, 2),
    "logb": lambda x: mpmath.floor(mpmath.log(abs(x), 2)),
    "normcdf": mpmath.ncdf,
    "normcdfinv": lambda x: mpmath.sqrt(2) * mpmath.erfinv(2 * x - 1),
    "rcbrt": lambda x: mpmath.sign(x) / mpmath.cbrt(abs(x)),
    "rint": mpmath.nint,
    "round": lambda x: mpmath.sign(x) * mpmath.floor(abs(x) + 0.5),
    "sin": mpmath.sin,
    "sinh": mpmath.sinh,
    "sinpi": mpmath.sinpi,
    "tan": mpmath.tan,
    "tanh": mpmath.tanh,
    "tgamma": mpmath.gamma,
    "trunc": lambda x: mpmath.sign(x) * mpmath.floor(abs(x)),
    "y0": lambda x: mpmath.bessely(0, x),
    "y1": lambda x: mpmath.bessely(1, x),
}
DOMAINS = {
    **dict.fromkeys(("acos", "asin", "atanh", "erfinv"), (-1, 1)),
    **dict.fromkeys(("log10", "log2", "y0", "y1", "lgamma", "tgamma"), (0, 30)),
    **dict.fromkeys(("acosh",), (1, 300)),
    **dict.fromkeys(("log1p",), (-1, 40)),
    **dict.fromkeys(("erfcinv",), (0, 2)),
    **dict.fromkeys(("normcdfinv",), (0, 1)),
    **dict.fromkeys(("erfcx",), (-5, 60)),
    **dict.fromkeys(("sin", "cos", "tan"), (-1e5, 1e5)),
    **dict.fromkeys(("cyl_bessel_i0", "cyl_bessel_i1"), (-90, 90)),
}


def test_every_function_has_an_oracle() -> None:
    assert set(ORACLES) == set(functions.UNARY)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", sorted(ORACLES))
def test_functions_are_correctly_rounded(name: str) -> None:
    """Against 40 digits: float32 and both halves have the nearest value, float64 is good to a few last bits."""
    low, high = DOMAINS.get(name, (-9, 9))
    rng = np.random.default_rng(len(name))
    x = rng.uniform(low, high, 150).astype(np.float32)
    x = x[(x > low) & (x < high) & (x != 0)]
    with mpmath.workdps(40):
        exact = [ORACLES[name](mpmath.mpf(float(v))) for v in x]
        nearest = _nearest(exact, 24, -149)
    np.testing.assert_array_equal(unary(name, x, ty.float32), nearest)
    double = functions.unary(name, x.astype(np.float64), ty.float64)
    np.testing.assert_allclose(double, [float(v) for v in exact], rtol=2e-12, atol=1e-300)


def _nearest(values: list[Any], digits: int, least: int) -> np.ndarray:
    """Each value with that many binary digits (fewer below the normal range), ties to even."""
    out = []
    for v in values:
        if v == 0:
            out.append(0.0)
            continue
        exponent = max(int(mpmath.floor(mpmath.log(abs(v), 2))) - digits + 1, least)
        out.append(float(mpmath.ldexp(mpmath.nint(mpmath.ldexp(v, -exponent)), exponent)))
    return np.array(out, np.float32)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("name", ["sin", "exp2", "log2", "tanh", "erf"])
def test_halves_are_rounded_once(name: str, half: str) -> None:
    kind = HALVES[half]
    rng = np.random.default_rng(3)
    x = rng.uniform(0.01, 5, 400).astype(kind).astype(np.float32)
    digits, least = (11, -24) if half == "fp16" else (8, -133)
    with mpmath.workdps(40):
        nearest = _nearest([ORACLES[name](mpmath.mpf(float(v))) for v in x], digits, least)
    dtype = ty.from_name(half)
    assert dtype is not None
    np.testing.assert_array_equal(unary(name, x, dtype), nearest)


BINARY_ORACLES: dict[str, Any] = {
    "atan2": mpmath.atan2,
    "fdim": lambda x, y: max(x - y, 0),
    "fmod": lambda x, y: x - y * (mpmath.sign(x / y) * mpmath.floor(abs(x / y))),
    "hypot": mpmath.hypot,
    "pow": lambda x, y: mpmath.power(abs(x), y),
    "remainder": lambda x, y: x - y * mpmath.nint(x / y),
    "rhypot": lambda x, y: 1 / mpmath.hypot(x, y),
    "jn": lambda n, x: mpmath.besselj(int(n), x),
    "yn": lambda n, x: mpmath.bessely(int(n), x),
}


@pytest.mark.drawn(3)
@pytest.mark.parametrize("name", sorted(BINARY_ORACLES))
def test_functions_of_two_are_correctly_rounded(name: str) -> None:
    assert set(BINARY_ORACLES) == set(functions.BINARY)
    rng = np.random.default_rng(11)
    x, y = (rng.uniform(-9, 9, 150).astype(np.float32) for _ in range(2))
    if name == "pow":
        x = np.abs(x)
    if name in ("jn", "yn"):
        x, y = np.floor(np.abs(x)), np.abs(y)
    with mpmath.workdps(40):
        exact = [
            BINARY_ORACLES[name](mpmath.mpf(float(u)), mpmath.mpf(float(v)))
            for u, v in zip(x, y, strict=True)
        ]
        nearest = _nearest(exact, 24, -149)
    np.testing.assert_array_equal(binary(name, x, y, ty.float32), nearest)


def test_fused_products_are_rounded_once() -> None:
    """x * y + z in exact arithmetic, with a sum that cancels nearly everything among them."""
    rng = np.random.default_rng(8)
    x, y = (rng.uniform(-2, 2, 3000).astype(np.float32) for _ in range(2))
    z = np.where(rng.random(3000) < 0.5, -(x * y), np.float32(2.0) ** rng.integers(-60, 60, 3000)).astype(
        np.float32
    )
    with mpmath.workdps(60):
        exact = [
            mpmath.mpf(float(a)) * mpmath.mpf(float(b)) + mpmath.mpf(float(c))
            for a, b, c in zip(x, y, z, strict=True)
        ]
        nearest = _nearest(exact, 24, -149)
    np.testing.assert_array_equal(vector.fma(x, y, z, ty.float32), nearest)


@pytest.mark.parametrize("dtype", [ty.int32, ty.uint32, ty.int64, ty.uint64])
def test_upper_halves_of_products(dtype: ty.DType) -> None:
    ends = np.iinfo(dtype.host_dtype)
    rng = np.random.default_rng(1)
    x, y = (rng.integers(ends.min, ends.max, 500, dtype=dtype.host_dtype, endpoint=True) for _ in range(2))
    x[:2], y[:2] = ends.max, (ends.min, ends.max)
    got = functions.high_product(x, y, dtype)
    assert got.tolist() == [int(u) * int(v) >> dtype.bits for u, v in zip(x, y, strict=True)]


@pytest.mark.parametrize("way", ["rz", "rd", "ru"])
@pytest.mark.parametrize("name", ["div", "mul"])
def test_directed_rounding(name: str, way: str) -> None:
    rng = np.random.default_rng(2)
    x, y = (rng.uniform(-9, 9, 300).astype(np.float32) for _ in range(2))
    got = binary(f"{name}_{way}", x, y, ty.float32)
    for u, v, g in zip(x.tolist(), y.tolist(), got, strict=True):
        with mpmath.workdps(60):
            exact = mpmath.mpf(u) / v if name == "div" else mpmath.mpf(u) * v
            down = {"rd": True, "ru": False, "rz": exact > 0}[way]
            below = float(g) <= exact if down else float(g) >= exact
            beyond = np.nextafter(g, np.float32(np.inf if down else -np.inf))
            assert below
            assert float(beyond) > exact if down else float(beyond) < exact


X = np.array([0.3, 1.7, 2.5, 0.01, 7.75], np.float32)


@sim.jit
def all_builtins(out, x, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    tl.store(out + 0 * B + i, tl.floor(v) + tl.ceil(-v) + v.floor() + v.ceil())
    tl.store(out + 1 * B + i, tl.exp2(v) + tl.math.exp2(v))
    tl.store(out + 2 * B + i, v.sin() * tl.math.sin(v) + tl.cos(v) * v.cos())
    tl.store(out + 3 * B + i, tl.clamp(v, 0.5, 2.0))
    tl.store(out + 4 * B + i, tl.fma(v, v, 0.5))
    tl.store(out + 5 * B + i, tl.softmax(v) + v.softmax(0))
    tl.store(out + 6 * B + i, tl.log2(v) + v.log2() - tl.erf(v))
    tl.store(out + 7 * B + i, tl.add(v, 1.0) * tl.sub(v, 1.0) - tl.mul(v, v))


def test_builtins_in_a_kernel() -> None:
    got = output(all_builtins, 40, X, B=5).reshape(8, 5)
    x = X.astype(np.float64)
    erf = np.array([float(mpmath.erf(v)) for v in x])
    np.testing.assert_array_equal(got[0], np.floor(x) + np.ceil(-x) + np.floor(x) + np.ceil(x))
    np.testing.assert_allclose(got[1], 2 * np.exp2(x), rtol=1e-7)
    np.testing.assert_allclose(got[2], np.ones(5), rtol=3e-7)
    np.testing.assert_array_equal(got[3], np.clip(X, 0.5, 2))
    np.testing.assert_allclose(got[4], x * x + 0.5, rtol=1e-7)
    e = np.exp(x - x.max())
    np.testing.assert_allclose(got[5], 2 * e / e.sum(), rtol=1e-6)
    np.testing.assert_allclose(got[6], 2 * np.log2(x) - erf, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(got[7], -np.ones(5), atol=1e-5)


@sim.jit
def nan_rules(out, x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + 0 * B + i, tl.maximum(a, b))
    tl.store(out + 1 * B + i, tl.minimum(a, b, propagate_nan=tl.PropagateNan.NONE))
    tl.store(out + 2 * B + i, tl.maximum(a, b, tl.PropagateNan.ALL))
    tl.store(out + 3 * B + i, tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL))
    tl.store(out + 4 * B + i, tl.clamp(a, -1.0, 1.0))
    tl.store(out + 5 * B + i, tl.clamp(a, -1.0, 1.0, tl.PropagateNan.ALL))


def test_nan_is_skipped_unless_it_is_to_propagate() -> None:
    nan = float("nan")
    x, y = np.array([nan, 1, nan, 5], np.float32), np.array([2, nan, nan, 3], np.float32)
    got = output(nan_rules, 24, x, y, B=4).reshape(6, 4)
    np.testing.assert_array_equal(got[0], [2, 1, nan, 5])
    np.testing.assert_array_equal(got[1], [2, 1, nan, 3])
    np.testing.assert_array_equal(got[2], [nan, nan, nan, 5])
    np.testing.assert_array_equal(got[3], [nan, nan, nan, 3])
    np.testing.assert_array_equal(got[4], [-1, 1, -1, 1])
    np.testing.assert_array_equal(got[5], [nan, 1, nan, 1])


@sim.jit
def integers(out, x, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    tl.store(out + 0 * B + i, libdevice.popc(v))
    tl.store(out + 1 * B + i, libdevice.clz(v))
    tl.store(out + 2 * B + i, libdevice.ffs(v))
    tl.store(out + 3 * B + i, libdevice.brev(v))
    tl.store(out + 4 * B + i, libdevice.hadd(v, 3))
    tl.store(out + 5 * B + i, libdevice.rhadd(v, 3))
    tl.store(out + 6 * B + i, libdevice.sad(v, 3, 10))
    tl.store(out + 7 * B + i, tl.umulhi(v, 1 << 30) + libdevice.mulhi(v, v))


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_functions_of_integers(kind: Any) -> None:
    x = np.array([0, 1, -1, 40, 1 << 30, -(1 << 31)], kind)
    got = output(integers, 48, x, dtype=np.int64, B=6).reshape(8, 6).tolist()
    bits = x.itemsize * 8
    raw = [int(v) % (1 << bits) for v in x]
    assert got[0] == [v.bit_count() for v in raw]
    assert got[1] == [bits - v.bit_length() for v in raw]
    assert got[2] == [(v & -v).bit_length() for v in raw]
    turned = [int(f"{v:0{bits}b}"[::-1], 2) for v in raw]
    assert got[3] == [v - (1 << bits) if v >> (bits - 1) else v for v in turned]
    assert got[4] == [(int(v) + 3) // 2 for v in x]
    assert got[5] == [-(-(int(v) + 3) // 2) for v in x]
    assert [v % (1 << bits) for v in got[6]] == [(abs(int(v) - 3) + 10) % (1 << bits) for v in x]
    assert got[7] == [(int(v) * (1 << 30) >> bits) + (int(v) * int(v) >> bits) for v in x]


@sim.jit
def classes(out, x, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    tl.store(out + 0 * B + i, libdevice.isnan(v).to(tl.float32))
    tl.store(out + 1 * B + i, libdevice.isinf(v).to(tl.float32))
    tl.store(out + 2 * B + i, libdevice.finitef(v).to(tl.float32))
    tl.store(out + 3 * B + i, libdevice.signbit(v).to(tl.float32))


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_classes_of_numbers(kind: Any) -> None:
    x = np.array([0.0, -0.0, 1, -2, np.inf, -np.inf, np.nan], kind)
    got = output(classes, 28, x, B=7).reshape(4, 7)
    held = x.astype(np.float32)
    np.testing.assert_array_equal(got[0], np.isnan(held))
    np.testing.assert_array_equal(got[1], np.isinf(held))
    np.testing.assert_array_equal(got[2], np.isfinite(held))
    np.testing.assert_array_equal(got[3], np.signbit(held))


@sim.jit
def floats(out, x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    v, w = tl.load(x + i), tl.load(y + i)
    tl.static_assert(libdevice.tanh(v).dtype == v.dtype)
    tl.store(out + 0 * B + i, libdevice.nextafter(v, w))
    tl.store(out + 1 * B + i, libdevice.copysign(v, w))
    tl.store(out + 2 * B + i, libdevice.ldexp(v, i))
    tl.store(out + 3 * B + i, libdevice.relu(v) + libdevice.saturatef(w))
    tl.store(out + 4 * B + i, libdevice.ilogb(v))
    tl.store(out + 5 * B + i, libdevice.float2int_rd(v.to(tl.float32)) + libdevice.llrint(w))


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_functions_of_bits(kind: Any) -> None:
    x, y = np.array([1, -2.5, 0.75, -6], kind), np.array([-2, -3, 4, 0.5], kind)
    got = output(floats, 24, x, y, dtype=kind, B=4).reshape(6, 4)
    np.testing.assert_array_equal(got[0], np.nextafter(x, y))
    np.testing.assert_array_equal(got[1], np.copysign(x, y))
    np.testing.assert_array_equal(got[2], x * (2 ** np.arange(4)).astype(kind))
    np.testing.assert_array_equal(
        got[3], (np.maximum(x, kind(0)) + np.clip(y, kind(0), kind(1))).astype(kind)
    )
    np.testing.assert_array_equal(got[4].astype(float), [0, 1, -1, 2])
    np.testing.assert_array_equal(got[5].astype(float), np.floor(x.astype(float)) + np.rint(y.astype(float)))


def test_every_name_of_the_table_compiles() -> None:
    """Each builtin of libdevice builds a program for operands of its kind, and has a text for help()."""
    from ascendtile.simulator.ir.building.builder import Builder

    integer_names = {"popc", "clz", "ffs", "brev", "hadd", "rhadd", "sad", "mulhi", "umulhi"}
    reinterpreted = {
        "int_as_float": ty.int32,
        "uint_as_float": ty.uint32,
        "longlong_as_double": ty.int64,
        "double_as_longlong": ty.float64,
    }
    for name, w in libdevice.BUILTINS.items():
        b = Builder()
        source = (
            ty.int32
            if name in integer_names or name.split("2")[0] in ("int", "uint", "ll", "ull")
            else ty.float32
        )
        dtype = reinterpreted.get(name, source)
        count = sum(p.default is p.empty for p in inspect.signature(w.build).parameters.values()) - 1
        args = [b.full((8,), 1, dtype) for _ in range(count)]
        if name in ("jn", "yn"):
            args[0] = b.full((8,), 1, ty.int32)
        assert w.build(b, *args) is not None, name
        assert w.__doc__
