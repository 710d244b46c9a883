"""Elements of one tile that a store puts into one element of memory: with different values, or each an update of it."""

from __future__ import annotations

import numpy as np

from ..interpreter.faults import place
from ..interpreter.regions import AccessRegion, ElementAddresses
from ..interpreter.values import Affine, Box
from ..ir.program import Program
from ..messages import Message, fault, note
from ._races import find_unequal
from .access import Access, Watcher
from .lost_updates import LastLoad, LostUpdates
from .memory_map import MOST_UNITS


class StoreLanes(Watcher):
    """Finds them in each store whose elements may fall together."""

    def __init__(self, program: Program) -> None:
        self.updates = LostUpdates(program)
        self.last: dict[int, np.ndarray] = {}
        self.first = 1  # position of the first element of the next store, counted over all of them
        self.told: dict[int, Message] = {}

    def access(self, a: Access) -> None:
        if a.op.id in self.updates.needed:
            self.updates.last[a.op.id] = LastLoad(a, a.where if a.region is None else _elements(a, a.region))
        if a.what != "store" or a.op.id in self.told or not a.tensor.elements:
            return
        where = a.where if a.region is None else _elements(a, a.region)
        if where is None or len(where.at) < 2:
            return
        if a.tensor.elements > MOST_UNITS:
            self.told[a.op.id] = note(
                f"{a.tensor.name!r} has more than {MOST_UNITS} elements: whether one store reaches one of them twice was "
                "not looked for",
                place(a.op),
            )
            return
        self._look(a, where)

    def _look(self, a: Access, where: ElementAddresses) -> None:
        last = self.last.get(id(a.tensor))
        if last is None:
            last = self.last[id(a.tensor)] = np.zeros(a.tensor.elements, np.int64)
        assert a.value is not None
        values = np.ascontiguousarray(
            np.broadcast_to(a.value, where.shape), a.tensor.dtype.host_dtype
        ).reshape(-1)
        rows = max(1, where.shape[0])
        hit = find_unequal(last, self.first, where.at, where.chosen, values.view(np.uint8), rows)
        self.first += len(where.at)
        if hit is not None:
            self._tell(
                a,
                where,
                hit,
                f"as {values[hit[0]]} and {values[hit[1]]}, in",
                "either may stay; mask all but one, or",
            )
        elif (hit := self.updates.lost(a, where, values)) is not None:
            said = "each made of what it loaded there, in"
            self._tell(
                a, where, hit, said, f"one of their updates stays ({values[hit[0]]}), the others are lost;"
            )

    def _tell(self, a: Access, where: ElementAddresses, hit: tuple[int, int], how: str, then: str) -> None:
        row, one = divmod(hit[0], len(where.at) // where.shape[0])
        lanes = [[int(k) for k in np.unravel_index(i, where.shape)][1:] for i in hit]
        element = int(where.at[one + row * (len(where.at) // where.shape[0])]) - a.tensor.origin
        program = int(a.programs[row])
        self.told[a.op.id] = fault(
            f"elements {lanes[0]} and {lanes[1]} of the tile both go to element {element} of {a.tensor.name!r}, "
            f"{how} one store of {a.site.program(program)}: on the device {then} combine with an atomic",
            place(a.op),
            (program,),
        )

    def found(self) -> tuple[Message, ...]:
        return tuple(self.told.values())


def _elements(a: Access, region: AccessRegion) -> ElementAddresses | None:
    """The elements of boxes; None if those of one program cannot fall together."""
    steps, sizes = np.abs(region.strides), region.shape
    order = np.argsort(steps, axis=1, kind="stable")
    steps, sizes = np.take_along_axis(steps, order, 1), sizes[order]
    reach = np.cumsum(steps * (sizes - 1), axis=1)
    before = np.concatenate([np.zeros_like(reach[:, :1]), reach[:, :-1]], axis=1)
    if ((steps > before) | (sizes == 1)).all():
        return None
    affine = a.offsets if isinstance(a.offsets, Affine) else Affine(a.offsets, (), ())
    at = affine.elements() + a.tensor.origin
    at = np.broadcast_to(at, (len(a.programs), *at.shape[1:]))
    mask = a.mask.dense() if isinstance(a.mask, Box) else None
    return ElementAddresses(at, mask)
