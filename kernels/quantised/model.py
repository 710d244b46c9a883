"""What the launches of a tiling move and multiply, as columns over many tilings: least times, and rough ones for the choice.

A launch cannot take less than any one of its units needs for its share of all cores' work: the Cube for its products, a port
for the bytes that pass it, L2 and memory for those of all cores (`bound_us`; the simulated time is never below, tested
by brute force). What the choice goes by (`rough_us`) charges the core with most tiles, adds part of what the slowest
unit hides of the others, and the first transfers of a launch, which nothing hides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...simulator.products import Product
from ...simulator.timing.costs.cube import CubeCosts
from ...simulator.timing.costs.model import CostModel
from ...simulator.timing.engine.machine import port_rate, wire
from ..bounds.vector import memory_rate, missed, overheads_us
from ..operator.layout import up
from ..operator.tensors import Columns
from .form import FLOAT, INT4, Form, Lengths

Array = Any
BLOCK = 32  # bytes of UB: a row that ends within one costs more
FRACTAL, NARROWEST = 16, 32  # rows of the Cube's smallest block, and its depth in int8
BAND = 4  # rows of tiles that are worked off before the next, where no knob says
NOT_HIDDEN = 0.25  # part of the other units' time that the slowest one does not hide, for the choice only
START_CYCLES = 2000.0  # of a launch before its first instruction and after its last, likewise
STEP_CYCLES = 120.0  # of an iteration of the sum that wait for flags and starts of transfers, likewise


class UnitCycles(NamedTuple):
    """Cycles of each unit on average over the cores, and of all together; the same for the core with most tiles."""

    units: list[Array]
    shared: list[Array]
    slowed: list[
        Array
    ]  # cycles of ports with all that slows them, and of the way into L0; for the choice only
    uneven: Array  # how much more the core with most tiles has than the average one
    waits: Array  # cycles of the core with most tiles that nothing hides, roughly
    cores: Array


class QuantisedWork:
    """The launches of all points. written: bytes of an element of the result; size: of x."""

    def __init__(self, product: Product, form: Form, n: Lengths, written: int, points: Columns) -> None:
        self.product, self.form, self.n, self.points = product, form, n, points
        self.written = written
        self.machine = wire(product, True, True).machine
        self.cube, self.vector = CubeCosts(product), CostModel(product)
        self.bm, self.bn = (np.asarray(points[f"block_{x}"]) for x in "mn")
        self.bk = np.minimum(points["block_k"], up(n.k, NARROWEST))
        self.split = self._parts()
        scaling = np.asarray(points.get("scaling", "fused"))
        self.apart, self.fixpipe = scaling == "apart", scaling == "fixpipe"
        self.fused = (not form.x8) & (form.weight != FLOAT) & ~self.apart
        self.down, self.across = sum(-(-c // self.bm) for c in n.rows), -(-n.n // self.bn)
        self.items = self.down * self.across * self.split
        wanted = np.minimum(points.get("cores", product.cube_cores), product.cube_cores)
        self.cores = np.minimum(wanted, self.items)

    def _parts(self) -> Array:
        """Parts that a sum really is in: of whole steps, or whole groups (`launches.parts_of`)."""
        k, form = self.n.k, self.form
        step = form.group if form.x8 and form.group else self.bk
        wanted = self.points.get("split_k", np.ones_like(self.bm))
        steps = -(-(k // wanted + (k % wanted > 0)) // step)
        return -(-k // (steps * step))

    @property
    def size(self) -> int:
        """Bytes of an element of x, and of a weight that the Cube reads."""
        return 1 if self.form.x8 else 2

    @property
    def stored(self) -> float:
        """Bytes of a weight in memory."""
        return {INT4: 0.5, FLOAT: 2.0}.get(self.form.weight, 1.0)

    @property
    def pairs(self) -> float:
        """Vector cores beside a Cube core."""
        return self.product.vector_cores / self.product.cube_cores

    def bound_us(self) -> np.ndarray:
        """Least time of each point, all its launches."""
        return self._summed(lambda x: self._columns(x.units + x.shared).max(axis=0))

    def rough_us(self) -> np.ndarray:
        """What the choice of a tiling goes by."""
        return self._summed(self._rough)

    def _rough(self, x: UnitCycles) -> Array:
        of_core = self._columns(x.units + x.slowed) * x.uneven
        most = np.maximum(of_core.max(axis=0), self._columns(x.shared).max(axis=0))
        return most + NOT_HIDDEN * (of_core.sum(axis=0) - of_core.max(axis=0)) + x.waits

    def _summed(self, cycles: Callable[[UnitCycles], Array]) -> np.ndarray:
        """Over the launches that each point has, with what starting them takes."""
        out = np.zeros(self.bm.shape)
        for launch, used in self._launches():
            us = cycles(launch) / self.product.us_to_cycles(1.0) + overheads_us(self.product, launch.cores)
            out = out + np.where(used, us, 0.0)
        return out

    def _columns(self, figures: list[Array]) -> np.ndarray:
        return np.stack([np.broadcast_to(x, self.bm.shape) for x in figures])

    def _launches(self) -> list[tuple[UnitCycles, Array]]:
        """Each launch, and which points have it."""
        before = self.apart & (not self.form.x8)
        after = (self.split > 1) | (self.apart & self.form.x8)
        return [(self._product(), True), (self._unpack(), before), (self._finish(), after)]

    def _product(self) -> UnitCycles:
        form, n, size = self.form, self.n, self.size
        into_l1 = self.across * n.m * n.k * size + self.down * n.k * n.n * size
        k0 = self.cube.k_block("int8" if form.x8 else "fp16")[0]
        fractals = sum(-(-c // FRACTAL) for c in n.rows) * -(-n.n // FRACTAL) * -(-n.k // k0)
        partial = (self.split > 1) | (self.apart & form.x8)
        out = n.m * n.n * self.split * np.where(partial, 4, self.written)
        vectors, passed = self._beside(partial)
        units = [fractals / self.cores, into_l1 / self.cores / self._rate("gm_to_l1"), *vectors]
        shared = self._shared(into_l1 + out + passed, self._new(self.apart))
        steps = -(-self.items // self.cores) * -(-n.k // self.split // self.bk)
        waits = steps * STEP_CYCLES + START_CYCLES + self.bm * self.bn * 4 / self._rate("gm_to_l1")
        return UnitCycles(units, shared, self._slowed(), self._uneven(), waits, self.cores)

    def _beside(self, partial: Array) -> tuple[list[Array], Array]:
        """Cycles of the Vector cores' units beside the product, and bytes that pass between them and the Cube, both ways.

        Weights that they make floating point, or sums that come to them; partial: those of which a later launch does.
        """
        n, form, cores = self.n, self.form, self.cores * self.pairs
        weights = np.where(self.fused, self.down * n.k * n.n, 0.0)
        groups = n.k // form.group if form.group else 1
        sums = np.where(form.x8 & ~self.fixpipe & ~partial, n.m * n.n * groups * 4, 0.0)
        units = [
            weights * self.stored / cores / self._rate("gm_to_ub"),
            weights * 2 / cores / self._rate("ub_to_gm"),
            np.where(self.fused, self._unpacking(self.down), 0.0) / cores,
            sums / cores / self._rate("gm_to_ub"),
            np.where(sums > 0, self._scaling(groups), 0.0) / cores,
        ]
        return units, weights * (self.stored + 2) + 2 * sums

    def _slowed(self) -> list[Array]:
        """Loads into L1 as what slows them has it, into L0, and of packed weights into UB."""
        n, tiles = self.n, self.down * self.across
        steps = np.where(self.bk < n.k, -(-n.k // self.bk), 0)
        of_x = self.across * n.m * steps
        transposed = np.minimum(self.bn, n.n) * steps
        of_w = tiles * (transposed if self.form.transposed else np.where(self.bn < n.n, n.k, 0))
        band = np.minimum(-(-self.down // len(n.rows)), self.points.get("band", BAND))
        bytes_x, bytes_w = self.across * n.m * n.k * self.size, self.down * n.k * n.n * self.size
        loads = self._loads(bytes_x, of_x, np.minimum(self.cores, tiles) / band)
        loads = loads + self._loads(bytes_w, np.where(self.fused, 0, of_w), band)
        into_l0 = bytes_x / self.cube.to_l0a.rate + bytes_w / self.cube.to_l0b.rate
        wide = (self.bk if self.form.transposed else self.bn) * self.stored
        row = np.where(wide % BLOCK, self._row("gm_to_ub", "partial_row"), self._row("gm_to_ub"))
        into_ub = np.where(self.fused, of_w, 0) / self.pairs * row
        return [loads / self.cores, into_l0 / self.cores, into_ub / self.cores]

    def _loads(self, moved: Array, rows: Array, readers: Array) -> Array:
        """Cycles of all cores: by the port, by rows, or by the part of L2 that serves one reader after the other."""
        served = readers * moved / self.product.number("l2.same_address_bytes_per_cycle")
        return np.maximum.reduce(
            np.broadcast_arrays(moved / self._rate("gm_to_l1"), rows * self._row("gm_to_l1_nd2nz"), served)
        )

    def _row(self, path: str, kind: str = "row") -> float:
        name = f"path.{path}.{kind}_cycles"
        return self.product.number(name) if self.product.has(name) else 0.0

    def _uneven(self) -> Array:
        """The core with most tiles has so many times the average, edges counted as far as they are there."""
        most = -(-self.items // self.cores)
        if self.n.counts:
            return most * self.cores / self.items
        full = np.minimum(self.bm, self.n.m) * np.minimum(self.bn, self.n.n) * self.split
        return np.maximum(1.0, most * self.cores * full / (self.n.m * self.n.n * self.split * self.split))

    def _unpack(self) -> UnitCycles:
        n = self.n
        read, written = n.k * n.n * self.stored, n.k * n.n * 2
        return self._on_vectors(read, written, self._unpacking(1), self._new(False))

    def _finish(self) -> UnitCycles:
        n = self.n
        read, written = n.m * n.n * 4 * self.split, n.m * n.n * self.written
        return self._on_vectors(read, written, self._scaling(1), 0.0)

    def _on_vectors(self, read: Array, written: Array, computed: Array, new: Array) -> UnitCycles:
        """A launch of all Vector cores that reads, computes and writes. new: bytes that memory has to give."""
        cores = self.product.vector_cores
        units = [
            read / cores / self._rate("gm_to_ub"),
            written / cores / self._rate("ub_to_gm"),
            computed / cores,
        ]
        return UnitCycles(units, self._shared(read + written, new), [], 1.0, START_CYCLES, cores)

    def _rate(self, path: str) -> float:
        return float(port_rate(self.machine, path))

    def _new(self, unpacked: Array) -> Array:
        """Bytes that memory has to give at least: weights and x once, of unpacked weights none (L2 may hold them)."""
        n = self.n
        weights = len(n.rows) * n.k * n.n * self.stored
        return n.m * n.k * self.size + np.where(unpacked & (not self.form.x8), 0.0, weights)

    def _shared(self, moved: Array, new: Array) -> list[Array]:
        memory = missed(new, self.product) / memory_rate(self.product)
        return [moved / self.product.l2_mixed_bytes_per_cycle, memory]

    def _unpacking(self, times: Array) -> Array:
        """Vector cycles to make all weights floating point, so many times: a cast, and a product with scales at least."""
        cast, product = self.vector.row("cast_s8_f16", "any")[0], self.vector.row("mul", "fp16")[0]
        return times * self.n.k * self.n.n / self._lanes(16) * (cast + product)

    def _scaling(self, groups: int) -> Array:
        """Vector cycles from sums to results: a cast and a product, and a sum for each group."""
        cast, product = self.vector.row("cast_s32_f32", "any")[0], self.vector.row("mul", "fp32")[0]
        return self.n.m * self.n.n / self._lanes(32) * (cast + product) * groups

    def _lanes(self, bits: int) -> float:
        return self.product.integer("vector.bytes_per_repeat") * 8 / bits
