"""`ascendtile explore`: page, JSON, exports, tables, bad input, and SIGTERM in the middle of a sweep."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from ascendtile.reports.cli.explore_inputs import default_store
from ascendtile.reports.cli.main import status_of
from ascendtile.tiling.results.store import Store

CASE = ("matmul", "--size", "m=96", "n=64", "k=128", "--dtype", "float16")
FEW = ("--space", "block_m=16,48", "block_n=32..64", "block_k=128", "group=1", "split_k=1", "keep=none")


@pytest.fixture
def explored(ascendtile, tmp_path):
    """`explored(...)` on a small space with a store of its own."""
    return lambda *more: ascendtile("explore", *CASE, *FEW, "--store", tmp_path / "s.sqlite", *more)


def test_page_fits_and_has_its_parts(explored):
    answer = explored()
    assert answer.status == 0
    assert max(map(len, answer.out.splitlines())) <= 80
    for word in ("space", "search", "best", "proof", "legal", "waits for", "knobs", "ascend910b3"):
        assert word in answer.out
    assert "bound above it" in answer.out or "all 8 legal points were evaluated" in answer.out


@pytest.mark.exhaustive
def test_the_best_one_can_be_run_by_copy_and_paste(explored, ascendtile):
    page = explored("--space", "cube_math_type=KEEP_DTYPE,USE_HF32", "--set", "buffers.l1=256KiB")
    shown = page.out.partition("run the best one:\n")[2]
    words = shlex.split(shown.replace("\\\n", " "))  # as a shell joins lines
    assert words[:3] == ["ascendtile", "run", "matmul"]
    assert {"buffers.l1=256KiB", "m=96", "float16", "group=1"} <= set(words)
    best = json.loads(
        explored("--json", "--space", "cube_math_type=KEEP_DTYPE,USE_HF32", "--set", "buffers.l1=256KiB").out
    )
    again = json.loads(ascendtile(*words[1:], "--no-values", "--json").out)
    assert again["time_us"] == best["best"]["time_us"]


def test_json_is_one_object_and_the_same_from_the_store(explored):
    first, second = (json.loads(explored(*way).out) for way in (["--json"], ["--export", "json"]))
    assert first["optimal"] is True
    assert first["space"]["size"] == 16
    assert second["reused"] == second["evaluated"] == first["evaluated"]
    assert {n: second["best"][n] for n in first["best"]} == first["best"]


def test_python_of_one_case_is_its_best_tiling(explored):
    scope: dict = {}
    exec(explored("--export", "python").out, scope)  # it is to be pasted
    point = json.loads(explored("--export", "json").out)["best"]["point"]
    assert scope["TILING"] == point
    assert point


def test_csv_has_a_row_for_each_tiling_best_first(explored):
    rows = list(csv.DictReader(io.StringIO(explored("--export", "csv").out)))
    times = [float(r["time_us"]) for r in rows]
    assert times == sorted(times)
    assert {r["block_m"] for r in rows} <= {"16", "48"}
    best = json.loads(explored("--json").out)["best"]
    assert times[0] == best["time_us"]


def test_cases_make_a_table_csv_json_and_a_dict(ascendtile, tmp_path):
    few = ("--space", "strategy=full_row", "cols=256", "rows=1,2", "cores=8", "combine=atomic", "buffers=2")
    call = ("explore", "RmsNormGrad", "--cases", "tiny,decode", *few, "--store", tmp_path / "s.sqlite")
    page = ascendtile(*call)
    assert page.status == 0, page.err
    assert "best for all" in page.out
    assert max(map(len, page.out.splitlines())) <= 80
    data = json.loads(ascendtile(*call, "--json").out)
    assert list(data["cases"]) == ["tiny", "decode"]
    rows = list(csv.DictReader(io.StringIO(ascendtile(*call, "--export", "csv").out)))
    assert [r["case"] for r in rows] == ["tiny", "decode"]
    scope: dict = {}
    exec(ascendtile(*call, "--export", "python").out, scope)
    assert set(scope["TILINGS"]) == {(8, 64), (1, 4096)}


def test_what_if_and_diff_are_tables(explored):
    page = explored("--what-if", "memory.bandwidth_tb_per_s=0.1,3")
    assert page.status == 0, page.err
    assert page.out.count("memory.bandwidth") == 2
    assert max(map(len, page.out.splitlines())) <= 80
    data = json.loads(explored("--what-if", "memory.bandwidth_tb_per_s=0.1", "--json").out)
    assert [v["set"] for v in data["variants"]] == [{}, {"memory.bandwidth_tb_per_s": "0.1"}]
    page = explored("--diff", "block_m=16,block_n=32", "auto")
    assert page.status == 0, page.err
    assert "AIC.M busy" in page.out
    assert max(map(len, page.out.splitlines())) <= 80


def test_a_budget_ends_without_a_proof(explored):
    answer = explored("--objective", "ub", "--budget", "2")
    assert "not proved: the budget ended" in answer.out
    assert "search  exact (ended early, no proof)," in answer.out


WRONG = {
    "operator": (["explore", "matmull"], "matmull"),
    "knob": (["explore", *CASE, "--space", "blok=3"], "matmul has no knob 'blok' to explore"),
    "empty": (
        ["explore", *CASE, "--space", "block_m=512", "block_n=512"],
        "'the accumulator fits in L0C' removed the last",
    ),
    "range": (["explore", *CASE, "--space", "block_m=16..x"], "is no range; write 16..256"),
    "budget": (["explore", *CASE, "--budget", "soon"], "a number of tilings, or a time such as 60s"),
    "no budget": (["explore", *CASE, "--budget", "0"], "above 0, got '0'"),
    "endless budget": (["explore", *CASE, "--budget", "infs"], "above 0, got 'infs'"),
    "cases": (["explore", *CASE, "--cases", "all"], "give one of them"),
    "no case": (["explore", "matmul", "--cases", "tiny,huge"], "has no case 'huge'"),
    "views": (["explore", "matmul", "--what-if", "a=1", "--diff", "a=1", "b=2"], "are tables of their own"),
    "export": (["explore", "matmul", "--export", "csv", "--json"], "both print data"),
    "no store": (["explore", *CASE, *FEW, "--store", ""], "--store is empty"),
    "no cases": (["explore", "matmul", "--cases", ""], "--cases is empty"),
    "long axis": (["explore", *CASE, "--space", "block_m=16..9999999999+1"], "an axis has at most 1,000,000"),
    "large value": (
        ["explore", *CASE, "--space", "block_m=99999999999999999999"],
        "the largest is 9223372036854775807",
    ),
    "resume": (
        ["explore", "matmul", "--resume", "--store", "no such.sqlite"],
        "--resume: there is no store no such.sqlite",
    ),
    "workers": (["explore", *CASE, *FEW, "--workers", "many"], "workers must be a number from 1"),
    "figure": (["explore", *CASE, *FEW, "--what-if", "buffers.uc=1"], "buffers.uc"),
    "tiling": (["explore", *CASE, "--diff", "block_m", "auto"], "is not KNOB=VALUE"),
}


@pytest.mark.parametrize("what", WRONG)
def test_bad_input_is_one_message(refused, tmp_path, what, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    arguments, words = WRONG[what]
    assert words in refused(*arguments)


@pytest.mark.extra("distributed")
def test_an_address_without_a_port_is_one_message(refused, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    words = refused("explore", *CASE, *FEW, "--workers", "tcp://127.0.0.1:notaport")
    assert "an address such as tcp://host:8786" in words


@pytest.mark.parametrize(
    ("module", "extra", "asked"),
    [
        ("distributed", "cluster", ["--workers", "tcp://127.0.0.1:8786"]),
        ("optuna", "search", ["--sampler", "tpe", "--budget", "4"]),
        ("optuna", "search", ["--sampler", "nsga2", "--budget", "4"]),
    ],
)
def test_without_an_extra_one_message_says_how_to_install_it(
    refused, monkeypatch, tmp_path, module, extra, asked
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, module, None)
    assert f"pip install 'ascendtile[{extra}]'" in refused("explore", *CASE, *FEW, *asked)


def test_the_cache_of_an_earlier_release_stays_and_is_told_of_once(
    ascendtile, refused, monkeypatch, tmp_path
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    earlier = tmp_path / "ascendtile" / "explore.sqlite"
    ascendtile("explore", *CASE, *FEW, "--store", earlier)
    before = earlier.read_bytes()
    assert f"no store {default_store()}" in refused("explore", *CASE, *FEW, "--resume")
    told = [ascendtile("explore", *CASE, *FEW) for _ in range(2)]
    assert [f"{earlier} has results of an earlier release" in x.err for x in told] == [True, False]
    assert earlier.read_bytes() == before
    assert ascendtile("report", earlier, "-o", tmp_path / "x.html").status == 0


def test_a_store_of_another_version(refused, tmp_path):
    path = tmp_path / "s.sqlite"
    with Store(path) as store, store.db:
        store.db.execute("UPDATE about SET value = '99'")
    assert "is a store of version 99" in refused("explore", *CASE, *FEW, "--store", path)


@pytest.mark.exhaustive
def test_sigterm_keeps_and_shows_what_is_done_and_resume_goes_on(tmp_path):
    path = tmp_path / "s.sqlite"
    call = [
        sys.executable,
        "-c",
        "from ascendtile.reports.cli.main import main; main()",
        "explore",
        "matmul",
        "--size",
    ]
    call += [
        "m=256",
        "n=256",
        "k=256",
        "--dtype",
        "float16",
        "--objective",
        "ub",
        "--store",
        str(path),
        "--json",
    ]
    running = subprocess.Popen(
        call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (path.exists() and _stored(path)):
        time.sleep(0.1)
    running.send_signal(signal.SIGTERM)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert "Traceback" not in err
    data = json.loads(out)
    assert data["optimal"] is False
    assert "interrupted" in data["proof"]
    done = data["evaluated"]
    assert done > 0
    more = [*call[:-1], "--export", "json", "--resume", "--budget", str(done)]
    again = subprocess.run(more, stdout=subprocess.PIPE, text=True, timeout=60, check=True)
    assert json.loads(again.stdout)["reused"] == done


def _stored(path) -> int:
    with Store(path) as store:
        return int(store.db.execute("SELECT count(*) FROM points").fetchone()[0])


def test_what_json_printed_is_shown_again(ascendtile, tmp_path):
    told = ascendtile("explore", "matmul", "--case", "tiny", "--budget", "4", "--json")
    (tmp_path / "ex.json").write_text(told.out)
    page = ascendtile("report", tmp_path / "ex.json")
    assert page.status == 0
    assert "matmul" in page.out


def test_the_best_few_say_nothing_about_the_others(ascendtile, refused, tmp_path):
    """`--json` holds the best alone: how many there were is its own figure, knobs and cells are not known."""
    path, page = tmp_path / "ex.json", tmp_path / "ex.html"
    told = ascendtile("explore", "matmul", "--case", "tiny", "--budget", "30", "--top", "3", "--json").out
    path.write_text(told)
    evaluated = json.loads(told)["evaluated"]
    assert evaluated > 3
    shown = ascendtile("report", path).out
    assert f"{evaluated} tilings evaluated" in shown
    assert "knobs not known" in " ".join(shown.split())
    assert "nothing" not in shown
    assert json.loads(ascendtile("report", path, "--json").out)["explorations"][0]["evaluated"] == evaluated
    ascendtile("report", path, "-o", page)
    text = page.read_text()
    assert f"The best 3 of {evaluated} evaluated tilings" in text
    assert 'class="heat-box"' not in text
    assert "lower bound, us" not in text
    assert "writes all" in refused("report", path, "--picture", "heatmap", "-o", tmp_path / "x.png")


def test_evaluated_is_what_has_a_result_and_failures_are_named(ascendtile, tmp_path):
    space = ("base_m=0,16", "buffers=2", "schedule=persistent", "block_m=16", "block_n=16", "block_k=16")
    call = ("explore", "matmul", "--case", "tiny", "--dtype", "float16", "--space", *space)
    path, page = tmp_path / "f.json", tmp_path / "f.html"
    path.write_text(ascendtile(*call, "--export", "json").out)
    told = json.loads(path.read_text())
    assert told["failed"] > 0
    both = f"{told['evaluated']} tilings evaluated, {told['failed']} failed"
    assert both in " ".join(ascendtile("report", path).out.split())
    ascendtile("report", path, "-o", page)
    assert f"the {told['failed']} that were tried and failed" in page.read_text()


def test_what_has_no_room_is_refused_with_its_bytes_on_every_page(ascendtile, tmp_path):
    call = ("explore", "rms_norm_grad", "--size", "rows=64", "cols=8192", "--space", "buffers=2")
    path, page = tmp_path / "f.json", tmp_path / "f.html"
    path.write_text(ascendtile(*call, "--export", "json").out)
    told = json.loads(path.read_text())
    ((why, count),) = (
        (w, n) for w, n in told["space"]["refused"].items() if w.startswith("does not fit in UB")
    )
    assert re.fullmatch(r"does not fit in UB: needs [\d,]+ (to [\d,]+ )?of 196,608 bytes", why)
    assert told["space"]["size"] == told["space"]["legal"] + sum(told["space"]["refused"].values())
    assert told["failed"] == 0
    assert f"{count} {why}" in " ".join(ascendtile("report", path).out.split())
    ascendtile("report", path, "-o", page)
    assert f"{count}: {why}" in page.read_text()


def test_a_budget_of_time_counts_from_the_start_of_the_command(monkeypatch):
    """What the command imports is part of its time."""
    import ascendtile.tiling as tiling

    asked = {}

    def explore(*_, **given):
        asked.update(given)
        raise KeyboardInterrupt

    monkeypatch.setattr(tiling, "explore", explore)
    before = time.perf_counter()
    assert status_of(["explore", "matmul", "--case", "tiny", "--budget", "40s"]) == 130
    assert before <= asked["began"] <= time.perf_counter()
    assert asked["seconds"] == 40


@pytest.mark.parametrize("form", [(), ("--cases", "tiny"), ("--what-if", "buffers.ub=128KiB")], ids=str)
def test_a_tensor_in_l2_that_the_operator_does_not_have_is_refused(refused, form):
    case = () if "--cases" in form else ("--case", "tiny")
    message = refused("explore", "rms_norm_grad", *case, *form, "--l2", "q=cold")
    assert "rms_norm_grad has no tensor argument 'q'; it has dgamma, dx" in message


def test_inputs_from_a_file_are_explored_with_their_shapes_and_numbers(ascendtile, refused, tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, a=np.ones((64, 128), np.float32), b=np.ones((128, 32), np.float32))
    space = ("--space", "buffers=1,2", "block_m=64", "block_n=32", "block_k=64", "keep=none", "group=1")
    space = (*space, "split_k=1", "schedule=persistent")
    by_file = json.loads(ascendtile("explore", "matmul", "--input", path, *space, "--json").out)
    sizes = ("--size", "m=64", "n=32", "k=128", "--dtype", "float32")
    by_size = json.loads(ascendtile("explore", "matmul", *sizes, *space, "--json").out)
    assert by_file["best"] == by_size["best"]
    exact = ascendtile("explore", "matmul", "--input", path, *space, "--objective", "error", "--json")
    assert json.loads(exact.out)["best"]["errors"] == {"out": 0.0}
    page = ascendtile("explore", "matmul", "--input", path, *space).out.replace(" \\\n   ", "")
    assert f"ascendtile run matmul --input {path} --tiling block_m=64" in page
    assert "each say what to explore" in refused("explore", "matmul", "--input", path, "--case", "tiny")
    assert "do not go together" in refused("explore", "matmul", "--input", path, "--diff", "auto", "group=1")
