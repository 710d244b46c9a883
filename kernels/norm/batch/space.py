"""What to try for BatchNormReduceBackward, and how fast a tiling can be at best."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....simulator.products import Product
from ...bounds.vector import REPEAT, VectorRates, core_counts, reading_us
from ...operator.tensors import Columns, Knobs, Tensors, dtype_of
from ..planes import Planes

COLS = (512, 1024, 2048, 4096, 8192)
ROWS = (1, 2, 4, 8, 16, 32, 64)
CHANNELS = (64, 128, 256, 512)  # of a tile of columns


def explored(tensors: Tensors, product: Product) -> dict[str, tuple[Any, ...]]:
    """Axes: strategy, tile, cores, how parts come together, copies. form and sums compute other values: no axes; and so does
    strategy cube, which can be given."""
    view, most = Planes.of(tensors["x"].shape), product.vector_cores
    share = -(-view.channels // min(most, view.channels))
    common = {
        "cores": core_counts(tensors, product, (1, 2)),
        "combine": ("two_phase", "atomic"),
        "buffers": (1, 2),
    }
    if view.space == 1:
        cols = tuple(c for c in CHANNELS if c <= view.channels) or (view.channels,)
        return {"strategy": ("columns", "hybrid"), "rows": ROWS, "cols": cols, **common}
    return {
        "strategy": ("channel_split", "batch_split", "hybrid"),
        "rows": tuple(r for r in ROWS if r < 2 * share),
        "cols": (*(c for c in COLS if c < view.space), *((view.space,) if view.space <= COLS[-1] else ())),
        **common,
    }


def fits(tensors: Tensors, product: Product, mode: str, points: Columns, axes: Knobs) -> Columns:
    """Rule -> which points keep it: what a tile needs at least, and no second name for the same tiling."""
    view, size = Planes.of(tensors["x"].shape), dtype_of(tensors["x"]).itemsize
    columns, cube = points["strategy"] == "columns", points["strategy"] == "cube"
    rows = np.minimum(points["rows"], np.where(columns, view.samples, view.channels))
    cols = np.minimum(points["cols"], np.where(columns, view.channels, view.space))
    alone = points["strategy"] == "channel_split"
    return {
        "channel_split has no parts to add up, cube writes them: combine is two_phase": ~(alone | cube)
        | (points["combine"] == "two_phase")
        | ("two_phase" not in axes["combine"]),
        "cube has tiles of 16 channels: one value of rows stands for all": ~cube
        | (points["rows"] == min(axes["rows"])),
        "cube has the cores of the Cube": ~cube | (points["cores"] <= product.cube_cores),
        "a tile of dy and its FP32 accumulator fit in UB": cube
        | (rows * cols * (size + 4) <= product.ub_bytes),
    }


def bound_us(tensors: Tensors, product: Product, mode: str, points: Columns) -> np.ndarray:
    """Least time in us of each point, whichever outputs are wanted: dy is read and widened."""
    m, view, size = VectorRates(product), Planes.of(tensors["x"].shape), dtype_of(tensors["x"]).itemsize
    elements = tensors["x"].size
    cube = points["strategy"] == "cube"  # whose cores have other ports: what memory takes is sure
    cores = np.where(cube, elements, np.minimum(points["cores"], max(1, elements)))
    vector = elements / cores / REPEAT * m.chain(m.casts((size,)))[0]
    run = np.where(
        view.space == 1, np.minimum(points["cols"], view.channels), np.minimum(points["cols"], view.space)
    )
    return reading_us(m, elements * size, run * size, vector, cores)
