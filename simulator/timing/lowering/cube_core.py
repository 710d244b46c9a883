"""Records of the Cube's side: GM to L1, L1 to L0A and L0B, Mmad, L0C to GM or on to UB, and the hand-overs with AIV."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...interpreter.values import Affine, Pointers
from ...ir.program import Op, Value
from ...record.slowing import COPY
from .. import cures
from ..costs.provenance import BEST, grade_of
from ..costs.transfers import boxed
from ..placement.allocate import BIAS_IN_L1
from ..placement.layouts import BT, FB, FRACTAL, in_fractals, table_bytes
from ..placement.slots import Slot
from .cut_products import Ends, Multiplied, cut, masks_of
from .hand_overs import HandOvers, Leg
from .records import LoweringContext, itemsize, tile_size

Slots = tuple[int, ...]
LOADS = ("loads to L0A", "loads to L0B")  # the counts by which halves of L0 alternate


class CubeLowering:
    """The part of lowering that knows the Cube."""

    def __init__(self, context: LoweringContext) -> None:
        self.context = context
        self.plan = context.plan
        self.hand_overs = HandOvers(context)
        self.masked: dict[int, bool] = {}  # products of which a mask cuts an operand
        # Of the first product into a place in L0C: where its bias is.
        self.pending_bias: dict[tuple[int, ...], tuple[int, ...]] = {}

    def record_load(self, op: Op, pointer: Pointers, mask: Any) -> None:
        """A tile that is loaded to be an operand: GM to L1, ND to NZ on the way unless memory has it in fractals."""
        plan, wiring = self.plan, self.plan.wiring
        self.context.flush(cube=True)
        self.context.addresses(op, op.results[0])
        as_it_lies = in_fractals(op.results[0])
        where = wiring.cube_mte2, wiring.cube_read_fractals if as_it_lies else wiring.cube_read
        rates = plan.l1_rates.in_pieces(plan.placement.pieces.of_operand(op.results[0]), plan.l1_latency)
        self.context.load_tile(op, pointer, mask, *where, rates, plan.l1_latency)

    def record_dot(self, op: Op, ends: Ends) -> None:
        """One product: its L0 tiles, each loaded to L0A and L0B (in ping-pong) and multiplied into L0C.

        ends: of what is there of both operands.
        """
        context, plan, r = self.context, self.plan, op.results[0]
        if op.id not in self.masked:
            self.masked[op.id] = bool(masks_of(plan.spaces, op))
        if self.masked[op.id]:
            before = plan.multiplied.get(op.id, Multiplied())
            plan.multiplied[op.id] = before.and_of(plan, op, ends, len(context.active))
        context.flush(cube=True)
        # One flag says that both operands are in L1, one that both were read: EX matmul_high_performance cases 0 to 3, with
        # one buffer each, take the time of both loads and of both copies to L0.
        both = tuple(s for i, v in enumerate(plan.spaces.operands(op)) for s in self._operand_slots(op, i, v))
        writes, clobbers = context.target(r)
        bias = (*self._bias_slots(op.args[2]), *self.pending_bias.pop(writes, ()))
        kept, rate = plan.kept_operand(op), plan.cube.rate_figure(plan.operand(op))
        grade = grade_of(plan.product, (rate,))
        for whole in plan.product_parts(op):
            part = cut(plan, op, whole, ends)
            if part is None:
                continue
            pair = self._half(0, kept != 0), self._half(1, kept != 1)
            for side, cycles in enumerate(part.cycles[:2]):
                if side != kept:
                    self._worked(op, plan.wiring.mte1, cycles, both, (pair[side],), ())
            self._worked(op, plan.wiring.mmad, part.m_cycles, (*pair, *bias), writes, clobbers, grade)
        if r.id in plan.spaces.copied_to_ub:
            self.to_ub(op, r)

    def _worked(
        self, op: Op, pipe: int, cycles: Any, reads: Slots, writes: Slots, clobbers: Slots, grade: int = BEST
    ) -> None:
        """One instruction, of a cost that lanes may differ in."""
        if isinstance(cycles, np.ndarray):
            slots: dict[str, Any] = {"reads": reads, "writes": writes, "clobbers": clobbers}
            self.context.add(pipe, op.loc, occupancy=cycles, grade=grade, **slots)
        else:
            self.context.fixed(op, pipe, float(cycles), 0.0, reads, writes, clobbers, grade)

    def _bias_slots(self, start: Value | None) -> tuple[int, ...]:
        """The place of the row in the bias table that a tile repeats, if it is there."""
        root = None if start is None else self.plan.definitions.root(start)
        there = root is not None and self.plan.spaces.space_of(root) == BT
        return self.context.slots_of(root) if there else ()

    def _scale_slots(self, v: Value) -> Slots:
        """The place of the scales that a product is multiplied by on its way out."""
        made = self.plan.definitions.of(self.plan.spaces.source(v))
        if made is None or made.kind != "fixpipe_scaled":
            return ()
        root = self.plan.definitions.root(made.operand(1))
        return () if root is None or self.plan.spaces.space_of(root) != FB else self.context.slots_of(root)

    def start_sum(self, start: Value, slot: Slot) -> None:
        """A loop begins to sum in L0C: its first product reads the row that the sum starts from."""
        bias = self._bias_slots(start)
        if bias:
            self.pending_bias[slot.targets[0][0]] = bias

    def record_row_load(self, op: Op, pointer: Pointers, mask: Any) -> None:
        """A row for the bias table: GM to L1, and MTE1 from there; or one of scales, which the fixpipe takes from L1."""
        context, plan, r = self.context, self.plan, op.results[0]
        context.flush(cube=True)
        middle = plan.placement.l1_copy[(op.id, BIAS_IN_L1)]
        writes, clobbers = context.target(r)
        what = {
            "latency": plan.product.number("path.gm_to_l1.fixed_cycles"),
            "writes": (middle.number,),
            "clobbers": middle.targets[0][1],
        }
        wiring = plan.wiring
        context.load_box(op, pointer, mask, wiring.cube_mte2, wiring.cube_read, plan.l1_rates, **what)
        table = plan.spaces.space_of(r)
        path = "path.l1_to_fb" if table == FB and plan.product.has("path.l1_to_fb.pipe") else "path.l1_to_bt"
        keys = f"{path}.fixed_cycles", f"{path}.bytes_per_cycle"
        plan.assume(*keys)
        fixed, rate = (plan.product.number(key) for key in keys)
        pipe, cycles = wiring.fixp if table == FB else wiring.mte1, fixed + table_bytes(r, table) / rate
        context.fixed(op, pipe, cycles, 0.0, (middle.number,), writes, clobbers)

    def _add_start(self, op: Op, r: Value) -> None:
        """A product in UB becomes the sum with what it should have started from."""
        context, plan = self.context, self.plan
        start = plan.spaces.added.get(r.id)
        if start is None:
            return
        now, slot = context.current[r.id], plan.placement.sum_of.get(r.id)
        writes, clobbers = ((now,), ()) if slot is None else slot.targets[0]
        cost = plan.costs.start_added(start, r)
        context.computed(op, cost, (*context.slots_of(start), now), writes, clobbers)
        context.current[r.id] = writes[0]

    def _half(self, side: int, fresh: bool) -> int:
        """The half of L0A (side 0) or L0B (1) for the next product: they alternate, but for an operand that stays."""
        counts, key = self.context.iteration_counts, (LOADS[side], self.context.recorder.stage)
        if fresh:
            counts[key] = counts.get(key, -1) + 1
        return self.context.copy_of(self.plan.l0_halves[side], key)[0][0]

    def _operand_slots(self, op: Op, i: int, v: Value) -> tuple[int, ...]:
        context, plan = self.context, self.plan
        source = plan.spaces.source(v)
        slot = plan.placement.l1_copy.get((op.id, i))
        if slot is None:
            return context.slots_of(source)
        made = plan.spaces.made_real(v)
        writes, clobbers = context.copy_of(slot, slot.loop)
        with context.in_stage(-1):
            reads = context.slots_of(source) if made is None else context.written_out(op, made)
        self.stage(op, source, reads, writes, clobbers)
        return writes

    def stage(self, op: Op, v: Value, reads: Slots, writes: Slots, clobbers: Slots) -> None:
        """A tile of UB into L1: through global memory where Cube and Vector are apart."""
        plan, wiring = self.plan, self.plan.wiring
        if wiring.fixp < 0:
            fixed, rate = plan.ub_to_l1
            self.context.fixed(op, wiring.mte3, fixed + tile_size(v) / rate, 0.0, reads, writes, clobbers)
            return
        self._tell_copy(
            op, f"operand {v.name or list(v.shape)}: from UB to L1 through global memory", cures.OPERAND
        )
        sent = Leg(wiring.mte3, wiring.write[1], plan.write_rates.interval, plan.write_latency, -1)
        read = Leg(wiring.cube_mte2, wiring.cube_read[1], plan.l1_rates.interval, plan.l1_latency)
        self.hand_overs.record(op, v, tile_size(v), (sent, read), reads, writes, clobbers)

    def hand_to_vector(
        self, op: Op, v: Value, size: int, reads: Slots, writes: Slots, clobbers: Slots
    ) -> None:
        """A tile of `size` bytes from the Cube's side into UB, where Cube and Vector are apart."""
        plan, wiring = self.plan, self.plan.wiring
        cure = self._cure_of_copy(v)
        if cure:
            text = f"{list(v.shape)} of the product: from L0C to UB through global memory"
            self._tell_copy(op, text, cure)
        cycles = max(plan.fixp_min, self._rows_out(v, 1, v.numel))
        sent = Leg(wiring.fixp, wiring.cube_write[1], cycles, plan.fixp_latency)
        read = Leg(wiring.mte2, wiring.read[1], plan.read_rates.interval, plan.read_latency, 1)
        self.hand_overs.record(op, v, size, (sent, read), reads, writes, clobbers)

    def _cure_of_copy(self, v: Value) -> str:
        """What to do where each iteration moves a product that is part of a sum; "" where it has to be moved."""
        definitions = self.plan.definitions
        made = definitions.of(definitions.root(v) or v)
        if made is None or made.kind != "dot" or made.id not in self.plan.loop_around:
            return ""
        start = made.args[2]
        scaled = None if start is None else definitions.of(start)
        if start is not None and scaled is None:  # what the loop carries
            return ""
        if scaled is not None and scaled.kind == "binary":
            return cures.RESULT if scaled.name == "add" else cures.RESCALED
        return cures.RESULT if self._is_added(made.results[0]) else ""

    def _is_added(self, v: Value) -> bool:
        """Whether a value is added to another one, perhaps scaled."""
        readers = [op for op, _ in self.plan.spaces.readers(v) if op.kind in ("binary", "cast")]
        if any(op.name == "add" for op in readers):
            return True
        scaled = [op.results[0] for op in readers if op.kind == "cast" or op.name in ("mul", "div")]
        return any(self._is_added(x) for x in scaled)

    def _tell_copy(self, op: Op, text: str, cure: str) -> None:
        """A tile on its way between the cores, which the vendor's compiler adds."""
        if self.plan.compiled:
            self.plan.slow(op, COPY, f"{op.kind}: {text}", cure, warned=False)

    def _moved(self, op: Op, amount: Any, leg: Leg, **what: Any) -> None:
        self.context.add(
            leg.pipe,
            op.loc,
            channel=leg.channel,
            amount=amount,
            occupancy=leg.cycles,
            latency=leg.latency,
            **what,
        )

    def _rows_out(self, r: Value, bursts: Any, elements: Any) -> Any:
        """Cycles that the fixpipe takes for the rows of a product; columns of 16 are fractals as they are, not rows.

        What is stored may have another shape: a row of the product with the pixels of an image has all rows of that image.
        """
        made = self.plan.definitions.root(r) or r
        rows = np.maximum(bursts, elements / made.shape[-1]) if r.shape[-1] > FRACTAL else bursts
        return rows * self.plan.fixp_row

    def to_ub(self, op: Op, r: Value) -> None:
        """A product on its way to UB: through global memory where Cube and Vector are apart."""
        context, plan = self.context, self.plan
        slot = plan.placement.ub_copy[r.id]
        reads, size = context.slots_of(r), r.numel * 4
        writes, clobbers = context.copy_of(slot, slot.loop)
        if plan.wiring.fixp < 0:
            fixed, rate = plan.l0c_to_ub
            context.fixed(op, plan.wiring.vector, fixed + size / rate, 0.0, reads, writes, clobbers)
        else:
            self.hand_to_vector(op, r, size, reads, writes, clobbers)
        context.current[r.id] = writes[0]
        with context.in_stage(1):
            self._add_start(op, r)

    def record_store(self, op: Op, pointer: Pointers, mask: Any) -> None:
        """A product stored from L0C by the fixpipe, which casts and turns NZ into ND on the way."""
        context, plan, v = self.context, self.plan, op.operand(1)
        context.flush(cube=True)
        known = isinstance(pointer.offsets, Affine)
        offsets = pointer.offsets if known else Affine(0, (0,) * len(v.shape), v.shape)
        box = mask if boxed(mask) else None
        amount, bursts, elements = context.traffic(pointer.tensor, offsets, box, itemsize(v))
        context.check_bursts(op, v, bursts, elements)
        reads, fixp = context.slots_of(v), plan.wiring.fixp
        if plan.unit_flag:  # the drain starts here, and from here on the Cube follows it piece by piece
            context.add(fixp, op.loc, occupancy=0.0, instructions=0, reads=reads)
            reads = ()
        reads = (*reads, *self._scale_slots(v))
        channel = context.way_out(op, pointer, mask, plan.wiring.cube_write, fixp)
        root = plan.definitions.root(v)
        made = None if root is None else plan.definitions.of(root)
        pieces = 1 if made is None else plan.placement.pieces.of_product(made)
        least = np.maximum(pieces * plan.fixp_min, self._rows_out(v, bursts, elements))
        cycles = least + (pieces - 1) * plan.fixp_latency
        self._moved(op, amount, Leg(fixp, channel, cycles, plan.fixp_latency), reads=reads)
