"""The two Vector cores of a program, as its records know them: pipes and slots that each has for itself."""

from __future__ import annotations

from ..placement.memory_spaces import UB
from ..trace.two_cores import Pair
from .context import LoweringPlan

CUBE_UNIT = "AIC"


def pair_of(plan: LoweringPlan, subs: int, total: int) -> Pair | None:
    """Where the kernel tells its Vector cores apart (`sub_vec_id`), or they share a loop; None for one core.

    subs: lanes of a program. total: programs of the grid.
    """
    if subs == 1 and not plan.shares_iterations:
        return None
    pipes = plan.wiring.machine.pipes
    own = {p for p, spec in enumerate(pipes) if spec.unit != CUBE_UNIT}
    first = {p for p in own if p < len(pipes) - len(own) // 2}
    read = plan.wiring.read
    # Around a loop both cores do the same: the second finds in L2 what the first has loaded.
    again = {read[0]: read[1]} if plan.shares_iterations else {}
    in_ub = {s.number + k for s in plan.placement.slots if s.space == UB for k in range(s.copies)}

    def private(slot: int) -> bool:
        if slot in in_ub:
            return True
        key = plan.key_of(slot)
        return key is not None and (
            key[:2] in (("flag", "vector"), ("arrived", "vector")) or (key[0] == "drain" and key[1] in own)
        )

    return Pair(
        first,
        private,
        lambda slot: plan.key_of(slot) == ("arrived", "vector"),
        lambda slot: plan.extra_slot(("second", slot)),
        total,
        again,
    )
