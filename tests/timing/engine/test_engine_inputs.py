"""Bad inputs are refused before anything runs, with the numbers on both sides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.timing.engine.engine import (
    Channel,
    Machine,
    PipeSpec,
    ProgramGroup,
    Resource,
    Trace,
    simulate,
)
from ascendtile.simulator.timing.engine.trace import GAIN, INSTRUCTION, LOOP, ROTATING

from .engine_builder import MTE2, Builder, V, machine

PIPE = PipeSpec(name="V", unit="AIV")
NAN, INF = float("nan"), float("inf")
TIMES = ("occupancy", "latency", "amount")


def fields() -> dict[str, Any]:
    """A loop of three iterations around one of two: loads into two buffers, which a vector record reads."""
    rows = np.zeros(3, INSTRUCTION)
    rows["pipe"], rows["occupancy"] = (MTE2, MTE2, V), (1, 1, 5)
    rows["channel"], rows["amount"] = (0, 0, -1), (80, 80, 0)
    rows["instructions"], rows["line"] = 1, np.arange(3)
    rows["column"], rows["cycles"] = (0, -1, -1), (-1, -1, 0)
    rows["slot"], rows["writes"], rows["reads"], rows["clobbers"] = (0, 1, 2), (1, 1, 0), (0, 0, 2), (0, 0, 1)
    rows["stride"], rows["depth"] = (0, 0, 1), (1, 0, 2)
    return {
        "instructions": rows,
        "code": np.array([-2, 1, 2, 0, -1], np.int32),
        "length": 1,
        "loops": np.array([(1, 3, 2, 0, 1), (3, 5, 3, 1, 1)], LOOP),
        "gains": np.array([(1, 0), (2, 1)], GAIN),
        "slots": np.array([-1, 2, -1, 2, -2], np.int32),
        "rotating": np.array([(0, 0, 2, 0), (1, 1, 1, 2)], ROTATING),
        "choices": np.array([0, 1, 2, 4], np.int64),
        "items": np.array([0, 1, 3, 4], np.int32),
        "strides": np.array([1, 1, 2], np.int64),
        "cycles": np.arange(6.0),
        "table": np.arange(3.0).reshape(3, 1),
        "flags": np.zeros(5, np.int8),
    }


def changed(name: str, place: int, value: Any, field: str = "") -> dict[str, Any]:
    """The fields with another number in one of them."""
    found = fields()
    (found[name][field] if field else found[name])[place] = value
    return found


def test_all_that_is_within_its_range_is_a_trace() -> None:
    trace = Trace(**fields())
    assert trace.records == 3 * (1 + 2 * 2)
    assert trace.rows.tolist() == [3, 1, 6]
    assert (
        simulate(machine(), [ProgramGroup(trace=trace, programs=np.arange(1))]).records_run == trace.records
    )


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        *(
            (n, v, rf"{n} is {v}.*: it must be finite and at least 0")
            for n in TIMES
            for v in (-8.0, NAN, INF)
        ),
        ("pipe", -1, r"pipe is -1: 0 to 127 is allowed"),
        ("channel", -5, r"channel is -5: -4 to 127 is allowed"),
        ("column", -2, r"column is -2: -1 to 2 is allowed"),
        ("column", 3, r"column is 3: -1 to 2 is allowed"),
        ("cycles", -2, r"cycles is -2: -1 to 5 is allowed"),
        ("cycles", 6, r"cycles is 6: -1 to 5 is allowed"),
        ("instructions", -1, r"instructions is -1: 0 to 2147483647 is allowed"),
        ("line", -1, r"line is -1: 0 to 2147483647 is allowed"),
        ("depth", -1, r"depth is -1: 0 to 3 is allowed"),
        ("depth", 4, r"depth is 4: 0 to 3 is allowed"),
        ("stride", -1, r"stride is -1: 0 to 3 is allowed"),
        ("stride", 4, r"stride is 4: 0 to 3 is allowed|depth is 0: 0 to -1 is allowed"),
        ("slot", -1, r"slot is -1: 0 to 4 is allowed"),
        ("slot", 5, r"slot is 5: 0 to 4 is allowed"),
        ("other", -2, r"other is -2: -1 to 0 is allowed"),
        ("other", 1, r"other is 1: -1 to 0 is allowed"),
        *((n, -1, "it has less than 0 slots") for n in ("reads", "writes", "clobbers")),
        *((n, 6, r"slot is 1: 0 to -\d is allowed") for n in ("reads", "writes", "clobbers")),
    ],
)
def test_every_field_of_an_instruction_out_of_its_range_is_named(field: str, value: float, text: str) -> None:
    with pytest.raises(UsageError, match=rf"trace: instruction 1: ({text})"):
        Trace(**changed("instructions", 1, value, field))


@pytest.mark.parametrize(
    ("name", "field", "place", "value", "text"),
    [
        ("slots", "", 1, 5, r"instruction 1: slot 5, there are 5 slots and 2 that rotate"),
        ("slots", "", 1, -3, r"instruction 1: slot -3, there are 5 slots and 2 that rotate"),
        ("slots", "", 1, -2, r"instruction 1 reads or writes choice 2, which has 2 slots, not 1"),
        ("strides", "", 2, -1, r"instruction 2: stride -1: it must be at least 0"),
        ("code", "", 1, 3, r"code\[1\] is 3, there are 3 instructions and 2 loops"),
        ("code", "", 4, -3, r"code\[4\] is -3, there are 3 instructions and 2 loops"),
        ("code", "", 4, -2, r"loop 1 has loop 1 inside: only one before it is allowed"),
        ("code", "", 1, -2, r"loop 0 has loop 1 inside: only one before it is allowed"),
        ("code", "", 0, 2, r"code\[0\]: its numbers go beyond their table, or its loops are more than 64"),
        ("loops", "first", 0, -1, r"loop 0 is code -1 to 3 of 5"),
        ("loops", "first", 0, 4, r"loop 0 is code 4 to 3 of 5"),
        ("loops", "end", 1, 6, r"loop 1 is code 3 to 6 of 5"),
        ("loops", "trip_count", 0, 0, r"loop 0 has trip count 0, it must be at least 1"),
        ("loops", "gain", 1, -1, r"loop 1 has gains -1 to 0 of 2"),
        ("loops", "gain", 1, 2, r"loop 1 has gains 2 to 3 of 2"),
        ("loops", "gains", 0, -1, r"loop 0 has gains 0 to -1 of 2"),
        ("loops", "gains", 0, 3, r"loop 0 has gains 0 to 3 of 2"),
        ("gains", "by", 1, -1, r"gain 1 adds -1 to counter 1: both must be 0 to 2147483647"),
        ("gains", "by", 1, 1 << 31, r"gain 1 adds 2147483648 to counter 1: both must be 0 to 2147483647"),
        ("gains", "counter", 0, -1, r"gain 0 adds 1 to counter -1: both must be 0 to 2147483647"),
        (
            "rotating",
            "base",
            0,
            -1,
            r"rotating slot 0 has base -1 and counter 0: both must be 0 to 2147483647",
        ),
        ("rotating", "base", 0, 1 << 31, r"rotating slot 0 has base 2147483648 and counter 0"),
        ("rotating", "counter", 1, -1, r"rotating slot 1 has base 1 and counter -1"),
        ("rotating", "copies", 0, 0, r"rotating slot 0 has 0 copies from choice 0 of 3"),
        ("rotating", "copies", 1, 2, r"rotating slot 1 has 2 copies from choice 2 of 3"),
        ("rotating", "choice", 1, -1, r"rotating slot 1 has 1 copies from choice -1 of 3"),
        ("choices", "", 0, -1, r"choice 0 is items -1 to 1 of 4"),
        ("choices", "", 1, 3, r"choice 1 is items 3 to 2 of 4"),
        ("choices", "", 3, 5, r"choice 2 is items 2 to 5 of 4"),
        ("items", "", 0, -1, r"choices have slot -1, there are 5 slots"),
        ("items", "", 3, 5, r"choices have slot 5, there are 5 slots"),
        ("table", "", 1, NAN, r"table has an entry that is not finite; a negative one skips the record"),
        ("table", "", 1, -INF, r"table has an entry that is not finite"),
        ("cycles", "", 4, -1.0, r"cycles\[4\] is -1.0: it must be finite and at least 0"),
        ("cycles", "", 4, NAN, r"cycles\[4\] is nan: it must be finite and at least 0"),
    ],
)
def test_every_number_out_of_its_range_is_named(
    name: str, field: str, place: int, value: float, text: str
) -> None:
    with pytest.raises(UsageError, match=f"trace: {text}"):
        Trace(**changed(name, place, value, field))


@pytest.mark.parametrize("length", [-1, 6])
def test_the_length_is_within_the_code(length: int) -> None:
    with pytest.raises(UsageError, match=rf"trace: length is {length}, the code has 5"):
        Trace(**fields() | {"length": length})


@pytest.mark.parametrize(("name", "rows"), [("table", 2), ("cycles", 5)])
def test_the_last_iteration_finds_its_numbers(name: str, rows: int) -> None:
    """The table's three rows and the six of cycles are all in use: one less is refused."""
    place = {"table": 3, "cycles": 2}[name]
    with pytest.raises(UsageError, match=rf"trace: code\[{place}\]: its numbers go beyond their table"):
        Trace(**fields() | {name: fields()[name][:rows]})


def test_more_than_64_loops_inside_each_other_are_refused() -> None:
    def nested(depth: int) -> dict[str, Any]:
        loops = np.array([(k, k + 1, 1, 0, 0) for k in range(1, depth + 1)], LOOP)
        code = np.array([-depth, 1, *range(-1, -depth, -1)], np.int32)
        return fields() | {"code": code, "loops": loops}

    assert Trace(**nested(64)).depth == 64
    with pytest.raises(UsageError, match=r"its loops are more than 64"):
        Trace(**nested(65))


def test_more_records_than_can_be_numbered_are_refused() -> None:
    with pytest.raises(UsageError, match=r"trace: 3221225472 records, 2147483647 are allowed"):
        Trace(
            **fields()
            | {"code": np.array([-1, 1], np.int32), "loops": np.array([(1, 2, 3 << 30, 0, 0)], LOOP)}
        )


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
                channels=(Channel(name="C", port_bytes_per_cycle=1, resources=(0,) * 4),),
                resources=(Resource(name="HBM", bytes_per_cycle=1),),
            ),
            r"channel C: resources \(0, 0, 0, 0\) has one 4 times, it must be at most 3",
        ),
    ],
)
def test_a_machine_refuses(make: Callable[[], object], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        make()


def test_a_run_refuses_pipes_and_channels_that_the_machine_lacks() -> None:
    for name, number in (("pipe", 4), ("channel", 2)):
        trace = Trace(**changed("instructions", 1, number, name))
        with pytest.raises(UsageError, match=rf"{name}\[1\] is {number}: the machine has {number} of them"):
            simulate(machine(), [ProgramGroup(trace=trace, programs=np.arange(1))])


def test_a_run_refuses_launch_numbers_with_gaps() -> None:
    trace = Builder().trace()
    with pytest.raises(UsageError, match=r"launch numbers of 3 programs must be 0 to 2, each once"):
        simulate(machine(), [ProgramGroup(trace=trace, programs=np.array([0, 1, 1]))])
    with pytest.raises(UsageError, match=r"0 programs, at least 1 is needed"):
        simulate(machine(), [])


def test_a_group_refuses_a_table_of_another_width() -> None:
    b = Builder()
    b.fixed(V, programs=[1, 2, 3])
    with pytest.raises(UsageError, match=r"the table has 3 columns for 2 programs"):
        b.group(2)


def test_a_group_refuses_programs_that_are_no_list_of_numbers() -> None:
    with pytest.raises(UsageError, match=r"group: programs has type float64, int64 is needed"):
        ProgramGroup(trace=Builder().trace(), programs=np.array([0.0]))
    with pytest.raises(UsageError, match=r"group: programs has 2 dimensions, not 1"):
        ProgramGroup(trace=Builder().trace(), programs=np.zeros((1, 1), int))


def test_a_run_refuses_a_negative_timeline_limit() -> None:
    with pytest.raises(UsageError, match=r"timeline_limit is -1, it must be at least 0"):
        simulate(machine(), [ProgramGroup(trace=Trace(**fields()), programs=np.arange(1))], timeline_limit=-1)
