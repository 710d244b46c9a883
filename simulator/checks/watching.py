"""The watchers of a launch."""

from __future__ import annotations

import math
from typing import Any

from ..interpreter.lanes import chunk_size
from ..interpreter.program_order.order import must_run_one_by_one
from ..ir.program import Program
from .access import Watcher
from .asked import Checks
from .cores import CoreRaces
from .lanes import StoreLanes
from .locks.lock_order import lock_order
from .masked import MaskedLanes
from .races import ProgramRaces
from .undefined.watch import UndefinedElements
from .written.dead_moves import DeadMoves
from .written.overwritten import OverwrittenUnread
from .written.scratch import any_filled
from .written.unwritten import UnwrittenMemory


def watchers_of(
    program: Program, grid: tuple[int, int, int], arguments: dict[str, Any], asked: Checks
) -> tuple[Watcher, ...]:
    """Those of a launch, for the parts of both cores together."""

    def meet() -> bool:
        # Programs run one by one because they meet, or because their tiles are so large.
        return chunk_size(program) > 1 or must_run_one_by_one(program, grid, arguments)

    programs = math.prod(grid)
    races = ProgramRaces(program, programs, meet)
    found: list[Watcher] = [races, MaskedLanes(), *lock_order(program, programs, lambda: races.shared.waits)]
    if asked.split and any(op.kind in ("dot", "sync", "sub_vec_id") for op in program.walk()):
        found.append(CoreRaces(program, programs))
    if asked.poison:
        found.append(UndefinedElements(program, silent=not asked.check))
    if asked.check:
        found += [StoreLanes(program), DeadMoves(program), OverwrittenUnread(program)]
    if asked.check and any_filled():
        found.append(UnwrittenMemory(program))
    return tuple(found)
