"""What happens to a sweep from outside: Ctrl-C at any moment, stopped workers, a lost cluster, a clock that jumps.

The law is the same for all of them: what was found so far is right, and the sweep, or the next one through its store, finds
the same best with the same proof as one that nothing happened to.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import RunError, UsageError
from ascendtile.tiling import Exploration, Interrupted, evaluate, explore
from ascendtile.tiling.evaluate import Evaluation
from ascendtile.tiling.heartbeats import Heartbeats
from ascendtile.tiling.results.store import Store
from ascendtile.tiling.workers import open_workers

SPACE = {
    "block_m": (16, 48),
    "block_n": (32, 64),
    "block_k": (64, 128),
    "group": 1,
    "split_k": 1,
    "keep": "none",
}
POINTS = [{"x": k} for k in range(23)]


def swept(**more: Any) -> Exploration:
    evaluate._same.clear()  # else a second sweep has nothing to do
    return explore("matmul", case={"m": 96, "n": 64, "k": 128}, dtype="float16", space=SPACE, **more)


@pytest.fixture(scope="module")
def usual() -> Exploration:
    return swept()


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Ctrl-C comes as a signal: between any two bytecodes."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@given(st.floats(0.001, 0.25))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_ctrl_c_at_any_moment_loses_nothing_and_spoils_nothing(tmp_path_factory, usual, seconds):
    path = tmp_path_factory.mktemp("stores") / "s.sqlite"
    known = {repr(x) for x in usual.found}
    try:
        with interrupted_after(seconds):
            found = swept(store=path)
    except Interrupted as stopped:
        found = stopped.exploration
        assert not found.optimal
    except KeyboardInterrupt:  # before the search began, or after it
        found = None
    assert found is None or {repr(x) for x in found.found} <= known
    again = swept(store=path)
    assert (again.found, again.proof, again.notes) == (usual.found, usual.proof, ())
    with Store(path) as store:
        assert store.db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


@pytest.mark.exhaustive
@given(st.integers(0, 10**9))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_clock_that_jumps_changes_no_result(tmp_path_factory, usual, seed):
    """Hours ahead and back again, at every look: as after a laptop's sleep, or where someone sets the time."""
    drawn = random.Random(seed)
    path = tmp_path_factory.mktemp("stores") / "s.sqlite"
    with pytest.MonkeyPatch.context() as patch:
        for name in ("monotonic", "perf_counter", "time"):
            patch.setattr(time, name, lambda: drawn.uniform(-1e5, 1e5))
        found = swept(store=path)
        again = swept(store=path)
    assert (found.found, found.proof, found.notes) == (usual.found, usual.proof, ())
    assert again.reused == again.evaluated


@dataclass(frozen=True)
class Stops:
    """Evaluates to its own number; at the point `at` the process stops, as often as `marks` has files to remove."""

    marks: Path
    at: int

    def evaluate(self, point):
        left = sorted(self.marks.iterdir())
        if point["x"] == self.at and left:
            left[0].unlink()
            os.kill(os.getpid(), signal.SIGSTOP)
        return Evaluation(time_us=float(point["x"]))


@pytest.mark.drawn(1)
@pytest.mark.parametrize("at", [0, 9, 22])
def test_a_worker_that_is_stopped_is_replaced(tmp_path, at):
    (tmp_path / "once").touch()
    with open_workers(Stops(tmp_path, at), 2, timeout=0.3) as crew:
        assert [e.time_us for e in crew.evaluate(POINTS)] == [float(k) for k in range(23)]
        assert crew.note.startswith("a worker process gave no sign of life for 0.3 s: it was replaced")
    assert not list(tmp_path.iterdir())


def ended(process: Any) -> bool:
    """Within 10 s. Asked again, as the pool's own thread may have waited for it and not yet noted how it ended."""
    end = time.monotonic() + 10
    while process.is_alive() and time.monotonic() < end:
        time.sleep(0.01)
    return not process.is_alive()


@pytest.mark.exhaustive
def test_closing_ends_processes_that_have_not_begun(monkeypatch):
    """Else they wait for ever for a lock of one that was killed, and this process for them."""
    monkeypatch.setattr(Heartbeats, "begin", lambda self: time.sleep(100))
    before = [p.pid for p in multiprocessing.active_children()]
    with open_workers(Slow(0.0), 2) as crew:
        crew.pool.submit(int)
        made = [p for p in multiprocessing.active_children() if p.pid not in before]
    assert made
    assert all(ended(process) for process in made)


@pytest.mark.exhaustive
def test_a_point_that_stops_every_worker_is_named(tmp_path):
    for k in range(9):
        (tmp_path / f"again {k}").touch()
    with (
        pytest.raises(RunError, match=r"a worker process died 3 times at the same points"),
        open_workers(Stops(tmp_path, 9), 2, timeout=0.2) as crew,
    ):
        list(crew.evaluate(POINTS))


@dataclass(frozen=True)
class Slow:
    """A point that takes longer than the time-out."""

    seconds: float

    def evaluate(self, point):
        end = time.monotonic() + self.seconds * (point["x"] == 0)
        while time.monotonic() < end:
            pass
        return Evaluation(time_us=float(os.getpid()))


def test_a_worker_that_computes_for_longer_than_the_time_out_is_left_alone():
    with open_workers(Slow(0.8), 2, timeout=0.4) as crew:
        list(crew.evaluate(POINTS))
        assert crew.note == ""


class Parent:
    """The heartbeats of three processes in this one, without any process."""

    @staticmethod
    def RawArray(kind: str, count: int) -> list[int]:
        return [0] * count

    @staticmethod
    def Value(kind: str, value: int) -> int:
        return value


@given(st.lists(st.booleans(), max_size=60))
def test_silent_is_who_gave_no_beat_at_so_many_looks_in_a_row(beats):
    seen, silent, allowed = Heartbeats(Parent(), 1, 4.0), 0, 4
    killed: list[int] = []
    seen._kill = lambda pids: bool(killed.extend(pids)) or bool(pids)  # type: ignore[method-assign]
    seen.pids[0] = 7
    for beat in beats:
        seen.beats[0] += beat
        silent = 0 if beat else silent + 1
        assert seen.kill_stopped() == (silent >= allowed)
    assert set(killed) <= {7}


@pytest.mark.exhaustive
def test_a_sweep_with_a_stopped_worker_has_the_same_best_and_proof(usual):
    """Stopped from outside, as soon as there are workers."""
    stopped: list[int] = []

    def stop(done: int, left: int, best: float) -> None:
        if not stopped:
            children = [p for p in _children() if p not in before]
            stopped.extend(children[:1])
            os.kill(stopped[0], signal.SIGSTOP)

    before = _children()
    found = swept(workers=2, worker_timeout=0.4, report=stop)
    assert stopped
    assert (found.found, found.proof) == (usual.found, usual.proof)
    end = (
        time.monotonic() + 30
    )  # they are killed at the end of the sweep, also if nobody waited for their points
    while set(stopped) & set(_children()):
        assert time.monotonic() < end
        time.sleep(0.01)


def _children() -> list[int]:
    return [p.pid for p in multiprocessing.active_children() if p.pid is not None]


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), "3", True])
def test_wrong_time_outs(timeout):
    with pytest.raises(UsageError, match="worker_timeout is a number of seconds above 0"):
        swept(worker_timeout=timeout)


@contextmanager
def small_cluster() -> Iterator[tuple[str, subprocess.Popen[str], subprocess.Popen[str]]]:
    """The address, the scheduler and the one worker, in processes of their own."""
    python = [sys.executable, "-m"]
    scheduler = [
        *python,
        "distributed.cli.dask_scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--no-dashboard",
    ]
    first = subprocess.Popen(scheduler, stderr=subprocess.PIPE, text=True)
    assert first.stderr is not None
    address = next(line.split()[-1] for line in first.stderr if "Scheduler at" in line)
    threading.Thread(target=first.stderr.read, daemon=True).start()
    worker = [
        *python,
        "distributed.cli.dask_worker",
        address,
        "--nthreads",
        "1",
        "--no-dashboard",
        "--no-nanny",
    ]
    second = subprocess.Popen(worker, stderr=subprocess.DEVNULL, text=True)
    try:
        yield address, first, second
    finally:
        for process in (second, first):
            process.kill()
            process.wait()


def lost_in_the_middle(lost: Callable[[], None]) -> Callable[[int, int, float], None]:
    """A report that takes something away after the first results."""
    once = itertools.count()

    def report(done: int, left: int, best: float) -> None:
        if done and not next(once):
            lost()

    return report


@pytest.mark.extra("distributed")
def test_a_scheduler_that_is_lost_is_one_message_or_this_process_goes_on(tmp_path, usual, capfd):
    path = tmp_path / "s.sqlite"
    with small_cluster() as (address, scheduler, _):
        report = lost_in_the_middle(scheduler.kill)
        with pytest.raises(
            RunError, match=r"the cluster at .* was lost .*run the same command again, or add --fallback"
        ):
            swept(workers=_answering(address), store=path, report=report)
    with Store(path) as store:
        kept = store.db.execute("SELECT count(*) FROM points").fetchone()[0]
    again = swept(store=path)
    assert (again.found, again.proof) == (usual.found, usual.proof)
    assert again.reused == kept > 0
    with small_cluster() as (address, scheduler, _):
        found = swept(workers=_answering(address), fallback=True, report=lost_in_the_middle(scheduler.kill))
    assert (found.found, found.proof) == (usual.found, usual.proof)
    assert found.notes[0].endswith("the rest ran in this process")
    assert "Traceback" not in "".join(capfd.readouterr())


def _answering(address: str) -> str:
    """The address once the cluster has its worker."""
    import distributed

    with distributed.Client(address, set_as_default=False) as client:
        client.wait_for_workers(1, timeout=60)
    return address


@sim.jit
def twice(x_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at) * 2.0)


@given(st.floats(0.0005, 0.03))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_ctrl_c_in_a_launch_leaves_nothing_behind(seconds):
    """The next launch of the same kernel has the same values and the same cycles."""

    def launched() -> tuple[Any, Any]:
        x = np.arange(256, dtype=np.float32)
        return twice[(4,)](x, BLOCK=64).cycles, x

    cycles, values = launched()
    try:
        with interrupted_after(seconds):
            for _ in range(100):
                launched()
    except KeyboardInterrupt:
        pass
    again, same = launched()
    assert again == cycles
    assert np.array_equal(same, values)
