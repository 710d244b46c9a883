"""Records of explicit buffers: tiles that are put into a buffer in UB or L1, and tiles of L1 that the Vector unit reads.

into UB     a copy by the Vector unit; nothing where the tile is made in the buffer (homes.in_place)
into L1     MTE3 where Cube and Vector share a core; else MTE3 to global memory and MTE2 of the Cube core
out of L1   MTE1 on a shared core; else to global memory, and MTE2 of the Vector core
"""

from __future__ import annotations

from ...ir.building.buffers import moved
from ...ir.program import Op, Value
from ..placement.layouts import TILE
from ..placement.memory_spaces import UB, VIEW
from .cube_core import CubeLowering, plan_bytes

VENDOR_COPY = ("copy", "copy_from_ub_to_l1")


class BufferLowering(CubeLowering):
    """The part of lowering that knows explicit buffers."""

    def record_alloc(self, op: Op) -> None:
        """Room is taken, nothing is done."""

    def record_move(self, op: Op) -> None:
        """A tile goes into a buffer."""
        plan, v, r = self.plan, moved(op), op.results[0]
        if op.name in VENDOR_COPY:
            plan.costs.model.notes[f"al.{op.name}: Triton-Ascend takes it for Ascend 950 only"] = None
        if op.id in plan.homes.in_place:
            root = plan.definitions.root(v)
            assert root is not None
            self.current[r.id] = self.slots_at(((root.id, plan.placement.slot_of[r.id].number),))[0]  # type: ignore[attr-defined]
            return
        self.flush()  # type: ignore[attr-defined]
        if plan.homes.home(r) == UB:
            self._into_ub(op, v)
        else:
            self._into_l1(op, v)

    def _into_ub(self, op: Op, v: Value) -> None:
        whole = self.plan.definitions.root(v) is not None and self.plan.definitions.form(v) == TILE
        cost = self.plan.costs.rows_copied(v) if whole else self.plan.costs.made_real(v)
        reads = self.slots_of(v)  # type: ignore[attr-defined]
        writes, clobbers = self.target(op.results[0])  # type: ignore[attr-defined]
        self._computed(op, cost, reads, writes, clobbers)

    def _into_l1(self, op: Op, v: Value) -> None:
        plan = self.plan
        reads = self.slots_of(v)  # type: ignore[attr-defined]
        if plan.definitions.root(v) is None or plan.definitions.form(v) != TILE:
            reads = self._written_out(op, v)  # type: ignore[attr-defined]
        writes, clobbers = self.target(op.results[0])  # type: ignore[attr-defined]
        self._through_gm_words("UB to L1")
        self._assumed("path.ub_to_l1.fixed_cycles")
        self.stage(op, plan_bytes(v), reads, writes, clobbers)

    def record_from_l1(self, op: Op) -> None:
        """What a buffer in L1 holds, on its way to UB; products read it where it is."""
        plan, r = self.plan, op.results[0]
        if plan.homes.home(r) == VIEW:
            return
        self.flush()  # type: ignore[attr-defined]
        reads = self.slots_of(op.args[0])  # type: ignore[attr-defined]
        writes, clobbers = self.target(r)  # type: ignore[attr-defined]
        size, wiring = plan_bytes(r), plan.wiring
        if wiring.fixp < 0:
            self._assumed("path.l1_to_ub.fixed_cycles")
            fixed, rate = plan.l1_to_ub
            self._fixed(op, wiring.mte1, fixed + size / rate, 0.0, reads, writes, clobbers)
            return
        self._through_gm_words("L1 to UB")
        hop, latency = self.hop(op), plan.fixp_latency + plan.cross_core_cycles
        self.send(op, wiring.fixp, wiring.cube_write[1], size, (plan.fixp_min, latency), reads, hop)
        read = wiring.read[1]
        self._moved(
            op, wiring.mte2, read, size, plan.read_interval, plan.read_latency, (hop,), writes, clobbers
        )

    def _assumed(self, figure: str) -> None:
        product = self.plan.product
        if product.has(figure) and product.figure(figure).assumed:
            self.plan.costs.model.assumed[figure] = None

    def _through_gm_words(self, way: str) -> None:
        plan = self.plan
        if plan.wiring.fixp >= 0:
            how = "; L1 to GM is charged on the Cube's way out, FIXP" if way.startswith("L1") else ""
            plan.costs.model.notes[
                f"{way} goes through global memory: {plan.product.name} has no way between the two{how}"
            ] = None


RECORDED = {
    "alloc": BufferLowering.record_alloc,
    "move": BufferLowering.record_move,
    "from_l1": BufferLowering.record_from_l1,
}
