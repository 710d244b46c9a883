"""What to try for a matrix product: axes of its tilings, and rules of which ones can be and differ from each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...simulator.errors import UsageError
from ...simulator.products import Product
from ..operator.tensors import Columns, Knobs, Tensors, dtype_of
from .operands import CubeOperands, operands
from .scaled import is_scaled
from .strips import MOST_PIECES, kept_bytes, pieces, strips

FRACTAL = 16
EDGES = (16, 32, 48, 64, 96, 128, 192, 256)
DEPTHS = (32, 64, 128, 256, 512)
SHORTEST_PART = 512  # of a sum that is split
STREAMED = 2  # copies of what comes again and again, for which there has to be room beside what stays


def explored(tensors: Tensors, product: Product) -> dict[str, tuple[Any, ...]]:
    """Axes of the space: edges of the tile from 16 up, depth, what stays in L1, order of tiles, split sums, copies in L1,
    who takes tiles."""
    if is_scaled(tensors):
        raise UsageError("matmul: tilings are not searched for operands in blocks; give knobs to a run of it")
    (m, k), n = tensors["a"].shape, tensors["b"].shape[-1]
    shortest = -(-k // max(1, min(8, k // SHORTEST_PART)))
    stays = FRACTAL * shortest * dtype_of(tensors["a"]).itemsize <= product.l1_bytes
    return {
        "block_m": _edges(m),
        "block_n": _edges(n),
        "block_k": tuple(e for e in DEPTHS if e < 2 * k) or (FRACTAL,),
        "keep": ("none", "a", "b") if stays else ("none",),
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
    found = operands(tensors, product, mode)
    (length, k), across = tensors["a"].shape, tensors["b"].shape[-1]
    m, n, depth = (points[f"block_{x}"] for x in "mnk")
    cores, keep_a, plain = (
        points.get("cores", product.cube_cores),
        points["keep"] == "a",
        points["keep"] == "none",
    )
    down = -(-length // m)
    cut = strips((length, across), (m, n), keep_a, points["split_k"], cores)
    items = np.where(plain, down * -(-across // n) * points["split_k"], cut.count)
    held, again = _in_l1(points, found, k)
    l1 = product.l1_bytes - product.integer("buffers.l1_reserved")
    # The same order if that takes all rows of tiles already.
    fewer = _next_below(axes["group"], points["group"])
    copies = np.maximum(1, (l1 - held) // again)
    named = _next_below(axes["buffers"], points["buffers"])
    persistent = (points["schedule"] == "persistent") | ("persistent" not in axes["schedule"])
    stays = held + np.minimum(points["buffers"], STREAMED) * again <= l1
    few = pieces(-(-k // points["split_k"]), depth) <= MOST_PIECES
    one_slice, one_sum = found.most_slices == (1, 1), len(found.groups) == 1
    return {
        "slices of an operand do not stay in L1": plain | one_slice,
        "sums of slices that are launches of their own are whole": (points["split_k"] == 1) | one_sum,
        "the accumulator fits in L0C": m * n * 4 <= product.l0c_bytes,
        "both operand tiles fit in L1": held + again <= l1,
        "what stays fits in L1 beside the copies of the other operand": plain | stays,
        f"what stays is at most {MOST_PIECES} pieces": plain | few,
        "what stays does so for two tiles at least": plain | (cut.wide > 1),
        "more copies than L1 holds are the same as fewer": (named < copies) | (named < 1),
        "a group larger than the rows of tiles is the same as one of all": (fewer < np.where(plain, down, 1))
        | (fewer < 1),
        "per_tile is the same as persistent where every core has one tile": persistent | (items > cores),
    }


def _in_l1(points: Columns, found: CubeOperands, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Bytes that stay in L1, and those that come for each tile and step."""
    m, n, depth = (points[f"block_{x}"] for x in "mnk")
    keep_a, plain = points["keep"] == "a", points["keep"] == "none"
    part, (of_a, of_b) = -(-k // points["split_k"]), found.most_slices
    held, comes = kept_bytes(np.where(keep_a, m, n), np.where(keep_a, n, m), part, depth, found.size)
    return np.where(plain, 0, held), np.where(plain, (m * of_a + n * of_b) * depth * found.size, comes)


def _next_below(values: tuple[int, ...], of: np.ndarray) -> np.ndarray:
    """The largest of an axis' values below each of some; 0 where there is none."""
    known = np.array([0, *sorted(values)])
    return np.asarray(known[np.searchsorted(known, of) - 1])
