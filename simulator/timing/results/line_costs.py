"""Cycles charged to source lines, and those that conflicts of UB banks added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...record.run import LineCost
from ..costs.provenance import DISPATCH, GRADES, OVERHEAD, grade_of
from ..engine.engine import REASONS, EngineResult, ProgramGroup
from ..lowering.context import LoweringPlan

# Vector instructions whose sources lie in one group of banks; whose results go to a bank that is read at that moment.
KINDS = ("bank group", "bank")


def core_conflicts(plan: LoweringPlan, result: EngineResult, groups: Sequence[ProgramGroup]) -> np.ndarray:
    """[cores, pipes, KINDS] cycles, part of what the pipes are busy."""
    out = np.zeros((*result.busy.shape, len(KINDS)))
    for g in groups:
        cores = result.programs["core"][g.programs]
        for kind, cycles in _lost(plan, g):
            ran = _ran(g, kind)
            per_core = np.bincount(cores, ran, minlength=len(out))
            out[:, g.trace.pipe[kind]] += per_core[:, None] * np.array(cycles)
    return out


def _lost(plan: LoweringPlan, group: ProgramGroup) -> list[tuple[int, tuple[float, float]]]:
    """(number of an instruction, cycles of each sort that one of it loses), of those with conflicts."""
    trace = group.trace
    lines = np.array([line for line, _ in plan.conflicts], np.int32)
    found = np.flatnonzero(np.isin(trace.line, lines))
    keys = ((k, (int(trace.line[k]), float(trace.occupancy[k]))) for k in found.tolist())
    return [(k, plan.conflicts[key]) for k, key in keys if key in plan.conflicts]


def _ran(group: ProgramGroup, kind: int) -> np.ndarray:
    """How often each program of the group ran an instruction."""
    trace = group.trace
    times, column = float(trace.counts[kind]), int(trace.column[kind])
    if column < 0:
        return np.full(len(group.programs), times)
    rows = int(trace.rows[kind])
    ran: np.ndarray = (trace.table[column : column + rows] >= 0).sum(axis=0) * (times / rows)
    return ran


def line_costs(
    plan: LoweringPlan, result: EngineResult, used: int, texts: Mapping[str, Sequence[str]]
) -> tuple[tuple[LineCost, ...], np.ndarray]:
    """Lines, dearest first, and the place there of each line number of the trace. texts: of the files, by line."""
    numbers: dict[tuple[str, int], list[int]] = {}
    for (file, line, *_), k in sorted(plan.lines.items()):  # sums do not depend on the order of lowering
        numbers.setdefault((file, line), []).append(k)
    found = [
        _cost(plan, result, used, f, n, "".join(texts[f][n - 1 : n]).strip(), ks)
        for (f, n), ks in numbers.items()
    ]
    order = sorted(range(len(found)), key=lambda i: -found[i].cycles)
    groups, rank = list(numbers.values()), np.empty(len(plan.lines), np.int32)
    for place, i in enumerate(order):
        rank[groups[i]] = place
    return tuple(found[i] for i in order), rank


def _cost(
    plan: LoweringPlan, result: EngineResult, used: int, file: str, line: int, text: str, numbers: list[int]
) -> LineCost:
    charged = [k for k in numbers if k < len(result.line_exposed)]  # the last ones may have no record
    wiring = plan.wiring
    busy_cycles = result.line_busy[charged].sum(axis=0)
    busy = {name: float(busy_cycles[p]) / used for name, p in wiring.told if busy_cycles[p]}
    cycles = sum(float(result.line_exposed[k]) for k in charged) / used
    stalls = result.line_stalls[charged].sum(axis=0) / used
    waits = {
        name: {r: float(x) for r, x in zip(REASONS, stalls[p], strict=True) if x}
        for name, p in wiring.told
        if stalls[p].any()
    }
    return LineCost(file, line, text, cycles, busy, waits)


def grade_shares(
    plan: LoweringPlan, result: EngineResult, used: int, overhead_us: float, per_us: float
) -> dict[str, float]:
    """Grade -> us of the launch's time whose length comes from figures of that grade; adds up to its time.

    Time outside of all lines is dispatch and cores that are done early (as good as the dispatch figure) and the overhead of
    the launch.
    """
    cycles = [0.0] * len(GRADES)
    for (_, _, grade, _), k in sorted(plan.lines.items()):
        if k < len(result.line_exposed):
            cycles[grade] += float(result.line_exposed[k]) / used
    cycles[grade_of(plan.product, (DISPATCH,))] += result.cycles - sum(cycles)
    us = [c / per_us for c in cycles]
    us[grade_of(plan.product, OVERHEAD)] += overhead_us
    return {GRADES[g]: x for g, x in enumerate(us) if x}
