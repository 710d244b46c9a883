"""Checks that several operators share, each with its status, and whether elements of tensors lie in one place of memory."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from .status import PARAM_INVALID, PARAM_NULLPTR, Refused
from .tensor import PRIVATE, aclTensor


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


def check_present(parameters: Mapping[str, object]) -> None:
    """161001 for the first parameter that is null."""
    for name, x in parameters.items():
        if x is None:
            raise Refused(PARAM_NULLPTR, f"{name} is null; it is required")


def check_wanted(wanted: Mapping[str, tuple[bool, object, str]]) -> None:
    """161001 for the first wanted output that is null: name -> (wanted, tensor, what asks for it)."""
    for name, (asked, x, why) in wanted.items():
        if asked and x is None:
            raise Refused(PARAM_NULLPTR, f"{name} is null; {why} asks for it")


def check_not_private(tensors: Mapping[str, aclTensor | None], status: int = PARAM_INVALID) -> None:
    """A format that belongs to the device; 161002, or the status given."""
    for name, x in tensors.items():
        if x is not None and x.format in PRIVATE:
            raise Refused(
                status,
                f"{name} has format {x.format.name}, which is private; it must be a public one such as ACL_FORMAT_ND",
            )


def check_same_format(first: str, a: aclTensor, second: str, b: aclTensor) -> None:
    if a.format != b.format:
        raise Refused(
            PARAM_INVALID,
            f"{first} has format {a.format.name}, {second} has {b.format.name}; they must be equal",
        )


def check_shape(name: str, tensor: aclTensor, want: tuple[int, ...], rule: str) -> None:
    if tensor.shape != want:
        raise Refused(PARAM_INVALID, f"{name} has shape {tensor.shape}; it must be {want}, {rule}")


def check_writable(tensors: Mapping[str, aclTensor | None]) -> None:
    """161002 for an output whose elements share memory, with one another or with those of another output."""
    present = {n: x for n, x in tensors.items() if x is not None and x.size}
    for name, x in present.items():
        if any(s == 0 and n > 1 for n, s in zip(x.shape, x.strides, strict=True)):
            raise Refused(
                PARAM_INVALID,
                f"{name} has strides {x.strides} for shape {x.shape}; a stride of 0 is for inputs only",
            )
        if overlaps_itself(x):
            raise Refused(
                PARAM_INVALID,
                f"{name} has strides {x.strides} for shape {x.shape}: some of its elements share memory; an output needs "
                "one place for each",
            )
    for (first, a), (second, b) in combinations(present.items(), 2):
        if overlap(a, b):
            raise Refused(
                PARAM_INVALID, f"{second} shares memory with {first}; each output needs memory of its own"
            )
