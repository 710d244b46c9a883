"""What forward norms of rows have in common: checks of their inputs, knobs, and the choice of a tile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..simulator.products import Product
from .layout import even_part
from .operator import Tensors, Workshop
from .parameter import integer
from .refusing import check_dtype, check_same_dtype, refuse

TURN_ELEMENTS = (
    500  # what the latencies of a turn cost, in elements of a tile (fitted to the simulator's own times)
)
LONGEST_CHUNK = 2048  # columns

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


def best_rows(share: int, cols: int, fits: Callable[[int], bool]) -> int:
    """Rows of a tile for a core with `share` rows: least work with the padding of the last tile; at least 1."""
    best, least = 1, share * (cols + TURN_ELEMENTS)
    for rows in range(2, share + 1):
        work = -(-share // rows) * (rows * cols + TURN_ELEMENTS)
        if not fits(rows):
            break
        if work <= least:
            best, least = rows, work
    return best


def choose(
    length: int,
    count: int,
    knobs: Mapping[str, Any],
    workshop: Workshop,
    tile_bytes: Callable[[int, int], int],
) -> dict[str, Any]:
    """Whole rows where one fits, as many as leave least work; else chunks of at most 2048 columns.

    tile_bytes: UB bytes that a kernel needs for tiles of so many columns and rows.
    """
    share = -(-count // min(workshop.cores(knobs["cores"]), count))
    ub = workshop.product.ub_bytes
    whole = tile_bytes(length, 1) <= ub
    cols = min(length, knobs["cols"] or (length if whole else even_part(length, LONGEST_CHUNK)))
    rows = knobs["rows"] or best_rows(share, cols, lambda n: tile_bytes(cols, n) <= ub)
    return {**knobs, "rows": min(rows, share), "cols": cols, "cores": -(-count // share)}
