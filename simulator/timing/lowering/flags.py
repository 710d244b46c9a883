"""Records of flags and barriers between the cores of a program.

A set waits until its pipe has done everything before it: all records of a pipe that some set names read the pipe's drain
slot, and a record in front of the set writes it. The set then writes the flag's slot, with the time a flag takes to the
other core as its latency; a wait reads that slot on the receiver's pipe, which executes in order and so is blocked.
"""

from __future__ import annotations

from typing import Any

from ...errors import RunError
from ...interpreter.two_cores.deadlock import MOST_AHEAD
from ...ir.located_errors import at_line
from ...ir.passes.split_cores import CUBE, barrier_cores
from ...ir.program import Op, Program
from ...messages import FAULT, NOTE
from ..costs.provenance import CROSS_CORE_SYNC, grade_of
from ..engine.trace import BARRIER
from .context import drained_pipes
from .records import LoweringContext

KINDS = {"all": 0, "all_cube": 1, "all_vector": 2}  # of barriers of all programs, by their mode


class FlagLowering:
    """Records of the flags of some programs. sets: how often each flag was set and waited for so far."""

    def __init__(self, context: LoweringContext) -> None:
        self.context = context
        self.plan = context.plan
        self.sets: dict[tuple[str, str, int], int] = {}

    def record(self, op: Op, event: Any) -> None:
        if op.name == "all":
            self._barrier(op)
            return
        assert isinstance(event, int)
        core = op.attrs["core"]
        self.context.flush(cube=core == CUBE)
        key = (op.name, op.attrs["sender"], event)
        iteration = self.sets[key] = self.sets.get(key, -1) + 1
        slot = self.plan.extra_slot(("flag", op.attrs["sender"], event, iteration))
        if op.name == "wait":
            self._cross(op, self._pipe_of(core, op.attrs["receiver_pipe"]), reads=(slot,))
            return
        self._set(op, core, slot)
        if iteration - self.sets.get(("wait", *key[1:]), -1) > MOST_AHEAD:
            self.plan.warn(
                op,
                f"sync_block_set: the {core} core may be more than {MOST_AHEAD} sets of event {event} ahead of the waits, "
                f"and the counter holds {MOST_AHEAD}; let it wait for the other core now and then",
                FAULT,
            )

    def _set(self, op: Op, core: str, slot: int) -> None:
        pipe = self._pipe_of(core, op.attrs["sender_pipe"])
        drained = tuple(self.plan.drains[p] for p in drained_pipes(self.plan.wiring, op))
        self._cross(op, pipe, instructions=0, writes=drained)
        self._cross(op, pipe, latency=self.plan.cross_core(), writes=(slot,))

    def _barrier(self, op: Op) -> None:
        """Each core stops all its pipes, tells the others, and goes on when it has heard of all of them, in all programs."""
        self.context.flush()
        plan = self.plan
        cores = [c for c in barrier_cores(op.attrs["mode"]) if self._pipe_of(c, "S") >= 0]
        if not cores:
            plan.warn(
                op,
                f"sync_block_all({op.attrs['mode']!r}): the kernel has no work for such cores; no core waits",
                NOTE,
            )
            return
        kind = KINDS.get(op.attrs["mode"])  # None: only the two Vector cores of a program
        told = plan.cross_core() if kind is None else plan.barrier()
        arrived = {c: plan.extra_slot(("arrived", c)) for c in cores}
        for c in cores:
            drained = tuple(plan.drains[p] for p in plan.wiring.pipes_of(c))
            self._cross(op, self._pipe_of(c, "S"), instructions=0, writes=drained)
            self._cross(op, self._pipe_of(c, "S"), latency=told, writes=(arrived[c],))
        channel = -1 if kind is None else BARRIER - kind
        for c in cores:
            self._cross(op, self._pipe_of(c, "S"), channel=channel, reads=tuple(arrived.values()))

    def _sync_grade(self) -> int:
        return grade_of(self.plan.product, (CROSS_CORE_SYNC,))

    def _pipe_of(self, core: str, name: str) -> int:
        return self.plan.wiring.pipe(core, name)

    def _cross(self, op: Op, pipe: int, latency: float = 0.0, instructions: int = 1, **slots: Any) -> None:
        self.context.add(
            pipe,
            op.loc,
            occupancy=0.0,
            latency=latency,
            instructions=instructions,
            grade=self._sync_grade() if latency else 0,
            **slots,
        )


def check_barrier(program: Program, product: str, programs: int, cores: int) -> None:
    """Raise `RunError` if programs would wait in a barrier for programs that have no core yet."""
    if programs <= cores:
        return
    for op in program.walk():
        if op.kind == "sync" and op.name == "all" and op.attrs["mode"] != "all_sub_vector":
            message = (
                f"hang: sync_block_all({op.attrs['mode']!r}, {op.attrs['event']}) waits for "
                f"all {programs} programs, but {product} runs {cores} at once; start at most {cores} and loop in them"
            )
            raise RunError(at_line(op.loc, message))
