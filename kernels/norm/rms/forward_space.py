"""What to try for RmsNorm, and how fast a tiling can be at best."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....simulator.products import Product
from ...bounds.vector import LINE, REPEAT, VectorRates, VectorWork, last_part, touched
from ...operator.tensors import Columns, Tensors, dtype_of

CHUNKS = (256, 512, 1024, 2048, 4096, 8192)
MOST_ROWS = 128


def explored(tensors: Tensors, product: Product) -> dict[str, tuple[Any, ...]]:
    """Axes: rows and columns of a tile (the length of a row: it is read once), cores, copies."""
    count, length = row_lengths(tensors)
    share = -(-count // min(product.vector_cores, count))
    return {
        "rows": tuple(1 << k for k in range(8) if 1 << k < 2 * share and 1 << k <= MOST_ROWS),
        "cols": (*(c for c in CHUNKS if c < length), length),
        "cores": tuple(dict.fromkeys(max(1, product.vector_cores // d) for d in (1, 2, 4))),
        "buffers": (1, 2),
    }


def fits(tensors: Tensors, product: Product, mode: str, points: Columns) -> Columns:
    """Rule -> which points keep it: what a tile needs at least."""
    _, length = row_lengths(tensors)
    size = dtype_of(tensors["x"]).itemsize
    least = points["rows"] * np.minimum(points["cols"], length) * max(4, size)
    return {"the tile of x in FP32 fits in UB": least <= product.ub_bytes}


def bound_us(tensors: Tensors, product: Product, mode: str, points: Columns) -> np.ndarray:
    """Least time in us of each point."""
    m = VectorRates(product)
    count, length = row_lengths(tensors)
    size = dtype_of(tensors["x"]).itemsize
    cores = np.minimum(points["cores"], count)
    share = -(-count // cores)
    rows, cols = np.minimum(points["rows"], share), np.minimum(points["cols"], length)
    whole = cols == length
    tiles = -(-share // rows) * -(-length // cols)
    smallest = last_part(share, rows) * last_part(length, cols) * size
    elements = share * length
    stream = VectorWork(
        iterations=np.where(whole, tiles, 2 * tiles),
        loads=smallest,
        per_iteration=1,
        loaded=elements * size * np.where(whole, 1, 2),
        stored=elements * size,
        repeats=_vector(m, size, whole, elements),
        smallest=smallest,
        copies=points["buffers"],
    )
    run = np.where(whole & (length * size % LINE == 0), LINE, cols * size)
    moved = count * length * size * touched(run)
    return m.us(m.cycles(stream), moved, -(-count // share))


def _vector(m: VectorRates, size: int, whole: np.ndarray, elements: np.ndarray) -> np.ndarray:
    """Cycles of the Vector unit for all elements: square, sum, two products, casts of narrow types (x twice in chunks)."""
    cast = m.casts((size,))
    once = m.chain([*cast, "mul", "mul", "mul", *cast])[0]
    again = m.chain(cast)[0] if cast else 0.0
    return np.asarray(elements / REPEAT * np.where(whole, once, once + again))


def row_lengths(tensors: Tensors) -> tuple[int, int]:
    """Rows of x, and elements of one."""
    length = tensors["gamma"].size
    return tensors["x"].size // length, length
