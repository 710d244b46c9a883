"""Records of the Cube's side: GM to L1, L1 to L0A and L0B, Mmad, L0C to GM or on to UB, and the hand-overs with AIV."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...interpreter.interpreter import Walker
from ...interpreter.values import Affine, Pointers
from ...ir.program import Op, Value
from ...precision.dtypes import DType
from ..costs.model import Cost
from ..costs.provenance import BEST, CROSSING, grade_of
from ..costs.transfers import boxed
from ..placement.accumulator_inits import BT
from ..placement.allocate import BIAS_IN_L1
from ..placement.layouts import BLOCK_BYTES, align, table_bytes
from ..placement.slots import Slot
from ..trace.recorder import Recorder
from .context import Plan


class CubeLowering(Walker):
    """The part of lowering that knows the Cube."""

    plan: Plan
    recorder: Recorder
    current: dict[int, int]
    products: tuple[int, int]  # loads to L0A and to L0B so far
    pending_bias: dict[tuple[int, ...], tuple[int, ...]]  # of the first product into a place in L0C

    def cube_load(self, op: Op, pointer: Pointers, mask: Any) -> None:
        """A tile that is loaded to be an operand: GM to L1, ND to NZ on the way."""
        plan, r = self.plan, op.results[0]
        self.flush(cube=True)  # type: ignore[attr-defined]
        writes, clobbers = self.target(r)  # type: ignore[attr-defined]
        slots = {"writes": writes, "clobbers": clobbers}
        wiring = plan.wiring
        if not isinstance(pointer.offsets, Affine) or not boxed(mask):
            run = op.attrs.get("run", 1)
            n, size = r.numel // run, align(run * plan_bytes(r) // r.numel, BLOCK_BYTES)
            things = "elements" if run == 1 else f"rows of {run} elements"
            plan.warn(op, f"discrete load: {n} {things}, one transfer of {size} bytes each")
            amount: Any = n * size
            what = {**slots, "occupancy": n * plan.l1_interval, "latency": plan.l1_latency, "instructions": n}
            every = np.ones(len(self.active))
            self._transfer(op, wiring.cube_mte2, wiring.cube_read, amount, every, what)  # type: ignore[attr-defined]
            return
        assert isinstance(r.dtype, DType)
        amount, bursts, elements = self.traffic(pointer.tensor, pointer.offsets, mask, r.dtype.itemsize)  # type: ignore[attr-defined]
        self._check_bursts(op, r, bursts, elements)  # type: ignore[attr-defined]
        first, many = self.first_share(op, pointer, mask, amount)  # type: ignore[attr-defined]
        least = self.least_in(op, plan.l1_way, pointer, mask, (amount, bursts), many)  # type: ignore[attr-defined]
        what = {**slots, "latency": plan.l1_latency, **least}
        self._transfer(op, wiring.cube_mte2, wiring.cube_read, amount, first, what)  # type: ignore[attr-defined]

    def record_dot(self, op: Op) -> None:
        """One product: its L0 tiles, each loaded to L0A and L0B (in ping-pong) and multiplied into L0C."""
        self.flush(cube=True)  # type: ignore[attr-defined]
        plan, r = self.plan, op.results[0]
        # One flag says that both operands are in L1, one that both were read: EX matmul_high_performance cases 0 to 3, with
        # one buffer each, take the time of both loads and of both copies to L0.
        both = (*self._operand_slots(op, 0), *self._operand_slots(op, 1))
        writes, clobbers = self.target(r)  # type: ignore[attr-defined]
        bias = (*self._bias_slots(op.args[2]), *self.pending_bias.pop(writes, ()))
        kept = plan.kept_operand(op)
        for part in plan.product_parts(op):
            pair = self.half(0, kept != 0), self.half(1, kept != 1)
            for side, cycles in enumerate((part.a_cycles, part.b_cycles)):
                if side != kept:
                    self._fixed(op, plan.wiring.mte1, cycles, 0.0, both, (pair[side],), ())
            self._fixed(op, plan.wiring.mmad, part.m_cycles, 0.0, (*pair, *bias), writes, clobbers)
        if r.id in plan.homes.copied_to_ub:
            self.to_ub(op, r)
            self.add_start(op, r)

    def _bias_slots(self, start: Value | None) -> tuple[int, ...]:
        """The place of the row in the bias table that a tile repeats, if it is there."""
        root = None if start is None else self.plan.definitions.root(start)
        there = root is not None and self.plan.homes.home(root) == BT
        return self.slots_of(root) if there else ()  # type: ignore[attr-defined]

    def start_sum(self, start: Value, slot: Slot) -> None:
        """A loop begins to sum in L0C: its first product reads the row that the sum starts from."""
        bias = self._bias_slots(start)
        if bias:
            self.pending_bias[slot.targets[0][0]] = bias

    def bias_load(self, op: Op, pointer: Pointers, mask: Any) -> None:
        """A row for the bias table: GM to L1, and MTE1 from there."""
        plan, r = self.plan, op.results[0]
        self.flush(cube=True)  # type: ignore[attr-defined]
        middle = plan.placement.l1_copy[(op.id, BIAS_IN_L1)]
        writes, clobbers = self.target(r)  # type: ignore[attr-defined]
        slots = {"writes": (middle.number,), "clobbers": middle.targets[0][1]}
        assert isinstance(pointer.offsets, Affine)
        amount, rows, _ = self.traffic(pointer.tensor, pointer.offsets, mask, plan_bytes(r) // r.numel)  # type: ignore[attr-defined]
        first, many = self.first_share(op, pointer, mask, amount)  # type: ignore[attr-defined]
        latency = plan.product.number("path.gm_to_l1.fixed_cycles")
        least = self.least_in(op, plan.l1_way, pointer, mask, (amount, rows), many)  # type: ignore[attr-defined]
        what = {**slots, "latency": latency, **least}
        self._transfer(op, plan.wiring.cube_mte2, plan.wiring.cube_read, amount, first, what)  # type: ignore[attr-defined]
        fixed, rate = (plan.product.number(f"path.l1_to_bt.{n}") for n in ("fixed_cycles", "bytes_per_cycle"))
        self._assumed_path("l1_to_bt")
        cycles = fixed + table_bytes(r) / rate
        self._fixed(op, plan.wiring.mte1, cycles, 0.0, (middle.number,), writes, clobbers)

    def _assumed_path(self, name: str) -> None:
        """List the figures of a way that nobody published."""
        for key in (f"path.{name}.fixed_cycles", f"path.{name}.bytes_per_cycle"):
            if self.plan.product.figure(key).assumed:
                self.plan.costs.model.assumed[key] = None

    def add_start(self, op: Op, r: Value) -> None:
        """A product in UB becomes the sum with what it should have started from."""
        plan = self.plan
        start = plan.homes.added.get(r.id)
        if start is None:
            return
        cost = plan.costs.start_added(start, r)
        slot = plan.placement.sum_of.get(r.id)
        reads = (*self.slots_of(start), self.current[r.id])  # type: ignore[attr-defined]
        writes = (self.current[r.id],) if slot is None else slot.targets[0][0]
        clobbers = () if slot is None else slot.targets[0][1]
        self._computed(op, cost, reads, writes, clobbers)
        self.current[r.id] = writes[0]

    def half(self, side: int, fresh: bool) -> int:
        """The half of L0A (side 0) or L0B (1) for the next product: they alternate, but for an operand that stays."""
        if fresh:
            self.count_load(side)
        return self.plan.l0_slots[(self.products[side] - 1) % 2][side]

    def count_load(self, side: int) -> None:
        """One more load to L0A or L0B."""
        a, b = self.products
        self.products = (a + 1, b) if side == 0 else (a, b + 1)

    def _operand_slots(self, op: Op, i: int) -> tuple[int, ...]:
        v = op.args[i]
        assert v is not None
        source = self.plan.homes.source(v)
        slot = self.plan.placement.l1_copy.get((op.id, i))
        if slot is None:
            return self.slots_of(source)  # type: ignore[attr-defined,no-any-return]
        made = self.plan.homes.made_real(v)
        reads = self.slots_of(source) if made is None else self._written_out(op, made)  # type: ignore[attr-defined]
        self._stage(op, source, reads, slot.number, slot.targets[0][1])
        return (slot.number,)

    def _stage(
        self, op: Op, source: Value, reads: tuple[int, ...], slot: int, clobbers: tuple[int, ...]
    ) -> None:
        """A tile of UB on its way to L1: through global memory where Cube and Vector are apart."""
        self.stage(op, plan_bytes(source), reads, (slot,), clobbers)

    def stage(
        self, op: Op, size: int, reads: Any, writes: tuple[int, ...], clobbers: tuple[int, ...]
    ) -> None:
        """`size` bytes of UB into L1."""
        plan = self.plan
        if plan.wiring.fixp < 0:
            fixed, rate = plan.ub_to_l1
            self._fixed(op, plan.wiring.mte3, fixed + size / rate, 0.0, reads, writes, clobbers)
            return
        hop, latency = self.hop(op), plan.write_latency + plan.cross_core_cycles
        self.send(
            op, plan.wiring.mte3, plan.wiring.write[1], size, (plan.write_interval, latency), reads, hop
        )
        read = plan.wiring.cube_read[1]
        self._moved(
            op,
            plan.wiring.cube_mte2,
            read,
            size,
            plan.l1_interval,
            plan.l1_latency,
            (hop,),
            writes,
            clobbers,
        )

    def to_ub(self, op: Op, r: Value) -> None:
        """A product on its way to UB: through global memory where Cube and Vector are apart."""
        plan = self.plan
        slot = plan.placement.ub_copy[r.id]
        reads = self.slots_of(r)  # type: ignore[attr-defined]
        size = r.numel * 4
        if plan.wiring.fixp < 0:
            fixed, rate = plan.l0c_to_ub
            self._fixed(
                op, plan.wiring.vector, fixed + size / rate, 0.0, reads, (slot.number,), slot.targets[0][1]
            )
        else:
            hop, wiring = self.hop(op), plan.wiring
            latency = plan.fixp_latency + plan.cross_core_cycles
            self.send(op, wiring.fixp, wiring.cube_write[1], size, (plan.fixp_min, latency), reads, hop)
            self._moved(
                op, wiring.mte2, wiring.read[1], size, plan.read_interval, plan.read_latency, (hop,), (slot.number,),
                slot.targets[0][1],
            )  # fmt: skip
        self.current[r.id] = slot.number

    def hop(self, op: Op) -> int:
        """The place in the workspace through which a tile of this operation passes; copies of it take turns in a loop."""
        slot = self.plan.workspace(op)
        return self.copy_of(slot, slot.loop)[0][0]  # type: ignore[attr-defined,no-any-return]

    def send(
        self, op: Op, pipe: int, channel: int, size: int, cycles: tuple[float, float], reads: Any, hop: int
    ) -> None:
        """A tile into the workspace, and word of it to the other core; cycles: at least, and until it is known there.

        What is sent may be overwritten as soon as the pipe has read it: records of no length before and after the transfer
        say so, since the transfer itself is done only when the other core knows.
        """
        self.add(pipe, op.loc, occupancy=0.0, instructions=0, reads=reads)  # type: ignore[attr-defined]
        grade = grade_of(self.plan.product, (CROSSING,))
        self._moved(op, pipe, channel, size, cycles[0], cycles[1], (), (hop,), (), grade)
        self.add(pipe, op.loc, occupancy=0.0, instructions=0, reads=reads)  # type: ignore[attr-defined]

    def cube_store(self, op: Op, pointer: Pointers, mask: Any) -> None:
        """A product stored from L0C by the fixpipe, which casts and turns NZ into ND on the way."""
        self.flush(cube=True)  # type: ignore[attr-defined]
        v = op.args[1]
        assert v is not None
        assert isinstance(v.dtype, DType)
        plan = self.plan
        offsets = (
            pointer.offsets
            if isinstance(pointer.offsets, Affine)
            else Affine(0, (0,) * len(v.shape), v.shape)
        )
        amount, bursts, elements = self.traffic(  # type: ignore[attr-defined]
            pointer.tensor, offsets, mask if boxed(mask) else None, v.dtype.itemsize
        )
        self._check_bursts(op, v, bursts, elements)  # type: ignore[attr-defined]
        reads = self.slots_of(v)  # type: ignore[attr-defined]
        if plan.unit_flag:  # the drain starts here, and from here on the Cube follows it piece by piece
            self.add(plan.wiring.fixp, op.loc, occupancy=0.0, instructions=0, reads=reads)  # type: ignore[attr-defined]
            reads = ()
        self._moved(
            op,
            plan.wiring.fixp,
            self.way_out(op, pointer, mask, plan.wiring.cube_write, plan.wiring.fixp),  # type: ignore[attr-defined]
            amount,
            plan.fixp_min,
            plan.fixp_latency,
            reads,
            (),
            (),
        )

    def _computed(self, op: Op, cost: Cost, reads: Any, writes: Any, clobbers: Any) -> None:
        """Work of the Vector unit on tiles, as one instruction."""
        pipe = self.plan.wiring.vector
        self._fixed(op, pipe, cost.occupancy, cost.latency, reads, writes, clobbers, cost.grade)

    def _fixed(
        self,
        op: Op,
        pipe: int,
        cycles: float,
        latency: float,
        reads: Any,
        writes: Any,
        clobbers: Any,
        grade: int = BEST,
    ) -> None:
        self.recorder.add_fixed(
            pipe,
            self.plan.line(op.loc, pipe, grade=grade),
            cycles,
            latency,
            1,
            reads,
            writes,
            clobbers,
            self.active_or_none(),  # type: ignore[attr-defined]
        )

    def _moved(
        self, op: Op, pipe: int, channel: int, amount: Any, occupancy: float, latency: float, reads: Any, writes: Any,
        clobbers: Any, grade: int = 0,
    ) -> None:  # fmt: skip
        self.add(  # type: ignore[attr-defined]
            pipe,
            op.loc,
            channel=channel,
            amount=amount,
            occupancy=occupancy,
            latency=latency,
            reads=reads,
            writes=writes,
            clobbers=clobbers,
            grade=grade,
        )


def plan_bytes(v: Value) -> int:
    assert isinstance(v.dtype, DType)
    return v.numel * v.dtype.itemsize
