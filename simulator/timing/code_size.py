"""How much code a kernel has, as far as its time depends on it."""

from __future__ import annotations

from ..ir.operations import steps_of
from ..products import Product
from .lowering.context import LoweringPlan

OF_THE_HEAD = 3  # load, operation, store: of the kernels that `launch.kernel_head_us` was fitted on
MOVES = ("load", "store", "atomic", "dot")


def further_code_us(product: Product, plan: LoweringPlan) -> float:
    """Of a launch after another kernel, what a core waits for code beyond that of its first operations: however often an
    operation runs, its instructions and the scalar work around it come into the core's instruction cache once."""
    beyond = max(0, operations_in_code(plan) - OF_THE_HEAD)
    return beyond * product.number("launch.cold_code_us_per_operation")


def operations_in_code(plan: LoweringPlan) -> int:
    """Transfers, products and Vector instructions in the source of a launch that was lowered; a function counts as the
    instructions that the Vector unit takes for it."""
    moved = sum(len(plan.program.of_kind(kind)) for kind in MOVES)
    dense = (op for op in plan.program.walk() if op.id in plan.templates)
    return moved + sum(max(1, sum(n for _, n in steps_of(op))) for op in dense)
