"""What the answer's process does where values are looked at in positions. Importing this module imports torch.

Launches are only timed while the answer runs. When a call has returned, the positions are read, from a file that nobody
opened before, and the programs that write them are computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from ....simulator.call import Call
from ....simulator.observers import watch_calls
from ..processes.arrays import unpacked
from .deferred import DeferredLaunches
from .lazy_inputs import LARGE, LazyFilling, Repeated, aliases, tensors_of, value_file
from .refusals import NotSampledError
from .repeated import PERIOD, ValueFile
from .repeated_arrays import RepeatedArrays, files_of

MOST_BYTES = 1 << 32


class SampledCalls:
    """The calls of one answer, one after another. layouts, fds: of the request."""

    def __init__(self, layouts: Mapping[str, Any], fds: Mapping[str, int]) -> None:
        self.layouts, self.fds = layouts, fds
        self.made = Repeated()
        self.launches = DeferredLaunches()
        self.refused = ""
        self.inputs = RepeatedArrays(self.made)

    def arrays(self, arrays: Mapping[str, np.ndarray]) -> RepeatedArrays:
        """Those of the first call's message, with the files that came beside it."""
        self.inputs = RepeatedArrays(self.made, files_of(self.fds, "first"))
        self.inputs.update(arrays)
        return self.inputs

    @contextmanager
    def watching(self) -> Iterator[None]:
        """A block whose launches are kept, and in which large tensors take no memory."""
        with watch_calls(self._called), _HostWork(self):
            yield

    def _called(self, call: Call) -> None:
        self.launches.calls.append(call)

    def begin(self) -> None:
        """A call begins."""
        self.launches, self.refused = DeferredLaunches(), ""

    def refill(self) -> None:
        """Put the second call's values into the large inputs."""
        self.inputs.refill(files_of(self.fds, "second"))

    def values(self, outputs: list[Any], call: str, path: str) -> dict[str, np.ndarray]:
        """Arrays of positions, values, and which were written, of each output that is a tensor.

        `NotSampledError`: they cannot be had, or something that the answer did could not be deferred.
        """
        if self.refused:
            raise NotSampledError(self.refused)
        name = f"positions.{call}"
        given = unpacked(self.layouts[name], self.fds[name], MOST_BYTES)
        asked = {
            n: (x, np.array(given[str(n)][given[str(n)] < x.numel()]), int(given["seed"][0]) + n)
            for n, x in enumerate(outputs)
            if isinstance(x, torch.Tensor) and str(n) in given
        }
        found: dict[str, np.ndarray] = {}
        for n, sampled in zip(asked, self.launches.values_of(list(asked.values())), strict=True):
            found |= {
                f"{path}.{n}.positions": sampled.positions,
                f"{path}.{n}.values": sampled.values,
                f"{path}.{n}.written": sampled.written,
            }
        return found


class _HostWork(LazyFilling):
    """What torch does beside launches: before it reads what a launch is yet to write, all launches are computed.

    Memory that `torch.empty` gives holds NaN, so that what nobody wrote is wrong every time in the same way.
    """

    def __init__(self, calls: SampledCalls) -> None:
        super().__init__(calls.made)
        self.calls = calls
        self.poisons: dict[torch.dtype, ValueFile] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        try:
            touched = [x for x in tensors_of((args, kwargs or {})) if x.numel()]
            if not aliases(func) and any(self.calls.launches.touches(x) for x in touched):
                self.calls.launches.compute_all(f"{func}, on what a kernel reads or writes, needs all of it")
            out = super().__torch_dispatch__(func, types, args, kwargs)
        except NotSampledError as e:
            self.calls.refused = self.calls.refused or str(e)
            raise
        if "empty" in func.overloadpacket.__name__ and out.device.type == "cpu" and out.numel() < LARGE:
            out.fill_(_poison(out.dtype))
        return out

    def unfilled(self, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        if "zeros" in name:
            return super().unfilled(name, shape, dtype)
        if dtype not in self.poisons:
            self.poisons[dtype] = value_file(torch.full((PERIOD,), _poison(dtype), dtype=dtype))
        return self.made.mapped(shape, self.poisons[dtype], dtype)


def _poison(dtype: torch.dtype) -> float | int:
    """What memory holds that nobody wrote."""
    if dtype.is_floating_point or dtype.is_complex:
        return float("nan")
    return 1 if dtype == torch.bool else 0x5A
