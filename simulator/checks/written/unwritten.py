"""Loads from global memory that nobody has written: no launch, and nothing else. `scratch.py` says how that is known."""

from __future__ import annotations

import numpy as np

from ...interpreter.faults import place
from ...interpreter.tensors import Tensor
from ...ir.pointer_roots import pointer_roots
from ...ir.program import Program
from ...messages import Message, fault
from ..access import Access, Watcher
from ..memory.areas import Area, Areas, finer
from ._touched import clear, first_set
from .scratch import unwritten


class UnwrittenMemory(Watcher):
    """Follows the memory of a launch that was not written before it."""

    def __init__(self, program: Program) -> None:
        roots = pointer_roots(program)
        reads = [op for op in program.walk() if op.kind in ("load", "atomic")]
        self.loaded = {name for op in reads for name in roots.get(op.operand(0).id) or program.params}
        self.parameters = set(program.params)
        self.memory: Areas[np.ndarray | None] = Areas(self._marks, finer)
        self.told: dict[int, Message] = {}

    def tensors(self, given: list[Tensor]) -> None:
        self.memory.add(given)

    def _marks(self, area: Area[np.ndarray | None]) -> np.ndarray | None:
        """A mark for each unit that nobody has written; None where all of it was."""
        out: np.ndarray | None = None
        if self.loaded.isdisjoint(area.names) and area.names <= self.parameters:
            return None
        for t in area.tensors:
            assert t.window is not None
            found, (first, size) = unwritten(t.window, t.dtype), area.place(t)
            if found is not None:
                out = np.zeros(area.units, np.uint8) if out is None else out
                out[first : first + t.elements * size] |= np.repeat(found, size)
        return out

    def access(self, a: Access) -> None:
        if not a.tensor.elements:
            return
        area, *at = self.memory.placed(a.tensor)
        if area.map is None:
            return
        if a.op.id not in self.told and _reads(a):
            found = first_set(area.map, *at, a.runs)
            if found is not None:
                self._tell(a, *found)
        if a.what != "load":
            clear(area.map, *at, a.runs)

    def _tell(self, a: Access, lane: int, index: int) -> None:
        number = int(a.programs[lane if len(a.programs) > 1 else 0])
        does = "loads" if a.what == "load" else f"makes an {a.what} of"
        text = (
            f"{a.site.program(number)} {does} element {index - a.tensor.origin} of {a.tensor.name!r}, which nobody has "
            "written: on the device it holds what was there; store it before, mask the access, or make the memory with zeros"
        )
        self.told[a.op.id] = fault(text, place(a.op), (number,))

    def found(self) -> tuple[Message, ...]:
        return tuple(self.told.values())


def _reads(a: Access) -> bool:
    """Whether an access uses what is there; an exchange whose result nobody wants only writes."""
    return a.what != "store" and (a.what != "atomic_xchg" or bool(a.op.attrs["result_used"]))
