"""Lowering: a walk over the tile program that records pipe instructions instead of (or besides) computing elements.

`Lowering` holds what is recorded for each operation; `TimeOnly` walks without values, `TimeWithValues` walks over values
for kernels whose control flow or addresses depend on data.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...interpreter.faults import place
from ...interpreter.flat_pointers import Anywhere
from ...interpreter.reading import DataDependentError
from ...interpreter.regions import Region as AccessRegion
from ...interpreter.regions import check
from ...interpreter.tensors import Tensor
from ...interpreter.values import Affine, Opaque, Pointers
from ...ir.operations import OPERATIONS, operation, why_by_element
from ...ir.program import Loc, Op, Region, Value
from ...precision.dtypes import DType
from ..costs.l2_cache import FirstTouch
from ..costs.model import Cost
from ..costs.transfers import averages, boxed, line_requests, sharers, traffic
from ..placement.accumulator_inits import BT
from ..placement.layouts import BLOCK_BYTES, TILE, align
from ..placement.layouts import SCALAR as SCALAR_FORM
from ..placement.memory_spaces import FIXP, L0C, L1, VIEW
from ..placement.slots import Slot
from ..trace.recorder import Recorder
from ..trace.series import Series, Source, take_one
from .buffers import RECORDED, BufferLowering
from .context import Plan, Template, Way
from .flags import FlagLowering
from .shared_turns import SharedTurns, TurnsRecorder, is_shared
from .sub_cores import SubRecorder

_NOTHING: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())


class Lowering(BufferLowering, SharedTurns):
    """Records of one walk. `plan` is what all walks of a launch share: costs, buffers, lines."""

    plan: Plan
    recorder: Recorder
    first_number: int

    def prepare(self, plan: Plan, numbers: np.ndarray, touch: FirstTouch) -> None:
        self.plan = plan
        both = self.subs > 1
        if both:
            self.recorder = SubRecorder(len(numbers) // 2, self.total, plan)
        else:
            count = len(numbers)
            self.recorder = TurnsRecorder(count, plan) if plan.shares_turns else Recorder(count, numbers)
        self.shared_loop, self.shared_turns = None, 0
        self.flags = FlagLowering(plan, self)
        self.recorder.drains = plan.drains
        self.recorder.flag_slots = lambda: plan.flag_slots
        self.first_number = int(numbers[0])
        self.touch = touch
        self.begin_waves(numbers)
        self.current: dict[int, int] = {}
        self.turn_counts: dict[int, int] = {}
        self.products = (0, 0)
        self.pending_bias = {}
        self.pending = 0
        self.pending_loc = Loc("", 0)
        self.last_region: tuple[Any, ...] | None = None
        self.last_active = numbers
        self.last_columns: np.ndarray = numbers - numbers[0]

    def begin_waves(self, numbers: np.ndarray) -> None:
        """Whether accesses are touched wave by wave, when all are known.

        TurnsRecorder and SubRecorder put records elsewhere as they come: what their programs access is touched at once.
        """
        cores = self.plan.wiring.machine.cores
        many = int(numbers[-1]) // cores > int(numbers[0]) // cores
        self.waves = many and type(self.recorder) is Recorder and bool((np.diff(numbers) == 1).all())
        self.touch.in_waves(cores if self.waves else 0)
        self.recorder.know = self.touch.settle

    # -- scalar work -------------------------------------------------------------------------------------------------

    def symbolic_done(self, op: Op) -> None:
        self.pending += 1
        self.pending_loc = op.loc

    def flush(self, cube: bool = False) -> None:
        """The scalar operations since the last record, as one record on the unit of the next record."""
        if self.pending:
            pipe = (
                self.plan.wiring.cube_scalar
                if cube or self.plan.wiring.scalar < 0
                else self.plan.wiring.scalar
            )
            cycles = self.pending * self.plan.costs.model.scalar_cycles
            self.pending = 0
            self.add(pipe, self.pending_loc, occupancy=cycles, instructions=0)

    def turn(self, op: Op, number: int) -> None:
        if op is self.shared_loop:
            self.next_core(op)
        else:
            self.turn_counts[op.id] = self.turn_counts.get(op.id, -1) + 1
        self.symbolic_done(op)
        self.recorder.settle()

    # -- slots -------------------------------------------------------------------------------------------------------

    def roots_of(self, *values: Value | None) -> tuple[tuple[int, int], ...]:
        """(value id, slot number before any write) of what an instruction reads."""
        placed = self.plan.placement.slot_of
        roots = (self.plan.definitions.root(v) for v in values if v is not None)
        found = {r.id: placed[r.id].number for r in roots if r is not None and r.id in placed}
        return tuple(found.items())

    def slots_at(self, roots: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
        """Engine slots that hold those values now."""
        current = self.current
        return tuple([current.get(i, number) for i, number in roots])

    def slots_of(self, *values: Value | None) -> tuple[int, ...]:
        return self.slots_at(self.roots_of(*values))

    def target(self, v: Value) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """(slot, clobbered slots) of a value that is being defined."""
        slot = self.plan.placement.slot_of.get(v.id)
        if slot is None:
            return _NOTHING
        writes, clobbers = self.copy_of(slot, self.plan.placement.loop_of.get(v.id, -1))
        self.current[v.id] = writes[0]
        return writes, clobbers

    def copy_of(self, slot: Slot, loop: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The copy of a buffer that this turn of a loop (by id) writes, and the slots that this clobbers."""
        return slot.targets[self.turn_counts.get(loop, 0) % slot.copies if slot.copies > 1 else 0]

    def add(self, pipe: int, loc: Loc, **what: Any) -> None:
        """A record of the active programs. what: as of `Recorder.add`, and the grade of its figures."""
        active = self.active_or_none()
        if isinstance(what.get("channel"), Source):
            self._add_later(pipe, active, what.pop("channel"), what)
            return
        line = self.plan.line(loc, pipe, what.get("channel", -1), what.pop("grade", 0))
        self.recorder.add(pipe, line, active=what.pop("active", active), **what)

    def _add_later(self, pipe: int, active: np.ndarray | None, source: Source, what: dict[str, Any]) -> None:
        """A transfer whose share of memory is known when all accesses are."""
        what.pop("grade", 0)  # that of the channels is in the lines
        series = Series(active, self.recorder.drains)
        series.add(pipe, source.lines[0], active=active, source=source, **what)
        take_one(self.recorder, active, self.touch, series.templates[0])

    def touching(
        self, op: Op, pipe: int, ways: tuple[int, int], tensor: Any, region: AccessRegion, write: bool
    ) -> Source:
        """What an access touches, and the lines of both its channels."""
        lines = tuple(self.plan.line(op.loc, pipe, channel) for channel in ways)
        return Source(ways, tensor, region, write, lines)  # type: ignore[arg-type]

    def synced(self, op: Op, event: Any) -> None:
        self.flags.record(op, event)

    def active_or_none(self) -> np.ndarray | None:
        active = self.active
        if len(active) == self.recorder.programs:
            return None
        if active is not self.last_active:
            self.last_active, self.last_columns = active, active - self.first_number
        return self.last_columns

    # -- elements ----------------------------------------------------------------------------------------------------

    def record_dense(self, op: Op) -> None:
        if op.kind in RECORDED:
            RECORDED[op.kind](self, op)
            return
        if self.plan.homes.has_dot and self._on_cube(op):
            return
        self.count(op)
        if self.pending:
            self.flush()
        template = self.plan.templates.get(op.id)
        if template is None:
            if not any(v is not None and v.shape for v in (*op.args, *op.results)):
                self._scalar_op(op)
                return
            template = self.plan.templates[op.id] = self._template(op)
        for v in template.scalars:
            self._into_register(op, v)
        writes, clobbers = self.target(op.results[0])
        for r in op.results[1:]:
            more = self.target(r)
            writes, clobbers = writes + more[0], clobbers + more[1]
        self.recorder.add_fixed(
            template.pipe,
            template.line,
            template.occupancy,
            template.latency,
            template.instructions,
            self.slots_at(template.roots),
            writes,
            clobbers + template.scratch if template.scratch else clobbers,
            self.active_or_none(),
        )

    def count(self, op: Op) -> None:
        """Note that the active programs execute it, for `roofs.py`."""
        self.plan.executed[op.id] = self.plan.executed.get(op.id, 0) + len(self.active)

    def _on_cube(self, op: Op) -> bool:
        """Record an operation of the Cube's side; True if this was one."""
        if op.kind == "dot":
            self.count(op)
            self.record_dot(op)
            return True
        return self.plan.homes.home(op.results[0]) in (VIEW, FIXP)

    def _template(self, op: Op) -> Template:
        """What every execution of a dense operation has in common."""
        cost = self._with_real_operands(op, self._with_copied_tile(op, self.plan.costs.of(op)))
        if operation(op).coarse:
            self.plan.warn(op, operation(op).coarse)
        why = why_by_element(op)
        if why and not op.attrs.get("of_access"):
            self._warn_scalar(op, why, cost.occupancy)
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
            self.roots_of(*op.args),
            self._scratch(op),
            self._vector_scalars(op),
        )

    def _pipe(self, op: Op) -> int:
        """Pipe of an operation on tiles: the Vector unit's, but for single elements and what a user's operation says."""
        wiring = self.plan.wiring
        named = {"PIPE_S": self.plan.scalar, "PIPE_MTE2": wiring.mte2, "PIPE_MTE3": wiring.mte3}
        if op.kind == "custom":
            return named.get(op.attrs["pipe"], wiring.vector)
        return self.plan.scalar if op.kind == "get_element" else wiring.vector

    def _warn_scalar(self, op: Op, why: str, cycles: float) -> None:
        """Say so, and what a cast to fp32 would make of operations whose meaning that keeps."""
        text, numbers = (
            f"{why}: runs element by element on the scalar unit ({{cycles:.0f}} cycles",
            {"cycles": cycles},
        )
        if any(n in OPERATIONS and OPERATIONS[n].castable for n in (op.kind, op.name)):
            text += ", {vector:.0f} as a vector instruction on .to(tl.float32), which is exact below 2**24"
            numbers["vector"] = self.plan.costs.on_vector(op).occupancy
        self.plan.warn(op, f"{text})", **numbers)

    def _scalar_op(self, op: Op) -> None:
        writes, _ = self.target(op.results[0])
        cycles = self.plan.costs.model.scalar_cycles
        self.add(self.plan.scalar, op.loc, occupancy=cycles, reads=self.slots_of(*op.args), writes=writes)

    def _vector_scalars(self, op: Op) -> tuple[Value, ...]:
        """Scalars that the Vector unit computed and that an instruction takes as a scalar operand."""
        found = []
        for v in op.args:
            if v is not None and v.shape and self.plan.definitions.form(v) == SCALAR_FORM:
                scalar = self.plan.definitions.scalar_source(v)
                if scalar is not None and self.roots_of(scalar):
                    found.append(scalar)
        return tuple(found)

    def _into_register(self, op: Op, scalar: Value) -> None:
        """The scalar unit reads it from UB before the instruction can be issued."""
        cycles = self.plan.costs.model.scalar_cycles
        self.add(self.plan.scalar, op.loc, occupancy=cycles, reads=self.slots_of(scalar))

    def _with_real_operands(self, op: Op, cost: Cost) -> Cost:
        for v in op.args:
            if v is not None and v.shape and self._needs_writing_out(op, v):
                cost = self.plan.costs.made_real(v).then(cost)
        return cost

    def _with_copied_tile(self, op: Op, cost: Cost) -> Cost:
        """An insertion into a tile that lives on (in another buffer) starts with a copy of that tile."""
        if op.kind != "insert_slice":
            return cost
        full, slots = self.plan.definitions.root(op.args[0]), self.plan.placement.slot_of  # type: ignore[arg-type]
        if full is None or slots.get(full.id) is slots.get(op.results[0].id):
            return cost
        return self.plan.costs.rows_copied(full).then(cost)

    def _needs_writing_out(self, op: Op, v: Value) -> bool:
        form = self.plan.definitions.form(v)
        if op.kind in ("binary", "compare", "select", "unary"):
            return v.static.kind == "box" or (v.static.kind == "affine" and form != SCALAR_FORM)
        return self.plan.definitions.root(v) is None or form != TILE

    def _scratch(self, op: Op) -> tuple[int, ...]:
        slot = self.plan.placement.scratch_of.get(op.id)
        return () if slot is None else slot.targets[0][1]

    # -- memory ------------------------------------------------------------------------------------------------------

    def check_known(self, op: Op, pointer: Pointers, mask: Any) -> None:
        """A regular access whose place or extent is loaded from memory is regular: only a run with data can time it."""
        p, m = op.args[0], op.args[1 if op.kind == "load" else 2]
        assert p is not None
        at = p.shape and isinstance(pointer.offsets, Opaque) and p.static.affine_offsets
        if at or (m is not None and isinstance(mask, Opaque) and m.static.kind in ("box", "scalar")):
            what = "address" if at else "mask"
            raise DataDependentError(
                f"{place(op)}: the {what} of a {op.kind} depends on loaded data, which a run without values does not have"
            )

    def record_load(self, op: Op, pointer: Pointers, mask: Any) -> None:
        self.check_known(op, pointer, mask)
        home = self.plan.homes.home(op.results[0])
        if home in (L1, BT):
            (self.cube_load if home == L1 else self.bias_load)(op, pointer, mask)
            return
        self.flush()
        r = op.results[0]
        if not r.shape:
            writes, _ = self.target(r)
            self.add(self.plan.scalar, op.loc, occupancy=self.plan.scalar_read_cycles, writes=writes)
            return
        writes, clobbers = self.target(r)
        if not isinstance(pointer.offsets, Affine) or not boxed(mask):
            self._discrete(op, r, True, "load", writes=writes, clobbers=clobbers)
            return
        amount, bursts, elements = self.traffic(pointer.tensor, pointer.offsets, mask, _itemsize(r))
        self._check_bursts(op, r, bursts, elements)
        first, many = self.first_share(op, pointer, mask, amount)
        what = {
            "writes": writes,
            "clobbers": clobbers,
            "latency": self.plan.read_latency,
            **self.least_in(op, self.plan.read_way, pointer, mask, (amount, bursts), many),
        }
        self._transfer(op, self.plan.wiring.mte2, self.plan.wiring.read, amount, first, what)
        self._fill(op, r, elements, writes)

    def _transfer(
        self,
        op: Op,
        pipe: int,
        channels: tuple[int, int],
        amount: Any,
        first: Any,
        what: dict[str, Any],
    ) -> None:
        """A read: what is touched for the first time (a part of 0 to 1 per program) from HBM, the rest from L2.

        first: those parts; or tensor and region, where they are known later.
        """
        if isinstance(first, tuple):
            source = self.touching(op, pipe, channels, first[0], first[1], False)
            self.add(pipe, op.loc, channel=source, amount=amount, **what)
            return
        least, most = first.min(), first.max()
        slow = float(averages(np.reshape(what.pop("slow", what["occupancy"]), (1, -1)))[0])
        if least == most and least in (0.0, 1.0):
            if least:
                what = {**what, "occupancy": slow}
            self.add(pipe, op.loc, channel=channels[0 if least else 1], amount=amount, **what)
            return
        numbers = self.active - self.first_number
        mixed = (first > 0) & (first < 1)
        # Who reads the tile waits for the last of these records, which for programs that skip it is done with the one
        # before it; so the others only clobber, and the last one need not wait for what its program skips. In a mixed
        # transfer its latency covers that of the first part, and each part has its share of the least cycles.
        early = {**what, "writes": (), "clobbers": (*what["writes"], *what["clobbers"])}
        for channel, share, chosen, how in (
            (channels[0], first, first == 1, early),
            (channels[0], first, mixed, {**early, "latency": 0.0}),
            (channels[1], 1.0 - first, first < 1, what),
        ):
            if chosen.any():
                part = (np.broadcast_to(np.asarray(amount), len(numbers)) * share)[chosen]
                least_cycles = slow if channel == channels[0] else what["occupancy"]
                least_cycles *= float(averages(share[chosen][None, :])[0])
                own = {**how, "occupancy": least_cycles}
                self.add(pipe, op.loc, channel=channel, amount=part, active=numbers[chosen], **own)

    def traffic(self, tensor: Tensor, offsets: Affine, mask: Any, itemsize: int) -> tuple[Any, Any, Any]:
        """(bytes on the way, bursts, elements) of a regular access."""
        return traffic(offsets, itemsize, self.region_of(tensor, offsets, mask))

    def region_of(self, tensor: Tensor, offsets: Any, mask: Any) -> AccessRegion:
        """Where an affine access of all programs touches its tensor. Asked more than once about each access."""
        known = self.last_region
        if known is None or any(
            [a is not b for a, b in zip(known, (tensor, offsets, mask, self.active), strict=False)]
        ):
            region = AccessRegion(tensor, offsets, mask, len(self.active))
            known = self.last_region = (tensor, offsets, mask, self.active, region)
        region = known[4]
        assert isinstance(region, AccessRegion)
        return region

    def least(self, way: Way, bursts: Any, amount: Any, sharers: Any) -> dict[str, Any]:
        """What a record says of the cycles that a transfer takes at least: on average over the programs."""
        cycles = self.plan.least_cycles(way, bursts, amount, sharers)
        return {
            "occupancy": cycles
            if isinstance(cycles, float)
            else float(averages(np.asarray(cycles).reshape(1, -1))[0])
        }

    def least_in(
        self, op: Op, way: Way, pointer: Pointers, mask: Any, moved: tuple[Any, Any], sharers: Any
    ) -> dict[str, Any]:
        """`least` of a regular load of so many (bytes, rows); `slow`: the cycles if memory gives it, where they differ."""
        amount, rows = moved
        if op.attrs.get("cache") == ".cv":
            region = self.region_of(pointer.tensor, pointer.offsets, mask)
            lines = line_requests(pointer.offsets, _itemsize(op.results[0]), region)
            return self.least(way.past_l2(), lines, amount, sharers)
        found, slower = self.least(way, rows, amount, sharers), way.from_memory(rows, amount)
        if slower is not None:
            found["slow"] = self.plan.least_cycles(slower, rows, amount, sharers)
        return found

    def cores_alike(self, region: AccessRegion) -> Any:
        """For each program how many cores read the same as it, at the same time."""
        return sharers(region.starts, self.active, 1, self.plan.wiring.machine.cores)

    def first_share(self, op: Op, pointer: Pointers, mask: Any, amount: Any) -> tuple[Any, Any]:
        """(per program, or one for all alike, the part of a load that memory gives; cores that read the same)."""
        if not isinstance(pointer.tensor, Anywhere):
            region = self.checked_region(op, pointer, mask, "load", self.active)
            many = self.cores_alike(region)
            if op.attrs.get("cache") == ".cv":
                self.touch.past(float(np.broadcast_to(amount, len(self.active)).sum()))
                return np.ones(1), many
            if self.waves:
                return (pointer.tensor, region), many
            return self.touch.share(pointer.tensor, region), many
        out = np.ones(len(self.active))
        for index, p, m in self.known.pieces(pointer, mask, self.active, "load", self.site(op)):
            numbers = self.active if index is None else self.active[index]
            out[slice(None) if index is None else index] = self.touch.share(
                p.tensor, self.checked_region(op, p, m, "load", numbers)
            )
        return out, 1.0

    def checked_region(
        self, op: Op, pointer: Pointers, mask: Any, what: str, numbers: np.ndarray
    ) -> AccessRegion:
        """Where an affine access touches its tensor; out of bounds is an error here as it is with values."""
        region = (
            self.region_of(pointer.tensor, pointer.offsets, mask)
            if numbers is self.active
            else AccessRegion(pointer.tensor, pointer.offsets, mask, len(numbers))
        )
        check(
            pointer.tensor, region, numbers if self.subs == 1 else numbers % self.total, what, self.site(op)
        )
        return region

    def _fill(self, op: Op, r: Value, elements: Any, slots: tuple[int, ...]) -> None:
        """Masked-out elements are filled by the Vector unit after a partial load.

        The record reads the slot and stands before its users on the Vector pipe, so it delays them. It does not count as
        the slot's writer: programs that load whole tiles skip it, and a skipped writer would hold back their next load.
        """
        if isinstance(elements, int) and elements == r.numel:
            return
        numbers = self.active - self.first_number
        partial = np.broadcast_to(np.asarray(elements) < r.numel, len(numbers))
        if partial.any():
            cost = self.plan.costs.filled(r)
            self.add(
                self.plan.wiring.vector,
                op.loc,
                occupancy=cost.occupancy + cost.latency,
                instructions=cost.instructions,
                grade=cost.grade,
                reads=slots,
                active=None if partial.all() and self.active_or_none() is None else numbers[partial],
            )

    def _check_bursts(self, op: Op, v: Value, bursts: Any, elements: Any) -> None:
        many = bursts if isinstance(bursts, int) else int(bursts.max())
        if many <= 1:
            return
        all_elements = elements if isinstance(elements, int) else int(elements.max())
        if many > 1 and many == all_elements and v.numel > 1:
            self.plan.warn(
                op,
                f"{op.kind} of {list(v.shape)} is strided: {many} elements move as {many} blocks of 32 bytes",
            )

    def _discrete(self, op: Op, v: Value, reading: bool, what: str, **slots: Any) -> None:
        """Addresses that are no regular pattern: one transfer for each element, or for each run of neighbours."""
        run = op.attrs.get("run", 1)
        n, size = v.numel // run, align(run * _itemsize(v), BLOCK_BYTES)
        wiring = self.plan.wiring
        interval = self.plan.read_interval if reading else self.plan.write_interval
        latency = self.plan.read_latency if reading else self.plan.write_latency
        things = "elements" if run == 1 else f"rows of {run} elements"
        self.plan.warn(op, f"discrete {what}: {n} {things}, one transfer of {size} bytes each")
        self.add(
            wiring.mte2 if reading else wiring.mte3,
            op.loc,
            occupancy=n * interval,
            latency=latency,
            channel=wiring.read[0] if reading else wiring.write[0],
            amount=n * size,
            instructions=n,
            **slots,
        )

    def record_store(self, op: Op, pointer: Pointers, mask: Any) -> None:
        self.check_known(op, pointer, mask)
        v = op.args[1]
        assert v is not None
        root = self.plan.definitions.root(v)
        if (
            root is not None
            and self.plan.homes.home(root) == L0C
            and root.id not in self.plan.homes.copied_to_ub
        ):
            self.cube_store(op, pointer, mask)
            return
        self.flush()
        reads = self.slots_of(v)
        if v.shape and (self.plan.definitions.root(v) is None or self.plan.definitions.form(v) != TILE):
            reads = self._written_out(op, v)
        if op.id in self.plan.placement.spread_of:
            reads = self._spread(op, v, reads)
        if v.shape and (not isinstance(pointer.offsets, Affine) or not boxed(mask)):
            self._discrete(op, v, False, op.kind, reads=reads)
            return
        channel = self.way_out(op, pointer, mask, self.plan.wiring.write, self.plan.wiring.mte3)
        offsets = pointer.offsets if isinstance(pointer.offsets, Affine) else Affine(0, (), ())
        amount, bursts, elements = self.traffic(pointer.tensor, offsets, mask, _itemsize(v))
        self._check_bursts(op, v, bursts, elements)
        self.add(
            self.plan.wiring.mte3,
            op.loc,
            channel=channel,
            amount=amount,
            **self.least(self.plan.write_way, bursts, amount, 1.0),
            latency=self.plan.write_latency,
            reads=reads,
        )

    def way_out(self, op: Op, pointer: Pointers, mask: Any, ways: tuple[int, int], pipe: int) -> Any:
        """Channel of a store: into L2, or at memory's pace where it pushes out what was changed before."""
        if not isinstance(pointer.offsets, Affine) or isinstance(pointer.tensor, Anywhere):
            return ways[0]
        region = self.checked_region(op, pointer, mask, op.kind, self.active)
        if self.waves:
            return self.touching(op, pipe, ways, pointer.tensor, region, True)
        return ways[0] if self.touch.write(pointer.tensor, region) else ways[1]

    def record_atomic(self, op: Op, pointer: Pointers, mask: Any) -> None:
        """A store that the memory system combines; where the old values are used, a load of the same elements before it."""
        if op.attrs["result_used"]:
            self.plan.warn(
                op,
                f"atomic_{op.name} with its old values: no figure is published; costed as a load and a store",
            )
            self.record_load(op, pointer, mask)
        self.record_store(op, pointer, mask)

    def _spread(self, op: Op, v: Value, reads: tuple[int, ...]) -> tuple[int, ...]:
        """The elements of a strided store, each in a block of its own."""
        slot, cost = self.plan.placement.spread_of[op.id], self.plan.costs.spread(v)
        writes, clobbers = self.copy_of(slot, slot.loop)
        self._computed(op, cost, reads, writes, clobbers)
        return writes

    def _written_out(self, op: Op, v: Value) -> tuple[int, ...]:
        """A tile that is a view or a formula is written to scratch, from where it is stored."""
        cost = self.plan.costs.made_real(v)
        slot = self.plan.placement.scratch_of[op.id]
        self.add(
            self.plan.wiring.vector,
            op.loc,
            occupancy=cost.occupancy,
            latency=cost.latency,
            instructions=cost.instructions,
            grade=cost.grade,
            reads=self.slots_of(v),
            writes=(slot.number,),
            clobbers=slot.targets[0][1],
        )
        return (slot.number,)

    def record_print(self, op: Op) -> None:
        """A print is charged as the scalar unit reading every element; what it really costs nobody published."""
        model = self.plan.costs.model
        elements = sum(v.numel for v in op.args if v is not None) or 1
        model.notes[
            "device_print: costed as one pass of the scalar unit over its elements; the figure is assumed"
        ] = None
        cost = model.scalar_loop(elements)
        self.add(
            self.plan.scalar,
            op.loc,
            occupancy=cost.occupancy,
            grade=cost.grade,
            reads=self.slots_of(*op.args),
        )

    def record_loop_entry(self, op: Op) -> None:
        """Values that a loop carries start in their own buffer: written or copied there unless they already are."""
        first = 3 if op.kind == "for" else 0
        for k, r in enumerate(op.results):
            self.move_into(op, op.args[first + k], r)

    def record_hand_back(self, op: Op) -> None:
        """At the end of a turn: what was not computed in its carried buffer is copied there."""
        for k, r in enumerate(op.results):
            self.move_into(op, op.regions[-1].yields[k], r)

    def move_into(self, op: Op, v: Value | None, r: Value) -> None:
        slot = self.plan.placement.slot_of.get(r.id)
        if v is None or slot is None or not r.shape:
            return
        root = self.plan.definitions.root(v)
        if root is not None and self.plan.placement.slot_of.get(root.id) is slot:
            return
        if slot.space == L0C and (root is None or self.plan.homes.home(root) != L0C):
            self.start_sum(v, slot)  # the first Mmad starts from zero, or from a bias
            return
        if root is not None and self.plan.placement.sum_of.get(root.id) is slot:
            return
        self.flush()
        cost = self.plan.costs.made_real(v)
        self.add(
            self.plan.wiring.vector,
            v.loc,
            occupancy=cost.occupancy,
            latency=cost.latency,
            instructions=cost.instructions,
            grade=cost.grade,
            reads=self.slots_of(v),
            writes=(slot.number,),
            clobbers=slot.targets[0][1],
        )

    def loop_begins(self, op: Op) -> None:
        self.record_loop_entry(op)
        if is_shared(op):
            self.begin_shared(op)

    def loop_done(self, op: Op) -> None:
        self.end_shared(op)
        for r in op.results:
            if r.id in self.plan.placement.ub_copy:
                self.to_ub(op, r)
                self.add_start(op, r)

    def branch_ends(self, op: Op, region: Region) -> None:
        """What a branch did not compute in the buffer of the `if` is copied there."""
        for r, y in zip(op.results, region.yields, strict=True):
            self.move_into(op, y, r)

    def turn_ends(self, op: Op) -> None:
        self.record_hand_back(op)


def _itemsize(v: Value) -> int:
    assert isinstance(v.dtype, DType)
    return v.dtype.itemsize
