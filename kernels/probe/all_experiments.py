"""The whole list, in the order in which a board runs it."""

from __future__ import annotations

from functools import lru_cache

from . import cube_experiments as cube
from . import range_experiments as ranges
from . import vector_experiments as vector
from .experiment import Experiment

FUNCTIONS = ("exponential", "logarithm", "root", "divide")
STORES = ("fp16", "bf16")  # types that products in FP32 are stored as
NARROW = 11  # significand bits of an FP16 accumulator


@lru_cache(maxsize=1)
def all_experiments() -> dict[str, Experiment]:
    """By name; the same ones, bit by bit, each time."""
    return {e.name: e for e in (*_of_cube(), *_of_vector())}


def _of_cube() -> list[Experiment]:
    steps = [cube.steps_of(f, backward) for f in cube.FORMATS for backward in (False, True)]
    steps += [cube.steps_of("fp16", backward, NARROW) for backward in (False, True)]
    sums = [*(cube.sums_of(f) for f in cube.FORMATS), cube.sums_of("fp16", NARROW)]
    ends = [ranges.ends_of(f) for f in ranges.stored_formats()]
    return [*steps, *sums, ranges.operands_hf32(), *ends, *(ranges.stored_as(t) for t in STORES)]


def _of_vector() -> list[Experiment]:
    return [
        vector.cast_fp16(),
        vector.cast_fp16(toward_zero=True),
        vector.cast_bf16(),
        vector.cast_int32(),
        vector.add_ends("fp32"),
        vector.add_ends("fp16"),
        vector.fused_fp32(),
        *(vector.sums_fp32(n) for n in vector.SUM_LENGTHS),
        vector.atomic_fp32(),
        vector.coarse("coarse_reciprocal"),
        vector.coarse("coarse_rsqrt"),
        *(vector.measured(f) for f in FUNCTIONS),
        vector.whole_quotients(),
    ]
