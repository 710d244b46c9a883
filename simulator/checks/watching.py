"""The watchers of a launch."""

from __future__ import annotations

from ..ir.program import Program
from .access import Watcher
from .asked import Checks
from .cores import CoreRaces
from .lanes import StoreLanes
from .masked import MaskedLanes
from .races import ProgramRaces
from .undefined.watch import UndefinedElements
from .written.dead_moves import DeadMoves
from .written.overwritten import OverwrittenUnread
from .written.scratch import any_filled
from .written.unwritten import UnwrittenMemory


def watchers_of(program: Program, programs: int, asked: Checks) -> tuple[Watcher, ...]:
    """Those of a launch of `programs` programs, for the parts of both cores together."""
    found: list[Watcher] = [ProgramRaces(program, programs), MaskedLanes()]
    if asked.split and any(op.kind in ("dot", "sync") for op in program.walk()):
        found.append(CoreRaces(program, programs))
    if asked.check:
        found += [StoreLanes(), UndefinedElements(program), DeadMoves(program), OverwrittenUnread(program)]
    if asked.check and any_filled():
        found.append(UnwrittenMemory())
    return tuple(found)
