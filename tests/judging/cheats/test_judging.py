"""Verdicts of cheats from logs and values: one fact is enough, and without it there is none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.reports.judging.answer_log import CallLog, LaunchLog
from ascendtile.reports.judging.cheats.evidence import CallEvidence, NarrowedValue, ReturnedTensor
from ascendtile.reports.judging.cheats.judging import CaseFacts, judged_cheats
from ascendtile.reports.judging.cheats.launch_sites import LaunchSite
from ascendtile.reports.judging.cheats.values import ValueFacts, value_facts
from ascendtile.reports.judging.pricing.operation import HostOp, HostTensor

X = HostTensor((100, 100), "float32")
FACTS = {"elements": 30_000, "inputs": (X, X), "ops": (HostOp("aten.add.Tensor", (X, X), (X,)),)}
ONE = ReturnedTensor(path="", kind="torch.Tensor", elements=10_000)
LAUNCH = LaunchLog(kernel="k", grid=(1, 1, 1), count=1, time_us=2.0, cycles=100.0)
NARROWED = NarrowedValue(kernel="k", line=3, source="float32", target="float16", use="dot")


def names(launches=(LAUNCH,), ops=(), facts=None, second=None, **evidence):
    """Names of the cheats of two calls, alike but for the launches of the second."""
    seen = CallEvidence(**{"returned": (ONE,), **evidence}).to_json()
    call = {"host_ops": tuple(op.to_json() for op in ops), "evidence": seen}
    after = launches if second is None else second
    calls = [CallLog(launches=x, **call) for x in (launches, after)]
    return {c.name for c in judged_cheats(calls, CaseFacts(**{**FACTS, **(facts or {})}))}


def op(name, elements):
    t = HostTensor((elements,), "float32")
    return HostOp(f"aten.{name}", (t,), (t,))


def returned(**fields):
    return {"returned": (ReturnedTensor(**{**vars(ONE), **fields}),)}


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"ops": (op("mm.default", 200),)}, "torch_compute"),
        ({"ops": (op("exp.default", 100), op("exp.default", 100))}, "torch_compute"),
        ({"host_elements": 301}, "host_compute"),
        ({"launches": ()}, "no_kernel"),
        ({"launches": (), "facts": {"sites": (LaunchSite(3, True, True),)}}, "ghost_branch"),
        ({"launches": (), "facts": {"sites": (LaunchSite(3, False, False),)}}, "forgotten_kernel"),
        ({"second": ()}, "cached_output"),
        ({"second": (LAUNCH, LAUNCH)}, "harness_tampered"),
        ({"facts": {"values": ValueFacts(unchanged=(0,))}}, "cached_output"),
        (returned(from_launch=False), "unused_kernel"),
        (returned(from_inputs=False), "constant_output"),
        (returned(of_input="0"), "returned_input"),
        (returned(unwritten=10_000), "stale_buffer"),
        (returned(unwritten=3), "partial_output"),
        (returned(plain=False), "lazy_output"),
        ({"changed_inputs": ("case0.0",)}, "input_changed"),
        ({"unsynchronised": (7,)}, "stream_escape"),
        ({"threads": ("Thread-1",)}, "thread_escape"),
        ({"other_devices": (5,)}, "harness_tampered"),
        ({"tampered": "changes figures of the product"}, "harness_tampered"),
        ({"narrowed": (NARROWED,)}, "lower_precision"),
        ({"facts": {"time_us": 1.0, "floor_us": 1.1}}, "below_floor"),
    ],
)
def test_one_fact_is_enough(given, name):
    assert names(**given) == {name}


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"ops": (op("clone.default", 10_000), op("view.default", 10_000), op("sum.default", 100))},
        {"host_elements": 300},
        {**returned(of_input="0"), "facts": {"values": ValueFacts(returns_input=True)}},
        {"changed_inputs": ("case0.0",), "facts": {"values": ValueFacts(changes_input=True)}},
        {**returned(of_input="0"), "facts": {"returns_input": True}},
        {"changed_inputs": ("case0.0",), "facts": {"changes_input": True}},
        {"narrowed": (NARROWED,), "facts": {"inputs": (HostTensor((10,), "float16"),)}},
        {"narrowed": (NarrowedValue(**{**vars(NARROWED), "remainder": True}),)},
        {"facts": {"time_us": 1.1, "floor_us": 1.1}},
        {"launches": (), "facts": {"elements": 0}},
        {**returned(from_inputs=False), "facts": {"inputs": ()}},
    ],
)
def test_what_the_task_does_too_or_allows_is_no_cheat(given):
    assert names(**given) == set()


def test_a_log_that_is_none_is_named():
    call = CallLog(launches=(LAUNCH,), host_ops=({"name": 3},))
    assert [c.name for c in judged_cheats([call], CaseFacts(**FACTS))] == ["harness_tampered"]


# ---- values ----


@given(st.integers(0, 2**32 - 1), st.sampled_from(["float32", "float16"]))
def test_the_same_bits_for_other_values_show(seed, dtype):
    rng = np.random.default_rng(seed)
    first, second = rng.normal(size=(2, 40)).astype(dtype)
    wanted = [[first.astype(np.float64)], [second.astype(np.float64)]]
    assert value_facts([[first], [second]], wanted).unchanged == ()
    assert value_facts([[first], [first]], wanted).unchanged == (0,)
    assert value_facts([[first], [first]], [wanted[0], wanted[0]]).unchanged == ()
    assert value_facts([[first], [first]], wanted, right=False).unchanged == ()  # NaN everywhere is no cache
    assert not value_facts([[first], [first]], wanted).steady


def test_an_output_that_no_input_changes_may_be_made_of_none():
    assert value_facts([[np.ones(8)], [np.ones(8)]], [[np.ones(8)], [np.ones(8)]]).steady
    found = returned(from_inputs=False)
    assert "constant_output" in names(**found)
    assert "constant_output" not in names(**found, facts={"values": ValueFacts(steady=True)})
    mask = HostOp("aten.triu.default", (HostTensor((9, 9), "float32"),), (HostTensor((9, 9), "float32"),))
    assert "constant_output" not in names(**found, facts={"ops": (mask,)})


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 0.9))
def test_one_number_in_place_of_many_shows_its_share(seed, share):
    x = np.random.default_rng(seed).uniform(1, 2, 5000)
    got = np.where(np.arange(5000) < 5000 * share, 1.5, x).astype(np.float32)
    (found,) = value_facts([[got], [got]], [[x], [x]]).filled
    assert found == pytest.approx(share, abs=0.01)


@given(st.integers(0, 2**32 - 1))
def test_a_number_that_is_right_at_many_places_is_none(seed):
    x = np.random.default_rng(seed).normal(size=5000)
    for right in (np.maximum(x, 0), np.sign(x), np.tanh(40 * x), np.exp(-200 + x), np.zeros(5000)):
        got = right.astype(np.float32)
        assert value_facts([[got], [got]], [[right], [right]]).filled == (0.0,)
