# mypy: disable-error-code="no-untyped-def"
"""Tile kernel of a product for each expert: rows of x lie behind each other, expert by expert, and so do the weights."""

from __future__ import annotations

from ... import simulator as sim
from ...simulator import language as tl
from .tiles import place_of, product_tile


@sim.jit
def part_of(ptr, offset, THERE: tl.constexpr):
    """Where the part of an expert begins, of what may not be there at all."""
    return ptr + offset if THERE else ptr


@sim.jit
def grouped_tiles(
    x_ptr, w_ptr, s_ptr, o_ptr, t_ptr, b_ptr, out_ptr, N, K, items, scales, band, GROUPS: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, FORM: tl.constexpr,
):  # fmt: skip
    """items: tiles of all experts. GROUPS: (expert, its first row, the row behind its last, its first tile) of each
    expert that has rows, in order: a list that the host knows. scales: elements of scale and of offset of an expert.

    The tiles of all experts are numbered through, and programs take them in turn: experts with few rows leave no core idle.
    Within an expert they are taken as in `quantised_tiles`.
    """
    PAIRS: tl.constexpr = 2 if FORM.weight == "int4" else 1
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        expert, first, last, before = GROUPS[0]
        for g in tl.static_range(1, len(GROUPS)):
            there = tl.minimum(
                1, tl.maximum(0, item - GROUPS[g][3] + 1)
            )  # 1 from the first tile of the group on
            expert += there * (GROUPS[g][0] - GROUPS[g - 1][0])
            first += there * (GROUPS[g][1] - GROUPS[g - 1][1])
            last += there * (GROUPS[g][2] - GROUPS[g - 1][2])
            before += there * (GROUPS[g][3] - GROUPS[g - 1][3])
        row, column = place_of(item - before, tl.cdiv(last - first, BM), tl.cdiv(N, BN), band)
        product_tile(
            x_ptr, w_ptr + expert * (N * K // PAIRS), part_of(s_ptr, expert * scales, FORM.scale != "none"),
            part_of(o_ptr, expert * scales, FORM.offset), t_ptr, part_of(b_ptr, expert * N, FORM.bias != "none"), out_ptr,
            first + row * BM, last, column * BN, 0, K, N, K, BM, BN, BK, FORM,
        )  # fmt: skip
