"""Random machines and groups of programs, small enough for the reference simulator."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from ascendtile.simulator.timing.engine import Channel, Group, Machine, PipeSpec, Resource, Trace

cycles = st.integers(0, 40).map(lambda n: n / 4)
rates = st.integers(1, 64).map(lambda n: n / 2)


@st.composite
def machines(draw: st.DrawFn, cores: int = 4, channels: int = 3) -> Machine:
    units = draw(st.integers(1, 3))
    pipes = [
        PipeSpec(name=f"{u}.{p}", unit=f"U{u}", queue_depth=draw(st.integers(1, 4)), scalar=scalar)
        for u in range(units)
        for p, scalar in enumerate([draw(st.booleans()), *[False] * draw(st.integers(1, 3))])
    ]
    resources = tuple(
        Resource(name=f"R{j}", bytes_per_cycle=draw(rates)) for j in range(draw(st.integers(0, 2)))
    )
    numbers = st.lists(st.integers(0, len(resources) - 1), unique=True) if resources else st.just([])
    return Machine(
        pipes=tuple(pipes),
        cores=draw(st.integers(1, cores)),
        channels=tuple(
            Channel(name=f"C{c}", port_bytes_per_cycle=draw(rates), resources=tuple(draw(numbers)))
            for c in range(draw(st.integers(0, channels)))
        ),
        resources=resources,
        dispatch_cycles=draw(cycles),
        cross_pipe_cycles=draw(cycles),
        issue_cycles=draw(st.integers(0, 4)) / 4,
    )


@st.composite
def groups(
    draw: st.DrawFn, machine: Machine, programs: int = 6, records: int = 16, skips: bool = True
) -> list[Group]:
    total = draw(st.integers(1, programs))
    split = draw(st.integers(1, total))
    order = draw(st.permutations(range(total)))
    parts = [part for part in (order[:split], order[split:]) if part]
    return [Group(trace=_trace(draw, machine, len(p), records, skips), programs=np.array(p)) for p in parts]


@st.composite
def cases(draw: st.DrawFn, **limits: Any) -> tuple[Machine, list[Group]]:
    """A machine and groups that it can run."""
    machine = draw(machines(**{k: v for k, v in limits.items() if k in ("cores", "channels")}))
    return machine, draw(
        groups(machine, **{k: v for k, v in limits.items() if k not in ("cores", "channels")})
    )


def _trace(draw: st.DrawFn, machine: Machine, programs: int, records: int, skips: bool) -> Trace:
    count = draw(st.integers(0, records))
    rows = st.lists(st.integers(-10 if skips else 0, 60), min_size=programs, max_size=programs)
    table = draw(st.lists(rows, max_size=3))
    deps = [sorted(draw(st.sets(st.integers(0, r - 1), max_size=3))) if r else [] for r in range(count)]

    def some(values: st.SearchStrategy[Any]) -> np.ndarray:
        return np.array(draw(st.lists(values, min_size=count, max_size=count)), float)

    def whole(least: int, most: int) -> np.ndarray:
        return some(st.integers(least, most)).astype(int)

    flat = np.array([q for d in deps for q in d], int)
    return Trace(
        pipe=whole(0, len(machine.pipes) - 1),
        occupancy=some(cycles),
        latency=some(cycles),
        channel=whole(-1, len(machine.channels) - 1),
        amount=some(st.integers(0, 200)),
        column=whole(-1, len(table) - 1),
        table=np.array(table, float).reshape(len(table), programs),
        instructions=whole(0, 3),
        line=whole(0, 5),
        dep_start=np.cumsum([0, *(len(d) for d in deps)]),
        dep=flat,
        dep_kind=np.array(draw(st.lists(st.integers(0, 2), min_size=len(flat), max_size=len(flat))), int),
    )
