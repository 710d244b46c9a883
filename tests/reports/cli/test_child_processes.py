"""Processes that a script under `ascendtile run` starts: they find the simulator, and their launches are in the report."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from ascendtile.simulator import jit, shape
from ascendtile.simulator import language as tl
from ascendtile.simulator.errors import RefusedError
from ascendtile.simulator.messages import fault, note
from ascendtile.simulator.triton_shim.scripts import child_processes
from ascendtile.simulator.triton_shim.scripts.child_processes import (
    FOLDER,
    SUFFIX,
    VARIABLE,
    Gatherer,
    read_ledgers,
    with_children,
)
from ascendtile.simulator.triton_shim.scripts.collecting import Collector

SCRIPT = """
import multiprocessing as mp, os, subprocess, sys, threading
from concurrent.futures import ProcessPoolExecutor
import numpy as np
import triton
import triton.language as tl

@triton.jit
def fill(x, B: tl.constexpr):
    tl.store(x + tl.arange(0, B), 1.0)

def work(n):
    x = np.zeros(n, np.float32)
    fill[(1,)](x, B=n)
    return float(x.sum())

if __name__ == "__main__":
    how = sys.argv[1]
    if how == "many ways":
        with mp.get_context("spawn").Pool(1) as pool:
            print(pool.map(work, [16, 32]))
        subprocess.run([sys.executable, "-c", "import script; script.work(64)"], check=True)
        thread = threading.Thread(target=work, args=(128,))
        thread.start()
        thread.join()
        child = os.fork()
        work(256)  # in both
        if not child:
            sys.exit(0)
        os.waitpid(child, 0)
    elif how == "nobody waits":
        executor = ProcessPoolExecutor(1, mp_context=mp.get_context("forkserver"))
        print(list(executor.map(work, [16, 32])))
        mp.get_context("fork").Process(target=work, args=(64,)).start()
    else:
        with mp.get_context("spawn").Pool(1) as pool:
            pool.map(work, [1 << 20])
"""


@pytest.fixture
def run(tmp_path):
    """`run(how, options...)`: the script in a process of its own; (status, standard output, standard error)."""
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {n: x for n, x in os.environ.items() if n != VARIABLE}

    def call(how, *options):
        words = ["run", "--json", *options, "script.py", how]
        code = f"from ascendtile.reports.cli.main import main; main({words!r})"
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.returncode, done.stdout, done.stderr

    return call


@pytest.mark.exhaustive
def test_launches_of_other_processes_are_in_the_report(run):
    status, out, err = run("many ways", "--product", "ascend910b4", "--set", "clock.aicore_mhz=900")
    assert status == 0, err
    data = json.loads(out)  # one object, whatever the children print
    counts = {k["constants"]["B"]: k["count"] for k in data["kernels"]}
    assert counts == {16: 1, 32: 1, 64: 1, 128: 1, 256: 2}
    assert (data["launches"], data["processes"], data["unread_processes"]) == (6, 3, 0)
    assert "[16.0, 32.0]" in err
    overheads = [k["time_us"] / k["count"] - k["cycles"] / k["count"] / 900 for k in data["kernels"]]
    assert overheads == pytest.approx([overheads[0]] * 5), (
        "threads and children have the clock that was asked for"
    )


@pytest.mark.exhaustive
def test_processes_that_nobody_waits_for(run):
    status, out, err = run("nobody waits")
    data = json.loads(out)
    assert (status, data["launches"], data["processes"]) == (0, 3, 2), err
    assert "[16.0, 32.0]" in err


@pytest.mark.exhaustive
def test_an_error_of_a_child_ends_the_script_and_does_not_hang(run):
    status, out, err = run("error in a child")
    data = json.loads(out)
    assert (status, data["status"]) == (1, 1)
    assert "ub overflow" in data["error"]
    assert "in a process that was given work at" in data["error"]
    assert "pool.map(work, [1 << 20])" in err


@jit
def fill(x, B: tl.constexpr):
    tl.store(x + tl.arange(0, B), 0.0)


def test_a_launch_that_was_not_written_to_its_end_is_counted_as_lacking(tmp_path):
    whole, found = Collector(), Collector()
    gatherer = Gatherer(None, str(tmp_path))
    for n in (64, 64, 128, 64):
        run = fill.time((1,), shape(n, "float32"), B=n)
        run = replace(run, value_warnings=(fault(f"stored {n} times", "k.py:3", (0, n)), note("kept")))
        gatherer.tell(run)
        whole.tell(run)
    read_ledgers(str(tmp_path), found)
    assert (found.processes, found.unread_processes) == (1, 0)
    assert [(g.kernel, g.count, g.time_us) for g in found.by_time] == [
        (g.kernel, g.count, g.time_us) for g in whole.by_time
    ]
    told = [[(str(m), m.kind, m.place, m.programs, n) for m, n in g.faults.items()] for g in found.faulty]
    assert told == [
        [("k.py:3: stored 64 times", "fault", "k.py:3", (0, 64), 3)],
        [("k.py:3: stored 128 times", "fault", "k.py:3", (0, 128), 1)],
    ]
    (file,) = tmp_path.glob(f"*{SUFFIX}")
    file.write_bytes(file.read_bytes()[:-3])
    again = Collector()
    read_ledgers(str(tmp_path), again)
    assert (again.count, again.unread_processes) == (3, 1)


def test_the_environment_is_as_before(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "mine")
    with with_children(Collector(), {"product": None}, ["npu"]) as gatherer:
        assert os.environ["PYTHONPATH"].endswith(f"{os.pathsep}mine")
        assert os.path.isdir(gatherer.folder)
    assert os.environ["PYTHONPATH"] == "mine"
    assert VARIABLE not in os.environ
    assert not os.path.exists(gatherer.folder)


def test_the_process_of_a_run_joins_no_other():
    """A script may say `ascendtile run` itself: those launches are in that report, and once."""
    from ascendtile.simulator import observers as watching

    before = list(watching._watchers)
    with with_children(Collector(), {}, ["npu"]):
        child_processes.join()
        assert watching._watchers == before


def test_who_is_waited_for_is_said_with_what_went_wrong(monkeypatch, capsys):
    import multiprocessing

    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(0.3,))
    child.start()
    child_processes._wait_for_children("; the script has failed: why", patience=0.01)
    assert not child.is_alive()
    assert capsys.readouterr().err == (
        f"waiting for processes that the script started: {child.pid} (Ctrl-C ends this); the script has failed: why\n"
    )
    child_processes._wait_for_children(patience=0.01)
    assert capsys.readouterr().err == "", "nobody is left"


def test_another_sitecustomize_runs_too(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("print('mine runs')")
    path = os.pathsep.join((FOLDER, str(tmp_path)))
    code = "import sys; print('numpy' in sys.modules, *sys.path)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    first, second = done.stdout.splitlines()
    assert first == "mine runs"
    assert second.startswith("False "), "a process that does not import triton or torch pays nothing"
    assert FOLDER not in second.split()


def test_errors_pass_from_process_to_process():
    error = pickle.loads(pickle.dumps(RefusedError("no", 161002, "why")))
    assert (str(error), error.status, error.reason) == ("no", 161002, "why")
