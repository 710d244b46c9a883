"""Scratch of single operations by the compiler's table, and what padding makes of a tile, in known answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.simulator.timing.placement.compiled import scratch
from ascendtile.simulator.timing.placement.compiled.tiles import spread_bits

KIB = 1024


@pytest.mark.parametrize(
    ("name", "element", "bits", "shape", "axis", "elements"),
    [
        ("sum", "fp32", 32, (4, 4), 1, 8),  # shorter than a block: half of the source
        ("sum", "fp32", 32, (4, 7), 1, 0),  # and odd
        ("max", "fp32", 32, (4, 64), 1, 0),
        ("sum", "fp32", 32, (4, 100), 1, 4 * 64),
        ("sum", "fp16", 16, (4, 512), 1, 4 * 256),
        ("max", "fp32", 32, (1000,), 0, 64),
        ("sum", "fp32", 32, (1000,), 0, 500),
        ("sum", "int32", 32, (4, 64), 1, 2 * 256),
        ("sum", "int32", 32, (4, 100), 1, 4 * 72),  # 288 B a row
        ("xor", "int32", 32, (4, 64), 1, 3 * 256),
        ("sum", "fp32", 32, (16, 64), 0, 1024),
        ("sum", "fp32", 32, (32, 4, 256), 1, 32 * KIB),
    ],
)
def test_scratch_of_reductions(
    name: str, element: str, bits: int, shape: tuple[int, ...], axis: int, elements: int
) -> None:
    assert scratch.reduction(name, element, bits, shape, axis) == elements * bits


def test_scratch_of_broadcasts() -> None:
    """A column that is read as it is, one that is written out, and rows that are whole blocks or not."""
    assert scratch.inlined_column((5, 64), 32) == 8 * 8 * 32
    assert scratch.inlined_column((1, 64), 32) == 8 * 32
    assert scratch.broadcast((16, 1), (16, 8), 32) == 0
    assert scratch.broadcast((16, 1), (16, 64), 32) == 16 * 8 * 32
    assert scratch.broadcast((5, 1), (5, 9), 32) == 8 * 16 * 32
    assert scratch.broadcast((1, 64), (16, 64), 32) == 0
    assert scratch.broadcast((1, 9), (16, 9), 32) == 16 * 16 * 32


def test_scratch_of_other_operations() -> None:
    assert scratch.sort(64, 32, False, True) == 5 * 64 * 32
    assert scratch.sort(20, 16, False, False) == 11 * 32 * 16
    assert scratch.sort(64, 16, True, True) == 8 * 64 * 16
    assert scratch.wide_product((10,)) == 3 * 512
    assert scratch.interleave(16, 32) == (16 * 8 + 32) * 32
    assert scratch.arg_reduction(32, (16, 8), 0) == 16 * 8 * 36


@given(st.integers(1, 64), st.integers(2, 64), st.sampled_from([8, 16, 32]))
def test_padding_takes_a_block_an_element_or_a_row(rows: int, columns: int, bits: int) -> None:
    block = 256
    row = -(-columns * bits // block) * block
    assert spread_bits((rows, columns), bits, frozenset()) == rows * columns * bits
    assert spread_bits((rows, columns), bits, frozenset({1})) == rows * columns * block
    assert spread_bits((rows, columns), bits, frozenset({0})) == (rows * row if rows > 1 else columns * bits)
