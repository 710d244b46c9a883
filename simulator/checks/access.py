"""One access of the programs that run at once to a tensor, and what every watcher of accesses has."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..interpreter.faults import Site
from ..interpreter.regions import AccessRegion, ElementAddresses
from ..interpreter.tensors import Tensor
from ..ir.program import Op
from ..messages import Message
from .memory._runs import Runs


class Access(NamedTuple):
    """A load, store or atomic of global memory that lies inside of its tensor.

    what: "load", "store", "atomic_add" ... offsets, mask: as the interpreter has them (see interpreter/values.py). One of
    region (boxes; one for all programs if they load the same) and where (window indices of elements, (P or 1, *shape) flat)
    says which memory it is, the other is None. programs: numbers of the programs, one for each lane. value: the tile that is
    stored or added as a box, (P or 1, *shape); None for what is loaded. vector_cores: which Vector core of its program each
    lane is, 0 or 1; None for a kernel or a part of one that does not ask.
    """

    op: Op
    what: str
    tensor: Tensor
    offsets: Any
    mask: Any
    region: AccessRegion | None
    where: ElementAddresses | None
    programs: np.ndarray
    site: Site
    value: np.ndarray | None = None
    vector_cores: np.ndarray | None = None

    @property
    def bare(self) -> Access:
        """What to keep of it: without what is large."""
        return self._replace(offsets=None, mask=None, value=None)

    @property
    def size(self) -> int:
        """What keeping it takes: its lanes, or its single elements."""
        return len(self.programs) if self.where is None else len(self.where.at)

    def of_lane(self, lane: int) -> Access:
        """What one of the lanes does."""
        only = slice(lane, lane + 1)
        cores = None if self.vector_cores is None else self.vector_cores[only]
        a = self._replace(programs=self.programs[only], vector_cores=cores)
        if self.region is not None:
            return a._replace(
                region=self.region.of_program(lane) if self.region.programs > 1 else self.region
            )
        assert self.where is not None
        return a._replace(where=self.where.of_program(lane))

    @property
    def runs(self) -> Runs:
        """The elements in the order of memory, lane by lane."""
        if self.region is not None:
            r = self.region
            return Runs(r.starts, r.strides, r.lows, r.highs)
        assert self.where is not None
        return Runs.of_elements(self.where.at, self.where.chosen, max(1, self.where.shape[0]))

    @property
    def places(self) -> tuple[int, int | None]:
        """Of an access of one lane: how many elements it touches, and the byte address if it is one element."""
        if self.region is not None:
            sizes = np.maximum(self.region.highs[0] - self.region.lows[0], 0)
            count = int(sizes.prod())
            at = self.region.starts[0] + (self.region.lows[0] * self.region.strides[0]).sum()
        elif self.where is not None and len(self.where.at) == 1:
            count = int(self.where.chosen[0]) if len(self.where.chosen) else 1
            at = self.where.at[0]
        else:
            assert self.where is not None
            chosen = self.where.at[self.where.chosen.view(bool)] if len(self.where.chosen) else self.where.at
            count, at = len(chosen), chosen[0] if len(chosen) else 0
        size = self.tensor.dtype.itemsize
        return count, self.tensor.address + int(at) * size if count == 1 else None


class Watcher:
    """Is shown every access of a launch, in the order in which they are carried out, each before it is."""

    def tensors(self, given: list[Tensor]) -> None:
        """The arguments of a run that lie in memory; before its first access."""

    def begins(self, at_once: int) -> None:
        """A run with other arguments than the one before begins, after `tensors`; at_once: its programs."""

    def access(self, a: Access) -> None:
        """An access of programs."""

    @property
    def crossing(self) -> frozenset[int]:
        """Operations (by id) of one core that use a tile of the other one: `handed_over` is to be told of them."""
        return frozenset()

    def handed_over(self, op: Op, programs: np.ndarray, part: str) -> None:
        """A core goes on with a tile of the other one; part: as of `synced`."""

    def synced(self, op: Op, event: Any, programs: np.ndarray, part: str) -> None:
        """A flag or a barrier between cores is passed; event: its number, or one for each program.

        part: "cube" or "vector" if the parts of the two cores are interpreted side by side, else "".
        """

    def gives_way(self, programs: np.ndarray) -> None:
        """Programs wait for what others write, and go on later."""

    def found(self) -> tuple[Message, ...]:
        """What is to be said of the launch, once it is over."""
        return ()
