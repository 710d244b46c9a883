"""How many cores read the same tile at the same moment: those of one round that work on the same rows or columns.

Tiles go to cores in wave, in bands of `group` tile rows, as `matmul_tiles.py` hands them out; a round is as many tiles in a
row as there are cores. The part of L2 that holds an address serves one core after the other, so that a load takes as
many times longer (`Plan.least_cycles` of the simulator).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

# Of a product whose rounds are looked at; a load of one with more is bounded as if not shared.
MOST_TILES = 1 << 14
MOST_KEYS = 1 << 20  # that are counted without being sorted
Array = Any


def sharing(
    down: Array, across: Array, group: Array, split: Array, cores: Array, cut: tuple[Array, Array]
) -> tuple[Array, Array]:
    """For each point: how many cores read the same tile of a, and of b, at least on average.

    down, across: tiles along M and N; split: parts of the sum; cut: whether the last tile along M, and along N, is smaller.
    The average is over all tiles, over all rounds, or over the tiles that are not cut, whichever is least.
    """
    points = np.stack(np.broadcast_arrays(down, across, group, split, cores, *cut), axis=1)
    different, place = np.unique(points, axis=0, return_inverse=True)
    found = np.array([_sharing(*map(int, row)) for row in different]).reshape(-1, 2)[place.ravel()]
    return found[:, 0], found[:, 1]


@lru_cache(maxsize=1 << 14)
def _sharing(
    down: int, across: int, group: int, split: int, cores: int, cut_m: int, cut_n: int
) -> tuple[float, float]:
    tiles = down * across
    if tiles * split > MOST_TILES:
        return 1.0, 1.0
    item = np.arange(tiles * split)
    part, tile = item // tiles, item % tiles
    first = tile // (group * across) * group
    height = np.minimum(down - first, group)
    inside = tile % (group * across)
    row, column = first + inside % height, inside // height
    wave = item // cores
    each = wave * split + part
    return (
        _mean(each * down + row, wave, row < down - cut_m),
        _mean(each * across + column, wave, column < across - cut_n),
    )


def _mean(read: np.ndarray, wave: np.ndarray, whole: np.ndarray) -> float:
    """Of how many equal numbers each is one: the least of the averages over all, over waves, and over the whole ones."""
    if read[-1] < MOST_KEYS:
        many = np.bincount(read)[read]
    else:
        _, place, counts = np.unique(read, return_inverse=True, return_counts=True)
        many = counts[place]
    of_waves = np.bincount(wave, many) / np.bincount(wave)
    averages = [many.mean(), of_waves.mean()]
    if whole.any():
        averages.append(many[whole].mean())
    return float(min(averages))
