"""Traces: every rule of Chrome's Trace Event Format that the viewers rely on, and the conventions of MindStudio Insight."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import ascendtile.simulator as sim
from ascendtile.kernels.running.run_op import run_op
from ascendtile.reports.cli.main import cli
from ascendtile.reports.traces.selection import select
from ascendtile.reports.traces.writing import write_trace

from ..support.sample_runs import launch, run, timeline


@pytest.fixture(scope="module")
def norm():
    """Two launches on Vector cores."""
    return run_op("rms_norm_grad", {"rows": 64, "cols": 512}, "float16", values=False).run


@pytest.fixture(scope="module")
def product():
    """One launch on Cube cores, several tiles in a loop."""
    return run_op("matmul", {"m": 256, "n": 256, "k": 512}, "float16", values=False).run


def events(record, path, style="perfetto", **choice):
    record.trace(path, style, **choice)
    return json.loads(path.read_text())["traceEvents"]


def tracks(found):
    out = defaultdict(list)
    for e in found:
        if e["ph"] == "X":
            out[e["pid"], e["tid"]].append(e)
    return out


@pytest.mark.parametrize("which", ["norm", "product"])
def test_every_event_has_what_its_kind_needs(which, request, tmp_path):
    record = request.getfixturevalue(which)
    found = events(record, tmp_path / "t.json")
    assert set(Counter(e["ph"] for e in found)) == {"M", "X", "s", "f", "C"}
    for e in found:
        assert isinstance(e["pid"], int)
        assert isinstance(e["tid"], int)
        assert e["name"]
        if e["ph"] != "M":
            assert e["ts"] >= 0
        if e["ph"] == "X":
            assert e["dur"] >= 0
            assert e["cat"] in ("instruction", "stall")
        if e["ph"] == "C":
            assert e["args"]
            assert all(isinstance(x, int | float) and x >= 0 for x in e["args"].values())
    shown = [e for e in found if e["ph"] == "X" and e["cat"] == "instruction"]
    assert len(shown) == sum(len(x.timeline.start) for x in record.launches)
    assert all(re.search(r"\.py:\d+\Z", e["args"]["line"]) and e["args"]["source"] for e in shown)


def test_slices_of_one_track_never_overlap(norm, product, tmp_path):
    for record in (norm, product):
        for found in tracks(events(record, tmp_path / "t.json")).values():
            found.sort(key=lambda e: (e["ts"], e["dur"]))
            for a, b in itertools.pairwise(found):
                assert a["ts"] + a["dur"] <= b["ts"] + 1e-6


def test_slices_meet_in_whole_nanoseconds(norm, product, tmp_path):
    """As Perfetto counts: it drops a slice that begins a nanosecond before the one before it ends."""
    for record in (norm, product):
        for found in tracks(events(record, tmp_path / "t.json")).values():
            times = [(e["ts"] * 1e3, e["dur"] * 1e3) for e in found]
            assert all(abs(x - round(x)) < 1e-6 for pair in times for x in pair)
            whole = sorted((round(a), round(a) + round(n)) for a, n in times)
            assert all(a[1] <= b[0] for a, b in itertools.pairwise(whole))


def test_every_track_has_a_name_and_a_place(norm, tmp_path):
    found = events(norm, tmp_path / "t.json")
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in found if e["name"] == "thread_name"}
    assert {names[key] for key in tracks(found)} <= set(norm.launches[0].timeline.pipes)
    processes = {e["pid"]: e["args"]["name"] for e in found if e["name"] == "process_name"}
    assert processes[1] == "core 0, launch 0 zero_fill"
    sorted_by = {(e["pid"], e["tid"]) for e in found if e["name"] == "thread_sort_index"}
    assert set(tracks(found)) <= sorted_by


def test_launches_follow_each_other_after_their_overheads(norm, tmp_path):
    found = [e for e in events(norm, tmp_path / "t.json") if e["ph"] == "X"]
    first, second = norm.launches
    begins = min(e["ts"] for e in found if e["pid"] > 10_000)
    assert begins == pytest.approx(first.time_us + second.overhead_us, abs=0.5)
    assert max(e["ts"] + e["dur"] for e in found) <= norm.time_us + 1e-3


def test_arrows_join_the_instruction_that_was_waited_for_and_the_one_that_waited(product, tmp_path):
    found = events(product, tmp_path / "t.json")
    slices = {key: {e["ts"] for e in x if e["cat"] == "instruction"} for key, x in tracks(found).items()}
    ends = defaultdict(dict)
    for e in found:
        if e["ph"] in "sf":
            assert e["ts"] in slices[e["pid"], e["tid"]]
            assert ends[e["id"]].setdefault(e["ph"], e) is e  # one of each
    assert ends
    for pair in ends.values():
        assert pair["s"]["ts"] <= pair["f"]["ts"]
        assert pair["s"]["tid"] != pair["f"]["tid"]
        assert pair["s"]["name"] == pair["f"]["name"]
        assert pair["f"]["bp"] == "e"


def test_gaps_are_slices_with_their_reason_and_end_where_the_instruction_starts(product, tmp_path):
    found = events(product, tmp_path / "t.json")
    stalls = [e for e in found if e["ph"] == "X" and e["cat"] == "stall"]
    t = product.launches[0].timeline
    assert 0 < len(stalls) <= int((t.gap > 0).sum())
    waited = float(t.gap.sum()) * product.launches[0].us_per_cycle
    assert sum(e["dur"] for e in stalls) == pytest.approx(waited, rel=0.01)
    assert {e["name"] for e in stalls} <= {f"wait: {r}" for r in ("data", "buffer", "flag", "issue")}
    starts = {round(e["ts"], 4) for e in found if e["ph"] == "X" and e["cat"] == "instruction"}
    assert all(round(e["ts"] + e["dur"], 4) in starts for e in stalls)


def test_counters_of_transfers_add_up_to_the_bytes_moved(product, tmp_path):
    found = events(product, tmp_path / "t.json")
    t = product.launches[0].timeline
    moved = defaultdict(float)
    rates = defaultdict(list)
    for e in found:
        if e["ph"] == "C" and "GB/s" in e["args"]:
            rates[e["name"]].append((e["ts"], e["args"]["GB/s"]))
    for name, steps in rates.items():
        for (a, rate), (b, _) in itertools.pairwise(steps):
            moved[name] += (b - a) * rate * 1e3
    for k, name in enumerate(t.names):
        amount = float(t.bytes[t.name == k].sum())
        if amount:
            assert moved[name] == pytest.approx(amount, rel=0.01)


def test_buffer_counters_stay_within_the_ledger(norm, tmp_path):
    found = [e for e in events(norm, tmp_path / "t.json") if e["ph"] == "C" and e["name"] == "UB"]
    most = max(x.buffers["UB"].peak_bytes for x in norm.launches)
    assert found
    assert 0 < max(e["args"]["bytes"] for e in found) <= most


def test_a_window_and_a_limit_bound_the_trace(product, tmp_path):
    whole = select(product)
    assert whole.complete
    assert whole.instructions == whole.recorded
    part = product.launches[0]
    middle = part.overhead_us + (part.time_us - part.overhead_us) / 2
    found = tracks(events(product, tmp_path / "w.json", window_us=(middle, middle + 1)))
    spans = [(e["ts"], e["ts"] + e["dur"]) for x in found.values() for e in x if e["cat"] == "instruction"]
    assert 0 < len(spans) < whole.instructions
    assert all(b >= middle - 1e-6 and a < middle + 1 for a, b in spans)
    cut = write_trace(product, tmp_path / "l.json", limit=10)
    assert (cut.instructions, cut.recorded) == (10, whole.recorded)
    about = json.loads((tmp_path / "l.json").read_text())["otherData"]
    assert (about["instructions"], about["instructions_recorded"]) == (10, whole.recorded)
    assert not cut.complete
    assert not about["complete"]


def test_a_window_counts_what_is_recorded_beyond_it(product, tmp_path):
    """The same meaning of recorded with a window and without, and a note of what was left out."""
    whole = select(product)
    end = product.launches[0].overhead_us + product.launches[0].working_us / 2
    product.save(tmp_path / "a.run")
    target = tmp_path / "t.json"
    words = ["export", str(tmp_path / "a.run"), "-o", str(target), "--window", f":{end}"]
    done = CliRunner().invoke(cli, words)
    about = json.loads(target.read_text())["otherData"]
    shown = about["instructions"]
    assert 0 < shown < whole.recorded == about["instructions_recorded"]
    assert not about["complete"]
    assert about["window_us"] == [0.0, end]
    assert f"{whole.recorded - shown:,} more are recorded" in done.stderr
    everything = write_trace(product, target, window_us=(0.0, float("inf")))
    assert everything.complete
    assert json.loads(target.read_text())["otherData"]["window_us"] == [0.0, None]


def test_records_are_told_from_instructions(norm, tmp_path):
    """A wait for a flag is a record and no instruction: a trace says both counts."""
    norm.save(tmp_path / "a.run")
    target = tmp_path / "t.json"
    done = CliRunner().invoke(cli, ["export", str(tmp_path / "a.run"), "-o", str(target)])
    instructions = sum(x.instructions for x in norm.launches)
    assert f"the run has {instructions:,} instructions" in done.stderr
    assert "records of instructions" in done.stderr
    assert json.loads(target.read_text())["otherData"]["instructions_of_the_run"] == instructions


def test_insight_names_tracks_waits_and_flows_as_its_own_simulator(norm, product, tmp_path):
    vector = events(norm, tmp_path / "v.json", "insight")
    cube = events(product, tmp_path / "c.json", "insight")
    assert {e["pid"] for e in vector} <= {f"core{k}.veccore0" for k in range(40)}
    assert {e["pid"] for e in cube} <= {f"core{k}.cubecore0" for k in range(20)}
    assert {e["tid"] for e in cube} == {"SCALAR", "MTE2", "MTE1", "CUBE", "FIXP"}
    assert {"VECTOR", "MTE2", "MTE3"} <= {e["tid"] for e in vector}
    for e in cube:
        if e["ph"] == "X":
            assert set(e["args"]) == {"code", "detail", "pc_addr"}
            assert re.search(r"\.py:\d+\Z", e["args"]["code"])
            assert e["args"]["detail"].endswith(",")
            assert int(e["args"]["pc_addr"], 16) >= 0
    waits = [e for e in cube if e["ph"] in "BE"]
    assert waits
    assert {e["name"] for e in waits} == {"WAIT_FLAG"}
    for begin, end in zip(waits[::2], waits[1::2], strict=True):
        assert (begin["ph"], end["ph"]) == ("B", "E")
        assert begin["id"] == end["id"]
        assert begin["ts"] <= end["ts"]
        assert begin["tid"] == end["tid"]
        assert re.match(r"PIPE:\w+,TRIGGERPIPE:\w+,", begin["args"]["detail"])
    flows = [e for e in cube if e["ph"] in "st"]
    for a, b in zip(flows[::2], flows[1::2], strict=True):
        assert (a["ph"], b["ph"], a["name"]) == ("s", "t", "flow")
        assert a["id"] == b["id"]
        assert a["cat"] == b["cat"] == f"{a['tid']}To{b['tid']}"


def test_coupled_and_mixed_cores_have_names_of_their_own(tmp_path):
    coupled = run_op("matmul", {"m": 64, "n": 64, "k": 64}, "float16", values=False, product="ascend910a").run
    assert {e["pid"] for e in events(coupled, tmp_path / "t.json", "insight")} <= {
        f"core{k}" for k in range(32)
    }


def test_old_records_without_gaps_still_make_a_trace(tmp_path):
    later = ("gap", "reason", "waited", "bandwidth", "bytes", "name")
    old = run(launches=(launch(timeline=replace(timeline(9), **dict.fromkeys(later))),))
    found = events(old, tmp_path / "t.json")
    assert len([e for e in found if e["ph"] == "X"]) == 9
    assert {e["name"] for e in found if e["ph"] == "X"} <= set(old.launches[0].timeline.pipes)


def test_names_of_a_record_stay_text(tmp_path):
    evil = '</script><script>alert("x")</script>\x00\u2028'
    record = run(name=evil, launches=(launch(evil),))
    for style in ("perfetto", "insight"):
        record.trace(tmp_path / "t.json", style)
        data = json.loads((tmp_path / "t.json").read_text())
        assert data["otherData"]["run"] == evil


def test_damaged_times_and_runs_without_a_timeline_are_refused(tmp_path):
    bad = timeline(4)
    bad.start[2] = np.nan
    with pytest.raises(sim.UsageError, match="its times are no numbers"):
        run(launches=(launch(timeline=bad),)).trace(tmp_path / "t.json")
    with pytest.raises(sim.UsageError, match="has no timeline"):
        run(launches=(replace(launch(), timeline=None),)).trace(tmp_path / "t.json")
    with pytest.raises(
        sim.UsageError, match="no instruction of tile runs between 90 and 99 us: the run takes 38 us"
    ):
        run().trace(tmp_path / "t.json", window_us=(90, 99))
    with pytest.raises(sim.UsageError, match="the window is 9 to 3 us"):
        run().trace(tmp_path / "t.json", window_us=(9, 3))
    with pytest.raises(sim.UsageError, match="1 to 2000000 instructions, 0 were asked for"):
        run().trace(tmp_path / "t.json", limit=0)
    with pytest.raises(sim.UsageError, match="no trace style 'x'; there are perfetto, insight"):
        run().trace(tmp_path / "t.json", "x")
    assert not list(tmp_path.iterdir())


def test_an_empty_window_says_why_and_where_there_is_something(tmp_path):
    """Between two launches, while one is prepared, beyond what the record keeps, beyond the end: four reasons."""
    whole = replace(timeline(4), complete=True, until=60000.0)
    two = run(launches=(launch("first", timeline=whole), launch("second", timeline=timeline(7))))
    answers = {
        (0, 1): "no pipe works then; the next one begins at 4 us",
        (30, 41): "no pipe works then; the last one before ends at 4.00255 us; the next one begins at 42 us",
        (50, 60): "of launch 1, which runs then, the record keeps the first instructions, up to 42.004 us",
        (80, 90): "the run takes 76 us",
    }
    for window, words in answers.items():
        with pytest.raises(sim.UsageError) as error:
            two.trace(tmp_path / "t.json", window_us=window)
        assert words in str(error.value)
    with pytest.raises(sim.UsageError, match="runs from 80 us on: the run takes 76 us"):
        two.trace(tmp_path / "t.json", window_us=(80, float("inf")))


def test_a_trace_ends_where_the_timeline_lacks_instructions(tmp_path):
    cut = launch(timeline=replace(timeline(9), until=5.0))
    found = events(run(launches=(cut,)), tmp_path / "t.json")
    starts = [e["args"]["start_cycle"] for e in found if e.get("cat") == "instruction"]
    assert sorted(starts) == [0, 1, 2, 3, 4]


def test_the_command_writes_and_tells(norm, tmp_path):
    norm.save(tmp_path / "a.run")
    target = tmp_path / "t.json"
    done = CliRunner().invoke(cli, ["export", str(tmp_path / "a.run"), "-o", str(target), "--json"])
    assert done.exit_code == 0
    told = json.loads(done.stdout)
    assert told["complete"]
    assert told["instructions"] == told["recorded"]
    for wrong, word in (
        (["--window", "3"], "is not FROM:TO"),
        (["--window", "a:b"], "is not FROM:TO"),
        (["--as", "vendor", "--limit", "3"], "are for traces"),
        (["--as", "word"], "'word' is not one of"),
    ):
        bad = CliRunner().invoke(cli, ["export", str(tmp_path / "a.run"), "-o", str(target), *wrong])
        assert bad.exit_code == 2
        assert word in bad.output


def test_a_trace_overwrites_no_record(norm, tmp_path, refused):
    record = norm.save(tmp_path / "a.run") or tmp_path / "a.run"
    before = record.read_bytes()
    assert "ends in .json" in refused("export", record, "-o", record)
    assert record.read_bytes() == before
