"""Whether elements of tensors lie in the same place of the device's memory."""

from __future__ import annotations

import numpy as np

from .tensor import aclTensor


def overlaps_itself(x: aclTensor) -> bool:
    """Whether two elements of a tensor have one address."""
    steps = sorted((abs(s), n) for n, s in zip(x.shape, x.strides, strict=True) if n > 1)
    reach = 0
    for step, n in steps:  # each axis steps over all that the smaller ones reach: no address comes twice
        if step <= reach:
            return int(np.count_nonzero(_places(x, *_ends(x)))) < x.size
        reach += step * (n - 1)
    return False


def overlap(a: aclTensor, b: aclTensor) -> bool:
    """Whether two tensors have a byte in common; tensors without memory overlap only themselves."""
    if not a.size or not b.size:
        return False
    if a is b:
        return True
    if a.data is None or a.data is not b.data:
        return False
    (low, high), (first, last) = _bytes(a), _bytes(b)
    if last <= low or high <= first:
        return False
    start, stop = min(low, first), max(high, last)
    return bool((_byte_map(a, start, stop) & _byte_map(b, start, stop)).any())


def same_place(a: aclTensor, b: aclTensor) -> bool:
    """Whether each element of two tensors that overlap has the address of the other's."""
    steps = [[s for n, s in zip(x.shape, x.strides, strict=True) if n > 1] for x in (a, b)]
    bytes_each = {x.dtype.itemsize for x in (a, b)}
    return a.shape == b.shape and a.offset == b.offset and len(bytes_each) == 1 and steps[0] == steps[1]


def _ends(x: aclTensor) -> tuple[int, int]:
    """The first element of the storage that it has, and the one behind its last."""
    ends = [(n - 1) * s for n, s in zip(x.shape, x.strides, strict=True)]
    return x.offset + sum(min(0, e) for e in ends), x.offset + sum(max(0, e) for e in ends) + 1


def _bytes(x: aclTensor) -> tuple[int, int]:
    low, high = _ends(x)
    return low * x.dtype.itemsize, high * x.dtype.itemsize


def _places(x: aclTensor, low: int, high: int) -> np.ndarray:
    """Which elements of [low, high) of the storage belong to the tensor."""
    marks = np.zeros(high - low, bool)
    np.lib.stride_tricks.as_strided(marks[x.offset - low :], x.shape, x.strides)[...] = True
    return marks


def _byte_map(x: aclTensor, start: int, stop: int) -> np.ndarray:
    marks = np.zeros(stop - start, bool)
    low, high = _bytes(x)
    marks[low - start : high - start] = np.repeat(_places(x, *_ends(x)), x.dtype.itemsize)
    return marks
