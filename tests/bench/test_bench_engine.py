"""Speed of the engine; run with `pytest tests/bench --benchmark-enable --benchmark-only -s`."""

from __future__ import annotations

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from ascendtile.simulator.timing.engine import Channel, Group, Machine, PipeSpec, Resource, Trace, simulate

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


@pytest.mark.parametrize("vectors", [4, 12])
def test_a_million_records_on_twenty_cores(benchmark: BenchmarkFixture, vectors: int) -> None:
    group = Group(trace=tiles(RECORDS, vectors), programs=np.arange(CORES))
    result = benchmark.pedantic(simulate, (MACHINE, [group]), rounds=5, warmup_rounds=1)
    assert result.records_run == CORES * RECORDS
    benchmark.extra_info["records_per_second"] = result.records_run / benchmark.stats.stats.min
    print(f"\n{result.records_run / benchmark.stats.stats.min / 1e6:.1f} million records/s")
