"""The file of a baseline: the same on every machine, nothing is lost, and what is read is checked."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.kernels import run_op
from ascendtile.reports.comparing import compare_runs
from ascendtile.reports.testing.baseline.entry import BaselineEntry, difference, same_figures, same_kernel
from ascendtile.reports.testing.baseline.file import baseline_of, read_baseline, write_baseline
from ascendtile.reports.testing.baseline.state import BaselineState
from ascendtile.simulator.errors import UsageError

from ..support.sample_runs import run as sample_run
from .conftest import time_add


def test_an_entry_survives_the_file(tmp_path, small):
    path = tmp_path / "b.json"
    entries = {"add": BaselineEntry.of(small), "tile": BaselineEntry.of(sample_run())}
    write_baseline(path, {"test_a.py::test_b": entries, "test_a.py::test_none": {}})
    assert read_baseline(path) == {"test_a.py::test_b": entries}
    again = path.read_bytes()
    write_baseline(path, read_baseline(path))
    assert path.read_bytes() == again


@pytest.mark.parametrize("version", [True, 1.0, "1", None, 2])
def test_only_the_number_1_is_its_version(version):
    with pytest.raises(UsageError, match=f"has version {version!r}"):
        baseline_of(
            json.dumps({"format": "ascendtile-baseline", "version": version, "tests": {}}).encode(), "b.json"
        )


def test_no_path_of_the_machine_is_kept(small):
    text = json.dumps(BaselineEntry.of(small).to_json())
    assert str(Path(__file__).parent.parent) not in text
    assert "kernels.py:" in text


def test_a_difference_of_entries_is_that_of_the_runs(small, large):
    """By name and to nine digits, but for waits that are no causes and bytes moved, which are not kept."""
    kept = difference(BaselineEntry.of(small), BaselineEntry.of(large))
    whole = compare_runs(small, large)
    assert kept.time == whole.time
    for name in ("lines", "busy", "bounds", "buffers"):
        mine, theirs = ({p.name: p for p in getattr(d, name)} for d in (kept, whole))
        moved = {n for n, p in theirs.items() if p.first or p.second}
        assert moved <= set(mine)
        for n in moved:
            assert mine[n].change == pytest.approx(theirs[n].change, abs=1e-6)
    assert {n for n, *_ in kept.settings} >= {n for n, *_ in whole.settings}


@pytest.mark.parametrize("op", ["rms_norm_grad", "batch_norm_reduce_backward", "matmul"])
def test_entries_of_operators_are_figures_that_a_run_can_have(op):
    entry = BaselineEntry.of(run_op(op, "tiny", "float16", values=False).run)
    assert BaselineEntry.from_json(entry.to_json(), "x") == entry
    assert entry.launches >= 1
    assert entry.cycles > 0


def test_what_was_chosen_is_kept_and_what_is_usual_is_not(large):
    usual = BaselineEntry.of(large).settings
    assert not {n for n in usual if "fma_round" in n or "subnormals" in n}
    chosen = BaselineEntry.of(time_add(overrides={"buffers.ub": "128KiB"}, multibuffer=1)).settings
    assert chosen["figure buffers.ub"] == "131072"
    assert (usual["option multibuffer"], chosen["option multibuffer"]) == ("2", "1")


def test_the_version_is_no_figure_and_a_changed_line_is_another_kernel(large):
    entry = BaselineEntry.of(large)
    data = entry.to_json()
    older = BaselineEntry.from_json({**data, "ascendtile": "0.0.1", "cycles": data["cycles"] + 1}, "x")
    assert same_kernel(entry, older)
    assert not same_figures(entry, older)
    assert same_figures(entry, BaselineEntry.from_json({**data, "ascendtile": "0.0.1"}, "x"))
    line = next(iter(data["lines"]))
    edited = {n + (" + 1" if n == line else ""): x for n, x in data["lines"].items()}
    assert not same_kernel(entry, BaselineEntry.from_json({**data, "lines": edited}, "x"))


@pytest.fixture(scope="module")
def content(tmp_path_factory, large):
    path = tmp_path_factory.mktemp("baseline") / "b.json"
    write_baseline(path, {"t.py::test": {"add": BaselineEntry.of(large)}})
    return path.read_bytes()


def refused(raw):
    with pytest.raises(UsageError) as found:
        baseline_of(raw, "b.json")
    text = str(found.value)
    assert text.startswith("b.json: ")
    return text


def test_files_that_are_no_baseline_say_what_is_wrong_and_what_to_do(content):
    text = content.decode()
    twice = text.replace('"t.py::test": {', '"t.py::test": {}, "t.py::test": {')
    for damaged, message in (
        ("", "is damaged, it is not JSON"),
        (text[:-20], "pytest --ascendtile-update` writes it anew"),
        ("[]", "is no baseline"),
        (text.replace('"version": 1', '"version": 2'), "has version 2; this is ascendtile"),
        (f"<<<<<<< HEAD\n{text}", "conflicts of a merge"),
        (twice, "has two entries 't.py::test'"),
        (text.replace('"launches": 1', '"launches": NaN'), "NaN is not JSON"),
        (text.replace('"launches"', '"lanches"'), "unknown field 'lanches'"),
        ("[" * 100_000, "damaged"),
    ):
        assert message in refused(damaged.encode())
    assert "not JSON" in refused(b"\xff\xfe")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("cycles", -5.0, "cycles is -5.0"),
        ("cycles", "NaN", "cycles is nan"),
        ("time_us", 1e40, "time_us"),
        ("lines", {"no place": 1.0}, "is not FILE:LINE"),
        ("lines", {"a.py:1  x": 1e9}, "other_cycles"),
        ("busy", {"AIV.V": 1e9}, "busy_cycles"),
        ("buffers", {"UB": [7]}, "must have 2 items"),
        ("buffers", {"UB": [8, 7]}, "peak_bytes is 8"),
        ("settings", {"x": 1}, "must be str"),
        ("faults", "none", "must be a JSON array"),
    ],
)
def test_figures_that_no_run_has_are_refused_by_name(content, field, value, message):
    data = json.loads(content)
    data["tests"]["t.py::test"]["add"][field] = value
    text = refused(json.dumps(data).encode())
    assert "'t.py::test', 'add'" in text
    assert message in text


@given(st.integers(0, 10**6), st.binary(max_size=4), st.integers(0, 9))
def test_a_changed_file_is_read_or_refused(content, at, new, dropped):
    at %= len(content)
    damaged = content[:at] + new + content[at + dropped :]
    with contextlib.suppress(UsageError):
        baseline_of(damaged, "b.json")


def test_a_file_that_is_not_there_or_a_folder_is_named(tmp_path):
    for path in (tmp_path, tmp_path / "none.json"):
        with pytest.raises(UsageError, match=str(path)):
            read_baseline(path)


def test_what_another_run_wrote_meanwhile_is_kept(tmp_path, small):
    entry = BaselineEntry.of(small)
    (tmp_path / "t.py").touch()
    state = BaselineState(tmp_path / "b.json", "b.json", update=True)
    assert not state.entries
    write_baseline(state.path, {"t.py::other": {"add": entry}})
    state.take("t.py::mine", {"add": entry.to_json()}, True)
    assert state.finish(tmp_path)
    assert set(read_baseline(state.path)) == {"t.py::mine", "t.py::other"}
