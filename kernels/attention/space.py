"""Tilings of attention and its gradients: what is chosen, what to try, what fits, and how fast each can be at best.

A launch goes through blocks of one side (rows) and for each of them through blocks of the other (steps). What a step takes
at least is the longest of its pipes: the products of the Cube, the results that FIXP hands over, the Vector unit's passes
over the scores, the loads of what the loop goes through. The core with most steps has at least as many as the mean of all,
and all of those of a whole block. The simulated time is never below (tested).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...simulator.products import Product
from ...simulator.timing.costs.cube import CubeCosts
from ...simulator.timing.engine.machine import port_rate, wire
from ..bounds.vector import REPEAT, VectorRates, overheads_us
from ..matmul.bound import l0_tiles, mmad_cycles, store_cycles
from ..operator.layout import up
from ..operator.plan import PlanContext, cores_of
from ..operator.tensors import Columns, Knobs, Options, Tensors, dtype_of, element_type
from .heads import Heads, heads_of, resolve

FRACTAL = 16
BLOCKS = (128, 64, 32, 16)  # of queries and of keys, for the choice
EDGES = (16, 32, 64, 128, 256, 512)  # the same to try
STEP = 2000  # elements of results that each product of a step costs beside its own, for the choice
SHORT = {
    False: 8,
    True: 6,
}  # causal -> steps over keys up to which to mask all is faster than a loop for the last ones
Sides = tuple[int, int]  # a block's rows, and those of a step


@dataclass(frozen=True)
class AttentionLaunch:
    """One launch. over_keys: its blocks are of keys, its steps of queries.

    scores: products whose results are as large as the scores, each of which the Vector unit reads; sums: products that are
    added up over the steps; handed: those of them that leave L0C in each step. passes: of the Vector unit over the scores.
    """

    over_keys: bool
    scores: int
    sums: int
    handed: int
    passes: tuple[str, ...]

    def sides(self, bm: int, bn: int) -> Sides:
        return (bn, bm) if self.over_keys else (bm, bn)

    def blocks(self, heads: Heads, sides: Sides) -> int:
        """Of all heads."""
        if self.over_keys:
            return heads.total // heads.group * -(-heads.n // sides[0])
        return heads.total * -(-heads.m // sides[0])

    def steps(self, heads: Heads, sides: Sides, causal: bool) -> tuple[int, int]:
        """(of a whole block, of all blocks together), at least."""
        rows, step = sides
        if self.over_keys:
            whole = heads.group * -(-heads.m // step)
            first = np.arange(0, heads.n, rows)
            begun = np.maximum(0, -(-heads.m // step) - first // step) if causal else -(-heads.m // step)
            each = heads.group * (begun + 0 * first)
            return whole, heads.total // heads.group * int(each.sum())
        whole = -(-heads.n // step)
        ends = np.minimum(np.arange(0, heads.m, rows) + rows, heads.n) if causal else heads.n
        each = -(-ends // step) + 0 * np.arange(0, heads.m, rows)
        return whole, heads.total * int(each.sum())


def explored(tensors: Tensors, product: Product) -> dict[str, tuple[Any, ...]]:
    """Axes: queries and keys of a tile, copies of what is loaded."""
    heads = heads_of(tensors)
    return {"block_m": _edges(heads.m), "block_n": _edges(heads.n), "buffers": (1, 2)}


def _edges(length: int) -> tuple[int, ...]:
    return tuple(e for e in EDGES if e < 2 * length) or (FRACTAL,)


def l0c_bytes(launch: AttentionLaunch, sides: Sides, d: int) -> int:
    """Of sums that stay there, and of the larger of a step's results."""
    step, d = up(sides[1], FRACTAL), up(d, FRACTAL)
    kept = (launch.sums - launch.handed) * d
    return 4 * up(sides[0], FRACTAL) * (kept + max(step, d * launch.handed))


def l1_bytes(launch: AttentionLaunch, sides: Sides, d: int, size: int) -> int:
    """Operands of a block, one copy of those of a step, and what comes back from the Vector unit, at least."""
    rows, step = (up(x, FRACTAL) for x in sides)
    return size * (up(d, FRACTAL) * (rows * launch.scores + 2 * step) + rows * step)


def ub_bytes(launch: AttentionLaunch, sides: Sides, d: int, size: int) -> int:
    """Of a block's Vector rows, at most while there is one copy of each: scores, as cast, sums and what is added to them."""
    rows, step = sides
    return rows * (step * (4 * launch.scores + size * launch.sums) + 4 * (launch.sums + 1) * d)


def choose(launches: Launches, tensors: Tensors, knobs: Knobs, context: PlanContext) -> dict[str, Any]:
    """Blocks that fit with the least count of elements that all steps of the busiest core hand over."""
    heads, product = heads_of(tensors), context.product
    size, cores = dtype_of(tensors["q"]).itemsize, cores_of(product, "cube", knobs["cores"])
    found = list(_blocks(heads, knobs))

    def cost(block: Sides) -> float:
        return sum(_elements(x, heads, x.sides(*block), cores) for x in launches.every)

    def holds(block: Sides) -> bool:
        shared = context.ub_bytes * product.aiv_per_aic
        return all(
            l0c_bytes(x, x.sides(*block), heads.d) <= context.l0c_bytes
            and l1_bytes(x, x.sides(*block), heads.d, size) <= product.l1_bytes
            and ub_bytes(x, x.sides(*block), heads.d, size) <= shared
            for x in launches.every
        )

    block = min(filter(holds, found), key=cost, default=found[-1])
    return {**knobs, "block_m": block[0], "block_n": block[1], "cores": cores}


def one_loop(heads: Heads, tiling: Knobs, causal: bool) -> bool:
    """Whether a launch over keys masks all of them, for keys that are missing or not seen, in one loop."""
    steps, missing = divmod(heads.n, int(tiling["block_n"]))
    return (causal or missing > 0) and steps + (missing > 0) <= SHORT[causal]


def _blocks(heads: Heads, knobs: Knobs) -> Iterator[Sides]:
    for bm in _sizes(heads.m, knobs["block_m"]):
        for bn in _sizes(heads.n, knobs["block_n"]):
            yield bm, bn


def _sizes(length: int, wanted: int | None) -> list[int]:
    found = [min(e, up(length, FRACTAL)) for e in BLOCKS]
    return [wanted] if wanted else sorted(set(found), reverse=True)


def _elements(launch: AttentionLaunch, heads: Heads, sides: Sides, cores: int) -> float:
    rounds = -(-launch.blocks(heads, sides) // cores)
    each = sides[0] * (launch.scores * sides[1] + launch.handed * heads.d)
    each += STEP * (launch.scores + launch.sums)
    return float(rounds * launch.steps(heads, sides, False)[0] * each)


@dataclass(frozen=True)
class Launches:
    """All launches of an operator; what it declares of the space of its tilings."""

    every: tuple[AttentionLaunch, ...]

    def fits(
        self, tensors: Tensors, product: Product, mode: str, points: Columns
    ) -> Mapping[str, np.ndarray]:
        """Rule -> which points keep it. Which tiles fit in UB is known only when they are placed."""
        heads, size = heads_of(tensors), element_type(resolve(tensors, product, mode).compute).itemsize
        l1 = product.l1_bytes - product.integer("buffers.l1_reserved")

        def keep(rule: Callable[[AttentionLaunch, Sides], bool]) -> np.ndarray:
            blocks = zip(points["block_m"], points["block_n"], strict=True)
            return np.array(
                [all(rule(x, x.sides(int(m), int(n))) for x in self.every) for m, n in blocks], bool
            )

        return {
            "the results of a step fit in L0C": keep(
                lambda x, s: l0c_bytes(x, s, heads.d) <= product.l0c_bytes
            ),
            "the operands of a step fit in L1": keep(lambda x, s: l1_bytes(x, s, heads.d, size) <= l1),
        }

    def bound_us(
        self, tensors: Tensors, product: Product, mode: str, points: Columns, options: Options
    ) -> np.ndarray:
        """Least time of each point, all launches together."""
        bound, cores = AttentionBound(tensors, product, mode, bool(options["causal"])), points.get("cores")
        used = np.full(len(points["block_m"]), product.cube_cores) if cores is None else cores
        columns = (points["block_m"], points["block_n"], used)
        rows = zip(*(x.tolist() for x in columns), strict=True)
        return np.array([sum(bound.us(x, x.sides(m, n), p) for x in self.every) for m, n, p in rows])


class AttentionBound:
    """Least times of a launch on a product."""

    def __init__(self, tensors: Tensors, product: Product, mode: str, causal: bool) -> None:
        self.heads, self.causal, self.product = heads_of(tensors), causal, product
        found = resolve(tensors, product, mode)
        self.operand, self.size = found.operand, element_type(found.compute).itemsize
        self.cube, self.vector = CubeCosts(product), VectorRates(product)
        self.rate = port_rate(wire(product, True, False).machine, "gm_to_l1")

    def us(self, launch: AttentionLaunch, sides: Sides, cores: int) -> float:
        """Of one launch with so many cores at most."""
        blocks = launch.blocks(self.heads, sides)
        used = min(cores, blocks)
        whole, total = launch.steps(self.heads, sides, self.causal)
        most = total / used if self.causal else max(total / used, whole * (-(-blocks // used)))
        overhead = overheads_us(self.product, np.array([used]))[0]
        return float(most * self.step(launch, sides) / self.product.us_to_cycles(1.0) + overhead)

    def step(self, launch: AttentionLaunch, sides: Sides) -> float:
        """Cycles of a step's longest pipe, all of it whole blocks but the last, which counts by its length elsewhere."""
        rows, length = sides
        d = self.heads.d
        mmad = sum(
            sum(mmad_cycles(self.cube, l0_tiles(self.cube, block, self.operand, (0, 0, 0)), self.operand))
            * count
            for block, count in (((rows, length, d), launch.scores), ((rows, d, length), launch.sums))
        )
        handed = rows * (launch.scores * length + launch.handed * d) * 4
        fixed = store_cycles(self.product, 0) * (launch.scores + launch.handed)
        store = store_cycles(self.product, handed) - store_cycles(self.product, 0) + fixed
        passes = sum(self.vector.repeat(x) for x in launch.passes) * rows * length / REPEAT
        loads = 2 * length * d * self.size / self.rate
        return float(max(mmad, store, passes / self.product.aiv_per_aic, loads))


FORWARD_WORK = Launches((AttentionLaunch(False, 1, 1, 1, ("muls", "sub", "exp")),))
GRADIENT_WORK = Launches(
    (
        AttentionLaunch(False, 2, 1, 0, ("muls", "sub", "exp", "sub", "mul")),
        AttentionLaunch(True, 2, 2, 0, ("muls", "sub", "exp", "sub", "mul")),
    )
)
