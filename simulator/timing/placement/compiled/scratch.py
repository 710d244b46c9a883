"""Scratch of single operations, in bits.

AscendNPU-IR, lib/Dialect/HIVM/IR/ExtraBufferOpInterface/{Utils,GetExtraBuffers,ExtraBufferAllocations}.cpp; the numbers are
those of the rules 10.1 to 10.9. A block are 32 bytes, a repeat 256.
"""

from __future__ import annotations

import math

from ..layouts import align

BLOCK_BITS = 256
REPEAT_BITS = 2048
SUM_LIKE = ("sum", "max", "min")
TRANSPOSE_BITS = 4096 * 8  # 10.9, of int64


def elements(shape: tuple[int, ...]) -> int:
    return math.prod(shape)


def reduction(name: str, element: str, bits: int, shape: tuple[int, ...], axis: int) -> int:
    """10.1 along the last axis, 10.2 along another."""
    if axis != len(shape) - 1:
        return _other_axis(name, shape, axis, BLOCK_BITS // bits) * bits
    rows, r = elements(shape[:-1]), shape[-1]
    if name not in SUM_LIKE or element.startswith(("int", "uint")):
        return _by_repeats(name, rows, r, bits) * bits
    if element not in ("fp32", "fp16"):
        return rows * r * bits
    if rows == 1 and name != "sum":
        return 0 if r * bits <= REPEAT_BITS else REPEAT_BITS
    return _halves(rows, r, bits) * bits


def _halves(rows: int, r: int, bits: int) -> int:
    """10.1, sums and the like of fp32 and fp16: elements."""
    block, repeat = BLOCK_BITS // bits, REPEAT_BITS // bits
    if r < block:
        return 0 if r % 2 else rows * r // 2
    if r <= repeat:
        return 0
    return rows * repeat if r <= 2 * repeat else rows * r // 2


def _by_repeats(name: str, rows: int, r: int, bits: int) -> int:
    """10.1, integers, products and bits: elements."""
    block, repeat, more = BLOCK_BITS // bits, REPEAT_BITS // bits, name == "xor"
    return (2 + more) * rows * r if r <= repeat else rows * ((1 + more) * repeat + block)


def _other_axis(name: str, shape: tuple[int, ...], axis: int, block: int) -> int:
    """10.2: elements."""
    if len(shape) == 3 and axis == 1 and min(shape) > 1:
        return _middle(shape, block)
    return elements(shape) + (block if name == "xor" else 0)


def _middle(shape: tuple[int, ...], block: int) -> int:
    s0, s1, s2 = shape
    m = 1
    while m * 2 <= s1:
        m *= 2
    k = m.bit_length() - 1 + s1 - m
    if k <= s0:
        return max(s0 * s1 * s2, m // 2 * s0 * align(s2, block))
    return max(s1 * s2, m // 2 * s2)


def arg_reduction(bits: int, shape: tuple[int, ...], axis: int) -> int:
    """10.2: the largest or smallest element and where it is."""
    return BLOCK_BITS if axis == len(shape) - 1 else elements(shape) * 9 // 2 * 8


def inlined_column(shape: tuple[int, ...], bits: int) -> int:
    """10.3: an operand of one column, each element of which is spread over a block."""
    rows = elements(shape[:-1])
    return BLOCK_BITS if rows == 1 else align(rows, 8) * BLOCK_BITS


def broadcast(source: tuple[int, ...], shape: tuple[int, ...], bits: int) -> int:
    """10.4: a broadcast that is written out."""
    block = max(1, BLOCK_BITS // bits)
    axes = [k for k, (a, b) in enumerate(zip(source, shape, strict=True)) if a != b]
    if elements(source) == 1 or sum(n > 1 for n in shape) <= 1:
        return 0
    rows, row = elements(shape[:-1]), shape[-1]
    if axes == [len(shape) - 1]:
        return _last_axis(rows, row, block, bits) * bits
    return rows * align(row, block) * bits if axes[0] == 0 and row % block else 0


def _last_axis(rows: int, row: int, block: int, bits: int) -> int:
    """10.4, of a column: elements."""
    if bits == 64:
        return 0
    if row % block:
        return align(rows, 8) * align(row, block)
    return 0 if rows % 8 == 0 and row == block else align(rows, 8) * block


def truncation(shape: tuple[int, ...], bits: int) -> int:
    """10.5: int32 or int16 to int8."""
    return 2 * elements(shape) * bits


def rounded(bits: int) -> int:
    """Up to a block."""
    return align(bits, BLOCK_BITS)


def interleave(n: int, bits: int) -> int:
    """10.7: of two tiles of n elements."""
    block = BLOCK_BITS // bits
    return (align(n, 8) * block + align(2 * n, block)) * bits


def sort(row: int, bits: int, indices: bool, descending: bool) -> int:
    """10.7: by value 5 rows of fp32 or 10 of fp16 (4 and 8 with indices), ascending one more.

    Rows are up to 32 elements (9.6).
    """
    rows = (8 if indices else 10) if bits < 32 else (4 if indices else 5)
    return (rows + (not descending)) * align(row, 32) * bits


def wide_product(shape: tuple[int, ...]) -> int:
    """10.8: the high half of a product of int32, three tiles."""
    return 3 * rounded(elements(shape) * 32)
