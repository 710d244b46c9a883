"""What a whole program is warned of: accesses that cost more than they need, and explicit buffers."""

from __future__ import annotations

from collections.abc import Iterator

from ...ir.program import Op, Region, Value
from ...messages import FAULT, Message, note, time_hint
from ...record.slowing import PADDING
from .. import cures
from ..placement.layouts import BLOCK_BYTES, element_bits, tile_bytes
from ..placement.memory_spaces import UB
from .context import LoweringPlan
from .cut_products import Multiplied, lengths_of

MAX_DEVICE_PROGRAMS = 65_535  # coreDim check of Triton-Ascend's launcher
WORST_ROUND = 0.9  # a last round with fewer of its cores busy is worth a warning
LEAST_PADDING = 0.1  # share of a tile's bytes that padding must add to be worth a warning


def grid_messages(programs: int, cores: int) -> tuple[Message, ...]:
    """Rounds of the programs over the cores, and a grid that the device's launcher refuses."""
    messages = []
    if programs > MAX_DEVICE_PROGRAMS:
        messages.append(
            note(
                f"the grid has {programs:,} programs; Triton-Ascend refuses more than {MAX_DEVICE_PROGRAMS:,} unless "
                "TRITON_ALL_BLOCKS_PARALLEL=1 wraps them in a loop: start one program a core and loop over "
                f"range(pid, {programs}, num_programs)"
            )
        )
    rounds, last = -(-programs // cores), programs % cores or cores
    if rounds > 1 and last < WORST_ROUND * cores and rounds * cores > programs / WORST_ROUND:
        messages.append(
            time_hint(
                f"{programs:,} programs on {cores} cores take {rounds:,} rounds; in the last one {cores - last} cores are "
                f"idle ({1 - programs / (rounds * cores):.0%} of the time, if programs are alike)"
            )
        )
    return tuple(messages)


def padded_rows(plan: LoweringPlan) -> None:
    """Warn of loads and stores in UB whose rows end inside a block of 32 bytes: they are padded to whole ones."""
    for op in plan.program.walk():
        for message in _padded(plan, op):
            plan.slow(op, PADDING, message, cures.ROW)


def _padded(plan: LoweringPlan, op: Op) -> Iterator[str]:
    if op.kind not in ("load", "store"):
        return
    v = op.results[0] if op.kind == "load" else op.args[1]
    if v is None or len(v.shape) < 2 or v.shape[-1] == 1 or v.numel == v.shape[-1]:
        return
    root = plan.definitions.root(v)
    if root is None or plan.spaces.space_of(root) != UB:
        return
    row, have = -(-v.shape[-1] * element_bits(v) // 8), tile_bytes(v)
    rows = v.numel // v.shape[-1]
    if have <= row * rows * (1 + LEAST_PADDING):
        return
    yield (
        f"{op.kind} of {list(v.shape)} {v.dtype}: rows of {row} bytes are padded to {have // rows} in UB, blocks of "
        f"{BLOCK_BYTES} ({have / (row * rows) - 1:.0%} more bytes and vector work); take a last axis that is a multiple of "
        f"{BLOCK_BYTES * 8 // element_bits(v)}, or make it the first"
    )


def padded_products(plan: LoweringPlan) -> None:
    """Warn of products of which masks leave so little that the Cube multiplies much padding. After lowering."""
    for op in plan.program.walk() if plan.multiplied else ():
        if op.id in plan.multiplied:
            for message in _multiplied(plan, op, plan.multiplied[op.id]):
                plan.slow(op, PADDING, message, cures.PRODUCT)


def _multiplied(plan: LoweringPlan, op: Op, done: Multiplied) -> Iterator[str]:
    """By what code by hand cuts, and triton-ascend's does not: see `cut_products.py`."""
    if done.work < 1 or done.there > done.work * (1 - LEAST_PADDING):
        return
    names = ("rows", "columns", "deep")
    cut = [
        f"{there / done.times:.3g} of {size} {name}"
        for name, there, size in zip(names, done[:3], lengths_of(op), strict=True)
        if there < size * done.times
    ]
    if not cut:
        return  # all is there; what fractals add to that is told of the product itself
    a, b = (list(op.operand(side).shape) for side in (0, 1))
    found = " and ".join(filter(None, (", ".join(cut[:-1]), cut[-1])))
    yield (
        f"dot of {a} and {b}: {1 - done.there / done.work:.0%} of the Cube's work is padding; on average "
        f"{found} are there, and the Cube multiplies "
        f"{'whole tiles' if plan.compiled else 'whole fractals of them'}"
        f"{'; take tiles nearer to the sizes' if plan.compiled else ''}"
    )


def buffer_messages(plan: LoweringPlan) -> None:
    """Warn of reads of buffers that nothing was written to, and of tensors used after their buffer was written again."""
    if plan.program.buffers:
        _region(plan, plan.program.body, {})


def _region(plan: LoweringPlan, region: Region, now: dict[int, Value]) -> None:
    """now: what each buffer (by its `alloc`) holds."""
    for op in region.ops:
        if not op.regions:
            _reads(plan, op, now)
        for inner in op.regions:
            _region(plan, inner, {**now, **_held(plan, tuple(inner.args))})
        now.update(_held(plan, op.results))


def _held(plan: LoweringPlan, values: tuple[Value, ...]) -> dict[int, Value]:
    buffers = plan.program.buffers
    return {buffers[v.id].id: v for v in values if v.id in buffers}


def _reads(plan: LoweringPlan, op: Op, now: dict[int, Value]) -> None:
    written = (
        op.kind == "move" and op.attrs["offsets"] is not None
    )  # its first operand is what it writes into
    for v in op.args[1 if written else 0 :]:
        root = None if v is None else plan.definitions.root(v)
        alloc = None if root is None else plan.program.buffers.get(root.id)
        if root is None or alloc is None:
            continue
        if alloc.results[0] is root:
            plan.warn(
                op,
                f"{root.name} is read, but nothing was written to it: on the device it holds what was there",
                FAULT,
            )
        elif now.get(alloc.id, root) is not root:
            plan.warn(
                op,
                f"{root.name} was written again at line {now[alloc.id].loc.line}: used here is what was read before, on the "
                "device it may be what was written; read it again",
                FAULT,
            )
