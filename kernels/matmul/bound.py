"""How fast a tiling of a matrix product can be at best: closed forms over whole columns of tilings.

A bound follows one chain of waits on the core with most tiles, every transfer at the rate of its port, or
what all cores together move through HBM and L2. The engine (`simulator/timing/engine/engine.py`) knows more waits and shares
bandwidth, so the simulated time is never below (tested by brute force and by hypothesis).

With per iteration of the sum the loads A and B into L1 (latency `lat`) and the parts of the product in L0 (a, b: L1 to L0;
m: Mmad), per tile the store F, and x cycles from pipe to pipe:

    loads      all loads, then what follows the last one
    Mmad       first loads, all Mmads, F (also after every tile where L0C holds no second accumulator)
    MTE1       first load, all loads into L0, the last Mmad, F
    copies     a load waits for the reads of the one before into the same copy, `buffers` iterations ago

A load of what several cores read at the same moment takes as many times longer (`loads.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ...simulator.precision.cube_math import resolve_matmul
from ...simulator.products import Product
from ...simulator.timing.costs.cube import ITEM_BYTES, CubeCosts
from ...simulator.timing.engine.machine import launch_overhead_us, port_rate, wire
from ...simulator.timing.lowering.context import PathRates
from ...simulator.timing.placement.layouts import FRACTAL, align
from ..bounds.vector import LINE, memory_rate, missed, overheads_us
from ..operator.layout import up
from ..operator.tensors import Columns, Tensors, dtype_of, element_type
from ..shared.sums import REPEAT, SUM_COLUMNS
from .loads import Loads, Tiles

SHARED = 0.5  # at least this part of the lines counts as touched first where tiles share lines
Array = Any


@dataclass(frozen=True)
class Parts:
    """Cycles of one iteration of the sum in L0: sums over its parts, and those of the first and last part.

    reads: from the first load into L0 to the end of the last one, which waits for the product before it in its half.
    """

    mmad: float
    mte1: float
    first_a: float
    first_b: float
    last_mmad: float
    reads: float


def operands(tensors: Tensors, product: Product, mode: str) -> tuple[str, int, int]:
    """(format that the Cube reads, bytes of an operand in memory, bytes of a result)."""
    kinds = [dtype_of(tensors[x]).name for x in ("a", "b")]
    found = resolve_matmul(product, kinds, mode, tensors["a"].shape[-1])
    compute, written = element_type(found.compute), element_type(found.output())
    return "hf32" if found.hf32 else compute.name, compute.itemsize, written.itemsize


def bound_us(tensors: Tensors, product: Product, mode: str, points: Columns) -> np.ndarray:
    """Least time in us of each point, all launches of it."""
    return np.asarray(
        _product_us(tensors, product, mode, points) + _others_us(tensors, product, mode, points)
    )


def _product_us(tensors: Tensors, product: Product, mode: str, points: Columns) -> np.ndarray:
    launch = _Launch(tensors, product, mode, points)
    cycles = np.maximum.reduce([launch.core(), *launch.all_cores()])
    overhead = overheads_us(product, launch.cores)
    return np.asarray(cycles / product.us_to_cycles(1.0) + overhead)


class _Launch:
    """The launch of the product: figures of every point as columns, in cycles and bytes."""

    def __init__(self, tensors: Tensors, product: Product, mode: str, points: Columns) -> None:
        self.product, self.points = product, points
        self.machine = wire(product, True, False).machine
        self.cross = self.machine.cross_pipe_cycles
        operand, size, written = operands(tensors, product, mode)
        self.parts = _parts_of(product, operand, points)
        self.tiles = self._tiles(tensors, size, written)
        self.cores, self.most = self.tiles.cores, -(-self.tiles.count // self.tiles.cores)
        self.rate = port_rate(self.machine, "gm_to_l1")
        self.loads = Loads(self.tiles, product, self.rate)
        l1 = (product.l1_bytes - product.integer("buffers.l1_reserved")) // size
        fit = l1 // ((points["block_m"] + points["block_n"]) * points["block_k"])  # copies that a launch gets
        self.copies = np.clip(points["buffers"], 1, np.maximum(1, fit))
        self._ends()

    def _tiles(self, tensors: Tensors, size: int, written: int) -> Tiles:
        (m, k), n = tensors["a"].shape, tensors["b"].shape[-1]
        points, split = self.points, self.points["split_k"]
        bm, bn, bk = (points[f"block_{x}"] for x in "mnk")
        bytes_out = np.where(split > 1, 4, written)
        tiles = Tiles(m, n, k, size, bm, bn, bk, points["group"], split, self.machine.cores, bytes_out)
        wanted = np.minimum(points.get("cores", self.product.cube_cores), self.machine.cores)
        return tiles._replace(cores=np.minimum(wanted, tiles.count))

    def _ends(self) -> None:
        """What is before and after the loads and products that are counted."""
        late = "path.gm_to_l1_nd2nz.latency_cycles"
        found = late if self.product.has(late) else "path.gm_to_l1_nd2nz.fixed_cycles"
        p, x = self.parts, self.cross
        self.latency = self.product.number(found)
        t = self.tiles
        turned = np.where(t.columns > FRACTAL, t.rows, 0)
        self.store = store_cycles(self.product, t.rows * t.columns * t.written, turned)
        # both operands are there, the first part is in L0
        self.first = self.latency + x + p["first_a"] + p["first_b"]
        self.after = self.first + x + np.maximum(p["rest"] + p["last_mmad"], p["mmad"]) + x + self.store
        self.tail = self.first + x + p["last_mmad"] + x + self.store

    def core(self) -> Array:
        """Cycles of the core with most tiles (one program with all of them, or one for each), or with the longest loads."""
        at_once = np.where(self.points["schedule"] == "per_tile", 1, self.most)
        waves = -(-self.most // at_once)
        most = waves * self._program(at_once) + (waves - 1) * self.machine.dispatch_cycles
        after = np.where(self.tiles.iterations > 0, self.after, 0.0)
        longest = self.tiles.count * self.loads.mean / self.cores + after
        return np.maximum(most, longest)

    def _program(self, tiles: Array) -> Array:
        """Cycles of a program of so many tiles: the longest of the chains."""
        p, x, steps = self.parts, self.cross, tiles * self.tiles.iterations
        alone = 2 * self.points["block_m"] * self.points["block_n"] * 4 > self.product.l0c_bytes
        between = np.where(alone, 2 * x + self.store, 0.0)
        loads = sum(self.loads.any_one)
        lap = loads + self.latency + x + p["reads"] + x
        chains = (
            tiles * self.loads.any + self.after,
            loads + self.first + x + steps * p["mmad"] + (tiles - 1) * between + x + self.store,
            loads + self.latency + x + steps * p["mte1"] + x + p["last_mmad"] + x + self.store,
            np.maximum(steps - 1, 0) // self.copies * lap + loads + self.after,
        )
        return np.where(self.tiles.iterations > 0, np.maximum.reduce(chains), self.store)

    def all_cores(self) -> tuple[Array, ...]:
        """Cycles of all cores together: through L2, from HBM, and through ports that are all as busy."""
        t, product, loaded = self.tiles, self.product, self.loads.moved
        stored = t.m * t.n * t.split * t.written
        touched_a, touched_b = _touched(t.bk * t.size, t.k * t.size), _touched(t.bn * t.size, t.n * t.size)
        once = (t.m * touched_a + t.n * touched_b) * t.k * t.size
        return (
            (loaded + stored) / product.l2_bytes_per_cycle,
            loaded / product.l2_bytes_per_cycle + self.tail,
            missed(once, product) / memory_rate(product) + self.tail,
            loaded / self.cores / self.rate + self.tail,
        )


def _others_us(tensors: Tensors, product: Product, mode: str, points: Columns) -> np.ndarray:
    """Casts before the product, and the sum of the parts after it."""
    _, size, _ = operands(tensors, product, mode)
    split, elements = points["split_k"], tensors["a"].shape[0] * tensors["b"].shape[-1]
    flight = product.number("path.gm_to_ub.fixed_cycles") + product.number("path.ub_to_gm.fixed_cycles")
    vectors = product.vector_cores
    columns = min(SUM_COLUMNS, up(-(-elements // vectors), REPEAT))
    touched = 1.0 if elements * 4 % LINE == 0 and columns * 4 % LINE == 0 else SHARED * columns * 4 / LINE
    moved = split * min(1.0, touched) * 4 * elements
    cycles = missed(moved, product) / memory_rate(product) + flight
    summing = cycles / product.us_to_cycles(1.0) + launch_overhead_us(product)
    casts = 0.0
    for n in ("a", "b"):
        x = tensors[n]
        if dtype_of(x).itemsize != size:
            least = missed(x.size * dtype_of(x).itemsize * SHARED, product)
            cycles_read = float(least) / memory_rate(product) + flight
            casts += cycles_read / product.us_to_cycles(1.0) + launch_overhead_us(product)
    return np.where(split > 1, summing, 0.0) + casts


def _parts_of(product: Product, operand: str, points: Columns) -> dict[str, np.ndarray]:
    """Figures of `Parts` for every point, each different block computed once."""
    names = ("block_m", "block_n", "block_k")
    blocks = np.stack([points[n] for n in names], axis=1)
    none = np.zeros(len(blocks), np.int64)
    bases = [points.get(n, none) for n in ("base_m", "base_n", "base_k")]
    blocks = np.column_stack([blocks, *bases])
    different, place = np.unique(blocks, axis=0, return_inverse=True)
    found = [_parts(product, operand, *(int(x) for x in row)) for row in different]
    out = {f: np.array([getattr(p, f) for p in found])[place.ravel()] for f in Parts.__dataclass_fields__}
    out["rest"] = out["mte1"] - out["first_a"] - out["first_b"]
    return out


@lru_cache(maxsize=4096)
def _parts(product: Product, operand: str, bm: int, bn: int, bk: int, *base: int) -> Parts:
    """One iteration of the sum, cut into L0 tiles as the plan of a launch cuts it."""
    cube, size = CubeCosts(product), ITEM_BYTES[operand]
    cut = l0_tiles(cube, (bm, bn, bk), operand, base)
    a = [cube.to_l0a[0] + align(i, 16) * align(q * size, 32) / cube.to_l0a[1] for i, _, q in cut]
    b = [cube.to_l0b[0] + align(j, 16) * align(q * size, 32) / cube.to_l0b[1] for _, j, q in cut]
    m = mmad_cycles(cube, cut, operand)
    cross = wire(product, True, False).machine.cross_pipe_cycles
    waits = a[0] + b[0] + cross + sum(m[:-2]) + cross + a[-1] + b[-1] if len(cut) > 2 else 0.0
    mte1 = sum(a) + sum(b)
    return Parts(sum(m), mte1, a[0], b[0], m[-1], max(mte1, waits))


def l0_tiles(
    cube: CubeCosts, block: tuple[int, int, int], operand: str, base: Sequence[int]
) -> list[tuple[int, int, int]]:
    """(m, n, k) of the products in L0 that a block is cut into; base: of a tile in L0, with a 0 in it the cube's own."""
    tile = cube.l0_tile(*block, operand, (base[0], base[1], base[2]) if all(base) else None)
    edges = (tile.m, tile.n, tile.k)
    parts = ([min(e, n - i) for i in range(0, n, e)] for n, e in zip(block, edges, strict=True))
    return list(itertools.product(*parts))  # type: ignore[arg-type]


def mmad_cycles(cube: CubeCosts, cut: Iterable[tuple[int, int, int]], operand: str) -> list[float]:
    """Cycles of the Cube for each of them."""
    start = cube.startup + cube.switch
    return [start + cube.mmad_cycles(*p, operand) + cube.barrier_cycles(p[0], p[1]) for p in cut]


def store_cycles(product: Product, size: Array, rows: Array = 0.0) -> Array:
    """A tile of so many bytes and rows from L0C to memory; 0 where it goes through UB, for which the core has no pipe of its
    own."""
    if product.core_model != "split":
        return 0.0 * size
    nd = "path.l0c_to_gm.nz2nd_"
    path = nd if product.has(f"{nd}bytes_per_cycle") else "path.l0c_to_gm."
    turned = rows * PathRates.of(product, "l0c_to_gm").row
    moved = np.maximum(size / product.number(f"{path}bytes_per_cycle"), turned)
    return moved + product.number(f"{path}fixed_cycles")


def _touched(row: Array, pitch: int) -> Array:
    """Least part of a tensor's bytes that is charged to HBM. row: bytes of a tile's row, pitch: of the tensor's.

    A tile is charged by the part of its 128-byte lines that no tile before it touched: all of it where rows are whole lines.
    """
    narrow = row / (LINE * (row // LINE + 2)) * SHARED
    return np.where((row % LINE == 0) & (pitch % LINE == 0), 1.0, np.minimum(1.0, narrow))
