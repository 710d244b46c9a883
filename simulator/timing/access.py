"""How an access to global memory becomes transfers: bursts, bytes, what they weigh in lines of L2, who reads the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..execution.values import Affine, Box
from .geometry import BLOCK_BYTES

Count = Any  # int, or int64 array over the active programs


def element_counts(affine: Affine, mask: Any) -> tuple[Count, ...]:
    """Selected indices per axis."""
    if isinstance(mask, Box):
        return mask.counts()
    if mask is None or mask is True:
        return affine.shape
    return (
        (np.asarray(mask).astype(np.int64), *affine.shape[1:])
        if affine.shape
        else (np.asarray(mask).astype(np.int64),)
    )


def burst_elements(affine: Affine, counts: tuple[Count, ...]) -> Count:
    """Length of the contiguous runs: axes from the innermost outward while each continues where the last one ends.

    A program whose rows are cut short moves them one by one, whatever the other programs do.
    """
    run: Count = 1
    width = 1
    whole: Any = True  # whether all axes so far are complete, per program
    for stride, n, count in reversed(list(zip(affine.strides, affine.shape, counts, strict=False))):
        if n == 1:
            continue
        if not isinstance(stride, int) or abs(stride) != width:
            break
        run = run * count if whole is True else np.where(whole, run * count, run)
        whole = whole & (count == n)
        if not np.any(whole):
            break
        whole = True if np.all(whole) else whole
        width *= n
    return run


def transfer_bytes(affine: Affine, mask: Any, itemsize: int) -> tuple[Count, Count, Count]:
    """(bytes moved, bursts, elements): each burst is rounded up to a 32-byte block."""
    counts = element_counts(affine, mask)
    total = _product(counts)
    run = burst_elements(affine, counts)
    if isinstance(total, int) and isinstance(run, int):
        bursts: Count = total // run if run else 0
        return bursts * -(-run * itemsize // BLOCK_BYTES) * BLOCK_BYTES, bursts, total
    run = np.maximum(np.asarray(run), 1)
    bursts = np.asarray(total) // run
    return bursts * (-(-run * itemsize // BLOCK_BYTES)) * BLOCK_BYTES, bursts, np.asarray(total)


def averages(rows: np.ndarray) -> np.ndarray:
    """The average of each row; exact where a row's numbers are alike."""
    out: np.ndarray = rows[:, 0].astype(np.float64)
    for k in np.flatnonzero((rows != rows[:, :1]).any(axis=1)):
        out[k] = np.mean(np.ascontiguousarray(rows[k]))
    return out


MOST_KEYS = (
    1 << 62
)  # programs of one turn always keep below it; so many turns at once are walked one by one instead
REQUEST_BYTES = 128  # the smallest request (DOC data movement guide, MSO)
LINE_BYTES = (
    512  # DOC data movement guide: a burst is cut into requests that end where a line of 512 bytes does
)


def line_weight(affine: Affine, counts: tuple[Count, ...], itemsize: int) -> Any:
    """By how much bursts that start inside of a line are dearer than those that start with one, at least 1; per program.

    A burst of n bytes at addresses that are multiples of g touches 1 + (n - g) / 512 lines on average, and each is fetched
    whole. EX data_copy: rows of 512 bytes take 1.97 times as long where they start anywhere, rows of 2048 bytes 1.28 times;
    rows at multiples of 128 bytes pay, too (catlass 34, 4096 x 4096 x 40000). The only burst of a transfer, if it starts and
    ends with requests of 128 bytes, shares its first and last line with its neighbours, on the way at the same moment.
    """
    grain = _grain(affine, itemsize)
    if np.all(grain >= LINE_BYTES):
        return 1.0
    run = np.maximum(np.asarray(burst_elements(affine, counts)), 1)
    length = run * itemsize
    lines = 1.0 + (length - grain) / LINE_BYTES
    weight = np.maximum(1.0, lines / np.maximum(1.0, length / LINE_BYTES))
    alone = (grain >= REQUEST_BYTES) & (_product(counts) <= run)
    return 1.0 if np.all(alone) else np.where(alone, 1.0, weight)


def line_requests(affine: Affine, counts: tuple[Count, ...], itemsize: int) -> Any:
    """Lines that all bursts touch, each burst for itself: the requests of a load past L2, per program or for all alike.

    A burst of n bytes at multiples of g touches 1 + (n - g) / 512 lines on average; see `line_weight` for g.
    """
    run = np.maximum(np.asarray(burst_elements(affine, counts)), 1)
    grain = _grain(affine, itemsize)
    length = -(-run * itemsize // grain) * grain
    lines = _product(counts) // run * (1.0 + (length - grain) / LINE_BYTES)
    return float(lines) if np.ndim(lines) == 0 else lines


def _product(counts: tuple[Count, ...]) -> Count:
    """Elements that an access selects."""
    total: Count = 1
    for count in counts:
        total = total * count
    return total


def _grain(affine: Affine, itemsize: int) -> Any:
    """The largest power of two up to a line that divides the address of every burst, per program."""
    bits = np.abs(np.asarray(affine.base)) * itemsize | LINE_BYTES
    for step, n in zip(affine.strides, affine.shape, strict=True):
        if n > 1 and not (isinstance(step, int) and abs(step) == 1):
            bits = bits | np.abs(np.asarray(step)) * itemsize
    return bits & -bits


def sharers(starts: np.ndarray, numbers: np.ndarray, times: int, cores: int) -> Any:
    """How many cores read the same address at the same time, for each program: 1 when each has its own.

    Programs that follow each other run at the same time, as many as there are cores. times: turns of a loop that the
    programs stand for, one after the other.
    """
    if len(starts) == times:
        return 1.0
    turn = np.repeat(np.arange(times), len(starts) // times)
    wave = numbers // cores
    low, span = int(starts.min()), int(starts.max()) - int(starts.min()) + 1
    waves = int(wave.max()) + 1
    if times * waves * span > MOST_KEYS:
        raise OverflowError(f"{times} turns of {waves} waves over {span} addresses")
    key = (turn * waves + wave) * span + (starts - low)
    _, inverse, counts = np.unique(key, return_inverse=True, return_counts=True)
    return 1.0 if len(counts) == len(starts) else counts[inverse.ravel()]
