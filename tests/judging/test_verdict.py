"""The record of a verdict: there and back, what is refused, and the schema that is shipped."""

import json
import math
from dataclasses import fields, is_dataclass

import pytest

from ascendtile.reports.judging import verdict as module
from ascendtile.reports.judging.verdict import (
    ACCEPTED,
    VERDICTS,
    BufferFit,
    CaseVerdict,
    Cheat,
    ComparedOutput,
    DearLine,
    HostCost,
    LaunchTime,
    NearestBound,
    ReferencePart,
    ReferenceTime,
    Tolerance,
    Verdict,
    verdict_schema,
)
from ascendtile.simulator.errors import UsageError

OUTPUT = ComparedOutput(
    name="output 0",
    shape=(4, 5),
    dtype="float32",
    elements=20,
    checked=20,
    tolerance=Tolerance(rtol=1e-4, atol=1e-4, outside=0.0, source="a rule"),
    passed=False,
    max_abs=math.inf,
    max_rel=math.nan,
    worst=(3, 4),
    got=-math.inf,
    want=1.0,
    outside=1,
    message="differs",
)
FULL = Verdict(
    verdict="wrong",
    message="output 0 differs",
    compiled=True,
    correctness=False,
    product="a product",
    metadata={"hardware": "a product", "max_difference": ["0.1"]},
    runtime=0.5,
    time_us=500.0,
    interval_us=(400.0, 600.0),
    cycles=900_000,
    speedup=1.5,
    reference=ReferenceTime(
        time_us=750.0,
        kind="floor",
        parts=(ReferencePart(op="aten.mm", time_us=750.0, kind="floor", source="b"),),
    ),
    floor_us=10.0,
    bound=NearestBound(name="HBM", time_us=400.0, share=0.8),
    distance=1.25,
    outputs=(OUTPUT,),
    ub=BufferFit(bits=8, available_bits=16, peak_bytes=1, fits=True),
    line=DearLine(file="a.py", line=3, text="x = 1", share=0.5, us=250.0, why="waits"),
    faults=("a fault",),
    cheats=(Cheat(name="no_kernel", message="no launch", line=None),),
    confidence="low",
    launches=(LaunchTime(kernel="k", grid=(4, 1, 1), time_us=1.0, cycles=1850, count=2),),
    host_ops=(HostCost(op="aten.copy_", count=1, time_us=1.0, kind="move", line=7),),
    cases=(CaseVerdict(index=0, inputs="(4, 5) float32", verdict="wrong", outputs=(OUTPUT,)),),
)
IDS = ["full", *VERDICTS]
SMALL = [Verdict(verdict=v, message="", compiled=v != "not_compiled", product="p") for v in VERDICTS]


@pytest.mark.parametrize("verdict", [FULL, *SMALL], ids=IDS)
def test_a_verdict_comes_back_from_its_text_with_the_same_text(verdict):
    text = json.dumps(verdict.to_json(), allow_nan=False)
    assert json.dumps(Verdict.from_json(json.loads(text)).to_json()) == text


def test_a_verdict_without_what_is_not_a_number_is_equal_when_it_comes_back():
    assert Verdict.from_json(json.loads(json.dumps(SMALL[0].to_json()))) == SMALL[0]


def test_what_is_accepted_is_what_nothing_speaks_against():
    assert {v.verdict for v in SMALL if v.accepted} == set(ACCEPTED) == {"correct", "correct_so_far", "timed"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": "ascendtile-verdict/2"}, "ascendtile-verdict/1"),
        ({"verdict": "right"}, "must be one of cheat"),
        ({"time_us": "fast"}, "time_us"),
        ({"outputs": [{}]}, "outputs.0"),
        ({"more": 1}, "more"),
    ],
)
def test_what_is_no_verdict_is_refused_by_field(change, said):
    with pytest.raises(UsageError, match=said):
        Verdict.from_json({**FULL.to_json(), **change})


def test_the_schema_names_every_field_and_asks_for_it():
    records = {c.__name__: c for c in vars(module).values() if is_dataclass(c)}
    schemas = {**verdict_schema()["$defs"], "Verdict": verdict_schema()}
    for name, record in records.items():
        names = {f.name for f in fields(record)}
        assert set(schemas[name]["properties"]) == set(schemas[name]["required"]) == names
        assert schemas[name]["additionalProperties"] is False


def test_the_schema_knows_the_verdicts():
    assert verdict_schema()["properties"]["verdict"]["enum"] == list(VERDICTS)


@pytest.mark.extra("jsonschema")
@pytest.mark.parametrize("verdict", [FULL, *SMALL], ids=IDS)
def test_verdicts_of_all_kinds_keep_the_schema(verdict):
    import jsonschema

    validator = jsonschema.Draft202012Validator(verdict_schema())
    validator.check_schema(verdict_schema())
    validator.validate(json.loads(json.dumps(verdict.to_json())))
    assert not validator.is_valid({**verdict.to_json(), "verdict": "right"})
