"""Habits of a launch that cost time or fail on the device, in words for its author: grid, rows that do not fill blocks."""

from __future__ import annotations

from collections.abc import Iterator

from ..frontend.program import Op
from .geometry import BLOCK_BYTES, element_bits, tile_bytes
from .homes import UB
from .plan import Plan

MAX_DEVICE_PROGRAMS = 65_535  # coreDim check of Triton-Ascend's launcher
WORST_ROUND = 0.9  # a last round with fewer of its cores busy is worth a word
LEAST_PADDING = 0.1  # share of a tile's bytes that padding must add to be worth a word


def grid_words(programs: int, cores: int) -> tuple[str, ...]:
    """Rounds of the programs over the cores, and a grid that the device's launcher refuses."""
    words = []
    if programs > MAX_DEVICE_PROGRAMS:
        words.append(
            f"the grid has {programs:,} programs; Triton-Ascend refuses more than {MAX_DEVICE_PROGRAMS:,} unless "
            "TRITON_ALL_BLOCKS_PARALLEL=1 wraps them in a loop: start one program a core and loop over "
            f"range(pid, {programs}, num_programs)"
        )
    rounds, last = -(-programs // cores), programs % cores or cores
    if rounds > 1 and last < WORST_ROUND * cores and rounds * cores > programs / WORST_ROUND:
        words.append(
            f"{programs:,} programs on {cores} cores take {rounds:,} rounds; in the last one {cores - last} cores are idle "
            f"({1 - programs / (rounds * cores):.0%} of the time, if programs are alike)"
        )
    return tuple(words)


def padded_rows(plan: Plan) -> None:
    """Warn of loads and stores in UB whose rows end inside a block of 32 bytes: they are padded to whole ones."""
    for op in plan.program.walk():
        for words in _padded(plan, op):
            plan.warn(op, words)


def _padded(plan: Plan, op: Op) -> Iterator[str]:
    if op.kind not in ("load", "store"):
        return
    v = op.results[0] if op.kind == "load" else op.args[1]
    if v is None or len(v.shape) < 2 or v.shape[-1] == 1 or v.numel == v.shape[-1]:
        return
    root = plan.definitions.root(v)
    if root is None or plan.homes.home(root) != UB:
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
