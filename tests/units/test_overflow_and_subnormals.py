"""Overflow modes and subnormal rules of the Vector unit, by product and by switch."""

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.precision import dtypes as ty
from ascendtile.simulator.units import vector

from ..support.elementwise import binary, unary

SATURATE = vector.Numerics(sum_order="tree_tree", overflow="saturate")
FLUSH = vector.Numerics(fp32_subnormals="flush")
TINY = np.float32(1e-40)


def row(*values):
    return np.array([values], np.float32)


def test_half_sums_saturate_at_every_level():
    x = row(60000, 60000, -30000, 100)
    assert vector.reduce("sum", x, 0, ty.float16, SATURATE).tolist() == [35584]
    assert vector.reduce("sum", x, 0, ty.float16, vector.Numerics("tree_tree")).tolist() == [np.inf]


def test_results_saturate_and_nan_becomes_zero():
    big, inf = row(3e38, -3e38, 1), row(3e38, -3e38, np.inf)
    top = float(np.finfo(np.float32).max)
    assert binary("add", big, inf, ty.float32, SATURATE).tolist() == [[top, -top, top]]
    assert binary("sub", row(np.inf), row(np.inf), ty.float32, SATURATE).tolist() == [[0]]
    assert binary("mul", row(300), row(300), ty.float16, SATURATE).tolist() == [[65504]]
    assert unary("exp", row(12), ty.float16, SATURATE).tolist() == [[65504]]  # the guide's example
    assert unary("sqrt", row(-1), ty.float32, SATURATE).tolist() == [[0]]  # the guide's example


def test_subnormal_results_are_flushed_with_their_sign():
    out = binary("mul", row(1e-30, -1e-30, 1e-30), row(1e-10, 1e-10, 1), ty.float32, FLUSH)
    assert out.tolist() == [[0, 0, float(np.float32(1e-30))]]
    assert np.signbit(out).tolist() == [[False, True, False]]
    assert binary("mul", row(1e-30), row(1e-10), ty.float32)[0, 0] == TINY


def test_half_subnormals_are_kept():
    assert binary("mul", row(2**-14), row(2**-9), ty.float16, FLUSH).tolist() == [[2**-23]]


@sim.jit
def grow(x_ptr, out_ptr, copy_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    tl.store(copy_ptr + at, x)
    tl.store(out_ptr + at, x * 1e30)


@pytest.mark.parametrize(("choice", "expected"), [("flush", 0.0), ("keep", float(TINY * np.float32(1e30)))])
def test_subnormal_operands_count_as_zero_but_a_copy_keeps_them(choice, expected):
    x = np.array([TINY, 1], np.float32)
    out, copied = np.empty_like(x), np.empty_like(x)
    with sim.device("ascend910b3", overrides={"numerics.fp32_subnormals": choice}):
        run = grow[(1,)](x, out, copied, BLOCK=2)
    assert out.tolist() == [expected, float(np.float32(1e30))]
    assert copied.tolist() == x.tolist()
    assert run.options["fp32_subnormals"].startswith(choice)


@pytest.mark.parametrize(("product", "expected"), [("ascend310p", 65504.0), ("ascend910b3", np.inf)])
def test_overflow_follows_the_product(product, expected):
    x = np.full(4, 300, np.float16)
    out = np.empty_like(x)
    with sim.device(product):
        square[(1,)](x, out, BLOCK=4)
    assert out.tolist() == [expected] * 4


@sim.jit
def square(x_ptr, out_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(out_ptr + tl.arange(0, BLOCK), x * x)


@pytest.mark.parametrize(("choice", "expected"), [("flush", 0.0), ("keep", 2.0**-126)])
@pytest.mark.parametrize("axis", [0, 1])
def test_subnormal_sums_inside_a_reduction(choice, expected, axis):
    """1.5 - 1 and again 1.5 - 1 times the smallest normal number: the halves are subnormal, their sum is not."""
    rules = vector.Numerics(fp32_subnormals=choice)
    lanes = np.float32(2.0**-126) * np.array([1.5, -1, 1.5, -1], np.float32)
    order = lanes if axis == 1 else lanes[[0, 2, 1, 3]]  # neighbours along a row, halves along a column
    x = order.reshape(1, 1, 4) if axis == 1 else order.reshape(1, 4, 1)
    assert vector.reduce("sum", x, axis, ty.float32, rules).item() == expected


def test_subnormal_half_sums_flush_by_the_switch_of_fp16():
    x = np.array([[1.5, -1, 1.5, -1]], np.float32) * np.float32(2.0**-14)
    flush = vector.Numerics(fp16_subnormals="flush")
    assert vector.reduce("sum", x, 0, ty.float16, flush).item() == 0
    assert vector.reduce("sum", x, 0, ty.float16, vector.Numerics()).item() == 2.0**-14
