"""How fast a kernel of the Vector cores can be at best: closed forms for tiles that are loaded, computed on and stored.

As in `matmul/bound.py` every term follows one chain of waits on the core with most work, or what all cores move through HBM;
the simulated time is never below (tested by brute force). All figures are the product's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...simulator.products import Product
from ...simulator.timing.costs.model import CostModel
from ...simulator.timing.engine.machine import launch_overhead_us, port_rate, start_cycles, wire
from ..operator.tensors import Tensors, dtype_of

LINE = 128  # bytes of a request to memory, by which first touches are counted
REPEAT = 64  # fp32 elements of one repeat
LONG = 5  # launches: what reads longer than so many take keeps all cores busy
Array = Any


@dataclass(frozen=True)
class VectorWork:
    """Work of the core with most of it, as columns of points.

    iterations: of the loop; loads: least bytes of a load; per_iteration: such loads in one; loaded, stored: bytes of all of
    them; repeats: cycles of the Vector unit for all of them; smallest: bytes of the last store; copies: of a loaded tile.
    """

    iterations: Array
    loads: Array
    per_iteration: int
    loaded: Array
    stored: Array
    repeats: Array
    smallest: Array
    copies: Array


class VectorRates:
    """Rates of one product's Vector cores, in cycles and bytes."""

    def __init__(self, product: Product) -> None:
        self.product, self.model = product, CostModel(product)
        machine = wire(product, False, True).machine
        self.reads, self.writes = port_rate(machine, "gm_to_ub"), port_rate(machine, "ub_to_gm")
        self.read_latency = product.number("path.gm_to_ub.fixed_cycles")
        self.write_latency = product.number("path.ub_to_gm.fixed_cycles")

    def repeat(self, *names: str) -> float:
        """Cycles of one fp32 repeat of an operation; of several names the fastest, where either may be chosen."""
        return min(self.model.row(n, "fp32")[0] for n in names)

    def chain(self, names: Iterable[str]) -> tuple[float, float]:
        """(cycles of a repeat of all, latencies of all but the last) of operations that each need the one before."""
        rows = [self.model.row(n, "any" if n.startswith("cast") else "fp32") for n in names]
        return sum(r for r, _ in rows), sum(fixed for _, fixed in rows[:-1])

    def casts(self, sizes: Iterable[int]) -> list[str]:
        """The cheapest cast between FP32 and a narrow type, once for each narrow size."""
        names = ("cast_f16_f32", "cast_f32_f16", "cast_bf16_f32", "cast_f32_bf16")
        return [min(names, key=lambda n: self.model.row(n, "any"))] * sum(s < 4 for s in sizes)

    def cycles(self, s: VectorWork) -> Array:
        """Least cycles of the core with most work."""
        first, last = self.read_latency + s.loads / self.reads, s.smallest / self.writes + self.write_latency
        lap = s.per_iteration * s.loads / self.reads + self.read_latency
        return np.maximum.reduce(
            [
                s.loaded / self.reads + self.read_latency + last,
                s.stored / self.writes + self.write_latency + first,
                first + s.repeats + last,
                np.maximum(s.iterations - 1, 0) // s.copies * lap + last,
            ]
        )

    def us(self, cycles: Array, moved: Array, cores: Array) -> np.ndarray:
        """Time of a launch of so many cores that reads so many bytes from memory and takes so long on one core."""
        shared = missed(moved, self.product) / memory_rate(self.product) + self.write_latency
        us = np.maximum(cycles, shared) / self.product.us_to_cycles(1.0) + self.launch_us(cores)
        return np.asarray(us)

    def launch_us(self, cores: Array) -> np.ndarray:
        return overheads_us(self.product, cores)


def overheads_us(product: Product, cores: Array) -> np.ndarray:
    """Least launch overheads in us, of launches on so many cores: those that start first are at work while others start."""
    return np.full(np.shape(cores), launch_overhead_us(product))


def last_part(length: Array, step: Array) -> np.ndarray:
    """The last of the parts of a length in steps: the shortest."""
    return np.asarray(np.where(length % step, length % step, step))


def core_counts(tensors: Tensors, product: Product, parts: tuple[int, ...] = (1, 2, 4)) -> tuple[int, ...]:
    """Numbers of cores to try: all, and parts of them where reading the inputs takes no longer than waking the cores.

    Fewer cores wake sooner; where a kernel runs long this is nothing beside what they lack in rate.
    """
    most = product.vector_cores
    size = sum(x.size * dtype_of(x).itemsize for x in tensors.values())
    reading = size / memory_rate(product) / product.us_to_cycles(1.0)
    starting = start_cycles(product) * (most - 1) / product.us_to_cycles(1.0)
    if reading > LONG * (launch_overhead_us(product) + starting):
        return (most,)
    return tuple(dict.fromkeys(max(1, most // d) for d in parts))


def memory_rate(product: Product) -> float:
    """Bytes per cycle that memory reaches at most; what is written stays in L2 and need not wait for it."""
    best = max(product.number(f"memory.{n}_efficiency") for n in ("read", "mixed"))
    return product.hbm_bytes_per_cycle * best


def missed(moved: Array, product: Product) -> np.ndarray:
    """Least bytes that memory gives of so many different ones that are read: L2 may be full of them when a launch starts."""
    return np.maximum(0.0, np.asarray(moved) - product.number("l2.size"))


def touched(run: Array) -> Array:
    """Least part of a tensor's bytes that is charged to HBM, read in runs of so many bytes.

    A load is charged by the part of its 128-byte lines that nobody touched before: all of it where runs are whole lines,
    else up to two lines of a run may count for a neighbour, of short runs all but one in two.
    """
    lines = run // LINE
    ragged = np.where(lines >= 4, 1.0 - 2.0 / np.maximum(lines, 1), run / (LINE * (lines + 2)) / 2)
    return np.where(run % LINE == 0, 1.0, np.minimum(1.0, ragged))


def outputs_us(op_outputs: Mapping[str, Any], tensors: Tensors, product: Product) -> float:
    """For any operator: its outputs have to be written, by one launch at least; more cores write faster and start later."""
    size = sum(int(np.prod(x.shape, dtype=np.int64)) * dtype_of(x).itemsize for x in op_outputs.values())
    if not size:
        return 0.0
    rate = max(c.port_bytes_per_cycle for c in wire(product, False, True).machine.channels)
    most = max(product.vector_cores, product.cube_cores)
    per_us = product.us_to_cycles(1.0)
    cores = np.arange(1, most + 1)
    launch = overheads_us(product, cores)
    writing = np.maximum(size / product.l2_mixed_bytes_per_cycle, size / (cores * rate)) / per_us
    return float((launch + writing).min())


def reading_us(m: VectorRates, size: int, run: Array, vector: Array, cores: Array) -> np.ndarray:
    """Least time in us of an operator that reads so many bytes once, in runs of `run` bytes, on at most `cores` cores.

    vector: cycles for which the core with most work keeps its Vector unit busy. One launch, on as few cores as it may be.
    """
    loading = size / (np.asarray(cores) * m.reads) + m.read_latency
    cycles = np.maximum(loading, np.asarray(vector)) + m.write_latency
    return m.us(cycles, size * touched(run), 1)
