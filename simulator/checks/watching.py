"""The watchers of a launch."""

from __future__ import annotations

from ..ir.program import Program
from .access import Watcher
from .asked import Checks
from .cores import CoreRaces
from .masked import MaskedLanes
from .races import ProgramRaces


def watchers_of(program: Program, programs: int, asked: Checks) -> tuple[Watcher, ...]:
    """Those of a launch of `programs` programs, for the parts of both cores together."""
    two_cores = asked.split and any(op.kind == "dot" or op.kind == "sync" for op in program.walk())
    found: list[Watcher] = [ProgramRaces(program, programs), MaskedLanes()]
    return (*found, *([CoreRaces(program, programs)] if two_cores else []))
