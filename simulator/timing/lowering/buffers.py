"""Records of explicit buffers: tiles that are put into a buffer in UB or L1, and tiles of L1 that the Vector unit reads.

into UB     a copy by the Vector unit; nothing where the tile is made in the buffer (spaces.in_place)
into L1     MTE3 where Cube and Vector share a core; else MTE3 to global memory and MTE2 of the Cube core
out of L1   MTE1 on a shared core; else to global memory, and MTE2 of the Vector core
"""

from __future__ import annotations

from ...ir.building.buffers import moved
from ...ir.program import Op, Value
from ..placement.layouts import TILE
from ..placement.memory_spaces import UB, VIEW
from .cube_core import CubeLowering
from .records import LoweringContext, tile_size

VENDOR_COPY = ("copy", "copy_from_ub_to_l1")


class BufferLowering:
    """The part of lowering that knows explicit buffers. recorders: what records an operation, by its kind."""

    def __init__(self, context: LoweringContext, cube: CubeLowering) -> None:
        self.context = context
        self.cube = cube
        self.plan = context.plan
        self.recorders = {
            "alloc": self.record_alloc,
            "move": self.record_move,
            "from_l1": self.record_from_l1,
        }

    def record_alloc(self, op: Op) -> None:
        """Room is taken, nothing is done."""

    def record_move(self, op: Op) -> None:
        """A tile goes into a buffer."""
        context, plan, v, r = self.context, self.plan, moved(op), op.results[0]
        if op.name in VENDOR_COPY:
            plan.costs.model.notes[f"al.{op.name}: Triton-Ascend takes it for Ascend 950 only"] = None
        if op.id in plan.spaces.in_place:
            root = plan.definitions.root(v)
            assert root is not None
            context.current[r.id] = context.slots_at(((root.id, plan.placement.slot_of[r.id].number),))[0]
            return
        context.flush()
        if plan.spaces.space_of(r) == UB:
            self._into_ub(op, v)
        else:
            self._into_l1(op, v)

    def _into_ub(self, op: Op, v: Value) -> None:
        plan = self.plan
        whole = plan.definitions.root(v) is not None and plan.definitions.form(v) == TILE
        cost = plan.costs.rows_copied(v) if whole else plan.costs.made_real(v)
        reads = self.context.slots_of(v)
        self.context.computed(op, cost, reads, *self.context.target(op.results[0]))

    def _into_l1(self, op: Op, v: Value) -> None:
        context, plan = self.context, self.plan
        reads = context.slots_of(v)
        if plan.definitions.root(v) is None or plan.definitions.form(v) != TILE:
            reads = context.written_out(op, v)
        self._warn_through_gm("UB to L1")
        plan.assume("path.ub_to_l1.fixed_cycles")
        self.cube.stage(op, v, reads, *context.target(op.results[0]))

    def record_from_l1(self, op: Op) -> None:
        """What a buffer in L1 holds, on its way to UB; products read it where it is."""
        context, plan, r = self.context, self.plan, op.results[0]
        if plan.spaces.space_of(r) == VIEW:
            return
        context.flush()
        reads, size = context.slots_of(op.args[0]), tile_size(r)
        writes, clobbers = context.target(r)
        if plan.wiring.fixp < 0:
            plan.assume("path.l1_to_ub.fixed_cycles")
            fixed, rate = plan.l1_to_ub
            context.fixed(op, plan.wiring.mte1, fixed + size / rate, 0.0, reads, writes, clobbers)
            return
        self._warn_through_gm("L1 to UB")
        self.cube.hand_to_vector(op, r, size, reads, writes, clobbers)

    def _warn_through_gm(self, path: str) -> None:
        plan = self.plan
        if plan.wiring.fixp >= 0:
            how = "; L1 to GM is charged on the Cube's way out, FIXP" if path.startswith("L1") else ""
            plan.costs.model.notes[
                f"{path} goes through global memory: {plan.product.name} has no way between the two{how}"
            ] = None
