"""The two Vector cores of a program: which of them have a record, on which pipes and in which slots.

A Vector core has pipes and buffers of its own. What the Cube does is there once, and means the slots of both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from .rotating import Rotating
from .tree import SECOND, Instruction, Slots


class Pair:
    """Args:
    own: pipes of the first Vector core; those of the second have numbers larger by `len(own)`.
    private: whether a Vector core has a slot for itself. joint: whether who reads such a slot waits for both cores.
    second: the second core's slot for a slot of the first.
    total: programs of the grid; a lane of so many more is that of the second Vector core.
    again: channel on which the second core loads what the first has just loaded, for each.
    """

    def __init__(
        self,
        own: Collection[int],
        private: Callable[[int], bool],
        joint: Callable[[int], bool],
        second: Callable[[int], int],
        total: int,
        again: Mapping[int, int],
    ) -> None:
        self.own, self.shift = own, len(own)
        self.private, self.joint, self.second = private, joint, second
        self.total = total
        self.again = again

    def pipe(self, pipe: int, core: int) -> int:
        """That of one Vector core."""
        return pipe + core * self.shift

    def channel(self, channel: int, core: int, x: Instruction) -> int:
        """The second core finds in L2 what both load."""
        return self.again.get(channel, channel) if core and len(x.cores) > 1 else channel

    def slots(self, slots: Slots, core: int, pipe: int, reading: bool, rotating: Rotating) -> Slots:
        """Slots as one Vector core has them; the Cube's side, and who waits in a barrier, mean those of both."""
        out: list[int] = []
        for s in slots:
            if s < 0:
                choices, counter, count = rotating.meaning[-1 - s]
                mine = [self.slots(c, core, pipe, reading, rotating) for c in choices]
                if max(map(len, mine)) == max(map(len, choices)):
                    out.append(rotating.number(tuple(mine), counter, count))
                else:  # of both cores
                    out += [rotating.number(tuple(c[k::2] for c in mine), counter, count) for k in range(2)]
            elif not self.private(s):
                out.append(s)
            elif pipe in self.own and not (reading and self.joint(s)):
                out.append(self.second(s) if core else s)
            else:
                out += (s, self.second(s))
        return tuple(out)

    def lanes(
        self, core: int, active: np.ndarray | None, programs: int, each: int
    ) -> tuple[Any, np.ndarray | None]:
        """(lanes of one Vector core, None for all, and its programs, None for all).

        each: lanes that a program has; with one, what is asked of a Vector core is asked of both.
        """
        if each == 1:
            return None, active
        if active is None:
            return slice(core * programs, (core + 1) * programs), None
        mine = np.flatnonzero((active >= self.total) == (core == SECOND[0]))
        return mine, None if len(mine) == programs else active[mine] - core * self.total
