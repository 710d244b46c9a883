"""Launches that are written down instead of computed, and later computed as far as some elements need it.

    deferred = DeferredLaunches()
    with device(values=False), deferred.watching():
        y = answer(x)                                  # only logged; the memory of y is not touched
    found = deferred.values_at(y, positions, seed)     # now those programs that write these elements

From the last launch back to the first: what writes a wanted element is computed, and what it reads of earlier launches is
wanted, too. As many of the positions, which come in the order of what they say, are looked at as the budget allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from ....simulator.call import Call
from ....simulator.execution.chosen.accesses import Writes
from ....simulator.execution.chosen.launch_parts import LaunchParts, NoPartsError
from ....simulator.execution.chosen.memory_runs import MemoryRuns
from ....simulator.interpreter.program_order.loop_lanes import ChosenLanes
from ....simulator.interpreter.tensors import tensor_argument
from ....simulator.launch import compute
from ....simulator.observers import watch_calls
from .places import OutputMemory, may_store, span, stored_by
from .refusals import NotSampledError

BUDGET_S = 0.2  # estimated processor time of the values of one call
LEAST_POSITIONS = 4
MORE = 2048  # elements besides, of what the computed programs wrote
DRAWN_LANES = 64  # of launches of which it takes too long to find who writes what

Plan = list[tuple[int, ChosenLanes]]  # launch by number, and which of its lanes
Asked = tuple[Any, np.ndarray, int]  # an output, positions, and a seed for others


@dataclass(frozen=True)
class SampledOutput:
    """Elements of an output. positions: their numbers in row-major order. values: in the output's dtype.

    written: whether a launch of the call wrote each. elements: of the output.
    """

    positions: np.ndarray
    values: np.ndarray
    written: np.ndarray
    elements: int


class DeferredLaunches:
    """The launches of one call of an answer, in order. budget_s: for their values, less with every output."""

    def __init__(self, budget_s: float = BUDGET_S) -> None:
        self.calls: list[Call] = []
        self.budget_s = budget_s
        self._parts: dict[int, LaunchParts] = {}

    @contextmanager
    def watching(self) -> Iterator[DeferredLaunches]:
        """Launches inside are kept; the device must not ask for values."""
        with watch_calls(self.calls.append):
            yield self

    def touches(self, tensor: Any) -> bool:
        """Whether a launch that is not computed yet reads or writes the memory of a tensor."""
        found = tensor_argument("tensor", tensor)
        assert found is not None
        low, high = span(found)
        theirs = (span(t) for call in self.calls for t in call.tensors.values())
        return any(a < high and low < b for a, b in theirs)

    def compute_all(self, why: str) -> None:
        """Compute all launches so far, whole, because of `why`. `NotSampledError`: that takes longer than the budget."""
        try:
            seconds = sum(self._of(k).seconds(None) for k in range(len(self.calls)))
        except NoPartsError as e:
            raise NotSampledError(f"{why}; and how long all of it takes is not known: {e}") from None
        if seconds > self.budget_s:
            raise NotSampledError(f"{why}; all of it takes {self._too_long(seconds)}")
        for call in self.calls:
            compute(call, quiet=True)
        self.budget_s -= seconds
        self.calls.clear()
        self._parts.clear()

    def _too_long(self, seconds: float) -> str:
        return f"about {seconds:.2g} s, and sampled values may take {self.budget_s:.2g} s; --full computes everything"

    def _of(self, k: int) -> LaunchParts:
        if k not in self._parts:
            call = self.calls[k]
            self._parts[k] = LaunchParts(call.program, call.grid, call.arguments, call.device.step_limit)
        return self._parts[k]

    # -- values ------------------------------------------------------------------------------------------------------

    def values_at(self, output: Any, positions: np.ndarray, seed: int) -> SampledOutput:
        """Elements of an output: of the first positions as many as the budget allows, and others that come with them.

        seed: draws the others. `NotSampledError`: the budget does not allow a few, or the launches cannot be cut.
        """
        return self.values_of([(output, positions, seed)])[0]

    def values_of(self, asked: Sequence[Asked]) -> list[SampledOutput]:
        """As `values_at`, of several outputs: each part of a launch is computed once, as it may write to what it reads."""
        memories, before = [OutputMemory(output) for output, _, _ in asked], self.budget_s
        try:
            plans = [self._planned(m, x[1]) for m, x in zip(memories, asked, strict=True)]
        except NoPartsError as e:
            self.budget_s = before  # nothing of it was computed
            self.compute_all(f"a launch has no parts ({e})")
            return [_whole(m, positions) for m, (_, positions, _) in zip(memories, asked, strict=True)]
        for k, chosen in _together(plan for _, _, plan in plans):
            compute(self.calls[k], quiet=True, only=chosen)
        return [self._found(*x) for x in zip(memories, asked, plans, strict=True)]

    def _found(
        self, memory: OutputMemory, asked: Asked, planned: tuple[int, np.ndarray, Plan]
    ) -> SampledOutput:
        """What was computed of an output."""
        (_, positions, seed), (count, written, plan) = asked, planned
        stored = self._stored_last(memory, plan)
        more = memory.numbers(stored, seed, MORE)
        if not count:  # programs were drawn: those of the positions that they wrote are theirs
            more = np.concatenate([memory.inside(stored, positions), more])
        found = np.concatenate([positions[:count], more])
        flags = np.concatenate([written[:count], np.ones(len(more), bool)])
        found, first = np.unique(found, return_index=True)
        return SampledOutput(found, memory.values(found), flags[first], memory.array.size)

    def _planned(self, memory: OutputMemory, positions: np.ndarray) -> tuple[int, np.ndarray, Plan]:
        """How many of the positions are computed, which of all are written, and by what."""
        runs, order = memory.runs(positions)
        written = np.zeros(len(positions), bool)
        try:
            found = [self._stores(k, runs) for k in range(len(self.calls))]
        except NoPartsError as e:
            if not e.by_element:
                raise
            return 0, written, self._drawn_lanes(memory)
        for writes in found:
            written[order] |= _met(writes, len(runs))

        def plan_of(count: int) -> Plan:
            kept = order < count
            return self._plan({k: self._of(k).chosen(w, kept) for k, w in enumerate(found) if w})

        count, plan = self._within_budget(len(positions), min(LEAST_POSITIONS, len(positions)), plan_of)
        return count, written, plan

    def _drawn_lanes(self, memory: OutputMemory) -> Plan:
        """Lanes of the launch that writes the output, drawn without knowing what they write."""
        mine = MemoryRuns(np.array([memory.low]), np.array([memory.high]))
        writing = [k for k, call in enumerate(self.calls) if may_store(call, mine)]
        if len(writing) != 1:
            raise NotSampledError(
                "several launches write an output by tables of addresses; --full computes everything"
            )
        k = writing[0]

        def plan_of(count: int) -> Plan:
            found = self._of(k).some_stores(count, np.random.default_rng(0))
            return self._plan({k: self._of(k).chosen(found, np.ones(count + 2, bool))})

        return self._within_budget(DRAWN_LANES, 0, plan_of)[1]

    def _within_budget(self, count: int, least: int, plan_of: Any) -> tuple[int, Plan]:
        """The largest plan that was found to take no more than what is left, which it then takes."""
        while True:
            plan = plan_of(count)
            seconds = sum(self._of(k).seconds(chosen) for k, chosen in plan)
            if seconds <= self.budget_s:
                self.budget_s -= seconds
                return count, plan
            if count <= least:
                raise NotSampledError(f"the least that can be computed takes {self._too_long(seconds)}")
            count = max(least, min(count * 3 // 4, int(count * 0.9 * self.budget_s / seconds)))

    def _plan(self, wanted: dict[int, ChosenLanes]) -> Plan:
        """Those lanes, and what they need of earlier launches, in the order of the launches."""
        plan: Plan = []
        loaded: list[MemoryRuns] = []
        for k in reversed(range(len(self.calls))):
            lanes = [wanted[k]] if k in wanted else []
            for runs in loaded:
                found = self._stores(k, runs)
                lanes += [self._of(k).chosen(found, np.ones(len(runs), bool))] if found else []
            if not lanes:
                continue
            chosen = reduce(ChosenLanes.union, lanes)
            plan.insert(0, (k, chosen))
            reads = self._of(k).loads(chosen, stored_by(self.calls[:k]))
            loaded += [reads] if len(reads) else []
        return plan

    def _stores(self, k: int, runs: MemoryRuns) -> list[Writes]:
        return self._of(k).stores(runs) if may_store(self.calls[k], runs) else []

    def _stored_last(self, memory: OutputMemory, plan: Plan) -> MemoryRuns:
        """Memory that the plan wrote: of the launch that writes the output last, as no other changes it."""
        mine = MemoryRuns(np.array([memory.low]), np.array([memory.high]))
        last = max((k for k, call in enumerate(self.calls) if may_store(call, mine)), default=-1)
        return MemoryRuns.union(
            (x.low, x.high) for k, chosen in plan if k == last for x in [self._of(k).stored(chosen)]
        )


def _whole(memory: OutputMemory, positions: np.ndarray) -> SampledOutput:
    return SampledOutput(
        positions, memory.values(positions), np.ones(len(positions), bool), memory.array.size
    )


def _together(plans: Iterable[Plan]) -> Plan:
    """The lanes of all plans, in the order of the launches."""
    found: dict[int, list[ChosenLanes]] = {}
    for k, chosen in (part for plan in plans for part in plan):
        found.setdefault(k, []).append(chosen)
    return [(k, reduce(ChosenLanes.union, found[k])) for k in sorted(found)]


def _met(writes: list[Writes], count: int) -> np.ndarray:
    """Which of the wanted runs some store reaches."""
    change = np.zeros(count + 1, np.int64)
    for w in writes:
        np.add.at(change, w.first, 1)
        np.add.at(change, w.last, -1)
    return np.cumsum(change)[:count] > 0
