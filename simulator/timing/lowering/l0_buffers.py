"""L0A and L0B of a launch: what is alive there, and what is said of tiles that do not fit or do not fill the Cube."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...errors import BufferOverflowError, UsageError
from ...ir.located_errors import at_line
from ...ir.program import Op
from ...record.run import Buffer, LiveValue
from ..placement.l0_tiles import COPIES, L0Tile
from ..placement.layouts import FRACTAL, align
from .context import LoweringPlan
from .cut_products import lengths_of

NAMES = ("L0A", "L0B")


def check_products(plan: LoweringPlan) -> None:
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
        for message in (*_tails(plan, op), *_padding(plan, op)):
            plan.warn(op, message)
    for name in NAMES:
        l0_buffer(plan, name)


def l0_buffer(plan: LoweringPlan, name: str) -> Buffer:
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
            "give dot a smaller l0_tile",
            name,
            need,
            capacity,
        )
    return replace(own, peak_bytes=own.peak_bytes + total, peak=(*own.peak, *tiles))


def _capacity(plan: LoweringPlan, name: str) -> int:
    return {"L0A": plan.product.l0a_bytes, "L0B": plan.product.l0b_bytes}[name]


def _alive(plan: LoweringPlan, name: str) -> tuple[LiveValue, ...]:
    """Tiles of the product that takes most."""
    return max((_tiles(plan, op, t, name) for op, t in plan.tiles.values()), key=_bytes, default=())


def _bytes(tiles: tuple[LiveValue, ...]) -> int:
    return sum(v.bytes * v.copies for v in tiles)


def _tiles(plan: LoweringPlan, op: Op, tile: L0Tile, name: str) -> tuple[LiveValue, ...]:
    left = name == "L0A"
    v = op.operand(0 if left else 1)
    shape, size = ((tile.m, tile.k), tile.l0a_bytes) if left else ((tile.k, tile.n), tile.l0b_bytes)
    message = (
        f"base tile of {plan.spaces.source(v).name or ('the left operand' if left else 'the right operand')}"
    )
    return (LiveValue(message, op.loc.file, op.loc.line, shape, str(v.dtype), size, COPIES, 0, "tile"),)


def _tails(plan: LoweringPlan, op: Op) -> Iterator[str]:
    """Given tiles that do not divide the product: what is left over is a smaller tile of the same start-up cost."""
    if plan.l0_tile is None:
        return
    for axis, base, length in zip("MNK", plan.l0_tile, lengths_of(op), strict=True):
        if length % base and length > base:
            yield (
                f"base{axis} = {base} does not divide the {length} of the product: the last of {-(-length // base)} tiles "
                f"has {length % base}"
            )


def _padding(plan: LoweringPlan, op: Op) -> Iterator[str]:
    """Products that do not fill the Cube's fractals: it computes whole ones."""
    deep = plan.cube.k_block(plan.operand(op))[0]
    lengths = lengths_of(op)
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
