"""How fast a tiling of a matrix product can be at best: closed forms over whole columns of tilings.

A bound follows one chain of waits on the core with most tiles, every transfer at the rate of its port, or
what all cores together move through HBM and L2. The engine (`simulator/timing/engine.py`) knows more waits and shares
bandwidth, so the simulated time is never below (tested by brute force and by hypothesis).

With per turn of the sum the loads A and B into L1 (latency `lat`), the parts of the product in L0 (a, b: L1 to L0; m: Mmad),
per tile the store F, and x cycles from pipe to pipe:

    loads      all loads, then what follows the last one
    Mmad       first loads, all Mmads, F (also after every tile where L0C holds no second accumulator)
    MTE1       first load, all ways into L0, the last Mmad, F
    copies     a load waits for the one before into the same copy, `buffers` turns ago
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..simulator.frontend import types as ty
from ..simulator.precision.cube_math import resolve_matmul
from ..simulator.products import Product
from ..simulator.timing.cube_cost import ITEM_BYTES, CubeCosts
from ..simulator.timing.geometry import align
from ..simulator.timing.machine import launch_overhead_us, wire
from .combine import REPEAT, SUM_COLUMNS
from .layout import up
from .matmul_tiles import CAST_BLOCK
from .operator import Tensors, dtype_of
from .vector_bound import LINE, memory_rate

SHARED = 0.5  # at least this part of the lines counts as touched first where tiles share lines
BLOCK = 32  # bytes to which bursts are rounded up
Columns = Mapping[str, np.ndarray]
Array = Any


@dataclass(frozen=True)
class Parts:
    """Cycles of one turn of the sum in L0: sums over its parts, and those of the first and last part."""

    mmad: float
    mte1: float
    first_a: float
    first_b: float
    last_mmad: float


def operands(tensors: Tensors, product: Product, mode: str) -> tuple[str, int, int]:
    """(format that the Cube reads, bytes of an operand in memory, bytes of a result)."""
    kinds = [dtype_of(tensors[x]).name for x in ("a", "b")]
    found = resolve_matmul(product, kinds, mode, tensors["a"].shape[-1])
    compute, written = ty.from_name(found.compute), ty.from_name(found.output())
    assert compute is not None
    assert written is not None
    return "hf32" if found.hf32 else compute.name, compute.itemsize, written.itemsize


def bound_us(tensors: Tensors, product: Product, mode: str, points: Columns) -> np.ndarray:
    """Least time in us of each point, all launches of it."""
    return np.asarray(
        _product_us(tensors, product, mode, points) + _others_us(tensors, product, mode, points)
    )


def _product_us(tensors: Tensors, product: Product, mode: str, points: Columns) -> np.ndarray:
    operand, size, written = operands(tensors, product, mode)
    (m, k), n = tensors["a"].shape, tensors["b"].shape[-1]
    bm, bn, bk, split, copies = (points[x] for x in ("block_m", "block_n", "block_k", "split_k", "buffers"))
    size_out = np.where(split > 1, 4, written)
    machine = wire(product, True, False).machine
    x, cores = machine.cross_pipe_cycles, np.minimum(points.get("cores", product.cube_cores), machine.cores)
    part = -(-k // split)
    last = k - (split - 1) * part  # the last part of a sum that does not divide
    shortest = np.where(split > 1, np.maximum(0, np.minimum(part, last)), part)
    tiles = -(-m // bm) * -(-n // bn) * split
    cores = np.minimum(cores, tiles)
    most, turns = -(-tiles // cores), -(-shortest // bk)
    rows, columns = _least_edge(m, bm), _least_edge(n, bn)
    rate = max(machine.channels[c].port_bytes_per_cycle for c in (3, 4))
    least = product.number("path.gm_to_l1_nd2nz.issue_interval_cycles")
    row = _row_cycles(product)
    row_a, row_b = (np.where(block < length, row, 0.0) for block, length in ((bk, k), (bn, n)))
    deep = np.minimum(np.where(shortest % bk, shortest % bk, bk), shortest)
    load_a = np.maximum(np.maximum(least, rows * row_a), rows * _burst(deep, size) / rate)
    load_b = np.maximum(np.maximum(least, deep * row_b), deep * _burst(columns, size) / rate)
    whole_a = np.maximum(rows * shortest * size / rate, turns * rows * row_a)
    whole_b = np.maximum(columns * shortest * size / rate, shortest * row_b)
    per_tile = np.maximum(whole_a + whole_b, turns * (load_a + load_b))
    late = "path.gm_to_l1_nd2nz.latency_cycles"
    latency = product.number(late if product.has(late) else "path.gm_to_l1_nd2nz.fixed_cycles")
    p = _parts_of(product, operand, points)
    store = _store_cycles(product, rows * columns * size_out)
    first = latency + x + p["first_a"] + p["first_b"]  # both operands are there, the first part is in L0
    after = first + x + np.maximum(p["rest"] + p["last_mmad"], p["mmad"]) + x
    alone = 2 * bm * bn * 4 > product.l0c_bytes
    between = np.where(alone, 2 * x + store, 0.0)
    at_once = np.where(points["schedule"] == "per_tile", 1, most)  # tiles of one program
    steps = at_once * turns
    lap = (
        load_a + load_b + latency
    )  # a load that L2 gives in part may overtake the reads of the tile before it
    chains = (
        at_once * per_tile + after + store,
        load_a + load_b + first + x + steps * p["mmad"] + (at_once - 1) * between + x + store,
        load_a + load_b + latency + x + steps * p["mte1"] + x + p["last_mmad"] + x + store,
        np.maximum(steps - 1, 0) // copies * lap + load_a + load_b + after + store,
    )
    one = np.where(turns > 0, np.maximum.reduce(chains), store)
    waves = -(-most // at_once)
    core = waves * one + (waves - 1) * machine.dispatch_cycles
    loaded = (-(-n // bn) * m * k + -(-m // bm) * k * n) * size
    stored = m * n * split * size_out
    tail = first + x + p["last_mmad"] + x + store
    l2 = np.maximum(
        (loaded + stored) / product.l2_bytes_per_cycle, loaded / product.l2_bytes_per_cycle + tail
    )
    once = m * k * size * _touched(bk * size, k * size) + k * n * size * _touched(bn * size, n * size)
    hbm = once / memory_rate(product) + tail
    even = loaded / cores / rate + tail
    cycles = np.maximum.reduce([core, l2, hbm, even])
    return np.asarray(cycles / product.us_to_cycles(1.0) + _overhead(product, cores, machine.cores))


def _others_us(tensors: Tensors, product: Product, mode: str, points: Columns) -> np.ndarray:
    """Casts before the product, and the sum of the parts after it."""
    _, size, _ = operands(tensors, product, mode)
    split, elements = points["split_k"], tensors["a"].shape[0] * tensors["b"].shape[-1]
    flight = product.number("path.gm_to_ub.fixed_cycles") + product.number("path.ub_to_gm.fixed_cycles")
    vectors = product.vector_cores
    columns = min(SUM_COLUMNS, up(-(-elements // vectors), REPEAT))
    used = min(vectors, -(-elements // columns))
    touched = 1.0 if elements * 4 % LINE == 0 and columns * 4 % LINE == 0 else SHARED * columns * 4 / LINE
    moved = split * min(1.0, touched) * 4 * elements
    cycles = moved / memory_rate(product) + flight
    summing = cycles / product.us_to_cycles(1.0) + launch_overhead_us(product, used, vectors)
    casts = 0.0
    for n in ("a", "b"):
        x = tensors[n]
        if dtype_of(x).itemsize != size:
            programs = min(vectors, -(-x.size // min(CAST_BLOCK, up(x.size, 16))))
            cycles_read = x.size * dtype_of(x).itemsize * SHARED / memory_rate(product) + flight
            casts += cycles_read / product.us_to_cycles(1.0) + launch_overhead_us(product, programs, vectors)
    return np.where(split > 1, summing, 0.0) + casts


def _parts_of(product: Product, operand: str, points: Columns) -> dict[str, np.ndarray]:
    """Figures of `Parts` for every point, each different block computed once."""
    names = ("block_m", "block_n", "block_k")
    blocks = np.stack([points[n] for n in names], axis=1)
    bases = [points[n] for n in ("base_m", "base_n", "base_k") if n in points]
    blocks = np.column_stack([blocks, *(bases or [np.zeros((len(blocks), 3), np.int64)])])
    different, place = np.unique(blocks, axis=0, return_inverse=True)
    found = [_parts(product, operand, *(int(x) for x in row)) for row in different]
    out = {f: np.array([getattr(p, f) for p in found])[place.ravel()] for f in Parts.__dataclass_fields__}
    out["rest"] = out["mte1"] - out["first_a"] - out["first_b"]
    return out


@lru_cache(maxsize=4096)
def _parts(product: Product, operand: str, bm: int, bn: int, bk: int, *base: int) -> Parts:
    """One turn of the sum, cut into L0 tiles as the plan of a launch cuts it."""
    cube, size = CubeCosts(product), ITEM_BYTES[operand]
    given = (base[0], base[1], base[2]) if all(base) else None
    tile = cube.l0_tile(bm, bn, bk, operand, given)
    cut = [
        (min(tile.m, bm - i), min(tile.n, bn - j), min(tile.k, bk - q))
        for i in range(0, bm, tile.m)
        for j in range(0, bn, tile.n)
        for q in range(0, bk, tile.k)
    ]
    a = [cube.to_l0a[0] + align(i, 16) * align(q * size, 32) / cube.to_l0a[1] for i, _, q in cut]
    b = [cube.to_l0b[0] + align(j, 16) * align(q * size, 32) / cube.to_l0b[1] for _, j, q in cut]
    m = [cube.startup + cube.mmad_cycles(*p, operand) + cube.barrier_cycles(p[0], p[1]) for p in cut]
    return Parts(sum(m), sum(a) + sum(b), a[0], b[0], m[-1])


def _row_cycles(product: Product) -> float:
    name = "path.gm_to_l1_nd2nz.row_cycles"
    return product.number(name) if product.has(name) else 0.0


def _store_cycles(product: Product, size: Array) -> Array:
    """A tile from L0C to memory; 0 where it goes through UB, for which the core has no pipe of its own."""
    if product.core_model != "split":
        return 0.0 * size
    nd = "path.l0c_to_gm.nz2nd_"
    way = nd if product.has(f"{nd}bytes_per_cycle") else "path.l0c_to_gm."
    return size / product.number(f"{way}bytes_per_cycle") + product.number(f"{way}fixed_cycles")


def _least_edge(length: int, block: Array) -> Array:
    """The shortest edge of a tile along an axis."""
    return np.where(length % block, length % block, block)


def _burst(elements: Array, size: int) -> Array:
    """Bytes of a row of a tile."""
    return -(-elements * size // BLOCK) * BLOCK


def _touched(row: Array, pitch: int) -> Array:
    """Least part of a tensor's bytes that is charged to HBM. row: bytes of a tile's row, pitch: of the tensor's.

    A tile is charged by the part of its 128-byte lines that no tile before it touched: all of it where rows are whole lines.
    """
    narrow = row / (LINE * (row // LINE + 2)) * SHARED
    return np.where((row % LINE == 0) & (pitch % LINE == 0), 1.0, np.minimum(1.0, narrow))


def _overhead(product: Product, cores: Array, most: int) -> Array:
    table = np.array([launch_overhead_us(product, c, most) for c in range(most + 1)])
    return table[np.broadcast_to(cores, np.shape(cores))]
