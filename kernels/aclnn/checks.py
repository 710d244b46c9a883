"""Checks that several operators share, each with its status."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from .overlap import overlap, overlaps_itself
from .status import PARAM_INVALID, PARAM_NULLPTR, Refused
from .tensor import PRIVATE, aclTensor


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
