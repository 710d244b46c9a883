"""One access of the programs that run at once to a tensor, and what every watcher of accesses has."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..interpreter.faults import Site
from ..interpreter.regions import AccessRegion, ElementAddresses
from ..interpreter.tensors import Tensor
from ..ir.program import Op
from ..messages import Message


class Access(NamedTuple):
    """A load, store or atomic of global memory that lies inside of its tensor.

    what: "load", "store", "atomic_add" ... offsets, mask: as the interpreter has them (see interpreter/values.py). One of
    region (boxes; one for all programs if they load the same) and where (window indices of elements, (P or 1, *shape) flat)
    says which memory it is, the other is None. programs: numbers of the programs, one for each lane.
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


class Watcher:
    """Is shown every access of a launch, in the order in which they are carried out, each before it is."""

    def access(self, a: Access) -> None:
        """An access of programs."""

    def found(self) -> tuple[Message, ...]:
        """What is to be said of the launch, once it is over."""
        return ()
