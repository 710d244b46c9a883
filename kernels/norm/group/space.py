"""What to try for GroupNormBackward, and how fast a tiling can be at best."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....simulator.products import Product
from ...bounds.vector import REPEAT, VectorRates, core_counts, reading_us
from ...matmul.choice import FRACTAL, L1_KEPT
from ...operator.tensors import Columns, Knobs, Tensors, dtype_of
from ..planes import Planes
from .cube import tile_bytes as products_bytes

COLS = (512, 1024, 2048, 4096, 8192)
ROWS = (1, 2, 4, 8, 16, 32, 64)
LEAST_TILE = 2048  # elements of a tile, or all of a group: smaller ones wait most of the time


def view_of(tensors: Tensors) -> Planes:
    """From the shapes of x (N, C, ...) and mean (N, groups)."""
    x = tensors["x"].shape
    return Planes.of(x, max(1, tensors["mean"].size // x[0]))


def explored(tensors: Tensors, product: Product) -> dict[str, tuple[Any, ...]]:
    """Axes: strategy, tile, cores, how sums come together over samples, copies. The form computes other values, and so does
    strategy cube: no axes, but they can be given."""
    view = view_of(tensors)
    return {
        "strategy": ("resident", "streamed", "shared") if view.space > 1 else ("resident", "vectors"),
        "rows": tuple(r for r in ROWS if r < 2 * view.depth),
        "cols": (*(c for c in COLS if c < view.space), *((view.space,) if view.space <= COLS[-1] else ())),
        "cores": core_counts(tensors, product, (1, 2)),
        "combine": ("two_phase", "pairwise", "atomic")[: view.samples],
        "buffers": (1, 2),
    }


def fits(tensors: Tensors, product: Product, mode: str, points: Columns, axes: Knobs) -> Columns:
    """Rule -> which points keep it: what a tile needs at least, and no second name for the same tiling."""
    view, size = view_of(tensors), dtype_of(tensors["x"]).itemsize
    each = 2 * size * points["buffers"] + 4  # every copy of dy and x as loaded, and one FP32 tile
    resident, shared, cube = (points["strategy"] == name for name in ("resident", "shared", "cube"))
    wide, room = points.get("cube_cols", np.int64(FRACTAL)), product.l1_bytes - L1_KEPT
    whole = resident | (points["strategy"] == "vectors")
    group = view.depth * view.space
    tile = np.minimum(points["rows"], view.depth) * np.minimum(points["cols"], view.space)
    first = {n: points[n] == min(axes[n]) for n in ("rows", "cols")}
    return {
        "the tiles of the products of strategy cube fit in L1": ~cube
        | (products_bytes(wide, 2, points["buffers"]) <= room),
        "resident and vectors choose their tiles: one value of rows and cols stands for all": ~whole
        | (first["rows"] & first["cols"]),
        "shared adds its sums by a launch of its own: combine is two_phase": ~(shared | cube)
        | (points["combine"] == "two_phase")
        | ("two_phase" not in axes["combine"]),
        "a group fits in UB where it stays there": ~resident | (group * each <= product.ub_bytes),
        "the tiles of dy and x and one FP32 tile fit in UB": whole | (tile * each <= product.ub_bytes),
        f"a tile has {LEAST_TILE} elements, or all of a group": whole | (tile >= min(LEAST_TILE, group)),
    }


def bound_us(tensors: Tensors, product: Product, mode: str, points: Columns) -> np.ndarray:
    """Least time in us of each point, whichever outputs are wanted: dy and x are read, widened and multiplied."""
    m, view, size = VectorRates(product), view_of(tensors), dtype_of(tensors["x"]).itemsize
    elements = tensors["x"].size
    cast = m.casts((size,))
    cube = points["strategy"] == "cube"  # whose cores have other ports: what memory takes is sure
    cores = np.where(cube, max(1, elements), np.minimum(points["cores"], max(1, elements)))
    vector = elements / cores / REPEAT * m.chain([*cast, *cast, "mul"])[0]
    run = np.where(points["strategy"] == "resident", view.depth * view.space, points["cols"])
    run = np.where(cube, FRACTAL, run)
    return reading_us(m, 2 * elements * size, np.minimum(run, view.space) * size, vector, cores)
