"""Triton's promotion rules, as a table."""

from __future__ import annotations

import pytest

from ascendtile.simulator.precision import dtypes as ty

# left, right, type of + - * max min and comparisons, type of / (// and % for integers)
TABLE = [
    ("fp32", "fp16", "fp32", "fp32"),
    ("fp32", "bf16", "fp32", "fp32"),
    ("fp32", "int64", "fp32", "fp32"),
    ("fp64", "fp16", "fp64", "fp64"),
    ("fp16", "fp16", "fp16", "fp32"),
    ("bf16", "bf16", "bf16", "fp32"),
    ("fp16", "bf16", "fp16", "fp32"),
    ("fp16", "int32", "fp16", "fp32"),
    ("fp16", "int1", "fp16", "fp32"),
    ("bf16", "int32", "fp32", "fp32"),
    ("bf16", "int1", "fp32", "fp32"),
    ("int8", "int16", "int16", "int16"),
    ("int64", "int32", "int64", "int64"),
    ("uint8", "uint32", "uint32", "uint32"),
    ("int32", "uint32", "uint32", "uint32"),
    ("int64", "uint32", "int64", "int64"),
    ("int8", "uint16", "uint16", "uint16"),
    ("int1", "int8", "int8", "int8"),
    ("int1", "uint8", "uint8", "uint8"),
    ("int1", "int1", "int1", "int1"),
]

# tile, number, type of + and the like, type of / and %
WITH_NUMBERS: list[tuple[str, bool | int | float, str, str]] = [
    ("fp16", 2, "fp16", "fp32"),
    ("fp16", 2.5, "fp16", "fp32"),
    ("fp16", True, "fp16", "fp32"),
    ("bf16", 2.5, "bf16", "fp32"),
    ("fp32", 2**40, "fp32", "fp32"),
    ("int8", 2, "int8", "int8"),
    ("int8", 2.5, "fp32", "fp32"),
    ("int64", 2, "int64", "int64"),
    ("int32", 2**31, "int32", "int32"),  # and out of range, which the builder refuses
    ("uint32", 2, "uint32", "uint32"),
    ("int1", True, "int1", "int1"),
    ("int1", 2, "int32", "int32"),
    ("int1", 2.5, "fp32", "fp32"),
]


def of(name: str) -> ty.DType:
    found = ty.from_name(name)
    assert found is not None
    return found


@pytest.mark.parametrize(("a", "b", "plain", "division"), TABLE)
def test_two_tiles(a: str, b: str, plain: str, division: str) -> None:
    for x, y in ((a, b), (b, a)):
        assert ty.promote(of(x), of(y)).name == plain
        assert ty.promote(of(x), of(y), division=True).name == division


@pytest.mark.parametrize(("tile", "number", "plain", "division"), WITH_NUMBERS)
def test_a_tile_and_a_number(tile: str, number: bool | int | float, plain: str, division: str) -> None:
    assert ty.promote_with_constant(of(tile), number).name == plain
    assert ty.promote_with_constant(of(tile), number, division=True).name == division


@pytest.mark.parametrize(
    ("number", "in_kernel", "argument"),
    [
        (True, "int1", "int1"),
        (-(2**31), "int32", "int32"),
        (2**31 - 1, "int32", "int32"),
        (2**31, "uint32", "int64"),
        (2**32, "int64", "int64"),
        (-(2**31) - 1, "int64", "int64"),
        (2**63, "uint64", "uint64"),
        (0.1, "fp32", "fp32"),
    ],
)
def test_types_of_numbers(number: bool | int | float, in_kernel: str, argument: str) -> None:
    assert ty.of_constant(number).name == in_kernel
    assert ty.of_argument(number).name == argument


def test_numbers_beyond_64_bits_have_no_type() -> None:
    for number in (2**64, -(2**63) - 1):
        with pytest.raises(OverflowError, match="does not fit into 64 bits"):
            ty.of_constant(number)
