"""Records of loops whose iterations two Vector cores share: `parallel(..., bind_sub_block=True)`.

Iterations are lowered in order. Iteration k of such a loop is recorded on the Vector core k % 2 of the group. Both cores
run the code around the loop, so what is loaded or computed there is there on both; what it stores is stored by the first.
This is assumed: no document says how the compiler divides such a loop.
"""

from __future__ import annotations

from ...interpreter.faults import place
from ...ir.passes.split_cores import SUB_VECTOR_CORES, has_sub_vectors
from ...ir.program import Op, Program
from ...messages import FAULT
from ...products import Product
from .records import LoweringContext

NOTE = (
    "parallel(bind_sub_block=True): iterations go to the two vector cores of a group in turn, work around the loop is done "
    "by both, stores around it by the first; the order is assumed"
)


def is_shared(op: Op) -> bool:
    """Whether two Vector cores share a loop's iterations."""
    return bool(op.kind == "for" and op.attrs.get("hints", {}).get("bind_sub_block"))


def shares_iterations(program: Program, product: Product) -> bool:
    """Whether a program has such a loop, on a product whose Cube core has two Vector cores beside it."""
    two = product.core_model == "split" and product.aiv_per_aic == SUB_VECTOR_CORES
    return two and not has_sub_vectors(program) and any(is_shared(op) for op in program.walk())


class SharedIterations:
    """The part of lowering that knows such loops. loop: the one that is being lowered, None outside of them."""

    def __init__(self, context: LoweringContext) -> None:
        self.context = context
        self.plan = context.plan
        self.loop: Op | None = None
        self.count = 0  # iterations so far

    def begin(self, op: Op) -> None:
        """A loop is entered; nothing for one that is not shared."""
        if not is_shared(op):
            return
        notes = self.plan.costs.model.notes
        if not self.plan.shares_iterations:
            message = (
                f"parallel(bind_sub_block=True): one vector core does all iterations: {self._why_alone()}"
            )
            notes[f"{place(op)}: {message}"] = None
            return
        notes[f"{place(op)}: {NOTE}"] = None
        carried = ", ".join(r.name for r in op.results)
        if carried:
            message = (
                f"{carried} goes from iteration to iteration, but on the device two vector cores share them"
            )
            self.plan.warn(op, message, FAULT)
        if self.loop is None:
            self.context.flush()
            self.loop, self.count = op, 0

    def _why_alone(self) -> str:
        if self.context.subs > 1:
            return "the kernel tells the two apart by sub_vec_id"
        if shares_iterations(self.context.program, self.plan.product):
            return "they have no work of their own"
        return f"{self.plan.product.name} has no second one in a core"

    def next_core(self) -> None:
        """The next iteration of the shared loop is the other Vector core's; each counts its own iterations."""
        assert self.loop is not None
        iteration, core = divmod(self.count, SUB_VECTOR_CORES)
        self._go_to(core)
        self.context.iteration_counts[self.loop.id] = iteration
        self.count += 1

    def end(self, op: Op) -> None:
        """A loop is left."""
        if op is self.loop:
            self._go_to(None)
            self.loop = None

    def _go_to(self, core: int | None) -> None:
        self.context.flush()
        self.context.recorder.core = core
