"""Slices of tensors side by side (`precision/splits`): a sum over products of slices is one longer sum."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

from ....simulator.precision import dtypes as ty
from ....simulator.precision.splits import Split
from ...operator.plan import PlanContext, Step
from ...operator.tensors import Knobs, Tensor, element_type, reshaped
from ...shared.splitting import BOTH, Largest, SliceLayout, combine_step, cut_step, largest_of

Products = tuple[tuple[int, int], ...]  # slice of the first operand, of the second
FIRST, SECOND = 0, 1  # operand of a product
PLAIN = "KEEP_DTYPE"  # mode in which slices are multiplied: as they are


TILES = ("taps", "block_m", "block_p", "block_k", "weight_m", "weight_n", "weight_p", "weight_taps")


def with_tiles(knobs: Knobs, used: Knobs) -> dict[str, Any]:
    """Knobs with the tiles that another sum of the same result has."""
    return {**knobs, **{n: used[n] for n in TILES if n in used and n in knobs}}


@dataclass
class Cutter:
    """Slices of tensors side by side. largest: of tensors by name, found once. steps: the launches so far."""

    split: Split
    context: PlanContext
    largest: dict[str, Largest] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    def of(self, name: str, x: Tensor) -> Largest:
        """The largest element of a tensor."""
        if name not in self.largest:
            flat = reshaped(x, (1, x.size))
            self.largest[name] = largest_of(flat, self.split, BOTH, self.context, self.steps)
        return self.largest[name]

    def along(
        self, name: str, x: Tensor, products: Products, operand: int, axis: int, groups: int = 1
    ) -> Tensor:
        """x with its slices of these products along an axis: of each of `groups` parts of that axis all, part by part."""
        numbers = tuple(product[operand] for product in products)
        shape = (*x.shape[:axis], x.shape[axis] * len(numbers), *x.shape[axis + 1 :])
        out = self.context.tensor(shape, element_type(self.split.slices))
        rows = prod(x.shape[:axis]) * groups
        inner = x.size // rows
        flat = reshaped(x, (rows, inner))
        where = SliceLayout(numbers, inner, inner * len(numbers))
        most, cores = self.of(name, x), self.context.product.vector_cores
        self.steps.append(cut_step(flat, most, self.split, out, where, cores))
        return out

    @property
    def kind(self) -> ty.DType:
        """What the Cube adds in."""
        return ty.int32 if self.split.slices == "int8" else ty.float32

    def sums(self, shape: tuple[int, ...]) -> Tensor:
        """Where the sums of a result go, those of each accumulator."""
        return self.context.tensor((len(self.split.groups), *shape), self.kind)

    def whole(self, first: str, second: str, sums: Tensor, out: Tensor) -> None:
        """Adds what makes `out` of sums that have the scales of two tensors."""
        left, right = self.largest[first], self.largest[second]
        cores = self.context.product.vector_cores
        self.steps.append(combine_step(sums, left, right, self.split, out, cores))
