"""Random machines and groups of programs, small enough for the reference simulator."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from ascendtile.simulator.timing.engine.engine import Channel, Machine, PipeSpec, Resource

from .engine_builder import Part, Records

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
    numbers = st.lists(st.integers(0, len(resources) - 1), max_size=3) if resources else st.just([])
    return Machine(
        pipes=tuple(pipes),
        cores=draw(st.integers(1, cores)),
        channels=tuple(
            Channel(name=f"C{c}", port_bytes_per_cycle=draw(rates), resources=tuple(draw(numbers)))
            for c in range(draw(st.integers(0, channels)))
        ),
        resources=resources,
        dispatch_cycles=draw(cycles),
        start_cycles=draw(cycles),
        core_start_cycles=draw(cycles),
        cross_pipe_cycles=draw(cycles),
        issue_cycles=draw(st.integers(0, 4)) / 4,
    )


@st.composite
def groups(
    draw: st.DrawFn, machine: Machine, programs: int = 6, records: int = 16, skips: bool = True
) -> list[Part]:
    total = draw(st.integers(1, programs))
    split = draw(st.integers(1, total))
    order = draw(st.permutations(range(total)))
    parts = [part for part in (order[:split], order[split:]) if part]
    return [Part(_records(draw, machine, len(p), records, skips), np.array(p)) for p in parts]


@st.composite
def cases(draw: st.DrawFn, **limits: Any) -> tuple[Machine, list[Part]]:
    """A machine and groups that it can run."""
    machine = draw(machines(**{k: v for k, v in limits.items() if k in ("cores", "channels")}))
    return machine, draw(
        groups(machine, **{k: v for k, v in limits.items() if k not in ("cores", "channels")})
    )


def numbers(draw: st.DrawFn) -> np.random.Generator:
    """A source for what a case needs many of: to draw each number apart takes hypothesis longer than the test."""
    return np.random.default_rng(draw(st.integers(0, 2**32 - 1)))


def some_cycles(made: np.random.Generator, count: int) -> np.ndarray:
    """As `cycles`; one in five is 0."""
    return np.where(made.random(count) < 0.2, 0, made.integers(0, 41, count)) / 4


def _records(draw: st.DrawFn, machine: Machine, programs: int, records: int, skips: bool) -> Records:
    count, columns = draw(st.integers(0, records)), draw(st.integers(0, 3))
    made = numbers(draw)
    table = made.integers(-10 if skips else 0, 61, (columns, programs))
    deps = [sorted(made.permutation(r)[: made.integers(0, 4)].tolist()) for r in range(count)]
    flat = np.array([q for d in deps for q in d], int)
    return Records(
        pipe=made.integers(0, len(machine.pipes), count),
        occupancy=some_cycles(made, count),
        latency=some_cycles(made, count),
        channel=made.integers(-1, len(machine.channels), count),
        amount=made.integers(0, 201, count).astype(float),
        column=made.integers(-1, columns, count),
        table=table.astype(float),
        instructions=made.integers(0, 4, count),
        line=made.integers(0, 6, count),
        dep_start=np.cumsum([0, *(len(d) for d in deps)]),
        dep=flat,
        dep_kind=made.integers(0, 3, len(flat)),
    )
