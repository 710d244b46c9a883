"""The checks of a launch that are made on request only: with `check=True`."""

from __future__ import annotations

from ..ir.program import Program
from ..messages import Message
from .access import Watcher
from .dead_moves import dead_moves
from .overwritten import OverwrittenUnread
from .scratch import any_filled
from .undefined.watch import UndefinedElements
from .unwritten import UnwrittenMemory


class DearChecks:
    """Of one program; where the parts of its cores run apart, both are shown to the same watchers."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.undefined = UndefinedElements(program)
        of_memory = (UnwrittenMemory(),) if any_filled() else ()
        self.watchers: tuple[Watcher, ...] = (*of_memory, OverwrittenUnread(program))

    def found(self) -> tuple[Message, ...]:
        """What is to be said of the launch, once it is over."""
        of_accesses = (m for watcher in self.watchers for m in watcher.found())
        return (*self.undefined.found(), *dead_moves(self.program), *of_accesses)
