"""How an access to global memory becomes transfers: bursts, bytes, what they weigh in lines of L2, who reads the same."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ...interpreter._numbers import all_bits
from ...interpreter.regions import MAX_RANK, AccessRegion
from ...interpreter.values import Affine, Box
from ..placement.layouts import BLOCK_BYTES
from ._traffic import count_alike
from ._traffic import traffic as fill

# Of the engine's channels: GM to L1 from HBM, of a tile that memory has as L1 keeps it.
FRACTALS = 13

Count = Any  # int, or int64 array over the active programs
Corners = tuple[
    np.ndarray, np.ndarray, np.ndarray, np.ndarray
]  # strides, lows, highs and shape of an `AccessRegion`


REQUEST_BYTES = 128  # the smallest request (DOC data movement guide, MSO)
LINE_BYTES = (
    512  # DOC data movement guide: a burst is cut into requests that end where a line of 512 bytes does
)


def boxed(mask: Any) -> bool:
    """Whether a mask leaves a box of the tile, so that an affine access is a strided copy."""
    return mask is None or isinstance(mask, Box | bool)


def traffic(affine: Affine, itemsize: int, region: AccessRegion) -> tuple[Any, Count, Count]:
    """(bytes on the way, bursts, elements) of a regular access: numbers, or arrays over its programs.

    A burst is a contiguous run: axes from the innermost outward while each continues where the last one ends. A program
    whose rows are cut short moves them one by one, whatever the other programs do. Each burst is rounded up to a block of
    32 bytes, and weighs more, at least 1, if it starts inside of a line: a burst of n bytes at addresses that are multiples
    of g touches 1 + (n - g) / 512 lines on average, and each is fetched whole. EX data_copy: rows of 512 bytes take 1.97
    times as long where they start anywhere, rows of 2048 bytes 1.28 times; rows at multiples of 128 bytes pay, too (catlass
    34, 4096 x 4096 x 40000). The only burst of a transfer, if it starts and ends with requests of 128 bytes, shares its
    first and last line with its neighbours, on the way at the same moment.
    """
    return _figures(affine, itemsize, region)[:3]


def line_requests(affine: Affine, itemsize: int, region: AccessRegion) -> Any:
    """Lines that all bursts touch, each burst for itself: the requests of a load past L2; see `traffic`."""
    return _figures(affine, itemsize, region)[3]


def _figures(affine: Affine, itemsize: int, region: AccessRegion) -> tuple[Any, Count, Count, Any]:
    """`traffic` and `line_requests`; only arrays where programs differ, as far as that is known without a look at them."""
    plain = [isinstance(s, int) for s in affine.strides]
    axes = sum(p << k for k, p in enumerate(plain, MAX_RANK - len(plain)))
    box = (region.strides, region.lows, region.highs, region.shape)
    if not (region.full and all(plain)):
        return _each(region.starts, region.origin, box, axes, itemsize)
    base = affine.base
    if isinstance(base, int):
        return _alike(base % LINE_BYTES, affine.strides, affine.shape, itemsize)
    if not all_bits(base) * itemsize % LINE_BYTES:
        return _alike(0, affine.strides, affine.shape, itemsize)
    amount, bursts, elements, lines = _each(region.starts, region.origin, box, axes, itemsize)
    whole = float(amount[0]) if (amount == amount[0]).all() else amount
    return whole, int(bursts[0]), int(elements[0]), lines


@lru_cache(maxsize=4096)
def _alike(
    base: int, strides: tuple[int, ...], shape: tuple[int, ...], itemsize: int
) -> tuple[float, int, int, float]:
    """Of whole tiles that start alike. base: address of the first element, up to whole lines."""
    pad = MAX_RANK - len(shape)
    lengths = np.array((1,) * pad + shape, np.int64)
    box = (
        np.array([(0,) * pad + strides], np.int64),
        np.zeros((1, MAX_RANK), np.int64),
        lengths[None],
        lengths,
    )
    amount, bursts, elements, lines = _each(np.array([base]), 0, box, (1 << MAX_RANK) - 1, itemsize)
    return float(amount[0]), int(bursts[0]), int(elements[0]), float(lines[0])


def _each(
    starts: np.ndarray, origin: int, box: Corners, plain: int, itemsize: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of each program. plain: axes (as bits) whose stride is one number for all of them."""
    n = len(starts)
    amount, bursts, elements, lines = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    sizes = (itemsize, BLOCK_BYTES, LINE_BYTES, REQUEST_BYTES)
    fill(starts, origin, *box, plain, *sizes, amount, bursts, elements, lines)
    return amount, bursts, elements, lines


def sharers(starts: np.ndarray, numbers: np.ndarray, cores: int, iteration: np.ndarray | None = None) -> Any:
    """How many cores read the same address at the same time, for each program: 1 when each has its own.

    Programs that follow each other run at the same time, as many as there are cores. iteration: of each, one iteration after
    the other with the programs in order, where many iterations of a loop are lowered at once.
    """
    order: Any = slice(None) if iteration is not None else np.argsort(numbers)
    found, out = np.zeros(len(starts), np.int64), np.empty(len(starts), np.int64)
    now = found.copy() if iteration is None else iteration
    count_alike(starts[order], numbers[order], now, cores, found)
    out[order] = found
    return out if out.max() > 1 else 1.0
