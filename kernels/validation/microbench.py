"""One instruction many times on one core, timed by the engine: what the predictions of micro-benchmarks are made of."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.products import Product, load_product
from ascendtile.simulator.timing.costs.l2_cache import FirstTouch
from ascendtile.simulator.timing.engine.engine import ProgramGroup, simulate
from ascendtile.simulator.timing.engine.machine import Wiring, wire
from ascendtile.simulator.timing.trace.builder import TraceBuilder
from ascendtile.simulator.timing.trace.tree import Instruction, Loop

from .table import Row

WAITS = {"back to back": False, "one after the other": True, "isolated": True}
APART = "sources apart"
MEETS = "result meets a source"
SHORT, LONG = 64, 128  # instructions; what both have in common, such as the first issue, falls out


@lru_cache(maxsize=16)
def product(name: str) -> Product:
    return load_product(name)


@lru_cache(maxsize=16)
def vector_core(name: str) -> Wiring:
    return wire(product(name), has_dot=False, has_vector=True)


@lru_cache(maxsize=16)
def cube_core(name: str) -> Wiring:
    return wire(product(name), has_dot=True, has_vector=False)


def cycles_each(wiring: Wiring, pipe: int, dependent: bool, **record: Any) -> float:
    """Cycles of one of many equal records on a pipe; dependent: each uses what the one before made."""
    slots = (0,) if dependent else ()

    def run(count: int) -> float:
        programs = np.zeros(1, np.int64)
        builder = TraceBuilder(programs, FirstTouch(0))
        one = Instruction(pipe, 0, reads=slots, writes=slots, **record)
        builder.take([Loop(count, [one], {})], None, 1)
        group = ProgramGroup(trace=builder.trace(1), programs=programs)
        return simulate(wiring.machine, [group]).cycles

    return (run(LONG) - run(SHORT)) / (LONG - SHORT)


def waits(row: Row) -> bool:
    """Whether every instruction of the row waits for the one before; the tiling column says so."""
    how = row.tiling.partition(", ")[0]
    if how not in WAITS:
        raise UsageError(
            f"{row.id}: tiling {row.tiling[:40]!r} does not start with one of {', '.join(WAITS)}"
        )
    return WAITS[how]


def apart(row: Row) -> bool:
    """Whether the sources of the row share no group of banks."""
    return APART in row.tiling.split(", ")


def meets(row: Row) -> bool:
    """Whether the result of the row is written to banks from which a source is read."""
    return MEETS in row.tiling.split(", ")


def number(row: Row, name: str) -> int:
    """`name=12` of the shapes column."""
    found = re.search(rf"(?:^|\s){name}=(\d{{1,12}})(?=\s|$)", row.shapes)
    if found is None or not int(found[1]):
        raise UsageError(f"{row.id}: shapes {row.shapes[:60]!r} must say {name}=<a number above 0>")
    return int(found[1])


def types(row: Row, least: int) -> list[str]:
    """The data types of the row, sources first."""
    names = row.dtypes.split()
    if len(names) < least:
        raise UsageError(f"{row.id}: dtypes {row.dtypes[:60]!r} must name {least} or more types")
    return names


def in_unit(row: Row, units: dict[str, Callable[[float], float]], cycles: float) -> float:
    """Cycles in the unit of the row."""
    if row.unit not in units:
        raise UsageError(f"{row.id}: unit {row.unit} is not one of {', '.join(units)}")
    return units[row.unit](cycles)
