"""What to try for the gradient of binary cross-entropy, and how fast a tiling can be at best."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...simulator.products import Product
from ..bounds.vector import REPEAT, VectorRates, VectorWork, last_part, touched
from ..operator.layout import tile_count, tile_of
from ..operator.tensors import Columns, Tensors, dtype_of
from .tiles import BROADCAST, common_axes

BLOCKS = (512, 1024, 2048, 3072, 4096, 5120, 6144, 7168, 8192, 10240, 12288, 16384)


def explored(tensors: Tensors, product: Product) -> dict[str, tuple[Any, ...]]:
    """Axes: elements of a tile, cores, copies. The form without cancellation computes other values: no axis."""
    n = max(1, tensors["x"].size)
    share = -(-n // product.vector_cores)
    cores = dict.fromkeys(max(1, product.vector_cores * k // 8) for k in (8, 7, 6, 4, 2))
    return {
        "block": tuple(b for b in BLOCKS if b < 2 * share) or (64,),
        "cores": tuple(c for c in cores if c <= n),
        "buffers": (1, 2),
    }


def fits(tensors: Tensors, product: Product, mode: str, points: Columns) -> Columns:
    """Rule -> which points keep it: what is loaded element by element, and one FP32 tile, has to be in UB."""
    size = sum(dtype_of(tensors[n]).itemsize for n in ("x", "target")) + 4
    return {
        "the tiles of x and target and one FP32 tile fit in UB": points["block"] * size <= product.ub_bytes
    }


def bound_us(tensors: Tensors, product: Product, mode: str, points: Columns) -> np.ndarray:
    """Least time in us of each point."""
    m, n = VectorRates(product), tensors["x"].size
    axes = common_axes(tensors)
    blocks, block, row = _blocks(axes, points["block"], n)
    cores = np.minimum(points["cores"], blocks)
    most = -(-blocks // cores)
    full = [n for n, x in tensors.items() if n not in BROADCAST or (axes.flat() and x.size > 1)]
    sizes = [dtype_of(tensors[n]).itemsize for n in sorted(full, key=lambda n: n != "x")]
    out = dtype_of(tensors["target"]).itemsize
    elements = np.maximum(n / cores, 0.0)
    last = np.where(axes.flat(), last_part(n, block), 1)
    stream = VectorWork(
        iterations=most,
        loads=last * min(sizes),
        per_iteration=len(sizes),
        loaded=elements * sum(sizes),
        stored=elements * out,
        repeats=_vector(m, tensors, [*sizes, out], elements, most),
        smallest=last * out,
        copies=points["buffers"],
    )
    moved = n * sum(s * touched(row * s) for s in sizes)
    return m.us(m.cycles(stream), moved, cores)


def _blocks(axes: Any, block: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(tiles, elements of a tile, elements in a row of it) for each wanted size."""
    if axes.flat():
        return -(-n // block), block, block
    lengths = axes.padded().lengths
    tiles = [tile_of(lengths[-2], lengths[-1], int(b)) for b in block]
    counts = [tile_count(lengths, *t) for t in tiles]
    return np.array(counts), np.array([r * c for r, c in tiles]), np.array([c for _, c in tiles])


def _vector(
    m: VectorRates, tensors: Tensors, sizes: list[int], elements: np.ndarray, tiles: np.ndarray
) -> np.ndarray:
    """Cycles of the Vector unit: 1 / (1 + exp(-x)) and the difference each need what is before them, as do the casts of
    x and out; with these the casts of what else is loaded."""
    scaled = ["muls"] if tensors["grad_output"].size == 1 else []
    ends = m.casts(sizes[:1]), m.casts(sizes[-1:])
    row, waiting = m.chain([*ends[0], "muls", "exp", "adds", "div", "sub", *scaled, *ends[1]])
    others = m.chain(m.casts(sizes[1:-1]))[0]
    return elements / REPEAT * (row + others) + tiles * waiting
