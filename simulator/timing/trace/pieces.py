"""An instruction of many lanes, as rows of numbers: what is averaged, who skips it, and loads that come in parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .tree import Instruction, Slots


class Piece(NamedTuple):
    """A record with its numbers by iteration.

    occupancy: one number, or one for each iteration. amount: bytes (of a fixed cost: cycles) as one number or as [iterations
    or 1, lanes], negative for lanes that skip it; None: a fixed cost of `occupancy` in all lanes. other: what lanes that
    skip it execute in its place.
    """

    occupancy: Any
    amount: Any
    latency: float
    channel: int
    line: int
    writes: Slots
    clobbers: Slots
    other: Piece | None = None


def pieces(x: Instruction, lanes: int) -> Iterator[Piece]:
    """lanes: of one iteration.

    What lanes take at least is taken as their average, so that one lane does not stand for all.
    """
    occupancy = averages(x.occupancy, lanes)
    if x.share is not None:
        yield from _by_source(x, occupancy, lanes)
        return
    amount: Any = None
    if x.partial is not None:
        amount = np.where(_rows(x.partial, lanes) != 0, np.reshape(occupancy, (-1, 1)), -1.0)
    elif x.channel >= 0:
        amount = _rows(x.amount, lanes)
    yield Piece(occupancy, amount, x.latency, x.channel, x.line, x.writes, x.clobbers)


def _by_source(x: Instruction, occupancy: Any, lanes: int) -> Iterator[Piece]:
    """A transfer from memory or from L2; where lanes differ: the new part of mixed ones, then all of others or the rest.

    Each lane has one record that writes, the last of those that it does: a reader of the tile waits for that, and the new
    part only clobbers the tile. In a mixed transfer the latency of the rest covers that of the new part, and each has its
    share of the least cycles. The rest is a record of its own beside whole transfers from L2, so that neither is averaged
    with the other; it comes after them: to a lane that skips what writes a tile, the record before wrote it. Lanes that
    wait for what another one loads take as long as that one, out of L2.
    """
    assert x.share is not None
    assert x.path is not None
    share = np.reshape(x.share, (-1, 1) if x.share.size == 1 else (-1, lanes))
    slow = occupancy if x.slow is None else averages(x.slow, lanes)
    amount = _rows(x.amount, lanes)
    (memory, l2), (line, rest) = x.path
    if (share == 1.0).all():
        yield Piece(slow, amount, x.latency + x.late, memory, line, x.writes, x.clobbers)
        return
    if not share.any():
        yield Piece(occupancy, amount, x.latency, l2, rest, x.writes, x.clobbers)
        return
    whole, mixed, none = share == 1.0, (share > 0.0) & (share < 1.0), share == 0.0
    if mixed.any():
        part = _part(slow, amount, share, mixed)
        yield Piece(*part, 0.0, memory, line, (), x.writes + x.clobbers)
    new = None
    if whole.any():
        part = _part(slow, amount, share, whole)
        new = Piece(*part, x.latency + x.late, memory, line, x.writes, x.clobbers)
    waits = none & np.reshape(x.waits, none.shape) if x.waits is not None else np.zeros_like(none)
    kinds = (none & ~waits, occupancy, 0.0), (waits, slow, x.late), (mixed, occupancy, 0.0)
    for has, least, late in kinds:
        if has.any():
            part = _part(least, amount, 1.0 - share, has)
            yield Piece(*part, x.latency + late, l2, rest, x.writes, x.clobbers, new)
            new = None


def _part(occupancy: Any, amount: Any, weight: np.ndarray, has: np.ndarray) -> tuple[Any, Any]:
    """(occupancy, amounts) of lanes that have so much of a transfer, the others skip it."""
    moved, some = np.where(has, amount * weight, -1.0), weight[has]
    if (some == some[0]).all():
        return occupancy * some[0], moved
    count = has.sum(axis=1)
    low = np.where(has, weight, np.inf).min(axis=1)
    high = np.where(has, weight, -np.inf).max(axis=1)
    mean = np.where(has, weight, 0.0).sum(axis=1) / np.maximum(count, 1)
    mean = np.where(low == high, high, mean)
    first = mean[count > 0][0]
    mean = np.where(count == 0, first, mean)  # nobody has these: any number
    return occupancy * (first if (mean == first).all() else mean), moved


def waiting(share: np.ndarray, starts: np.ndarray, waves: np.ndarray) -> np.ndarray | None:
    """Lanes [iterations, lanes] that find in L2 what another one of their wave loads from memory in the same iteration.

    share: part of each load that memory gives; starts: where it begins; waves: of each lane. None if none waits.
    """
    rows = share.reshape(-1, len(waves))
    some = np.flatnonzero((rows == 1.0).any(axis=1) & (rows == 0.0).any(axis=1))
    if not len(some):
        return None
    start, wave = starts.reshape(rows.shape)[some], np.broadcast_to(waves, (len(some), len(waves)))
    order = np.lexsort((start, wave), axis=-1)
    start, wave, part = (np.take_along_axis(x, order, -1) for x in (start, wave, rows[some]))
    begins = np.ones(part.shape, bool)
    begins[:, 1:] = (start[:, 1:] != start[:, :-1]) | (wave[:, 1:] != wave[:, :-1])
    most = np.maximum.reduceat(part.ravel(), np.flatnonzero(begins))
    held = (most[np.cumsum(begins) - 1].reshape(part.shape) == 1.0) & (part == 0.0)
    if not held.any():
        return None
    out, found = np.zeros(rows.shape, bool), np.empty(part.shape, bool)
    np.put_along_axis(found, order, held, -1)
    out[some] = found
    return out


def averages(x: Any, lanes: int) -> Any:
    """One number, or for each iteration the average over its lanes; exact where they are alike."""
    if not isinstance(x, np.ndarray):
        return float(x)
    first = x.flat[0]
    if (x == first).all():
        return float(first)
    rows = x.reshape(-1, lanes)
    alike = (rows == rows[:, :1]).all(axis=1)
    out = np.where(alike, rows[:, 0], rows.mean(axis=1))
    return float(out[0]) if (out == out[0]).all() else out


def _rows(x: Any, lanes: int) -> Any:
    """One number, or rows of lanes."""
    if not isinstance(x, np.ndarray):
        return float(x)
    if x.size == 1:
        return float(x.reshape(-1)[0])
    return np.asarray(x, np.float64).reshape(-1, lanes)
