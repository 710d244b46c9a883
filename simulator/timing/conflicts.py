"""Cycles that bank conflicts of UB cost, core by core: those of each operation, times how often programs ran it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .engine import EngineResult, Group
from .plan import Plan

# Vector instructions whose sources lie in one group of banks; whose results go to a bank that is read at that moment.
KINDS = ("bank group", "bank")


def core_conflicts(plan: Plan, result: EngineResult, groups: Sequence[Group]) -> np.ndarray:
    """[cores, pipes, KINDS] cycles, part of what the pipes are busy."""
    out = np.zeros((*result.busy.shape, len(KINDS)))
    for g in groups:
        cores = result.programs["core"][g.programs]
        for kind, cycles in _lost(plan, g):
            ran = _ran(g, kind)
            per_core = np.bincount(cores, ran, minlength=len(out))
            out[:, g.trace.pipe[kind]] += per_core[:, None] * np.array(cycles)
    return out


def _lost(plan: Plan, group: Group) -> list[tuple[int, tuple[float, float]]]:
    """(number in the trace's arrays, cycles of each sort that one of it loses), of records with conflicts."""
    trace = group.trace
    lines = np.array([line for line, _ in plan.conflicts], np.int32)
    found = np.flatnonzero(np.isin(trace.line, lines))
    keys = ((k, (int(trace.line[k]), float(trace.occupancy[k]))) for k in found.tolist())
    return [(k, plan.conflicts[key]) for k, key in keys if key in plan.conflicts]


def _ran(group: Group, kind: int) -> np.ndarray:
    """How often each program of the group ran the records of one kind."""
    trace = group.trace
    assert trace.column is not None
    times = 1 if trace.counts is None else int(trace.counts[kind])
    column = int(trace.column[kind])
    ran = np.ones(len(group.programs)) if column < 0 else trace.table[column] >= 0
    return np.multiply(ran, float(times))
