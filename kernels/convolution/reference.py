"""Convolution backward in float64 by numpy: products of matrices for a few taps at a time, on slices of padded images.

Taps go together where channels are few: a product with three rows would read the other image once for each tap.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product
from typing import Any

import numpy as np

from ..operator.parallel import float64, in_chunks
from .geometry import Geometry

CHUNK_ELEMENTS = 1 << 22  # of the larger image of a chunk of the batch: 32 MiB in float64
ROWS_OF_TAPS = 256  # taps times wide channels of one product
Array = np.ndarray
Taps = tuple[tuple[int, ...], ...]
ALL = slice(None)


def gradients(
    g: Geometry, narrow: Array, wide: Array, weight: Array, gather: bool, weigh: bool
) -> tuple[Array | None, Array | None]:
    """(gradient of the wide image, gradient of the weight) in float64, None where not asked for.

    narrow: (N, groups * narrow_channels, *sizes) of three axes, wide likewise; weight (groups, narrow, wide, *taps).
    """
    found = np.empty(wide.shape) if gather else None
    size = _images(g, wide[0].size, narrow[0].size)

    def one(start: int, stop: int) -> Array | None:
        dy = _grouped(g, float64(narrow[start:stop]), g.narrow_channels)
        if found is not None:
            found[start:stop] = _gathered(g, dy, weight).reshape(wide[start:stop].shape)
        return _weighed(g, dy, wide[start:stop]) if weigh else None

    parts = in_chunks(g.batch, size, one)
    return found, np.sum(parts, axis=0) if weigh else None  # type: ignore[arg-type]


def correlated(g: Geometry, wide: Array, weight: Array) -> Array:
    """The narrow image in float64: the forward convolution, or the gradient of a transposed one."""
    out = np.empty((g.batch, g.groups * g.narrow_channels, *g.narrow_sizes))
    size = _images(g, wide[0].size, out[0].size)

    def one(start: int, stop: int) -> None:
        padded = _padded(g, float64(wide[start:stop]))
        total = np.zeros((stop - start, g.groups, g.narrow_channels, _positions(g)))
        for taps, seen in _windows(g, padded):
            total += np.matmul(_weights(weight, taps), seen)
        out[start:stop] = total.reshape(out[start:stop].shape)

    in_chunks(g.batch, size, one)
    return out


def weigh(g: Geometry, narrow: Array, wide: Array) -> Array:
    """The gradient of the weight alone, (groups, narrow, wide, *taps)."""
    return gradients(g, narrow, wide, np.empty(0), False, True)[1]  # type: ignore[return-value]


def _weighed(g: Geometry, dy: Array, wide: Array) -> Array:
    padded = _padded(g, float64(wide))
    out = np.empty((g.groups, g.narrow_channels, g.wide_channels, *(a.taps for a in g.axes)))
    for taps, seen in _windows(g, padded):
        found = np.matmul(dy, np.swapaxes(seen, -1, -2)).sum(axis=0)
        for tap, part in zip(taps, np.split(found, len(taps), axis=-1), strict=True):
            out[_at(*tap)] = part
    return out


def _gathered(g: Geometry, dy: Array, weight: Array) -> Array:
    batch = len(dy)
    padded = np.zeros((batch, g.groups, g.wide_channels, *_padded_sizes(g)))
    for taps in _taps(g):
        found = np.matmul(np.swapaxes(_weights(weight, taps), -1, -2), dy)
        for tap, part in zip(taps, np.split(found, len(taps), axis=2), strict=True):
            padded[_at(*_window(g, tap))] += part.reshape(batch, g.groups, g.wide_channels, *g.narrow_sizes)
    inside = tuple(slice(a.before, a.before + a.wide) for a in g.axes)
    image: Array = padded[_at(*inside)]
    return image


def _images(g: Geometry, *sizes: int) -> int:
    """Images of a chunk; sizes: elements of one."""
    rows = g.wide_channels * g.groups * min(_together(g), g.taps)
    return max(1, CHUNK_ELEMENTS // max(1, *sizes, rows * _positions(g)))


def _together(g: Geometry) -> int:
    """Taps of one product."""
    return max(1, ROWS_OF_TAPS // max(1, g.wide_channels))


def _weights(weight: Array, taps: Taps) -> Array:
    """(groups, narrow, taps * wide channels)."""
    return np.concatenate([weight[_at(*tap)] for tap in taps], axis=-1)


def _windows(g: Geometry, padded: Array) -> Iterator[tuple[Taps, Array]]:
    """Some taps with the elements that they meet, (N, groups, taps * wide channels, positions)."""
    batch, groups, channels = padded.shape[:3]
    for taps in _taps(g):
        seen = np.empty((batch, groups, len(taps), channels, *g.narrow_sizes))
        for i, tap in enumerate(taps):
            seen[:, :, i] = padded[_at(*_window(g, tap))]
        yield taps, seen.reshape(batch, groups, len(taps) * channels, _positions(g))


def _taps(g: Geometry) -> Iterator[Taps]:
    every = product(*(range(a.taps) for a in g.axes))
    while some := tuple(islice(every, _together(g))):
        yield some


def _window(g: Geometry, tap: tuple[int, ...]) -> tuple[slice, ...]:
    starts = [j * a.dilation for j, a in zip(tap, g.axes, strict=True)]
    return tuple(
        slice(s, s + (a.narrow - 1) * a.stride + 1, a.stride) for s, a in zip(starts, g.axes, strict=True)
    )


def _positions(g: Geometry) -> int:
    return int(np.prod(g.narrow_sizes))


def _padded_sizes(g: Geometry) -> tuple[int, ...]:
    """Room for the padding, and for what the last window reaches."""
    reach = [(a.narrow - 1) * a.stride + (a.taps - 1) * a.dilation + 1 for a in g.axes]
    return tuple(max(r, a.before + a.wide) for r, a in zip(reach, g.axes, strict=True))


def _padded(g: Geometry, wide: Array) -> Array:
    out = np.zeros((len(wide), g.groups, g.wide_channels, *_padded_sizes(g)))
    inside = tuple(slice(a.before, a.before + a.wide) for a in g.axes)
    out[_at(*inside)] = wide.reshape(len(wide), g.groups, g.wide_channels, *g.wide_sizes)
    return out


def _grouped(g: Geometry, x: Array, channels: int) -> Array:
    """(N, C, *sizes) as (N, groups, channels, positions)."""
    return x.reshape(len(x), g.groups, channels, -1)


def _at(*where: int | slice) -> Any:
    """An index of three leading axes that are taken whole."""
    return (ALL, ALL, ALL, *where)
