"""What to try for a matrix product: axes of its tilings, and rules of which ones can be and differ from each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...simulator.products import Product
from ..operator.tensors import Columns, Knobs, Tensors
from .bound import operands

FRACTAL = 16
EDGES = (16, 32, 48, 64, 96, 128, 192, 256)
DEPTHS = (32, 64, 128, 256, 512)
SHORTEST_PART = 512  # of a sum that is split


def explored(tensors: Tensors, product: Product) -> dict[str, tuple[Any, ...]]:
    """Axes of the space: edges of the tile from 16 up, depth, order of tiles, split sums, copies in L1, who takes tiles."""
    (m, k), n = tensors["a"].shape, tensors["b"].shape[-1]
    return {
        "block_m": _edges(m),
        "block_n": _edges(n),
        "block_k": tuple(e for e in DEPTHS if e < 2 * k) or (FRACTAL,),
        "group": (1, 2, 4, 8),
        "split_k": tuple(s for s in (1, 2, 4, 8) if s == 1 or k // s >= SHORTEST_PART),
        "buffers": (1, 2),
        "schedule": ("persistent", "per_tile"),
    }


def _edges(length: int) -> tuple[int, ...]:
    return tuple(e for e in EDGES if e < length + FRACTAL) or (FRACTAL,)


def fits(tensors: Tensors, product: Product, mode: str, points: Columns, axes: Knobs) -> Columns:
    """Rule -> which points keep it: buffers that hold the tiles, and no second name for the same schedule.

    Of copies that are asked for a launch gets as many as fit: more is a second name, too.
    """
    size = operands(tensors, product, mode)[1]
    length, across = tensors["a"].shape[0], tensors["b"].shape[-1]
    m, n, k = (points[f"block_{x}"] for x in "mnk")
    l1 = product.l1_bytes - product.integer("buffers.l1_reserved")
    down = -(-length // m)
    tiles = down * -(-across // n) * points["split_k"]
    cores = points.get("cores", product.cube_cores)
    # The same order if that takes all rows of tiles already.
    fewer = _next_below(axes["group"], points["group"])
    copies = np.maximum(1, l1 // ((m + n) * k * size))
    named = _next_below(axes["buffers"], points["buffers"])
    return {
        "the accumulator fits in L0C": m * n * 4 <= product.l0c_bytes,
        "both operand tiles fit in L1": (m + n) * k * size <= l1,
        "more copies than L1 holds are the same as fewer": (named < copies) | (named < 1),
        "a group larger than the rows of tiles is the same as one of all": (fewer < down) | (fewer < 1),
        "per_tile is the same as persistent where every core has one tile": (
            points["schedule"] == "persistent"
        )
        | (tiles > cores)
        | ("persistent" not in axes["schedule"]),
    }


def _next_below(values: tuple[int, ...], of: np.ndarray) -> np.ndarray:
    """The largest of an axis' values below each of some; 0 where there is none."""
    known = np.array([0, *sorted(values)])
    return np.asarray(known[np.searchsorted(known, of) - 1])
