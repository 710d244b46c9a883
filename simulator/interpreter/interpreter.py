"""Interprets a tile program for many programs of its grid at once, exactly for each of them.

`Indexing` computes scalars, index tiles and masks; `Flow` follows branches and loops. What operations on elements and
accesses to memory mean, `Interpreter` asks its backend (see backend.py).
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from ..ir.liveness import last_uses
from ..ir.passes.split_cores import EVENTS
from ..ir.program import Op, Program, Region
from .backend import Backend
from .control_flow import Flow
from .faults import Site, place
from .scalars import Indexing
from .slicing import Slicing
from .state import DEFAULT_STEP_LIMIT, DataDependentError, Frame, scalar_from_dense
from .two_cores.deadlock import missing_message
from .values import OPAQUE, Opaque, Pointers, take


class Interpreter(Indexing, Slicing, Flow):
    """Carries out a program; elements and memory are a backend's.

    skipped: operations (by id) that are left out; their results are unknown.
    """

    def __init__(
        self,
        program: Program,
        grid: tuple[int, int, int],
        backend: Backend,
        step_limit: int = DEFAULT_STEP_LIMIT,
        skipped: AbstractSet[int] = frozenset(),
    ) -> None:
        super().__init__(program, grid, step_limit)
        self.backend = backend
        self.skipped = skipped
        if backend.frees:
            self.last_uses = last_uses(program)
        backend.attach(self)

    def run(self, numbers: np.ndarray, arguments: dict[str, Any]) -> None:
        super().run(numbers, arguments)
        self.backend.finished()

    def region(self, region: Region, frame: Frame) -> None:
        if not self.skipped:
            super().region(region, frame)
            return
        for op in region.ops:
            if op.id in self.skipped:
                frame.values.update((r.id, OPAQUE) for r in op.results)
            else:
                self.handlers[op.kind](op, frame)

    def look_at_index(self, op: Op, frame: Frame) -> None:
        """Whether an access uses a number that did not fit in its type."""
        if self.overflows.begun:
            self.overflows.access(op, frame, self.programs)

    def op_load(self, op: Op, frame: Frame) -> None:
        self.look_at_index(op, frame)
        p, m, o = self.operands(op, frame)
        frame.values[op.results[0].id] = self.scalar_result(op, self.load(op, p, m, o))

    def op_store(self, op: Op, frame: Frame) -> None:
        self.look_at_index(op, frame)
        if op.id in self.cube_once:
            self.once(op, frame)
        else:
            self.store(op, *self.operands(op, frame))

    def once(self, op: Op, frame: Frame) -> None:
        """A store or atomic of the Cube's core: by the lanes of the first Vector core only."""
        index = np.flatnonzero(self.active < self.total)
        if not len(index):
            return
        p, x, m, *_ = (take(x, index) for x in self.operands(op, frame))
        before, self.active = self.active, self.active[index]
        if op.kind == "store":
            self.store(op, p, x, m)
        else:
            self.atomic(op, p, x, m, None)
        self.active = before

    def op_atomic(self, op: Op, frame: Frame) -> None:
        self.look_at_index(op, frame)
        if op.id in self.cube_once:
            self.once(op, frame)
            return
        p, x, m, *rest = self.operands(op, frame)
        frame.values[op.results[0].id] = self.atomic(op, p, x, m, rest[0] if rest else None)

    def op_sync(self, op: Op, frame: Frame) -> None:
        v = op.args[0]
        event = op.attrs["event"] if v is None else _checked_event(op, frame.get(v), self.site(op))
        if op.name == "all" and len(self.active) < self.lanes_begun:
            here = len(np.unique(self.programs))
            raise self.site(op).error(missing_message(op, here, self.total))
        if self.exchange is not None:
            self.exchange.sync(self.core, op, event)
        self.synced(op, event)

    def op_send(self, op: Op, frame: Frame) -> None:
        assert self.exchange is not None
        for v in op.args:
            assert v is not None
            self.exchange.send(v.id, (frame.get(v), len(self.active)))

    def op_receive(self, op: Op, frame: Frame) -> None:
        assert self.exchange is not None
        for r in op.results:
            frame.values[r.id] = self.exchange.receive(self.core, op, r.id, len(self.active))
        self.backend.received(op)

    def op_custom(self, op: Op, frame: Frame) -> None:
        args = [frame.get(v) for v in op.args if v is not None]
        made = self.dense(op, args)
        for k, r in enumerate(op.results):
            x = made if isinstance(made, Opaque) else made[k]
            if not r.shape and r.dtype.is_int() and isinstance(x, np.ndarray):
                x = scalar_from_dense(x, r.dtype.is_bool())
            frame.values[r.id] = x

    def op_defined(self, op: Op, frame: Frame) -> None:
        """Which elements of a value are defined, or whether those that are used are: see `checks/undefined`."""
        found = self.backend.defined(op, self.operands(op, frame))
        frame.values.update((r.id, found) for r in op.results)

    def op_float64(self, op: Op, frame: Frame) -> None:
        """What an operation gives without rounding: see `execution/float64`."""
        given = self.operands(op, frame)
        before = self.active
        if op.attrs["of"].id in self.cube_once:
            index = np.flatnonzero(before < self.total)
            given, self.active = [take(x, index) for x in given], before[index]
        if len(self.active):
            found = self.backend.float64(op, given)
            frame.values.update((r.id, found) for r in op.results)
        self.active = before

    def op_print(self, op: Op, frame: Frame) -> None:
        self.show(op, [frame.get(v) for v in op.args if v is not None])

    def op_assert(self, op: Op, frame: Frame) -> None:
        self.backend.check_assert(op, frame.get(op.operand(0)))

    def dense(self, op: Op, args: list[Any]) -> Any:
        return self.backend.dense(op, args)

    def load(self, op: Op, pointer: Pointers, mask: Any, other: Any) -> Any:
        return self.backend.load(op, pointer, mask, other)

    def store(self, op: Op, pointer: Pointers, value: Any, mask: Any) -> None:
        self.backend.store(op, pointer, value, mask)

    def atomic(self, op: Op, pointer: Pointers, value: Any, mask: Any, expected: Any) -> Any:
        return self.backend.atomic(op, pointer, value, mask, expected)

    def gives_way(self) -> None:
        self.backend.gives_way()

    def synced(self, op: Op, event: Any) -> None:
        self.backend.synced(op, event)

    def show(self, op: Op, values: list[Any]) -> None:
        self.backend.show(op, values)


def _checked_event(op: Op, event: Any, site: Site) -> Any:
    """The number of a flag that is a value of the program."""
    if isinstance(event, Opaque):
        raise DataDependentError(
            f"{place(op)}: the event id depends on loaded data, which a run without values does not have"
        )
    numbers = np.asarray(event)
    bad = numbers[(numbers < 0) | (numbers >= EVENTS)]
    if bad.size:
        raise site.error(
            f"sync_block_{op.name}: event_id is {int(bad.flat[0])}, it must be 0 to {EVENTS - 1}"
        )
    return event


__all__ = ["DEFAULT_STEP_LIMIT", "DataDependentError", "Frame", "Interpreter"]
