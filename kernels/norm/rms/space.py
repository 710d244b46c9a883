"""What to try for RmsNormGrad, and how fast a tiling can be at best."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....simulator.precision.dtypes import float32
from ....simulator.products import Product
from ...bounds.vector import LINE, VectorRates, VectorWork, core_counts, last_part, touched
from ...matmul.choice import L1_KEPT
from ...operator.layout import up
from ...operator.tensors import Columns, Knobs, Tensors, dtype_of
from ...shared.sums import FILL_COLUMNS, REPEAT, SUM_COLUMNS
from ..column_products import resolution
from ..column_products import tile_bytes as product_bytes
from ..row_tiles import row_lengths

LONGEST_CHUNK = 8192
MOST_ROWS = 128
LEAST_TILE = 4096  # elements of a tile that is read twice: smaller ones wait most of the time


def explored(tensors: Tensors, product: Product) -> dict[str, tuple[Any, ...]]:
    """Axes: strategy, rows and columns of a tile, cores, how parts of dgamma come together, copies. combine cube computes
    other values: it is no value of the axis, but can be given."""
    count, length = row_lengths(tensors)
    share = -(-count // min(product.vector_cores, count))
    rows = tuple(r for r in (1, 2, 4, 8, 16, 32, 64, MOST_ROWS) if r < 2 * share)
    chunks = tuple(c for c in (256, 512, 1024, 2048, 4096, LONGEST_CHUNK) if c < length) or (
        up(length, REPEAT),
    )
    return {
        "strategy": ("full_row", "kept_row", "split_row"),
        "rows": rows,
        "cols": chunks,
        "cores": core_counts(tensors, product),
        "combine": ("atomic", "two_phase"),
        "buffers": (1, 2),
    }


def fits(tensors: Tensors, product: Product, mode: str, points: Columns, axes: Knobs) -> Columns:
    """Rule -> which points keep it: what a tile needs at least, and no second name for the same tiling."""
    count, length = row_lengths(tensors)
    size = dtype_of(tensors["x"]).itemsize
    whole, split = points["strategy"] == "full_row", points["strategy"] == "split_row"
    tile = points["rows"] * np.where(whole, length, np.minimum(points["cols"], length))
    work = -(-count // np.minimum(points["cores"], count)) * length
    deep, wide = (points.get(n, np.int64(16)) for n in ("cube_rows", "cube_cols"))
    room = product.l1_bytes - L1_KEPT
    return {
        "the tiles of the products that combine cube sums with fit in L1": (points["combine"] != "cube")
        | (product_bytes(deep, wide, _operand_bytes(product, mode)) <= room),
        "full_row has no chunks: one value of cols stands for all": ~whole
        | (points["cols"] == min(axes["cols"])),
        "what an iteration keeps fits in UB": least_bytes(points, count, length, size) <= product.ub_bytes,
        f"a tile of split_row has {LEAST_TILE} elements, or all of a core": ~split
        | (tile >= np.minimum(LEAST_TILE, work)),
    }


def least_bytes(points: Columns, count: int, length: int, size: int) -> np.ndarray:
    """UB bytes that are alive at one time at least (checked against the placement by a test); 0 for other strategies.

    full_row and kept_row: dy, x and dx if they have copies, x and t in FP32 (FP32 tiles are where they were loaded), t * x
    of a chunk; gamma and dgamma. split_row, of a chunk: dy and x if they have copies, x, s and s * x; gamma.
    """
    whole, kept, split = (points["strategy"] == f"{n}_row" for n in ("full", "kept", "split"))
    rows = np.minimum(points["rows"], -(-count // np.minimum(points["cores"], count)))
    cols = np.where(whole, length, np.minimum(length, -(-points["cols"] // REPEAT) * REPEAT))
    copies = np.where(points["buffers"] > 1, (3 - split) * points["buffers"], 0)
    if size == 2:
        held = 8 + 2 * np.where(kept & (cols < length), np.maximum(copies, 2), copies)  # two of dx by name
    else:
        held = np.maximum(4 * copies, 8)
    once = 4 * np.where(split, cols, length * (1 + (points["combine"] != "cube")))
    found = rows * (np.where(split, cols, length) * held + 4 * cols) + once
    return np.asarray(np.where(whole | kept | split, found, 0))


def bound_us(tensors: Tensors, product: Product, mode: str, points: Columns) -> np.ndarray:
    """Least time in us of each point, all launches of it."""
    m = VectorRates(product)
    count, length = row_lengths(tensors)
    size = dtype_of(tensors["x"]).itemsize
    whole, once = points["strategy"] == "full_row", points["strategy"] != "split_row"
    on_cube = points["combine"] == "cube"
    cores = np.minimum(points["cores"], count)
    share = -(-count // cores)
    used = -(-count // share)
    rows = np.minimum(points["rows"], share)
    cols = np.where(whole, length, np.minimum(length, -(-points["cols"] // REPEAT) * REPEAT))
    chunks = -(-length // cols)
    blocks = -(-share // rows)
    tiles = blocks * np.where(whole, 1, chunks)
    elements = share * length
    smallest = last_part(share, rows) * last_part(length, cols) * size
    stream = VectorWork(
        iterations=np.where(once, blocks, 2 * tiles),
        loads=smallest,
        per_iteration=2,
        loaded=elements * size * np.where(once, 2, 4),
        stored=elements * (size + np.where(on_cube, _operand_bytes(product, mode), 0)),
        repeats=_vector(m, size, once & ~on_cube, once, elements, np.where(once & ~whole, 0, tiles))
        + np.where(once, blocks, tiles) * _tree(m, np.where(once & ~whole, points["cols"], cols)),
        smallest=smallest,
        copies=points["buffers"],
    )
    run = np.where(whole & (length * size % LINE == 0), LINE, cols * size)
    moved = count * length * size * 2 * touched(run)
    return np.asarray(m.us(m.cycles(stream), moved, used) + _others_us(m, length, points, used, once))


def _vector(
    m: VectorRates, size: int, adds: np.ndarray, once: np.ndarray, elements: np.ndarray, tiles: np.ndarray
) -> np.ndarray:
    """Cycles of the Vector unit: all operations on all elements, or those on a tile that each need the one before (tiles:
    how many such tiles follow each other; none where two chunks alternate). What the sum of a row waits is `_tree`.

    adds: whether sums of columns are its work. Five products, a difference, the sum of rows, casts of narrow types;
    split_row casts dy and x twice, makes s and t twice, and its sum of a single row is none.
    """
    cast = m.casts((size,))
    every = m.chain([*cast, *cast, "mul", "mul", "mul", "mul", "mul", "sub", *cast])[0]
    again = m.chain([*cast, "mul", "mul", *cast])[0]
    all_of = elements / REPEAT * (every + np.where(adds, m.chain(["add"])[0], np.where(once, 0.0, again)))
    repeat, waiting = m.chain([*cast, "mul", "mul", "mul", "mul", "sub", *cast])
    return np.asarray(
        np.maximum(all_of, np.where(tiles > 0, elements / REPEAT * repeat, 0) + tiles * waiting)
    )


def _tree(m: VectorRates, cols: np.ndarray) -> np.ndarray:
    """Cycles that the sum of a tile's rows waits for its own steps: what comes before is issued, what comes after has to
    wait for its turn."""
    wait = m.chain(["add", "add"])[1]
    lengths, where = np.unique(cols, return_inverse=True)
    return np.asarray(np.array([wait * halvings(int(n)) for n in lengths])[where])


def halvings(cols: int) -> int:
    """Steps of `row_sums` before the 64 lanes of a row are added up, at least."""
    return max(0, (cols // REPEAT - 1).bit_length()) if cols % REPEAT == 0 else 0


def _others_us(
    m: VectorRates, length: int, points: Columns, used: np.ndarray, once: np.ndarray
) -> np.ndarray:
    """The launch that clears dgamma or its parts (or makes ones), and the one that adds the parts (or multiplies them)."""
    two, on_cube = (points["combine"] == n for n in ("two_phase", "cube"))
    flight = (m.read_latency + m.write_latency) / m.product.us_to_cycles(1.0)
    cores = m.product.vector_cores
    cells = np.where(two, used * length, length)
    clearing = m.launch_us(np.minimum(cores, -(-cells // min(FILL_COLUMNS, up(length, 8)))))
    step = min(SUM_COLUMNS, up(-(-length // cores), REPEAT))
    summing = m.launch_us(min(cores, -(-length // step))) + flight
    return np.asarray(
        np.where(~two | ~once, np.minimum(clearing, m.launch_us(1)), 0.0)
        + np.where(two, summing, 0.0)
        + np.where(on_cube, m.launch_us(1), 0.0)
    )


def _operand_bytes(product: Product, mode: str) -> int:
    """Of an element of what combine cube writes out and the Cube adds up."""
    return 2 if resolution(float32, product, mode).compute == "fp16" else 4
