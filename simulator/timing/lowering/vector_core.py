"""Records of the Vector core's side: dense operations, GM to UB and back, prints."""

from __future__ import annotations

from typing import Any

from ...interpreter.values import Affine, Pointers
from ...ir.operations import operation
from ...ir.program import Op, Value
from ...messages import NOTE
from ...record.slowing import CAST, COPY, SCALAR
from .. import cures
from ..costs.model import Cost
from ..costs.transfers import boxed
from ..placement.layouts import SCALAR as SCALAR_FORM
from ..placement.layouts import TILE
from .accesses import masked_elements
from .context import Template
from .records import LoweringContext, itemsize


class VectorLowering:
    """The part of lowering that knows the Vector unit and UB."""

    def __init__(self, context: LoweringContext) -> None:
        self.context = context
        self.plan = context.plan

    def record_dense(self, op: Op) -> None:
        context = self.context
        context.count(op)
        if op.results and op.results[0].id in self.plan.placement.repeated:
            context.repeat(op)
            return
        if context.pending:
            context.flush()
        template = self.plan.templates.get(op.id)
        if template is None:
            if not any(v is not None and v.shape for v in (*op.args, *op.results)):
                self._scalar_op(op)
                return
            template = self.plan.templates[op.id] = self._template(op)
        for v in template.scalars:
            self._into_register(op, v)
        writes, clobbers = self.context.target(op.results[0])
        for r in op.results[1:]:
            more = self.context.target(r)
            writes, clobbers = writes + more[0], clobbers + more[1]
        self.context.recorder.add_fixed(
            template.pipe,
            template.line,
            template.occupancy,
            template.latency,
            template.instructions,
            self.context.slots_at(template.roots),
            writes,
            clobbers + template.scratch if template.scratch else clobbers,
            self.context.active_or_none(),
        )

    def _template(self, op: Op) -> Template:
        """What every execution of a dense operation has in common."""
        cost = self._with_real_operands(op, self._with_copied_tile(op, self.plan.costs.of(op)))
        if operation(op).coarse:
            self.plan.warn(op, operation(op).coarse, NOTE)
        why = self.plan.costs.why_by_element(op)
        if why and not op.attrs.get("of_access"):
            self._warn_scalar(op, why, cost.occupancy)
        if self.plan.compiled and not why:
            self._tell_additions(op)
        pipe = self.plan.scalar if why else self._pipe(op)
        line = self.plan.line(op.loc, pipe, grade=cost.grade, name=op.name or op.kind)
        if cost.group_conflict or cost.bank_conflict:
            self.plan.conflicts[line, cost.occupancy] = cost.group_conflict, cost.bank_conflict
        if op.id in self.plan.placement.scratch_of:
            self.plan.scratch[line, cost.occupancy] = self.plan.placement.scratch_of[op.id]
        return Template(
            pipe,
            line,
            cost.occupancy,
            cost.latency,
            1 if why else cost.instructions,
            self.context.roots_of(*op.args),
            self._scratch(op),
            self._vector_scalars(op),
        )

    def _tell_additions(self, op: Op) -> None:
        """Casts and copies that the compiler puts around an operation; no warnings, as most kernels have some."""
        if text := cures.cast_text(op):
            self.plan.slow(op, CAST, text, cures.WIDEN, warned=False)
        for v in op.args:
            if v is not None and v.shape and self._needs_writing_out(op, v):
                text, cure = self._written_out(op, v)
                if cure:
                    self.plan.slow(op, COPY, text, cure, warned=False)
        if self._copied_tile(op) is not None:
            text = f"{op.kind} into a tile that is read later: the whole tile is copied first"
            self.plan.slow(op, COPY, text, cures.INSERT, warned=False)

    def _written_out(self, op: Op, v: Value) -> tuple[str, str]:
        """What an operation reads from a tile that the compiler has to make first, and what to do about it, if anything.

        A mask stays a formula wherever it stands, and each select writes it out: before a loop it costs as much.
        """
        what = op.name or op.kind
        if v.static.kind not in ("box", "affine"):
            return (
                f"{what}: a broadcast to {list(v.shape)} {v.dtype} is written out to UB",
                cures.BROADCAST,
            )
        kind = "mask" if v.static.kind == "box" else "tile of indices"
        text = f"{what}: a {kind} of {list(v.shape)} is written out to UB"
        if op.kind == "select" and v is op.args[0]:
            return text, cures.OTHER if cures.fills_load(self.plan.definitions, op) else ""
        return text, cures.FORMULA if op.id in self.plan.loop_around else ""

    def _pipe(self, op: Op) -> int:
        """Pipe of an operation on tiles: the Vector unit's, but for single elements and what a user's operation says."""
        wiring = self.plan.wiring
        named = {"PIPE_S": self.plan.scalar, "PIPE_MTE2": wiring.mte2, "PIPE_MTE3": wiring.mte3}
        if op.kind == "custom":
            return named.get(op.attrs["pipe"], wiring.vector)
        return self.plan.scalar if op.kind == "get_element" else wiring.vector

    def _warn_scalar(self, op: Op, why: str, cycles: float) -> None:
        """Say so, and what a cast to int32 would make of operations whose meaning that keeps."""
        text, numbers = (
            f"{why}: runs element by element on the scalar unit ({{cycles:.0f}} cycles",
            {"cycles": cycles},
        )
        if operation(op).castable:
            text += ", {vector:.0f} as a vector instruction on .to(tl.int32), which is exact below 2**31"
            numbers["vector"] = self.plan.costs.on_vector(op).occupancy
        self.plan.slow(op, SCALAR, f"{text})", cures.scalar_cure(op), warned=True, **numbers)

    def _scalar_op(self, op: Op) -> None:
        writes, _ = self.context.target(op.results[0])
        cycles = self.plan.costs.model.scalar_cycles
        self.context.add(
            self.plan.scalar, op.loc, occupancy=cycles, reads=self.context.slots_of(*op.args), writes=writes
        )

    def _vector_scalars(self, op: Op) -> tuple[Value, ...]:
        """Scalars that the Vector unit computed and that an instruction takes as a scalar operand."""
        found = []
        for v in op.args:
            if v is not None and v.shape and self.plan.definitions.form(v) == SCALAR_FORM:
                scalar = self.plan.definitions.scalar_source(v)
                if scalar is not None and self.context.roots_of(scalar):
                    found.append(scalar)
        return tuple(found)

    def _into_register(self, op: Op, scalar: Value) -> None:
        """The scalar unit reads it from UB before the instruction can be issued."""
        cycles = self.plan.costs.model.scalar_cycles
        self.context.add(self.plan.scalar, op.loc, occupancy=cycles, reads=self.context.slots_of(scalar))

    def _with_real_operands(self, op: Op, cost: Cost) -> Cost:
        for v in op.args:
            if v is not None and v.shape and self._needs_writing_out(op, v):
                cost = self.plan.costs.made_real(v).then(cost)
        return cost

    def _with_copied_tile(self, op: Op, cost: Cost) -> Cost:
        """An insertion into a tile that lives on (in another buffer) starts with a copy of that tile."""
        full = self._copied_tile(op)
        return cost if full is None else self.plan.costs.rows_copied(full).then(cost)

    def _copied_tile(self, op: Op) -> Value | None:
        """The tile that an insertion copies first."""
        if op.kind != "insert_slice":
            return None
        full, slots = self.plan.definitions.root(op.operand(0)), self.plan.placement.slot_of
        return None if full is None or slots.get(full.id) is slots.get(op.results[0].id) else full

    def _needs_writing_out(self, op: Op, v: Value) -> bool:
        form = self.plan.definitions.form(v)
        if op.kind in ("binary", "compare", "select", "unary"):
            return v.static.kind == "box" or (v.static.kind == "affine" and form != SCALAR_FORM)
        return self.plan.definitions.root(v) is None or form != TILE

    def _scratch(self, op: Op) -> tuple[int, ...]:
        slot = self.plan.placement.scratch_of.get(op.id)
        return () if slot is None else slot.targets[0][1]

    def record_load(self, op: Op, pointer: Pointers, mask: Any) -> None:
        """GM to UB; a single element is read by the scalar unit."""
        context, plan, r = self.context, self.plan, op.results[0]
        context.flush()
        if not r.shape:
            writes, _ = context.target(r)
            context.add(plan.scalar, op.loc, occupancy=plan.scalar_read_cycles, writes=writes)
            return
        context.addresses(op, r)
        where = plan.wiring.mte2, plan.wiring.read
        rates = plan.read_rates.in_pieces(plan.placement.pieces.of_vector(op, r), plan.read_latency)
        if self._loaded_by_element(op, pointer, mask, (*where, rates)):
            return
        woven = op.id in plan.one_by_one.woven and isinstance(pointer.offsets, Affine)
        if woven:
            pointer, mask = masked_elements.without_gaps(pointer, mask)
        writes, elements = context.load_tile(op, pointer, mask, *where, rates, plan.read_latency)
        if woven:
            elements = elements // pointer.offsets.shape[-1] * r.shape[-1]
            context.computed(op, plan.costs.halved(r), writes, writes, ())
        context.fill(op, r, elements, writes)

    def _loaded_by_element(self, op: Op, pointer: Pointers, mask: Any, where: Any) -> bool:
        """A load under a mask of elements, or of addresses without a pattern, as the vendor's compiler makes it."""
        context, r = self.context, op.results[0]
        all_of_it = masked_elements.selects(context, pointer, mask)
        if not all_of_it and not masked_elements.scalar_loop(context, op, pointer):
            return False
        writes, clobbers = context.target(r)
        what: dict[str, Any] = {"writes": writes, "clobbers": clobbers, "latency": self.plan.read_latency}
        if all_of_it:
            masked_elements.move_all(context, op, pointer, r, where, **what)
            masked_elements.select(context, op, r, writes, writes)
        else:
            pipe, channels, rates = where
            masked_elements.one_by_one(context, op, r, mask, (pipe, channels[0], rates.interval), **what)
        return True

    def record_combined(self, op: Op) -> None:
        """An atomic of 64 bits: elements that were loaded and those that are given, on the scalar unit (11.1)."""
        plan, v = self.plan, op.operand(1)
        n = (v.numel + 1) // 2 if plan.is_shared(v, plan.wiring.mte3) else v.numel
        cost = plan.costs.model.scalar_loop(n, plan.compiled)
        if v.shape:
            why = f"atomic_{op.name} of {v.dtype}: loaded, combined and stored under a lock"
            self._warn_scalar(op, why, cost.occupancy)
        reads = self.context.slots_of(v, op.results[0])
        self.context.fixed(op, plan.scalar, cost.occupancy, 0.0, reads, self._combined(op), (), cost.grade)

    def _combined(self, op: Op) -> tuple[int, ...]:
        """What a locked atomic stores."""
        return (self.plan.extra_slot(("combined", op.id)),) if op.attrs.get("locked") else ()

    def record_store(self, op: Op, pointer: Pointers, mask: Any) -> None:
        """UB to GM."""
        context, plan, v = self.context, self.plan, op.operand(1)
        context.flush()
        reads = context.slots_of(v)
        if v.shape and (plan.definitions.root(v) is None or plan.definitions.form(v) != TILE):
            reads = context.written_out(op, v)
        reads += self._combined(op)
        if op.id in plan.placement.spread_of:
            reads = self._spread(op, v, reads)
        pipe, write = plan.wiring.mte3, plan.wiring.write
        rates = plan.write_rates.in_pieces(plan.placement.pieces.of_vector(op, v), plan.write_latency)
        if v.shape and masked_elements.selects(context, pointer, mask):
            self._store_selected(op, pointer, v, reads, (pipe, write, rates))
            return
        what: dict[str, Any] = {"latency": plan.write_latency, "reads": reads}
        if v.shape and masked_elements.scalar_loop(context, op, pointer):
            where = pipe, write[0], plan.write_rates.interval
            masked_elements.one_by_one(context, op, v, mask, where, **what)
            return
        if v.shape and (not isinstance(pointer.offsets, Affine) or not boxed(mask)):
            context.discrete(op, v, op.kind, pipe, write[0], plan.write_rates.interval, **what)
            return
        context.addresses(op, v)
        channel = context.way_out(op, pointer, mask, write, pipe)
        offsets = pointer.offsets if isinstance(pointer.offsets, Affine) else Affine(0, (), ())
        amount, bursts, elements = context.traffic(pointer.tensor, offsets, mask, itemsize(v))
        context.check_bursts(op, v, bursts, elements)
        moved = context.moved(v, pipe, offsets, amount, bursts)
        context.add(
            pipe,
            op.loc,
            occupancy=plan.least_cycles(rates, moved.bursts, moved.amount, 1.0),
            latency=plan.write_latency,
            channel=channel,
            amount=moved.amount,
            reads=reads,
            half=moved.half,
        )

    def _store_selected(
        self, op: Op, pointer: Pointers, v: Value, reads: tuple[int, ...], where: Any
    ) -> None:
        """What is there is loaded, the elements of the mask go in, and all of it is stored."""
        context, plan = self.context, self.plan
        there = (plan.extra_slot(("masked store", op.id)),)
        source = plan.wiring.mte2, plan.wiring.read, plan.read_rates
        if op.kind == "store":  # what an atomic operation leaves alone, it adds nothing to
            masked_elements.move_all(context, op, pointer, v, source, latency=plan.read_latency, writes=there)
        masked_elements.select(context, op, v, (*reads, *there), there)
        masked_elements.move_all(
            context, op, pointer, v, where, stores=True, latency=plan.write_latency, reads=there
        )

    def _spread(self, op: Op, v: Value, reads: tuple[int, ...]) -> tuple[int, ...]:
        """The elements of a strided store, each in a block of its own."""
        slot, cost = self.plan.placement.spread_of[op.id], self.plan.costs.spread(v)
        writes, clobbers = self.context.copy_of(slot, slot.loop)
        self.context.computed(op, cost, reads, writes, clobbers)
        return writes

    def record_print(self, op: Op) -> None:
        """A print is charged as the scalar unit reading every element; its real cost is not published."""
        model = self.plan.costs.model
        elements = sum(v.numel for v in op.args if v is not None) or 1
        model.notes[
            "device_print: costed as one pass of the scalar unit over its elements; the figure is assumed"
        ] = None
        cost = model.scalar_loop(elements)
        self.context.add(
            self.plan.scalar,
            op.loc,
            occupancy=cost.occupancy,
            grade=cost.grade,
            reads=self.context.slots_of(*op.args),
        )
