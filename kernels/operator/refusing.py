"""Refusals with the status that the vendor's library gives, in the order in which it checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...simulator.errors import RefusedError
from ...simulator.precision.cube_math import PARAM_INVALID
from ...simulator.products import Product
from .messages import listed
from .tensors import Tensor, dtype_name

TILING_FAILED = 561002


def refuse(message: str, status: int = PARAM_INVALID) -> RefusedError:
    """The error to raise; the message names the parameter, the rule and both values."""
    return RefusedError(message, status, message)


def check_dtype(op: str, name: str, tensor: Tensor, allowed: Iterable[str], product: Product) -> None:
    """Refuse a tensor whose type is not among those of the product."""
    found, have = dtype_name(tensor), tuple(allowed)
    if found not in have:
        raise refuse(f"{op}: {name} is {found}; on {product.name} it must be {listed(have, 'or')}")


def check_same_dtype(op: str, tensors: Mapping[str, Tensor], first: str, names: Iterable[str]) -> None:
    """Refuse tensors whose type is not that of `first`."""
    want = dtype_name(tensors[first])
    for n in names:
        if n in tensors and dtype_name(tensors[n]) != want:
            raise refuse(
                f"{op}: {n} is {dtype_name(tensors[n])}, {first} is {want}; they must be of one type"
            )
