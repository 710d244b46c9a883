"""Flags between the cores of a program: whether the source's order is one in which the device can run, or cores must wait.

The Cube's part and the Vector part of a program run at the same time on the device. If every wait comes after the set
that ends it when the source is read from top to bottom, that is an order the device may take, and all programs
run in it at once. Otherwise the parts run side by side, each until it has to wait (`coscheduling.py`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...errors import RunError
from ...ir.located_errors import at_line
from ...ir.passes.split_cores import EVENTS
from ...ir.program import Op, Program, walk
from ...record.recent import Recent
from ..arguments import key_of_arguments, runtime_arguments
from ..backend import AddressBackend
from ..interpreter import Interpreter
from ..lanes import chunk_size, lanes, programs_at_once
from ..program_order.order import find_order
from ..state import DataDependentError
from .deadlock import check_left_over


class FlagOrder(NamedTuple):
    """in_order: no wait comes before its set in the source's order. even: all programs pass each flag at once.

    barrier: programs wait for each other, so all of them run at once.
    """

    in_order: bool
    even: bool
    barrier: bool


_orders: Recent[tuple[Program, FlagOrder]] = Recent(64)  # with their programs, which keep their identity so


def flag_order(
    program: Program, grid: tuple[int, int, int], arguments: dict[str, Any], step_limit: int
) -> FlagOrder | None:
    """How the parts of a program may run; None for one without flags. step_limit: loop iterations at most.

    Raises `RunError` for a barrier that some programs do not reach, or a loop that goes on.
    """
    names = {op.name for op in program.walk() if op.kind == "sync"}
    if not names:
        return None
    of = key_of_arguments(arguments)
    key = None if of is None else (id(program), grid, of)
    return _orders.once(key, lambda: (program, _flag_order(program, grid, arguments, names, step_limit)))[1]


def _flag_order(
    program: Program, grid: tuple[int, int, int], arguments: dict[str, Any], names: set[str], step_limit: int
) -> FlagOrder:
    flags = _FlagCounts()
    interpreter = Interpreter(program, grid, flags, step_limit, skipped=_without_flags(program))
    try:
        numbers = np.arange(interpreter.total)
        interpreter.run(lanes(program, grid, numbers), runtime_arguments(program, arguments))
    except DataDependentError:
        return FlagOrder(in_order=False, even=False, barrier="all" in names)
    flags.check_left_over()
    return FlagOrder(flags.in_order, flags.even, "all" in names)


def _without_flags(program: Program) -> set[int]:
    """Loops (by id) that pass no flag and hand nothing on: they tell nothing."""
    return {
        op.id
        for op in program.walk()
        if op.kind == "for" and not op.results and all(o.kind != "sync" for o in walk(op.regions[0]))
    }


class Scheduling(NamedTuple):
    """Whether the parts of both cores run apart, how many programs at once, and which writes wait meanwhile."""

    apart: bool
    size: int
    waiting: frozenset[int] = frozenset()


def scheduling(
    program: Program, grid: tuple[int, int, int], arguments: dict[str, Any], step_limit: int
) -> Scheduling:
    """How a launch is interpreted with values."""
    flags, total = flag_order(program, grid, arguments, step_limit), grid[0] * grid[1] * grid[2]
    if flags is not None and flags.barrier:
        ops = list(program.of_kind("sync"))
        alone = all(
            op.name == "all" for op in ops
        )  # then nobody runs ahead, and who misses one is found as it is passed
        if not flags.even and not alone:
            op = next(o for o in ops if o.name == "all")
            text = (
                "sync_block_all in a kernel with flags that not all programs pass together, or that follow from data, is "
                "not supported: let every program pass each flag, outside of what loaded data decides"
            )
            raise RunError(at_line(op.loc, text))
        return Scheduling(not (flags.in_order or alone), total)
    apart = flags is not None and not flags.in_order
    if flags is not None and apart and not flags.even:
        return Scheduling(apart, 1)
    order = find_order(program, grid, arguments, step_limit)
    if order.depends and order.waiting and not apart:
        size = programs_at_once(chunk_size(program), order.waiting_bytes)
        return Scheduling(apart, size, order.waiting if size > 1 else frozenset())
    return Scheduling(apart, 1 if order.depends else chunk_size(program))


class _FlagCounts(AddressBackend):
    """Counts flags, where all programs run in the source's order."""

    def __init__(self) -> None:
        self.in_order = True
        self.even = True
        self.counts: dict[str, np.ndarray] = {}
        self.last_set: dict[tuple[str, int], Op] = {}

    def synced(self, op: Op, event: Any) -> None:
        lanes_here = self.interpreter.total * self.interpreter.subs
        together = len(self.interpreter.active) == lanes_here and isinstance(event, int)
        self.even &= together
        if op.name == "all":
            return
        counts = self.counts.setdefault(op.attrs["sender"], np.zeros((EVENTS, lanes_here), np.int32))
        counts[event, self.interpreter.active] += 1 if op.name == "set" else -1
        self.in_order &= bool((counts[event, self.interpreter.active] >= 0).all())
        if op.name == "set":
            for e in np.unique(event):
                self.last_set[op.attrs["sender"], int(e)] = op

    def check_left_over(self) -> None:
        """Raise `RunError` for flags that stay set beyond what their counters hold."""
        for (sender, event), op in self.last_set.items():
            check_left_over(op, event, int(self.counts[sender][event].max()))
