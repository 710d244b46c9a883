"""Compile-time values in kernels: their attributes, what tuples may hold, and numbers of an annotated type."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import CompileError, UsageError

from .values import output


@sim.jit
def number(out, n, C: tl.constexpr):
    acc = 0
    tl.static_assert(acc.dtype == tl.int32 and acc.type == tl.int32)
    tl.static_assert((1.5).type == tl.constexpr_type(1.5) and C.type == tl.constexpr_type(C))
    kept: tl.constexpr = C
    tl.static_assert(kept.type == tl.constexpr_type(C) and isinstance(kept.type, tl.constexpr_type))
    kept = 3.0
    tl.static_assert(kept.type == tl.float32)
    acc = acc.to(tl.int64)
    for i in range(n):
        acc += i
    tl.static_assert(acc.dtype == tl.int64)
    tl.store(out, acc)


def test_a_number_has_the_type_of_the_scalar_that_it_would_be() -> None:
    assert output(number, 1, 5, 7, dtype=np.int64).tolist() == [10]


@sim.jit
def shaped(out, SHAPE: tl.constexpr, more):
    tl.static_assert(len(SHAPE) == 2 and more[1] == 3)
    tl.store(out + tl.arange(0, 8), tl.full(SHAPE, more[0], tl.float32).reshape(8))


def test_a_tuple_may_hold_constexprs() -> None:
    shape = (tl.constexpr(2), tl.constexpr(4))
    assert output(shaped, 8, shape, (2.5, tl.constexpr(3))).tolist() == [2.5] * 8


class Closure(NamedTuple):
    fn: Any
    captured: tuple[Any, ...]


@sim.jit
def times(x, p):
    return x * tl.load(p)


@sim.jit
def made(fn, captured):
    return Closure(captured=captured, fn=fn)


@sim.jit
def closed(out, closure, scale):
    again = made(closure.fn, closure.captured)
    tl.static_assert(scale[1] == 4)
    tl.store(out, again.fn(tl.load(scale[0]), *again.captured))


def test_a_tuple_may_hold_a_function_and_be_made_in_a_kernel() -> None:
    a, b = np.full(1, 3, np.float32), np.full(1, 7, np.float32)
    assert output(closed, 1, Closure(times, (a,)), (b, tl.constexpr(4))).tolist() == [21]


@sim.jit
def asked(out, x, n):
    v = tl.load(x)
    tl.static_assert(hasattr(v, "dtype") and hasattr(v, "to") and not hasattr(v, "nothing"))
    if hasattr(n, "dtype") and isinstance(n.dtype, tl.pointer_type):
        tl.store(out, 1.0)


def test_hasattr_of_a_value() -> None:
    x = np.zeros(1, np.float32)
    assert [output(asked, 1, x, n).tolist() for n in (x, 2, None)] == [[1], [-7], [-7]]


@sim.jit
def typed(out, v: tl.float16, n: u8):  # noqa: F821
    tl.static_assert(v.dtype == tl.float16 and n.dtype == tl.uint8)
    tl.store(out, v)
    tl.store(out + 1, n + 250)


def test_an_annotated_number_is_one_of_that_type() -> None:
    assert output(typed, 2, 0.1, 3).tolist() == [float(np.float16(0.1)), 253]


@pytest.mark.parametrize("n", [256, -1, 1.5])
def test_an_annotated_integer_must_fit(n: float) -> None:
    with pytest.raises(UsageError, match="uint8"):
        typed[(1,)](np.zeros(2, np.float32), 0.1, n)


@sim.jit
def sometimes(x):
    if x > 0:
        return x * 2


@sim.jit
def calling(out, x):
    y = sometimes(tl.load(x))
    tl.store(out, y)


def test_a_path_without_a_value_gives_an_undefined_one() -> None:
    with sim.device(time=False):
        found = [np.zeros(1, np.float32) for _ in range(2)]
        runs = [calling[(1,)](y, np.full(1, x, np.float32)) for y, x in zip(found, (3, -3), strict=True)]
    assert found[0].tolist() == [6]
    assert np.isnan(found[1]).all()
    assert all("one path of the function returns nothing" in str(run.value_warnings) for run in runs)


@sim.jit
def unrolled(out, N: tl.constexpr, STEP: tl.constexpr):
    acc = 0
    for i in tl.static_range(1, N, step=STEP):
        acc += i
    for i in tl.static_range(3):
        acc += 100 * i
    tl.store(out, acc)


@pytest.mark.parametrize("step", [1, 3, -1])
def test_static_range_takes_its_step_by_name(step: int) -> None:
    assert output(unrolled, 1, 9, step).tolist() == [sum(range(1, 9, step)) + 300]


def test_static_range_without_end() -> None:
    with pytest.raises(CompileError, match="must not be zero"):
        unrolled[(1,)](np.zeros(1, np.float32), 9, 0)


@sim.jit
def one_tuple(out, x):
    v = tl.load(x + tl.arange(0, 8))
    (total,) = tl.reduce((v,), 0, added)
    (running,) = tl.associative_scan((v,), 0, added)
    tl.store(out, total - tl.max(running))


@sim.jit
def added(a, b):
    return a + b


def test_a_reduction_of_a_tuple_of_one_is_a_tuple_of_one() -> None:
    assert output(one_tuple, 1, np.arange(8, dtype=np.float32)).tolist() == [0]


@sim.jit
def described(a, out, M: tl.constexpr):
    d = tl.make_tensor_descriptor(a, shape=[M, M], strides=[M, 1], block_shape=[M, M])
    o = tl.make_tensor_descriptor(out, shape=[M, M], strides=[M, 1], block_shape=[M, M])
    tl.static_assert(d.dtype == tl.float16 and d.block_type.shape == (M, M) and d.block_shape == (M, M))
    o.store([0, 0], d.load([0, 0]).to(tl.float32).to(o.dtype))


def test_the_type_of_a_descriptor_is_that_of_its_elements() -> None:
    a, out = np.arange(256, dtype=np.float16).reshape(16, 16), np.zeros((16, 16), np.float16)
    described[(1,)](a, out, 16)
    np.testing.assert_array_equal(out, a)
