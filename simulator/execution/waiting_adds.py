"""Additions to memory that wait until their programs have ended, so that they come in the order of the programs.

Programs that run at once reach their additions iteration by iteration, not one program after the other, and
rounding makes the order matter. Where nothing else depends on it (`order.find_order`), tiles are kept and added in the end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..interpreter.regions import AccessRegion
from ..interpreter.tensors import Tensor
from .copies import write


class _Addition(NamedTuple):
    tensor: Tensor
    region: AccessRegion
    tile: np.ndarray  # (P or 1, *shape)


class WaitingAdds:
    """Additions of the programs that run at once."""

    def __init__(self) -> None:
        self.of_program: dict[int, list[tuple[_Addition, int]]] = {}

    def keep(self, tensor: Tensor, region: AccessRegion, tile: np.ndarray, programs: np.ndarray) -> None:
        """Boxes of memory, checked before, to which `programs` add a tile each."""
        addition = _Addition(tensor, region, tile)
        for lane, number in enumerate(programs.tolist()):
            self.of_program.setdefault(number, []).append((addition, lane))

    def make(self, programs: np.ndarray) -> None:
        """Add what waits, program by program in the order given, each in the order of its own."""
        for number in programs.tolist():
            for x, lane in self.of_program.pop(number, ()):
                row = lane if len(x.tile) > 1 else 0
                write(x.tensor, x.region.of_program(lane), x.tile[row : row + 1], adding=True)
