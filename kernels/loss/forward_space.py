"""What to try for binary cross-entropy itself (`bce_with_logits`), and how fast a tiling can be at best."""

from __future__ import annotations

import numpy as np

from ...simulator.products import Product
from ..bounds.vector import REPEAT, VectorRates, VectorWork, touched
from ..operator.layout import broadcast_strides, merge_axes, tile_count, tile_of
from ..operator.tensors import Columns, Options, Tensors, dtype_of
from .space import explored, fits

__all__ = ["bound_us", "explored", "fits"]


def bound_us(tensors: Tensors, product: Product, mode: str, points: Columns, options: Options) -> np.ndarray:
    """Least time in us of each point, both launches where the losses are summed."""
    m, n, reduced = VectorRates(product), tensors["x"].size, options["reduction"] != "none"
    count, rows, cols, smallest = _tiles(tensors, points["block"])
    cores = np.minimum(points["cores"], count)
    most = -(-count // cores)
    size = dtype_of(tensors["x"]).itemsize
    sizes = [dtype_of(x).itemsize for x in tensors.values() if x.size == n]
    least = [dtype_of(tensors[name]).itemsize for name in ("x", "target")]
    stream = VectorWork(
        iterations=most,
        loads=smallest * min(least),
        per_iteration=2,
        loaded=n / cores * sum(sizes),
        stored=0.0 if reduced else n / cores * size,
        repeats=_vector(m, tensors, reduced, most * rows * cols, most),
        smallest=0 if reduced else smallest * size,
        copies=points["buffers"],
    )
    moved = n * sum(s * touched(cols * s) for s in sizes)
    return np.asarray(m.us(m.cycles(stream), moved, cores) + (_summing_us(m) if reduced else 0.0))


def _tiles(tensors: Tensors, blocks: np.ndarray) -> tuple[np.ndarray, ...]:
    """(tiles, rows and columns of one, elements of the smallest one) for each wanted size."""
    shape = tensors["x"].shape
    present = [n for n in ("x", "weight", "pos_weight") if n in tensors]
    lengths = (
        merge_axes(shape, [broadcast_strides(tensors[n].shape, shape) for n in present]).padded().lengths
    )
    down, across = lengths[-2:]
    tiles = [tile_of(down, across, int(b)) for b in blocks]
    found = [
        (tile_count(lengths, r, c), r, c, ((down - 1) % r + 1) * ((across - 1) % c + 1)) for r, c in tiles
    ]
    return tuple(np.array(found, np.int64).reshape(-1, 4).T)


def _vector(
    m: VectorRates, tensors: Tensors, reduced: bool, elements: np.ndarray, tiles: np.ndarray
) -> np.ndarray:
    """Cycles of the Vector unit: all operations, and the waits within log(1 + exp(-|x|)), which nothing else fills."""
    size = dtype_of(tensors["x"]).itemsize
    row, waiting = m.chain(["abs", "muls", "exp", "adds", "ln"])
    others = ["muls", "maxs", "add", "muls", "adds", "mul", "add"]  # max(-x, 0), (1 - t) x, sums
    others += m.casts(dtype_of(tensors[n]).itemsize for n in ("x", "target"))
    others += ["mul"] * ("weight" in tensors) + ["mul", "mul"] * ("pos_weight" in tensors)
    others += ["select", "add"] if reduced else m.casts([size])
    return np.asarray(elements / REPEAT * (row + m.chain(others)[0]) + tiles * waiting)


def _summing_us(m: VectorRates) -> float:
    """The launch that adds the cores' sums."""
    flight = (m.read_latency + m.write_latency) / m.product.us_to_cycles(1.0)
    return float(m.launch_us(np.array(1))) + flight
