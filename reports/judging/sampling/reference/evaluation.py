"""Boxes of the results of operations, each from boxes of its operands, in float64; of integers in their own type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ..refusals import NotSampledError
from ..repeated import PERIOD
from .boxes import Boxes
from .graph import Leaf, ModelOperation, ModelResult, Source

AT_ONCE = 1 << 22  # elements of the operands of one operation that are there at a time
LONG = 256  # elements of the last axis of a box from which it is copied as a slice
# Work in elements that are read as slices.
OF_GATHERED = 3  # an element that is gathered
OF_PLACE = 20  # a place that is computed
MOST_POINTS = 1 << 24

# (evaluation, operation, which of its results, boxes) -> values, (n, *sizes)
Rule = Callable[["BoxEvaluation", ModelOperation, int, Boxes], torch.Tensor]


class BoxEvaluation:
    """One evaluation. rules: by name of the operation; elementwise: of those without.

    periods: one period of the leaves that repeat it, by id of their tensor. counting: only the work is found, no element is
    computed. most: work after which `NotSampledError` is raised. work: elements read and made so far, weighed by what it
    takes to reach them.
    """

    def __init__(
        self,
        rules: dict[str, Rule],
        elementwise: Rule,
        periods: dict[int, torch.Tensor],
        counting: bool = False,
        most: int = 1 << 40,
    ) -> None:
        self.rules, self.elementwise, self.periods = rules, elementwise, periods
        self.counting, self.most = counting, most
        self.work = 0

    def value(self, source: Source, boxes: Boxes) -> torch.Tensor:
        """(n, *sizes)"""
        once, inverse = boxes.unique(source.shape)
        out = self._leaf(source, once) if isinstance(source, Leaf) else self._result(source, once)
        self.worked(out.numel())
        return out if inverse is None else out[self.index(inverse)]

    def worked(self, elements: int) -> None:
        """Count work, in elements of a slice that is read."""
        self.work += elements
        if self.work > self.most:
            raise NotSampledError(f"the reference takes more than {self.most} elements of work")

    def _result(self, source: ModelResult, boxes: Boxes) -> torch.Tensor:
        operation = source.operation
        rule = self.rules.get(operation.name)
        if rule is None:
            if torch.Tag.pointwise not in operation.func.tags:
                raise NotSampledError(f"the reference has no rule for {operation.func}")
            rule = self.elementwise
        return rule(self, operation, source.index, boxes)

    def _leaf(self, leaf: Leaf, boxes: Boxes) -> torch.Tensor:
        dtype = torch.float64 if leaf.tensor.is_floating_point() else leaf.tensor.dtype
        shape = (boxes.number, *boxes.sizes)
        if not _in_rows(boxes):
            self.worked((OF_GATHERED - 1) * boxes.number * boxes.elements)
        if self.counting:
            return torch.empty(shape, dtype=dtype, device="meta")
        return (
            self._slices(leaf, boxes, dtype)
            if _in_rows(boxes)
            else self._gathered(leaf.tensor, boxes).to(dtype)
        )

    def _gathered(self, tensor: torch.Tensor, boxes: Boxes) -> torch.Tensor:
        steps = np.array(tensor.stride(), np.int64)
        first = boxes.starts @ steps if len(steps) else np.zeros(boxes.number, np.int64)
        inner = np.zeros((), np.int64)
        for n, step in zip(boxes.sizes, steps, strict=True):
            inner = inner[..., None] + np.arange(n) * step
        where = first.reshape(-1, *(1,) * inner.ndim) + inner
        return self._taken(tensor, where)

    def _taken(self, tensor: torch.Tensor, where: np.ndarray) -> torch.Tensor:
        """Elements by their distance from the first."""
        period = self.periods.get(id(tensor))
        if period is not None:
            return period[torch.from_numpy(where % PERIOD)]
        reach = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
        flat = tensor.as_strided((reach,), (1,))
        return flat[torch.from_numpy(where)]

    @staticmethod
    def _slices(leaf: Leaf, boxes: Boxes, dtype: torch.dtype) -> torch.Tensor:
        out = torch.empty((boxes.number, *boxes.sizes), dtype=dtype)
        for k, start in enumerate(boxes.starts.tolist()):
            at = tuple(slice(s, s + n) for s, n in zip(start, boxes.sizes, strict=True))
            out[k] = leaf.tensor[at]
        return out

    # -- what rules are made of --------------------------------------------------------------------------------------

    def index(self, x: np.ndarray) -> torch.Tensor:
        """An array of numbers as a tensor where the elements are."""
        return torch.from_numpy(np.ascontiguousarray(x)).to("meta" if self.counting else "cpu")

    def in_pieces(self, boxes: Boxes, elements: int, make: Callable[[Boxes], torch.Tensor]) -> torch.Tensor:
        """Some of the boxes at a time, of which each needs so many elements of operands; each box that occurs once only."""
        size = max(1, AT_ONCE // max(1, elements))
        pieces = [make(boxes.rows(slice(k, k + size))) for k in range(0, boxes.number, size)]
        return torch.cat(pieces)

    def part(self, x: torch.Tensor, axis: int, starts: np.ndarray, size: int) -> torch.Tensor:
        """Of each box of `x`, (n, ...), `size` elements along an axis, from a place of its own."""
        where = starts[:, None] + np.arange(size)
        shape = [len(starts), *(1,) * (x.ndim - 1)]
        shape[axis + 1] = size
        wide = (*x.shape[: axis + 1], size, *x.shape[axis + 2 :])
        return torch.gather(x, axis + 1, self.index(where.reshape(shape)).expand(wide))

    def by_points(self, boxes: Boxes, make: Callable[[Boxes], torch.Tensor]) -> torch.Tensor:
        """Element by element: make gives (n, 1, ..., 1)."""
        if boxes.number * boxes.elements > MOST_POINTS:
            raise NotSampledError(
                f"the reference would go through {boxes.number * boxes.elements} elements one by one, over {MOST_POINTS}"
            )
        self.worked(OF_PLACE * boxes.number * boxes.elements)
        return make(boxes.points()).reshape(boxes.number, *boxes.sizes)


def _in_rows(boxes: Boxes) -> bool:
    """Whether elements are read as slices."""
    return bool(boxes.sizes) and boxes.sizes[-1] >= LONG


def source_of(x: Any) -> Source | None:
    """An argument that is a tensor."""
    return x if isinstance(x, Leaf | ModelResult) else None


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the front."""
    return axis + rank if axis < 0 else axis


def axes_of(axes: Any, rank: int) -> list[int]:
    """Axes counted from the front; None and an empty list are all of them."""
    if axes is None or axes == []:
        return list(range(rank))
    return sorted(axis_of(k, rank) for k in ([axes] if isinstance(axes, int) else axes))
