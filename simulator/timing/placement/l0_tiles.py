"""Base tiles of matrix products in L0A and L0B.

A product (M, K) x (K, N) is cut into base tiles of baseM x baseK and baseK x baseN. Two of each are in L0 at a time, so that
the next one arrives while this one is multiplied. Given tiles (`l0_tile`) keep the fractals: 16 rows, 16 columns, and the
32 bytes of depth that the Cube reads at once. One that does not divide its product leaves a smaller last one.
"""

from __future__ import annotations

from typing import NamedTuple

from ...errors import BufferOverflowError, UsageError
from .layouts import FRACTAL, align

COPIES = 2  # one is read while the next arrives


class L0Tile(NamedTuple):
    """baseM, baseN, baseK of a product, and the bytes of one L0A and one L0B tile."""

    m: int
    n: int
    k: int
    l0a_bytes: int
    l0b_bytes: int


def check_given(tile: tuple[int, int, int], deep: int, operand: str) -> None:
    """Raise `UsageError` for a tile that the Cube cannot take: not whole fractals. deep: elements of 32 bytes of depth."""
    for name, n, to in zip(("baseM", "baseN", "baseK"), tile, (FRACTAL, FRACTAL, deep), strict=True):
        if n < 1 or n % to:
            below, above = n // to * to, align(max(n, 1), to)
            advice = f"take {below} or {above}" if below > 0 else f"take {above}"
            raise UsageError(
                f"l0_tile {tile}: {name} of {operand} operands must be a multiple of {to} (the Cube reads fractals of "
                f"{FRACTAL} rows by 32 bytes), got {n}; {advice}"
            )


def check_fits(tile: L0Tile, capacities: tuple[int, int], size: float) -> None:
    """Raise `BufferOverflowError` for a tile of which two do not fit, with the largest sides that do."""
    for name, need, have, side, n in (
        ("L0A", COPIES * tile.l0a_bytes, capacities[0], "baseM", tile.m),
        ("L0B", COPIES * tile.l0b_bytes, capacities[1], "baseN", tile.n),
    ):
        if need <= have:
            continue
        block = int(32 / size)
        edge = have // COPIES // int(align(tile.k, block) * size) // FRACTAL * FRACTAL
        deep = have // COPIES // int(align(n, FRACTAL) * size) // block * block
        fixes = [f"{which} = {x}" for which, x in ((side, edge), ("baseK", deep)) if x > 0]
        advice = f"; the largest that fits: {' or '.join(fixes)}" if fixes else ""
        raise BufferOverflowError(
            f"{name.lower()} overflow, requires {8 * need} bits while {8 * have} bits available ({need} against {have} "
            f"bytes): two base tiles of {side} = {n} x baseK = {tile.k}, {need // COPIES} bytes each{advice}",
            name,
            need,
            have,
        )
