"""Bad inputs are refused before anything runs, with the numbers on both sides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.timing.engine.engine import (
    Channel,
    Group,
    Machine,
    PipeSpec,
    Resource,
    Trace,
    simulate,
)

from .engine_builder import MTE2, Builder, V, machine

PIPE = PipeSpec(name="V", unit="AIV")


def fields(**changed: Any) -> dict[str, Any]:
    """Three records, the last of which depends on the first two."""
    good = {
        "pipe": np.array([MTE2, MTE2, V]),
        "occupancy": np.array([1.0, 1, 5]),
        "latency": np.zeros(3),
        "channel": np.array([0, 0, -1]),
        "amount": np.array([80, 80, 0]),
        "instructions": np.ones(3, int),
        "line": np.arange(3),
        "dep_start": np.array([0, 0, 0, 2]),
        "dep": np.array([0, 1]),
        "dep_kind": np.array([0, 0]),
    }
    return good | {name: np.array(value) for name, value in changed.items()}


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"dep": [0, 2]}, r"record 2 depends on record 2: only an earlier one is allowed"),
        ({"dep": [0, -1]}, r"record 2 depends on record -1: only an earlier one"),
        ({"dep_kind": [0, 3]}, r"dep_kind\[1\] is 3: 0, 1 and 2 are the kinds"),
        ({"dep_start": [0, 0, 0, 1]}, r"dep_start runs from 0 to 1, not from 0 to the 2 entries of dep"),
        ({"dep_start": [0, 2, 1, 2]}, r"dep_start\[1\] is 2: the next one is less"),
        ({"dep_start": [0, 0, 2]}, r"dep_start has 3 entries where 4 are needed"),
        ({"amount": [80, -8, 0]}, r"amount\[1\] is -8.0: it must be finite and at least 0"),
        ({"occupancy": [1, np.nan, 5]}, r"occupancy\[1\] is nan: it must be finite and at least 0"),
        ({"latency": [0, 0, np.inf]}, r"latency\[2\] is inf: it must be finite and at least 0"),
        ({"pipe": [1, -1, 2]}, r"pipe\[1\] is -1: it must be at least 0"),
        ({"pipe": [1, 300, 2]}, r"pipe\[1\] is 300: -128 to 127 is allowed"),
        ({"pipe": [1.0, 1.5, 2.0]}, r"pipe has type float64, int8 is needed"),
        ({"channel": [0, -5, -1]}, r"channel\[1\] is -5: it must be at least -4"),
        ({"line": [0, -1, 0]}, r"line\[1\] is -1: it must be at least 0"),
        ({"instructions": [1, 1, -1]}, r"instructions\[2\] is -1: it must be at least 0"),
        ({"latency": [0, 0]}, r"latency has 2 entries where 3 are needed"),
        ({"latency": [[0, 0, 0]]}, r"latency has 2 dimensions, not 1"),
        ({"column": [-1, 0, -1]}, r"column\[1\] is 0: the table has 0 rows"),
        ({"column": [-1, 0, -1], "table": [[1.0, np.nan]]}, r"table has an entry that is not finite"),
    ],
)
def test_a_trace_refuses(changed: dict[str, Any], text: str) -> None:
    Trace(**fields())
    with pytest.raises(UsageError, match=text):
        Trace(**fields(**changed))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: PipeSpec(name="V", unit="U", queue_depth=0), r"pipe V: queue_depth is 0, .* at least 1"),
        (
            lambda: Resource(name="HBM", bytes_per_cycle=0),
            r"resource HBM: bytes_per_cycle is 0, .* more than 0",
        ),
        (lambda: Channel(name="C", port_bytes_per_cycle=float("nan")), r"channel C: port_.* is nan"),
        (lambda: Channel(name="C", port_bytes_per_cycle=float("inf")), r"channel C: port_.* is inf"),
        (lambda: Machine(pipes=(PIPE,), cores=0), r"number of cores is 0, it must be at least 1"),
        (lambda: Machine(pipes=(), cores=1), r"number of pipes is 0, it must be 1 to 16"),
        (lambda: Machine(pipes=(PIPE,) * 17, cores=1), r"number of pipes is 17, it must be 1 to 16"),
        (
            lambda: Machine(pipes=tuple(PipeSpec(name="V", unit=str(u)) for u in range(5)), cores=1),
            r"number of units is 5, it must be 1 to 4",
        ),
        (
            lambda: Machine(pipes=(PipeSpec(name="S", unit="A", scalar=True),) * 2, cores=1),
            r"number of scalar pipes of unit A is 2, it must be 0 to 1",
        ),
        (
            lambda: Machine(pipes=(PIPE,), cores=1, dispatch_cycles=-1),
            r"dispatch_cycles is -1, it must be finite and at least 0",
        ),
        (
            lambda: Machine(
                pipes=(PIPE,), cores=1, channels=(Channel(name="C", port_bytes_per_cycle=1, resources=(1,)),)
            ),
            r"channel C: resource 1, the machine has 0 of them",
        ),
        (
            lambda: Machine(
                pipes=(PIPE,),
                cores=1,
                channels=(Channel(name="C", port_bytes_per_cycle=1, resources=(0, 0)),),
                resources=(Resource(name="HBM", bytes_per_cycle=1),),
            ),
            r"channel C: resources \(0, 0\) has one twice",
        ),
    ],
)
def test_a_machine_refuses(make: Callable[[], object], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        make()


def test_a_run_refuses_pipes_and_channels_that_the_machine_lacks() -> None:
    for name, number in (("pipe", 4), ("channel", 2)):
        trace = Trace(**fields(**{name: [0, number, 0]}))
        with pytest.raises(UsageError, match=rf"{name}\[1\] is {number}: the machine has {number} of them"):
            simulate(machine(), [Group(trace=trace, programs=np.arange(1))])


def test_a_run_refuses_launch_numbers_with_gaps() -> None:
    trace = Trace(**fields())
    with pytest.raises(UsageError, match=r"launch numbers of 3 programs must be 0 to 2, each once"):
        simulate(machine(), [Group(trace=trace, programs=np.array([0, 1, 1]))])
    with pytest.raises(UsageError, match=r"0 programs, at least 1 is needed"):
        simulate(machine(), [])


def test_a_group_refuses_a_table_of_another_width() -> None:
    b = Builder()
    b.fixed(V, programs=[1, 2, 3])
    with pytest.raises(UsageError, match=r"the table has 3 columns for 2 programs"):
        b.group(2)


def test_a_group_refuses_programs_that_are_no_list_of_numbers() -> None:
    with pytest.raises(UsageError, match=r"group: programs has type float64, int64 is needed"):
        Group(trace=Trace(**fields()), programs=np.array([0.0]))
    with pytest.raises(UsageError, match=r"group: programs has 2 dimensions, not 1"):
        Group(trace=Trace(**fields()), programs=np.zeros((1, 1), int))


def test_a_run_refuses_a_negative_timeline_limit() -> None:
    with pytest.raises(UsageError, match=r"timeline_limit is -1, it must be at least 0"):
        simulate(machine(), [Group(trace=Trace(**fields()), programs=np.arange(1))], timeline_limit=-1)


def test_arrays_off_the_bounds_of_their_type_are_moved_before_the_loops_read_them() -> None:
    packed = np.zeros(1, [("pad", np.int8), ("time", np.float64)])["time"]
    trace = Trace(**{k: v[:1] for k, v in fields().items() if not k.startswith("dep")} | {
        "occupancy": packed, "dep_start": np.zeros(2, int), "dep": [], "dep_kind": []
    })  # fmt: skip
    assert not packed.flags.aligned
    assert trace.occupancy.flags.aligned
