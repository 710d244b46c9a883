"""Speed of the engine; run with `pytest tests/bench --benchmark-enable --benchmark-only -s`."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from ascendtile.simulator.timing.engine._code import unroll
from ascendtile.simulator.timing.engine.engine import (
    Channel,
    Machine,
    PipeSpec,
    ProgramGroup,
    Resource,
    Trace,
    simulate,
)
from ascendtile.simulator.timing.engine.layout import code_of
from ascendtile.simulator.timing.engine.trace import GAIN, INSTRUCTION, LOOP, ROTATING

from ..timing.engine.engine_builder import Records

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
    """One loop of tiles, each a scalar record, two loads, a chain of `vectors` in place and a store, in double buffers.

    Slots: 0 the scalar record waits for the store before it; two inputs and the result have two copies each.
    """
    size = vectors + 4
    rows = np.zeros(size, INSTRUCTION)
    rows["pipe"] = [0, 1, 1, *[2] * vectors, 3]
    transfer = np.isin(rows["pipe"], (1, 3))
    rows["occupancy"] = np.where(rows["pipe"] == 2, 40 + np.arange(size), 4)
    rows["latency"] = np.where(transfer, 300, 20)
    rows["channel"] = np.select([rows["pipe"] == 1, rows["pipe"] == 3], [0, 1], -1)
    rows["amount"] = np.where(transfer, 4096, 0)
    rows["instructions"], rows["line"], rows["column"], rows["cycles"] = 1, np.arange(size), -1, -1
    one, two, result = -1, -2, -3
    used = [
        ([0], []),
        ([], [one]),
        ([], [two]),
        ([one, two], [result]),
        *[([result], [result])] * (vectors - 1),
        ([result], [0]),
    ]
    rows["reads"], rows["writes"] = [len(a) for a, _ in used], [len(b) for _, b in used]
    rows["slot"] = np.cumsum([0, *(len(a) + len(b) for a, b in used)])[:-1]
    return Trace(
        instructions=rows,
        code=np.array([-1, *range(records % size), *range(size)], np.int32),
        length=1 + records % size,
        loops=np.array([(1 + records % size, 1 + records % size + size, records // size, 0, 1)], LOOP),
        gains=np.array([(1, 0)], GAIN),
        slots=np.array([s for a, b in used for s in (*a, *b)], np.int32),
        rotating=np.array([(0, 0, 2, 2 * k) for k in range(3)], ROTATING),
        choices=np.arange(7),
        items=np.arange(1, 7, dtype=np.int32),
        flags=np.zeros(7, np.int8),
    )


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


def at_random(records: int) -> Records:
    """Records on all pipes of the mixed machine, each waiting for up to two of the forty before it."""
    rng = np.random.default_rng(1)
    pipe = rng.integers(0, 13, records)
    transfer = np.isin(pipe, (1, 2, 4, 6, 8, 10, 12))
    waits = np.minimum(rng.integers(0, 3, records), np.arange(records))
    owner = np.repeat(np.arange(records), waits)
    return Records(
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


def in_a_ring(found: Records, slots: int = 64) -> Trace:
    """Each record writes the next slot of a ring; whoever waits for it reads that, before it is written again."""
    starts = found.dep_start
    waits = [np.unique(found.dep[a:b] % slots).tolist() for a, b in itertools.pairwise(starts)]
    trace = found.trace()
    rows = trace.instructions.copy()
    rows["reads"], rows["writes"] = [len(x) for x in waits], 1
    rows["slot"] = np.cumsum([0, *(len(x) + 1 for x in waits)])[:-1]
    used = [s for r, x in enumerate(waits) for s in (*x, r % slots)]
    flags = np.zeros(slots, np.int8)
    return Trace(
        instructions=rows, code=trace.code, length=len(rows), slots=np.array(used, np.int32), flags=flags
    )


def measure(
    benchmark: BenchmarkFixture,
    machine: Machine,
    groups: list[ProgramGroup],
    by_line: bool = True,
    buffers: bool = True,
) -> None:
    result = benchmark.pedantic(simulate, (machine, groups, 0, by_line, buffers), rounds=5, warmup_rounds=1)
    assert result.records_run == CORES * RECORDS
    speed = result.records_run / benchmark.stats.stats.min
    benchmark.extra_info["records_per_second"] = speed
    print(f"\n{speed / 1e6:.1f} million records/s")


@pytest.mark.parametrize("vectors", [1, 4, 12])
def test_a_million_records_on_twenty_cores(benchmark: BenchmarkFixture, vectors: int) -> None:
    """Transfers are 3 of 5, of 8 and of 16 records; at least 5 million records/s are wanted."""
    measure(benchmark, MACHINE, [ProgramGroup(trace=tiles(RECORDS, vectors), programs=np.arange(CORES))])


def test_a_million_records_of_twenty_traces(benchmark: BenchmarkFixture) -> None:
    """Nothing is shared between programs: laying out the traces counts."""
    groups = [ProgramGroup(trace=tiles(RECORDS, 4), programs=np.array([n])) for n in range(CORES)]
    measure(benchmark, MACHINE, groups)


@pytest.mark.parametrize("by_line", [True, False])
def test_a_million_records_on_thirteen_pipes(benchmark: BenchmarkFixture, by_line: bool) -> None:
    """More than half are transfers, and the rates change at nearly every one. by_line: False as a sweep has it."""
    group = ProgramGroup(trace=in_a_ring(at_random(RECORDS)), programs=np.arange(CORES))
    measure(benchmark, mixed_machine(), [group], by_line, buffers=False)


def test_a_million_records_with_slots_of_their_own(benchmark: BenchmarkFixture) -> None:
    """The same records; thirty thousand slots a core are more than the caches hold."""
    measure(
        benchmark,
        mixed_machine(),
        [ProgramGroup(trace=at_random(RECORDS).trace(), programs=np.arange(CORES))],
    )


def test_a_million_records_are_unrolled(benchmark: BenchmarkFixture) -> None:
    """What a program's records are, without their times."""
    code = code_of([ProgramGroup(trace=tiles(CORES * RECORDS, 4), programs=np.arange(1))])
    benchmark.pedantic(unroll, (code, 0, CORES * RECORDS), rounds=3)
    print(f"\n{CORES * RECORDS / benchmark.stats.stats.min / 1e6:.1f} million records/s")
