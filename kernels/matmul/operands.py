"""What a cubeMathType, or a split, means for the operands of a matrix product."""

from __future__ import annotations

from typing import NamedTuple

from ...simulator.precision.cube_math import Resolution, resolve_format, resolve_matmul, resolve_split
from ...simulator.precision.splits import SPLITS
from ...simulator.products import Product
from ..operator.tensors import Tensors, dtype_of, element_type
from .scaled import element_name, is_scaled

Products = tuple[tuple[int, int], ...]  # slice of a, slice of b
ONE: Products = ((0, 0),)


def resolve(tensors: Tensors, product: Product, mode: str) -> Resolution:
    """What a mode means for these operands."""
    types = [dtype_of(tensors[n]) for n in ("a", "b")]
    kinds = [t.name for t in types]
    if any(t.is_foreign for t in types) or is_scaled(tensors):
        return resolve_format([element_name(tensors[n]) for n in ("a", "b")], mode)
    length = tensors["a"].shape[-1] if tensors["a"].shape else None  # `check` refuses what has no axes
    return (resolve_split if mode in SPLITS else resolve_matmul)(product, kinds, mode, length)


class CubeOperands(NamedTuple):
    """format: what the Cube reads. size, written: bytes of an element of an operand in memory, and of a result.

    groups: products of slices of each launch; one of whole operands where they are not split.
    """

    format: str
    size: int
    written: int
    groups: tuple[Products, ...]

    @property
    def most_slices(self) -> tuple[int, int]:
        """Slices of a and of b in the launch with most of them."""
        counts = [slice_counts(products) for products in self.groups]
        return max(a for a, _ in counts), max(b for _, b in counts)


def slice_counts(products: Products) -> tuple[int, int]:
    """Slices of a and of b that a launch loads."""
    return 1 + max(i for i, _ in products), 1 + max(j for _, j in products)


def operands(tensors: Tensors, product: Product, mode: str) -> CubeOperands:
    """Of the launches of products in a mode that is not refused."""
    found = resolve(tensors, product, mode)
    compute, written = element_type(found.compute), element_type(found.output())
    read = "hf32" if found.hf32 else compute.name
    groups = found.split.groups if found.split else (ONE,)
    return CubeOperands(read, compute.itemsize, written.itemsize, groups)
