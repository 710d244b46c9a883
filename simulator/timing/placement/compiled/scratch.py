"""Scratch in bits of single operations (AscendNPU-IR, ExtraBufferOpInterface): see spec sections 10.1 to 10.9."""

from __future__ import annotations

BLOCK_BITS = 256
REPEAT_BITS = 2048
SUM_LIKE = ("sum", "max", "min")


def up(n: int, to: int) -> int:
    return -(-n // to) * to


def reduction(name: str, element: str, bits: int, shape: tuple[int, ...], axis: int) -> int:
    """10.1, 10.2, in bits."""
    block, repeat = BLOCK_BITS // bits, REPEAT_BITS // bits
    n = 1
    for s in shape:
        n *= s
    r = shape[axis]
    floating = element in ("fp32", "fp16")
    if axis == len(shape) - 1:
        rows = n // r
        if name in SUM_LIKE and floating:
            if len([s for s in shape if s > 1]) <= 1 and name != "sum":
                return 0 if r <= repeat else repeat * bits
            if r < block:
                return 0 if r % 2 else n // 2 * bits
            if r <= repeat:
                return 0
            return (rows * repeat if r <= 2 * repeat else n // 2) * bits
        if name in SUM_LIKE and not element.startswith(("int", "uint")):
            return n * bits
        wide = 2 if name == "xor" else 1
        return ((2 + (name == "xor")) * n if r <= repeat else rows * (wide * repeat + block)) * bits
    if name.startswith("arg"):
        return int(4.5 * n) * 8
    whole = [s for s in shape if s > 1]
    if len(shape) == 3 and axis == 1 and len(whole) == 3:
        return _middle(shape, block) * bits
    return (n + (block if name == "xor" else 0)) * bits


def _middle(shape: tuple[int, ...], block: int) -> int:
    s0, s1, s2 = shape
    m = 1
    while m * 2 <= s1:
        m *= 2
    k = m.bit_length() - 1 + s1 - m
    if k <= s0:
        return max(s0 * s1 * s2, m // 2 * s0 * up(s2, block))
    return max(s1 * s2, m // 2 * s2)


def inlined_column(shape: tuple[int, ...], bits: int) -> int:
    """10.3."""
    block = BLOCK_BITS // bits
    n = 1
    for s in shape[:-1]:
        n *= s
    return block * bits if n == 1 else block * up(n, 8) * bits


def broadcast(source: tuple[int, ...], shape: tuple[int, ...], bits: int) -> int:
    """10.4."""
    block = max(1, BLOCK_BITS // bits)
    n = 1
    for s in shape:
        n *= s
    axes = [k for k, (a, b) in enumerate(zip(source, shape, strict=True)) if a != b]
    whole = [s for s in shape if s > 1]
    if all(s == 1 for s in source) or len(whole) <= 1 or bits == 64 and axes == [len(shape) - 1]:
        return 0
    row = shape[-1]
    rows = n // row
    if axes == [len(shape) - 1]:
        if row % block == 0:
            return 0 if rows % 8 == 0 and row == block else up(rows, 8) * block * bits
        return up(rows, 8) * up(row, block) * bits
    if axes[0] == 0 and row % block:
        return rows * up(row, block) * bits
    return 0
