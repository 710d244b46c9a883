"""What forward norms of rows have in common: checks, knobs, the choice of a tile, and the space of their tilings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...simulator.jit_function import JitFunction
from ...simulator.precision.dtypes import float32
from ...simulator.products import Product
from ..bounds.vector import LINE, REPEAT, VectorRates, VectorWork, last_part, touched
from ..operator.layout import even_part, up
from ..operator.messages import check_dtype, check_same_dtype, refuse
from ..operator.parameter import integer
from ..operator.plan import Plan, PlanContext, Step
from ..operator.tensors import Columns, Knobs, Tensors, dtype_of

ITERATION_ELEMENTS = 500  # of a tile that the latencies of an iteration cost, fitted to the simulator's times
LONGEST_CHUNK = 2048  # columns
# What `explored` tries.
CHUNKS = (256, 512, 1024, 2048, 4096, 8192)
MOST_ROWS = 128
ChunkBytes = Callable[[int, int, int, int], int]

PARAMETERS = (
    integer("rows", None, 1, None, "rows of a tile"),
    integer("cols", None, 1, None, "columns of a chunk; whole rows where they fit"),
    integer("cores", None, 1, None, "cores that share the rows; all of the product if left out"),
    integer("buffers", 2, 1, 16, "copies of a tile that is loaded or stored in a loop"),
)


def check_rows(name: str, tensors: Tensors, allowed: Sequence[str], product: Product) -> None:
    """One type; gamma, and beta if there is one, have the last axes of x; no empty tensor."""
    check_dtype(name, "x", tensors["x"], allowed, product)
    check_same_dtype(name, tensors, "x", ("gamma", "beta"))
    x, gamma = tensors["x"].shape, tensors["gamma"].shape
    if not 1 <= len(gamma) <= len(x) <= 8 or x[len(x) - len(gamma) :] != gamma:
        raise refuse(
            f"{name}: gamma has shape {gamma}; it must be the last axes of x, which has {x}, of 1 to 8 axes"
        )
    if "beta" in tensors and tensors["beta"].shape != gamma:
        raise refuse(f"{name}: beta has shape {tensors['beta'].shape}, gamma has {gamma}; they must be equal")
    if tensors["x"].size == 0:
        raise refuse(f"{name}: x has shape {x} and no elements; there is nothing to normalise")


def whole_bytes(cols: int, rows: int, itemsize: int, copies: int, vectors: int, tight: bool = False) -> int:
    """UB bytes of tiles of whole rows, at most (checked against the placement by a test).

    x and y in their own type, `copies` each; x and its square in FP32 and half of one for the first step of a sum (an FP32
    tile is computed on where it was loaded); gamma, and beta if there is one (`vectors`), in FP32 for all iterations. tight:
    with FP32 y where x was, as tiles are placed where there is no room for both.
    """
    cols = up(cols, 16)
    both = 1 if tight and itemsize == 4 else 2
    transfers = both * itemsize * copies if copies > 1 else 0
    temporaries = 6 if itemsize == 4 and copies > 1 else 10
    return rows * cols * (transfers + temporaries) + 4 * vectors * cols + 256 * rows


def best_rows(share: int, cols: int, loaded: int, fits: Callable[[int], bool]) -> int:
    """Rows of a tile for a core with `share` rows: least work with the padding of the last tile; at least 1.

    loaded: elements of vectors that each iteration loads anew.
    """
    iteration = ITERATION_ELEMENTS + loaded
    best, least = 1, share * (cols + iteration)
    for rows in range(2, share + 1):
        work = -(-share // rows) * (rows * cols + iteration)
        if not fits(rows):
            break
        if work <= least:
            best, least = rows, work
    return best


def choose(
    length: int,
    count: int,
    knobs: Knobs,
    context: PlanContext,
    itemsize: int,
    vectors: int,
    chunk_bytes: ChunkBytes,
) -> dict[str, Any]:
    """Whole rows where one fits, as many as leave least work; else chunks of at most 2048 columns.

    vectors: of a row's length that a kernel takes beside x. chunk_bytes: UB bytes that it needs for chunks: of columns,
    rows, bytes of an element, copies.
    """
    share = -(-count // min(context.cores(knobs["cores"]), count))
    ub, copies = context.ub_bytes, knobs["buffers"]
    whole = whole_bytes(length, 1, itemsize, copies, vectors, tight=True) <= ub
    cols = min(length, knobs["cols"] or (length if whole else even_part(length, LONGEST_CHUNK)))

    def fits(rows: int) -> bool:
        if cols == length:
            return whole_bytes(cols, rows, itemsize, copies, vectors) <= ub
        return chunk_bytes(cols, rows, itemsize, copies) <= ub

    rows = knobs["rows"] or best_rows(share, cols, 0 if cols == length else vectors * cols // 2, fits)
    return {**knobs, "rows": min(rows, share), "cols": cols, "cores": -(-count // share)}


def row_plan(
    kernel: JitFunction,
    eps: float,
    chunk_bytes: ChunkBytes,
    vectors: Sequence[str],
    statistics: Sequence[str],
    tensors: Tensors,
    knobs: Knobs,
    context: PlanContext,
) -> Plan:
    """One launch of a kernel that takes x, `vectors` (None: absent), y, `statistics` of rows, and the tile."""
    x, gamma = tensors["x"], tensors["gamma"]
    length, count = gamma.size, x.size // gamma.size
    tiling = choose(length, count, knobs, context, dtype_of(x).itemsize, len(vectors), chunk_bytes)
    leading = x.shape[: len(x.shape) - len(gamma.shape)]
    outputs = {"y": context.output("y", x.shape, dtype_of(x))}
    outputs |= {n: context.output(n, leading, float32) for n in statistics}
    arguments = {
        **{f"{n}_ptr": tensors.get(n) for n in ("x", *vectors)},
        **{f"{n}_ptr": tensor for n, tensor in outputs.items()},
        **{"row_count": count, "row_length": length, "rows_per_core": -(-count // tiling["cores"])},
        **{"inverse_length": 1.0 / length, "eps": eps, "multibuffer": tiling["buffers"]},
        **{"ROWS": tiling["rows"], "COLS": tiling["cols"], "WHOLE": tiling["cols"] == length},
    }
    return Plan((Step(kernel, tiling["cores"], arguments),), outputs, tiling)


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
