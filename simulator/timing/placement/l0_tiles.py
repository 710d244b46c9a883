"""L0A and L0B of a launch: the base tiles of each product, what is alive there, and what is said where they do not fit.

A product (M, K) x (K, N) is cut into base tiles of baseM x baseK and baseK x baseN. Two of each are in L0 at a time, so that
the next one arrives while this one is multiplied. Given tiles (`l0_tile`) keep the fractals: 16 rows, 16 columns, and the
32 bytes of depth that the Cube reads at once. One that does not divide its product leaves a smaller last one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ...errors import BufferOverflowError, UsageError
from ...ir.located_errors import at_line
from ...ir.program import Op
from ...record.run import Buffer, LiveValue
from ..costs.cube import L0Tile
from .layouts import FRACTAL, align

if TYPE_CHECKING:
    from ..lowering.context import Plan

NAMES = ("L0A", "L0B")
COPIES = 2  # one is read while the next arrives


def check_products(plan: Plan) -> None:
    """Cut all products of a program. Raises `UsageError` for a tile off the fractals, `BufferOverflowError` for one too
    large; both with the line of the product.
    """
    for op in plan.program.walk():
        if op.kind != "dot":
            continue
        try:
            plan.product_parts(op)
        except (UsageError, BufferOverflowError) as e:
            raise type(e)(at_line(op.loc, f"{plan.program.name} on {plan.product.name}: {e}")) from None
        for words in (*_tails(plan, op), *_padding(plan, op)):
            plan.warn(op, words)
    for name in NAMES:
        l0_buffer(plan, name)


def l0_buffer(plan: Plan, name: str) -> Buffer:
    """L0A or L0B: what products take for their tiles, and buffers of the kernel's own."""
    own, capacity = plan.placement.buffers.get(name), _capacity(plan, name)
    tiles = _alive(plan, name)
    total = sum(v.bytes * v.copies for v in tiles)
    if own is None:
        return Buffer(total, capacity, tiles)
    if own.peak_bytes + total > capacity:
        need = own.peak_bytes + total
        rows = "\n".join(
            f"    {v.bytes * v.copies:>8} B  {v.name} {list(v.shape)} {v.dtype}"
            f"{f' x {v.copies} copies' if v.copies > 1 else ''}  line {v.line}"
            for v in (*own.peak, *tiles)
            if v.bytes
        )
        raise BufferOverflowError(
            f"{plan.program.name} on {plan.product.name}: {name.lower()} overflow, requires {8 * need} bits while "
            f"{8 * capacity} bits available ({need} against {capacity} bytes). Alive at the peak:\n{rows}\n"
            f"Buffers of the kernel take {own.peak_bytes} bytes, tl.dot {total} for its tiles: make the buffers smaller, or "
            "give dot a smaller l0_tile"
        )
    return replace(own, peak_bytes=own.peak_bytes + total, peak=(*own.peak, *tiles))


def _capacity(plan: Plan, name: str) -> int:
    return {"L0A": plan.product.l0a_bytes, "L0B": plan.product.l0b_bytes}[name]


def _alive(plan: Plan, name: str) -> tuple[LiveValue, ...]:
    """Tiles of the product that takes most."""
    return max((_tiles(plan, op, t, name) for op, t in plan.tiles.values()), key=_bytes, default=())


def _bytes(tiles: tuple[LiveValue, ...]) -> int:
    return sum(v.bytes * v.copies for v in tiles)


def _tiles(plan: Plan, op: Op, tile: L0Tile, name: str) -> tuple[LiveValue, ...]:
    left = name == "L0A"
    v = op.args[0 if left else 1]
    assert v is not None
    shape, size = ((tile.m, tile.k), tile.l0a_bytes) if left else ((tile.k, tile.n), tile.l0b_bytes)
    words = (
        f"base tile of {plan.homes.source(v).name or ('the left operand' if left else 'the right operand')}"
    )
    return (LiveValue(words, op.loc.file, op.loc.line, shape, str(v.dtype), size, COPIES, 0),)


def _tails(plan: Plan, op: Op) -> Iterator[str]:
    """Given tiles that do not divide the product: what is left over is a smaller tile of the same start-up cost."""
    if plan.l0_tile is None:
        return
    for axis, base, length in zip("MNK", plan.l0_tile, _lengths(op), strict=True):
        if length % base and length > base:
            yield (
                f"base{axis} = {base} does not divide the {length} of the product: the last of {-(-length // base)} tiles "
                f"has {length % base}"
            )


def _padding(plan: Plan, op: Op) -> Iterator[str]:
    """Products that do not fill the Cube's fractals: it computes whole ones."""
    deep = plan.cube.k_block(plan.operand(op))[0]
    lengths = _lengths(op)
    whole = tuple(align(n, to) for n, to in zip(lengths, (FRACTAL, FRACTAL, deep), strict=True))
    if whole == lengths:
        return
    part = 1.0
    for n, padded in zip(lengths, whole, strict=True):
        part *= n / padded
    (m, n, k), (pm, pn, pk) = lengths, whole
    yield (
        f"dot of [{m}, {k}] and [{k}, {n}]: the Cube computes whole fractals of {FRACTAL} x {FRACTAL} x {deep}, here "
        f"[{pm}, {pk}] and [{pk}, {pn}]; {part:.0%} of its work counts"
    )


def _lengths(op: Op) -> tuple[int, int, int]:
    """M, N and K."""
    a, b = op.args[0], op.args[1]
    assert a is not None
    assert b is not None
    return a.shape[-2], b.shape[-1], a.shape[-1]


def check_given(tile: tuple[int, int, int], deep: int, operand: str) -> None:
    """Raise `UsageError` for a tile that the Cube cannot take: not whole fractals. deep: elements of 32 bytes of depth."""
    for name, n, to in zip(("baseM", "baseN", "baseK"), tile, (FRACTAL, FRACTAL, deep), strict=True):
        if n < 1 or n % to:
            below, above = n // to * to, align(max(n, 1), to)
            way = f"take {below} or {above}" if below > 0 else f"take {above}"
            raise UsageError(
                f"l0_tile {tile}: {name} of {operand} operands must be a multiple of {to} (the Cube reads fractals of "
                f"{FRACTAL} rows by 32 bytes), got {n}; {way}"
            )


def check_fits(tile: L0Tile, capacities: tuple[int, int], size: int) -> None:
    """Raise `BufferOverflowError` for a tile of which two do not fit, with the largest sides that do."""
    for name, need, have, side, n in (
        ("L0A", COPIES * tile.l0a_bytes, capacities[0], "baseM", tile.m),
        ("L0B", COPIES * tile.l0b_bytes, capacities[1], "baseN", tile.n),
    ):
        if need <= have:
            continue
        block = 32 // size
        edge = have // COPIES // (align(tile.k, block) * size) // FRACTAL * FRACTAL
        deep = have // COPIES // (align(n, FRACTAL) * size) // block * block
        ways = [f"{which} = {x}" for which, x in ((side, edge), ("baseK", deep)) if x > 0]
        way = f"; the largest that fits: {' or '.join(ways)}" if ways else ""
        raise BufferOverflowError(
            f"{name.lower()} overflow, requires {8 * need} bits while {8 * have} bits available ({need} against {have} "
            f"bytes): two base tiles of {side} = {n} x baseK = {tile.k}, {need // COPIES} bytes each{way}"
        )
