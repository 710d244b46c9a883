"""How far the figures behind a record can be trusted: the worst grade among those that its cycles come from.

A record is charged to its source line and its grade together, so that a launch can say which share of its time rests on
documents (A), on measurements (B), on third parties (C) and on assumptions (D).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from ...products import Product
from .transfers import FRACTALS

GRADES = "ABCD"
BEST, WORST = 0, len(GRADES) - 1
DISPATCH = "launch.dispatch_cycles_per_program"
OVERHEAD = ("launch.single_core_overhead_us", "launch.all_cores_overhead_us")
READING = ("l2.bandwidth_tb_per_s", "memory.bandwidth_tb_per_s", "memory.read_efficiency")
CROSS_CORE_SYNC = "sync.cross_core_model_cycles"
COMPILED_HAND_OVER = "sync.compiled_hand_over_cycles"
MTE1 = (
    "path.l1_to_l0a.bytes_per_cycle",
    "path.l1_to_l0b.bytes_per_cycle",
    "path.l1_to_l0a.load3d_fixed_cycles",
    "path.l1_to_l0b.load3d_fixed_cycles",
)
MMAD = ("cube.startup_cycles", "cube.k_per_cycle.fp16")
SCALAR = ("scalar.simple_op_cycles",)


def grade_of(product: Product, keys: Iterable[str]) -> int:
    """The worst grade among those of `keys` that the product has: 0 (A) to 3 (D)."""
    found = [GRADES.index(product.figure(k).grade) for k in keys if product.has(k)]
    return max(found, default=BEST)


def pipe_grades(product: Product, pipes: Iterable[str]) -> tuple[int, ...]:
    """By name of a pipe, the grade of what every record there costs; the Vector unit's depends on the operation."""
    return tuple(_pipe_grade(product, name) for name in pipes)


@lru_cache(maxsize=256)
def _pipe_grade(product: Product, name: str) -> int:
    return grade_of(product, {"S": SCALAR, "MTE1": MTE1, "M": MMAD}.get(name, ()))


@lru_cache(maxsize=64)
def channel_grades(product: Product) -> dict[int, int]:
    """By channel of `machine._channels`, the grade of its port rate, its fixed cycles and what it shares.

    Through L2, past it and out of it, a path has one grade: the worst.
    """
    to_ub, to_l1, ub_out, l0c_out = "gm_to_ub", "gm_to_l1_nd2nz", "ub_to_gm", "l0c_to_gm"
    paths = (to_ub, to_ub, ub_out, to_l1, to_l1, l0c_out, ub_out, l0c_out)
    grades = {n: grade_of(product, (*READING, *_figures_of(product, path))) for n, path in enumerate(paths)}
    as_it_lies = (*READING, "path.gm_to_l1.memory_bytes_per_cycle", *_figures_of(product, to_l1)[1:])
    return grades | {FRACTALS: grade_of(product, as_it_lies)}


def _figures_of(product: Product, path: str) -> tuple[str, ...]:
    late = f"path.{path}.latency_cycles"
    fixed = late if product.has(late) else f"path.{path}.fixed_cycles"
    return (f"path.{path}.bytes_per_cycle", f"path.{path}.l2_hit_bytes_per_cycle", fixed)
