"""Where elements of an output lie, and what memory launches write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ....simulator.call import Call
from ....simulator.execution.chosen.memory_runs import MemoryRuns
from ....simulator.interpreter.program_order.order import directions
from ....simulator.interpreter.tensors import Tensor, as_array, tensor_argument
from .positions import drawn_in_runs
from .refusals import NotSampledError


class OutputMemory:
    """The elements of an output in memory. output: a numpy array or a torch CPU tensor."""

    def __init__(self, output: Any) -> None:
        array = as_array("output", output.detach() if hasattr(output, "detach") else output)
        tensor = tensor_argument("output", array)
        if array is None or tensor is None:
            raise NotSampledError(f"an output is a {type(output).__name__}, of which there are no positions")
        self.array = array
        self.low, self.high = span(tensor)

    def runs(self, positions: np.ndarray) -> tuple[MemoryRuns, np.ndarray]:
        """A run of bytes for each position, by address, and which position each is."""
        index = np.unravel_index(positions, self.array.shape or (1,))
        steps = self.array.strides or (0,)
        at = sum(
            (i.astype(np.int64) * s for i, s in zip(index, steps, strict=True)),
            np.zeros(len(positions), np.int64),
        )
        order = np.argsort(at, kind="stable")
        low = self.array.ctypes.data + at[order]
        return MemoryRuns(low, low + self.array.itemsize), order

    def numbers(self, stored: MemoryRuns, seed: int, count: int) -> np.ndarray:
        """Positions of elements drawn out of memory that was stored to."""
        if not self.array.flags.c_contiguous or not self.array.size:
            return np.empty(0, np.int64)
        mine = stored.within(self.low, self.high)
        size = self.array.itemsize
        low = -(-(mine.low - self.low) // size)
        return drawn_in_runs(low, np.maximum(low, (mine.high - self.low) // size), seed, count)

    def inside(self, stored: MemoryRuns, positions: np.ndarray) -> np.ndarray:
        """Those of the positions that lie in memory that was stored to, by address."""
        runs, order = self.runs(positions)
        run = np.searchsorted(stored.low, runs.low, side="right") - 1
        held = (run >= 0) & (runs.high <= stored.high[run]) if len(stored) else np.zeros(len(runs), bool)
        return np.asarray(positions[order[held]])

    def values(self, positions: np.ndarray) -> np.ndarray:
        """The elements, (n,), in their own dtype."""
        if not self.array.shape:
            return np.asarray(self.array.reshape(1)[positions])
        return np.asarray(self.array[np.unravel_index(positions, self.array.shape)])


def span(tensor: Tensor) -> tuple[int, int]:
    """First byte and behind the last."""
    return tensor.address, tensor.address + tensor.elements * tensor.dtype.itemsize


def spans(call: Call, what: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Memory of the tensors of a launch that it loads ("in") or stores to ("out"), as runs."""
    found = directions(call.program)
    for name, tensor in call.tensors.items():
        if what in found.get(name, "").split():
            low, high = span(tensor)
            yield np.array([low]), np.array([high])


def stored_by(calls: list[Call]) -> MemoryRuns:
    """Memory of all tensors that some of the launches store to."""
    return MemoryRuns.union(run for call in calls for run in spans(call, "out"))


def may_store(call: Call, runs: MemoryRuns) -> bool:
    """Whether a launch has a tensor there that it stores to."""
    return any((np.less(*runs.met(low, high))).any() for low, high in spans(call, "out"))
