"""Lowering: the interpreter records the pipe instructions of a program, besides (or instead of) computing elements.

What a part of the core does, a part of lowering knows; `Lowering` says which one an operation belongs to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...call import Call
from ...interpreter.arguments import runtime_arguments
from ...interpreter.faults import place
from ...interpreter.lanes import lanes
from ...interpreter.state import DataDependentError, Frame
from ...interpreter.two_cores.coscheduling import WHOLE as WHOLE_PROGRAM
from ...interpreter.two_cores.coscheduling import Interpreters, ProgramRuns
from ...interpreter.two_cores.turns import Turns
from ...interpreter.values import Opaque, Pointers
from ...ir.passes.split_cores import CUBE, VECTOR
from ...ir.program import Op, Program, Region, Value
from ...messages import NOTE, Message
from ..costs.l2_cache import FirstTouch
from ..engine.trace import ProgramGroup
from ..placement.layouts import TABLES
from ..placement.memory_spaces import FIXP, L0C, L1, VIEW
from ..trace.builder import TraceBuilder
from .buffers import BufferLowering
from .context import LoweringPlan
from .cube_core import CubeLowering
from .cut_products import WHOLE, ends_of, masks_of
from .flags import FlagLowering
from .records import LoweringContext
from .shared_iterations import SharedIterations
from .vector_core import VectorLowering


class Lowering(LoweringContext):
    """An interpreter that records. Its backend knows elements where control flow or addresses depend on them."""

    def prepare(self, plan: LoweringPlan, numbers: np.ndarray, touch: FirstTouch) -> None:
        super().prepare(plan, numbers, touch)
        self.vector = VectorLowering(self)
        self.cube = CubeLowering(self)
        self.buffers = BufferLowering(self, self.cube)
        self.flags = FlagLowering(self)
        self.shared = SharedIterations(self)
        self.ends = WHOLE  # of the product that is recorded now
        if plan.spaces.has_dot and self.last_uses:
            self._keep_masks()

    def _keep_masks(self) -> None:
        """What cuts an operand is asked for at its product."""
        dots = self.program.of_kind("dot")
        kept = {v.id for op in dots for v in masks_of(self.plan.spaces, op)}
        self.last_uses = {i: tuple(v for v in vs if v not in kept) for i, vs in self.last_uses.items()}

    # -- operations --------------------------------------------------------------------------------------------------

    def op_dot(self, op: Op, frame: Frame) -> None:
        self.ends = ends_of(self.plan, op, frame)
        self.dense_op(op, frame)

    def dense(self, op: Op, args: list[Any]) -> Any:
        if op.kind in self.buffers.recorders:
            self.buffers.recorders[op.kind](op)
        elif op.kind == "dot":
            self.count(op)
            self.cube.record_dot(op, self.ends)
        elif not (self.plan.spaces.has_dot and self.plan.spaces.space_of(op.results[0]) in (VIEW, FIXP)):
            self.vector.record_dense(op)
        return self.backend.dense(op, args)

    def show(self, op: Op, values: list[Any]) -> None:
        self.vector.record_print(op)
        super().show(op, values)

    def synced(self, op: Op, event: Any) -> None:
        self.flags.record(op, event)
        super().synced(op, event)

    def load(self, op: Op, pointer: Pointers, mask: Any, other: Any) -> Any:
        self.record_load(op, pointer, mask)
        return self.backend.load(op, pointer, mask, other)

    def store(self, op: Op, pointer: Pointers, value: Any, mask: Any) -> None:
        self.record_store(op, pointer, mask)
        self.backend.store(op, pointer, value, mask)

    def atomic(self, op: Op, pointer: Pointers, value: Any, mask: Any, expected: Any) -> Any:
        self.record_atomic(op, pointer, mask)
        return self.backend.atomic(op, pointer, value, mask, expected)

    def record_load(self, op: Op, pointer: Pointers, mask: Any) -> None:
        _check_known(op, pointer, mask)
        space = self.plan.spaces.space_of(op.results[0])
        if space == L1:
            self.cube.record_load(op, pointer, mask)
        elif space in TABLES:
            self.cube.record_row_load(op, pointer, mask)
        else:
            self.vector.record_load(op, pointer, mask)

    def record_store(self, op: Op, pointer: Pointers, mask: Any) -> None:
        _check_known(op, pointer, mask)
        spaces, root = self.plan.spaces, self.plan.definitions.root(op.operand(1))
        in_l0c = root is not None and spaces.space_of(root) == L0C and root.id not in spaces.copied_to_ub
        (self.cube if in_l0c else self.vector).record_store(op, pointer, mask)

    def record_atomic(self, op: Op, pointer: Pointers, mask: Any) -> None:
        """A store that the memory system combines; where the old values are used, a load of the same elements before it."""
        if op.attrs["locked"]:
            self.record_load(op, pointer, mask)
            self.vector.record_combined(op)
        elif op.attrs["result_used"]:
            self.plan.warn(
                op,
                f"atomic_{op.name} with its old values: no figure is published; costed as a load and a store",
                NOTE,
            )
            self.record_load(op, pointer, mask)
        self.record_store(op, pointer, mask)

    def region(self, region: Region, frame: Frame) -> None:
        if not self.plan.stage_of:
            super().region(region, frame)
            return
        for op in region.ops:
            self.recorder.stage = self.plan.stage_of.get(op.id, self.recorder.stage)
            self.handlers[op.kind](op, frame)

    # -- loops and branches ------------------------------------------------------------------------------------------

    def iteration_begins(self, op: Op, number: int) -> None:
        if op is self.shared.loop:
            self.shared.next_core()
        else:
            self.iteration_counts[op.id] = self.iteration_counts.get(op.id, -1) + 1
        self.symbolic_done(op)

    def loop_begins(self, op: Op) -> None:
        """Values that a loop carries start in their own buffer: written or copied there unless they already are."""
        for r, v in zip(op.results, op.args[3 if op.kind == "for" else 0 :], strict=True):
            self.move_into(v, r)
        self.shared.begin(op)
        placement = self.plan.placement
        stages = placement.stages.get(op.id)
        self.recorder.loop_begins(*(placement.tiles, stages.rounds) if stages else ())

    def iteration_ends(self, op: Op) -> None:
        """What was not computed in its carried buffer is copied there."""
        for r, y in zip(op.results, op.regions[-1].yields, strict=True):
            self.move_into(y, r)
        self.recorder.iteration_ends()

    def branch_ends(self, op: Op, region: Region) -> None:
        """What a branch did not compute in the buffer of the `if` is copied there."""
        for r, y in zip(op.results, region.yields, strict=True):
            self.move_into(y, r)

    def loop_done(self, op: Op) -> None:
        self.recorder.loop_ends()
        self.shared.end(op)
        self.cube.hand_overs.loop_done(op)
        for r in op.results:
            if r.id in self.plan.placement.ub_copy:
                self.cube.to_ub(op, r)

    def move_into(self, v: Value | None, r: Value) -> None:
        slot = self.plan.placement.slot_of.get(r.id)
        if v is None or slot is None or not r.shape:
            return
        root = self.plan.definitions.root(v)
        if root is not None and self.plan.placement.slot_of.get(root.id) is slot:
            return
        if slot.space == L0C and (root is None or self.plan.spaces.space_of(root) != L0C):
            self.cube.start_sum(v, slot)  # the first Mmad starts from zero, or from a bias
            return
        if root is not None and self.plan.placement.sum_of.get(root.id) is slot:
            return
        self.flush()
        self.made_real(v.loc, v, slot)


def _check_known(op: Op, pointer: Pointers, mask: Any) -> None:
    """A regular access whose place or extent is loaded from memory is regular: only a run with data can time it."""
    p, m = op.operand(0), op.args[1 if op.kind == "load" else 2]
    at = p.shape and isinstance(pointer.offsets, Opaque) and p.static.affine_offsets
    if at or (m is not None and isinstance(mask, Opaque) and m.static.kind in ("box", "scalar")):
        what = "address" if at else "mask"
        raise DataDependentError(
            f"{place(op)}: the {what} of a {op.kind} depends on loaded data, which a run without values does not have"
        )


class Lowered(Interpreters[Lowering]):
    """How a program is interpreted for its records: in the source's order, or the parts of both cores side by side.

    Gives the records of programs. Those of parts come in the order in which the parts run.

    Records of one unit stay in the order of its part, and each comes after those that it waits for, which is all that the
    engine needs.
    """

    def lower(
        self,
        plan: LoweringPlan,
        numbers: np.ndarray,
        touch: FirstTouch,
        arguments: dict[str, Any],
        turns: Turns,
    ) -> TraceBuilder:
        """The records of those programs."""
        main = self.of[WHOLE_PROGRAM if WHOLE_PROGRAM in self.of else VECTOR]
        main.prepare(plan, lanes(main.program, main.grid, numbers), touch)
        if main is not self.of.get(WHOLE_PROGRAM):
            _share_records(plan, self.of[CUBE], main, numbers, touch)
        self.run(numbers, arguments, turns)
        for core, one in self.of.items():
            one.flush(cube=core == CUBE)
        builder = main.recorder.builder
        builder.settle()  # what waits for its accesses may take slots for a second core
        return builder


def lowered_programs(
    call: Call,
    plan: LoweringPlan,
    touch: FirstTouch,
    apart: bool,
    chunks: list[np.ndarray],
    make: Callable[[Program], Lowering],
) -> tuple[list[ProgramGroup], tuple[Message, ...]]:
    """The records of programs, and what their interpretation showed. chunks: those that are lowered at once."""
    groups: list[ProgramGroup] = []
    values = runtime_arguments(call.program, call.arguments)

    def lower(lowered: Lowered, numbers: np.ndarray, turns: Turns) -> None:
        builder = lowered.lower(plan, numbers, touch, values, turns)
        groups.append(ProgramGroup(trace=builder.trace(plan.slots, plan.flag_slots), programs=numbers))

    cores = plan.wiring.machine.cores
    programs = ProgramRuns(chunks, lambda: cores, lambda: Lowered(call.program, apart, make), lower)
    programs.run()
    return groups, programs.found()


def _share_records(
    plan: LoweringPlan, cube: Lowering, vector: Lowering, numbers: np.ndarray, touch: FirstTouch
) -> None:
    """The Cube's part adds its records to those of the Vector part, and both know where values are and flags stand."""
    cube.prepare(plan, numbers, touch)
    cube.record_to(vector.recorder.builder)
    cube.current, cube.flags.sets = vector.current, vector.flags.sets
