"""Records of loops whose turns two Vector cores share: `parallel(..., bind_sub_block=True)`.

A walk goes through all turns in order. Turn k of such a loop is recorded on the Vector core k % 2 of the group. Both cores
run the code around the loop, so what is loaded or computed there is there on both; what it stores is stored by the first.
That is how a kernel of both cores is compiled without a word on who does what; nobody documents it for this loop.
"""

from __future__ import annotations

from typing import Any

from ...interpreter.faults import place
from ...ir.passes.split_cores import SUB_VECTOR_CORES, has_sub_vectors
from ...ir.program import Op, Program
from ...products import Product
from ..trace.recorder import Redirected
from .context import Plan
from .cube_core import CubeLowering
from .sub_cores import Pair

WORDS = (
    "parallel(bind_sub_block=True): turns go to the two vector cores of a group in turn, work around the loop is done by "
    "both, stores around it by the first; the order is assumed"
)


def is_shared(op: Op) -> bool:
    """Whether a loop's turns are shared."""
    return bool(op.kind == "for" and op.attrs.get("hints", {}).get("bind_sub_block"))


def shares_turns(program: Program, product: Product) -> bool:
    """Whether a program has such a loop, on a product whose Cube core has two Vector cores beside it."""
    two = product.core_model == "split" and product.aiv_per_aic == SUB_VECTOR_CORES
    return two and not has_sub_vectors(program) and any(is_shared(op) for op in program.walk())


class TurnsRecorder(Redirected):
    """Takes the records of one Vector core and puts them on the pipes of two. `core`: whose turn it is, None for both."""

    def __init__(self, programs: int, plan: Plan) -> None:
        super().__init__(programs)
        self.pair = Pair(plan)
        self.wiring = plan.wiring
        self.core: int | None = None

    def _cores(self, pipe: int) -> tuple[int, ...]:
        if pipe not in self.pair.own:
            return (0,)
        if self.core is not None:
            return (self.core,)
        return (0,) if pipe == self.wiring.mte3 else (0, 1)

    def add(self, pipe: int, line: int, **what: Any) -> None:
        if self.drains and pipe in self.drains and len(self.drains) == len(self.pair.plan.drains):
            self.drains = self.pair.drains(self.drains)
        cores = self._cores(pipe)
        shift = self.pair.shift if pipe in self.pair.own else 0
        slots = {n: what.pop(n, ()) for n in ("reads", "writes", "clobbers")}
        channel = what.pop("channel", -1)
        for sub in cores:
            mine: dict[str, Any] = {n: self.pair.slots(s, sub, pipe, n == "reads") for n, s in slots.items()}
            again = (
                sub and len(cores) > 1 and channel == self.wiring.read[0]
            )  # the second core finds it in L2
            mine["channel"] = self.wiring.read[1] if again else channel
            super().add(pipe + sub * shift, line, **mine, **what)


class SharedTurns(CubeLowering):
    """The part of lowering that knows such loops."""

    shared_loop: Op | None
    shared_turns: int
    turn_counts: dict[int, int]

    def begin_shared(self, op: Op) -> None:
        if not isinstance(self.recorder, TurnsRecorder):
            self.plan.costs.model.notes[
                f"{place(op)}: parallel(bind_sub_block=True): one vector core does all turns: {self._why_alone()}"
            ] = None
            return
        self.plan.costs.model.notes[f"{place(op)}: {WORDS}"] = None
        carried = ", ".join(r.name for r in op.results)
        if carried:
            self.plan.warn(
                op,
                f"{carried} goes from turn to turn, but on the device two vector cores share the turns",
            )
        if self.shared_loop is None:
            self.flush()  # type: ignore[attr-defined]
            self.shared_loop, self.shared_turns = op, 0

    def _why_alone(self) -> str:
        if self.subs > 1:
            return "the kernel tells the two apart by sub_vec_id"
        if shares_turns(self.program, self.plan.product):
            return "they have no work of their own"
        return f"{self.plan.product.name} has no second one in a core"

    def next_core(self, op: Op) -> None:
        """The next turn of a shared loop is the other Vector core's; each counts its own turns."""
        assert isinstance(self.recorder, TurnsRecorder)
        self.flush()  # type: ignore[attr-defined]
        self.recorder.core = self.shared_turns % SUB_VECTOR_CORES
        self.turn_counts[op.id] = self.shared_turns // SUB_VECTOR_CORES
        self.shared_turns += 1

    def end_shared(self, op: Op) -> None:
        if op is self.shared_loop and isinstance(self.recorder, TurnsRecorder):
            self.flush()  # type: ignore[attr-defined]
            self.recorder.core = self.shared_loop = None
