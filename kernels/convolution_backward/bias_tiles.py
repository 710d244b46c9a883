# mypy: disable-error-code="no-untyped-def"
"""Tile kernel of the gradient of the bias: sums of grad_output over images and positions, by channel, in FP32.

The Vector cores read grad_output in its own type (the vendor's ReduceSum); cubeMathType has no effect.
"""

from __future__ import annotations

from math import prod

from ... import simulator as sim
from ...simulator import language as tl
from ..layout import even_part
from ..operator import Step, Tensor, dtype_of

TILE_BYTES = 24576  # of grad_output: two copies, and FP32 of the tile and of the sums


@sim.jit
def bias_sums(
    dy_ptr,
    parts_ptr,
    items,
    N,
    per_part,
    C: tl.constexpr,
    P: tl.constexpr,
    BC: tl.constexpr,
    BP: tl.constexpr,
):
    """parts (items // blocks of channels, C) of dy (N, C, P): each item sums `per_part` images for BC channels."""
    blocks: tl.constexpr = (C + BC - 1) // BC
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        c = item % blocks * BC + tl.arange(0, BC)
        first = item // blocks * per_part
        total = tl.zeros((BC, BP), tl.float32)
        across: tl.constexpr = (P + BP - 1) // BP
        for turn in range(tl.minimum(per_part, N - first) * across):
            p = turn % across * BP + tl.arange(0, BP)
            at = (first + turn // across) * (C * P) + c[:, None] * P + p[None, :]
            x = tl.load(dy_ptr + at, mask=(c < C)[:, None] & (p < P)[None, :], other=0.0)
            total += x.to(tl.float32)
        tl.store(parts_ptr + item // blocks * C + c, tl.sum(total, axis=1), mask=c < C)


def bias_cut(dy: Tensor, cores: int) -> tuple[int, int, int, int]:
    """(channels of a tile, positions of a tile, images of a part, parts): as many items as cores, or more."""
    batch, channels, positions = dy.shape[0], dy.shape[1], prod(dy.shape[2:])
    room = TILE_BYTES // dtype_of(dy).itemsize
    across = even_part(positions, min(room, 2048))
    rows = max(1, min(channels, room // (-(-across // 16) * 16)))
    rows = min(rows, max(1, -(-channels * batch // cores)))
    blocks = -(-channels // rows)
    parts = min(batch, max(1, -(-cores // blocks)))
    per_part = -(-batch // parts)
    return rows, across, per_part, -(-batch // per_part)


def bias_step(dy: Tensor, parts: Tensor, cut: tuple[int, int, int, int], cores: int) -> Step:
    """Launch of the partial sums; parts is (parts, C) fp32, or the result itself where there is one part."""
    rows, across, per_part, count = cut
    items = count * -(-dy.shape[1] // rows)
    arguments = {
        **{"dy_ptr": dy, "parts_ptr": parts, "items": items, "N": dy.shape[0], "per_part": per_part},
        **{"C": dy.shape[1], "P": prod(dy.shape[2:]), "BC": rows, "BP": across, "multibuffer": 2},
    }
    return Step(bias_sums, min(cores, items), arguments)
