"""The reference of a task at positions. Importing this module imports torch.

reference = ReferenceAt(model, inputs, made)          # made: of lazy_inputs, or None
some = reference.affordable(0, positions)             # as many of the first as the budget allows
reference.values(0, some)                             # float64
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ..lazy_inputs import Repeated
from ..refusals import NotSampledError
from .boxes import at
from .evaluation import BoxEvaluation, Rule
from .graph import Leaf, ModelResult, Source, recorded
from .norms import NORMS
from .products import PRODUCTS
from .reductions import REDUCING
from .simple_rules import SIMPLE, elementwise
from .windows import WINDOWS

RULES: dict[str, Rule] = {**SIMPLE, **REDUCING, **PRODUCTS, **NORMS, **WINDOWS}
MOST_WORK = 18 << 20  # about 0.15 s
LEAST_POSITIONS = 4  # with fewer nothing is said of an output
FEW_POSITIONS = 8  # with fewer of the drawn ones, others are taken that have more in common


class ReferenceAt:
    """The outputs of `model(*inputs)` by element. `NotSampledError`: the model cannot be followed.

    made: the inputs that repeat a file, whose elements are then taken from one period of it.
    """

    def __init__(self, model: Callable[..., Any], inputs: list[Any], made: Repeated | None = None) -> None:
        self.outputs = recorded(model, inputs)
        self.inputs = inputs
        self.periods = {} if made is None else self._periods(made)

    def _periods(self, made: Repeated) -> dict[int, torch.Tensor]:
        return {id(x): made.values(x) for x in self._leaves() if made.of(x) is not None}

    def _leaves(self) -> list[torch.Tensor]:
        """Tensors that have elements, of all outputs."""
        found: dict[int, torch.Tensor] = {}
        seen: set[int] = set()
        left: list[Any] = list(self.outputs)
        while left:
            x = left.pop()
            if isinstance(x, Leaf):
                found[id(x.tensor)] = x.tensor
            elif isinstance(x, ModelResult) and id(x.operation) not in seen:
                seen.add(id(x.operation))
                left.extend(x.operation.arguments.values())
            elif isinstance(x, list | tuple):
                left.extend(x)
        return list(found.values())

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Of the outputs."""
        return [tuple(x.shape) for x in self.outputs]

    @property
    def dtypes(self) -> list[str]:
        """Of the outputs, as torch names them."""
        return [
            str(x.tensor.dtype if isinstance(x, Leaf) else x.dtype).removeprefix("torch.")
            for x in self.outputs
        ]

    def values(self, output: int, positions: np.ndarray) -> np.ndarray:
        """Elements (n,) of an output by their number in row-major order: float64, or the output's integers.

        `NotSampledError`: an operation has no rule, or needs too much.
        """
        if not len(positions):
            return np.empty(0)
        source = self.outputs[output]
        found = self._evaluation(False).value(source, at(positions, source.shape))
        return np.asarray(found.reshape(-1).numpy())

    def work(self, output: int, positions: np.ndarray, most: int = 1 << 62) -> int:
        """Elements that are read and made for these positions, `most` where they are more."""
        evaluation = self._evaluation(True, most)
        source: Source = self.outputs[output]
        try:
            evaluation.value(source, at(positions, source.shape))
        except NotSampledError:
            if evaluation.work <= most:
                raise
            return most
        return evaluation.work

    def affordable(self, output: int, positions: np.ndarray, most: int = MOST_WORK) -> np.ndarray:
        """As many of the first positions as the work allows. `NotSampledError`: those are fewer than `LEAST_POSITIONS`.

        Where these are few, as each takes all of a channel or a row, they are moved to few places along one axis.
        """
        found = self.first(output, positions, most)
        shape = self.shapes[output]
        few = min(FEW_POSITIONS, len(positions))
        for places in (4, 1) if len(found) < few else ():
            moved = [together(positions, shape, axis, places) for axis in range(len(shape))]
            enough = [x for x in moved if self.work(output, x[:few], most) < most]
            found = max((found, *(self.first(output, x, most) for x in enough[:1])), key=len)
            if enough:
                break
        if len(found) < min(LEAST_POSITIONS, len(positions)):
            raise NotSampledError(
                f"the reference of {len(found) + 1} positions of output {output} takes more than {most} elements of work"
            )
        return found

    def first(self, output: int, positions: np.ndarray, most: int = MOST_WORK) -> np.ndarray:
        """As many of the first positions as the work allows, which may be none."""
        low, high = 0, len(positions)
        if self.work(output, positions, most) < most:
            return positions
        while high - low > max(1, low // 16):
            middle = (low + high) // 2
            low, high = (
                (middle, high) if self.work(output, positions[:middle], most) < most else (low, middle)
            )
        return positions[:low]

    def _evaluation(self, counting: bool, most: int = 1 << 40) -> BoxEvaluation:
        return BoxEvaluation(RULES, elementwise, self.periods, counting, most)


def together(positions: np.ndarray, shape: tuple[int, ...], axis: int, places: int) -> np.ndarray:
    """The positions moved along an axis to those of the first `places` of them."""
    index = list(np.unravel_index(positions, shape))
    kept = list(dict.fromkeys(index[axis].tolist()))[:places]
    index[axis] = np.array(kept)[np.arange(len(positions)) % len(kept)]
    moved = np.ravel_multi_index(tuple(index), shape)
    return np.array(list(dict.fromkeys(moved.tolist())), np.int64)
