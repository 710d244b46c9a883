"""Speed of the engine; run with `pytest tests/bench --benchmark-enable --benchmark-only -s`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from ascendtile.simulator.timing.engine.engine import (
    Channel,
    Group,
    Lists,
    Machine,
    PipeSpec,
    Resource,
    Trace,
    dependencies,
    simulate,
)

CORES = 20
RECORDS = 50_000

MACHINE = Machine(
    pipes=(
        PipeSpec(name="S", unit="AIV", scalar=True),
        PipeSpec(name="MTE2", unit="AIV"),
        PipeSpec(name="V", unit="AIV"),
        PipeSpec(name="MTE3", unit="AIV"),
    ),
    cores=CORES,
    channels=(
        Channel(name="GM->UB", port_bytes_per_cycle=128, resources=(0, 1)),
        Channel(name="UB->GM", port_bytes_per_cycle=64, resources=(0,)),
    ),
    resources=(Resource(name="HBM", bytes_per_cycle=800), Resource(name="L2", bytes_per_cycle=2000)),
    cross_pipe_cycles=12,
    issue_cycles=1,
)


def tiles(records: int, vectors: int) -> Trace:
    """Tiles of a scalar record, two loads, a chain of `vectors` and a store, in double buffers."""
    size = vectors + 4
    place = np.arange(records) % size
    deps = [_depends(r, size) for r in range(records)]
    pipe = np.select([place == 0, place <= 2, place <= 2 + vectors], [0, 1, 2], 3)
    transfer = (pipe == 1) | (pipe == 3)
    return Trace(
        pipe=pipe,
        occupancy=np.where(pipe == 2, 40 + place, 4),
        latency=np.where(transfer, 300, 20),
        channel=np.select([pipe == 1, pipe == 3], [0, 1], -1),
        amount=np.where(transfer, 4096, 0),
        instructions=np.ones(records, np.int32),
        line=place,
        dep_start=np.cumsum([0, *(len(d) for d in deps)]),
        dep=np.array([q for d in deps for q, _ in d]),
        dep_kind=np.array([k for d in deps for _, k in d]),
    )


def _depends(r: int, size: int) -> list[tuple[int, int]]:
    place = r % size
    if place in (1, 2):  # a load overwrites what the tile before the last read
        found = [(r - place - 2 * size + 3, 1)]
    elif place == 3:  # the first of the chain reads both loads, and writes what was stored two tiles ago
        found = [(r - 2, 0), (r - 1, 0), (r - size - 4, 1)]
    else:
        found = [(r - 1, 0)]
    return [(q, kind) for q, kind in found if q >= 0]


def mixed_machine() -> Machine:
    """A core of three units and thirteen pipes; four channels over two resources."""
    units = {"AIC": ("S", "MTE2", "MTE1", "M", "FIXP")} | dict.fromkeys(
        ("AIV0", "AIV1"), ("S", "MTE2", "V", "MTE3")
    )
    return replace(
        MACHINE,
        pipes=tuple(PipeSpec(name=n, unit=u, scalar=n == "S") for u, names in units.items() for n in names),
        channels=(
            *MACHINE.channels,
            Channel(name="L2->UB", port_bytes_per_cycle=200, resources=(1,)),
            Channel(name="L1->L0", port_bytes_per_cycle=256),
        ),
    )


def at_random(records: int) -> Trace:
    """Records on all pipes of the mixed machine, each waiting for up to two of the forty before it."""
    rng = np.random.default_rng(1)
    pipe = rng.integers(0, 13, records)
    transfer = np.isin(pipe, (1, 2, 4, 6, 8, 10, 12))
    waits = np.minimum(rng.integers(0, 3, records), np.arange(records))
    owner = np.repeat(np.arange(records), waits)
    return Trace(
        pipe=pipe,
        occupancy=rng.integers(1, 80, records),
        latency=rng.integers(0, 100, records),
        channel=np.where(transfer, rng.integers(0, 4, records), -1),
        amount=np.where(transfer, rng.integers(100, 20_000, records), 0),
        instructions=np.ones(records, np.int32),
        line=pipe,
        dep_start=np.cumsum([0, *waits]),
        dep=np.maximum(0, owner - rng.integers(1, 41, len(owner))),
        dep_kind=np.zeros(len(owner), np.int8),
    )


def measure(benchmark: BenchmarkFixture, machine: Machine, groups: list[Group], by_line: bool = True) -> None:
    result = benchmark.pedantic(simulate, (machine, groups, 0, by_line), rounds=5, warmup_rounds=1)
    assert result.records_run == CORES * RECORDS
    speed = result.records_run / benchmark.stats.stats.min
    benchmark.extra_info["records_per_second"] = speed
    print(f"\n{speed / 1e6:.1f} million records/s")


@pytest.mark.parametrize("vectors", [1, 4, 12])
def test_a_million_records_on_twenty_cores(benchmark: BenchmarkFixture, vectors: int) -> None:
    """Transfers are 3 of 5, of 8 and of 16 records; at least 5 million records/s are wanted."""
    measure(benchmark, MACHINE, [Group(trace=tiles(RECORDS, vectors), programs=np.arange(CORES))])


def test_a_million_records_of_twenty_traces(benchmark: BenchmarkFixture) -> None:
    """Nothing is shared between programs: packing the traces counts."""
    groups = [Group(trace=tiles(RECORDS, 4), programs=np.array([n])) for n in range(CORES)]
    measure(benchmark, MACHINE, groups)


@pytest.mark.parametrize("by_line", [True, False])
def test_a_million_records_on_thirteen_pipes(benchmark: BenchmarkFixture, by_line: bool) -> None:
    """More than half are transfers, and the rates change at nearly every one. by_line: False as a sweep has it."""
    measure(benchmark, mixed_machine(), [Group(trace=at_random(RECORDS), programs=np.arange(CORES))], by_line)


def test_dependencies_of_a_million_records(benchmark: BenchmarkFixture) -> None:
    """Two reads, a write and a clobber each."""
    n, numbers = CORES * RECORDS, np.arange(CORES * RECORDS)
    reads = Lists(np.arange(n + 1) * 2, (np.repeat(numbers, 2) * 7 + np.tile([0, 3], n)) % 64)
    writes, clobbers = (Lists(np.arange(n + 1), (numbers * 5 + i) % 64) for i in range(2))
    benchmark.pedantic(dependencies, (reads, writes, 64, clobbers), rounds=3)
    print(f"\n{n / benchmark.stats.stats.min / 1e6:.1f} million records/s")
