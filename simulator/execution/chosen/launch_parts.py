"""A launch of which only a part is computed: the programs, and iterations of their loops, that write what is wanted."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...errors import AscendtileError
from ...interpreter.arguments import runtime_arguments
from ...interpreter.backend import AddressBackend
from ...interpreter.interpreter import DataDependentError
from ...interpreter.lanes import lanes
from ...interpreter.program_order.loop_lanes import ChosenLanes, LoopLanes, independent_loops
from ...interpreter.program_order.order import find_order
from ...interpreter.program_order.without_addresses import without_addresses
from ...ir.program import Program, Region
from .accesses import LoadsFrom, SomeStores, Stored, StoresTo, Writes, chosen_of
from .memory_runs import MemoryRuns
from .work import CountedWork, OneIteration

MEASURED_PROGRAMS = 8  # whose work stands for that of all


class NoPartsError(AscendtileError):
    """A launch whose programs cannot be computed one without the others, and why.

    by_element: what it writes could be found, but only by looking at too many elements one by one.
    """

    def __init__(self, text: str, by_element: bool = False) -> None:
        super().__init__(text)
        self.by_element = by_element


class LaunchParts:
    """What parts of a launch write, read and cost.

    `stores` raises `NoPartsError` where programs see what others write, or where addresses of stores depend on data.
    program, grid, arguments: of the launch. step_limit: of its device.
    """

    def __init__(
        self, program: Program, grid: tuple[int, int, int], arguments: Mapping[str, Any], step_limit: int
    ) -> None:
        self.program, self.grid = program, grid
        self.arguments = dict(arguments)
        self.step_limit = step_limit
        self.total = grid[0] * grid[1] * grid[2]
        self.loops = independent_loops(program, self.arguments)
        self.loop_of = dict(_loops_around(program.body, (), self.loops))
        self.trips: dict[int, int] = {}

    @functools.cached_property
    def alone(self) -> bool:
        """True: the order of the programs does not matter. Raises `NoPartsError` where it does."""
        if any(op.kind == "sync" for op in self.program.walk()):
            raise NoPartsError("its cores or programs wait for each other by flags")
        if self.loops:  # nothing that is stored is read: see `independent_loops`
            return True
        order = find_order(self.program, self.grid, self.arguments, self.step_limit)
        if not order.depends or order.waiting:
            return True
        raise NoPartsError("its programs read what others write, so that they run one after another")

    # -- without values ----------------------------------------------------------------------------------------------

    def stores(self, wanted: MemoryRuns) -> list[Writes]:
        """The stores that reach wanted memory."""
        assert self.alone
        found = StoresTo(self.program, self.grid, wanted)
        self.trips = self._look(LoopLanes, found, np.arange(self.total), None, "store", "atomic").trips
        return found.writes

    def some_stores(self, count: int, draw: np.random.Generator) -> list[Writes]:
        """Stores of drawn lanes, as if each reached a run of its own: where it takes too long to find who writes what.

        Of every store the first lane, the last, and `count` others.
        """
        assert self.alone
        found = SomeStores(count, draw)
        self.trips = self._look(LoopLanes, found, np.arange(self.total), None, "store", "atomic").trips
        return found.writes

    def chosen(self, found: list[Writes], kept: np.ndarray) -> ChosenLanes:
        """The lanes among those stores that reach wanted runs which are kept."""
        return chosen_of(found, kept, self.trips, self.loops, self.loop_of)

    def loads(self, chosen: ChosenLanes, among: MemoryRuns) -> MemoryRuns:
        """What the chosen lanes load of some memory."""
        found = LoadsFrom(self.program, self.grid, among)
        if len(among):
            self._look(LoopLanes, found, chosen.programs, chosen, "load", "atomic")
        parts = MemoryRuns.union(found.runs)
        return MemoryRuns.union(_cut(parts, among))

    def stored(self, chosen: ChosenLanes) -> MemoryRuns:
        """What the chosen lanes store to."""
        found = Stored(self.program, self.grid)
        self._look(LoopLanes, found, chosen.programs, chosen, "store", "atomic")
        return MemoryRuns.union(found.runs)

    def seconds(self, chosen: ChosenLanes | None) -> float:
        """Estimated processor time of the values of the chosen lanes, or for None of all."""
        programs = np.arange(self.total) if chosen is None else chosen.programs
        some = programs[:MEASURED_PROGRAMS]
        if not len(some):
            return 0.0
        counted = CountedWork()
        self._look(OneIteration, counted, some, chosen)
        return counted.seconds * len(programs) / len(some)

    def _look(
        self,
        kind: type[LoopLanes],
        backend: AddressBackend,
        programs: np.ndarray,
        chosen: ChosenLanes | None,
        *accesses: str,
    ) -> LoopLanes:
        """Go through programs without values. accesses: kinds of which the addresses are asked; all else is left out."""
        skipped = without_addresses(self.program, lambda op: op.kind in accesses) if accesses else set()
        one = kind(self.program, self.grid, backend, self.step_limit, skipped, self.loops, chosen)
        try:
            one.run(lanes(self.program, self.grid, programs), runtime_arguments(self.program, self.arguments))
        except DataDependentError as e:
            raise NoPartsError(str(e), getattr(backend, "too_many", False)) from None
        return one


def _cut(runs: MemoryRuns, among: MemoryRuns) -> list[tuple[np.ndarray, np.ndarray]]:
    pieces = [runs.within(int(low), int(high)) for low, high in zip(among.low, among.high, strict=True)]
    return [(p.low, p.high) for p in pieces]


def _loops_around(
    region: Region, outer: tuple[int, ...], loops: Mapping[int, Any]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Operations (by id) with the independent loops around each, from the outermost."""
    for op in region.ops:
        yield op.id, outer
        for inner in op.regions:
            yield from _loops_around(inner, (*outer, op.id) if op.id in loops else outer, loops)
