"""Casts, queries of types, compile-time values, hints, checks and prints."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import CompileError, DeviceAssertionError
from ascendtile.simulator.precision import dtypes as ty
from ascendtile.simulator.units import vector

from .values import output

WIDTH = tl.constexpr(4)
TWICE = WIDTH * 2 + 1


def test_compile_time_values_have_arithmetic() -> None:
    assert isinstance(TWICE, tl.constexpr)
    assert TWICE.value == 9
    assert (10 - WIDTH).value == 6
    assert (-WIDTH).value == -4
    assert bool(WIDTH < 5)
    assert not bool(WIDTH >= 5)
    assert tl.constexpr((3, 4))[1].value == 4
    assert list(range(WIDTH)) == [0, 1, 2, 3]


@sim.jit
def queries(out, x: tl.const, h, B: tl.constexpr):
    i = tl.arange(0, B)
    v, p = tl.load(x + i), x + i
    tl.static_assert(
        isinstance(v, tl.tensor) and isinstance(v.dtype, tl.dtype) and not isinstance(v, tl.dtype)
    )
    tl.static_assert(v.dtype == tl.dtype("fp32") and tl.dtype("int8") == tl.int8)
    tl.static_assert(v.dtype.is_floating() and v.dtype.is_standard_floating() and not v.dtype.is_fp8())
    tl.static_assert(i.dtype.is_int32() and not i.dtype.is_int64() and i.dtype.int_bitwidth == 32)
    tl.static_assert(i.dtype.is_int_signed() and tl.uint8.is_uint8() and tl.int1.is_bool())
    tl.static_assert(tl.bfloat16.is_bf16() and tl.float64.is_fp64() and tl.bfloat16.fp_mantissa_width == 7)
    tl.static_assert(v.dtype.fp_mantissa_width == 23 and h.dtype.element_ty.fp_mantissa_width == 10)
    tl.static_assert(v.type.is_block() and not v.dtype.is_block() and v.type.scalar == tl.float32)
    tl.static_assert(v.type.element_ty == tl.float32 and v.type.shape == (B,) and v.type.numel == B)
    tl.static_assert(
        x.type.element_ty == tl.float32 and x.type.scalar.element_ty == tl.float32 and x.dtype.is_ptr()
    )
    tl.static_assert(p.type.scalar.is_ptr() and p.type.element_ty.element_ty == tl.float32)
    tl.static_assert(v.type.primitive_bitwidth == 32 and v.dtype.scalar == tl.float32 and v.numel == B)
    tl.static_assert(
        tl.get_int_dtype(16, True) == tl.int16 and tl.get_int_dtype(bitwidth=64, signed=False) == tl.uint64
    )
    tl.static_assert(v.dtype != tl.float8e5 and tl.float8e4nv.is_fp8())
    tl.static_assert(B.value == B and TWICE.value == 9 and (TWICE + B) // 2 == 6)
    tl.static_assert(tl.tuple((1, 2))[1] == 2 and tl.to_tensor(3).dtype == tl.int32)
    tl.static_assert(tl.float16(v).dtype == tl.float16 and tl.int64(3).dtype == tl.int64)
    tl.store(out + i, tl.float32(tl.int8(v + 300)) + tl.cast(v, tl.float16).to(tl.float32))


def test_queries_of_types() -> None:
    x = np.array([1, 2, 3], np.float32)
    assert output(queries, 3, x, x.astype(np.float16), B=3).tolist() == [128, 129, 130]


@sim.jit
def bits(out, x, B: tl.constexpr, T: tl.constexpr):
    v = tl.load(x + tl.arange(0, B))
    raw = v.to(T, bitcast=True)
    tl.static_assert(raw.dtype == T)
    tl.store(out + tl.arange(0, B), raw)
    back = raw.to(v.dtype, bitcast=True)
    tl.device_assert((back == v) | (v != v))


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=20))
def test_bitcasts_of_single_precision(raw: list[int]) -> None:
    x = np.array(raw, np.uint32).view(np.float32)
    got = output(bits, len(raw), x, dtype=np.int32, B=len(raw), T=tl.int32)
    assert got.view(np.uint32).tolist() == raw


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
def test_bitcasts_of_every_half(kind: Any) -> None:
    raw = np.arange(1 << 16, dtype=np.uint16)
    x = raw.view(kind)
    quiet = ~np.isnan(x.astype(np.float32))
    source = ty.float16 if kind is np.float16 else ty.bfloat16
    got = vector.bitcast(x.astype(np.float32), source, ty.uint16)
    np.testing.assert_array_equal(got[quiet], raw[quiet])


def test_integers_of_one_width_are_casts() -> None:
    x = np.array([-1, 5, -(2**31)], np.int32)
    got = output(bits, 3, x, dtype=np.uint32, B=3, T=tl.uint32)
    assert got.tolist() == [2**32 - 1, 5, 2**31]


@sim.jit
def modes(out, x, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    tl.store(out + 0 * B + i, v.to(tl.float16, fp_downcast_rounding="rtz").to(tl.float32))
    tl.store(out + 1 * B + i, tl.cast(v, tl.bfloat16, fp_downcast_rounding="rtne").to(tl.float32))
    tl.store(out + 2 * B + i, v.to(tl.int8, overflow_mode="saturate").to(tl.float32))
    tl.store(out + 3 * B + i, v.to(tl.int8, overflow_mode="trunc").to(tl.float32))
    at = i * 100 - 100
    tl.store(out + 4 * B + i, at.to(tl.int8, overflow_mode="saturate").to(tl.float32))
    tl.store(
        out + 5 * B + i,
        at.to(tl.int8, overflow_mode="trunc").to(tl.float32) + n.to(tl.int8, overflow_mode="saturate"),
    )


def test_rounding_and_overflow_of_casts() -> None:
    x = np.array([1.0009, -1.0009, 200.0, -300.7], np.float32)
    got = output(modes, 24, x, 1000, B=4).reshape(6, 4)
    toward_zero = np.sign(x) * np.array([1.0, 1.0, 200.0, 300.5])
    np.testing.assert_array_equal(got[0], toward_zero)
    np.testing.assert_array_equal(got[1], x.astype(ml_dtypes.bfloat16).astype(np.float32))
    assert got[2].tolist() == [1, -1, 127, -128]
    assert got[3].tolist() == [1, -1, 200 - 256, -300 + 256]
    assert got[4].tolist() == [-100, 0, 100, 127]
    assert got[5].tolist() == [27, 127, 227, 200 - 256 + 127]


@sim.jit
def hinted(out, x, n, B: tl.constexpr):
    i = tl.max_contiguous(tl.multiple_of(tl.arange(0, B), B), B)
    tl.assume(n > 0)
    k = 0
    while tl.condition(k < n):
        k += 1
    tl.debug_barrier()
    tl.store(out + i, tl.load(tl.multiple_of(x, 16) + tl.max_constancy(i, 1)) + k)


def test_hints_change_nothing() -> None:
    assert output(hinted, 4, np.arange(4, dtype=np.float32), 3, B=4).tolist() == [3, 4, 5, 6]


@sim.jit
def checked(out, x, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.device_assert(tl.load(x + i) > 0, "x must be positive", mask=i < n)
    tl.store(out + i, 1.0)


def test_device_assertions_have_a_mask() -> None:
    x = np.array([1, 2, -3, 4], np.float32)
    assert output(checked, 4, x, 2, B=4).tolist() == [1, 1, 1, 1]
    with pytest.raises(DeviceAssertionError, match=r"program 0, element \[2\]: x must be positive"):
        output(checked, 4, x, 3, B=4)


@sim.jit
def printed(x, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.device_print("value", tl.load(x + i) * (tl.program_id(0) + 1))
    tl.device_print("both", n, i + 254, hex=True)


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_prints_name_program_and_index(capsys: pytest.CaptureFixture[str]) -> None:
    run = printed[(2,)](np.array([1.5, -2], np.float32), 7, B=2)
    assert lines(capsys) == [
        "pid (0, 0, 0) value: [1.500000,-2.000000]",
        "pid (1, 0, 0) value: [3.000000,-4.000000]",
        "pid (0, 0, 0) both (operand 0): 0x00000007",
        "pid (0, 0, 0) both (operand 1): [0x000000fe,0x000000ff]",
        "pid (1, 0, 0) both (operand 0): 0x00000007",
        "pid (1, 0, 0) both (operand 1): [0x000000fe,0x000000ff]",
    ]
    assert "device_print" in str(run)
    printed.time((2,), np.zeros(2, np.float32), 7, B=2)
    assert lines(capsys) == []


@sim.jit
def printed_rows(x, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, 3)[:, None] * N + tl.arange(0, N)[None, :])
    tl.device_print("rows", v > 1e-5)
    tl.device_print("values", v)
    tl.device_print("nothing else")


def test_prints_of_rows_have_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.array([[1e-6, 0], [-np.inf, np.nan], [1e-3, 2.0**31]], np.float32)
    printed_rows[(1,)](x, N=2)
    assert lines(capsys) == [
        *(f"pid (0, 0, 0) idx ({k}, :) rows: {row}" for k, row in enumerate(["[F,F]", "[F,F]", "[T,T]"])),
        "pid (0, 0, 0) idx (0, :) values: [1.000000e-06,0.000000]",
        "pid (0, 0, 0) idx (1, :) values: [-inf,nan]",
        "pid (0, 0, 0) idx (2, :) values: [0.001000,2147483648.000000]",
        "pid (0, 0, 0) nothing else",
    ]


def test_a_long_row_is_cut_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    printed[(1,)](np.zeros(1003, np.float32), 7, B=1003)
    first = lines(capsys)[0]
    assert first.count("0.000000") == 1000
    assert first.endswith("0.000000,... 3 more]")


@sim.jit
def python_print(x, n, B: tl.constexpr):
    print("value", tl.load(x + tl.arange(0, B)) * (tl.program_id(0) + 1))
    print("both", n, tl.arange(0, B) + 254, hex=True)


def test_print_of_python_prints_while_the_kernel_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """As in Triton: `print` in a kernel is tl.device_print, prefix first."""
    x = np.array([1.5, -2], np.float32)
    printed[(2,)](x, 7, B=2)
    expected = lines(capsys)
    python_print[(2,)](x, 7, B=2)
    assert lines(capsys) == expected
    python_print.time((2,), x, 7, B=2)
    assert lines(capsys) == [], "nothing while it is compiled or timed"


def test_a_long_print_is_cut_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    printed[(1200,)](np.zeros(4, np.float32), 7, B=4)
    out = lines(capsys)
    assert sum("value" in line for line in out) == 1000
    assert sum("more than 1000 lines" in line for line in out) == 2


@sim.jit
def refused(out, x, WHAT: tl.constexpr):
    v = tl.load(x + tl.arange(0, 8))
    if WHAT == "width":
        v.to(tl.int16, bitcast=True)
    elif WHAT == "rounding":
        v.to(tl.float16, fp_downcast_rounding="up")
    elif WHAT == "overflow":
        v.to(tl.int8, overflow_mode="wrap")
    elif WHAT == "void":
        v.to(tl.void)
    elif WHAT == "bits":
        v.to(tl.float8e5, fp_downcast_rounding="stochastic")
    elif WHAT == "no bits":
        v.to(tl.float8e5, random=tl.randint(0, tl.arange(0, 8)))
    elif WHAT == "shape of bits":
        v.to(tl.float8e5, fp_downcast_rounding="stochastic", random=tl.randint(0, tl.arange(0, 4)))
    elif WHAT == "infinity":
        v.to(tl.int8, overflow_mode="inf_nan")
    elif WHAT == "low bits":
        v.to(tl.float8e5, overflow_mode="trunc")
    elif WHAT == "assembly":
        tl.inline_asm_elementwise("mov", "=r", [v], tl.int32, True, 1)
    elif WHAT == "scaled":
        tl.dot_scaled(v, None, "e4m3", v, None, "e4m3")
    elif WHAT == "power":
        v**2
    elif WHAT == "assume":
        tl.assume(1 > 2)
    elif WHAT == "assert":
        tl.device_assert(WHAT == "x", "never")
    elif WHAT == "name":
        tl.dtype("float7")
    elif WHAT == "print":
        tl.device_print(v)
    elif WHAT == "integer":
        tl.sin(tl.arange(0, 8))
    else:
        tl.umulhi(v, v)


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("width", "a bitcast keeps the width"),
        ("rounding", "must be one of 'rtne', 'rtz', 'rint', .* 'stochastic', got 'up'"),
        ("overflow", "must be one of 'trunc', 'saturate', 'inf_nan', got 'wrap'"),
        ("void", "there are no tiles of void"),
        ("bits", r"needs `random`, an int32 or uint32 tile of shape \[8\] .*, got NoneType None"),
        ("no bits", "`random` is for fp_downcast_rounding=.stochastic., not for the usual rounding"),
        ("shape of bits", r"tile of shape \[8\] .*, got a uint32 tile of shape \[4\]"),
        ("infinity", "overflow_mode .inf_nan. is for floating point, not for int8"),
        ("low bits", "overflow_mode .trunc. is for integers, not for fp8e5"),
        ("assembly", "assembly of one GPU"),
        ("scaled", "lhs must be a tile of e4m3, or of its codes in uint8, with two axes, got a fp32 tile"),
        ("power", "libdevice.pow"),
        ("assume", "false at compile time"),
        ("assert", "fails always: never"),
        ("name", "no element type 'float7'"),
        ("print", "the first argument is the text"),
        ("integer", "sin needs floating point, got a int32 tile"),
        ("umulhi", "umulhi takes int32"),
    ],
)
def test_what_is_refused(what: str, text: str) -> None:
    with pytest.raises(CompileError, match=text):
        output(refused, 1, np.zeros(8, np.float32), WHAT=what)
