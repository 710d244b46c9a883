# mypy: disable-error-code="no-untyped-def,assignment"
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
from .operands import ONE, Products
from .strips import matmul_strips, pieces, strips

# -- kernels ---------------------------------------------------------------------------------------------------------


@sim.jit
def slices_of(ptrs, mask, rows, cols, COUNT: tl.constexpr):
    """A tile of each of COUNT matrices (rows, cols) that lie one after the other."""
    found = ()
    for i in tl.static_range(COUNT):
        here = ptrs if i == 0 else ptrs + i * rows * cols
        found += (tl.load(here) if mask is None else tl.load(here, mask=mask, other=0.0),)
    return found


@sim.jit
def matmul_tiles(
    a_ptr, b_ptr, c_ptr, M, N, K, items, part, group,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, EVEN: tl.constexpr, PRODUCTS: tl.constexpr = ((0, 0),),
):  # fmt: skip
    """c (parts, M, N) = a (M, K) b (K, N), a sum of `part` products for each part; items: tiles of all parts, of which
    `group` rows are taken together.

    EVEN: no tile is cut short, so that no mask is needed. PRODUCTS: which slices of a and of b are multiplied, where they
    are several matrices (slices, M, K) and (slices, K, N); their sum is c.
    """
    A_SLICES: tl.constexpr = 1 + max([i for i, _ in PRODUCTS])
    B_SLICES: tl.constexpr = 1 + max([j for _, j in PRODUCTS])
    down, across = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        split, tile = item // (down * across), item % (down * across)
        first = tile // (group * across) * group
        height = tl.minimum(down - first, group)
        rows = (first + tile % (group * across) % height) * BM + tl.arange(0, BM)
        cols = tile % (group * across) // height * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.int32 if a_ptr.dtype.element_ty == tl.int8 else tl.float32)
        start = split * part
        stop = tl.minimum(K, start + part)
        deep = start + tl.arange(0, BK)
        a_ptrs = a_ptr + rows[:, None] * K + deep[None, :]
        b_ptrs = b_ptr + deep[:, None] * N + cols[None, :]
        for k in range(start, stop, BK):
            if EVEN:
                a, b = slices_of(a_ptrs, None, M, K, A_SLICES), slices_of(b_ptrs, None, K, N, B_SLICES)
            else:
                left = tl.arange(0, BK) < stop - k
                a = slices_of(a_ptrs, (rows < M)[:, None] & left[None, :], M, K, A_SLICES)
                b = slices_of(b_ptrs, left[:, None] & (cols < N)[None, :], K, N, B_SLICES)
            for p in tl.static_range(len(PRODUCTS)):
                acc += tl.dot(a[PRODUCTS[p][0]], b[PRODUCTS[p][1]])
            a_ptrs += BK
            b_ptrs += BK * N
        c_ptrs = c_ptr + split * M * N + rows[:, None] * N + cols[None, :]
        out = acc.to(c_ptr.dtype.element_ty)
        if EVEN:
            tl.store(c_ptrs, out)
        else:
            tl.store(c_ptrs, out, mask=(rows < M)[:, None] & (cols < N)[None, :])


# -- launches --------------------------------------------------------------------------------------------------------


def product_step(
    a: Tensor, b: Tensor, c: Tensor, tiling: Knobs, resolved: Resolution, products: Products = ONE
) -> Step:
    """Launch of the product; c has an axis of parts before it where the sum is split.

    products: which slices are multiplied, where a and b have an axis of slices before theirs.
    """
    (m, k), n = a.shape[-2:], b.shape[-1]
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
        arguments |= {"group": tiling["group"], "PRODUCTS": products}
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
