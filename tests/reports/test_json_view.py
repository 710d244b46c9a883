"""`--json`: the keys that scripts rely on, and JSON that every parser reads."""

from __future__ import annotations

import json

from hypothesis import given

from ascendtile.reports.facts.json_view import run_json
from ascendtile.simulator.messages import fault

from ..support.sample_runs import hostile_runs, launch, run

ERRORS = ("max_abs", "max_rel", "mean_rel", "rmse", "max_ulp", "effective_bits")


def strict(data):
    """As a parser without NaN and Infinity reads it."""

    def no_literal(word):
        raise AssertionError(word)

    return json.loads(json.dumps(data, allow_nan=False), parse_constant=no_literal)


def test_every_key_of_a_whole_run():
    data = strict(run_json(run(), "a/x.run"))
    plain = {
        n: data[n]
        for n in ("op", "product", "case", "dtype", "cube_math_type", "time_us", "cycles", "record")
    }
    assert plain == {
        "op": "tile",
        "product": "ascend910b3",
        "case": "medium",
        "dtype": "float16",
        "cube_math_type": "KEEP_DTYPE",
        "time_us": 38.0,
        "cycles": 60000.0,
        "record": "a/x.run",
    }
    assert data["overrides"] == {"buffers.l1": 262144}
    assert data["tiling"] == {"rows": 2, "cols": 4096, "strategy": "whole"}
    assert data["bound"] == {"name": "HBM", "time_us": 28.5, "fraction": 0.75}
    assert data["bounds"] == {"HBM": 28.5, "AIV.V": 13.0, "launch": 4.0}
    waits = {"data": 36000.0}
    vector = {
        "busy_cycles": 24000.0,
        "share": 0.4,
        "stalls": waits,
        "waits": waits,
        "of_busy": {"bandwidth": 0},
    }
    assert data["pipes"]["AIV.V"] == vector
    loading = data["pipes"]["AIV.MTE2"]
    assert (loading["waits"], loading["of_busy"]) == ({"data": 0.0}, {"bandwidth": 30000.0})
    told = {
        "text": "tile.py:12: a discrete access",
        "kind": "time",
        "file": "tile.py",
        "line": 12,
        "programs": [],
    }
    assert data["warnings"] == [told]
    assert data["notes"] == ["exp on fp16: costed as exp on fp32"]
    assert data["options"]["limits"] == [1, "Infinity"]


def test_launches_buffers_and_lines():
    data = strict(run_json(run()))
    first = data["launches"][0]
    assert (first["kernel"], first["grid"], first["time_us"]) == ("tile_kernel", [40, 1, 1], 38.0)
    ub = data["buffers"]["UB"]
    assert (ub["peak_bytes"], ub["capacity_bytes"], ub["peak"][0]["name"]) == (147456, 196608, "x")
    assert [(x["file"], x["line"], x["source"], x["cycles"]) for x in data["lines"]] == [
        ("/a/folder/kernels/tile.py", 13, "tl.store(out_ptr + cols, x * 2)", 40000.0),
        ("/a/folder/kernels/tile.py", 12, "x = tl.load(x_ptr + cols)", 15000.0),
    ]


def test_errors_have_words_for_what_is_not_finite():
    data = strict(run_json(run()))["errors"]
    assert set(ERRORS) <= set(data["out"])
    assert (data["out"]["max_abs"], data["exact"]["max_abs"]) == (0.5, 0)
    assert data["exact"]["effective_bits"] == "Infinity"


def test_what_was_not_asked_for_is_null_or_empty():
    data = strict(run_json(run(launches=(), errors={})))
    assert [data[n] for n in ("time_us", "cycles", "bound", "record")] == [None] * 4
    assert [data[n] for n in ("launches", "lines", "warnings", "notes")] == [[]] * 4
    assert [data[n] for n in ("bounds", "pipes", "buffers", "errors")] == [{}] * 4


def test_warnings_of_launches_and_of_their_values_come_once_with_kind_place_and_programs():
    own, wrong = launch().warnings[0], fault("stored twice", "a:b.py:7", (0, 3))
    found = run_json(run(value_warnings=(wrong, own, "plain")))["warnings"]
    assert [m["text"] for m in found] == [own, wrong, "plain"]
    assert [m["kind"] for m in found] == ["time", "fault", "note"]
    assert [(m["file"], m["line"]) for m in found] == [("tile.py", 12), ("a:b.py", 7), (None, None)]
    assert found[1]["programs"] == [0, 3]


def test_lines_of_several_launches_are_one():
    data = run_json(run(launches=(launch(), launch())))
    assert [(x["line"], x["cycles"]) for x in data["lines"]] == [(13, 80000.0), (12, 30000.0)]


@given(hostile_runs())
def test_any_run_is_strict_json(one):
    strict(run_json(one))
