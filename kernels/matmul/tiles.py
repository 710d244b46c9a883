# mypy: disable-error-code="no-untyped-def"
"""Tile kernels of the matrix product, and the choice of a tiling from the product's buffers.

A core takes tiles of the output in turn (`schedule` persistent), so that loads for its next tile run during the last
products of this one; `per_tile` starts a program for each tile. Tiles are taken in bands of `group` tile rows, so that
cores that work at the same time share operands in L2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ... import simulator as sim
from ...simulator import language as tl
from ...simulator.errors import UsageError
from ...simulator.precision.cube_math import Resolution
from ...simulator.products import Product
from ..operator.layout import up
from ..operator.plan import PlanContext, Step, cores_of
from ..operator.tensors import Knobs, Tensor, dtype_of

FRACTAL = 16  # rows and columns of the Cube's smallest block
WIDEST = 256  # of a tile of the output, per axis
DEEPEST = 512  # of a tile of the operands
LOAD_RATE = 128  # bytes per cycle that a core loads at most, for the choice of a tile only
NOT_HIDDEN = 0.3  # part of the shorter of loading and multiplying that the longer does not hide, likewise
MIN_SPLIT_K = 1024  # least length of the sum of one part
L1_KEPT = 4096  # bytes of L1 left to what the system keeps there

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
    items = _tiles(m, n, tiling["block_m"], tiling["block_n"]) * tiling["split_k"]
    arguments = {
        **{"a_ptr": a, "b_ptr": b, "c_ptr": c, "M": m, "N": n, "K": k, "items": items},
        "part": -(-k // tiling["split_k"]),
        "group": tiling["group"],
        **{"BM": tiling["block_m"], "BN": tiling["block_n"], "BK": tiling["block_k"]},
        "EVEN": not (
            m % tiling["block_m"] or n % tiling["block_n"] or k % (tiling["block_k"] * tiling["split_k"])
        ),
        "multibuffer": tiling["buffers"],
    }
    base = tuple(tiling[f"base_{axis}"] for axis in "mnk")
    switches = {
        "l0_tile": base if all(base) else None,
        "accumulate": tiling["accumulate"],
        "hf32_round": resolved.hf32_round,
    }
    grid = items if tiling["schedule"] == "per_tile" else min(items, tiling["cores"])
    return Step(matmul_tiles, grid, arguments, switches)


# -- tiling ----------------------------------------------------------------------------------------------------------


def choose(a: Tensor, b: Tensor, knobs: Knobs, context: PlanContext, resolved: Resolution) -> dict[str, Any]:
    """Every knob: as given, else by the size of the product's buffers and the number of its cores."""
    product = context.product
    (m, k), n = a.shape, b.shape[1]
    cores = cores_of(product, "cube", knobs["cores"])
    block_m, block_n = _block(m, n, knobs, cores, product, dtype_of(a).itemsize)
    block_k = knobs["block_k"] or _depth(
        k, block_m + block_n, knobs["buffers"], dtype_of(a).itemsize, product
    )
    base = {f"base_{axis}": knobs[f"base_{axis}"] for axis in "mnk"}
    if any(base.values()) and not all(base.values()):
        raise UsageError(
            f"matmul: give base_m, base_n and base_k together or none of them; got {tuple(base.values())}"
        )
    split = knobs["split_k"] or _parts(k, _tiles(m, n, block_m, block_n), cores, resolved.grouped)
    chosen = {"block_m": block_m, "block_n": block_n, "block_k": block_k, "split_k": split, "cores": cores}
    return {**knobs, **chosen}


def _tiles(m: int, n: int, block_m: int, block_n: int) -> int:
    return -(-m // block_m) * -(-n // block_n)


def _block(m: int, n: int, knobs: Knobs, cores: int, product: Product, itemsize: int) -> tuple[int, int]:
    """The tile of the output with the least time of all rounds, by a rough count of cycles; the larger one of equals."""
    macs = FRACTAL**3 * 2 // itemsize
    rate = min(LOAD_RATE, product.l2_bytes_per_cycle / product.cube_cores)

    def cost(tile: tuple[int, int]) -> tuple[float, int]:
        rounds = -(-_tiles(m, n, *tile) // cores)
        low, high = sorted((tile[0] * tile[1] / macs, sum(tile) * itemsize / rate))
        return rounds * (high + NOT_HIDDEN * low), -tile[0] * tile[1]

    return min(_blocks(m, n, knobs, product.l0c_bytes), key=cost)


def _blocks(m: int, n: int, knobs: Knobs, l0c: int) -> Iterator[tuple[int, int]]:
    """Tiles whose accumulator fits L0C and, where that has to pass there, half of a UB of the same size."""
    room = min(l0c, 128 * 1024)
    found = [
        (i, j) for i in _edges(m, knobs["block_m"]) for j in _edges(n, knobs["block_n"]) if i * j * 4 <= room
    ]
    smallest = (knobs["block_m"] or FRACTAL, knobs["block_n"] or FRACTAL)
    return iter(found or [smallest])


def _edges(length: int, wanted: int | None) -> list[int]:
    return [wanted] if wanted else sorted({min(e, up(length, FRACTAL)) for e in (64, 128, WIDEST)})


def _depth(k: int, edges: int, buffers: int, itemsize: int, product: Product) -> int:
    """Columns of a tile of a: all copies of both operands in L1, and no deeper than `DEEPEST`."""
    room = (product.l1_bytes - L1_KEPT) // (buffers * edges * itemsize)
    deepest = min(DEEPEST, 1 << max(4, room.bit_length() - 1))
    return min(up(k, FRACTAL), deepest)


def _parts(k: int, tiles: int, cores: int, grouped: bool) -> int:
    """Parts of the sum: 1, or for grouped accumulation at least 2 and enough to occupy the cores (assumed)."""
    return min(max(2, cores // tiles), k // MIN_SPLIT_K) if grouped else 1
