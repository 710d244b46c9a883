"""The operator's own choice always fits: it is made again as if UB and L0C were smaller until every launch has room for its
tiles.

The rules of the operators reckon what a tile takes. What the placement then gives it, the figure by which a launch is
refused, depends on more: padding of short rows, copies of what is stretched along them, banks, and who makes the
code: sums that a loop carries may need a second place.
"""

from __future__ import annotations

from dataclasses import replace

from ...simulator.errors import BufferOverflowError, UsageError
from ...simulator.launch import place
from ..operator.operator import Operator
from ..operator.plan import Plan, PlanContext
from ..operator.tensors import Knobs, Options, Tensors
from .launching import call_of

ROOMS = (0.8, 0.6, 0.45, 0.3, 0.2, 0.1)  # parts of UB and L0C that the rules are told of, in this order


def plan_that_fits(
    op: Operator, tensors: Tensors, options: Options, knobs: Knobs, context: PlanContext
) -> Plan:
    """The operator's plan on the current device, with the largest tiles by its rules that fit.

    Knobs that are given stay. Where no room helps, the plan of whole buffers: its launch says what does not fit.
    """
    begin = context.mark()
    whole = plan = op.plan(tensors, options, knobs, context)
    for room in ROOMS:
        if fits(plan):
            return plan
        context.release(begin)
        plan = op.plan(tensors, options, knobs, replace(context, room=room))
    return plan if fits(plan) else whole


def fits(plan: Plan) -> bool:
    """Whether UB and L0C have room for the tiles of every launch; what fails for another reason no smaller room would help,
    and the launch itself says it."""
    try:
        for step in plan.steps:
            place(call_of(step))
    except BufferOverflowError as e:
        return e.space not in ("UB", "L0C")
    except UsageError:  # an address beyond 32 bits, say
        return True
    return True
