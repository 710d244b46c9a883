"""Bytes that each core moved, by the unit that moved them and the way: those of each record, times how often it ran.

    {"AIV.GM to UB": (1048576.0, 1048576.0, ...), "AIV.UB to GM": (...)}  # core by core

Whether a byte came from HBM or from L2 is not told apart: `Launch.resources` does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .engine import EngineResult, Group, Trace
from .plan import Plan
from .roofs import PORTS


def core_bytes(plan: Plan, result: EngineResult, groups: Sequence[Group]) -> dict[str, tuple[float, ...]]:
    """Ways without any byte are left out."""
    machine, cores = plan.wiring.machine, len(result.core_cycles)
    out: dict[str, np.ndarray] = {}
    for g in groups:
        mine = result.programs["core"][g.programs]
        for way, channels in PORTS.items():
            moving = np.isin(g.trace.channel, channels)
            for unit in machine.units:
                pipes = [k for k, p in enumerate(machine.pipes) if p.unit == unit]
                chosen = np.flatnonzero(moving & np.isin(g.trace.pipe, pipes))
                if len(chosen):
                    amounts = _of_programs(g.trace, chosen, len(g.programs))
                    name = f"{unit}.{way}"
                    out[name] = out.get(name, np.zeros(cores)) + np.bincount(mine, amounts, minlength=cores)
    return {n: tuple(map(float, x)) for n, x in out.items() if x.any()}


def _of_programs(trace: Trace, chosen: np.ndarray, programs: int) -> np.ndarray:
    """[programs] bytes of the chosen kinds of records."""
    assert trace.column is not None
    times = np.ones(len(chosen)) if trace.counts is None else trace.counts[chosen].astype(np.float64)
    column = trace.column[chosen]
    alike, own = column < 0, column >= 0
    total = np.full(programs, float((trace.amount[chosen][alike] * times[alike]).sum()))
    weights = np.bincount(column[own], times[own], minlength=len(trace.table))
    for k in np.flatnonzero(weights).tolist():  # a negative entry: the program leaves the record out
        total += weights[k] * np.maximum(trace.table[k], 0.0)
    return total
