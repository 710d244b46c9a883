# mypy: disable-error-code="no-untyped-def"
"""Tile kernel of a matrix product in which one operand stays in L1: its tile is loaded once for a strip of tiles.

keep="a": a strip is tiles side by side, which share the rows of a; keep="b": tiles below each other, which share the columns
of b. What stays is a tile of that operand for the whole sum (or the part of it that is summed), in pieces as deep as a tile
of the other one, which comes again for every tile of the strip. Programs begin their strips at different tiles, as all would
read the same tile of the other operand at the same moment.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ... import simulator as sim
from ...simulator import language as tl
from .distinct import each_once

MOST_PIECES = 16  # of what stays: each is an instruction of the kernel
MOST_STRIPS = 1 << 14  # of a product whose rounds are looked at one by one
Array = Any  # an int, or an array of them


@sim.jit
def operand_tile(ptr, rows, cols, bottom, right, pitch, EVEN: tl.constexpr):
    """Rows up to `bottom` and columns up to `right` of a matrix with `pitch` columns."""
    pointers = ptr + rows[:, None] * pitch + cols[None, :]
    if EVEN:
        return tl.load(pointers)
    return tl.load(pointers, mask=(rows < bottom)[:, None] & (cols < right)[None, :], other=0.0)


@sim.jit
def piece(a_ptr, b_ptr, rows, cols, deep, M, N, K, stop, OF_A: tl.constexpr, EVEN: tl.constexpr):
    """A tile of a at these rows, or one of b at these columns."""
    if OF_A:
        return operand_tile(a_ptr, rows, deep, M, stop, K, EVEN)
    return operand_tile(b_ptr, deep, cols, stop, N, N, EVEN)


@sim.jit
def matmul_strips(
    a_ptr, b_ptr, c_ptr, M, N, K, items, part, stretches,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PIECES: tl.constexpr, AHEAD: tl.constexpr,
    KEEP_A: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """c (parts, M, N) = a (M, K) b (K, N), a sum of `part` products for each part; items: strips of all parts, of which
    `stretches` are in a line of tiles.

    PIECES: tiles of BK that `part` is, of what stays. AHEAD: tiles of the other operand that are loaded before their turn.
    """
    down, across = tl.cdiv(M, BM), tl.cdiv(N, BN)
    lines, along = (down, across) if KEEP_A else (across, down)
    wide = tl.cdiv(along, stretches)
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        split, line, first = item // (lines * stretches), item % lines, item // lines % stretches * wide
        start = split * part
        stop = tl.minimum(K, start + part)
        rows, cols = line * BM + tl.arange(0, BM), line * BN + tl.arange(0, BN)
        deep = [start + p * BK + tl.arange(0, BK) for p in tl.static_range(PIECES)]
        kept = [piece(a_ptr, b_ptr, rows, cols, d, M, N, K, stop, KEEP_A, EVEN) for d in deep]
        tiles = tl.minimum(wide, along - first)
        for i in range(tiles):
            tile = first + (i + line) % tiles
            if KEEP_A:
                cols = tile * BN + tl.arange(0, BN)
            else:
                rows = tile * BM + tl.arange(0, BM)
            acc = tl.zeros((BM, BN), tl.float32)
            for _ in range(0, 1):  # once: the sum has one place in L0C
                other = [
                    piece(a_ptr, b_ptr, rows, cols, d, M, N, K, stop, not KEEP_A, EVEN) for d in deep[:AHEAD]
                ]
                for p in tl.static_range(PIECES):
                    if p + AHEAD < PIECES:
                        d = deep[p + AHEAD]
                        other += [piece(a_ptr, b_ptr, rows, cols, d, M, N, K, stop, not KEEP_A, EVEN)]
                    acc += tl.dot(kept[p], other[p]) if KEEP_A else tl.dot(other[p], kept[p])
            c_ptrs = c_ptr + split * M * N + rows[:, None] * N + cols[None, :]
            out = acc.to(c_ptr.dtype.element_ty)
            if EVEN:
                tl.store(c_ptrs, out)
            else:
                tl.store(c_ptrs, out, mask=(rows < M)[:, None] & (cols < N)[None, :])


class Strips(NamedTuple):
    """How a product is cut into strips: lines of tiles, tiles of a line, stretches of a line, tiles of a stretch at
    most, and strips of all parts of the sum; numbers, or one for each tiling."""

    lines: Array
    along: Array
    stretches: Array
    wide: Array
    count: Array


def strips(
    lengths: tuple[int, int], blocks: tuple[Array, Array], keep_a: Array, parts: Array, cores: Array
) -> Strips:
    """The strips of a product of M x N results in tiles of BM x BN, for so many cores at most.

    Of all numbers of stretches the one is taken with which the core that loads most loads least.
    """
    down, across = (-(-n // b) for n, b in zip(lengths, blocks, strict=True))
    lines, along = np.where(keep_a, down, across), np.where(keep_a, across, down)
    stays, comes = np.where(keep_a, *blocks), np.where(keep_a, *blocks[::-1])
    best, least = np.ones_like(lines), np.full(lines.shape, np.inf)
    for n in range(1, int(np.max(np.minimum(cores, along))) + 1):
        loads = -(-lines * n * parts // cores) * (stays + -(-along // n) * comes)
        better = (loads < least) & (n <= along)
        best, least = np.where(better, n, best), np.where(better, loads, least)
    wide = -(-along // best)
    stretches = -(-along // wide)  # without empty ones
    return Strips(lines, along, stretches, wide, lines * stretches * parts)


def tiles_of_longest(cut: Strips, parts: Array, cores: Array, last: tuple[Array, Array]) -> np.ndarray:
    """(2, 4, points): tiles of a core, on average over all, and of the programs with most strips at least; of which line
    and tile are whole, only the line is, only the tile is, neither is.

    last: whether the last tile along a strip, and the last line, is smaller.
    """
    found, place = each_once(_tiles_of_longest, *cut[:4], parts, cores, *last)
    return np.moveaxis(np.array(found)[place], 0, -1)


@lru_cache(maxsize=1 << 14)
def _tiles_of_longest(
    lines: int, along: int, stretches: int, wide: int, parts: int, cores: int, cut_tile: int, cut_line: int
) -> np.ndarray:
    """Programs are timed as those of their kind are on average: what all have in a round, or those with most rounds."""
    mean = np.outer((lines - cut_line, cut_line), (along - cut_tile, cut_tile)).ravel() * parts / cores
    count = lines * stretches * parts
    if count > MOST_STRIPS:
        return np.stack([mean, 0 * mean])
    item = np.arange(count)
    line, first = item % lines, item // lines % stretches * wide
    low, tiles = cut_line * (line == lines - 1), np.minimum(wide, along - first)
    short = cut_tile * (first + tiles == along)
    each = np.stack([(1 - low) * (tiles - short), (1 - low) * short, low * (tiles - short), low * short])
    rounds, many = -(-count // cores), count - (-(-count // cores) - 1) * cores
    long = sum(
        np.minimum(x.mean(axis=1), x[:, :many].mean(axis=1))
        for x in (each[:, k * cores : (k + 1) * cores] for k in range(rounds))
    )
    return np.stack([mean, long])


def pieces(part: Array, depth: Array) -> Array:
    """Tiles of that depth that a part of the sum is."""
    return -(-part // depth)


def kept_bytes(stays: Array, comes: Array, part: Array, depth: Array, size: int) -> tuple[Array, Array]:
    """Bytes in L1 of what stays and of a tile of the other operand, by the edges of their tiles."""
    return stays * pieces(part, depth) * depth * size, comes * depth * size
