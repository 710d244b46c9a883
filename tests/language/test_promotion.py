"""Types of operations: every pair of types under every operator, as Triton 3.5 has them, and the values that follow."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.ir.building.builder import Builder
from ascendtile.simulator.ir.building.promotion import KernelError
from ascendtile.simulator.ir.program import Value
from ascendtile.simulator.precision import dtypes as ty

from .values import output

# What Triton 3.5 computes `row op column` in, for two tensors (b1 is a boolean, h float16, f float32, d float64).
PAIRS = """
     b1  i8  i16 i32 i64 u8  u16 u32 u64 h   bf  f   d
b1   b1  i8  i16 i32 i64 u8  u16 u32 u64 h   f   f   d
i8   i8  i8  i16 i32 i64 u8  u16 u32 u64 h   f   f   d
i16  i16 i16 i16 i32 i64 i16 u16 u32 u64 h   f   f   d
i32  i32 i32 i32 i32 i64 i32 i32 u32 u64 h   f   f   d
i64  i64 i64 i64 i64 i64 i64 i64 i64 u64 h   f   f   d
u8   u8  u8  i16 i32 i64 u8  u16 u32 u64 h   f   f   d
u16  u16 u16 u16 i32 i64 u16 u16 u32 u64 h   f   f   d
u32  u32 u32 u32 u32 i64 u32 u32 u32 u64 h   f   f   d
u64  u64 u64 u64 u64 u64 u64 u64 u64 u64 h   f   f   d
h    h   h   h   h   h   h   h   h   h   h   h   f   d
bf   f   f   f   f   f   f   f   f   f   h   bf  f   d
f    f   f   f   f   f   f   f   f   f   f   f   f   d
d    d   d   d   d   d   d   d   d   d   d   d   d   d
"""
NAMES = {
    "b1": "int1",
    **{f"{k[0]}{n}": f"{k}{n}" for k in ("int", "uint") for n in (8, 16, 32, 64)},
    "h": "fp16",
    "bf": "bf16",
    "f": "fp32",
    "d": "fp64",
}
_head, *_rows = (line.split() for line in PAIRS.strip().split("\n"))
TABLE = {(row[0], column): cell for row in _rows for column, cell in zip(_head, row[1:], strict=True)}
ARITHMETIC, BITS, DIVISION = ("add", "sub", "mul", "max", "min"), ("and", "or", "xor"), ("floordiv", "mod")
OPERATORS = (*ARITHMETIC, *BITS, "shl", "shr", "div", *DIVISION)
FLOATS = ("h", "bf", "f", "d")


def of(short: str) -> ty.DType:
    found = ty.from_name(NAMES[short])
    assert found is not None
    return found


def signed(short: str) -> bool:
    return short[0] == "i"


def expected(op: str, a: str, b: str) -> str | None:
    """Short name of the result; None where the operation is refused."""
    common = TABLE[a, b]
    if op in ("add", "sub", "mul", "max", "min"):
        return common
    if op in ("div", *DIVISION) and common not in FLOATS and signed(a) != signed(b):
        return None
    if op == "div":
        return common if common == "d" else "f"
    if common in FLOATS:
        return ("f" if common in ("h", "bf") else common) if op == "mod" else None
    return None if op in ("shl", "shr", *DIVISION) and common == "b1" else common


@pytest.mark.parametrize("op", OPERATORS)
def test_two_tiles(op: str) -> None:
    for a, b in itertools.product(_head, _head):
        builder = Builder()
        x, y = (builder.value(of(t), (4,)) for t in (a, b))
        want = expected(op, a, b)
        if want is None:
            with pytest.raises(KernelError):
                builder.binary(op, x, y)
        else:
            out = builder.binary(op, x, y)
            assert isinstance(out, Value)
            assert out.dtype == of(want), (op, a, b)


def test_comparisons_give_booleans_whatever_they_compare() -> None:
    for a, b in itertools.product(_head, _head):
        builder = Builder()
        out = builder.compare("lt", builder.value(of(a), (4,)), builder.value(of(b), (4,)))
        assert isinstance(out, Value)
        assert out.dtype == ty.int1


# What a Python number does beside a tile: the tile's type stands unless the number is of a higher kind.
NUMBERS: dict[Any, dict[str, str]] = {
    True: {},
    2: {"b1": "i32"},
    2.5: {t: "h" if t == "h" else "bf" if t == "bf" else "d" if t == "d" else "f" for t in _head},
}


@pytest.mark.parametrize("number", NUMBERS)
def test_a_tile_and_a_number(number: Any) -> None:
    for t in _head:
        builder = Builder()
        for x, y in ((builder.value(of(t), (4,)), number), (number, builder.value(of(t), ()))):
            out = builder.binary("add", x, y)
            assert isinstance(out, Value)
            assert out.dtype == of(NUMBERS[number].get(t, t)), (t, number)


@pytest.mark.parametrize(("t", "number"), [("i8", 128), ("u8", -1), ("u32", 2**32), ("i16", -(2**15) - 1)])
def test_numbers_that_do_not_fit_are_refused(t: str, number: int) -> None:
    builder = Builder()
    with pytest.raises(KernelError, match="out of range"):
        builder.binary("add", builder.value(of(t), (4,)), number)


@sim.jit
def operators(out, x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + 0 * B + i, (a // b).to(tl.int64))
    tl.store(out + 1 * B + i, (a % b).to(tl.int64))
    tl.store(out + 2 * B + i, (a >> 2).to(tl.int64))
    tl.store(out + 3 * B + i, (a << 1).to(tl.int64))
    tl.store(out + 4 * B + i, (a < b).to(tl.int64))
    tl.store(out + 5 * B + i, (-a * b).to(tl.int64))
    tl.store(out + 6 * B + i, (~a).to(tl.int64))


def toward_zero(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32])
def test_integer_operators_are_those_of_c(kind: Any) -> None:
    """Division and remainder cut off toward zero, >> keeps the sign of signed integers only, results wrap."""
    ends, rng = np.iinfo(kind), np.random.default_rng(3)
    x = rng.integers(ends.min, ends.max, 40, dtype=kind, endpoint=True)
    y = rng.integers(1, 100, 40).astype(kind)
    if ends.min < 0:
        y[::2] *= -1
    got = output(operators, 280, x, y, dtype=np.int64, B=40).reshape(7, 40)
    bits = x.itemsize * 8

    def wrapped(v: int) -> int:
        v %= 1 << bits
        return v - (1 << bits) if ends.min < 0 and v >> (bits - 1) else v

    pairs = [(int(a), int(b)) for a, b in zip(x, y, strict=True)]
    rows = [
        lambda a, b: toward_zero(a, b),
        lambda a, b: a - toward_zero(a, b) * b,
        lambda a, b: a >> 2,
        lambda a, b: a << 1,
        operator.lt,
        lambda a, b: -a * b,
        lambda a, b: ~a,
    ]
    for k, f in enumerate(rows):
        assert got[k].tolist() == [wrapped(int(f(a, b))) for a, b in pairs], k


@sim.jit
def mixed(out, x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + 0 * B + i, a < b)
    tl.store(out + 1 * B + i, a > b)
    tl.store(out + 2 * B + i, a == b)
    tl.store(out + 3 * B + i, a.to(tl.int64) < b.to(tl.int64))


def test_comparisons_of_mixed_signs_are_unsigned() -> None:
    """int32 beside uint32 is read as unsigned, as in C and Triton: -1 is the largest number."""
    x, y = np.array([-1, 5, -7], np.int32), np.array([3, 5, 2**32 - 7], np.uint32)
    got = output(mixed, 12, x, y, dtype=np.int8, B=3).reshape(4, 3)
    assert got.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 1], [1, 0, 1]]


@sim.jit
def booleans(out, x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    a, b = tl.load(x + i) > 0, tl.load(y + i) > 0
    tl.store(out + 0 * B + i, a + b)
    tl.store(out + 1 * B + i, a * b)
    tl.store(out + 2 * B + i, a and b)
    tl.store(out + 3 * B + i, a or b)
    tl.store(out + 4 * B + i, not a)
    tl.store(out + 5 * B + i, a + b.to(tl.int8))
    tl.store(out + 6 * B + i, tl.load(x + i) and tl.load(y + i))
    tl.store(out + 7 * B + i, (tl.load(x + i) - 1).logical_or(b).logical_and(a))


def test_booleans_are_integers_of_one_bit_whose_sum_is_or() -> None:
    """As bishengir makes it, and torch."""
    x, y = np.array([0, 0, 1, 1, 0, 2], np.int32), np.array([0, 1, 0, 1, -1, 4], np.int32)
    got = output(booleans, 48, x, y, dtype=np.int8, B=6).reshape(8, 6)
    a, b = x > 0, y > 0
    rows = [a | b, a & b, a & b, a | b, ~a, a.astype(int) + b, (x != 0) & (y != 0), ((x != 1) | b) & a]
    for g, row in zip(got, rows, strict=True):
        assert g.tolist() == np.asarray(row).astype(int).tolist()


@sim.jit
def shifted(out, x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i) >> tl.load(y + i))


SHIFTS = [(a, b) for a in ("int8", "int16", "int32", "uint8", "uint32") for b in ("uint8", "int16", "uint32")]


@pytest.mark.parametrize(("left", "right"), SHIFTS)
def test_a_shift_to_the_right_draws_the_sign_of_its_left_side_along(left: str, right: str) -> None:
    """Whatever the common type is: Triton picks the instruction before it promotes."""
    x = np.array([-128, -1, 0, 1, 127, -77]).astype(left)
    y = np.array([7, 4, 3, 1, 2, 5], right)
    common = TABLE[_short(left), _short(right)]
    kind = np.dtype(f"{'' if signed(common) else 'u'}int{common[1:]}")
    got = output(shifted, 6, x, y, dtype=kind, B=6)
    assert got.tolist() == (x.astype(np.int64) >> y.astype(np.int64)).astype(kind).tolist()


def _short(name: str) -> str:
    return name.replace("uint", "u").replace("int", "i")


@sim.jit
def as_on_ascend(out, x, y, n, B: tl.constexpr):
    half: tl.constexpr = (
        n // 2
    )  # a value of the program under the annotation: kernels of Triton-Ascend do that
    i = tl.arange(0, B)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + 0 * B + i, not a)
    tl.store(out + 1 * B + i, tl.cdiv(b, 2.0) + half)
    tl.store(out + 2 * B + i, tl.floor(a) + tl.ceil(a))


def test_what_triton_ascend_takes_besides() -> None:
    """`not` of integers flips bits, cdiv of floats rounds the quotient up, floor and ceil leave integers alone."""
    x, y = np.array([0, 1, -5], np.int32), np.array([1.0, 4.0, -3.0], np.float32)
    got = output(as_on_ascend, 9, x, y, 7, B=3).reshape(3, 3)
    assert got.tolist() == [[-1, -2, 4], [4, 5, 2], [0, 2, -10]]


@sim.jit
def _added(a, b):  # type: ignore[no-untyped-def]
    return a + b


@sim.jit
def _counted(out_ptr, bits_ptr, sums_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, N)
    x, y = tl.load(bits_ptr + i), tl.load(bits_ptr + N + i)
    tl.store(out_ptr + i, x + y)
    tl.store(sums_ptr + i, x + y)
    tl.store(sums_ptr + N + i, (x > 0) + (y > 0))
    tl.store(sums_ptr + 2 * N, tl.reduce(x, 0, _added))
    tl.store(sums_ptr + 2 * N + 1, tl.reduce(x > 0, 0, _added))


def test_booleans_from_memory_are_added_as_bytes_and_those_of_a_comparison_by_or() -> None:
    bits = np.array([[0, 0, 1, 1], [0, 1, 0, 1]], bool)
    out, sums = np.zeros(4, bool), np.zeros(10, np.int32)
    _counted[(1,)](out, bits, sums, N=4)
    assert out.tolist() == [False, True, True, True]
    assert sums.tolist() == [0, 1, 1, 2, 0, 1, 1, 1, 2, 1]
