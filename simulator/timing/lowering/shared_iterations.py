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


def _handed_on(program: Program, op: Op) -> list[str]:
    """Names of what an iteration of a loop leaves to the next one, or to what follows the loop.

    A name that each iteration gives a value of its own, and that nobody reads after the loop, is not among them.
    """
    body = op.regions[0]
    pairs = list(zip(op.results, body.args[1:], body.yields, strict=True))
    used = {v.id for o in program.walk() for v in o.args if v is not None}
    used |= {
        v.id for o in program.walk() for region in o.regions if region is not body for v in region.yields
    }
    used |= {y.id for _, a, y in pairs for _, b, _ in pairs if y is b and a is not b}
    return [r.name for r, a, y in pairs if y is not a and not used.isdisjoint((r.id, a.id))]


class SharedIterations:
    """The part of lowering that knows such loops. loop: the one that is being lowered, None outside of them."""

    def __init__(self, context: LoweringContext) -> None:
        self.context = context
        self.plan = context.plan
        self.loop: Op | None = None
        self.count = 0  # iterations so far
        self.handed_on: dict[int, str] = {}  # loop (by id) -> names of what one iteration leaves to others

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
        if op.id not in self.handed_on:
            self.handed_on[op.id] = ", ".join(_handed_on(self.context.program, op))
        carried = self.handed_on[op.id]
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
