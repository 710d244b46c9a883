"""What to try for BatchNormStatistics and GroupNorm, forward, and how fast a tiling can be at best."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...simulator.products import Product
from ..bounds.vector import REPEAT, VectorRates, VectorWork, core_counts, last_part, reading_us, touched
from ..operator.tensors import Columns, Options, Tensors, dtype_of
from .planes import Planes

COLS = (512, 1024, 2048, 4096, 8192, 16384)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128)
SAMPLES = (16, 32, 64, 128, 256, 512, 1024)
COLUMNS = (16, 32, 64, 128, 256)  # with SAMPLES: of a tile where a channel has one element for each sample
LEAST_TILE = 2048  # elements of a tile, or all of a core's: smaller ones wait most of the time
FITS = "a tile of x in FP32 fits in UB"
LARGE = f"a tile has {LEAST_TILE} elements, or all there are"
HALF = 0.5  # of an addition for each element that is summed: the first step of a sum adds halves


# -- batch norm's statistics -----------------------------------------------------------------------------------------


def explored_channels(tensors: Tensors, product: Product) -> dict[str, tuple[Any, ...]]:
    """Axes: tile, cores, copies."""
    view = Planes.of(tensors["x"].shape)
    few, many = {"cores": core_counts(tensors, product, (1, 2))}, {"buffers": (1, 2)}
    if view.space == 1:
        return {"rows": _below(SAMPLES, view.samples), "cols": _below(COLUMNS, view.channels), **few, **many}
    share = -(-view.channels // min(product.vector_cores, view.channels))
    rows = tuple(r for r in ROWS if r < 2 * share)
    return {"rows": rows, "cols": _below(COLS, view.space), **few, **many}


def fits_channels(tensors: Tensors, product: Product, mode: str, points: Columns) -> Columns:
    """Rule -> which points keep it: what a tile needs at least, and that it is no tiny part of a core's work."""
    view, size = Planes.of(tensors["x"].shape), dtype_of(tensors["x"]).itemsize
    share = _share(view.channels, points["cores"])
    rows, cols = (view.samples, share) if view.space == 1 else (share, view.space)
    return _fits(points, rows, cols, max(4, size), product)


def bound_channels(tensors: Tensors, product: Product, mode: str, points: Columns) -> np.ndarray:
    """Least time in us of each point: x is read once, widened, its mean taken off, and squared."""
    m, view, size = VectorRates(product), Planes.of(tensors["x"].shape), dtype_of(tensors["x"]).itemsize
    share = _share(view.channels, points["cores"])
    cores = view.channels / share  # of the one with most work; the last one may have less
    elements = tensors["x"].size
    vector = elements / cores / REPEAT * _statistics(m, size)
    run = np.minimum(points["cols"], share if view.space == 1 else view.space)
    return reading_us(m, elements * size, run * size, vector, cores)


# -- group norm ------------------------------------------------------------------------------------------------------


def explored_groups(tensors: Tensors, product: Product, options: Options) -> dict[str, tuple[Any, ...]]:
    """Axes: tile, cores, copies."""
    view = Planes.of(tensors["x"].shape, options["group"])
    return {
        "rows": tuple(r for r in ROWS if r < 2 * view.depth),
        "cols": _below(COLS, view.space),
        "cores": core_counts(tensors, product, (1, 2)),
        "buffers": (1, 2),
    }


def fits_groups(tensors: Tensors, product: Product, mode: str, points: Columns, options: Options) -> Columns:
    """Rule -> which points keep it, as for channels."""
    view, size = Planes.of(tensors["x"].shape, options["group"]), dtype_of(tensors["x"]).itemsize
    return _fits(points, view.depth, view.space, max(4, size), product)


def bound_groups(
    tensors: Tensors, product: Product, mode: str, points: Columns, options: Options
) -> np.ndarray:
    """Least time in us of each point: x is read twice, once from memory, and y is written."""
    m, view, size = (
        VectorRates(product),
        Planes.of(tensors["x"].shape, options["group"]),
        dtype_of(tensors["x"]).itemsize,
    )
    share = _share(view.tasks, points["cores"])
    rows, cols = np.minimum(points["rows"], view.depth), np.minimum(points["cols"], view.space)
    elements = share * view.depth * view.space
    smallest = last_part(view.depth, rows) * last_part(view.space, cols) * size
    cast = m.casts((size,))
    once = _statistics(m, size) + m.chain([*cast, "sub", "mul", "mul", "add", *cast])[0]
    stream = VectorWork(
        iterations=share * -(-view.depth // rows) * -(-view.space // cols),
        loads=smallest,
        per_iteration=1,
        loaded=2 * elements * size,
        stored=elements * size,
        repeats=elements / REPEAT * once,
        smallest=smallest,
        copies=points["buffers"],
    )
    moved = tensors["x"].size * size * touched(cols * size)
    return m.us(m.cycles(stream), moved, -(-view.tasks // share))


# -- both ------------------------------------------------------------------------------------------------------------


def _statistics(m: VectorRates, size: int) -> float:
    """Cycles of a repeat of elements: widened, summed, the mean taken off, squared, summed."""
    return m.chain([*m.casts((size,)), "sub", "mul"])[0] + 2 * HALF * m.repeat("add")


def _fits(points: Columns, rows: Any, cols: Any, each: int, product: Product) -> Columns:
    tile = np.minimum(points["rows"], rows) * np.minimum(points["cols"], cols)
    return {FITS: tile * each <= product.ub_bytes, LARGE: tile >= np.minimum(LEAST_TILE, rows * cols)}


def _share(count: int, cores: np.ndarray) -> np.ndarray:
    """Groups or channels of the core that has most."""
    return -(-count // np.minimum(np.asarray(cores, np.int64), count))


def _below(values: tuple[int, ...], most: int) -> tuple[int, ...]:
    """Values below a length, and the length if it is no longer than the largest."""
    return (*(v for v in values if v < most), *((most,) if most <= values[-1] else ()))
