"""Whether programs of a launch meet in memory: one writes or updates what another one reads, writes or updates."""

from __future__ import annotations

import numpy as np

NOBODY, SEVERAL = -1, -2


class Sharing:
    """Of one launch whose programs run one after another. met: whether two of them did."""

    def __init__(self) -> None:
        self.met = False
        self._writers: dict[int, np.ndarray] = {}
        self._readers: dict[int, np.ndarray] = {}

    def access(self, window: np.ndarray, at: np.ndarray, program: int, writes: bool) -> None:
        """Elements of a window are read, or written and updated. Windows of one array share its elements."""
        whole = window if window.base is None else window.base
        first = (
            window.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
        ) // whole.itemsize
        writers, readers = (
            x.setdefault(id(whole), np.full(whole.size, NOBODY)) for x in (self._writers, self._readers)
        )
        places = at + first
        self.met |= _others(writers[places], program) or (writes and _others(readers[places], program))
        if writes:
            writers[places] = program
        else:
            before = readers[places]
            readers[places] = np.where((before == NOBODY) | (before == program), program, SEVERAL)


def _others(owners: np.ndarray, program: int) -> bool:
    return bool(((owners != NOBODY) & (owners != program)).any())
