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
    turns      where L0C holds no second accumulator nothing of a tile is multiplied before the one before is stored, and
               then all its loads into L0 follow, but for the two that L0 holds already

A load of what several cores read at the same moment takes as many times longer (`loads.py`). At the edges of the product
tiles are cut, and so is what is multiplied: a chain takes the smallest of them, the mean over the cores all as they are
(`multiplied.py`). Of an operand that stays in L1 (`keep`) the core loads a tile once, and the other one for every tile. Of
operands in slices (`sliced.py`) a step loads a tile of each slice, and multiplies as often as there are products.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...simulator.precision.splits import SPLITS
from ...simulator.products import Product
from ...simulator.timing.engine.machine import port_rate, wire
from ...simulator.timing.lowering.context import PathRates
from ...simulator.timing.placement.layouts import FRACTAL
from ..bounds.vector import LINE, VectorRates, VectorWork, last_part, memory_rate, missed, overheads_us
from ..operator.layout import up
from ..operator.tensors import Columns, Tensors, dtype_of
from ..shared.casts import CAST_BLOCK
from ..shared.sums import REPEAT, SUM_COLUMNS
from .loads import Loads, Tiles
from .multiplied import MultipliedCycles
from .operands import CubeOperands, Products, operands, slice_counts
from .sliced import around_us
from .strips import Strips, kept_bytes, pieces, strips, tiles_of_longest

SHARED = 0.5  # at least this part of the lines counts as touched first where tiles share lines
Array = Any


def bound_us(tensors: Tensors, product: Product, mode: str, points: Columns) -> np.ndarray:
    """Least time in us of each point, all launches of it."""
    return np.asarray(
        _product_us(tensors, product, mode, points) + _others_us(tensors, product, mode, points)
    )


def _product_us(tensors: Tensors, product: Product, mode: str, points: Columns) -> np.ndarray:
    found = operands(tensors, product, mode)
    each = [_launch_us(tensors, product, found, products, points) for products in found.groups]
    return np.asarray(sum(each))


def _launch_us(
    tensors: Tensors, product: Product, found: CubeOperands, products: Products, points: Columns
) -> np.ndarray:
    launch = _Launch(tensors, product, found, products, points)
    cycles = np.maximum.reduce([launch.core(), *launch.all_cores()])
    overhead = overheads_us(product, launch.cores)
    return np.asarray(cycles / product.us_to_cycles(1.0) + overhead)


class _Launch:
    """The launch of the product: figures of every point as columns, in cycles and bytes."""

    def __init__(
        self, tensors: Tensors, product: Product, found: CubeOperands, products: Products, points: Columns
    ) -> None:
        self.product, self.points, self.products = product, points, len(products)
        self.machine = wire(product, True, False).machine
        self.cross = self.machine.cross_pipe_cycles
        self.tiles = self._tiles(tensors, found, slice_counts(products))
        self.plain, self.keep_a = points["keep"] == "none", points["keep"] == "a"
        self.strips = self._strips()
        self.cores = self.tiles.cores
        self.most = -(-self.tiles.count // self.cores)
        self.cut = MultipliedCycles(product, found.format, points, self.tiles)
        self.parts = self.cut.least
        self.rate = port_rate(self.machine, "gm_to_l1")
        self.loads = Loads(self.tiles, product, self.rate)
        self.copies = self._copies(found.size)
        self._ends()

    def _strips(self) -> Strips:
        """Those of points where an operand stays; they are what the cores take."""
        t = self.tiles
        wanted = self.points.get("cores", self.product.cube_cores)
        found = strips((t.m, t.n), (t.bm, t.bn), self.keep_a, t.split, wanted)
        self.tiles = t._replace(cores=np.where(self.plain, t.cores, np.minimum(t.cores, found.count)))
        return found

    def _copies(self, size: int) -> Array:
        """Tiles in L1 of what comes again and again: as many as a launch gets."""
        t, l1 = self.tiles, self.product.l1_bytes - self.product.integer("buffers.l1_reserved")
        stays, comes = np.where(self.keep_a, (t.bm, t.bn), (t.bn, t.bm))
        held, other = kept_bytes(stays, comes, -(-t.k // t.split), t.bk, size)
        beside = np.maximum(1, (l1 - held) // other)
        fit = np.maximum(1, l1 // ((t.bm + t.bn) * t.bk * size))
        # Each piece of the other operand has a place of its own; one that is alone as many as asked for.
        steps = pieces(-(-t.k // t.split), t.bk)
        places = np.where(steps > 1, steps, np.maximum(1, self.points["buffers"]))
        return np.where(self.plain, np.clip(self.points["buffers"], 1, fit), np.minimum(beside, places))

    def _tiles(self, tensors: Tensors, found: CubeOperands, slices: tuple[int, int]) -> Tiles:
        (m, k), n = tensors["a"].shape, tensors["b"].shape[-1]
        points, split = self.points, self.points["split_k"]
        bm, bn, bk = (points[f"block_{x}"] for x in "mnk")
        bytes_out = np.where(split > 1, 4, found.written)
        shape = (m, n, k, found.size, bm, bn, bk)
        tiles = Tiles(*shape, points["group"], split, self.machine.cores, bytes_out, *slices)
        wanted = np.minimum(points.get("cores", self.product.cube_cores), self.machine.cores)
        used = np.where(
            points["schedule"] == "per_tile", self.machine.cores, wanted
        )  # programs go to any core
        return tiles._replace(cores=np.minimum(used, tiles.count))

    def _ends(self) -> None:
        """What is before and after the loads and products that are counted."""
        late = "path.gm_to_l1_nd2nz.latency_cycles"
        found = late if self.product.has(late) else "path.gm_to_l1_nd2nz.fixed_cycles"
        p, x = self.parts, self.cross
        self.latency = self.product.number(found)
        self.store = self._stored(self.tiles.rows, self.tiles.columns)
        # both operands are there, the first part is in L0
        self.first = self.latency + x + p["first_a"] + p["first_b"]
        self.after = self.first + x + np.maximum(p["rest"] + p["last_mmad"], p["mmad"]) + x + self.store
        self.tail = self.first + x + p["last_mmad"] + x + self.store

    def core(self) -> Array:
        """Cycles of the core with most tiles (one program with all of them, or one for each), or with the longest loads."""
        alone = (self.points["schedule"] == "per_tile") & self.plain
        at_once = np.where(alone, 1, self.most)
        waves = -(-self.most // at_once)
        most = waves * self._program(at_once) + (waves - 1) * self.machine.dispatch_cycles
        after = np.where(self.tiles.iterations > 0, self.after, 0.0)
        held, again = self.loads.mean_in_strips(self.keep_a, self.strips)
        kept = self.strips.count * held + self.tiles.count * again
        longest = np.where(self.plain, self.tiles.count * self.loads.mean, kept) / self.cores + after
        begun = self._begun() + self.first + self.cross
        multiplied = begun + self.products * self.cut.all_mmads / self.cores + self.cross + self.store
        begun = held + np.where(self.keep_a, *self.loads.any_one[::-1]) + self.first + self.cross
        multiplied = np.maximum(multiplied, np.where(self.plain, 0.0, self._turns(begun)))
        return np.maximum.reduce([most, longest, np.where(self.tiles.iterations > 0, multiplied, 0.0)])

    def _turns(self, begun: Array) -> Array:
        """Cycles of strips, in which each tile begins when the one before is stored. begun: before the first product of one.

        A program of its own for each strip goes to any core, so that the average over all holds.
        """
        t, alone = self.tiles, self.points["schedule"] == "per_tile"
        low, narrow = t.m % t.bm > 0, t.n % t.bn > 0
        last = np.where(self.keep_a, (narrow, low), (low, narrow))
        every = []
        for one in tiles_of_longest(self.strips, t.split, self.cores, (last[0], last[1])):
            of_both = np.where(self.keep_a, one, one[[0, 2, 1, 3]])
            every.append(self.cut.turns(list(of_both), self._stored))
        mean, longest = every
        begins = np.where(alone, self.strips.count / self.cores, 1.0)
        return begins * begun + np.maximum(mean, np.where(alone, 0.0, longest))

    def _stored(self, rows: Array, columns: Array) -> Array:
        """Cycles of the store of a tile of so many rows and columns."""
        turned = np.where(columns > FRACTAL, rows, 0)
        return store_cycles(self.product, rows * columns * self.tiles.written, turned)

    def _begun(self) -> Array:
        """Least cycles of the loads before the first product: of all that stays, and of a tile of each other operand."""
        stays = np.where(self.keep_a, *self.loads.any_one)
        more = np.where(self.plain, 0, self.tiles.iterations - 1)
        return sum(self.loads.any_one) + np.maximum(0, more) * stays

    def _again(self) -> Array:
        """Least cycles of the loads of a tile, but for what stays."""
        one_a, one_b = self.loads.any_one
        return self.tiles.iterations * np.where(self.keep_a, one_b, one_a)

    def _program(self, tiles: Array) -> Array:
        """Cycles of a program of so many tiles: the longest of the chains."""
        p, x, steps = self.parts, self.cross, tiles * self.tiles.iterations
        large = 2 * self.points["block_m"] * self.points["block_n"] * 4 > self.product.l0c_bytes
        alone = large | ~self.plain  # a strip has one place for its sums
        mmads = self.products * self.cut.mmad
        turn = np.maximum(mmads, self.cut.turn(self.tiles.iterations, self.cut.whole, p))
        between = np.where(alone, turn + 2 * x + self.store, mmads)
        one_a, one_b = self.loads.any_one
        loads, again, begun = one_a + one_b, np.where(self.keep_a, one_b, one_a), self._begun()
        lap = np.where(self.plain, loads, again) + self.latency + x + p["reads"] + x
        each = np.where(self.plain, self.loads.any, self._again())
        held = np.where(self.plain, 0.0, self.tiles.iterations * (loads - again))
        chains = (
            tiles * each + held + self.after,
            begun + self.first + x + mmads + (tiles - 1) * between + x + self.store,
            begun + self.latency + x + tiles * self.cut.mte1 + x + p["last_mmad"] + x + self.store,
            np.maximum(steps - 1, 0) // self.copies * lap + loads + self.after,
        )
        return np.where(self.tiles.iterations > 0, np.maximum.reduce(chains), self.store)

    def all_cores(self) -> tuple[Array, ...]:
        """Cycles of all cores together: through L2, from HBM, and through ports that are all as busy."""
        t, product = self.tiles, self.product
        loaded = self.loads.moved(*self._loaded())
        stored = t.m * t.n * t.split * t.written
        touched_a, touched_b = _touched(t.bk * t.size, t.k * t.size), _touched(t.bn * t.size, t.n * t.size)
        once = (t.m * t.slices_a * touched_a + t.n * t.slices_b * touched_b) * t.k * t.size
        return (
            (loaded + stored) / product.l2_mixed_bytes_per_cycle,
            loaded / product.l2_bytes_per_cycle + self.tail,
            missed(once, product) / memory_rate(product) + self.tail,
            loaded / self.cores / self.rate + self.tail,
        )

    def _loaded(self) -> tuple[Array, Array]:
        """How often a tile of a, and of b, is loaded whole."""
        tiles, stays = self.tiles.count, self.strips.count
        return (
            np.where(self.keep_a & ~self.plain, stays, tiles),
            np.where(self.keep_a | self.plain, tiles, stays),
        )


def _others_us(tensors: Tensors, product: Product, mode: str, points: Columns) -> np.ndarray:
    """Casts before the product, or what cuts into slices and puts together, and the sum of the parts after it."""
    found = operands(tensors, product, mode)
    size, written = found.size, found.written
    elements, copies = tensors["a"].shape[0] * tensors["b"].shape[-1], points["buffers"]
    columns = min(SUM_COLUMNS, up(-(-elements // product.vector_cores), REPEAT))
    summing = _flat_us(product, elements, columns, points["split_k"] * 4, written, copies)
    casts = np.zeros(np.shape(copies))
    if mode in SPLITS:
        return np.where(points["split_k"] > 1, summing, 0.0) + around_us(tensors, product, mode)
    for n in ("a", "b"):
        x = tensors[n]
        if dtype_of(x).itemsize != size:
            block = min(CAST_BLOCK, up(x.size, FRACTAL))
            casts = casts + _flat_us(product, x.size, block, dtype_of(x).itemsize, size, copies)
    return np.where(points["split_k"] > 1, summing, 0.0) + casts


def _flat_us(
    product: Product, elements: int, block: int, read: Array, written: int, copies: Array
) -> np.ndarray:
    """Least time in us of a launch in which all Vector cores take blocks of so many elements in turn.

    read, written: bytes that come and go for an element. copies: of a block in UB.
    """
    m, chunks = VectorRates(product), -(-elements // block)
    cores, last = min(product.vector_cores, chunks), last_part(elements, block)
    most, none = -(-chunks // cores), np.zeros(np.shape(copies))
    work = VectorWork(
        iterations=most,
        loads=read * (block if most > 1 else last) + none,
        per_iteration=1,
        loaded=read * elements / cores + none,
        stored=written * elements / cores + none,
        repeats=none,
        smallest=last * written,
        copies=np.maximum(1, copies),
    )
    cycles = np.maximum(m.cycles(work), elements * (read + written) / product.l2_bytes_per_cycle)
    whole = elements * 4 % LINE == 0 and block * 4 % LINE == 0
    touched = 1.0 if whole else min(1.0, SHARED * block * 4 / LINE)
    return m.us(cycles, elements * read * touched, cores)


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
