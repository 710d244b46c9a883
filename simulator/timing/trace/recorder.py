"""Takes the records of lowering: they become code at once, or wait until all iterations of their loop are lowered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .builder import TraceBuilder
from .held import Held
from .tree import BOTH, FIRST, Instruction, Loop, Slots


class Recorder:
    """The records of some programs.

    each: lanes that a program has. drains: slot that every record of a pipe reads, so that one can wait for all of them.
    body: of the loop whose iterations are lowered all at once; None outside of one. core: the Vector core whose iteration it
    is, where two share a loop. way_out: pipe that only the first Vector core takes, where both do the same.
    """

    def __init__(self, builder: TraceBuilder, each: int, drains: dict[int, int], way_out: int = -1) -> None:
        self.builder = builder
        self.each = each
        self.programs = builder.programs * each
        self.drains = drains
        self.way_out = way_out
        self.core: int | None = None
        self.body: list[Any] | None = None
        self.stage = 0  # of the body around that runs in stages
        self.held: Held | None = None  # records of such a loop, where its iterations come one by one

    def cores(self, pipe: int) -> Slots:
        """The Vector cores that have a record of a pipe."""
        pair = self.builder.pair
        if pair is None or pipe not in pair.own:
            return FIRST
        if self.core is not None:
            return (self.core,)
        return FIRST if pipe == self.way_out else BOTH

    def add(self, x: Instruction, active: np.ndarray | None) -> None:
        """Append a record of lanes. active: those that have it, None for all."""
        if x.pipe in self.drains:
            x = x._replace(reads=(*x.reads, self.drains[x.pipe]))
        if self.builder.pair is not None:
            x = x._replace(cores=self.cores(x.pipe))
        if self.body is not None:
            self.body.append(x._replace(stage=self.stage) if self.stage else x)
        elif self.builder.pair is None and x.same_in_all:
            self._make(self.builder.same, x, active)
        else:
            self._make(self.builder.take, [x], active, self.each)

    def _make(self, make: Callable[..., None], *arguments: Any) -> None:
        """Now, or when the stage has its turn."""
        if self.held is None:
            make(*arguments)
        else:
            self.held.put(self.stage, make, *arguments)

    def add_fixed(
        self,
        pipe: int,
        line: int,
        occupancy: float,
        latency: float,
        instructions: int,
        reads: Slots,
        writes: Slots,
        clobbers: Slots,
        active: np.ndarray | None,
    ) -> None:
        """`add` for a cost that is the same in all lanes: the common case, kept short."""
        if self.body is None and self.builder.pair is None:
            if pipe in self.drains:
                reads = (*reads, self.drains[pipe])
            slots = reads, writes, clobbers
            numbers = pipe, line, occupancy, latency, -1, 0.0, instructions
            if self.held is None:
                self.builder.fixed(*numbers, slots, active)
            else:
                self.held.put(self.stage, self.builder.fixed, *numbers, slots, active)
        else:
            self.add(
                Instruction(pipe, line, occupancy, latency, -1, 0, instructions, reads, writes, clobbers),
                active,
            )

    def take(self, loop: Loop, active: np.ndarray | None) -> None:
        """Append a loop of lanes."""
        if self.body is not None:
            self.body.append(loop)
            return
        if (
            self.held is not None and loop.ahead > 1
        ):  # the loop itself goes on, after the iterations that wait
            self.held.finish()
            self.builder.take([loop], active, self.each)
        else:
            self._make(self.builder.take, [loop], active, self.each)

    # -- loops whose iterations come one by one ----------------------------------------------------------------------

    def loop_begins(self, ahead: int = 1, rounds: int = 1) -> None:
        """ahead, rounds: of a loop whose stages run apart, see `Held`."""
        if self.body is not None:
            return
        if self.held is not None:
            self.held.inner += 1
            return
        self.builder.repeats.begin()
        if ahead > 1:
            self.held = Held(ahead, rounds, self._iteration_made)

    def iteration_ends(self) -> None:
        if self.body is not None:
            return
        if self.held is None:
            self._iteration_made()
        elif not self.held.inner:
            self.held.next()

    def loop_ends(self) -> None:
        if self.body is not None:
            return
        if self.held is not None and self.held.inner:
            self.held.inner -= 1
            return
        if self.held is not None:
            self.held.finish()
            self.held, self.stage = None, 0
        self.builder.repeats.end()

    def _iteration_made(self) -> None:
        self.builder.repeats.next()
        self.builder.settle_if_many()
