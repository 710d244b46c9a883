"""Records of tiles that pass between Cube and Vector cores through a workspace in global memory.

In code of the vendor's compiler (AscendNPU-IR at commit 52f96a13, lib/Dialect/HIVM/Transforms/InjectBlockSync.cpp and
its test) the receiver sends word when it has read a tile. The sender waits for it before it sends another tile to that
place, and after a loop for the words of the last ones, so that nothing of what follows the loop begins before. Waiting
stops all that comes later on that core (CANN, page of CrossCoreWaitFlag).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...ir.program import Op, Value
from ..costs.provenance import grade_of
from ..placement.slots import Slot
from .records import LoweringContext

Slots = tuple[int, ...]


class Leg(NamedTuple):
    """A transfer of one pipe: its channel, the cycles it takes at least, and those until what it moved can be used.

    later: stages between the operation that asks for it and the other core's, which does it.
    """

    pipe: int
    channel: Any
    cycles: float
    latency: float
    later: int = 0


class HandOvers:
    """Of some programs. to_be_read: by loop, the words that senders in it have not waited for, with the pipe that sends."""

    def __init__(self, context: LoweringContext) -> None:
        self.context = context
        self.plan = context.plan
        self.to_be_read: dict[int, dict[tuple[int, int], tuple[Slot, int]]] = {}

    def record(
        self, op: Op, v: Value, size: int, legs: tuple[Leg, Leg], reads: Slots, writes: Slots, clobbers: Slots
    ) -> None:
        """A tile through the workspace, and word of it to the other core.

        What is sent may be overwritten as soon as the pipe has read it: records of no length before and after the transfer
        say so, since the transfer itself is done only when the other core knows.
        """
        context, workspace, (sent, read) = self.context, self.plan.workspace(op), legs
        hop = context.copy_of(workspace, workspace.loop)[0][:1]  # copies of it alternate in a loop
        again = self.plan.compiled and op.id in self.plan.loop_around
        free = self._wait_for_room(op, v, sent.pipe) if again else ()
        grade = grade_of(self.plan.product, (self.plan.hand_over_figure,))
        word = self.plan.hand_over_cycles
        with context.in_stage(sent.later):
            self._nothing(op, sent.pipe, reads=reads)
            self._moved(op, v, size, sent._replace(latency=sent.latency + word), writes=hop, grade=grade)
            self._nothing(op, sent.pipe, reads=reads)
        with context.in_stage(read.later):
            self._moved(op, v, size, read, reads=hop, writes=writes, clobbers=clobbers)
        if free:  # what was read may be used, and overwritten, before the other core knows
            self._nothing(op, read.pipe, reads=writes)
            self._nothing(op, read.pipe, writes=free, latency=word, grade=grade)

    def loop_done(self, op: Op) -> None:
        """A loop is left: its senders wait until what they sent last was read."""
        for slot, pipe in self.to_be_read.pop(op.id, {}).values():
            self._wait(op, pipe, tuple(s for written, _ in slot.targets for s in written))

    def _wait_for_room(self, op: Op, v: Value, pipe: int) -> Slots:
        """Until what lay in the workspace was read; gives the slot of that word."""
        slot = self.plan.workspace(op, f"free of {v.id}")
        free = self.context.copy_of(slot, slot.loop)[0][:1]
        self.to_be_read.setdefault(self.plan.loop_around[op.id], {})[op.id, v.id] = slot, pipe
        self._wait(op, pipe, free)
        return free

    def _wait(self, op: Op, pipe: int, words: Slots) -> None:
        """On the pipes that bring something to the core of that pipe or take it away; the others follow them."""
        wiring = self.plan.wiring
        vector = (wiring.mte2, wiring.vector, wiring.mte3)
        for p in (wiring.cube_mte2, wiring.fixp) if pipe == wiring.fixp else vector:
            self._nothing(op, p, reads=words)

    def _nothing(self, op: Op, pipe: int, **what: Any) -> None:
        """A record of no length."""
        self.context.add(pipe, op.loc, occupancy=0.0, instructions=0, **what)

    def _moved(self, op: Op, v: Value, size: int, leg: Leg, **what: Any) -> None:
        """A tile through the workspace; half of it where each Vector core has its own. A piece waits for the one before."""
        half, pieces = self.plan.is_shared(v, leg.pipe), self._pieces(op, v, leg.pipe)
        for k in range(pieces):
            before = what.get("writes", ()) if k else ()
            self.context.add(
                leg.pipe,
                op.loc,
                channel=leg.channel,
                amount=size / (pieces * (1 + half)),
                occupancy=leg.cycles,
                latency=leg.latency,
                half=half,
                **{**what, "reads": (*what.get("reads", ()), *before)},
            )

    def _pieces(self, op: Op, v: Value, pipe: int) -> int:
        """Pieces in which a core moves a tile for a product, or its result."""
        cut, wiring = self.plan.placement.pieces, self.plan.wiring
        if pipe == wiring.cube_mte2:
            return cut.of_operand(v)
        return cut.of_product(op) if pipe == wiring.fixp else cut.of_vector(op, v)
