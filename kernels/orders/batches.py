"""The batch of an operator: which of its sizes counts samples, and the first samples of its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...simulator.errors import UsageError
from ..operator.operator import Operator
from ..operator.tensors import Sizes

# Sizes that count samples, the more likely first: rows of a norm, batches of attention, rows of a product, samples of
# images; of a shape the first axis.
COUNTS = ("rows", "b", "m", "n", "shape", "input")
WITH_INPUT = ("grad_output",)  # whose first axis is that of the input
USUAL = 4


@dataclass(frozen=True)
class Batch:
    """name: the size that counts samples; "" if there is none. smaller: numbers of samples beside the largest.

    places: for each input the axis along which its samples lie, as far as it has them.
    """

    name: str
    sizes: Sizes
    largest: int
    smaller: tuple[int, ...]
    places: Mapping[str, int]

    @classmethod
    def of(cls, op: Operator, sizes: Sizes, asked: Sequence[int]) -> Batch:
        """asked: numbers of samples; without, one, a part and all of the case, of which there are then a few at least."""
        name = next((n for n in COUNTS if n in sizes and n in op.sizes), "")
        if not name:
            if asked:
                raise UsageError(f"{op.name} has no size that counts samples; it has {', '.join(op.sizes)}")
            return cls("", sizes, 1, (), {})
        now = _count(sizes[name])
        largest = max(asked) if asked else max(now, USUAL)
        every = tuple(dict.fromkeys(n for n in (asked or (1, largest // 2)) if n != largest))
        changed = with_samples(sizes, name, largest)
        shapes = [op.shapes(with_samples(sizes, name, n), op.dtypes[0]) for n in (largest, largest + 1)]
        places = {n: _axis(x.shape, shapes[1][n].shape) for n, x in shapes[0].items()}
        return cls(name, changed, largest, every, {n: k for n, k in places.items() if k is not None})

    def first(self, samples: int | None, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """The inputs of the first samples; None: of all."""
        if samples is None:
            return inputs
        cut = {n: (*(slice(None),) * axis, slice(samples)) for n, axis in self.places.items()}
        return {n: x[cut[n]] if n in cut else x for n, x in inputs.items()}


def with_samples(sizes: Sizes, name: str, count: int) -> dict[str, Any]:
    """Sizes of a case with so many samples."""
    names = (name, *(n for n in WITH_INPUT if n in sizes and name == "input"))
    return {n: _with_count(x, count) if n in names else x for n, x in sizes.items()}


def _count(size: Any) -> int:
    return int(size if isinstance(size, int) else size[0])


def _with_count(size: Any, count: int) -> Any:
    return count if isinstance(size, int) else (count, *tuple(size)[1:])


def _axis(shape: tuple[int, ...], longer: tuple[int, ...]) -> int | None:
    """The axis that is longer."""
    return next((k for k, (a, b) in enumerate(zip(shape, longer, strict=True)) if a != b), None)
