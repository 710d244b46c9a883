# mypy: disable-error-code="no-untyped-def"
"""Tile kernel of the matrix product, and its launch.

A core takes tiles of the output in turn (`schedule` persistent), so that loads for its next tile run during the last
products of this one; `per_tile` starts a program for each tile. Tiles are taken in bands of `group` tile rows, so that
cores that work at the same time share operands in L2. Strips of tiles that share an operand in L1 have a kernel of their own
(`strips.py`).
"""

from __future__ import annotations

from typing import Any

from ... import simulator as sim
from ...simulator import language as tl
from ...simulator.precision.cube_math import Resolution
from ..operator.plan import Step
from ..operator.tensors import Knobs, Tensor
from .strips import matmul_strips, pieces, strips

# -- kernels ---------------------------------------------------------------------------------------------------------


@sim.jit
def matmul_tiles(
    a_ptr, b_ptr, c_ptr, M, N, K, items, part, group,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """c (parts, M, N) = a (M, K) b (K, N), a sum of `part` products for each part; items: tiles of all parts, of which
    `group` rows are taken together.

    EVEN: no tile is cut short, so that no mask is needed.
    """
    down, across = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        split, tile = item // (down * across), item % (down * across)
        first = tile // (group * across) * group
        height = tl.minimum(down - first, group)
        rows = (first + tile % (group * across) % height) * BM + tl.arange(0, BM)
        cols = tile % (group * across) // height * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        start = split * part
        stop = tl.minimum(K, start + part)
        deep = start + tl.arange(0, BK)
        a_ptrs = a_ptr + rows[:, None] * K + deep[None, :]
        b_ptrs = b_ptr + deep[:, None] * N + cols[None, :]
        for k in range(start, stop, BK):
            if EVEN:
                a, b = tl.load(a_ptrs), tl.load(b_ptrs)
            else:
                left = tl.arange(0, BK) < stop - k
                a = tl.load(a_ptrs, mask=(rows < M)[:, None] & left[None, :], other=0.0)
                b = tl.load(b_ptrs, mask=left[:, None] & (cols < N)[None, :], other=0.0)
            acc += tl.dot(a, b)
            a_ptrs += BK
            b_ptrs += BK * N
        c_ptrs = c_ptr + split * M * N + rows[:, None] * N + cols[None, :]
        out = acc.to(c_ptr.dtype.element_ty)
        if EVEN:
            tl.store(c_ptrs, out)
        else:
            tl.store(c_ptrs, out, mask=(rows < M)[:, None] & (cols < N)[None, :])


# -- launches --------------------------------------------------------------------------------------------------------


def product_step(a: Tensor, b: Tensor, c: Tensor, tiling: Knobs, resolved: Resolution) -> Step:
    """Launch of the product; c has an axis of parts before it where the sum is split."""
    (m, k), n = a.shape, b.shape[1]
    blocks, parts = (tiling["block_m"], tiling["block_n"]), tiling["split_k"]
    part = -(-k // parts)
    arguments = {
        **{"a_ptr": a, "b_ptr": b, "c_ptr": c, "M": m, "N": n, "K": k, "part": part},
        **{"BM": blocks[0], "BN": blocks[1], "BK": tiling["block_k"], "multibuffer": tiling["buffers"]},
    }
    even = not (m % blocks[0] or n % blocks[1] or k % (tiling["block_k"] * parts))
    switches = _switches(tiling, resolved)
    if tiling["keep"] == "none":
        items, kernel = -(-m // blocks[0]) * -(-n // blocks[1]) * parts, matmul_tiles
        arguments |= {"group": tiling["group"]}
    else:
        keep_a = tiling["keep"] == "a"
        cut = strips((m, n), blocks, keep_a, parts, tiling["cores"])
        items, kernel = int(cut.count), matmul_strips
        arguments |= {"stretches": int(cut.stretches), "KEEP_A": keep_a}
        many = pieces(part, tiling["block_k"])
        arguments |= {"PIECES": many, "AHEAD": tiling["buffers"] - 1}
        if many > 1:  # each is a tile of the kernel's own, loaded ahead of its turn
            arguments["multibuffer"] = 1
    grid = items if tiling["schedule"] == "per_tile" else min(items, tiling["cores"])
    return Step(kernel, grid, {**arguments, "items": items, "EVEN": even}, switches)


def _switches(tiling: Knobs, resolved: Resolution) -> dict[str, Any]:
    base = tuple(tiling[f"base_{axis}"] for axis in "mnk")
    return {
        "l0_tile": base if all(base) else None,
        "accumulate": tiling["accumulate"],
        "hf32_round": resolved.hf32_round,
    }
